"""The checker of fusion plans: hand-written plans pass, and each rule refuses a broken one."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from support.messages import mentions
from tcgen.errors import VerifyError
from tcgen.ir.exchange_symmetry import exchange_sign
from tcgen.ir.expr import Call, Const, Pow, Prod, Quot, Sum
from tcgen.ir.plan import GroupKind, KernelGroup, LoopId, Place, Visit
from tcgen.ir.program import Add, Contract, FormulaSequence, Map, Phase, Step
from tcgen.ir.tensor import Index, Ref, Role, Space, Symmetry, Tensor

NAMES = (
    "shared_producer",
    "accumulation",
    "tile_of_three",
    "recomputation",
    "host_loop",
    "triangular_pair",
    "triangular_images",
    "generated_tile",
    "nested_fusion",
)


def put(items: tuple, position: int, **changes) -> tuple:
    """The tuple with fields of one item replaced."""
    return (*items[:position], replace(items[position], **changes), *items[position + 1 :])


def visit(plan, position: int, **changes):
    return replace(plan, visits=put(plan.visits, position, **changes))


def array(plan, position: int, **changes):
    return replace(plan, arrays=put(plan.arrays, position, **changes))


def group(plan, position: int, **changes):
    return replace(plan, groups=put(plan.groups, position, **changes))


def refused(plan, message: str) -> None:
    with pytest.raises(VerifyError, match=mentions(message)):
        plan.verify()


def swap_loop(plan, old: LoopId, new: LoopId):
    """The plan with one loop exchanged for another, everywhere."""

    def loops(found):
        return tuple(new if o == old else o for o in found)

    return replace(
        plan,
        loops=loops(plan.loops),
        visits=tuple(
            replace(
                v,
                bind=tuple((i, new if o == old else o) for i, o in v.bind),
                loops=loops(v.loops),
                redundant=loops(v.redundant),
            )
            for v in plan.visits
        ),
        arrays=tuple(
            replace(
                a,
                contracted=tuple((x, new if o == old else o) for x, o in a.contracted),
                home=new if a.home == old else a.home,
            )
            for a in plan.arrays
        ),
    )


@pytest.mark.parametrize("name", NAMES)
def test_hand_written_plans_pass(hand_plans, name):
    assert {f.__name__ for f in hand_plans.LEGAL} == set(NAMES)
    plan = getattr(hand_plans, name)()
    plan.verify()
    assert plan.pretty()


def test_extents(hand_plans):
    plan = hand_plans.shared_producer()
    refused(replace(plan, extents=plan.extents[1:]), "extent i")
    refused(replace(plan, extents=plan.extents[::-1]), "sorted name")
    refused(replace(plan, extents=(("i", 0), *plan.extents[1:])), "i=0 1")


def test_loops(hand_plans):
    plan = hand_plans.tile_of_three()
    (loop,) = plan.loops
    refused(swap_loop(plan, loop, replace(loop, id=1)), "loop 1 position 0")
    refused(swap_loop(plan, loop, replace(loop, tile=0)), "loop 0 tile")
    refused(replace(plan, loops=()), "loop 0")
    extra = LoopId(1, loop.space)
    refused(replace(plan, loops=(loop, extra)), "loop 1 no visit")


def test_steps_and_bindings(hand_plans):
    plan = hand_plans.nested_fusion()
    h = hand_plans
    outer, inner = plan.loops
    refused(replace(plan, visits=plan.visits[:2]), "no visit s2 W[k]")
    refused(visit(plan, 2, step=9), "no visit s2")
    refused(replace(plan, visits=(*plan.visits, Visit(9))), "visit 3 names step 9")
    refused(visit(plan, 0, bind=((h.k, outer),)), "visit 0 s0 k bound loop 0 not")
    refused(visit(plan, 2, bind=((h.j, inner), (h.k, outer))), "j loop 1 k")
    refused(visit(plan, 2, bind=((h.j, outer), (h.k, inner), (h.k, inner))), "indices bound")
    refused(visit(plan, 2, loops=(outer, inner, inner)), "visit twice")
    refused(visit(plan, 2, loops=(outer,)), "bound redundant")
    refused(visit(plan, 0, redundant=(outer,)), "bound redundant")


def test_loops_are_nested_or_apart(hand_plans):
    plan = hand_plans.nested_fusion()
    outer, inner = plan.loops
    refused(visit(plan, 2, loops=(inner, outer)), "overlaps loop visits 0 2")
    refused(visit(plan, 1, bind=(), loops=()), "loop 0 contiguous visits 2")


def test_instances(hand_plans):
    plan = hand_plans.accumulation()
    (t, x) = plan.arrays
    refused(replace(plan, arrays=(t,)), "visit 2 X 0 instances live")
    refused(replace(plan, arrays=(t, t, x)), "visit 0 T 2 instances live")
    refused(replace(plan, arrays=(*plan.arrays, replace(x, live=(0, 0)))), "X 2 instances")
    refused(array(plan, 1, live=(1, 2)), "first last")
    refused(array(plan, 1, tensor=plan.program.tensors[0]), "A input unknown")
    swapped = (plan.visits[1], plan.visits[0], plan.visits[2])
    refused(replace(plan, visits=swapped), "producers steps [0, 1] once")
    late = (plan.visits[0], plan.visits[2], plan.visits[1])
    refused(
        replace(plan, visits=late, arrays=(t, replace(x, live=(1, 1)))),
        "visit 1 2 written",
    )


def test_a_second_instance_needs_all_producers(hand_plans):
    plan = hand_plans.recomputation()
    first, x, second, y = plan.arrays
    joined = replace(first, live=(0, 3))
    refused(replace(plan, arrays=(joined, x, y)), "producers steps [0] once")
    refused(
        replace(plan, arrays=(first, x, replace(second, live=(3, 3)), y)),
        "visit 2 T 0 instances live",
    )


def test_home(hand_plans):
    plan = hand_plans.nested_fusion()
    outer, inner = plan.loops
    refused(array(plan, 0, home=inner), "f1 home loop 1 visit 0")
    refused(array(plan, 2, home=outer), "output whole")


def test_contracted_axes(hand_plans):
    plan = hand_plans.nested_fusion()
    outer, inner = plan.loops
    refused(array(plan, 0, home=None), "axis 0 contracted loop")
    refused(array(plan, 1, home=outer), "axis 1 contracted loop")
    twice = ((0, outer), (0, outer))
    refused(array(plan, 1, contracted=twice), "axis contracted")
    wrong = ((0, outer), (1, outer))
    refused(array(plan, 1, contracted=wrong), "axis 1 k contracted loop 0 j")
    loose = visit(plan, 2, bind=((hand_plans.k, inner),), redundant=(outer,))
    refused(loose, "contracted loop 0 visit 2 j")
    refused(
        array(plan, 1, contracted=((0, outer),), place=Place.ARENA),
        "f2 axis 1 whole visit part",
    )


def test_sums_stay_inside_the_home(hand_plans):
    plan = hand_plans.nested_fusion()
    extra = LoopId(2, hand_plans.L)
    bind = plan.visits[1].bind
    deeper = replace(plan, loops=(*plan.loops, extra))
    deeper = visit(deeper, 1, bind=(*bind, (hand_plans.l, extra)), loops=(*plan.loops, extra))
    deeper.verify()
    deeper = visit(deeper, 2, loops=(*plan.loops, extra), redundant=(extra,))
    refused(array(deeper, 1, home=extra), "visit 1 sums l loop home")
    refused(deeper, "f2 visits 1 2 loop same axis")


def test_carried_dependences(hand_plans):
    h = hand_plans
    plan = h.host_loop()
    (loop,) = plan.loops
    whole = array(plan, 0, contracted=(), home=None)
    whole.verify()
    a, b, _ = plan.program.inputs
    t, x = plan.program.tensors[3:]
    square = Tensor("C", (h.I, h.L), Role.INPUT)
    t2, x2 = replace(t, spaces=(h.I, h.I)), replace(x, spaces=(h.I, h.L))
    program = h.program(
        "transposed",
        (a, replace(b, spaces=(h.K, h.I)), square),
        (
            h.at(t2, h.i, h.i2),
            Contract(h.at(a, h.i, h.k), h.at(replace(b, spaces=(h.K, h.I)), h.k, h.i2)),
            (h.k,),
        ),
        (h.at(x2, h.i2, h.l), Contract(h.at(t2, h.i, h.i2), h.at(square, h.i, h.l)), (h.i,)),
    )
    crossed = replace(
        whole,
        program=program,
        extents=(("i", 5), ("k", 3), ("l", 4)),
        arrays=(
            replace(whole.arrays[0], tensor=t2),
            replace(whole.arrays[1], tensor=x2),
        ),
    )
    refused(crossed, "visits 0 1 loop same axis")
    assert crossed.loops == (loop,)


def test_triangular_loops(hand_plans):
    h = hand_plans
    plan = h.triangular_pair()
    outer, inner = plan.loops
    tiled = replace(outer, tile=2)
    refused(
        swap_loop(swap_loop(plan, outer, tiled), inner, replace(inner, order_after=tiled)),
        "triangular loop 1 tiles",
    )
    other = replace(outer, space=h.P)
    refused(
        swap_loop(swap_loop(plan, outer, other), inner, replace(inner, order_after=other)),
        "space",
    )
    transposed = visit(visit(plan, 0, loops=(inner, outer)), 1, loops=(inner, outer))
    refused(transposed, "loop 1 ordered 0")
    refused(visit(plan, 0, bind=((h.i2, inner),), redundant=(outer,)), "x i")
    whole = array(plan, 0, contracted=(), home=None, place=Place.ARENA)
    refused(whole, "x written triangle contracted chain")


def test_images_of_a_triangle(hand_plans):
    h = hand_plans
    plan = h.triangular_images()
    b, x, r = plan.program.tensors
    message = "r written triangle only image symmetric array"

    def with_steps(*steps):
        changed = replace(plan.program, steps=steps)
        changed.verify()
        return replace(plan, program=changed)

    made, first, second = plan.program.steps
    refused(with_steps(made, first, replace(second, coeff=Fraction(2))), message)
    refused(with_steps(made, first, replace(second, coeff=Fraction(-1))), message)
    refused(with_steps(made, first, replace(first, id=2, accumulate=True)), message)
    w = h.tensor("w", h.P, h.I)
    unequal = replace(made, op=Contract(h.at(b, h.p, h.i), h.at(w, h.p, h.i2)))
    program = replace(plan.program, tensors=(b, w, x, r), steps=(unequal, first, second))
    refused(replace(plan, program=program), message)
    lone = replace(plan.program, steps=(made, first))
    arrays = tuple(replace(a, live=(a.live[0], 1)) for a in plan.arrays)
    groups = (replace(plan.groups[0], visits=(0, 1)),)
    refused(
        replace(plan, program=lone, visits=plan.visits[:2], arrays=arrays, groups=groups), message
    )


def _square_program(h, last: Step) -> FormulaSequence:
    plan = h.triangular_pair()
    steps = (plan.program.steps[0], last)
    inputs = [r.tensor for r in last.operands if r.tensor.role is Role.INPUT]
    tensors = dict.fromkeys((*plan.program.tensors[:1], *inputs, *plan.program.tensors[1:2]))
    program = replace(plan.program, tensors=(*tensors, last.out.tensor), steps=steps)
    program.verify()
    return program


def test_triangle_sums_only_what_is_symmetric(hand_plans):
    h = hand_plans
    plan = h.triangular_pair()
    e, x = plan.program.tensors[2], plan.program.tensors[1]
    u, w = h.tensor("u", h.I), h.tensor("w", h.I, h.I)
    sums = (h.i, h.i2)
    xs = h.at(x, h.i, h.i2)

    def with_last(operation, out=None, sums=sums):
        last = Step(1, out or h.at(e), operation, Fraction(1), False, sums)
        arrays = (plan.arrays[0], replace(plan.arrays[1], tensor=last.out.tensor))
        return replace(plan, program=_square_program(h, last), arrays=arrays)

    message = "visit 1 triangular loops symmetric exchange i x"
    refused(with_last(Contract(xs, h.at(w, h.i, h.i2))), message)
    symmetric = replace(w, symmetry=(Symmetry((1, 0)),))
    with_last(Contract(xs, h.at(symmetric, h.i, h.i2))).verify()
    antisymmetric = replace(w, symmetry=(Symmetry((1, 0), -1),))
    refused(with_last(Contract(xs, h.at(antisymmetric, h.i, h.i2))), message)
    pair = h.at(antisymmetric, h.i, h.i2)
    with_last(Map(Quot(Prod((pair, pair, xs)), Const(Fraction(2))))).verify()
    ui, uj = h.at(u, h.i), h.at(u, h.i2)
    with_last(Map(Quot(xs, Sum((ui, uj))))).verify()
    with_last(Map(Quot(Call("exp", xs), Pow(Sum((uj, ui)), 2)))).verify()
    refused(with_last(Map(Quot(xs, ui))), message)
    row = Tensor("r", (h.I,), Role.OUTPUT)
    refused(
        with_last(Contract(xs, h.at(w, h.i, h.i2)), h.at(row, h.i), (h.i2,)),
        "step sums part chain",
    )


def test_a_chain_does_not_branch(hand_plans):
    h = hand_plans
    plan = h.triangular_pair()
    outer, inner = plan.loops
    b, u = plan.program.tensors[0], h.tensor("u", h.I)
    s = Tensor("s", (), Role.OUTPUT)
    third, j3 = LoopId(2, h.I, None, outer), Index("z", h.I)
    x = plan.program.tensors[1]
    first = plan.program.steps[0]
    triple = (h.at(s), Contract(h.at(x, h.i, h.i2), h.at(u, j3)), (h.i, h.i2, j3))
    loops = (outer, inner, third)
    branching = replace(
        plan,
        program=h.program("branching", (b, u), (first.out, first.op, first.sums), triple),
        loops=loops,
        visits=(
            replace(plan.visits[0], loops=loops, redundant=(third,)),
            Visit(1, (*plan.visits[1].bind, (j3, third)), loops),
        ),
        arrays=(replace(plan.arrays[0], home=third), h.array(plan.extent_of, s, (1, 1))),
    )
    refused(branching, "visit 0 loops ordered same loop")


def test_repeating_inside_the_home_is_refused(hand_plans):
    plan = hand_plans.host_loop()
    extra = LoopId(1, hand_plans.P)
    loops = (*plan.loops, extra)
    repeated = replace(
        visit(plan, 1, loops=loops, redundant=(extra,)),
        loops=loops,
        extents=(*plan.extents, ("p", 2)),
    )
    refused(repeated, "X visit 1 repeats loop home accumulate")


def test_exchange_renames_summed_indices():
    o, v = Space("o"), Space("v")
    i, j, a, b = Index("i", o), Index("j", o), Index("a", v), Index("b", v)
    g = Tensor("g", (o, v, o, v), Role.INPUT, symmetry=(Symmetry((2, 3, 0, 1)),))
    t = Tensor("t", (o, o, v, v), Role.TEMP)
    d = Tensor("d", (o, o, v, v), Role.INPUT, symmetry=(Symmetry((1, 0, 3, 2)),))
    e = Tensor("e", (), Role.OUTPUT)
    amplitudes = Step(0, Ref(t, (i, j, a, b)), Contract(Ref(g, (i, a, j, b)), Ref(d, (i, j, a, b))))
    energy = Step(
        1, Ref(e), Contract(Ref(t, (i, j, a, b)), Ref(g, (i, a, j, b))), sums=(i, j, a, b)
    )
    program = FormulaSequence("mp2", (o, v), (g, d, t, e), (amplitudes, energy))
    swap = {i: j, j: i}
    assert exchange_sign(program, energy, swap) == 1
    assert exchange_sign(program, energy, swap, (i, j, a, b)) is None
    assert exchange_sign(program, amplitudes, swap) is None
    assert exchange_sign(program, amplitudes, {**swap, a: b, b: a}) == 1


def test_kernels(hand_plans):
    plan = hand_plans.host_loop()
    (loop,) = plan.loops
    refused(replace(plan, groups=plan.groups[::-1]), "visit once")
    refused(replace(plan, groups=plan.groups[:1]), "visit once")
    refused(group(plan, 1, name="product_0"), "names identifiers")
    refused(group(plan, 1, name="a b"), "names identifiers")
    refused(group(plan, 1, host_loops=(LoopId(5, loop.space),)), "visits")
    refused(group(plan, 1, host_loops=()), "library kernel product_1")
    refused(group(plan, 1, host_loops=(), kind=GroupKind.MAP), "kernel product_1 step")
    refused(
        group(plan, 1, host_loops=(), kind=GroupKind.NEST),
        "loop 0 several kernels not host product_1",
    )
    merged = (KernelGroup("k", GroupKind.LIBRARY, (0, 1), (loop,)),)
    refused(replace(plan, groups=merged), "library kernel k")
    replace(plan, groups=(KernelGroup("k", GroupKind.NEST, (0, 1), (loop,)),)).verify()


def test_fetches_run_on_the_host(hand_plans):
    plan = hand_plans.generated_tile()
    (loop,) = plan.loops
    inside = (KernelGroup("k", GroupKind.NEST, (0, 1)),)
    refused(replace(plan, groups=inside), "kernel k generated input")
    together = (KernelGroup("k", GroupKind.NEST, (0, 1), (loop,)),)
    refused(replace(plan, groups=together), "kernel")
    refused(array(plan, 0, place=Place.SHARED), "generated tile arena")


def test_places(hand_plans):
    plan = hand_plans.nested_fusion()
    refused(array(plan, 2, place=Place.ARENA), "W outputs caller")
    refused(array(plan, 0, place=Place.CALLER), "f1 outputs")
    row = array(hand_plans.shared_producer(), 0, place=Place.REG)
    refused(row, "T register contracted element")
    tile = array(hand_plans.tile_of_three(), 0, place=Place.REG)
    refused(tile, "T register contracted")
    apart = array(hand_plans.host_loop(), 0, place=Place.SHARED)
    refused(apart, "several kernels")


def _two_phases(h, first: Phase, second: Phase):
    plan = h.host_loop()
    steps = plan.program.steps
    inputs = tuple(replace(t, volatile=False) for t in plan.program.inputs)
    names = {t.name: t for t in inputs}

    def own(step, phase):
        refs = [Ref(names.get(r.tensor.name, r.tensor), r.indices) for r in step.operands]
        return replace(step, op=Contract(*refs), phase=phase)

    program = replace(
        plan.program,
        tensors=(*inputs, *plan.program.tensors[3:]),
        steps=(own(steps[0], first), own(steps[1], second)),
    )
    program.verify()
    return replace(plan, program=program)


def test_phases(hand_plans):
    mixed = _two_phases(hand_plans, Phase.CONSTANT, Phase.VOLATILE)
    refused(mixed, "constant volatile steps loop 0")
    _two_phases(hand_plans, Phase.CONSTANT, Phase.CONSTANT).verify()
    h = hand_plans
    a, x, y = h.tensor("a", h.I), *(Tensor(n, (h.I,), Role.OUTPUT) for n in "xy")
    c = replace(h.tensor("c", h.I), volatile=False)
    program = h.program(
        "late", (a, c), (h.at(x, h.i), Add(h.at(a, h.i)), ()), (h.at(y, h.i), Add(h.at(c, h.i)), ())
    )
    program = replace(
        program, steps=(program.steps[0], replace(program.steps[1], phase=Phase.CONSTANT))
    )
    ext = {"i": 3}
    plan = h.finish(
        program,
        ext,
        (),
        (Visit(0), Visit(1)),
        (h.array(ext, x, (0, 0)), h.array(ext, y, (1, 1))),
        (KernelGroup("m_0", GroupKind.MAP, (0,)), KernelGroup("m_1", GroupKind.MAP, (1,))),
    )
    refused(plan, "constant visit 1 s1 volatile")
    first = replace(
        plan,
        visits=plan.visits[::-1],
        arrays=(h.array(ext, y, (0, 0)), h.array(ext, x, (1, 1))),
    )
    first.verify()
    together = (KernelGroup("n_0", GroupKind.NEST, (0, 1)),)
    refused(replace(first, groups=together), "kernel n_0 constant volatile visits")


def test_an_array_is_not_written_in_both_phases(hand_plans):
    h = hand_plans
    c, a = replace(h.tensor("c", h.I), volatile=False), h.tensor("a", h.I)
    x = Tensor("x", (h.I,), Role.OUTPUT)
    program = h.program(
        "both", (c, a), (h.at(x, h.i), Add(h.at(c, h.i)), ()), (h.at(x, h.i), Add(h.at(a, h.i)), ())
    )
    program = replace(
        program, steps=(replace(program.steps[0], phase=Phase.CONSTANT), program.steps[1])
    )
    ext = {"i": 3}
    groups = (KernelGroup("m_0", GroupKind.MAP, (0,)), KernelGroup("m_1", GroupKind.MAP, (1,)))
    visits, arrays = (Visit(0), Visit(1)), (h.array(ext, x, (0, 1)),)
    plan = h.finish(program, ext, (), visits, arrays, groups)
    refused(plan, "x written constant volatile phase")

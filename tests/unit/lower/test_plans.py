"""Hand-written plans: golden text, and the same values as the program at every odd extent."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest

from support.golden import check_golden
from tcgen.interp import evaluate_program, run_module
from tcgen.ir.expr import Prod
from tcgen.ir.loops import Module
from tcgen.ir.plan import FusionPlan, GroupKind, KernelGroup, LoopId, Visit
from tcgen.ir.program import Add, Contract, FormulaSequence, Map
from tcgen.lower import lower_plan
from tcgen.lower.passes import PASSES
from tcgen.options import Options

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


def inputs(program: FormulaSequence, extents: Mapping[str, int]) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)
    return {t.name: rng.random([extents[s.name] for s in t.spaces]) for t in program.inputs}


def assert_same(module: Module, program: FormulaSequence, extents: Mapping[str, int]) -> None:
    arrays = inputs(program, extents)
    wanted = evaluate_program(program, arrays, extents)
    found = run_module(module, arrays, extents)
    assert list(found) == list(wanted)
    for name, value in wanted.items():
        np.testing.assert_allclose(found[name], value, atol=1e-12, err_msg=f"{name} {extents}")


def test_every_hand_plan_is_tested(hand_plans: ModuleType) -> None:
    assert tuple(make.__name__ for make in hand_plans.LEGAL) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_golden_text(hand_plans: ModuleType, name: str) -> None:
    make: Callable[[], FusionPlan] = getattr(hand_plans, name)
    module = lower_plan(make(), Options())
    module.verify()
    text = module.pretty()
    assert lower_plan(make(), Options()).pretty() == text
    check_golden(f"lower/{name}.txt", text)


@pytest.mark.few(20)
@pytest.mark.parametrize("tile", [None, 2, 3, 4, 5])
@pytest.mark.parametrize("name", NAMES)
def test_values_at_odd_extents(hand_plans: ModuleType, name: str, tile: int | None) -> None:
    plan = hand_plans.retiled(getattr(hand_plans, name)(), tile)
    module = lower_plan(plan, Options())
    module.verify()
    spaces = [s.name for s in plan.program.spaces]
    length = tile or 2
    for extent in (length - 1, length, length + 1, 2 * length + 3, 1, 0):
        assert_same(module, plan.program, dict.fromkeys(spaces, extent))
        for space in spaces:
            assert_same(module, plan.program, {**dict.fromkeys(spaces, 3), space: extent})


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("name", NAMES)
def test_other_dtypes_are_consistent(hand_plans: ModuleType, name: str, dtype: str) -> None:
    plan = getattr(hand_plans, name)()
    module = lower_plan(plan, Options(dtype=dtype))
    module.verify()
    assert {b.dtype for b in module.buffers} == {dtype}


def test_a_changed_plan_changes_the_text_and_not_the_result(hand_plans: ModuleType) -> None:
    plan = hand_plans.shared_producer()
    parted = replace(
        plan,
        loops=(),
        visits=tuple(replace(v, bind=(), loops=()) for v in plan.visits),
        arrays=tuple(replace(a, contracted=(), home=None) for a in plan.arrays),
    )
    parted.verify()
    texts = set()
    for changed in (plan, hand_plans.retiled(plan, 2), hand_plans.retiled(plan, 3), parted):
        module = lower_plan(changed, Options())
        module.verify()
        texts.add(module.pretty())
        assert_same(module, plan.program, plan.extent_of)
    assert len(texts) == 4


def test_generated_input_from_a_callable(hand_plans: ModuleType) -> None:
    plan = hand_plans.generated_tile()
    arrays = inputs(plan.program, plan.extent_of)
    whole, asked = arrays["G"], []

    def generate(out: np.ndarray, ranges: tuple[slice, ...]) -> None:
        asked.append(ranges)
        out[...] = whole[ranges]

    found = run_module(lower_plan(plan, Options()), {**arrays, "G": generate}, plan.extent_of)
    np.testing.assert_allclose(found["X"], whole @ arrays["C"])
    assert [r[0] for r in asked] == [slice(0, 4), slice(4, 8), slice(8, 10)]


def test_host_loop_makes_two_launches_and_one_arena_buffer(hand_plans: ModuleType) -> None:
    module = lower_plan(hand_plans.host_loop(), Options())
    assert [k.name for k in module.kernels] == ["product_0", "product_1"]
    assert module.buffer("T").place == "arena"
    assert module.buffer("T").live == (0, 1)
    assert [v.name for v in module.kernels[0].host_vars] == ["i0"]


def test_recomputed_instances_have_their_own_buffers(hand_plans: ModuleType) -> None:
    module = lower_plan(hand_plans.recomputation(), Options())
    assert [b.name for b in module.buffers if b.place == "private"] == ["T", "T_2"]


def test_orbit_of_a_triple_and_a_private_array(hand_plans: ModuleType) -> None:
    """for i: for j <= i: for k <= j: w[p] = x y z;  e += orbit w w."""
    h = hand_plans
    n, m, q = (h.Index(name, h.I) for name in "nmq")
    x, w = h.tensor("x", h.I, h.P), h.tensor("w", h.I, h.I, h.I, h.P, role=h.Role.TEMP)
    e = h.tensor("e", role=h.Role.OUTPUT)
    factors = tuple(h.at(x, letter, h.p) for letter in (n, m, q))
    whole = h.at(w, n, m, q, h.p)
    program = h.program(
        "triple",
        (x,),
        (whole, Map(Prod(factors)), ()),
        (h.at(e), Contract(whole, whole), (n, m, q, h.p)),
    )
    first = LoopId(0, h.I)
    second = LoopId(1, h.I, None, first)
    third = LoopId(2, h.I, None, second)
    loops = (first, second, third)
    bind = tuple(zip((n, m, q), loops, strict=True))
    extents = {"i": 4, "p": 3}
    plan = h.finish(
        program,
        extents,
        loops,
        (Visit(0, bind, loops), Visit(1, bind, loops)),
        (
            h.array(extents, w, (0, 1), tuple(enumerate(loops)), third),
            h.array(extents, e, (1, 1)),
        ),
        (KernelGroup("nest_0", GroupKind.NEST, (0, 1)),),
    )
    module = lower_plan(plan, Options())
    module.verify()
    assert "orbit(n,m,q)" in module.pretty()
    assert module.buffer("w").place == "private"
    for extent in (4, 1, 0, 7):
        assert_same(module, program, {"i": extent, "p": 3})


@pytest.mark.parametrize("tile", [None, 2])
def test_lives_around_host_loops(hand_plans: ModuleType, tile: int | None) -> None:
    """s and u outlive a host loop in which s is read and u is added to; t lives for one trip.

    s = a a;  host for i: (t = s * b;  u += t * c);  x = u + s
    """
    h = hand_plans
    a, b, c = h.tensor("a", h.J), h.tensor("b", h.I, h.J), h.tensor("c", h.J, h.I)
    s, t = h.tensor("s", h.J, role=h.Role.TEMP), h.tensor("t", h.I, h.J, role=h.Role.TEMP)
    u, x = h.tensor("u", h.J, role=h.Role.TEMP), h.tensor("x", h.J, role=h.Role.OUTPUT)
    program = h.program(
        "lives",
        (a, b, c),
        (h.at(s, h.j), Contract(h.at(a, h.j), h.at(a, h.j)), ()),
        (h.at(t, h.i, h.j), Contract(h.at(s, h.j), h.at(b, h.i, h.j)), ()),
        (h.at(u, h.j), Contract(h.at(t, h.i, h.j), h.at(c, h.j, h.i)), (h.i,)),
        (h.at(x, h.j), Add(h.at(u, h.j)), ()),
        (h.at(x, h.j), Add(h.at(s, h.j)), ()),
    )
    loop = LoopId(0, h.I, tile)
    extents = {"i": 5, "j": 3}
    bind = ((h.i, loop),)
    plan = h.finish(
        program,
        extents,
        (loop,),
        (Visit(0), Visit(1, bind, (loop,)), Visit(2, bind, (loop,)), Visit(3), Visit(4)),
        (
            h.array(extents, s, (0, 4)),
            h.array(extents, t, (1, 2), ((0, loop),), loop),
            h.array(extents, u, (2, 3)),
            h.array(extents, x, (3, 4)),
        ),
        (
            KernelGroup("k0", GroupKind.MAP, (0,)),
            KernelGroup("k1", GroupKind.MAP, (1,), (loop,)),
            KernelGroup("k2", GroupKind.MAP, (2,), (loop,)),
            KernelGroup("k3", GroupKind.NEST, (3, 4)),
        ),
    )
    plan.verify()
    module = lower_plan(plan, Options())
    module.verify()
    # the zero of u is a launch of its own, before the loop
    assert [k.name for k in module.kernels] == ["k0", "k2_start", "k1", "k2", "k3"]
    lives = {name: module.buffer(name).live for name in ("s", "t", "u")}
    assert lives == {"s": (0, 5), "t": (2, 3), "u": (1, 4)}  # k3 has two statements
    assert_same(module, program, extents)
    short = replace(
        module,
        buffers=tuple(replace(b, live=(3, 4)) if b.name == "u" else b for b in module.buffers),
    )
    found = run_module(short, inputs(program, extents), extents)
    assert np.isnan(found["x"]).all(), "the oracle shows a life that is too short"


def test_every_pass_has_a_name_and_a_contract() -> None:
    """The first line of a pass's docstring is a sentence of its own."""
    names = [each.__name__ for each in PASSES]
    assert len(set(names)) == len(names) > 10
    for each in PASSES:
        contract = (each.__doc__ or "").split("\n")[0]
        assert re.fullmatch(r"(\S+ ){5,}\S+\.", contract), each.__name__

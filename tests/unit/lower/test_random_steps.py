"""Random chains of steps and random nests: the module's values equal the program's."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from support.campaigns import cases
from support.flat_programs import (
    LETTERS,
    P,
    b,
    check,
    check_plan_values,
    program_of,
    step,
    unfused,
)
from tcgen.ir.plan import ArrayPlan, FusionPlan, GroupKind, KernelGroup, LoopId, Place
from tcgen.ir.program import Contract, FormulaSequence
from tcgen.ir.tensor import (
    Packing,
    Ref,
    Role,
    Storage,
    Tensor,
    distinct,
)
from tcgen.thresholds import Thresholds, largest, smallest
from tcgen.thresholds.cpu import CpuThresholds

FREE_CALLS = Thresholds(cpu=CpuThresholds(gemm_call=0))
EXTREMES = (smallest(Thresholds()), largest(Thresholds()))


@st.composite
def operands(draw: st.DrawFn, name: str, letters: str) -> Ref:
    """An input with random axes, some of them joined, packed or stored in another order."""
    text = draw(st.text(alphabet=letters, min_size=0, max_size=3))
    indices = tuple(LETTERS[l] for l in text)
    spaces = [P if draw(st.integers(0, 3)) == 0 else x.space for x in indices]
    order = tuple(draw(st.permutations(range(len(spaces)))))
    packed: tuple[Packing, ...] = ()
    for first in range(len(spaces) - 1):
        places = sorted((order.index(first), order.index(first + 1)))
        near = places[1] == places[0] + 1
        if near and not packed and spaces[first] == spaces[first + 1] and draw(st.booleans()):
            packed = (Packing(first, draw(st.booleans())),)
    storage = Storage(order, packed)
    real = draw(st.booleans())
    return Ref(Tensor(name, tuple(spaces), Role.INPUT, storage=storage, real=real), indices)


@st.composite
def chains(draw: st.DrawFn) -> FormulaSequence:
    """t = x y, r (+)= t z: an intermediate of free order between two contractions."""
    x, y = draw(operands("x", "ijak")), draw(operands("y", "ijka"))
    inner = distinct(x.indices + y.indices)
    kept = tuple(draw(st.permutations([n for n in inner if draw(st.booleans())])))
    t = Ref(Tensor("t", tuple(n.space for n in kept), Role.TEMP), kept)
    z = draw(operands("z", "ijab"))
    outer = distinct(kept + z.indices)
    left = tuple(draw(st.permutations([n for n in outer if draw(st.booleans())])))
    if draw(st.integers(0, 4)) == 0 and b not in outer:
        left = (*left, b)  # broadcast
    accumulate = draw(st.booleans())
    spaces = tuple(P if draw(st.integers(0, 4)) == 0 else n.space for n in left)
    storage = Storage(tuple(draw(st.permutations(range(len(left))))))
    r = Ref(Tensor("r", spaces, Role.OUTPUT, storage=storage, accumulate=accumulate), left)
    return program_of(
        step(0, t, Contract(x, y), coeff=Fraction(-1, 2)),
        step(1, r, Contract(t, z), accumulate=accumulate),
    )


@st.composite
def nests(draw: st.DrawFn) -> FusionPlan:
    """A chain whose steps share loops over some indices of t: elements or tiles, host or not."""
    program = draw(chains())
    plan = unfused(program)
    t = program.steps[0].out
    taken = draw(st.permutations(t.indices))[: draw(st.integers(1, 3))]
    loops = tuple(
        LoopId(n, index.space, draw(st.sampled_from([None, 2, 3]))) for n, index in enumerate(taken)
    )
    if not loops:
        return plan
    bind = tuple(zip(taken, loops, strict=True))
    contracted = tuple((t.indices.index(index), loop) for index, loop in bind)
    visits = tuple(replace(v, bind=bind, loops=loops) for v in plan.visits)
    arrays = (
        ArrayPlan(t.tensor, contracted, loops[-1], Place.ARENA, (0, 1)),
        *(array for array in plan.arrays if array.tensor != t.tensor),
    )
    host = loops[: draw(st.integers(0, len(loops)))]
    groups = (KernelGroup("nest_0", GroupKind.NEST, (0, 1), host),)
    if host == loops:
        groups = tuple(KernelGroup(f"part_{n}", GroupKind.NEST, (n,), host) for n in (0, 1))
    fused = replace(plan, loops=loops, visits=visits, arrays=arrays, groups=groups)
    fused.verify()
    return fused


@cases(60, 1500)
@given(nests(), st.sampled_from(["float64", "complex128"]))
def test_random_nests(plan: FusionPlan, dtype: str) -> None:
    check_plan_values(plan, dtype)


@cases(100, 1500)
@given(
    nests(),
    st.sampled_from(["float64", "complex128"]),
    st.sampled_from(["cpu", "cuda"]),
    st.sampled_from(EXTREMES),
)
def test_random_nests_at_the_ends_of_thresholds(
    plan: FusionPlan, dtype: str, target: str, thresholds: Thresholds
) -> None:
    check_plan_values(plan, dtype, target, thresholds)


@cases(60, 1500)
@given(nests(), st.sampled_from(["float64", "complex128"]))
def test_random_nests_with_free_batches(plan: FusionPlan, dtype: str) -> None:
    check_plan_values(plan, dtype, thresholds=FREE_CALLS)


@cases(60, 1500)
@given(chains(), st.sampled_from(["float64", "complex128"]))
def test_random_chains(program: FormulaSequence, dtype: str) -> None:
    check(program, dtype)

"""Predicted time of a plan by the time model: calls, flops and bytes of its steps.

A statement inside tile loops is called once for each combination of tiles, and
:class:`tcgen.thresholds.time_model.Machine` predicts the time of a call. The traffic of thin
products makes them slower than their flops do. An intermediate that stays in the cache, because
little of it is held at a time, has no traffic. A contraction has fewer flops if lowering
computes one of each symmetric pair.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from fractions import Fraction
from functools import cache
from math import comb, prod
from typing import assert_never

from ...ir.halved_products import exchange_of, looped_indices
from ...ir.plan import FusionPlan, LoopId
from ...ir.program import Add, Contract, FormulaSequence, Map, Operation, Phase, Produce, Step
from ...ir.tensor import Index, Ref, Role, Tensor, element_bytes
from ...options import Options
from ...thresholds.time_model import Machine

# Flops that a step saves by symmetry inside loops over some of its indices (``looped_indices``).
Saved = Callable[[Step, frozenset[Index] | None], int]

_CALLER_ROLES = (Role.INPUT, Role.OUTPUT)  # arrays in the layout of the equations


def step_picoseconds(
    step: Step,
    tiles: Mapping[Index, int],
    repeats: int,
    extents: Mapping[str, int],
    machine: Machine,
    dtype: str,
    cached: Collection[Tensor] = (),
    saved: int = 0,
    bound_calls: int = 1,
) -> int:
    """Time of a step in one call of the program.

    ``tiles`` has the elements of a tile for each index that has a tile loop. The whole step is
    computed ``repeats`` times. Intermediates of ``cached`` stay in the cache, and lowering saves
    ``saved`` flops by symmetry. A step of the constant phase runs once in ``bound_calls`` calls.
    """
    whole = {i: i.space.extent_in(extents) for i in step.indices}
    calls = repeats * prod(-(-whole[i] // t) for i, t in tiles.items())
    length = {i: min(n, tiles.get(i, n)) for i, n in whole.items()}
    flops = repeats * step.flops.value(extents) - saved
    slowness = (1, 1)
    match step.op:
        case Contract(a, b):
            slowness = _slowness(step, a, b, length, machine, dtype)
        case Produce():
            flops = repeats * machine.generated * prod(whole.values())
        case Add() | Map():
            pass  # memory traffic decides
        case _:
            assert_never(step.op)
    adds = step.accumulate or any(i in tiles for i in step.sums)
    touched = [
        *step.operands,
        step.out,
        *([step.out] if adds else []),
        *_copied(step, length, whole),
    ]
    held = sum(_bytes(r, length, whole, machine, dtype) for r in touched if r.tensor not in cached)
    time = machine.picoseconds(flops, slowness, calls * held, calls)
    return time // bound_calls if step.phase is Phase.CONSTANT else time


def _slowness(
    step: Step, a: Ref, b: Ref, length: Mapping[Index, int], machine: Machine, dtype: str
) -> tuple[int, int]:
    """Inverse of the efficiency of a matrix product: numerator and denominator."""
    batch, m, n, k = contraction_groups(step, a, b, length)
    real = sum(ref.tensor.real for ref in (a, b))
    return machine.slowness(batch, m, n, k, dtype=dtype, real=real)


def contraction_groups(
    step: Step, a: Ref, b: Ref, length: Mapping[Index, int]
) -> tuple[int, int, int, int]:
    """Points of the batch, of m, n and k of a contraction of a and b."""
    m = prod(n for i, n in length.items() if i in a.indices and i not in b.indices)
    n = prod(n for i, n in length.items() if i in b.indices and i not in a.indices)
    both = [i for i in length if i in a.indices and i in b.indices]
    k = prod(length[i] for i in both if i in step.sums)
    return prod(length[i] for i in both if i not in step.sums), m, n, k


def _copied(step: Step, length: Mapping[Index, int], whole: Mapping[Index, int]) -> list[Ref]:
    """Operands and results that are copied around a matrix product: each twice, read and written.

    Two tiled indices in one of m, n and k have no common stride in an array of the caller; an
    intermediate is stored tile by tile, so that they have one.
    """
    if not isinstance(step.op, Contract):
        return []
    refs = (step.op.a, step.op.b, step.out)
    tiled = [i for i in whole if 1 < length[i] < whole[i]]
    copied = [
        ref
        for ref in refs
        for other in refs
        if ref is not other
        and ref.tensor.role in _CALLER_ROLES
        and sum(
            i in ref.indices and i in other.indices and sum(i in r.indices for r in refs) == 2
            for i in tiled
        )
        > 1
    ]
    return [ref for ref in dict.fromkeys(copied) for _ in range(2)]


def _bytes(
    ref: Ref,
    length: Mapping[Index, int],
    whole: Mapping[Index, int],
    machine: Machine,
    dtype: str,
) -> int:
    """Bytes that pass between memory and caches for one operand of one call.

    Memory passes in whole cache lines: each contiguous run of a tile in an array of the caller
    touches about one line more than it fills. An intermediate is stored tile by tile, as one run.
    """
    item, indices = element_bytes(ref.tensor, dtype), dict.fromkeys(ref.indices)
    count, run = prod(length[i] for i in indices), 1
    if ref.tensor.role not in _CALLER_ROLES:
        return item * count
    for index in reversed(ref.indices):
        run *= length[index]
        if length[index] < whole[index]:
            return item * count + max(0, machine.line - item) * count // min(count, run)
    return item * count


def visited_fraction(
    loops: Collection[LoopId], tiles: Mapping[LoopId, int], extents: Mapping[str, int]
) -> Fraction:
    """The fraction of all combinations of tiles that is visited; triangular loops skip some."""
    fraction = Fraction(1)
    followed = {o.order_after for o in loops}
    for end in loops:
        if end.order_after is not None and end not in followed:
            trips, depth = -(-end.space.extent_in(extents) // tiles[end]), len(end.chain)
            fraction *= Fraction(comb(trips + depth - 1, depth), trips**depth)
    return fraction


def nothing_saved(step: Step, looped: frozenset[Index] | None) -> int:  # noqa: ARG001
    """No flops, as where lowering is not to use symmetry."""
    return 0


def saved_flops(program: FormulaSequence, extents: Mapping[str, int], options: Options) -> Saved:
    """Flops that lowering to a CPU saves by exchanges of indices in contractions of a program.

    A step that a plan has rewritten saves nothing.
    """
    steps = {(s.out, s.op): s for s in program.steps if options.target == "cpu"}

    @cache
    def saved(out: Ref, op: Operation, looped: frozenset[Index]) -> int:
        step, thresholds = steps[out, op], options.thresholds.cpu
        found = exchange_of(program, step, extents, thresholds, looped=looped)
        return 0 if found is None else found.saved

    def of(step: Step, looped: frozenset[Index] | None) -> int:
        known = looped is not None and (step.out, step.op) in steps
        return saved(step.out, step.op, looped or frozenset()) if known else 0

    return of


def plan_picoseconds(
    plan: FusionPlan, machine: Machine, dtype: str, saved: Saved, bound_calls: int = 1
) -> int:
    """Predicted time of a call of a plan at its planning extents, in picoseconds."""
    every = range(len(plan.visits))
    return sum(visit_picoseconds(plan, n, machine, dtype, saved, bound_calls) for n in every)


def visit_picoseconds(
    plan: FusionPlan,
    position: int,
    machine: Machine,
    dtype: str,
    saved: Saved,
    bound_calls: int = 1,
) -> int:
    """Predicted time of one visit of a plan in a call, in all iterations of its loops."""
    extents, visit = plan.extent_of, plan.visits[position]
    tiles = {index: loop.tile or 1 for index, loop in visit.bind}
    repeats = prod(
        -(-loop.space.extent_in(extents) // (loop.tile or 1)) for loop in visit.redundant
    )
    step = plan.program.steps[visit.step]
    cached = [
        a.tensor
        for a in plan.arrays
        if a.live[0] <= position <= a.live[1] and stays_in_cache(a.tensor, a.bytes, machine)
    ]
    fraction = visited_fraction(visit.loops, {o: o.tile or 1 for o in visit.loops}, extents)
    less = saved(step, looped_indices(plan, position))
    time = step_picoseconds(
        step, tiles, repeats, extents, machine, dtype, cached, less, bound_calls
    )
    return int(fraction * time)


def least_picoseconds(
    steps: Collection[Step],
    extents: Mapping[str, int],
    machine: Machine,
    dtype: str,
    saved: Saved,
    bound_calls: int = 1,
) -> int:
    """A lower bound on the picoseconds of plans without triangular loops.

    Each step counts once, with its intermediates in the cache: tiles add calls and make products
    thinner, repeats add flops, and the arrays of the caller pass memory at least once. Without a
    cache this is the time of the unfused program.
    """
    cached = [r.tensor for s in steps for r in (s.out, *s.operands)] if machine.cache else []
    cached = [t for t in cached if t.role not in _CALLER_ROLES]

    def time(step: Step) -> int:
        less = saved(step, frozenset())
        return step_picoseconds(step, {}, 1, extents, machine, dtype, cached, less, bound_calls)

    return sum(map(time, steps))


def stays_in_cache(tensor: Tensor, held: int, machine: Machine) -> bool:
    """True if ``held`` bytes of an intermediate or generated input stay in the cache."""
    return tensor.role not in _CALLER_ROLES and machine.caches(held)

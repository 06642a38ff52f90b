"""Predicted time of a plan: calls, work and traffic, in whole picoseconds.

A statement inside tile loops is called once for each combination of tiles. A call takes

    work / (flops of the machine * efficiency) + bytes of its operands and result / bandwidth + call

where the efficiency of a matrix product of m rows, n columns and k summed elements is
m/(m+2) * n/(n+2) * k/(k+4): the edges of the register tile and the start of the inner loop. That
thin products are slow besides follows from their bytes. An intermediate of which so little is held
at a time that it stays in the cache has none.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fractions import Fraction
from math import comb, prod
from typing import assert_never

from ...hardware import CACHE_LINE_BYTES
from ...ir.cost import extent_of
from ...ir.plan import FusionPlan, LoopId
from ...ir.program import Add, Contract, Map, Produce, Step
from ...ir.tensor import Index, Ref, Role, Tensor, element_bytes
from ...options import Machine

PICO = 10**12
_FIXED = (Role.INPUT, Role.OUTPUT)  # whose arrays lie as the equations say
_ROWS, _DEPTH = 2, 4  # of a product: at this length half of the machine's flops are reached


def step_picoseconds(
    step: Step,
    tiles: Mapping[Index, int],
    repeats: int,
    extents: Mapping[str, int],
    machine: Machine,
    dtype: str,
    near: Collection[Tensor] = (),
) -> int:
    """Time of all calls of a step.

    Args:
        step: what is computed.
        tiles: elements of a tile for each index that a tile loop walks.
        repeats: how often all of it is computed.
        extents: of the base spaces.
        machine: constants.
        dtype: of the program.
        near: intermediates that stay in the cache.
    """
    whole = {i: extent_of(i.space, extents) for i in step.indices}
    calls = repeats * prod(-(-whole[i] // t) for i, t in tiles.items())
    length = {i: min(n, tiles.get(i, n)) for i, n in whole.items()}
    flops = repeats * step.flops.value(extents)
    slow, fast = 1, 1
    match step.op:
        case Contract(a, b):
            slow, fast = _efficiency(step, a, b, length)
        case Produce():
            flops = repeats * machine.generated * prod(whole.values())
        case Add() | Map():
            pass  # their bytes decide
        case _:
            assert_never(step.op)
    adds = step.accumulate or any(i in tiles for i in step.sums)
    touched = [
        *step.operands,
        step.out,
        *([step.out] if adds else []),
        *_copied(step, length, whole),
    ]
    held = sum(_bytes(r, length, whole, dtype) for r in touched if r.tensor not in near)
    return (
        flops * slow * PICO // (fast * machine.flops)
        + calls * held * PICO // machine.bandwidth
        + calls * machine.call * 1000
    )


def _efficiency(step: Step, a: Ref, b: Ref, length: Mapping[Index, int]) -> tuple[int, int]:
    """Inverse of the efficiency of a product, as a quotient of whole numbers."""
    m = prod(n for i, n in length.items() if i in a.indices and i not in b.indices)
    n = prod(n for i, n in length.items() if i in b.indices and i not in a.indices)
    k = prod(length[i] for i in step.sums if i in a.indices and i in b.indices)
    return (m + _ROWS) * (n + _ROWS) * (k + _DEPTH), m * n * k


def _copied(step: Step, length: Mapping[Index, int], whole: Mapping[Index, int]) -> list[Ref]:
    """What is copied before or after a product, twice: once read and once written.

    Rows, columns or summed indices of which two walk tiles do not lie in memory with one stride,
    other than those of an intermediate, which lies as its tiles do.
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
        and ref.tensor.role in _FIXED
        and sum(
            i in ref.indices and i in other.indices and sum(i in r.indices for r in refs) == 2
            for i in tiled
        )
        > 1
    ]
    return [ref for ref in dict.fromkeys(copied) for _ in range(2)]


def _bytes(ref: Ref, length: Mapping[Index, int], whole: Mapping[Index, int], dtype: str) -> int:
    """Bytes that pass between memory and caches for one operand of one call.

    The caller's arrays lie as they are, and memory passes in whole lines: each stretch of
    a tile touches a part of a line more than it holds. An intermediate lies as its tiles do.
    """
    item, walked = element_bytes(ref.tensor, dtype), dict.fromkeys(ref.indices)
    count, stretch = prod(length[i] for i in walked), 1
    if ref.tensor.role not in _FIXED:
        return item * count
    for index in reversed(ref.indices):
        stretch *= length[index]
        if length[index] < whole[index]:
            return item * count + (CACHE_LINE_BYTES - item) * count // min(count, stretch)
    return item * count


def triangle_share(
    loops: Collection[LoopId], tiles: Mapping[LoopId, int], extents: Mapping[str, int]
) -> Fraction:
    """The part of all combinations of tiles that is visited: triangular loops leave some out."""
    share = Fraction(1)
    followed = {o.order_after for o in loops}
    for end in loops:
        if end.order_after is not None and end not in followed:
            trips, depth = -(-extent_of(end.space, extents) // tiles[end]), len(end.chain)
            share *= Fraction(comb(trips + depth - 1, depth), trips**depth)
    return share


def plan_picoseconds(plan: FusionPlan, machine: Machine, dtype: str) -> int:
    """Predicted time of a plan under its planning extents."""
    extents, total = plan.extent_of, 0
    for position, visit in enumerate(plan.visits):
        tiles = {index: loop.tile or 1 for index, loop in visit.bind}
        repeats = prod(
            -(-extent_of(loop.space, extents) // (loop.tile or 1)) for loop in visit.redundant
        )
        step = plan.program.steps[visit.step]
        near = [
            a.tensor
            for a in plan.arrays
            if a.live[0] <= position <= a.live[1] and stays_near(a.tensor, a.bytes, machine)
        ]
        share = triangle_share(visit.loops, {o: o.tile or 1 for o in visit.loops}, extents)
        time = step_picoseconds(step, tiles, repeats, extents, machine, dtype, near)
        total += int(share * time)
    return total


def least_picoseconds(
    steps: Collection[Step], extents: Mapping[str, int], machine: Machine, dtype: str
) -> int:
    """Time that no plan without triangular loops beats: each step once, intermediates in the cache.

    Tiles add calls and make products thinner, and repeats add work. What the caller holds passes
    memory at least once. Without a cache this is the time of the unfused program.
    """
    near = [r.tensor for s in steps for r in (s.out, *s.operands)] if machine.cache else []
    near = [t for t in near if t.role not in _FIXED]
    return sum(step_picoseconds(s, {}, 1, extents, machine, dtype, near) for s in steps)


def stays_near(tensor: Tensor, held: int, machine: Machine) -> bool:
    """True for an intermediate, or a generated input, whose held bytes stay in the cache.

    Half of the cache is left to what streams through it meanwhile.
    """
    return tensor.role not in _FIXED and 2 * held <= machine.cache

"""Exact memory of plans in elements and bytes: sizes, lifetimes, sums, peaks, offsets in an arena.

In the arena, arrays are rectangles in time and address that must not overlap.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import gcd, prod

from ...ir.cost import saving
from ...ir.plan import ArrayPlan, FusionPlan, Place
from ...ir.program import FormulaSequence
from ...ir.tensor import Role, Tensor, element_bytes
from ...records.arena import Block, Layout, most_live_bytes, place
from ...records.loops import stored_shape
from ..solver.cp_sat import solve


def whole_elements(tensor: Tensor, extents: Mapping[str, int]) -> int:
    """Elements of a tensor without contracted axes."""
    return prod(space.extent_in(extents) for space in tensor.spaces)


def array_elements(array: ArrayPlan, extents: Mapping[str, int]) -> int:
    """Elements of an instance: a contracted axis counts 1, or its tile (Allam et al., Eq. (6))."""
    total = 1
    for axis, space in enumerate(array.tensor.spaces):
        extent, loop = space.extent_in(extents), array.loop_of(axis)
        total *= extent if loop is None else min(extent, loop.tile or 1)
    return total


def array_bytes(array: ArrayPlan, extents: Mapping[str, int], dtype: str) -> int:
    """Bytes of an instance in a program of ``dtype``."""
    return array_elements(array, extents) * element_bytes(array.tensor, dtype)


def static_elements(plan: FusionPlan) -> int:
    """Sum of the elements that a plan holds, without outputs (unless they are packed).

    Figure 1 of Allam et al. with ranges 10, 10, 12, 10 takes 23 elements.
    """
    return sum(array_elements(a, plan.extent_of) for a in plan.arrays if a.tensor.is_held)


def live_range(array: ArrayPlan, plan: FusionPlan) -> tuple[int, int]:
    """First and last visit during which an instance is live, inclusive.

    The body of its home loop consists of visits and inner loops. The instance is live from the
    start of the one with its first use to the end of the one with its last use.
    """
    loops = plan.visits[array.live[0]].loops
    depth = 0 if array.home is None else loops.index(array.home) + 1

    def same_item(one: int, other: int) -> bool:
        inner = plan.visits[one].loops[: depth + 1]
        return len(inner) > depth and plan.visits[other].loops[: depth + 1] == inner

    first, last = array.live
    while first > 0 and same_item(first, first - 1):
        first -= 1
    while last + 1 < len(plan.visits) and same_item(last, last + 1):
        last += 1
    return first, last


def live_ranges(plan: FusionPlan) -> tuple[tuple[ArrayPlan, tuple[int, int]], ...]:
    """The instances that a plan holds, each with its first and last visit.

    An array that the constant phase leaves to the volatile one is live throughout.
    """
    ranges = []
    for array in plan.arrays:
        if array.tensor.is_held:
            always = is_persistent(array.tensor, plan.program)
            ranges.append((array, (0, len(plan.visits) - 1) if always else live_range(array, plan)))
    return tuple(ranges)


def is_persistent(tensor: Tensor, program: FormulaSequence) -> bool:
    """Whether the constant phase makes an array that the volatile phase reads."""
    steps = (*program.producers(tensor), *program.consumers(tensor))
    made = tensor.role in (Role.TEMP, Role.OUTPUT)
    return made and len({s.phase for s in steps}) > 1


def peak_of(plan: FusionPlan, amounts: Mapping[ArrayPlan, int]) -> int:
    """Greatest sum of the amounts of instances that are live during one visit."""
    ranges = live_ranges(plan)
    return max(
        (
            sum(amounts[a] for a, (first, last) in ranges if first <= n <= last)
            for n in range(len(plan.visits))
        ),
        default=0,
    )


def largest_together(plan: FusionPlan) -> tuple[ArrayPlan, ...]:
    """The arrays that are live at the peak, and the results; the largest first."""
    ranges = live_ranges(plan)

    def alive(visit: int) -> list[ArrayPlan]:
        return [a for a, (first, last) in ranges if first <= visit <= last]

    bodies = map(alive, range(len(plan.visits)))
    held = max(bodies, key=lambda arrays: sum(a.bytes for a in arrays), default=[])
    results = [a for a in plan.arrays if not a.tensor.is_held]
    return tuple(sorted((*held, *results), key=lambda a: -a.bytes))


def once_elements(plan: FusionPlan) -> dict[ArrayPlan, int]:
    """Elements of each instance if every generated input is produced once.

    A generated input that shares no loop is fetched in tiles, several times where it must be; here
    it counts in full, as in the paper.
    """
    return {
        a: whole_elements(a.tensor, plan.extent_of)
        if _is_fetched_apart(a, plan)
        else array_elements(a, plan.extent_of)
        for a in plan.arrays
    }


def saved_elements(plan: FusionPlan, in_tiles: FusionPlan | None = None) -> int:
    """Elements that a plan saves by Eq. (10), the sum over its contracted axes.

    A generated input that shares no loop with its reader counts in full, although it is fetched in
    tiles. ``in_tiles`` is the same plan with the tiles that count.
    """
    arrays = zip(plan.arrays, (in_tiles or plan).arrays, strict=True)
    return sum(
        saving(held.tensor, axis, plan.extent_of, loop.tile or 1)
        for array, held in arrays
        if not _is_fetched_apart(array, plan)
        for axis, loop in held.contracted
    )


def _is_fetched_apart(array: ArrayPlan, plan: FusionPlan) -> bool:
    """Whether a generated input is fetched in tiles, or several times."""
    return bool(plan.visits[array.live[0]].redundant) or any(o.tile for _, o in array.contracted)


def output_bytes(program: FormulaSequence, extents: Mapping[str, int], dtype: str) -> int:
    """Bytes of the results in the caller's layout."""
    return sum(prod(stored_shape(t, extents)) * element_bytes(t, dtype) for t in program.outputs)


def plan_peak(plan: FusionPlan) -> int:
    """Most bytes of intermediates and generated inputs that are live at one time."""
    return peak_of(plan, {a: a.bytes for a, _ in live_ranges(plan)})


def pack(blocks: tuple[Block, ...], seconds: float) -> Layout:
    """Places in an arena of least size.

    First fit nearly always reaches the most live bytes, the least possible size; if not, CP-SAT
    places the rectangles.

    Example:
        >>> pack((Block("a", 64, 0, 1), Block("b", 128, 1, 2), Block("c", 64, 2, 3)), 1.0)
        Layout(offsets=(('a', 128), ('b', 0), ('c', 128)), total=192, alignment=1)
    """
    best = place(blocks, alignment=1)
    peak = most_live_bytes(blocks, [b.bytes for b in blocks])
    return best if best.total == peak else _search(blocks, peak, best, seconds)


def _search(blocks: tuple[Block, ...], peak: int, best: Layout, seconds: float) -> Layout:
    from ortools.sat.python import cp_model  # noqa: PLC0415  (planning only)

    unit = gcd(*(b.bytes for b in blocks))
    if best.total // unit >= 2**58:
        return best
    model = cp_model.CpModel()
    top = model.new_int_var(peak // unit, best.total // unit, "top")
    starts, times, places = [], [], []
    for n, block in enumerate(blocks):
        start = model.new_int_var(0, (best.total - block.bytes) // unit, f"offset{n}")
        model.add_hint(start, best.offsets[n][1] // unit)
        model.add(start + block.bytes // unit <= top)
        starts.append(start)
        span = block.last - block.first + 1
        times.append(model.new_fixed_size_interval_var(block.first, span, f"life{n}"))
        places.append(model.new_fixed_size_interval_var(start, block.bytes // unit, f"place{n}"))
    model.add_no_overlap_2d(times, places)
    model.add_cumulative(times, [b.bytes // unit for b in blocks], top)
    model.minimize(top)
    answer = solve(model, seconds)
    if not answer.found:
        return best
    offsets = [answer.solver.value(s) * unit for s in starts]
    total = max(o + b.bytes for o, b in zip(offsets, blocks, strict=True))
    return Layout(tuple((b.name, o) for o, b in zip(offsets, blocks, strict=True)), total, 1)


def packed(plan: FusionPlan, seconds: float) -> FusionPlan:
    """The plan with an offset for every array of the arena."""
    ranges = [(a, span) for a, span in live_ranges(plan) if a.place is not Place.REG]
    blocks = (Block(a.tensor.name, a.bytes, *span) for a, span in ranges)
    layout = pack(tuple(blocks), seconds)
    offsets: dict[ArrayPlan, int] = {
        a: offset for (a, _), (_, offset) in zip(ranges, layout.offsets, strict=True)
    }
    arrays = tuple(replace(a, offset=offsets.get(a)) for a in plan.arrays)
    return replace(plan, arrays=arrays, arena=layout.total)

"""Exact memory of plans in elements and bytes: sizes, lifetimes, sums, peaks, offsets in an arena.

In the arena, arrays are rectangles in time and address that must not overlap.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import gcd, prod

from ...ir.cost import extent_of, saving
from ...ir.plan import ArrayPlan, FusionPlan, Place
from ...ir.program import FormulaSequence
from ...ir.tensor import Role, Tensor, element_bytes
from ..solver.cp_sat import solve


def whole_elements(tensor: Tensor, extents: Mapping[str, int]) -> int:
    """Elements of a tensor without contracted axes."""
    return prod(extent_of(space, extents) for space in tensor.spaces)


def stored_elements(tensor: Tensor, extents: Mapping[str, int]) -> int:
    """Elements of a tensor in the caller's array, in which a packed pair is a triangle."""
    packed = {axis for group in tensor.storage.packed for axis in group.axes}
    single = (s for axis, s in enumerate(tensor.spaces) if axis not in packed)
    return prod(extent_of(space, extents) for space in single) * prod(
        group.values(extent_of(tensor.spaces[group.first], extents))
        for group in tensor.storage.packed
    )


def array_elements(array: ArrayPlan, extents: Mapping[str, int]) -> int:
    """Elements of an instance: a contracted axis counts 1, or its tile (Allam et al., Eq. (6))."""
    total = 1
    for axis, space in enumerate(array.tensor.spaces):
        extent, loop = extent_of(space, extents), array.loop_of(axis)
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
    return sum(stored_elements(t, extents) * element_bytes(t, dtype) for t in program.outputs)


def plan_peak(plan: FusionPlan) -> int:
    """Most bytes of intermediates and generated inputs that are live at one time."""
    return peak_of(plan, {a: a.bytes for a, _ in live_ranges(plan)})


@dataclass(frozen=True, slots=True)
class Interval:
    """An array of ``bytes`` that is live from visit ``first`` to ``last``, inclusive."""

    bytes: int
    first: int
    last: int

    def meets(self, other: Interval) -> bool:
        """True where both are live at one time."""
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True, slots=True)
class Packing:
    """Offset of each array, in the order given, and size of the arena, in bytes."""

    offsets: tuple[int, ...]
    total: int


def pack(arrays: tuple[Interval, ...], seconds: float) -> Packing:
    """Offsets in an arena of least size.

    First fit in one of three orders nearly always reaches the peak, the least possible size; if
    not, CP-SAT places the rectangles.

    Example:
        >>> pack((Interval(64, 0, 1), Interval(128, 1, 2), Interval(64, 2, 3)), 1.0)
        Packing(offsets=(128, 0, 128), total=192)
    """
    peak = max(
        (sum(a.bytes for a in arrays if a.first <= n <= a.last) for n in {a.first for a in arrays}),
        default=0,
    )
    orders = (
        sorted(range(len(arrays)), key=lambda n: (-arrays[n].bytes, n)),
        sorted(range(len(arrays)), key=lambda n: (arrays[n].first, -arrays[n].bytes, n)),
        sorted(range(len(arrays)), key=lambda n: (arrays[n].first - arrays[n].last, n)),
    )
    best = min((_first_fit(arrays, order) for order in orders), key=lambda p: p.total)
    return best if best.total == peak else _search(arrays, peak, best, seconds)


def _first_fit(arrays: tuple[Interval, ...], order: list[int]) -> Packing:
    offsets = [0] * len(arrays)
    placed: list[int] = []
    for n in order:
        start = 0
        met = [m for m in placed if arrays[m].meets(arrays[n])]
        for m in sorted(met, key=lambda m: offsets[m]):
            if start + arrays[n].bytes <= offsets[m]:
                break
            start = max(start, offsets[m] + arrays[m].bytes)
        offsets[n] = start
        placed.append(n)
    ends = (o + a.bytes for o, a in zip(offsets, arrays, strict=True))
    return Packing(tuple(offsets), max(ends, default=0))


def _search(arrays: tuple[Interval, ...], peak: int, best: Packing, seconds: float) -> Packing:
    from ortools.sat.python import cp_model  # noqa: PLC0415  (planning only)

    unit = gcd(*(a.bytes for a in arrays))
    if best.total // unit >= 2**58:
        return best
    model = cp_model.CpModel()
    top = model.new_int_var(peak // unit, best.total // unit, "top")
    starts, times, places = [], [], []
    for n, array in enumerate(arrays):
        start = model.new_int_var(0, (best.total - array.bytes) // unit, f"offset{n}")
        model.add_hint(start, best.offsets[n] // unit)
        model.add(start + array.bytes // unit <= top)
        starts.append(start)
        span = array.last - array.first + 1
        times.append(model.new_fixed_size_interval_var(array.first, span, f"life{n}"))
        places.append(model.new_fixed_size_interval_var(start, array.bytes // unit, f"place{n}"))
    model.add_no_overlap_2d(times, places)
    model.add_cumulative(times, [a.bytes // unit for a in arrays], top)
    model.minimize(top)
    answer = solve(model, seconds)
    if not answer.found:
        return best
    offsets = tuple(answer.solver.value(s) * unit for s in starts)
    return Packing(offsets, max(o + a.bytes for o, a in zip(offsets, arrays, strict=True)))


def packed(plan: FusionPlan, seconds: float) -> FusionPlan:
    """The plan with an offset for every array of the arena."""
    ranges = [(a, span) for a, span in live_ranges(plan) if a.place is not Place.REG]
    layout = pack(tuple(Interval(a.bytes, *span) for a, span in ranges), seconds)
    offsets: dict[ArrayPlan, int] = {
        a: offset for (a, _), offset in zip(ranges, layout.offsets, strict=True)
    }
    arrays = tuple(replace(a, offset=offsets.get(a)) for a in plan.arrays)
    return replace(plan, arrays=arrays, arena=layout.total)

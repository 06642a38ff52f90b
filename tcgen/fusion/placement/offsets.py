"""Offsets in one arena: live arrays as rectangles in time and address that do not overlap."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import gcd

from ...ir.plan import ArrayPlan, FusionPlan, Place
from ..solver.cp_sat import interruptible_solve, search_solver
from .memory import counted_lives


@dataclass(frozen=True, slots=True)
class Interval:
    """An array of ``bytes`` that lives from visit ``first`` to ``last``, inclusive."""

    bytes: int
    first: int
    last: int

    def meets(self, other: Interval) -> bool:
        """True where both live at one time."""
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True, slots=True)
class Packing:
    """Offset of each array in the order given, and the extent of the arena, in bytes."""

    offsets: tuple[int, ...]
    total: int


def pack(arrays: tuple[Interval, ...], seconds: float) -> Packing:
    """Offsets in an arena of least extent.

    First fit in several orders nearly always reaches the peak, which no arena can beat; where it
    does not, CP-SAT places the rectangles.

    Args:
        arrays: in any order.
        seconds: deterministic, of CP-SAT.

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
    solver = search_solver(seconds)
    if interruptible_solve(solver, model) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return best
    offsets = tuple(solver.value(s) * unit for s in starts)
    return Packing(offsets, max(o + a.bytes for o, a in zip(offsets, arrays, strict=True)))


def packed(plan: FusionPlan, seconds: float) -> FusionPlan:
    """The plan with an offset for every array of the arena.

    Args:
        plan: without offsets.
        seconds: deterministic, of the search for offsets.
    """
    lives = [(a, life) for a, life in counted_lives(plan) if a.place is not Place.REG]
    layout = pack(tuple(Interval(a.bytes, *life) for a, life in lives), seconds)
    offsets: dict[ArrayPlan, int] = {
        a: offset for (a, _), offset in zip(lives, layout.offsets, strict=True)
    }
    arrays = tuple(replace(a, offset=offsets.get(a)) for a in plan.arrays)
    return replace(plan, arrays=arrays, arena=layout.total)

"""The tile of each loop of a plan, for the least predicted time with a peak within the limit.

The loops, their nesting and the order of the statements are given, so that time and peak are exact
functions of the tiles. A local search changes the tiles of one or two loops at a time as long as
that saves time; or tiles shrink as long as that costs little time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import combinations, product
from math import prod

from ...ir.halved_products import looped_indices
from ...ir.plan import ArrayPlan, FusionPlan, LoopId, Place
from ...ir.tensor import Index, Role, Tensor, element_bytes
from ..placement.memory import array_bytes, live_ranges
from ..solver.time_cost import stays_in_cache, step_picoseconds, visited_fraction
from ..solver.time_model import Request

Tiles = tuple[int, ...]  # elements of a tile, by loop; one for all triangular loops of a chain


class _Exact:
    """Time and peak of one arrangement as functions of the tiles.

    Loops of ``elements`` stay loops over elements; their statements do not count. ``fetched`` is
    the most bytes of a tile of a generated input, which is never held whole; None: it may be.
    """

    def __init__(
        self,
        plan: FusionPlan,
        request: Request,
        elements: Collection[LoopId] = (),
        fetched: int | None = None,
    ) -> None:
        self.plan, self.request = plan, request
        self.elements, self.fetched = elements, fetched
        self.extent = {o: o.space.extent_in(request.extents) for o in plan.loops}
        self.outermost = [o for o in plan.loops if o.order_after is None]
        self.place = {o: self.outermost.index(o.chain[0]) for o in plan.loops}
        ranges = live_ranges(plan)
        self.arrays = []
        for array, _ in ranges:
            held = [
                space.extent_in(request.extents)
                for axis, space in enumerate(array.tensor.spaces)
                if array.loop_of(axis) is None
            ]
            fixed = element_bytes(array.tensor, request.dtype) * prod(held)
            self.arrays.append((fixed, tuple(self.place[loop] for _, loop in array.contracted)))
        live_together = dict.fromkeys(
            tuple(a for a, (_, (first, last)) in enumerate(ranges) if first <= n <= last)
            for n in range(len(plan.visits))
        )
        self.live_together = [
            t for t in live_together if not any(set(t) < set(other) for other in live_together)
        ]
        self.cacheable = [
            [
                (array.tensor, *held)
                for (array, _), held in zip(ranges, self.arrays, strict=True)
                if array.live[0] <= n <= array.live[1]
            ]
            for n in range(len(plan.visits))
        ]
        self.generated = [
            held
            for (array, _), held in zip(ranges, self.arrays, strict=True)
            if array.tensor.role is Role.GENERATED and array.contracted
        ]
        self.counted = [
            n for n, v in enumerate(plan.visits) if not any(o in self.elements for o in v.loops)
        ]
        self.looped = [looped_indices(plan, n) for n in range(len(plan.visits))]
        self.times: dict[tuple[int, Tiles], int] = {}

    def lists(self) -> list[list[int]]:
        """The tiles that are tried for each loop, in order."""
        trips = self.request.thresholds.time.refined_trips
        return [
            [1]
            if o in self.elements
            else sorted({-(-self.extent[o] // n) for n in trips if n <= self.extent[o]} | {1})
            for o in self.outermost
        ]

    def held(self, tiles: Tiles) -> tuple[int, int]:
        """Most bytes that are live at one time, and those of all arrays."""
        held = [fixed * prod(tiles[o] for o in loops) for fixed, loops in self.arrays]
        peak = max((sum(held[a] for a in t) for t in self.live_together), default=0)
        return peak, sum(held)

    def peak(self, tiles: Tiles) -> int:
        """Most bytes that are live at one time."""
        return self.held(tiles)[0]

    def fits(self, tiles: Tiles) -> bool:
        """True where the peak is within the limit, and tiles of generated inputs are small."""
        return self.peak(tiles) <= self.request.limit and self.fetches(tiles)

    def fetches(self, tiles: Tiles) -> bool:
        """True where the tiles of generated inputs are small enough."""
        whole = tuple(self.extent[o] for o in self.outermost)
        return self.fetched is None or all(
            prod(tiles[o] for o in loops) == 1
            or (
                fixed * prod(tiles[o] for o in loops) <= self.fetched
                and any(tiles[o] < whole[o] for o in loops)
            )
            for fixed, loops in self.generated
        )

    def time(self, tiles: Tiles) -> int:
        """Picoseconds of all visits."""
        return sum(self._visit(n, tiles) for n in self.counted)

    def by_loop(self, tiles: Tiles) -> dict[LoopId, int]:
        """The tile of each loop."""
        return {o: tiles[self.place[o]] for o in self.plan.loops}

    def _visit(self, position: int, tiles: Tiles) -> int:
        visit = self.plan.visits[position]
        given = {o: tiles[self.place[o]] for o in visit.loops}
        key = (position, tuple(given.values()))
        if key not in self.times:
            own: Mapping[Index, int] = {index: given[o] for index, o in visit.bind}
            repeats = prod(-(-self.extent[o] // given[o]) for o in visit.redundant)
            request, step = self.request, self.plan.program.steps[visit.step]
            time = step_picoseconds(
                step,
                own,
                repeats,
                request.extents,
                request.machine,
                request.dtype,
                self._cached(position, tiles),
                request.saved(step, self.looped[position]),
                request.bound_calls,
            )
            self.times[key] = int(visited_fraction(visit.loops, given, request.extents) * time)
        return self.times[key]

    def _cached(self, position: int, tiles: Tiles) -> list[Tensor]:
        """Arrays of a visit that stay in the cache with these tiles."""
        return [
            tensor
            for tensor, fixed, loops in self.cacheable[position]
            if stays_in_cache(tensor, fixed * prod(tiles[o] for o in loops), self.request.machine)
        ]


def refined(plan: FusionPlan, request: Request) -> dict[LoopId, int] | None:
    """The best tile of each loop of a plan; None where no tiles that were tried fit.

    A tile that covers its space means that the loop is not needed.
    """
    exact = _Exact(plan, request)
    start = tuple(min(o.tile or 1, exact.extent[o]) for o in exact.outermost)
    tiles = _shrunk(exact, exact.lists(), start)
    if tiles is None:
        return None
    best = _improved(exact, tiles)
    return exact.by_loop(_fewer_launches(exact, best) if request.machine.multiprocessors else best)


def fastest(
    plan: FusionPlan, request: Request, elements: Collection[LoopId], fetched: int
) -> dict[LoopId, int]:
    """Tiles of least time, and single elements where no tiles fit; arguments as in ``_Exact``."""
    exact = _Exact(plan, request, elements, fetched)
    lists = exact.lists()
    tiles = _shrunk(exact, lists, tuple(tiles[-1] for tiles in lists))
    return exact.by_loop((1,) * len(lists) if tiles is None else _improved(exact, tiles))


def smallest(
    plan: FusionPlan,
    request: Request,
    elements: Collection[LoopId],
    fetched: int,
    *,
    peak: bool,
) -> dict[LoopId, int]:
    """Tiles of least memory that cost little more time than whole steps, unless the limit needs it.

    The arguments are those of ``_Exact``.
    """
    exact = _Exact(plan, request, elements, fetched)
    lists = exact.lists()
    tiles = tuple(tiles[-1] for tiles in lists)
    most = exact.time(tiles) * (1 + request.thresholds.time.worthwhile)

    def memory(tiles: Tiles) -> tuple[int, int]:
        at_once, in_all = exact.held(tiles)
        return (at_once, in_all) if peak else (in_all, at_once)

    while True:
        fits, smaller = exact.fits(tiles), []
        for n, tile in enumerate(tiles):
            less = [t for t in lists[n] if t < tile]
            trial = (*tiles[:n], *less[-1:], *tiles[n + 1 :])
            if less and (not fits or (memory(trial) < memory(tiles) and exact.time(trial) <= most)):
                smaller.append((memory(trial), exact.time(trial), trial))
        if not smaller:
            return exact.by_loop(tiles)
        *_, tiles = min(smaller)


def _improved(exact: _Exact, tiles: Tiles) -> Tiles:
    """Tiles that no legal change of one or two loops improves."""
    lists, thresholds = exact.lists(), exact.request.thresholds.time
    best, reach = exact.time(tiles), thresholds.refined_neighbours

    def near(n: int, now: int, changed: int) -> list[int]:
        """Tiles to try for a loop: all, or neighbours of the present one where two loops change."""
        if changed == 1:
            return lists[n]
        place = min(range(len(lists[n])), key=lambda p: abs(lists[n][p] - now))
        return lists[n][max(0, place - reach) : place + reach + 1]

    moves: list[tuple[int, ...]] = [(n,) for n in range(len(tiles))]
    paired = len(tiles) <= thresholds.paired_loops
    moves += list(combinations(range(len(tiles)), 2)) if paired else []
    changed = True
    while changed:
        changed = False
        for move in moves:
            for chosen in product(*(near(n, tiles[n], len(move)) for n in move)):
                trial = list(tiles)
                for n, tile in zip(move, chosen, strict=True):
                    trial[n] = tile
                if tuple(trial) == tiles or not exact.fits(tuple(trial)):
                    continue
                time = exact.time(tuple(trial))
                if time < best:
                    tiles, best, changed = tuple(trial), time, True
    return tiles


def _fewer_launches(exact: _Exact, tiles: Tiles) -> Tiles:
    """The largest tiles whose predicted time is the same within the error of the prediction."""
    most = exact.time(tiles) * (1 + exact.request.thresholds.time.worthwhile)
    for n, larger in enumerate(exact.lists()):
        for tile in reversed(larger):
            trial = (*tiles[:n], tile, *tiles[n + 1 :])
            if tile > tiles[n] and exact.fits(trial) and exact.time(trial) <= most:
                tiles = trial
                break
    return tiles


def _shrunk(exact: _Exact, lists: list[list[int]], tiles: Tiles) -> Tiles | None:
    """Smaller tiles that fit, by steps that each save most; None where none fit."""
    while not exact.fits(tiles):
        smaller = []
        for n, tile in enumerate(tiles):
            less = [t for t in lists[n] if t < tile]
            if less:
                trial = (*tiles[:n], less[-1], *tiles[n + 1 :])
                smaller.append((exact.peak(trial), exact.time(trial), trial))
        if not smaller:
            return None
        least, _, best = min(smaller)
        # Several arrays attain the peak: shrink all tiles.
        if least >= exact.peak(tiles):
            best = tuple(
                max((t for t in lists[n] if t < tile), default=1) for n, tile in enumerate(tiles)
            )
        tiles = best
    return tiles


def with_tiles(plan: FusionPlan, tiles: Mapping[LoopId, int], dtype: str) -> FusionPlan:
    """The plan with other tiles in the same loops; a loop of one trip is removed."""
    needed = [o for o, t in tiles.items() if t < o.space.extent_in(plan.extent_of)]
    new: dict[LoopId, LoopId] = {}
    for n, o in enumerate(needed):
        after = new[o.order_after] if o.order_after else None
        new[o] = replace(o, id=n, tile=None if tiles[o] == 1 else tiles[o], order_after=after)

    def loops(old: tuple[LoopId, ...]) -> tuple[LoopId, ...]:
        return tuple(new[o] for o in old if o in new)

    def resized(array: ArrayPlan) -> ArrayPlan:
        around = plan.visits[array.live[0]].loops
        inside = loops(around[: around.index(array.home) + 1]) if array.home else ()
        contracted = tuple((axis, new[o]) for axis, o in array.contracted if o in new)
        home = inside[-1] if inside else None
        changed = replace(array, contracted=contracted, home=home, offset=None)
        return replace(changed, bytes=array_bytes(changed, plan.extent_of, dtype))

    visits = tuple(
        replace(
            v,
            bind=tuple((i, new[o]) for i, o in v.bind if o in new),
            loops=loops(v.loops),
            redundant=loops(v.redundant),
        )
        for v in plan.visits
    )
    arrays = tuple(map(resized, plan.arrays))
    return replace(
        plan,
        loops=tuple(new.values()),
        visits=visits,
        arrays=arrays,
        groups=tuple(replace(g, host_loops=loops(g.host_loops)) for g in plan.groups),
        arena=sum(a.bytes for a in arrays if a.place is Place.ARENA),
    )

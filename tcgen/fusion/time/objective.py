"""Objective ``time``: the plan of least predicted time whose peak keeps the memory limit.

Where all of it fits, steps stay whole, unless shared loops are faster. Else loops are shared. Sums
over all arrangements of some indices are made over orbits of tiles (:mod:`.orbits`), which leaves
out equal work. For all others the solver proposes which loops are shared, for one tile of each
space at a time, and for large programs a descent in the peak; then the tile of each loop is refined
on exact counts of time and peak. Where that does not suffice, statements are repeated in loops of
their readers, and intermediates that are read in different ways are computed anew for each reader.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product

from ...ir.cost import extent_of
from ...ir.plan import FusionPlan, LoopId, Solve
from ...ir.program import Produce, Program
from ...ir.tensor import Role, Tensor, element_bytes
from ...options import Options
from ...thresholds.fusion import FusionThresholds
from ..memory.descent import Descent
from ..placement.memory import (
    output_bytes,
    plan_peak,
    whole_elements,
)
from ..placement.nest import Placed, arrangement_of, place_arrangement, place_nodes
from ..placement.offsets import packed
from ..placement.plan import build_launches, in_nests, shared_axes
from ..sharing.candidates import Arrangement, Sharing, sharing
from ..sharing.graph import FusionGraph, fusion_graph
from ..solver.loop_constraints import rules
from ..solver.time_cost import PICO, least_picoseconds, plan_picoseconds
from ..solver.time_model import Request, least_bytes, solve_least, solve_time, weights_of
from .recompute import sharing_with_repeats
from .refine_tiles import refined, with_tiles
from .triangular_nests import orbit_nests


def least_time(
    graph: FusionGraph, unfused: FusionPlan, extents: tuple[tuple[str, int], ...], options: Options
) -> FusionPlan:
    """The plan of least predicted time within ``options.memory_limit``.

    Where no plan that is found fits, the one of least peak is returned.

    Args:
        graph: fusion graph of the program.
        unfused: the plan that shares no loop.
        extents: planning extents.
        options: ``memory_limit``, ``machine``, ``dtype``, ``effort`` and
            ``thresholds`` are read.

    Raises:
        PlanError: the solver refuses the model.
    """
    sizes, dtype, machine = dict(extents), options.dtype, options.machine
    steps = [graph.program.steps[n.step] for n in graph.nodes]
    bound = least_picoseconds(steps, sizes, machine, dtype)
    limit = plan_peak(unfused)
    if options.memory_limit is not None:
        limit = options.memory_limit - output_bytes(graph.program, sizes, dtype)
    thresholds = options.thresholds.planner.fusion
    request = Request(sizes, limit, machine, dtype, thresholds)
    search, seconds = _Search(graph.program, extents, request), thresholds.time.seconds
    search.offer(unfused)
    whole = plan_picoseconds(unfused, machine, dtype)
    search.run(seconds * options.effort, bound, whole)
    best = search.best or search.least(seconds * options.effort)
    model = "dag" if graph.restricted else "tree"
    return _finished(best, bound, model, options)


def _finished(plan: FusionPlan, bound: int, model: str, options: Options) -> FusionPlan:
    """A plan as it is lowered: on a CPU a nest is one kernel, whose threads may share its tiles."""
    grouped = plan if options.target == "cuda" else in_nests(plan)
    seconds = options.thresholds.planner.fusion.offset_seconds
    return replace(packed(grouped, seconds), solve=_solve(plan, bound, model, options))


def _solve(plan: FusionPlan, bound: int, model: str, options: Options) -> Solve:
    """What is said of a plan whose time is at least ``bound`` picoseconds."""
    value = plan_picoseconds(plan, options.machine, options.dtype)
    if any(o.order_after for o in plan.loops):  # steps by themselves take no triangles: no bound
        return Solve("time", model, "FEASIBLE", Fraction(value, PICO), None, "seconds")
    status = "OPTIMAL" if value <= bound else "FEASIBLE"
    exact = Fraction(value, PICO), Fraction(min(value, bound), PICO)
    return Solve("time", model, status, *exact, "seconds")


def smaller_tiles(plan: FusionPlan, options: Options) -> FusionPlan | None:
    """The loops of a ``time`` plan with tiles for a smaller limit; None where none fit.

    Much quicker than a new plan: for when copies, known only later, need a part of the limit.
    """
    assert options.memory_limit is not None
    extents, dtype = plan.extent_of, options.dtype
    limit = options.memory_limit - output_bytes(plan.program, extents, dtype)
    thresholds = options.thresholds.planner.fusion
    tiles = refined(plan, Request(extents, limit, options.machine, dtype, thresholds))
    if tiles is None or not plan.loops:
        return None
    bound = int((plan.solve.bound or 0) * PICO)
    return _finished(with_tiles(plan, tiles, dtype), bound, plan.solve.model, options)


def planned_bytes(plan: FusionPlan, dtype: str) -> int:
    """What a call of a plan holds at one time beside its inputs, but for copies of products."""
    return plan_peak(plan) + output_bytes(plan.program, plan.extent_of, dtype)


def proven_bytes(program: Program, options: Options) -> int:
    """What a call holds at least, however loops are shared and steps repeated or made anew.

    What one step touches, each array contracted as far as it may be by itself, and the results.
    """
    extents = dict(options.extents)
    thresholds = options.thresholds.planner.fusion
    request = Request(extents, 0, options.machine, options.dtype, thresholds)
    ways = {(), recomputed(program, program.intermediates)}
    graphs = [fusion_graph(program, again) for again in sorted(ways, key=len)]
    held = min(least_bytes(sharing_with_repeats(g), {}, request) for g in graphs)
    return held + output_bytes(program, extents, options.dtype)


def recomputed(program: Program, arrays: Collection[Tensor]) -> tuple[Tensor, ...]:
    """Those to make for each of their readers: several readers, and none is made from another."""
    found: list[Tensor] = []
    made_from: set[Tensor] = set()
    for tensor in arrays:
        makers, readers = program.producers(tensor), program.consumers(tensor)
        read = {r.tensor for s in makers for r in s.operands}
        if (
            tensor.role is Role.TEMP
            and len(readers) > 1
            and len({s.phase for s in (*makers, *readers)}) == 1
            and tensor not in made_from
            and not any(t.role is Role.GENERATED or t in found for t in read)
        ):
            found.append(tensor)
            made_from |= read
    return tuple(found)


@dataclass(slots=True)
class _Search:
    """Plans tried so far for one program and limit."""

    program: Program
    extents: tuple[tuple[str, int], ...]
    request: Request
    best: FusionPlan | None = None
    _value: tuple[int, int] = (0, 0)
    _seen: set[Arrangement] = field(default_factory=set)

    @property
    def _limits(self) -> FusionThresholds:
        return self.request.thresholds

    def offer(self, plan: FusionPlan) -> None:
        """Keep a plan if it fits and is faster, or as fast and smaller, than what there is."""
        peak = plan_peak(plan)
        time = plan_picoseconds(plan, self.request.machine, self.request.dtype)
        if peak <= self.request.limit and (self.best is None or (time, peak) < self._value):
            self.best, self._value = plan, (time, peak)

    def run(self, work: float, bound: int, whole: int) -> None:
        """Try the ways of making a plan fit, cheapest first, until one does.

        Where the unfused plan fits, see whether shared loops are faster.

        Args:
            work: deterministic seconds of each search.
            bound: no plan takes less time.
            whole: the time of steps that share no loop, whether they fit or not.
        """
        generated = any(isinstance(s.op, Produce) for s in self.program.steps)
        if self.best is not None and not generated:
            self._for_speed(work, bound)
            return
        self._orbits(self._hot())
        for again, repeat in self._ways():
            graph = fusion_graph(self.program, again)
            if self.best is not None and (again or not self._few(graph)):
                return
            found = sharing_with_repeats(graph, self._hot(), repeat=repeat)
            if repeat > bool(found.repeats) or least_bytes(found, {}, self.request) > (
                self.request.limit
            ):
                continue
            large, few = rules(found) > self._limits.solver_constraints, self._few(graph)
            if not repeat and (large or not few):
                self._descend(found)
            if not large and (few or not self._near(whole)):
                self._tiles(found, work, last=bool(again))

    def _for_speed(self, work: float, bound: int) -> None:
        """Share loops of what fits unfused, in the cache or over orbits, where much is saved.

        What differs between plans by less than the model knows is not worth tiles.
        """
        unfused, value = self.best, self._value
        time, large = value[0], self._beyond_cache()
        self._orbits(large)
        if self._worthwhile(time - bound, time):
            found = sharing_with_repeats(fusion_graph(self.program), large, repeat=False)
            if rules(found) <= self._limits.time.speed_constraints:
                self._tiles(found, work, last=True, every=True)
        if not self._worthwhile(time - self._value[0], time):
            self.best, self._value = unfused, value

    def _near(self, whole: int) -> bool:
        """Whether the best so far takes little longer than whole steps do."""
        time = self._value[0]
        return self.best is not None and not self._worthwhile(time - whole, time)

    def _worthwhile(self, saved: int, time: int) -> bool:
        """Whether a saving is a good part of the time."""
        return saved > self._limits.time.worthwhile * time

    def _few(self, graph: FusionGraph) -> bool:
        """Whether every strategy is tried."""
        return len(graph.nodes) <= self._limits.time.few_statements

    def _orbits(self, hot: tuple[Tensor, ...]) -> None:
        """Offer nests over orbits in which ``hot`` arrays shrink, with the best tile of each."""
        for nest in orbit_nests(self.program, hot, self._limits.time.chain_indices):
            plan = nest.plan(1, self.extents, self.request.dtype)
            tiles = refined(plan, self.request)
            if tiles is not None:
                self.offer(with_tiles(plan, tiles, self.request.dtype))

    def _ways(self) -> list[tuple[tuple[Tensor, ...], bool]]:
        again = self._again()
        ways: list[tuple[tuple[Tensor, ...], bool]] = [((), False), ((), True)]
        return [*ways, *([(again, False), (again, True)] if again else [])]

    def _hot(self) -> tuple[Tensor, ...]:
        """Arrays that take a good part of the limit."""
        return tuple(
            t for t in self.program.tensors if t.role is not Role.INPUT and self._is_hot(t)
        )

    def _beyond_cache(self) -> tuple[Tensor, ...]:
        """Intermediates that pass memory while they are whole, on caches twice as large too."""
        request = self.request
        return tuple(
            t
            for t in self.program.intermediates
            if whole_elements(t, request.extents) * element_bytes(t, request.dtype)
            > 2 * request.machine.cache
        )

    def _is_hot(self, tensor: Tensor) -> bool:
        request, part = self.request, self._limits.time.large_arrays
        size = whole_elements(tensor, request.extents) * element_bytes(tensor, request.dtype)
        return size > part * request.limit

    def _again(self) -> tuple[Tensor, ...]:
        """Large intermediates to compute anew for each reader."""
        return recomputed(self.program, self._hot())

    def _tiles(self, found: Sharing, work: float, *, last: bool, every: bool = False) -> None:
        """Arrangements for tiles of each space, large tiles first.

        Until tiles that fit are found, or of every choice of tiles alike.
        """
        hint = arrangement_of(place_nodes(found.graph, ()))
        choices = self._choices(found, alike=every)
        fitting: list[tuple[int, ...]] = []
        names = [name for name, _ in choices[0]] if choices else []
        refused: list[tuple[int, ...]] = []
        left, enough = work, 2
        few = self._few(found.graph)
        if not few:
            enough = 1
        if not few and not last:  # is there any plan of this kind?
            single = solve_time(found, {}, self.request, hint, work / 8)
            if single.arrangement is None and single.proven:
                return
            if single.arrangement is not None:
                self._take(found, single.arrangement, dict.fromkeys(names, 1))
        for number, choice in enumerate(choices):
            tile = tuple(t for _, t in choice)
            if not every and (
                sum(_covers(f, tile) for f in fitting) >= enough
                or any(_covers(tile, r) for r in refused)
            ):
                continue
            share = max(self._limits.time.seconds_per_tile, left / (len(choices) - number))
            timed = solve_time(
                found, dict(zip(names, tile, strict=True)), self.request, hint, share
            )
            left -= timed.spent
            if timed.arrangement is None:
                if timed.proven:
                    refused.append(tile)
                continue
            fitting.append(tile)
            if timed.arrangement not in self._seen:
                self._seen.add(timed.arrangement)
                self._take(found, timed.arrangement, dict(choice))

    def _descend(self, found: Sharing) -> None:
        """Offer plans of a large program: less and less peak, then tiles as large as fit."""
        for arrangement in self._descent(found):
            if arrangement not in self._seen:
                self._seen.add(arrangement)
                loops = _loops(place_arrangement(found, arrangement))
                self._take(found, arrangement, {o.space.name: 1 for o in loops})

    def _descent(self, found: Sharing) -> Iterator[Arrangement]:
        request = self.request
        limits = self._limits
        descent = Descent(found, weights_of(found, request), request.extents, limits.descent)
        nested = descent.of(Arrangement((), ()))
        for part in limits.time.limit_parts:
            if nested is not None:
                nested = descent.improve(nested, limits.time.trials, request.limit // part)
                yield nested.arrangement

    def _choices(self, found: Sharing, *, alike: bool) -> list[tuple[tuple[str, int], ...]]:
        """Tiles of every space that has shared loops: all combinations, or all alike."""
        spaces = sorted({w[1].space for g in found.walks for w in g}, key=lambda s: s.name)
        lists, given = [], self._limits.time.solved_trips
        for space in spaces:
            extent = extent_of(space, self.request.extents)
            tiles = {-(-extent // trips) for trips in given if trips <= extent} | {1}
            lists.append([(space.name, t) for t in sorted(tiles, reverse=True)])
        small = self._few(found.graph) and len(lists) <= 2 and not alike
        if small:
            combined = list(product(*lists))
        else:
            longest = max(map(len, lists), default=0)
            combined = [tuple(x[min(n, len(x) - 1)] for x in lists) for n in range(longest)]
        return sorted(set(combined), key=lambda c: [-t for _, t in c])

    def _take(self, found: Sharing, arrangement: Arrangement, tiles: Mapping[str, int]) -> None:
        """Offer the plan of an arrangement, with the tile of each loop refined."""
        placed = place_arrangement(found, arrangement)
        sizes = self.request.extents
        tiled = tiled_loops(placed, {o: tiles[o.space.name] for o in _loops(placed)}, sizes)
        plan = self._plan(found, tiled)
        self.offer(plan)
        best = refined(plan, self.request)
        if best is not None:
            self.offer(self._plan(found, tiled_loops(tiled, best, sizes)))

    def _plan(self, found: Sharing, placed: tuple[Placed, ...]) -> FusionPlan:
        """The plan of placed statements: steps are launched inside host loops."""
        axes = shared_axes(found, placed)
        return build_launches(found.graph, placed, axes, self.extents, self.request.dtype, Solve())

    def least(self, work: float) -> FusionPlan:
        """The plan of least peak, tiles of one element; ``best`` of a search without a limit.

        The limit makes no difference, so that a limit of what this plan takes can be kept.
        """
        arrays, dtype = self.program.intermediates, self.request.dtype
        plans: list[FusionPlan] = []
        again = recomputed(self.program, arrays)
        for made in ((), again) if again else ((),):
            graph = fusion_graph(self.program, made)
            found = sharing_with_repeats(graph)
            unfused = arrangement_of(place_nodes(graph, ()))
            arrangements: list[Arrangement | None] = [unfused]
            if rules(found) <= self._limits.solver_constraints:
                best = solve_least(found, {}, self.request, unfused, work / 2)
                arrangements.append(best.arrangement)
            else:
                arrangements += [self._smallest(allowed) for allowed in (found, sharing(graph))]
            for arrangement in filter(None, arrangements):
                placed = place_arrangement(found, arrangement)
                tiled = tiled_loops(placed, dict.fromkeys(_loops(placed), 1), self.request.extents)
                plans.append(self._plan(found, tiled))
        nests = orbit_nests(self.program, arrays, self._limits.time.chain_indices)
        plans += [n.plan(1, self.extents, dtype) for n in nests]
        return min(plans, key=lambda p: plan_peak(p))

    def _smallest(self, found: Sharing) -> Arrangement | None:
        """Where a descent in the peak ends that nothing stops."""
        limits = self._limits
        descent = Descent(
            found, weights_of(found, self.request), self.request.extents, limits.descent
        )
        nested = descent.of(Arrangement((), ()))
        if nested is None:
            return None
        bound = least_bytes(found, {}, self.request)
        return descent.improve(nested, 2 * limits.time.trials, bound).arrangement


def tiled_loops(
    placed: tuple[Placed, ...], tiles: Mapping[LoopId, int], extents: Mapping[str, int]
) -> tuple[Placed, ...]:
    """Placed statements with loops over tiles, numbered anew; loops of one trip are left out."""
    kept = [o for o in _loops(placed) if tiles[o] < extent_of(o.space, extents)]
    new = {o: LoopId(n, o.space, None if tiles[o] == 1 else tiles[o]) for n, o in enumerate(kept)}
    return tuple(
        Placed(p.node, tuple((index, new[o]) for index, o in p.bind if o in new)) for p in placed
    )


def _loops(placed: tuple[Placed, ...]) -> list[LoopId]:
    return list(dict.fromkeys(o for p in placed for _, o in p.bind))


def _covers(large: tuple[int, ...], small: tuple[int, ...]) -> bool:
    return large != small and all(a >= b for a, b in zip(large, small, strict=True))

"""Objective ``time``: the plan of least predicted time whose peak is within the memory limit.

If the unfused program fits, loops are only shared where that is much faster. If it does not fit,
loops must be shared. Symmetric sums are computed in triangular nests (:mod:`.triangular_nests`),
without their redundant flops. Otherwise the solver proposes shared loops, for one choice of tiles
at a time; for large programs, a descent in the peak proposes them. The tile of each loop is then
refined on exact time and peak. If nothing fits, statements are repeated in loops of their readers,
and after that intermediates are recomputed for each of their readers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product

from ...ir.plan import FusionPlan, LoopId, Solve
from ...ir.program import FormulaSequence, Produce
from ...ir.tensor import Index, Role, Tensor, element_bytes
from ...options import Options
from ...thresholds.planner import FusionThresholds
from ...thresholds.time_model import PICOSECONDS_PER_SECOND
from ..memory.descent import Descent
from ..placement.memory import output_bytes, packed, plan_peak, whole_elements
from ..placement.nest import Placed, arrangement_of, place_arrangement, place_nodes
from ..placement.plan import build_launches, in_nests, shared_axes
from ..sharing.candidates import Arrangement, FusionCandidates, build_candidates, fusion_candidates
from ..sharing.dependences import (
    IndexPairs,
    Instance,
    LoopUse,
    bare_instances,
    find_dependences,
    index_pairs_of,
)
from ..sharing.graph import FusionGraph, fusion_graph, step_of
from ..solver.loop_constraints import constraint_count
from ..solver.time_cost import (
    least_picoseconds,
    nothing_saved,
    plan_picoseconds,
    saved_flops,
)
from ..solver.time_model import Request, TimeModel, least_peak_bytes, solve_time, weights_of
from .refine_tiles import refined, with_tiles
from .triangular_nests import orbit_nests


def least_time(
    graph: FusionGraph, unfused: FusionPlan, extents: tuple[tuple[str, int], ...], options: Options
) -> FusionPlan:
    """The plan of least predicted time within ``options.memory_limit``.

    If the search reaches no plan that fits, the result is the one of least peak. Of the options,
    ``machine``, ``dtype``, ``target``, ``effort``, ``sliced`` and ``thresholds`` are read as well.
    """
    sizes, dtype, machine = dict(extents), options.dtype, options.constants
    steps = [graph.program.steps[n.step] for n in graph.nodes]
    limit = plan_peak(unfused)
    if options.memory_limit is not None:
        limit = options.memory_limit - output_bytes(graph.program, sizes, dtype)
    request = _request(graph.program, sizes, limit, options)
    bound = least_picoseconds(steps, sizes, machine, dtype, request.saved, options.calls)
    sliced = frozenset(options.sliced)
    # Within a limit the fastest plan is taken, so that a larger one never needs more time.
    gain = Fraction(0) if options.memory_limit else request.thresholds.time.worthwhile
    search = _Search(graph.program, extents, request, sliced, gain)
    seconds = search.limits.time.seconds * options.effort
    search.offer(unfused)
    search.run(
        seconds, bound, plan_picoseconds(unfused, machine, dtype, nothing_saved, options.calls)
    )
    best = search.best or search.least(seconds)
    model = "dag" if graph.restricted else "tree"
    return _finished(best, bound, model, request, options)


def _request(
    program: FormulaSequence, extents: Mapping[str, int], limit: int, options: Options
) -> Request:
    thresholds = options.thresholds.planner.fusion
    saved = saved_flops(program, extents, options)
    machine, dtype, calls = options.constants, options.dtype, options.calls
    return Request(extents, limit, machine, dtype, thresholds, saved, calls)


def _finished(
    plan: FusionPlan, bound: int, model: str, request: Request, options: Options
) -> FusionPlan:
    """A plan for lowering; on a CPU each nest is one kernel, whose threads divide its tiles."""
    grouped = plan if options.target == "cuda" else in_nests(plan)
    seconds = options.thresholds.planner.fusion.offset_seconds
    return replace(packed(grouped, seconds), solve=_solve(plan, bound, model, request))


def _solve(plan: FusionPlan, bound: int, model: str, request: Request) -> Solve:
    """Value and bound of a plan, for a bound in picoseconds on plans without triangular loops."""
    value = _picoseconds(plan, request)
    time = Fraction(value, PICOSECONDS_PER_SECOND)
    if any(o.order_after for o in plan.loops):
        return Solve("time", model, "FEASIBLE", time, None, "seconds")
    status = "OPTIMAL" if value <= bound else "FEASIBLE"
    least = Fraction(min(value, bound), PICOSECONDS_PER_SECOND)
    return Solve("time", model, status, time, least, "seconds")


def _picoseconds(plan: FusionPlan, request: Request) -> int:
    machine, dtype, calls = request.machine, request.dtype, request.bound_calls
    return plan_picoseconds(plan, machine, dtype, request.saved, calls)


def smaller_tiles(plan: FusionPlan, options: Options) -> FusionPlan | None:
    """A ``time`` plan with tiles for a smaller memory limit; None where none fit.

    This is much quicker than a new plan. It makes room for operand copies, unknown before lowering.
    """
    assert options.memory_limit is not None
    extents, dtype = plan.extent_of, options.dtype
    limit = options.memory_limit - output_bytes(plan.program, extents, dtype)
    request = _request(plan.program, extents, limit, options)
    tiles = refined(plan, request)
    if tiles is None or not plan.loops:
        return None
    bound = int((plan.solve.bound or 0) * PICOSECONDS_PER_SECOND)
    return _finished(with_tiles(plan, tiles, dtype), bound, plan.solve.model, request, options)


def planned_bytes(plan: FusionPlan, dtype: str) -> int:
    """Most bytes that a call of a plan holds at one time, without inputs and operand copies."""
    return plan_peak(plan) + output_bytes(plan.program, plan.extent_of, dtype)


def proven_bytes(program: FormulaSequence, options: Options) -> int:
    """A lower bound on the bytes of any plan of these steps, repeats and recomputation included.

    It is the smallest ``least_peak`` of these choices, and the results. Triangular nests may
    rewrite the steps.
    """
    extents = dict(options.extents)
    request = _request(program, extents, 0, options)
    strategies = {(), recomputable(program, program.intermediates)}
    graphs = [fusion_graph(program, recompute) for recompute in sorted(strategies, key=len)]
    held = min(least_peak_bytes(candidates_with_repeats(g), {}, request) for g in graphs)
    return held + output_bytes(program, extents, options.dtype)


def recomputable(program: FormulaSequence, arrays: Collection[Tensor]) -> tuple[Tensor, ...]:
    """Arrays with several readers that can be recomputed for each; none is made from another."""
    chosen: list[Tensor] = []
    made_from: set[Tensor] = set()
    for tensor in arrays:
        makers, readers = program.producers(tensor), program.consumers(tensor)
        read = {r.tensor for s in makers for r in s.operands}
        if (
            tensor.role is Role.TEMP
            and len(readers) > 1
            and len({s.phase for s in (*makers, *readers)}) == 1
            and tensor not in made_from
            and not any(t.role is Role.GENERATED or t in chosen for t in read)
        ):
            chosen.append(tensor)
            made_from |= read
    return tuple(chosen)


@dataclass(slots=True)
class _Search:
    """The search for one program and memory limit, with its best plan so far."""

    program: FormulaSequence
    extents: tuple[tuple[str, int], ...]
    request: Request
    # Inputs on disk are never held whole.
    sliced: frozenset[str] = frozenset()
    # Part of the time of a plan without loops that loops must save if that plan fits.
    gain: Fraction = Fraction(0)
    best: FusionPlan | None = None
    _value: tuple[int, int] = (0, 0)
    _seen: set[Arrangement] = field(default_factory=set)

    @property
    def limits(self) -> FusionThresholds:
        """Thresholds of the searches."""
        return self.request.thresholds

    def offer(self, plan: FusionPlan) -> None:
        """Take a plan as the best if it fits and is faster, or as fast with a smaller peak."""
        peak = plan_peak(plan)
        request = self.request
        time = _picoseconds(plan, request)
        if peak <= self.request.limit and (self.best is None or (time, peak) < self._value):
            self.best, self._value = plan, (time, peak)

    def run(self, seconds: float, bound: int, unfused: int) -> None:
        """Try one strategy after the other until a plan fits.

        If the unfused plan fits, loops are only shared for speed. Each search has ``seconds``
        deterministic seconds. ``bound`` is a lower bound on the time, ``unfused`` the time of the
        unfused plan, whether it fits or not, if symmetry saved nothing, as in loops that are not
        triangular. Both are in picoseconds.
        """
        generated = any(isinstance(s.op, Produce) for s in self.program.steps)
        if self.best is not None and not generated:
            self._for_speed(seconds, bound)
            return
        self._triangles(self._large_arrays())
        for recompute, repeat in self._strategies():
            graph = fusion_graph(self.program, recompute)
            if self.best is not None and (recompute or not self._few(graph)):
                return
            candidates = candidates_with_repeats(graph, self._large_arrays(), repeat=repeat)
            least = least_peak_bytes(candidates, {}, self.request)
            if least > self.request.limit or (repeat and not candidates.repeats):
                continue
            large = constraint_count(candidates) > self.limits.solver_constraints
            few = self._few(graph)
            if not repeat and (large or not few):
                self._descend(candidates)
            if not large and (few or not self._close_to(unfused)):
                self._tiles(candidates, seconds, last=bool(recompute))

    def _for_speed(self, seconds: float, bound: int) -> None:
        """Share loops although the unfused plan fits, where that saves much time.

        Tiles in the cache or triangular nests may be faster. Without a limit, savings within the
        error of the prediction do not justify tiles.
        """
        unfused, value = self.best, self._value
        time, large = value[0], self._beyond_cache()
        self._triangles(large)
        graph = fusion_graph(self.program)
        # No shipped spec of more statements gains by other loops than those of triangular nests.
        if self._few(graph) and time - bound > self.gain * time:
            candidates = candidates_with_repeats(graph, large, repeat=False)
            self._tiles(candidates, seconds, last=True, every=True)
        if time - self._value[0] <= self.gain * time:
            self.best, self._value = unfused, value

    def _close_to(self, unfused: int) -> bool:
        """Whether the best plan so far takes little longer than the unfused one."""
        time = self._value[0]
        return self.best is not None and time - unfused <= self.limits.time.worthwhile * time

    def _few(self, graph: FusionGraph) -> bool:
        """Whether the program is so small that every strategy is tried."""
        return len(graph.nodes) <= self.limits.time.few_statements

    def _triangles(self, large: tuple[Tensor, ...]) -> None:
        """Offer triangular nests in which large arrays are contracted, with the best tiles."""
        for nest in orbit_nests(self.program, large, self.limits.time.chain_indices):
            plan = nest.plan(1, self.extents, self.request.dtype)
            tiles = refined(plan, self.request)
            if tiles is not None:
                self.offer(with_tiles(plan, tiles, self.request.dtype))

    def _strategies(self) -> list[tuple[tuple[Tensor, ...], bool]]:
        """Arrays to recompute, and whether statements are repeated; cheapest first."""
        recompute = recomputable(self.program, self._large_arrays())
        strategies: list[tuple[tuple[Tensor, ...], bool]] = [((), False), ((), True)]
        return [*strategies, *([(recompute, False), (recompute, True)] if recompute else [])]

    def _large_arrays(self) -> tuple[Tensor, ...]:
        """Arrays that take a large part of the limit."""
        most = self.limits.time.large_arrays * self.request.limit
        arrays = (t for t in self.program.tensors if t.role is not Role.INPUT)
        return tuple(t for t in arrays if self._bytes(t) > most)

    def _beyond_cache(self) -> tuple[Tensor, ...]:
        """Intermediates that pass memory if unfused, even with a cache of twice the size."""
        most = 2 * self.request.machine.cache
        return tuple(t for t in self.program.intermediates if self._bytes(t) > most)

    def _bytes(self, tensor: Tensor) -> int:
        extents, dtype = self.request.extents, self.request.dtype
        return whole_elements(tensor, extents) * element_bytes(tensor, dtype)

    def _tiles(
        self, candidates: FusionCandidates, seconds: float, *, last: bool, every: bool = False
    ) -> None:
        """Offer the solver's arrangements for choices of tiles, large tiles first.

        All choices together have ``seconds`` deterministic seconds. With ``every``, all are tried;
        else the search stops when plans fit. ``last`` says that no other strategy follows.
        """
        hint = arrangement_of(place_nodes(candidates.graph, ()))
        choices = self._choices(candidates, diagonal=every)
        fitting: list[tuple[int, ...]] = []
        names = [name for name, _ in choices[0]] if choices else []
        refused: list[tuple[int, ...]] = []
        left, enough = seconds, 2
        few = self._few(candidates.graph)
        if not few:
            enough = 1
        # Single elements must fit before tiles are searched.
        if not few and not last:
            single = solve_time(candidates, {}, self.request, hint, seconds / 8)
            if single.arrangement is None and single.proven:
                return
            if single.arrangement is not None:
                self._take(candidates, single.arrangement, dict.fromkeys(names, 1))
        for number, choice in enumerate(choices):
            tile = tuple(t for _, t in choice)
            if not every and (
                sum(_covers(f, tile) for f in fitting) >= enough
                or any(_covers(tile, r) for r in refused)
            ):
                continue
            seconds_now = max(self.limits.time.seconds_per_tile, left / (len(choices) - number))
            timed = solve_time(
                candidates, dict(zip(names, tile, strict=True)), self.request, hint, seconds_now
            )
            left -= timed.spent
            if timed.arrangement is None:
                if timed.proven:
                    refused.append(tile)
                continue
            fitting.append(tile)
            if timed.arrangement not in self._seen:
                self._seen.add(timed.arrangement)
                self._take(candidates, timed.arrangement, dict(choice))

    def _descend(self, candidates: FusionCandidates) -> None:
        """Offer plans of a large program: ever smaller peaks, each with tiles as large as fit."""
        for arrangement in self._descent(candidates):
            if arrangement not in self._seen:
                self._seen.add(arrangement)
                loops = _loops(place_arrangement(candidates, arrangement))
                self._take(candidates, arrangement, {o.space.name: 1 for o in loops})

    def _descent(self, candidates: FusionCandidates) -> Iterator[Arrangement]:
        descent = self._descent_of(candidates)
        nested, limits = descent.from_arrangement(Arrangement((), ())), self.limits.time
        for part in limits.limit_parts:
            if nested is not None:
                nested = descent.improve(nested, limits.trials, self.request.limit // part)
                yield nested.arrangement

    def _descent_of(self, candidates: FusionCandidates) -> Descent:
        weights = weights_of(candidates, self.request)
        return Descent(candidates, weights, self.request.extents, self.limits.descent)

    def _choices(
        self, candidates: FusionCandidates, *, diagonal: bool
    ) -> list[tuple[tuple[str, int], ...]]:
        """Tiles of every space that has shared loops.

        Either all combinations, or for ``diagonal`` the n-th largest tile of every space.
        """
        spaces = sorted({w[1].space for g in candidates.groups for w in g}, key=lambda s: s.name)
        lists, given = [], self.limits.time.solved_trips
        for space in spaces:
            extent = space.extent_in(self.request.extents)
            tiles = {-(-extent // trips) for trips in given if trips <= extent} | {1}
            lists.append([(space.name, t) for t in sorted(tiles, reverse=True)])
        small = self._few(candidates.graph) and len(lists) <= 2 and not diagonal
        if small:
            combined = list(product(*lists))
        else:
            longest = max(map(len, lists), default=0)
            combined = [tuple(x[min(n, len(x) - 1)] for x in lists) for n in range(longest)]
        return sorted(set(combined), key=lambda c: [-t for _, t in c])

    def _take(
        self, candidates: FusionCandidates, arrangement: Arrangement, tiles: Mapping[str, int]
    ) -> None:
        """Offer the plan of an arrangement, with the tile of each loop refined."""
        placed = place_arrangement(candidates, arrangement)
        sizes = self.request.extents
        tiled = tiled_loops(placed, {o: tiles[o.space.name] for o in _loops(placed)}, sizes)
        plan = self._plan(candidates, tiled)
        self.offer(plan)
        best = refined(plan, self.request)
        if best is not None:
            self.offer(self._plan(candidates, tiled_loops(tiled, best, sizes)))

    def _plan(self, candidates: FusionCandidates, placed: tuple[Placed, ...]) -> FusionPlan:
        """The plan of placed statements, in which steps are launched inside host loops."""
        axes = shared_axes(candidates, placed)
        return build_launches(
            candidates.graph,
            placed,
            axes,
            self.extents,
            self.request.dtype,
            Solve(),
            tiled=self.sliced,
            tile_bytes=self.limits.generated_tile_bytes,
        )

    def least(self, seconds: float) -> FusionPlan:
        """The plan of least peak, with tiles of one element.

        It does not depend on the limit, so that its own peak is a limit that can be met.
        """
        arrays, dtype = self.program.intermediates, self.request.dtype
        plans: list[FusionPlan] = []
        recompute = recomputable(self.program, arrays)
        for made in ((), recompute) if recompute else ((),):
            graph = fusion_graph(self.program, made)
            candidates = candidates_with_repeats(graph)
            unfused = arrangement_of(place_nodes(graph, ()))
            arrangements: list[Arrangement | None] = [unfused]
            if constraint_count(candidates) <= self.limits.solver_constraints:
                model = TimeModel(candidates, {}, self.request, unfused, limited=False)
                arrangements.append(model.solve(seconds / 2).arrangement)
            else:
                arrangements += [
                    self._smallest(allowed) for allowed in (candidates, fusion_candidates(graph))
                ]
            for arrangement in filter(None, arrangements):
                placed = place_arrangement(candidates, arrangement)
                tiled = tiled_loops(placed, dict.fromkeys(_loops(placed), 1), self.request.extents)
                plans.append(self._plan(candidates, tiled))
        nests = orbit_nests(self.program, arrays, self.limits.time.chain_indices)
        plans += [n.plan(1, self.extents, dtype) for n in nests]
        return min(plans, key=lambda p: plan_peak(p))

    def _smallest(self, candidates: FusionCandidates) -> Arrangement | None:
        """The end of a descent in the peak without a limit."""
        descent = self._descent_of(candidates)
        nested = descent.from_arrangement(Arrangement((), ()))
        if nested is None:
            return None
        bound = least_peak_bytes(candidates, {}, self.request)
        return descent.improve(nested, 2 * self.limits.time.trials, bound).arrangement


def tiled_loops(
    placed: tuple[Placed, ...], tiles: Mapping[LoopId, int], extents: Mapping[str, int]
) -> tuple[Placed, ...]:
    """Placed statements with loops over tiles, renumbered; loops of one trip are removed."""
    needed = [o for o in _loops(placed) if tiles[o] < o.space.extent_in(extents)]
    new = {o: LoopId(n, o.space, None if tiles[o] == 1 else tiles[o]) for n, o in enumerate(needed)}
    return tuple(
        Placed(p.node, tuple((index, new[o]) for index, o in p.bind if o in new)) for p in placed
    )


def _loops(placed: tuple[Placed, ...]) -> list[LoopId]:
    return list(dict.fromkeys(o for p in placed for _, o in p.bind))


def _covers(large: tuple[int, ...], small: tuple[int, ...]) -> bool:
    return large != small and all(a >= b for a, b in zip(large, small, strict=True))


def candidates_with_repeats(
    graph: FusionGraph, shrinking: Collection[Tensor] | None = None, *, repeat: bool = True
) -> FusionCandidates:
    """The fusion candidates of a program if statements may be repeated.

    Only arrays of ``shrinking`` may be contracted; None: all. Without ``repeat``, statements are
    only in loops of their own indices.

    Source: Cociorva et al., space-time trade-off by redundant loops (PLDI 2002), here as conditions
    on loop uses.
    """
    bare = bare_instances(graph)
    index_pairs = index_pairs_of(graph, bare)
    repeats: dict[LoopUse, LoopUse] = {}
    if repeat:
        for instance in sorted(bare, key=lambda i: -min(i.producers, default=0)):
            _repeat(graph, instance, index_pairs, repeats)
    dependences = find_dependences(graph, bare, index_pairs)
    return build_candidates(graph, bare, dependences, repeats, shrinking)


def _repeat(
    graph: FusionGraph,
    instance: Instance,
    index_pairs: dict[tuple[int, int], IndexPairs],
    repeats: dict[LoopUse, LoopUse],
) -> None:
    """Let the producers of an array follow the loops of its first reader that are not its axes.

    Further readers must be in the same loop, by any loop use that is not an axis of the array.
    """
    if instance.array.role is Role.OUTPUT or instance.persistent or not instance.consumers:
        return
    first, *others = instance.consumers
    for origin in _other_uses(graph, instance, first, repeats):
        for maker in instance.producers:
            follower = (maker, Index(f"{origin[1].name}'{first}", origin[1].space))
            repeats[follower] = origin
            pairs = {(follower[1], origin[1])}
            index_pairs[maker, first] = index_pairs[maker, first] | pairs
            for other in others:
                pairs = {
                    (follower[1], index)
                    for _, index in _other_uses(graph, instance, other, repeats)
                    if index.space == origin[1].space
                }
                index_pairs[maker, other] = index_pairs[maker, other] | pairs


def _other_uses(
    graph: FusionGraph, instance: Instance, reader: int, repeats: dict[LoopUse, LoopUse]
) -> list[LoopUse]:
    """Loop uses of a reader that are not axes of the array, repeated ones included."""
    step = step_of(graph, reader)
    axes = {i for r in step.operands if r.tensor == instance.array for i in r.indices}
    own = [(reader, index) for index in step.indices if index not in axes]
    return [*own, *(use for use in repeats if use[0] == reader)]

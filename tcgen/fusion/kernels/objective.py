"""From a partition of steps into kernels to a fusion plan.

The partition divides the steps among the outermost loops, then those of each loop among the loops
inside it, and so on. The steps of a block share one loop. An array that is only used in its block
has one element on the loop's axis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...ir.plan import FusionPlan, LoopId, Solve
from ...ir.program import Phase, Step
from ...ir.tensor import Index
from ...options import Options
from ..placement.nest import Placed
from ..placement.plan import build_plan
from ..sharing.graph import FusionGraph
from .cost_models import TRAFFIC
from .partition import Partitioned, partition
from .wsp import Operation, loop_operations, loops_of, wsp_graph


def least_traffic(
    graph: FusionGraph, extents: tuple[tuple[str, int], ...], options: Options
) -> FusionPlan:
    """The plan whose kernels pass the fewest bytes through memory."""
    thresholds = options.thresholds.planner.fusion
    most = thresholds.partition_blocks * options.effort
    nests = _Nests(graph, dict(extents), options.dtype, most)
    # A phase is a program of its own.
    found = [
        nests.divide([s for s in graph.program.steps if s.phase is phase], ()) for phase in Phase
    ]
    status = "OPTIMAL" if all(f.status == "OPTIMAL" for f in found) else "FEASIBLE"
    cost, bound = sum(f.cost for f in found), sum(f.bound for f in found)
    solve = Solve("kernels", "dag", status, cost, bound, "bytes")
    axes = {node: tuple(own) for node, own in nests.axes.items()}
    return build_plan(
        graph,
        tuple(nests.placed),
        axes,
        extents,
        options.dtype,
        solve,
        thresholds.generated_tile_bytes,
    )


def traffic(plan: FusionPlan, dtype: str) -> int:
    """Bytes that pass memory between the kernels of a plan, each of which reads a view once."""
    total = 0
    group_of = {plan.visits[n].step: g for g, group in enumerate(plan.groups) for n in group.visits}
    for phase in Phase:
        steps = [s for s in plan.program.steps if s.phase is phase]
        operations = loop_operations(plan.program, steps, 0, plan.extent_of, dtype)
        blocks: dict[int, list[int]] = {}
        for number, operation in enumerate(operations):
            users = [n for n in range(len(steps)) if operations[n].arrays & {*operation.freed}]
            groups = {group_of[steps[n].id] for n in users or [number]}
            blocks.setdefault(groups.pop() if len(groups) == 1 else -1, []).append(number)
        # An array that several kernels use ends in none of them.
        apart = [(n,) for n in blocks.pop(-1, [])]
        graph = wsp_graph(operations)
        total += TRAFFIC.of(graph, (*map(tuple, blocks.values()), *apart))
    return total


class _Nests:
    """Statements in the order of execution with their shared loops, and contracted axes."""

    def __init__(
        self, graph: FusionGraph, extents: Mapping[str, int], dtype: str, most: int
    ) -> None:
        self.graph, self.extents, self.dtype, self.most = graph, extents, dtype, most
        self.node_of = {n.step: n.id for n in graph.nodes if n.reader is None}
        self.placed: list[Placed] = []
        self.axes: dict[int, list[tuple[int, Index]]] = {}
        self.loops = 0

    def divide(self, steps: Sequence[Step], around: tuple[LoopId, ...]) -> Partitioned:
        """Place steps that share the loops ``around``."""
        program, depth = self.graph.program, len(around)
        operations = loop_operations(program, steps, depth, self.extents, self.dtype)
        found = partition(operations, most_blocks=self.most)
        for block in found.blocks:
            members = [steps[n] for n in block if n < len(steps)]
            if len(members) == 1:
                self._place(members[0], around)
            elif members:
                loop = LoopId(self.loops, loops_of(members[0])[depth].space)
                self.loops += 1
                self._contract(members, [operations[n] for n in block], depth)
                self.divide(members, (*around, loop))
        return found

    def _place(self, step: Step, around: tuple[LoopId, ...]) -> None:
        fetched = [n for n in self.graph.nodes if n.reader == step.id]
        self.placed += [Placed(n.id, ()) for n in fetched]
        if step.id in self.node_of:
            bind = tuple(zip(loops_of(step), around, strict=False))
            self.placed.append(Placed(self.node_of[step.id], bind))

    def _contract(
        self, members: Sequence[Step], operations: Sequence[Operation], depth: int
    ) -> None:
        """Contract the axes of the loop of arrays that begin and end in it."""
        begun = {name for o in operations for name in o.new}
        ended = {name for o in operations for name in o.freed}
        for step in members:
            name, loop = step.out.tensor.name, loops_of(step)[depth]
            if name in begun & ended and not step.accumulate and loop in step.out.indices:
                own = self.axes.setdefault(self.node_of[step.id], [])
                own.append((step.out.indices.index(loop), loop))

"""From a partition of steps into kernels to a fusion plan.

The steps of a block run in one loop nest over the elements of their results. An array that is only
used in its block is a single element there.
"""

from __future__ import annotations

from ...ir.plan import FusionPlan, LoopId, Solve
from ...ir.program import Phase
from ...ir.tensor import Index, Role, Tensor
from ...options import Options
from ..placement.nest import Placed
from ..placement.plan import Axes, build_plan
from ..sharing.graph import FusionGraph
from .partition import partition
from .wsp import program_operations


def least_traffic(
    graph: FusionGraph, extents: tuple[tuple[str, int], ...], options: Options
) -> FusionPlan:
    """The plan whose kernels pass the fewest bytes through memory."""
    steps = graph.program.steps
    operations = program_operations(graph.program, dict(extents), options.dtype)
    thresholds = options.thresholds.planner.fusion
    kernels = partition(operations, most_blocks=thresholds.partition_blocks * options.effort)
    solve = Solve("kernels", "dag", kernels.status, kernels.cost, kernels.bound, "bytes")
    blocks = [tuple(v for v in block if v < len(steps)) for block in kernels.blocks]
    blocks.sort(key=lambda b: [steps[v].phase is Phase.VOLATILE for v in b][:1])
    placed, axes = _placed(graph, [b for b in blocks if b])
    return build_plan(
        graph, placed, axes, extents, options.dtype, solve, thresholds.generated_tile_bytes
    )


def _placed(graph: FusionGraph, blocks: list[tuple[int, ...]]) -> tuple[tuple[Placed, ...], Axes]:
    """Nodes in order, those of a block in common loops, and their contracted axes."""
    steps = graph.program.steps
    node_of = {n.step: n.id for n in graph.nodes if n.reader is None}
    fetched = [n for n in graph.nodes if n.reader is not None]
    placed: list[Placed] = []
    axes: dict[int, tuple[tuple[int, Index], ...]] = {}
    count = 0
    for block in blocks:
        loops: tuple[LoopId, ...] = ()
        if len(block) > 1:
            indices = steps[block[0]].out.indices
            loops = tuple(LoopId(count + n, index.space) for n, index in enumerate(indices))
            count += len(loops)
        for number in block:
            placed += [Placed(n.id, ()) for n in fetched if n.reader == number]
            step = steps[number]
            if number in node_of:
                bind = tuple(zip(step.out.indices, loops, strict=True)) if loops else ()
                placed.append(Placed(node_of[number], bind))
            if loops and not step.accumulate and _only_inside(graph, block, step.out.tensor):
                axes[node_of[number]] = tuple(enumerate(step.out.indices))
    return tuple(placed), axes


def _only_inside(graph: FusionGraph, block: tuple[int, ...], array: Tensor) -> bool:
    """True if no step outside a block reads or writes an array."""
    program = graph.program
    users = (*program.producers(array), *program.consumers(array))
    return array.role is Role.TEMP and all(s.id in block for s in users)

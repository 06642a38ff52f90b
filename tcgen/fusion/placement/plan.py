"""From placed statements to a fusion plan: visits, instances of arrays, kernels.

Generated inputs that share no loop with their reader are produced tile by tile: the reader and the
visit that produces the input are placed in a common loop over tiles of one axis, or of several axes
if one slab would still be too large. Only one tile is held at a time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby

from ...ir.plan import ArrayPlan, FusionPlan, GroupKind, KernelGroup, LoopId, Place, Solve, Visit
from ...ir.program import Contract, FormulaSequence, Produce, Step
from ...ir.tensor import Index, Role, Tensor
from ..sharing.candidates import FusionCandidates
from ..sharing.graph import FusionGraph, Node, Variable
from .memory import array_bytes
from .nest import Placed

# By node: contracted axes of the array that it is the first to write, each with its index.
Axes = Mapping[int, tuple[tuple[int, Index], ...]]


@dataclass(frozen=True, slots=True)
class _Visited:
    """A visit and its node; for a fetched tile, also the axes that its loops cut."""

    node: Node
    visit: Visit
    contracted: tuple[tuple[int, LoopId], ...] = ()


def fused_axes(graph: FusionGraph, fused: tuple[Variable, ...]) -> Axes:
    """The axes that a choice of fused edges contracts."""
    return {
        edge.producer: tuple(
            (c.axis, c.producer_index) for c in edge.candidates if (edge.id, c.loop) in fused
        )
        for edge in graph.edges
    }


def shared_axes(candidates: FusionCandidates, placed: tuple[Placed, ...]) -> Axes:
    """The axes that an arrangement contracts: those with all loop uses in one loop."""
    loop_of = {(p.node, index): loop for p in placed for index, loop in p.bind}
    first = {p.node: n for n, p in enumerate(placed)}
    axes: dict[int, tuple[tuple[int, Index], ...]] = {}
    for instance in candidates.instances:
        if instance.producers:
            maker = min(instance.producers, key=lambda n: first[n])
            axes[maker] = tuple(
                (axis, next(index for node, index in uses if node == maker))
                for axis, uses in instance.axes
                if uses[0] in loop_of and len({loop_of.get(w) for w in uses}) == 1
            )
    return axes


def build_plan(
    graph: FusionGraph,
    placed: tuple[Placed, ...],
    axes: Axes,
    extents: tuple[tuple[str, int], ...],
    dtype: str,
    solve: Solve,
    tile_bytes: int | None = None,
    *,
    by_launch: bool = False,
    tiled: Collection[str] | None = None,
    fetch_at_reader: bool = False,
) -> FusionPlan:
    """The plan in which exactly the given loops are shared.

    Each nest is a kernel; if ``by_launch``, its loops run on the host and every step is a kernel of
    its own. ``placed`` has the nodes in order, in their loops; ``extents`` are sorted by name.

    A generated input is fetched in tiles of at most ``tile_bytes`` bytes if it shares no loop with
    its reader and is named in ``tiled`` (None: all are), or if another tile of it would be live at
    the same time. With ``fetch_at_reader`` every generated input is fetched right before its
    reader, in the loops of the reader.
    """
    overlapping = _overlapping(graph, placed)
    apart = [
        node
        for node, place in ((graph.nodes[p.node], p) for p in placed)
        if _is_fetch(graph, node)
        and (
            fetch_at_reader
            or node in overlapping
            or (not place.bind and (tiled is None or _source(graph, node) in tiled))
        )
    ]
    largest = tile_bytes if tiled is None or tiled else None
    visited = _visits(graph, placed, apart, dict(extents), dtype, largest)
    visits = tuple(v.visit for v in visited)
    loops = sorted({o for v in visits for o in v.loops}, key=lambda o: o.id)
    groups = _groups(graph.program, visits, by_launch=by_launch)
    arrays = tuple(
        replace(a, bytes=array_bytes(a, dict(extents), dtype))
        for a in _arrays(graph, axes, visited, groups)
    )
    return FusionPlan(
        graph.program,
        extents,
        tuple(loops),
        visits,
        arrays,
        groups,
        sum(a.bytes for a in arrays if a.place is Place.ARENA),
        solve,
    )


# A generated input that shares no loop with its reader is held whole unless ``tiled`` names it.
build_launches = partial(build_plan, by_launch=True, tiled=())


def in_nests(plan: FusionPlan) -> FusionPlan:
    """The plan with one kernel for each nest; only loops around a fetch run on the host."""
    return replace(plan, groups=_groups(plan.program, plan.visits, by_launch=False))


def regrouped(plan: FusionPlan, inside: Collection[LoopId]) -> FusionPlan:
    """The plan with all loops but ``inside`` on the host; kernels and places of arrays fit them."""
    host = {o for o in plan.loops if o not in inside}
    groups = _groups_of(plan.program, plan.visits, host)
    group_of = {visit: n for n, group in enumerate(groups) for visit in group.visits}
    arrays = tuple(replace(a, place=_place(a, group_of)) for a in plan.arrays)
    arena = sum(a.bytes for a in arrays if a.place is Place.ARENA)
    return replace(plan, groups=groups, arrays=arrays, arena=arena)


def _visits(
    graph: FusionGraph,
    placed: tuple[Placed, ...],
    fetched_apart: list[Node],
    extents: Mapping[str, int],
    dtype: str,
    tile_bytes: int | None,
) -> list[_Visited]:
    """Visits in order, each node of ``fetched_apart`` in tile loops right before its reader."""
    steps = graph.program.steps
    result: list[_Visited] = []
    fetches: dict[int, list[Node]] = {}
    for node in fetched_apart:
        if node.reader is not None:
            fetches.setdefault(node.reader, []).append(node)
    next_id = 1 + max((o.id for p in placed for _, o in p.bind), default=-1)
    for place in placed:
        node = graph.nodes[place.node]
        if node in fetched_apart:
            continue
        own = tuple((i, o) for i, o in place.bind if i in steps[node.step].indices)
        loops = tuple(o for _, o in place.bind)
        repeated = tuple(o for o in loops if all(o != bound for _, bound in own))
        visit = Visit(node.step, own, loops, repeated)
        if (running := steps[node.step].running) is not None and visit.loop_of(running) is None:
            added = _ordered_loops(steps[node.step], running, visit, next_id)
            next_id += len(added)
            inner = tuple(loop for _, loop in added)
            visit = replace(visit, bind=(*own, *added), loops=(*loops, *inner))
        for source in fetches.get(node.step, ()):
            tiled = fetch_tiles(
                steps[source.step],
                steps[node.step],
                visit,
                next_id,
                extents,
                dtype,
                tile_bytes,
            )
            next_id += len(tiled.added)
            visit = tiled.reader
            result.append(_Visited(source, tiled.fetch, tiled.contracted))
        result.append(_Visited(node, visit))
    return result


def _ordered_loops(
    step: Step, running: Index, visit: Visit, first: int
) -> tuple[tuple[Index, LoopId], ...]:
    """Loops, numbered from ``first``, in which a running reduction takes its values in order.

    Those over axes before that of its index are around it.
    """
    indices = step.out.indices
    free = [i for i in indices[: indices.index(running) + 1] if visit.loop_of(i) is None]
    return tuple((i, LoopId(first + n, i.space)) for n, i in enumerate(free))


def _source(graph: FusionGraph, node: Node) -> str:
    return graph.program.steps[node.step].out.tensor.source


def _is_fetch(graph: FusionGraph, node: Node) -> bool:
    """True for a statement that fetches a generated input for a reader."""
    return node.reader is not None and isinstance(graph.program.steps[node.step].op, Produce)


def _overlapping(graph: FusionGraph, placed: tuple[Placed, ...]) -> list[Node]:
    """Fetches of generated inputs between which and their reader another one is live.

    A tile is only held while no other statement reads that input.
    """
    nodes = [graph.nodes[p.node] for p in placed]
    readers = {n.step: position for position, n in enumerate(nodes) if n.reader is None}
    held = {
        position: (node, readers[node.reader])
        for position, node in enumerate(nodes)
        if node.reader is not None and _is_fetch(graph, node)
    }
    return [
        node
        for position, (node, last) in held.items()
        if any(
            position < use < last
            for start, (other, end) in held.items()
            if other.step == node.step and other != node
            for use in (start, end)
        )
    ]


def _groups(
    program: FormulaSequence, visits: tuple[Visit, ...], *, by_launch: bool
) -> tuple[KernelGroup, ...]:
    """One kernel for each nest; loops around the fetch of a generated input run on the host."""
    host = {
        o
        for v in visits
        if by_launch or isinstance(program.steps[v.step].op, Produce)
        for o in v.loops
    }
    return _groups_of(program, visits, host)


def _groups_of(
    program: FormulaSequence, visits: tuple[Visit, ...], host: Collection[LoopId]
) -> tuple[KernelGroup, ...]:

    def nest(position: int) -> tuple[LoopId, ...] | int:
        """The key of a kernel: visits with the same outermost loop inside it have one kernel."""
        loops = visits[position].loops
        depth = sum(o in host for o in loops)
        return loops[: depth + 1] if depth < len(loops) else position

    groups: list[KernelGroup] = []
    for _, members in groupby(range(len(visits)), key=nest):
        positions = tuple(members)
        loops = visits[positions[0]].loops
        outer = tuple(o for o in loops if o in host)
        step = program.steps[visits[positions[0]].step]
        if outer != loops:
            kind, word = GroupKind.NEST, "nest"
        elif isinstance(step.op, Contract):
            kind, word = GroupKind.LIBRARY, "product"
        else:
            kind, word = GroupKind.MAP, "fetch" if isinstance(step.op, Produce) else "map"
        groups.append(KernelGroup(f"{word}_{len(groups)}", kind, positions, outer))
    return tuple(groups)


def _arrays(
    graph: FusionGraph,
    axes: Axes,
    visited: list[_Visited],
    groups: tuple[KernelGroup, ...],
) -> list[ArrayPlan]:
    """Instances in order of their first visit."""
    steps = graph.program.steps
    instances: dict[tuple[Tensor, int | None], ArrayPlan] = {}
    for position, place in enumerate(visited):
        step = steps[place.node.step]
        made = (step.out.tensor, place.node.reader)
        if made not in instances:
            loops = dict(place.visit.bind)
            contracted = place.contracted or tuple(
                (axis, loops[index]) for axis, index in axes.get(place.node.id, ())
            )
            home = next(
                (
                    o
                    for o in reversed(place.visit.loops)
                    if o in place.visit.redundant or any(o == c for _, c in contracted)
                ),
                None,
            )
            # The input is produced anew in every loop around it.
            if isinstance(step.op, Produce):
                home = place.visit.loops[-1] if place.visit.loops else None
            instances[made] = ArrayPlan(
                step.out.tensor, contracted, home, Place.ARENA, (position, position)
            )
        reads = [
            (t, step.id if t in graph.per_reader else None)
            for t in dict.fromkeys(r.tensor for r in step.operands)
            if t.role is not Role.INPUT
        ]
        for key in (made, *reads):
            array = instances[key]
            instances[key] = replace(array, live=(array.live[0], position))
    group_of = {visit: n for n, group in enumerate(groups) for visit in group.visits}
    return [replace(a, place=_place(a, group_of)) for a in instances.values()]


def _place(array: ArrayPlan, group_of: Mapping[int, int]) -> Place:
    """Outputs belong to the caller; a single element inside one kernel is a register."""
    match array.tensor.role:
        case Role.OUTPUT:
            return Place.CALLER
        case Role.TEMP:
            elements = all(loop.tile is None for _, loop in array.contracted)
            single = elements and len(array.contracted) == array.tensor.rank
            first, last = array.live
            inside = group_of[first] == group_of[last]
            return Place.REG if single and inside else Place.ARENA
        case Role.GENERATED | Role.INPUT:
            return Place.ARENA


@dataclass(frozen=True, slots=True)
class Fetched:
    """The visits of a generated input and of its reader, inside the added tile loops.

    Loops of ``contracted`` cut axes of the input into tiles; ``added`` begins with the outermost.
    """

    fetch: Visit
    contracted: tuple[tuple[int, LoopId], ...]
    reader: Visit
    added: tuple[LoopId, ...]


def fetch_tiles(
    produce: Step,
    step: Step,
    reader: Visit,
    next_id: int,
    extents: Mapping[str, int],
    dtype: str,
    tile_bytes: int | None,
) -> Fetched:
    """Put a reader and the production of a generated input into common tile loops.

    The loops that the reader is in already cut the input along the axes that it reads by their
    indices. An input is one tile if the reader uses no axis with a single index
    (``G[i,j]*G[j,i]``), or only a part. Loops, numbered from ``next_id``, are added until a tile
    has at most ``tile_bytes`` bytes, or one element; None: no loop is added.
    """
    tensor = produce.out.tensor
    shared = _shared_axes(tensor, step)
    bind, added = list(reader.bind), list[LoopId]()
    while True:
        contracted = tuple((axis, loop) for axis, index in shared for i, loop in bind if i == index)
        held = array_bytes(ArrayPlan(tensor, contracted), extents, dtype)
        free = [(axis, index) for axis, index in shared if all(i != index for i, _ in bind)]
        if tile_bytes is None or not free or (contracted and held <= tile_bytes):
            break
        axis, index = min(
            free,
            key=lambda f: (f[1] in step.sums, -tensor.spaces[f[0]].extent_in(extents), f[0]),
        )
        extent = tensor.spaces[axis].extent_in(extents)
        # At least two tiles, so that the input is never held whole.
        tile = max(1, min(tile_bytes // max(1, held // extent), (extent + 1) // 2))
        loop = LoopId(next_id + len(added), tensor.spaces[axis], tile)
        bind.append((index, loop))
        added.append(loop)
    loops = (*reader.loops, *added)
    own = tuple((produce.out.indices[axis], loop) for axis, loop in contracted)
    repeated = tuple(o for o in loops if all(o != loop for _, loop in own))
    return Fetched(
        Visit(produce.id, own, loops, repeated),
        contracted,
        Visit(reader.step, tuple(bind), loops, reader.redundant),
        tuple(added),
    )


def _shared_axes(tensor: Tensor, step: Step) -> list[tuple[int, Index]]:
    """Axes that the step reads whole and always with the same index; one axis for each index."""
    reads = [r.indices for r in step.operands if r.tensor == tensor]
    axis_of: dict[Index, int] = {}
    for axis, space in enumerate(tensor.spaces):
        index = reads[0][axis]
        if index.space == space and all(r[axis] == index for r in reads):
            axis_of.setdefault(index, axis)
    return [(axis, index) for index, axis in axis_of.items()]

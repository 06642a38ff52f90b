"""The fusion graph of a program: which loops a producer could share with its consumer.

The nodes of the paper are arrays. Here a node is a *statement*, one execution of a step, and an
array is the edge from its producer to its consumer; on trees the two views agree. A generated input
is produced once for each of its readers, so that each of these statements is a leaf.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...ir.program import FormulaSequence, Phase, Produce, Step
from ...ir.tensor import Index, Ref, Role, Tensor

Variable = tuple[int, int]  # (edge, loop)


@dataclass(frozen=True, slots=True)
class Node:
    """A statement: one execution of a step.

    Attributes:
        id: position among the nodes; producers come before consumers.
        reader: id of the step that reads this copy, if the array is made once for each reader.
    """

    id: int
    step: int
    reader: int | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A potential fusion edge of the paper: an axis whose loop producer and consumer could share.

    A loop has one number wherever it could be one loop; the indices are those on the axis.
    """

    axis: int
    loop: int
    producer_index: Index
    consumer_index: Index


@dataclass(frozen=True, slots=True)
class Edge:
    """An array with one producer and one consumer, by node id, and its candidates by axis."""

    id: int
    array: Tensor
    producer: int
    consumer: int
    candidates: tuple[Candidate, ...]

    @property
    def loops(self) -> tuple[int, ...]:
        """Numbers of the candidate loops, by axis."""
        return tuple(c.loop for c in self.candidates)


@dataclass(frozen=True, slots=True)
class FusionGraph:
    """A forest: each node has at most one edge to a consumer.

    Attributes:
        per_reader: generated inputs and recomputed intermediates, made once for each reader.
        edges: edges in post-order of each tree, operands left to right.
        parts: the edges' ids, one tuple for each tree.
        restricted: some array has no edge, because it has several producers or consumers, is read
            twice or in part, is also an output, or passes from the constant to the volatile phase.
    """

    program: FormulaSequence
    nodes: tuple[Node, ...]
    per_reader: tuple[Tensor, ...]
    edges: tuple[Edge, ...]
    parts: tuple[tuple[int, ...], ...]
    restricted: bool


def step_of(graph: FusionGraph, node: int) -> Step:
    """The step that a statement executes."""
    return graph.program.steps[graph.nodes[node].step]


def phase_of(graph: FusionGraph, node: int) -> Phase:
    """The phase in which a statement runs; a generated input is fetched in that of its reader."""
    statement = graph.nodes[node]
    step = statement.step if statement.reader is None else statement.reader
    return graph.program.steps[step].phase


@dataclass(frozen=True, slots=True)
class _Link:
    """An edge whose loops have no numbers yet."""

    array: Tensor
    producer: int
    consumer: int
    written: Ref
    read: Ref


def fusion_graph(program: FormulaSequence, recompute: tuple[Tensor, ...] = ()) -> FusionGraph:
    """The fusion graph of a program, without its resident inputs.

    Intermediates of ``recompute`` are recomputed for each of their readers; their producers read
    neither each other nor generated inputs. If there are any, the graph has no edges.

    Source: Allam et al., section 2.1, with indices matched through the axes of the array.
    """
    generated = tuple(s.out.tensor for s in program.steps if isinstance(s.op, Produce))
    per_reader = (*generated, *recompute)
    nodes = _nodes(program, per_reader)
    if recompute:
        return FusionGraph(program, nodes, per_reader, (), (), True)
    links: dict[int, list[_Link]] = {}
    restricted = False
    statements = {n.step: n for n in nodes if n.reader is None}
    produced_for = {(n.step, n.reader): n for n in nodes}
    for node in nodes:
        step = program.steps[node.step]
        for array in dict.fromkeys(r.tensor for r in step.operands):
            if array.role is Role.INPUT or array.rank == 0:
                continue
            producers = program.producers(array)
            link = None
            if isinstance(producers[0].op, Produce):
                maker = produced_for[producers[0].id, step.id]
                link = _link(array, maker, node, producers[0], step)
            elif len(producers) == len(program.consumers(array)) == 1:
                maker = statements[producers[0].id]
                if array.role is not Role.OUTPUT and producers[0].phase is step.phase:
                    link = _link(array, maker, node, producers[0], step)
            if link is None:
                restricted = True
            else:
                links.setdefault(node.id, []).append(link)
    edges, parts = _edges(nodes, links)
    return FusionGraph(program, nodes, per_reader, edges, parts, restricted)


def _nodes(program: FormulaSequence, per_reader: tuple[Tensor, ...]) -> tuple[Node, ...]:
    """Statements in program order; those that make an array for one step come right before it."""
    wanted: list[tuple[int, int | None]] = []
    read: set[Tensor] = set()
    for step in program.steps:
        if step.out.tensor in per_reader:
            continue
        for tensor in dict.fromkeys(r.tensor for r in step.operands):
            if tensor in per_reader:
                wanted += [(maker.id, step.id) for maker in program.producers(tensor)]
                read.add(tensor)
        wanted.append((step.id, None))
    wanted += [(s.id, None) for t in per_reader if t not in read for s in program.producers(t)]
    return tuple(Node(n, step, reader) for n, (step, reader) in enumerate(wanted))


def _link(array: Tensor, maker: Node, node: Node, producer: Step, step: Step) -> _Link | None:
    """The edge of ``array``; None unless it is read once, whole, with distinct indices."""
    reads = [r for r in step.operands if r.tensor == array]
    written, read = producer.out, reads[0]
    whole = all(
        p.space == c.space == space
        for p, c, space in zip(written.indices, read.indices, array.spaces, strict=True)
    )
    if len(reads) != 1 or not whole or len(set(read.indices)) != array.rank:
        return None
    return _Link(array, maker.id, node.id, written, read)


def _edges(
    nodes: tuple[Node, ...], links: dict[int, list[_Link]]
) -> tuple[tuple[Edge, ...], tuple[tuple[int, ...], ...]]:
    """Edges in post-order, with loops numbered in order of first occurrence; and the trees."""
    below = {link.producer for operands in links.values() for link in operands}
    roots = [n.id for n in nodes if n.id in links and n.id not in below]
    trees = [_post_order(root, links) for root in roots]
    edges: list[Edge] = []
    parts: list[tuple[int, ...]] = []
    numbers: dict[tuple[int, Index], int] = {}
    for tree in trees:
        start = len(edges)
        loop_of = _loops(tree)
        for link in tree:
            pairs = zip(link.written.indices, link.read.indices, strict=True)
            candidates = tuple(
                Candidate(
                    axis,
                    numbers.setdefault(loop_of[link.producer, made], len(numbers)),
                    made,
                    read,
                )
                for axis, (made, read) in enumerate(pairs)
            )
            edges.append(Edge(len(edges), link.array, link.producer, link.consumer, candidates))
        parts.append(tuple(range(start, len(edges))))
    return tuple(edges), tuple(parts)


def _post_order(root: int, links: dict[int, list[_Link]]) -> list[_Link]:
    return [
        each for link in links.get(root, ()) for each in (*_post_order(link.producer, links), link)
    ]


def _loops(tree: list[_Link]) -> dict[tuple[int, Index], tuple[int, Index]]:
    """For each (node, index) of an edge, the (node, index) nearest to the root in the same loop.

    Indices are matched through the axes of arrays, never by letter: a letter that is used again
    after it was summed belongs to another loop.
    """
    outermost: dict[tuple[int, Index], tuple[int, Index]] = {}
    for link in reversed(tree):  # consumers before producers
        for made, read in zip(link.written.indices, link.read.indices, strict=True):
            place = (link.consumer, read)
            outermost[link.producer, made] = outermost.get(place, place)
    return outermost

"""The fusion graph of a program: which loops a producer could share with its consumer.

Nodes of the paper are arrays; here a node is one execution of a step, and an array is the edge from
the step that makes it to the step that reads it. Both views agree on trees. A generated input that
several steps read is produced once for each of them, so that each execution is a leaf.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...ir.program import Phase, Produce, Program, Step
from ...ir.tensor import Index, Ref, Role, Tensor

Variable = tuple[int, int]  # (edge, loop)


@dataclass(frozen=True, slots=True)
class Node:
    """One execution of a step.

    Attributes:
        id: position among the nodes; producers come before consumers.
        step: id of the step.
        reader: for an array that is made for each of its readers: id of the step that it is made
            for.
    """

    id: int
    step: int
    reader: int | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A potential fusion edge of the paper: an axis whose loop producer and consumer could share.

    Attributes:
        axis: of the array.
        loop: unique name of the loop, the same number wherever it could be one loop.
        made: the producer's index on that axis.
        read: the consumer's index on that axis.
    """

    axis: int
    loop: int
    made: Index
    read: Index


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
        """Names of the candidate loops, by axis."""
        return tuple(c.loop for c in self.candidates)


@dataclass(frozen=True, slots=True)
class FusionGraph:
    """A forest: each node has at most one edge to a consumer.

    Attributes:
        program: it was made from.
        nodes: executions, producers first.
        apart: arrays that are made for each of their readers: generated inputs, and intermediates
            that are computed again.
        edges: in post-order of each tree, operands left to right.
        parts: the edges' ids, one tuple for each tree.
        restricted: some array was left whole because it has several producers or consumers, is
            read twice or in part, is an output too, or crosses from the constant to the volatile
            phase.
    """

    program: Program
    nodes: tuple[Node, ...]
    apart: tuple[Tensor, ...]
    edges: tuple[Edge, ...]
    parts: tuple[tuple[int, ...], ...]
    restricted: bool


def step_of(graph: FusionGraph, node: int) -> Step:
    """The step that a statement executes."""
    return graph.program.steps[graph.nodes[node].step]


def phase_of(graph: FusionGraph, node: int) -> Phase:
    """Phase in which a statement runs: a generated input is fetched with its reader."""
    found = graph.nodes[node]
    return graph.program.steps[found.step if found.reader is None else found.reader].phase


@dataclass(frozen=True, slots=True)
class _Link:
    """An edge before loops are named."""

    array: Tensor
    producer: int
    consumer: int
    made: Ref
    read: Ref


def fusion_graph(program: Program, again: tuple[Tensor, ...] = ()) -> FusionGraph:
    """The fusion graph of a program; resident inputs are no nodes.

    Args:
        program: a formula sequence.
        again: intermediates to compute anew for each reader. Their producers read neither each
            other nor generated inputs. With any, the graph has no edges: it is no tree.

    Source: Allam et al., section 2.1, with indices matched through the axes of the array.
    """
    generated = tuple(s.out.tensor for s in program.steps if isinstance(s.op, Produce))
    apart = (*generated, *again)
    nodes = _nodes(program, apart)
    if again:
        return FusionGraph(program, nodes, apart, (), (), True)
    links: dict[int, list[_Link]] = {}
    restricted = False
    executions = {n.step: n for n in nodes if n.reader is None}
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
                maker = executions[producers[0].id]
                if array.role is not Role.OUTPUT and producers[0].phase is step.phase:
                    link = _link(array, maker, node, producers[0], step)
            if link is None:
                restricted = True
            else:
                links.setdefault(node.id, []).append(link)
    edges, parts = _edges(nodes, links)
    return FusionGraph(program, nodes, apart, edges, parts, restricted)


def _nodes(program: Program, apart: tuple[Tensor, ...]) -> tuple[Node, ...]:
    """Executions in program order, what is made for a step right before it."""
    wanted: list[tuple[int, int | None]] = []
    read: set[Tensor] = set()
    for step in program.steps:
        if step.out.tensor in apart:
            continue
        for tensor in dict.fromkeys(r.tensor for r in step.operands):
            if tensor in apart:
                wanted += [(maker.id, step.id) for maker in program.producers(tensor)]
                read.add(tensor)
        wanted.append((step.id, None))
    wanted += [(s.id, None) for t in apart if t not in read for s in program.producers(t)]
    return tuple(Node(n, step, reader) for n, (step, reader) in enumerate(wanted))


def _link(array: Tensor, maker: Node, node: Node, producer: Step, step: Step) -> _Link | None:
    """The edge through ``array``, or None unless it is read once, whole, with distinct indices."""
    reads = [r for r in step.operands if r.tensor == array]
    made, read = producer.out, reads[0]
    whole = all(
        p.space == c.space == space
        for p, c, space in zip(made.indices, read.indices, array.spaces, strict=True)
    )
    if len(reads) != 1 or not whole or len(set(read.indices)) != array.rank:
        return None
    return _Link(array, maker.id, node.id, made, read)


def _edges(
    nodes: tuple[Node, ...], links: dict[int, list[_Link]]
) -> tuple[tuple[Edge, ...], tuple[tuple[int, ...], ...]]:
    """Edges in post-order with loops named in order of first occurrence, and the trees."""
    below = {link.producer for found in links.values() for link in found}
    roots = [n.id for n in nodes if n.id in links and n.id not in below]
    trees = [_post_order(root, links) for root in roots]
    edges: list[Edge] = []
    parts: list[tuple[int, ...]] = []
    names: dict[tuple[int, Index], int] = {}
    for tree in trees:
        start = len(edges)
        loop_of = _loops(tree)
        for link in tree:
            pairs = zip(link.made.indices, link.read.indices, strict=True)
            candidates = tuple(
                Candidate(
                    axis,
                    names.setdefault(loop_of[link.producer, made], len(names)),
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
        found
        for link in links.get(root, ())
        for found in (*_post_order(link.producer, links), link)
    ]


def _loops(tree: list[_Link]) -> dict[tuple[int, Index], tuple[int, Index]]:
    """For each (node, index) that an edge matches, the occurrence nearest to the root.

    Occurrences with the same one could be one loop: names are matched through the arrays' axes,
    never by letter, so that a letter used again after being summed is another loop.
    """
    found: dict[tuple[int, Index], tuple[int, Index]] = {}
    for link in reversed(tree):  # consumers before producers
        for made, read in zip(link.made.indices, link.read.indices, strict=True):
            place = (link.consumer, read)
            found[link.producer, made] = found.get(place, place)
    return found

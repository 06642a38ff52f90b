"""From fused edges, or an arrangement, to loop nests: the loops and the order of the statements.

A chain (connected fused edges of one loop) becomes one shared loop. Where chains meet at a node,
the one with more nodes is outside. Since contracting subtrees of a tree makes no cycle, an order of
execution always exists.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...ir.plan import LoopId
from ...ir.program import Phase
from ...ir.tensor import Index, Space
from ..sharing.candidates import Arrangement, FusionCandidates
from ..sharing.dependences import LoopUse
from ..sharing.graph import FusionGraph, Variable, phase_of


@dataclass(frozen=True, slots=True)
class Chain:
    """A fused loop: its space, the nodes that share it, and their indices, by node."""

    space: Space
    bound: tuple[tuple[int, Index], ...]

    @property
    def nodes(self) -> tuple[int, ...]:
        """Ids of the nodes in the loop, ascending."""
        return tuple(node for node, _ in self.bound)


@dataclass(frozen=True, slots=True)
class Placed:
    """A node in its shared loops, outermost first, each with the node's own index."""

    node: int
    bind: tuple[tuple[Index, LoopId], ...]


def chains(graph: FusionGraph, fused: tuple[Variable, ...]) -> tuple[Chain, ...]:
    """Connected components of fused edges, loop by loop, in order of their first edge."""
    components: list[tuple[int, dict[int, Index]]] = []
    for edge_id, loop in fused:
        edge = graph.edges[edge_id]
        candidate = next(c for c in edge.candidates if c.loop == loop)
        joined = {edge.producer: candidate.producer_index, edge.consumer: candidate.consumer_index}
        apart = []
        for name, bound in components:
            if name == loop and not joined.keys().isdisjoint(bound):
                joined = bound | joined
            else:
                apart.append((name, bound))
        components = [*apart, (loop, joined)]
    return tuple(
        Chain(next(iter(bound.values())).space, tuple(sorted(bound.items(), key=lambda b: b[0])))
        for _, bound in sorted(components, key=lambda f: (f[0], min(f[1])))
    )


def place_nodes(graph: FusionGraph, fused: tuple[Variable, ...]) -> tuple[Placed, ...]:
    """Nodes in order of execution, those of the constant phase first, in numbered loops."""
    ordered = sorted(chains(graph, fused), key=lambda c: -len(c.nodes))
    placed: list[Placed] = []
    phases = [phase_of(graph, n.id) is Phase.VOLATILE for n in graph.nodes]
    count = 0

    def place(nodes: tuple[int, ...], rest: list[Chain], outside: tuple[LoopId, ...]) -> None:
        """Place the nodes of one loop body: nodes of each inner chain together."""
        nonlocal count
        items: list[tuple[int, tuple[int, ...], Chain | None]] = []
        free = list(nodes)
        for inner in rest:
            if set(inner.nodes) <= set(free):
                items.append((max(inner.nodes), inner.nodes, inner))
                free = [n for n in free if n not in inner.nodes]
        items += [(n, (n,), None) for n in free]
        # The last node of a subtree is its root; everything that it needs has a smaller id.
        for last, members, chain in sorted(items, key=lambda i: (phases[i[0]], i[0])):
            if chain is None:
                bind = tuple(
                    (dict(c.bound)[last], o) for c, o in zip(open_chains, outside, strict=True)
                )
                placed.append(Placed(last, bind))
            else:
                loop = LoopId(count, chain.space)
                count += 1
                open_chains.append(chain)
                within = [c for c in rest if c is not chain and set(c.nodes) <= set(members)]
                place(members, within, (*outside, loop))
                open_chains.pop()

    open_chains: list[Chain] = []
    place(tuple(n.id for n in graph.nodes), ordered, ())
    return tuple(placed)


def place_arrangement(candidates: FusionCandidates, arrangement: Arrangement) -> tuple[Placed, ...]:
    """Statements in the order of an arrangement; absent ones right before those that need them."""
    # The order is stable: outer loops come first.
    by_members = sorted(arrangement.loops, key=lambda loop: -len(loop))
    inside: dict[int, list[tuple[Index, int]]] = {}
    for number, members in enumerate(by_members):
        for node, index in members:
            inside.setdefault(node, []).append((index, number))
    order: list[int] = []
    free = [n.id for n in candidates.graph.nodes if n.id not in arrangement.order]
    free.sort(key=lambda n: (phase_of(candidates.graph, n) is Phase.VOLATILE, n))

    def add_free(last: int | None) -> None:
        """Append the free statements that ``last`` needs; None: all of them."""
        for node in tuple(free):
            if last is None or candidates.dependences.precedes(node, last):
                order.append(node)
                free.remove(node)

    open_loop: int | None = None
    for position, node in enumerate(arrangement.order):
        outer = inside[node][0][1] if node in inside else None
        # Free statements that a new loop needs precede it.
        if outer is None or outer != open_loop:
            for other in arrangement.order[position:]:
                if other == node or (
                    outer is not None and inside.get(other, [(None, None)])[0][1] == outer
                ):
                    add_free(other)
        open_loop = outer
        order.append(node)
    add_free(None)
    loops: dict[int, LoopId] = {}
    placed: list[Placed] = []
    for node in order:
        bind = []
        for index, number in inside.get(node, ()):
            loop = loops.setdefault(number, LoopId(len(loops), index.space))
            bind.append((index, loop))
        placed.append(Placed(node, tuple(bind)))
    return tuple(placed)


def arrangement_of(placed: tuple[Placed, ...]) -> Arrangement:
    """The loops and the order of placed statements."""
    loops: dict[LoopId, list[LoopUse]] = {}
    for place in placed:
        for index, loop in place.bind:
            loops.setdefault(loop, []).append((place.node, index))
    return Arrangement(tuple(map(tuple, loops.values())), tuple(p.node for p in placed))

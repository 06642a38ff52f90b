"""Triangular nests over tiles, a >= b >= c, for sums and results that are symmetric in a, b and c.

Every large array with these indices is contracted to one tile along each of them. An array that is
read with its indices permuted is recomputed for each permutation. This costs nothing, since the
triangle has as many times fewer triples of tiles.

    for A: for B <= A: for C <= B:
        x1 = x of tile (A,B,C);  w  = x1
        x2 = x of tile (B,A,C);  w += x2 transposed
        ...
        e += weight(A,B,C) * sum over the tiles of w * ...

The weight is the size of the orbit of (A,B,C) under permutations. Where tiles coincide, the whole
block is computed: small tiles waste less work there, large tiles make better matrix products.

A symmetric result is computed for a tile (A,B), of which every image is added to its target:

    for A: for B <= A:
        w = tile (A,B) of a product;  h = w * t
        r of tile (A,B) += weight(A,B)/2 * h
        r of tile (B,A) += weight(A,B)/2 * h transposed

A generated input is fetched right before each of its readers: the part for one tile, if it is read
with indices of the loops.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from ...ir.exchange_symmetry import exchange_sign
from ...ir.plan import FusionPlan, LoopId, Solve
from ...ir.program import FormulaSequence, Phase, Step
from ...ir.tensor import Index, Role, Tensor
from ..placement.nest import Placed
from ..placement.plan import Axes, build_launches
from ..sharing.graph import FusionGraph, fusion_graph, phase_of
from .orbit_steps import added_directly, arrangements_apart, in_one_pass, only_added
from .orbit_sums import orbit_sums, symmetric_results

Extents = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class OrbitNest:
    """Statements that share triangular loops over tiles.

    Attributes:
        program: rewritten program of the sum, or of the symmetric result.
        graph: fusion graph with a copy for each reader of arrays in several permutations.
        target: the array that the nest makes, whole.
        chain: summed indices, or two of a symmetric result: one for each loop, outermost first.
        bound: index of each loop for each node inside.
    """

    program: FormulaSequence
    graph: FusionGraph
    target: Tensor
    chain: tuple[Index, ...]
    bound: tuple[tuple[int, tuple[Index, ...]], ...]

    def plan(self, tile: int, extents: Extents, dtype: str) -> FusionPlan:
        """The plan of the nest, in which every step is launched inside host loops."""
        loops: list[LoopId] = []
        for n, index in enumerate(self.chain):
            after = loops[-1] if loops else None
            loops.append(LoopId(n, index.space, None if tile == 1 else tile, after))
        inside = dict(self.bound)
        placed = tuple(
            Placed(node, tuple(zip(inside.get(node, ()), loops, strict=False)))
            for node in self._order(inside)
        )
        axes = self._axes(inside)
        return build_launches(
            self.graph, placed, axes, extents, dtype, Solve(), fetch_at_reader=True
        )

    def is_symmetric(self) -> bool:
        """True where the last step's summand is proven to be symmetric in the chain."""
        last = self.program.steps[self.graph.nodes[max(dict(self.bound))].step]
        return all(
            exchange_sign(self.program, last, {one: two, two: one}, self.chain) == 1
            for one, two in pairwise(self.chain)
        )

    def _order(self, inside: Collection[int]) -> list[int]:
        """Nodes in order, those of the nest together; users of its result come after it.

        Those of the constant phase come first, also those that the nest does not need.
        """
        last = max(inside)
        outside = [n.id for n in self.graph.nodes if n.id not in inside]
        before, after = ([n for n in outside if (n > last) is late] for late in (False, True))
        order = [*before, *sorted(inside), *after]
        return sorted(order, key=lambda n: phase_of(self.graph, n) is not Phase.CONSTANT)

    def _axes(self, inside: dict[int, tuple[Index, ...]]) -> Axes:
        """The contracted axes: of arrays that are made for the nest, along the chain."""
        axes: dict[int, tuple[tuple[int, Index], ...]] = {}
        for node, indices in inside.items():
            out = self.program.steps[self.graph.nodes[node].step].out
            if out.tensor != self.target:
                axes[node] = tuple((out.indices.index(i), i) for i in indices if i in out.indices)
        return axes


def orbit_nests(
    program: FormulaSequence, arrays: Collection[Tensor], longest: int
) -> Iterator[OrbitNest]:
    """The triangular nests in which large arrays are contracted."""
    large = tuple(t for t in arrays if t.role is Role.TEMP and t.spaces)
    for step in program.steps:
        for found in symmetric_results(program, step, large):
            nest = _nest(found.program, found.result, found.chain, large)
            if nest is not None:
                yield nest
        if step.out.tensor in large or len(program.producers(step.out.tensor)) != 1:
            continue
        chains = set()
        for total in orbit_sums(step, large, longest):
            chains.add(total.chain)
            steps = tuple(total.step if s.id == step.id else s for s in program.steps)
            nest = _nest(replace(program, steps=steps), step.out.tensor, total.chain, large)
            if nest is not None:
                yield nest
        for chain in _invariant_chains(program, step, large, longest):
            if chain not in chains:
                apart, sums = arrangements_apart(program, step, large)
                nest = _nest(apart, step.out.tensor, chain, (*large, *sums))
                if nest is not None and nest.is_symmetric():
                    yield nest


def _invariant_chains(
    program: FormulaSequence, step: Step, arrays: Collection[Tensor], longest: int
) -> Iterator[tuple[Index, ...]]:
    """Summed indices under whose exchanges the summand as a whole does not change."""
    if not any(r.tensor in arrays for r in step.operands):
        return
    for space in dict.fromkeys(i.space for i in step.sums):
        chain = tuple(i for i in step.sums if i.space == space)
        if 2 <= len(chain) <= longest and all(
            exchange_sign(program, step, {one: two, two: one}) == 1 for one, two in pairwise(chain)
        ):
            yield chain


def _nest(
    program: FormulaSequence, made: Tensor, chain: tuple[Index, ...], large: tuple[Tensor, ...]
) -> OrbitNest | None:
    """An array and the producers of its operands in the loops of a chain; None if that is illegal.

    One step makes the array: a sum over the chain, or the result for a triangle, which others add
    to its target. Arrays of ``large`` should be contracted along the chain.
    """
    (root,) = program.producers(made)
    images = tuple(s for s in program.consumers(made) if set(chain) <= set(root.out.indices))
    # The axis of each loop, by array and reader.
    axes: dict[Tensor, dict[int, tuple[int, ...]]] = {}

    def follow(step: Step, bound: tuple[Index, ...]) -> bool:
        """Put producers of a step's operands into the loops; False if a large one cannot be."""
        for tensor in dict.fromkeys(r.tensor for r in step.operands if r.tensor.role is Role.TEMP):
            places = {
                tuple(r.indices.index(i) if i in r.indices else -1 for i in bound)
                for r in step.operands
                if r.tensor == tensor
            }
            place = next(iter(places))
            if len(places) > 1 or -1 in place:
                if tensor in large:
                    return False
                continue
            if step.id in axes.setdefault(tensor, {}):
                continue
            axes[tensor][step.id] = place
            for maker in program.producers(tensor):
                if not follow(maker, tuple(maker.out.indices[axis] for axis in place)):
                    return False
        return True

    if not follow(root, chain):
        return None
    inside = {t: w for t, w in axes.items() if set(w) == {s.id for s in program.consumers(t)}}
    # An array with readers outside stays outside, and with it everything that it is made from.
    if len(inside) < len(axes):
        return None
    recompute = tuple(t for t, w in inside.items() if len(set(w.values())) > 1)
    shorter = in_one_pass(
        added_directly(program, [t for t in recompute if only_added(program, t)]), inside
    )
    if len(shorter.steps) != len(program.steps):
        return _nest(shorter, made, chain, large)
    for tensor in recompute:
        read = {r.tensor for s in program.producers(tensor) for r in s.operands}
        if any(t in recompute or t.role is Role.GENERATED for t in read):
            return None
    graph = fusion_graph(program, recompute)
    bound: dict[int, tuple[Index, ...]] = {}
    for node in graph.nodes:
        step = program.steps[node.step]
        if step == root or step in images:
            bound[node.id] = chain
        elif step.out.tensor in inside:
            reader = node.reader if step.out.tensor in recompute else min(inside[step.out.tensor])
            assert reader is not None, "each copy of a recomputed array has a reader"
            place = inside[step.out.tensor][reader]
            bound[node.id] = tuple(step.out.indices[axis] for axis in place)
    if len({phase_of(graph, n) for n in bound}) > 1:
        return None
    target = images[0].out.tensor if images else made
    return OrbitNest(program, graph, target, chain, tuple(bound.items()))

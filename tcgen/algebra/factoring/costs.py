"""Costs of products and of sums at the planning extents, in flops (a multiply-add has 2).

Costs are those of ``model.calls`` calls of a bound program together: a product that depends only on
constants is computed once, all others at each call.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ..binary_orders import Tree, cheapest_tree, outer_indices, positions, volumes
from ..cost_model import CostModel
from .canonical_forms import Parts
from .sums import Algebra, Frame, Product, TermSum


@dataclass(slots=True)
class ProductCosts:
    """Costs of single products and additions, each computed once.

    Attributes:
        extents: planning extent of each space, by the number of the space.
        constant: labels of arrays that depend only on constants; the set of the algebra.
        orders: cost and cheapest order of each product computed so far.
        shapes: cost and cheapest order by the index sets of the factors.
    """

    extents: tuple[int, ...]
    model: CostModel
    constant: set[int] = field(default_factory=set)
    orders: dict[tuple[Parts, tuple[int, ...], int], tuple[int, Tree]] = field(default_factory=dict)
    shapes: dict[object, tuple[int, Tree]] = field(default_factory=dict)
    addition_costs: dict[tuple[int, ...], int] = field(default_factory=dict)

    def with_longer(self, space: int, factor: int) -> ProductCosts:
        """The costs where the extent of one space is ``factor`` times as large."""
        extents = list(self.extents)
        extents[space] *= factor
        return ProductCosts(tuple(extents), self.model, self.constant)

    def runs(self, labels: Iterable[int]) -> int:
        """Number of times that the product of some arrays is computed in ``model.calls`` calls."""
        return 1 if self.constant.issuperset(labels) else self.model.calls

    def volume(self, spaces: tuple[int, ...]) -> int:
        """Number of elements of an array, or of iterations of a loop nest, over some spaces."""
        total = 1
        for space in spaces:
            total *= self.extents[space]
        return total

    def traffic(self, arrays: Iterable[tuple[int, ...]]) -> int:
        """Cost of reading or writing some arrays, each given by its spaces."""
        if not self.model.element:
            return 0
        return int(self.model.element * sum(self.volume(spaces) for spaces in arrays))

    def addition(self, spaces: tuple[int, ...]) -> int:
        """Cost of adding one array to another."""
        cost = self.addition_costs.get(spaces)
        if cost is None:
            cost = int(self.model.addition * self.volume(spaces)) + self.traffic([spaces] * 3)
            self.addition_costs[spaces] = cost
        return cost

    def term(self, product: Product, rank: int) -> int:
        """Cost of a term, in its cheapest order, of a sum with ``rank`` left indices."""
        return self.cheapest_order(product, rank)[0]

    def cheapest_order(self, product: Product, rank: int) -> tuple[int, Tree]:
        """Cost and binary order (nested pairs of positions of factors) of a term."""
        parts, spaces = product
        memo = (parts, spaces, rank)
        result = self.orders.get(memo)
        if result is None:
            constant = _mask(tuple(n for n, (part, _) in enumerate(parts) if part in self.constant))
            shape = (len(parts), constant, self._volumes_by_holders(product, rank))
            result = self.shapes.get(shape)
            if result is None:
                result = self.shapes[shape] = self._cheapest_order(*shape)
            self.orders[memo] = result
        return result

    def _volumes_by_holders(self, product: Product, rank: int) -> tuple[tuple[int, int], ...]:
        """The indices of a product that the same factors hold, as one index.

        Returns:
            The holders as bits, the left side as the bit after the last factor, and the number of
            iterations over these indices, sorted.
        """
        parts, spaces = product
        holders = [(n < rank) << len(parts) for n in range(len(spaces))]
        for n, (_, held) in enumerate(parts):
            for index in held:
                holders[index] |= 1 << n
        merged: dict[int, int] = {}
        for held_by, space in zip(holders, spaces, strict=True):
            merged[held_by] = merged.get(held_by, 1) * self.extents[space]
        return tuple(sorted(merged.items()))

    def _cheapest_order(
        self, count: int, constant: int, indices: tuple[tuple[int, int], ...]
    ) -> tuple[int, Tree]:
        """Cost and cheapest order of ``count`` factors, by a dynamic program over their subsets.

        ``constant`` has the factors that depend only on constants, as bits, and ``indices`` the
        holders and the extent of each index.
        """
        calls, per_element = self.model.calls, self.model.element
        volume = volumes([extent for _, extent in indices])
        masks = [
            _mask(tuple(i for i, (held_by, _) in enumerate(indices) if held_by >> n & 1))
            for n in range(count + 1)
        ]
        left = masks.pop()
        if count == 1:
            summed = masks[0] & ~left
            return (volume(masks[0]) if summed else volume(left)) * (1 if constant else calls), 0
        outer = outer_indices(masks, left)
        traffic = [int(per_element * volume(o)) if per_element else 0 for o in outer]

        def joined(first: int, second: int, one: int, two: int) -> int:
            both = first | second
            cost = 2 * volume(outer[first] | outer[second])
            cost += traffic[first] + traffic[second] + traffic[both]
            return one + two + (calls if both & ~constant else 1) * cost

        presums = [
            (1 if constant >> n & 1 else calls) * volume(mask) if outer[1 << n] != mask else 0
            for n, mask in enumerate(masks)
        ]
        return cheapest_tree(presums, joined)


@dataclass(slots=True)
class SequenceCosts:
    """Costs of sums in which each binary product is computed once, and of their additions."""

    algebra: Algebra
    product_costs: ProductCosts
    nodes: dict[tuple[Product, int], tuple[tuple[object, int], ...]] = field(default_factory=dict)

    def at(self, product_costs: ProductCosts) -> SequenceCosts:
        """The same for other costs of products."""
        return SequenceCosts(self.algebra, product_costs)

    def binary_products(self, product: Product, frame: Frame) -> tuple[tuple[object, int], ...]:
        """Canonical key and cost of every binary product of a term in its cheapest order."""
        rank = frame.rank
        memo = (product, rank)
        result = self.nodes.get(memo)
        if result is None:
            result = self.nodes[memo] = self._binary_products(product, rank)
        return result

    def _binary_products(self, product: Product, rank: int) -> tuple[tuple[object, int], ...]:
        """Keys and costs of all nodes of the cheapest order."""
        parts, spaces = product
        if len(parts) == 1:
            return ()
        result: list[tuple[object, int]] = []
        stack = [self.product_costs.cheapest_order(product, rank)[1]]
        while stack:
            node = stack.pop()
            if isinstance(node, int):
                continue
            places = positions(node)
            others = {i for p, (_, held) in enumerate(parts) if p not in places for i in held}
            kinds = tuple(2 * s + (i < rank or i in others) for i, s in enumerate(spaces))
            key = self.algebra.forms.number(tuple(parts[p] for p in places), kinds)
            joint: set[int] = set()
            arrays = [{i for i, kind in enumerate(kinds) if kind % 2} & _held(parts, places)]
            for side in node:
                within = positions(side)
                outside = {i for p, (_, held) in enumerate(parts) if p not in within for i in held}
                arrays.append({i for i in _held(parts, within) if i < rank or i in outside})
                joint |= arrays[-1]
            flops = 2 * self.product_costs.volume(tuple(spaces[i] for i in joint))
            traffic = self.product_costs.traffic(
                tuple(spaces[i] for i in array) for array in arrays
            )
            runs = self.product_costs.runs(parts[p][0] for p in places)
            result.append((key, runs * (flops + traffic)))
            stack.extend(node)
        return tuple(result)

    def extra(self, product: Product, frame: Frame, computed: frozenset[object]) -> int:
        """Cost of a term beyond the binary products in ``computed``."""
        if len(product.factors) == 1:
            return self.product_costs.term(product, frame.rank)
        return sum(
            cost for key, cost in self.binary_products(product, frame) if key not in computed
        )

    def computed_by(self, sums: Iterable[TermSum]) -> frozenset[object]:
        """Keys of all binary products of some sums."""
        return frozenset(
            key
            for total in sums
            for term in total.terms
            for key, _ in self.binary_products(term, total.frame)
        )

    def additions(self, total: TermSum) -> int:
        """Cost of adding the terms of a sum."""
        count = len(total.terms) - 1
        return count * self.product_costs.addition(total.frame.spaces) * self.runs(total.terms)

    def runs(self, terms: Iterable[Product]) -> int:
        """Number of times that some terms are computed in ``model.calls`` calls."""
        return self.product_costs.runs(label for term in terms for label, _ in term.factors)

    def total(self, sums: Iterable[TermSum]) -> int:
        """Cost of some sums together: their contractions and additions."""
        cost_of: dict[object, int] = {}
        additions = 0
        for one in sums:
            additions += self.additions(one)
            for term in one.terms:
                cost_of.update(self.binary_products(term, one.frame))
        return sum(cost_of.values()) + additions


def _mask(indices: tuple[int, ...]) -> int:
    """A set of indices as bits."""
    mask = 0
    for index in indices:
        mask |= 1 << index
    return mask


def _held(parts: Parts, places: tuple[int, ...]) -> set[int]:
    """Indices of the factors at some places."""
    return {i for p in places for i in parts[p][1]}

"""Costs of products and sums in which multiply-adds are counted once per symmetry-unique element.

A product of three and more factors is split in its cheapest order under these costs, and each inner
product becomes a symmetric array.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

from ...ir.cost import equal_points
from ..binary_orders import Tree, cheapest_tree, outer_indices, positions
from ..permutation_groups import Group, stages_of
from .canonical_forms import Part
from .costs import ProductCosts, SequenceCosts
from .greedy import Search, State
from .sums import Frame, Product, TermSum, trivial

Operand: TypeAlias = tuple[tuple[int, ...], Group]  # index of each axis, symmetry group of the axes


@dataclass(frozen=True, slots=True)
class _Order:
    """The cheapest binary order of a term, as nested pairs of positions of factors.

    ``products`` has the canonical key and the cost of each binary product.
    """

    tree: Tree
    products: tuple[tuple[object, int], ...]


@dataclass(frozen=True, slots=True)
class _Subsets:
    """The subsets of the factors of a term, as bits.

    Attributes:
        outer: indices of the product of each subset: those that the left side or another factor
            holds.
        operands: indices and symmetry of the product of each subset, as far as they are known.
    """

    product: Product
    frame: Frame
    outer: list[frozenset[int]]
    operands: dict[int, Operand] = field(default_factory=dict)

    @staticmethod
    def of(product: Product, frame: Frame) -> _Subsets:
        """The subsets of a term."""
        masks = [sum(1 << i for i in frozenset(held)) for _, held in product.factors]
        indices = range(len(product.spaces))
        outer = outer_indices(masks, (1 << frame.rank) - 1)
        return _Subsets(
            product, frame, [frozenset(i for i in indices if mask >> i & 1) for mask in outer]
        )


@dataclass(slots=True)
class PackedSequenceCosts(SequenceCosts):
    """Costs of sums in which each binary product is computed once, at its packed cost.

    The product of several factors inside a term is an array. It gets every symmetry under which
    the rest of the term and the left side do not change.

    Attributes:
        equal: number of equal multiply-adds of contractions, by their operands.
        groups: symmetry groups of products inside terms.
        images: additions that make a sum symmetric, by its group.
    """

    equal: dict[object, int] = field(default_factory=dict)
    groups: dict[object, Group] = field(default_factory=dict)
    images: dict[Group, int] = field(default_factory=dict)
    orders: dict[tuple[Product, Frame], _Order] = field(default_factory=dict)

    def at(self, product_costs: ProductCosts) -> PackedSequenceCosts:
        """The same for other costs of products."""
        return PackedSequenceCosts(
            self.algebra, product_costs, equal=self.equal, groups=self.groups
        )

    def binary_products(self, product: Product, frame: Frame) -> tuple[tuple[object, int], ...]:
        """Canonical key and cost of every binary product of a term in its cheapest order."""
        return self._order(product, frame).products

    def additions(self, total: TermSum) -> int:
        """Cost of adding the terms of a sum and, where they lack its symmetry, their images."""
        count = len(total.terms) - 1 + self._image_additions(total)
        return count * self.product_costs.addition(total.frame.spaces) * self.runs(total.terms)

    def _image_additions(self, total: TermSum) -> int:
        """Number of additions that make a sum symmetric; 0 if its terms are symmetric."""
        group = total.frame.group
        if len(group) == 1:
            return 0
        count = self.images.get(group)
        if count is None:
            count = self.images[group] = sum(len(stage) - 1 for stage in stages_of(group))
        own_group = self.algebra.invariance
        symmetric = all(len(own_group(t, total.frame)) == len(group) for t in total.terms)
        return 0 if symmetric else count

    def tree(self, product: Product, frame: Frame) -> Tree:
        """Cheapest order of a term, as nested pairs of positions of factors."""
        return self._order(product, frame).tree

    def _order(self, product: Product, frame: Frame) -> _Order:
        memo = (product, frame)
        order = self.orders.get(memo)
        if order is None:
            subsets = _Subsets.of(product, frame)
            tree = self._cheapest_tree(subsets)
            order = self.orders[memo] = _Order(tree, self._products(tree, subsets))
        return order

    def _cheapest_tree(self, subsets: _Subsets) -> Tree:
        """The cheapest order of a term."""
        costs, (parts, spaces) = self.product_costs, subsets.product
        varies = sum(1 << n for n, (label, _) in enumerate(parts) if label not in costs.constant)

        def joined(first: int, second: int, one: int, two: int) -> int:
            runs = costs.model.calls if (first | second) & varies else 1
            return one + two + runs * self._contraction(subsets, first, second)

        presums = [
            costs.volume(tuple(spaces[i] for i in frozenset(held))) * costs.runs((label,))
            if subsets.outer[1 << n] != frozenset(held)
            else 0
            for n, (label, held) in enumerate(parts)
        ]
        return cheapest_tree(presums, joined)[1]

    def _operand(self, subsets: _Subsets, subset: int) -> Operand:
        """Indices and symmetry of the product of a subset."""
        operand = subsets.operands.get(subset)
        if operand is None:
            single = subset & (subset - 1) == 0
            make = self._presummed if single else self._symmetric
            operand = subsets.operands[subset] = make(subsets, subset)
        return operand

    def _presummed(self, subsets: _Subsets, subset: int) -> Operand:
        """One factor; without symmetry where it is summed over indices that only it has."""
        label, indices = subsets.product.factors[subset.bit_length() - 1]
        outer = subsets.outer[subset]
        if outer == frozenset(indices):
            return indices, self.algebra.forms.groups[label]
        return tuple(sorted(outer)), trivial(len(outer))

    def _products(self, tree: Tree, subsets: _Subsets) -> tuple[tuple[object, int], ...]:
        """Canonical key and cost of each binary product of an order."""
        parts, spaces = subsets.product
        result: list[tuple[object, int]] = []
        stack = [tree]
        while stack:
            node = stack.pop()
            if isinstance(node, int):
                continue
            stack.extend(node)
            first, second = (sum(1 << n for n in positions(side)) for side in node)
            both = first | second
            kinds = tuple(2 * s + (i in subsets.outer[both]) for i, s in enumerate(spaces))
            factors = tuple(part for n, part in enumerate(parts) if both >> n & 1)
            flops = self._contraction(subsets, first, second)
            flops *= self.product_costs.runs(label for label, _ in factors)
            result.append((self.algebra.forms.form(factors, kinds).key, flops))
        return tuple(result)

    def _contraction(self, subsets: _Subsets, left: int, right: int) -> int:
        """Cost of the contraction of two subsets; equal multiply-adds are done once."""
        first_indices, first_group = self._operand(subsets, left)
        second_indices, second_group = self._operand(subsets, right)
        spaces, out = subsets.product.spaces, subsets.outer[left | right]
        loops = subsets.outer[left] | subsets.outer[right]
        flops = 2 * self.product_costs.volume(tuple(spaces[i] for i in loops))
        arrays = (first_indices, second_indices, out)
        flops += self.product_costs.traffic(tuple(spaces[i] for i in array) for array in arrays)
        if len(first_group) == 1 and len(second_group) == 1:
            return flops
        number: dict[int, int] = {}
        for i in (*first_indices, *second_indices):
            number.setdefault(i, len(number))
        one = tuple(number[i] for i in first_indices)
        two = tuple(number[i] for i in second_indices)
        outer = frozenset(number[i] for i in out)
        memo = (one, first_group, two, second_group, outer)
        equal = self.equal.get(memo)
        if equal is None:
            first_perms, second_perms = [p for p, _ in first_group], [p for p, _ in second_group]
            equal = self.equal[memo] = equal_points((first_perms, one), (second_perms, two), outer)
        return flops // equal

    def _symmetric(self, subsets: _Subsets, subset: int) -> Operand:
        """Axes of the array of some factors of a term, and the symmetry that it certainly has."""
        parts, spaces = subsets.product
        full = (1 << len(parts)) - 1
        held, unseen = self.algebra.unseen(subsets.product, subsets.frame, full ^ subset)
        inner = tuple(part for n, part in enumerate(parts) if subset >> n & 1)
        memo = (inner, spaces, held, unseen)
        group = self.groups.get(memo)
        if group is None:
            group = self.groups[memo] = self._extended(inner, spaces, held, unseen)
        return held, group

    def _extended(
        self, inner: tuple[Part, ...], spaces: tuple[int, ...], held: tuple[int, ...], group: Group
    ) -> Group:
        """``group`` with those symmetries of the product itself that map ``group`` to itself."""
        free = set(held)
        kinds = tuple(2 * s + (i in free) for i, s in enumerate(spaces))
        form = self.algebra.forms.form(inner, kinds)
        place = {i: n for n, i in enumerate(held)}
        start = [place[i] for i in form.order if i in free]
        signs = dict(group)
        extended = dict(signs)
        for order, sign in form.ties():
            images = dict(zip(start, (place[i] for i in order if i in free), strict=True))
            own = tuple(images[n] for n in range(len(held)))
            if own in extended:
                continue
            inverse = {image: n for n, image in enumerate(own)}
            # own . perm . own^-1 must be in the group with the same sign
            if all(
                signs.get(tuple(own[perm[inverse[n]]] for n in range(len(own)))) == perm_sign
                for perm, perm_sign in group
            ):
                for perm, perm_sign in group:
                    extended[tuple(own[n] for n in perm)] = perm_sign * sign * form.sign
        return tuple(sorted(extended.items()))


def split_products(search: Search, costs: PackedSequenceCosts, state: State) -> State:
    """A state of equal value: at most two factors a term, split in their cheapest packed order."""
    result = state.copy()
    pending = list(result.sums)
    while pending:
        label = pending.pop(0)
        total = result.sums[label]
        split_sum = TermSum(total.frame, {})
        for term, coeff in sorted(total.terms.items()):
            product, factor = _split(search, costs, result, label, term, pending)
            split_sum.add(product, coeff * factor)
        result.sums[label] = split_sum
    return result


def _split(
    search: Search,
    costs: PackedSequenceCosts,
    state: State,
    label: int,
    term: Product,
    pending: list[int],
) -> tuple[Product, Fraction]:
    """A term of sum ``label`` as two factors, and its coefficient; new arrays go to ``pending``."""
    frame = state.sums[label].frame
    scale = Fraction(1)
    while len(term.factors) > 2:
        node = costs.tree(term, frame)
        assert isinstance(node, tuple)
        longer_side = max((positions(side) for side in node), key=len)
        mask = sum(1 << n for n in range(len(term.factors)) if n not in longer_side)
        split = search.algebra.split(term, frame, mask)
        if split is None:  # the term is zero by the symmetry of the left side
            return term, Fraction(0)
        inner = TermSum(split.frame, {split.rest: Fraction(1)})
        array, axes, factor = search.array(state, inner, label, pending)
        joined = search.algebra.joined(split, array, axes)
        term, sign = search.algebra.normal(joined, frame)
        scale *= factor * split.sign * sign
        if not scale:
            break
    return term, scale

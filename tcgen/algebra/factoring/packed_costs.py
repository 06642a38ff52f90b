"""Costs of products and sums where multiply-adds that are equal by symmetry are done once."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...ir.cost import equal_points
from ..permutation_groups import Group
from .canonical_forms import Part
from .costs import ProductCosts, SequenceCosts, positions
from .sums import Frame, Product, TermSum, trivial
from .symmetriser import stages_of

Operand = tuple[tuple[int, ...], Group]  # index on each axis, symmetry group of the axes


@dataclass(slots=True)
class PackedSequenceCosts(SequenceCosts):
    """Costs of sums in which each binary product is computed once, at its packed cost.

    The product of several factors inside a term is an array. It gets every symmetry under which
    the rest of the term and the left side do not change.

    Attributes:
        orders: number of equal multiply-adds of contractions, by their operands.
        groups: symmetry groups of products inside terms.
        images: additions that make a sum symmetric, by its group.
        trees: cheapest order of each term.
        packed: keys and costs of the binary products of each term.
    """

    orders: dict[object, int] = field(default_factory=dict)
    groups: dict[object, Group] = field(default_factory=dict)
    images: dict[Group, int] = field(default_factory=dict)
    trees: dict[tuple[Product, Frame], object] = field(default_factory=dict)
    packed: dict[tuple[Product, Frame], tuple[tuple[object, int], ...]] = field(
        default_factory=dict
    )

    def at(self, product_costs: ProductCosts) -> PackedSequenceCosts:
        """The same for other costs of products."""
        return PackedSequenceCosts(
            self.algebra, product_costs, orders=self.orders, groups=self.groups
        )

    def binary_products(self, product: Product, frame: Frame) -> tuple[tuple[object, int], ...]:
        """Canonical key and cost of every binary product of a term in its cheapest order."""
        memo = (product, frame)
        if memo not in self.packed:
            self._find_order(product, frame)
        return self.packed[memo]

    def additions(self, total: TermSum) -> int:
        """Cost of adding the terms of a sum and, where they lack its symmetry, their images."""
        count = len(total.terms) - 1 + self._image_additions(total)
        return count * self.product_costs.addition(total.frame.spaces) * self.runs(total.terms)

    def _image_additions(self, total: TermSum) -> int:
        """Number of additions that make a sum symmetric; 0 where its terms are symmetric."""
        group = total.frame.group
        if len(group) == 1:
            return 0
        count = self.images.get(group)
        if count is None:
            count = self.images[group] = sum(len(stage) - 1 for stage in stages_of(group))
        own_group = self.algebra.invariance
        symmetric = all(len(own_group(t, total.frame)) == len(group) for t in total.terms)
        return 0 if symmetric else count

    def tree(self, product: Product, frame: Frame) -> object:
        """Cheapest order of a term, as nested pairs of positions of factors."""
        memo = (product, frame)
        if memo not in self.trees:
            self._find_order(product, frame)
        return self.trees[memo]

    def _find_order(self, product: Product, frame: Frame) -> None:
        """Cheapest order and binary products of a term, by a dynamic program over its factors."""
        parts, spaces = product
        count = len(parts)
        full = (1 << count) - 1
        left = frozenset(range(frame.rank))
        held = [frozenset(indices) for _, indices in parts]
        inside = [frozenset[int]()] * (full + 1)  # indices of a subset of the factors
        for subset in range(1, full + 1):
            low = subset & -subset
            inside[subset] = inside[subset ^ low] | held[low.bit_length() - 1]
        # indices of the result of a subset: those that the left side or another factor holds
        outer = [inside[s] & (left | inside[full ^ s]) for s in range(full + 1)]
        operands: list[Operand] = [((), ())] * (full + 1)
        best: list[tuple[int, object]] = [(0, 0)] * (full + 1)
        for factor, (label, indices) in enumerate(parts):
            single = 1 << factor
            if outer[single] == held[factor]:
                operands[single] = (indices, self.algebra.forms.groups[label])
                best[single] = (0, factor)
            else:
                operands[single] = self._without_symmetry(outer[single])
                summation = self.product_costs.volume(tuple(spaces[i] for i in held[factor]))
                summation *= self.product_costs.runs((label,))
                best[single] = (summation, factor)
        for subset in range(1, full + 1):
            low = subset & -subset
            rest = subset ^ low
            if not rest:
                continue
            chosen: tuple[int, object] | None = None
            runs = self.product_costs.runs(p for n, (p, _) in enumerate(parts) if subset >> n & 1)
            second = rest
            while second:
                first = subset ^ second
                cost = best[first][0] + best[second][0]
                cost += runs * self._contraction(
                    operands[first],
                    operands[second],
                    outer[first] | outer[second],
                    outer[subset],
                    spaces,
                )
                if chosen is None or cost < chosen[0]:
                    chosen = (cost, (best[first][1], best[second][1]))
                second = (second - 1) & rest
            assert chosen is not None
            best[subset] = chosen
            if subset != full:
                operands[subset] = self._symmetric(product, frame, subset)
        self.trees[product, frame] = best[full][1]
        result: list[tuple[object, int]] = []
        stack = [best[full][1]] if count > 1 else []
        while stack:
            node = stack.pop()
            if isinstance(node, int):
                continue
            assert isinstance(node, tuple)
            stack.extend(node)
            first, second = (_mask(side) for side in node)
            both = first | second
            flops = self._contraction(
                operands[first], operands[second], outer[first] | outer[second], outer[both], spaces
            )
            kinds = tuple(2 * s + (i in outer[both]) for i, s in enumerate(spaces))
            factors = tuple(part for n, part in enumerate(parts) if both >> n & 1)
            flops *= self.product_costs.runs(label for label, _ in factors)
            result.append((self.algebra.forms.form(factors, kinds).key, flops))
        self.packed[product, frame] = tuple(result)

    def _contraction(
        self,
        first: Operand,
        second: Operand,
        loops: frozenset[int],
        out: frozenset[int],
        spaces: tuple[int, ...],
    ) -> int:
        """Cost of a contraction whose equal multiply-adds are done once.

        Args:
            first: an operand.
            second: the other one.
            loops: indices of the contraction.
            out: those that its result holds.
            spaces: of all indices.
        """
        (first_indices, first_group), (second_indices, second_group) = first, second
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
        order = self.orders.get(memo)
        if order is None:
            first_perms, second_perms = [p for p, _ in first_group], [p for p, _ in second_group]
            order = self.orders[memo] = equal_points((first_perms, one), (second_perms, two), outer)
        return flops // order

    def _without_symmetry(self, outer: frozenset[int]) -> Operand:
        held = tuple(sorted(outer))
        return held, trivial(len(held))

    def _symmetric(self, product: Product, frame: Frame, subset: int) -> Operand:
        """Axes of the array of some factors of a term, and the symmetry that it certainly has."""
        parts, spaces = product
        full = (1 << len(parts)) - 1
        held, unseen = self.algebra.unseen(product, frame, full ^ subset)
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


def _mask(node: object) -> int:
    """The factors below a node of a binary order, as bits."""
    return sum(1 << n for n in positions(node))

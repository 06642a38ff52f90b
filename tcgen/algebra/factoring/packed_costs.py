"""What products and sums cost where symmetry is used: equal multiply-adds are done once."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...ir.orbits import equal_points
from ..permutation_groups import Group
from .canonical_forms import Part
from .costs import Ledger, Prices, positions
from .sums import Frame, Product, Sum
from .symmetriser import stages_of

Side = tuple[tuple[int, ...], Group]  # indices on the axes, group of the axes


@dataclass(slots=True)
class PackedLedger(Ledger):
    """Products of a state, each paid for once, at their packed cost.

    A product of several factors inside a term is an array that is made symmetric in whatever the
    rest of the term and the left side cannot see of it.
    """

    orders: dict[object, int] = field(default_factory=dict)
    groups: dict[object, Group] = field(default_factory=dict)
    images: dict[Group, int] = field(default_factory=dict)
    trees: dict[tuple[Product, Frame], object] = field(default_factory=dict)
    packed: dict[tuple[Product, Frame], tuple[tuple[object, int], ...]] = field(
        default_factory=dict
    )

    def at(self, prices: Prices) -> PackedLedger:
        """The same account at other prices."""
        return PackedLedger(self.algebra, prices, orders=self.orders, groups=self.groups)

    def products(self, product: Product, frame: Frame) -> tuple[tuple[object, int], ...]:
        """Key and flops of every binary product of a term in its cheapest order."""
        memo = (product, frame)
        found = self.packed.get(memo)
        if found is None:
            self._weigh(product, frame)
            found = self.packed[memo]
        return found

    def additions(self, one: Sum) -> int:
        """Cost of adding the terms of a sum and, where they lack its symmetry, their images."""
        adds = len(one.terms) - 1 + self._images(one)
        return adds * self.prices.addition(one.frame.spaces)

    def _images(self, one: Sum) -> int:
        group = one.frame.group
        if len(group) == 1:
            return 0
        found = self.images.get(group)
        if found is None:
            found = self.images[group] = sum(len(stage) - 1 for stage in stages_of(group))
        own = self.algebra.invariance
        return found if any(len(own(t, one.frame)) < len(group) for t in one.terms) else 0

    def tree(self, product: Product, frame: Frame) -> object:
        """Cheapest order of a term as nested pairs of positions."""
        memo = (product, frame)
        if memo not in self.trees:
            self._weigh(product, frame)
        return self.trees[memo]

    def _weigh(self, product: Product, frame: Frame) -> None:
        parts, spaces = product
        count = len(parts)
        full = (1 << count) - 1
        left = frozenset(range(frame.rank))
        held = [frozenset(ix) for _, ix in parts]
        inside = [frozenset[int]()] * (full + 1)
        for subset in range(1, full + 1):
            low = subset & -subset
            inside[subset] = inside[subset ^ low] | held[low.bit_length() - 1]
        outer = [inside[s] & (left | inside[full ^ s]) for s in range(full + 1)]
        sides: list[Side] = [((), ())] * (full + 1)
        best: list[tuple[int, object]] = [(0, 0)] * (full + 1)
        for k, (label, indices) in enumerate(parts):
            one = 1 << k
            if outer[one] == held[k]:
                sides[one] = (indices, self.algebra.forms.groups[label])
                best[one] = (0, k)
            else:
                sides[one] = self._plain(outer[one])
                best[one] = (self.prices.volume(tuple(spaces[i] for i in held[k])), k)
        for subset in range(1, full + 1):
            low = subset & -subset
            rest = subset ^ low
            if not rest:
                continue
            chosen: tuple[int, object] | None = None
            part = rest
            while part:
                one = subset ^ part
                cost = best[one][0] + best[part][0]
                cost += self._contraction(
                    sides[one], sides[part], outer[one] | outer[part], outer[subset], spaces
                )
                if chosen is None or cost < chosen[0]:
                    chosen = (cost, (best[one][1], best[part][1]))
                part = (part - 1) & rest
            assert chosen is not None
            best[subset] = chosen
            if subset != full:
                sides[subset] = self._symmetric(product, frame, subset)
        self.trees[product, frame] = best[full][1]
        found: list[tuple[object, int]] = []
        stack = [best[full][1]] if count > 1 else []
        while stack:
            node = stack.pop()
            if isinstance(node, int):
                continue
            assert isinstance(node, tuple)
            stack.extend(node)
            one, two = (_mask(n) for n in node)
            flops = self._contraction(
                sides[one], sides[two], outer[one] | outer[two], outer[one | two], spaces
            )
            kinds = tuple(2 * s + (n in outer[one | two]) for n, s in enumerate(spaces))
            chosen_parts = tuple(p for n, p in enumerate(parts) if (one | two) >> n & 1)
            found.append((self.algebra.forms.form(chosen_parts, kinds).key, flops))
        self.packed[product, frame] = tuple(found)

    def _contraction(
        self,
        one: Side,
        two: Side,
        points: frozenset[int],
        kept: frozenset[int],
        spaces: tuple[int, ...],
    ) -> int:
        flops = 2 * self.prices.volume(tuple(spaces[i] for i in points))
        flops += self.prices.moved(tuple(spaces[i] for i in x) for x in (one[0], two[0], kept))
        if len(one[1]) == 1 and len(two[1]) == 1:
            return flops
        number: dict[int, int] = {}
        for i in (*one[0], *two[0]):
            number.setdefault(i, len(number))
        first = tuple(number[i] for i in one[0])
        second = tuple(number[i] for i in two[0])
        out = frozenset(number[i] for i in kept)
        memo = (first, one[1], second, two[1], out)
        order = self.orders.get(memo)
        if order is None:
            order = equal_points(
                ([p for p, _ in one[1]], first), ([p for p, _ in two[1]], second), out
            )
            self.orders[memo] = order
        return flops // order

    def _plain(self, outer: frozenset[int]) -> Side:
        held = tuple(sorted(outer))
        return held, ((tuple(range(len(held))), 1),)

    def _symmetric(self, product: Product, frame: Frame, subset: int) -> Side:
        """Axes and certain symmetry of the array of some factors of a term."""
        parts, spaces = product
        full = (1 << len(parts)) - 1
        held, group = self.algebra.unseen(product, frame, full ^ subset)
        inner = tuple(p for n, p in enumerate(parts) if subset >> n & 1)
        memo = (inner, spaces, held, group)
        found = self.groups.get(memo)
        if found is None:
            found = self.groups[memo] = self._joined(inner, spaces, held, group)
        return held, found

    def _joined(
        self, inner: tuple[Part, ...], spaces: tuple[int, ...], held: tuple[int, ...], group: Group
    ) -> Group:
        """``group`` with the symmetries of the product itself that respect it."""
        free = set(held)
        kinds = tuple(2 * s + (n in free) for n, s in enumerate(spaces))
        form = self.algebra.forms.form(inner, kinds)
        place = {i: n for n, i in enumerate(held)}
        start = [place[i] for i in form.order if i in free]
        signs = dict(group)
        found = dict(signs)
        for order, sign in form.ties():
            images = dict(zip(start, (place[i] for i in order if i in free), strict=True))
            own = tuple(images[n] for n in range(len(held)))
            if own in found:
                continue
            back = {image: n for n, image in enumerate(own)}
            # own . g . own^-1 has to be in the group with the same sign
            if all(
                signs.get(tuple(own[g[back[n]]] for n in range(len(own)))) == s for g, s in group
            ):
                for g, s in group:
                    found[tuple(own[n] for n in g)] = s * sign * form.sign
        return tuple(sorted(found.items()))


def _mask(node: object) -> int:
    return sum(1 << n for n in positions(node))

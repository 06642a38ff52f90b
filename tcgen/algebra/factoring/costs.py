"""What products and sums cost at the planning extents, in flops."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ..cost_model import CostModel
from .canonical_forms import Parts
from .sums import Algebra, Frame, Product, Sum


@dataclass(slots=True)
class Prices:
    """Flops of products at the planning extents, remembered."""

    extents: tuple[int, ...]  # of each space number
    model: CostModel
    known: dict[tuple[Parts, tuple[int, ...], int], tuple[int, object]] = field(
        default_factory=dict
    )
    shapes: dict[object, tuple[int, object]] = field(default_factory=dict)
    sums: dict[tuple[int, ...], int] = field(default_factory=dict)

    def with_longer(self, space: int, factor: int) -> Prices:
        """Prices where the extent of one space is larger."""
        extents = list(self.extents)
        extents[space] *= factor
        return Prices(tuple(extents), self.model)

    def volume(self, spaces: tuple[int, ...]) -> int:
        """Number of elements."""
        total = 1
        for s in spaces:
            total *= self.extents[s]
        return total

    def moved(self, arrays: Iterable[tuple[int, ...]]) -> int:
        """Cost of reading or writing some arrays, each given by its spaces."""
        if not self.model.element:
            return 0
        return int(self.model.element * sum(self.volume(spaces) for spaces in arrays))

    def addition(self, spaces: tuple[int, ...]) -> int:
        """Cost of adding one array to another."""
        found = self.sums.get(spaces)
        if found is None:
            found = int(self.model.addition * self.volume(spaces)) + self.moved([spaces] * 3)
            self.sums[spaces] = found
        return found

    def term(self, product: Product, rank: int) -> int:
        """Flops of a term added to its sum, in the cheapest order."""
        return self.best(product, rank)[0]

    def best(self, product: Product, rank: int) -> tuple[int, object]:
        """Flops and order (nested pairs of positions) of a term."""
        parts, spaces = product
        memo = (parts, spaces, rank)
        found = self.known.get(memo)
        if found is None:
            masks = []
            for _, held in parts:
                mask = 0
                for i in held:
                    mask |= 1 << i
                masks.append(mask)
            shape = (tuple(masks), spaces, rank)
            found = self.shapes.get(shape)
            if found is None:
                found = self.shapes[shape] = self._best(tuple(masks), spaces, rank)
            self.known[memo] = found
        return found

    def _best(
        self, masks: tuple[int, ...], spaces: tuple[int, ...], rank: int
    ) -> tuple[int, object]:
        widths = [self.extents[s] for s in spaces]

        def volume(mask: int) -> int:
            total, place = 1, 0
            while mask:
                if mask & 1:
                    total *= widths[place]
                mask >>= 1
                place += 1
            return total

        per_element = self.model.element
        left = (1 << rank) - 1
        count = len(masks)
        if count == 1:
            inner = masks[0] & ~left
            return (volume(masks[0]) if inner else volume(left)), 0
        full = (1 << count) - 1
        union = [0] * (full + 1)
        for subset in range(1, full + 1):
            low = subset & -subset
            union[subset] = union[subset ^ low] | masks[low.bit_length() - 1]
        outer = [union[s] & (left | union[full ^ s]) for s in range(full + 1)]
        best: list[tuple[int, object]] = [(0, 0)] * (full + 1)
        for k in range(count):
            alone = outer[1 << k] != masks[k]
            best[1 << k] = (volume(masks[k]) if alone else 0, k)
        for subset in range(1, full + 1):
            low = subset & -subset
            rest = subset ^ low
            if not rest:
                continue
            chosen: tuple[int, object] | None = None
            part = rest
            while part:
                one = subset ^ part
                cost = best[one][0] + best[part][0] + 2 * volume(outer[one] | outer[part])
                if per_element:
                    moved = volume(outer[one]) + volume(outer[part]) + volume(outer[subset])
                    cost += int(per_element * moved)
                if chosen is None or cost < chosen[0]:
                    chosen = (cost, (best[one][1], best[part][1]))
                part = (part - 1) & rest
            assert chosen is not None
            best[subset] = chosen
        return best[full]


@dataclass(slots=True)
class Ledger:
    """Products of a state, each paid for once, and what the additions cost."""

    algebra: Algebra
    prices: Prices
    nodes: dict[tuple[Product, int], tuple[tuple[object, int], ...]] = field(default_factory=dict)

    def at(self, prices: Prices) -> Ledger:
        """The same account at other prices."""
        return Ledger(self.algebra, prices)

    def products(self, product: Product, frame: Frame) -> tuple[tuple[object, int], ...]:
        """Key and flops of every binary product of a term in its cheapest order."""
        rank = frame.rank
        memo = (product, rank)
        found = self.nodes.get(memo)
        if found is None:
            found = self.nodes[memo] = self._products(product, rank)
        return found

    def _products(self, product: Product, rank: int) -> tuple[tuple[object, int], ...]:
        parts, spaces = product
        if len(parts) == 1:
            return ()
        found: list[tuple[object, int]] = []
        stack = [self.prices.best(product, rank)[1]]
        while stack:
            node = stack.pop()
            if isinstance(node, int):
                continue
            assert isinstance(node, tuple)
            places = positions(node)
            others = {i for p, (_, ix) in enumerate(parts) if p not in places for i in ix}
            kinds = tuple(2 * s + (n < rank or n in others) for n, s in enumerate(spaces))
            key = self.algebra.forms.number(tuple(parts[p] for p in places), kinds)
            joint: set[int] = set()
            arrays = [{n for n, kind in enumerate(kinds) if kind % 2} & _held(parts, places)]
            for side in node:
                within = positions(side)
                inside = {i for p in within for i in parts[p][1]}
                outside = {i for p, (_, ix) in enumerate(parts) if p not in within for i in ix}
                arrays.append({i for i in inside if i < rank or i in outside})
                joint |= arrays[-1]
            flops = 2 * self.prices.volume(tuple(spaces[i] for i in joint))
            moved = self.prices.moved(tuple(spaces[i] for i in held) for held in arrays)
            found.append((key, flops + moved))
            stack.extend(node)
        return tuple(found)

    def extra(self, product: Product, frame: Frame, paid: frozenset[object]) -> int:
        """Flops of a term beyond the products that are paid for."""
        if len(product[0]) == 1:
            return self.prices.term(product, frame.rank)
        return sum(flops for key, flops in self.products(product, frame) if key not in paid)

    def paid(self, sums: Iterable[Sum]) -> frozenset[object]:
        """Keys of all products of some sums."""
        return frozenset(
            key
            for total in sums
            for term in total.terms
            for key, _ in self.products(term, total.frame)
        )

    def additions(self, one: Sum) -> int:
        """Cost of adding the terms of a sum."""
        return (len(one.terms) - 1) * self.prices.addition(one.frame.spaces)

    def total(self, sums: Iterable[Sum]) -> int:
        """Flops of some sums, contractions and additions."""
        flops: dict[object, int] = {}
        additions = 0
        for one in sums:
            additions += self.additions(one)
            for term in one.terms:
                flops.update(self.products(term, one.frame))
        return sum(flops.values()) + additions


def _held(parts: Parts, places: tuple[int, ...]) -> set[int]:
    return {i for p in places for i in parts[p][1]}


def positions(node: object) -> tuple[int, ...]:
    """Positions of the factors below a node of an order."""
    if isinstance(node, int):
        return (node,)
    assert isinstance(node, tuple)
    return tuple(p for side in node for p in positions(side))

"""Canonical forms of products over numbered indices, the inner loop of the factoring search.

A product is a tuple of factors ``(label, indices)``. Indices are small integers, those of the left
side of the sum first. :class:`Forms` knows the symmetry group of each label and finds the least
labelling of a product. The left side with its group may take part as one more factor; two terms of
a sum then have one form where a permutation of the left side makes them equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import TypeAlias

from ..equations.labelling import UNLABELLED, least_labelling, refined_ranks
from ..permutation_groups import Group, Images, images_of, signed_rearrangements

Part: TypeAlias = tuple[int, tuple[int, ...]]  # label, indices
Parts: TypeAlias = tuple[Part, ...]

# Labels from here on are left sides; they sort behind all factors (see interning for the others).
LEFT = 1_000_000


@dataclass(frozen=True, slots=True)
class Form:
    """The canonical form of a product: its least labelling.

    Attributes:
        key: equal for equal products.
        sign: the product is this sign times its canonical form.
        order: indices in the order of their new labels.
        parts: the factors with new labels; the left side, if it takes part, is the last.
        least: each (order, sign) that gives the same form and has twins in ascending order.
        twins: sets of indices that all factors allow to exchange, with the sign of one exchange.
            Quadruples have hundreds of ties, nearly all of them by twins.
    """

    key: tuple[object, ...]
    sign: int
    order: tuple[int, ...]
    parts: Parts
    least: tuple[tuple[tuple[int, ...], int], ...]
    twins: tuple[tuple[tuple[int, ...], int], ...] = ()

    @property
    def vanishes(self) -> bool:
        """True if two ties have different signs: the product is zero."""
        return any(sign != self.sign for _, sign in self.least) or any(s < 0 for _, s in self.twins)

    def ties(self) -> Iterator[tuple[tuple[int, ...], int]]:
        """Every (order, sign) that gives the same form."""
        if not self.twins:
            yield from self.least
            return
        for images in product(
            *(signed_rearrangements(members, sign) for members, sign in self.twins)
        ):
            moved = {i: j for image, _ in images for i, j in image}
            factor = 1
            for _, sign in images:
                factor *= sign
            for order, sign in self.least:
                yield tuple(moved.get(i, i) for i in order), sign * factor


@dataclass(slots=True)
class Forms:
    """The symmetry groups of labels, and all canonical forms computed so far.

    Attributes:
        left_labels: label of the left sides with each group.
        numbered: number of each product up to the names of its indices.
        work: number of images of factors visited, the measure of the time spent.
    """

    groups: dict[int, Group] = field(default_factory=dict)
    images: dict[int, Images] = field(default_factory=dict)
    left_labels: dict[Group, int] = field(default_factory=dict)
    known: dict[tuple[Parts, tuple[int, ...]], Form] = field(default_factory=dict)
    numbers: dict[object, int] = field(default_factory=dict)
    numbered: dict[tuple[Parts, tuple[int, ...]], int] = field(default_factory=dict)
    work: int = 0

    def add(self, label: int, group: Group) -> None:
        """Set the symmetry group of a label, which includes the identity."""
        self.groups[label] = group
        self.images[label] = images_of(group)

    def left(self, group: Group) -> int:
        """Label of left sides with this symmetry group."""
        ordered = tuple(sorted(group))
        label = self.left_labels.get(ordered)
        if label is None:
            label = LEFT + len(self.left_labels)
            self.left_labels[ordered] = label
            self.add(label, ordered)
        return label

    def form(self, parts: Parts, kinds: tuple[int, ...]) -> Form:
        """Canonical form of factors in any order; only indices of equal kind may be exchanged."""
        parts = tuple(sorted(parts))
        memo = (parts, kinds)
        form = self.known.get(memo)
        if form is None:
            form = self.known[memo] = self._form(parts, kinds)
        return form

    def number(self, parts: Parts, kinds: tuple[int, ...]) -> int:
        """A number that exactly the products with one canonical form have; faster than the form.

        Products that differ only in the names of indices share one entry of the table.
        """
        new: dict[int, int] = {}
        renamed = tuple(
            (label, tuple(new.setdefault(i, len(new)) for i in held))
            for label, held in sorted(parts)
        )
        memo = (renamed, tuple(kinds[i] for i in new))
        number = self.numbered.get(memo)
        if number is None:
            key = self.form(*memo).key
            number = self.numbered[memo] = self.numbers.setdefault(key, len(self.numbers))
        return number

    def _form(self, parts: Parts, kinds: tuple[int, ...]) -> Form:
        """The form of sorted factors: their least labelling."""
        images = [self.images[label] for label, _ in parts]
        kind_of = {i: kinds[i] for _, held in parts for i in held}
        twins = self._twins(parts, kinds)
        found = least_labelling(parts, images, refined_ranks(parts, images, kind_of), twins)
        self.work += found.work
        order, sign = min(found.ties)
        relabelled: list[Part] = []
        count = 0
        for (label, _), code in zip(parts, found.codes, strict=True):
            new: list[int] = []
            for entry in code:
                if entry >= UNLABELLED:
                    entry, count = count, count + 1
                new.append(entry)
            relabelled.append((label, tuple(new)))
        key = (
            tuple(label for label, _ in parts),
            found.codes,
            tuple(kinds[i] for i in order),
        )
        return Form(key, sign, order, tuple(relabelled), found.ties, twins)

    def _twins(
        self, parts: Parts, kinds: tuple[int, ...]
    ) -> tuple[tuple[tuple[int, ...], int], ...]:
        """Sets of indices on the same factors, each of which allows to exchange any two of them."""
        around: dict[int, list[tuple[int, int]]] = {}
        for place, (label, held) in enumerate(parts):
            if len(set(held)) < len(held):
                # the image is ambiguous where an index is repeated
                return ()
            image = self.images[label]
            for axis, index in enumerate(held):
                orbit = -1 if image.sets is None else image.orbits[axis]
                around.setdefault(index, []).append((place, orbit))
        members_by_holders: dict[tuple[int, tuple[tuple[int, int], ...]], list[int]] = {}
        for index, holders in around.items():
            if all(orbit >= 0 for _, orbit in holders):
                key = (kinds[index], tuple(holders))
                members_by_holders.setdefault(key, []).append(index)
        twins = []
        for (_, common), members in members_by_holders.items():
            if len(members) > 1:
                sign = 1
                for place, orbit in common:
                    sign *= self.images[parts[place][0]].exchange[orbit]
                twins.append((tuple(sorted(members)), sign))
        return tuple(sorted(twins))

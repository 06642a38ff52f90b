"""Sums of canonical products over numbered indices, the data of the factoring search.

The left side of a sum has a signed group: its readers give the same result for each image of the
sum under this group (because they antisymmetrise it later, or multiply it by an antisymmetric
factor). Each term may therefore be replaced by a signed image; the canonical term is one of them,
so that the search does not depend on how the equations are written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import chain
from typing import NamedTuple

from ..permutation_groups import Group
from .canonical_forms import Form, Forms, Part, Parts


class Product(NamedTuple):
    """A product over numbered indices, those of the left side first.

    The factors, each a label and its indices, are sorted; ``spaces`` numbers the space of each
    index.
    """

    factors: Parts
    spaces: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Frame:
    """Left side of a sum: the space of each left index, and the group of the left side."""

    spaces: tuple[int, ...]
    group: Group
    code: int = field(init=False, compare=False, repr=False)  # hash; groups are long

    def __post_init__(self) -> None:
        object.__setattr__(self, "code", hash((self.spaces, self.group)))

    def __hash__(self) -> int:
        return self.code

    @property
    def rank(self) -> int:
        """Number of left indices."""
        return len(self.spaces)


@dataclass(slots=True)
class TermSum:
    """Canonical terms with coefficients, under one left side."""

    frame: Frame
    terms: dict[Product, Fraction]

    def add(self, product: Product, coeff: Fraction) -> None:
        """Add a canonical term; a term with coefficient 0 is removed."""
        known = self.terms.get(product)
        total = coeff if known is None else known + coeff
        if total:
            self.terms[product] = total
        else:
            self.terms.pop(product, None)


@dataclass(frozen=True, slots=True)
class Split:
    """A term as ``sign * common * rest``, with a canonical common part.

    The new term is the common part times an array that holds the rest.

    Attributes:
        key: equal for terms of one sum with the same common part.
        common: the common factors, over the indices of the new term.
        place: index of the new term at each left index of the rest.
        outer: index of the new term at each left index of the sum.
        frame: left side of the rest.
        rest: the other factors, canonical in that frame.
    """

    key: tuple[object, ...]
    sign: int
    common: Parts
    place: tuple[int, ...]
    outer: tuple[int, ...]
    spaces: tuple[int, ...]
    frame: Frame
    rest: Product


def trivial(rank: int) -> Group:
    """The group whose only member is the identity."""
    return ((tuple(range(rank)), 1),)


def relabelled(parts: Iterable[Part], number: Mapping[int, int]) -> Parts:
    """The factors with new numbers for their indices, sorted; others keep theirs."""
    return tuple(sorted((label, tuple(number.get(i, i) for i in held)) for label, held in parts))


def renumbered(parts: Sequence[Part], first: Iterable[int], spaces: Sequence[int]) -> Product:
    """A product whose indices have new numbers: those of ``first`` come first, in this order."""
    held = chain(first, *(held for _, held in parts))
    number = {i: n for n, i in enumerate(dict.fromkeys(held))}
    return Product(relabelled(parts, number), tuple(spaces[i] for i in number))


@dataclass(slots=True)
class Algebra:
    """Operations on products; each result is computed once.

    ``constant`` holds the labels of arrays that depend only on constants.
    """

    forms: Forms
    splits: dict[tuple[Product, Frame, int], Split | None] = field(default_factory=dict)
    normals: dict[tuple[Product, Frame], tuple[Product, int]] = field(default_factory=dict)
    free_forms: dict[tuple[Product, int], Form] = field(default_factory=dict)
    constant: set[int] = field(default_factory=set)

    def is_constant(self, terms: Iterable[Product]) -> bool:
        """True if all of some terms depend only on constants."""
        return all(label in self.constant for term in terms for label, _ in term.factors)

    def normal(self, product: Product, frame: Frame) -> tuple[Product, int]:
        """Canonical image of a product whose first indices are the left ones, and its sign or 0."""
        memo = (product, frame)
        result = self.normals.get(memo)
        if result is None:
            result = self.normals[memo] = self._normal(product, frame)
        return result

    def _normal(self, product: Product, frame: Frame) -> tuple[Product, int]:
        """The least labelling of the product and its left side, left indices first."""
        parts, spaces = product
        rank = frame.rank
        kinds = tuple(2 * s + (n < rank) for n, s in enumerate(spaces))
        left = (self.forms.left(frame.group), tuple(range(rank)))
        form = self.forms.form((*parts, left), kinds)
        if form.vanishes:
            return product, 0
        *body, (_, outer) = form.parts
        first = (*outer, *range(len(form.order)))
        return renumbered(body, first, [spaces[index] for index in form.order]), form.sign

    def add(self, total: TermSum, product: Product, coeff: Fraction) -> None:
        """Add a product, in its canonical form, to a sum."""
        normal, sign = self.normal(product, total.frame)
        if sign:
            total.add(normal, coeff * sign)

    def invariance(self, product: Product, frame: Frame) -> Group:
        """The members of a frame's group under which the product itself is unchanged."""
        form = self.free_form(product, frame.rank)
        own: dict[tuple[int, ...], int] = {}
        for order, sign in form.ties():
            perm = list(range(frame.rank))
            for index, image in zip(form.order, order, strict=True):
                if index < frame.rank:
                    perm[index] = image
            own[tuple(perm)] = sign * form.sign
        return tuple((perm, sign) for perm, sign in frame.group if own.get(perm) == sign)

    def free_form(self, product: Product, rank: int) -> Form:
        """Canonical form of a product whose left indices may stand in any order."""
        memo = (product, rank)
        form = self.free_forms.get(memo)
        if form is None:
            parts, spaces = product
            kinds = tuple(2 * s + (n < rank) for n, s in enumerate(spaces))
            form = self.free_forms[memo] = self.forms.form(parts, kinds)
        return form

    def split(self, product: Product, frame: Frame, mask: int) -> Split | None:
        """A term split into the factors of ``mask`` and the rest; None if one of them is zero."""
        memo = (product, frame, mask)
        if memo not in self.splits:
            self.splits[memo] = self._split(product, frame, mask)
        return self.splits[memo]

    def _split(self, product: Product, frame: Frame, mask: int) -> Split | None:
        parts, spaces = product
        rest = [part for n, part in enumerate(parts) if not mask >> n & 1]
        in_rest = {i for _, indices in rest for i in indices}
        form = self._cofactor(product, frame, mask)
        held, group = _unseen(form, in_rest)
        if group is None:
            return None
        inner = Frame(tuple(spaces[i] for i in held), group)
        normal, sign = self.normal(renumbered(rest, held, spaces), inner)
        if sign == 0:
            return None
        *body, (_, outer) = form.parts
        new_index = {i: n for n, i in enumerate(form.order)}
        return Split(
            form.key,
            form.sign * sign,
            tuple(body),
            tuple(new_index[i] for i in held),
            outer,
            tuple(spaces[i] for i in form.order),
            inner,
            normal,
        )

    def _cofactor(self, product: Product, frame: Frame, mask: int) -> Form:
        """Form of the factors of ``mask`` and the left side, indices coloured by their holders."""
        parts, spaces = product
        common = [p for n, p in enumerate(parts) if mask >> n & 1]
        rank = frame.rank
        in_common = {i for _, held in common for i in held}
        in_rest = {i for n, (_, held) in enumerate(parts) if not mask >> n & 1 for i in held}
        kinds = tuple(
            8 * s + 4 * (n < rank) + 2 * (n in in_common) + (n in in_rest)
            for n, s in enumerate(spaces)
        )
        left = (self.forms.left(frame.group), tuple(range(rank)))
        return self.forms.form((*common, left), kinds)

    def unseen(self, product: Product, frame: Frame, mask: int) -> tuple[tuple[int, ...], Group]:
        """The symmetry that the factors of ``mask`` and the left side leave to the other factors.

        Returns:
            The indices that the other factors have in common with them, and the signed permutations
            of these indices that leave the term unchanged; the identity alone for a term of zero.
        """
        in_rest = {
            i for n, (_, held) in enumerate(product.factors) if not mask >> n & 1 for i in held
        }
        held, group = _unseen(self._cofactor(product, frame, mask), in_rest)
        return held, trivial(len(held)) if group is None else group

    def joined(self, split: Split, label: int, axes: tuple[int, ...]) -> Product:
        """The common factors of a split times an array, the left indices first.

        ``axes`` has the left index of the rest on each axis of the array. The split may be that of
        any term with these common factors.
        """
        array: Part = (label, tuple(split.place[a] for a in axes))
        first = (*split.outer, *range(len(split.spaces)))
        return renumbered((*split.common, array), first, split.spaces)

    def canonical_sum(
        self, frame: Frame, terms: Mapping[Product, Fraction]
    ) -> tuple[tuple[tuple[Product, Fraction], ...], tuple[int, ...], Fraction]:
        """The canonical terms of a sum, the old left index at each new one, and a factor.

        Up to the order of its left indices, the sum is this factor times the canonical terms.
        """
        best, ties = self._least(frame, terms)
        return best, *ties[0]

    def symmetric_sum(
        self, frame: Frame, terms: Mapping[Product, Fraction]
    ) -> tuple[tuple[tuple[Product, Fraction], ...], tuple[int, ...], Fraction, Group]:
        """:meth:`canonical_sum` and the whole signed symmetry group of its axes."""
        best, ties = self._least(frame, terms)
        order, scale = ties[0]
        place = {index: n for n, index in enumerate(order)}
        group = {
            tuple(place[i] for i in other): 1 if factor == scale else -1 for other, factor in ties
        }
        return best, order, scale, tuple(sorted(group.items()))

    def _least(
        self, frame: Frame, terms: Mapping[Product, Fraction]
    ) -> tuple[tuple[tuple[Product, Fraction], ...], list[tuple[tuple[int, ...], Fraction]]]:
        """The least form of a sum, and every order and factor that give it."""
        rank = frame.rank
        plain = {t: self.free_form(t, rank) for t in terms}
        ranked = {t: (repr(f.key), abs(terms[t])) for t, f in plain.items()}
        least = min(ranked.values())
        best: tuple[tuple[Product, Fraction], ...] | None = None
        ties: list[tuple[tuple[int, ...], Fraction]] = []
        tried: set[tuple[int, ...]] = set()
        for leader in sorted(t for t in terms if ranked[t] == least):
            for tie, _ in plain[leader].ties():
                order = tuple(i for i in tie if i < rank)
                if order in tried:
                    continue
                tried.add(order)
                renamed = self._relabelled(terms, frame, order)
                scale = renamed[0][1]
                candidate = tuple((t, c / scale) for t, c in renamed)
                if best is None or candidate < best:
                    best, ties = candidate, []
                if candidate == best:
                    ties.append((order, scale))
        assert best is not None
        return best, ties

    def _relabelled(
        self, terms: Mapping[Product, Fraction], frame: Frame, order: tuple[int, ...]
    ) -> list[tuple[Product, Fraction]]:
        """The terms with left index ``order[n]`` renamed to n, sorted."""
        rank = frame.rank
        total = TermSum(Frame(tuple(frame.spaces[i] for i in order), trivial(rank)), {})
        for (parts, spaces), coeff in terms.items():
            first = (*order, *range(rank, len(spaces)))
            self.add(total, renumbered(parts, first, spaces), coeff)
        return sorted(total.terms.items())


def _unseen(form: Form, in_rest: set[int]) -> tuple[tuple[int, ...], Group | None]:
    """Indices of the rest in a form and their signed permutations; None if it is zero."""
    held = tuple(i for i in form.order if i in in_rest)
    position = {i: n for n, i in enumerate(held)}
    group: dict[tuple[int, ...], int] = {}
    for order, sign in form.ties():
        perm = tuple(position[i] for i in order if i in in_rest)
        if group.setdefault(perm, sign * form.sign) != sign * form.sign:
            return held, None
    return held, tuple(sorted(group.items()))

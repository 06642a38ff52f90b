"""Sums of products as the factoring search holds them: numbered indices, canonical terms.

The left side of a sum has a signed group: its reader sees the sum only through that group (an
antisymmetriser applied later, or an antisymmetric cofactor), so that a term may be replaced by
any of its signed images. Canonical terms choose one image, which makes the search independent of
how the diagrams were written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

from ..permutation_groups import Group
from .canonical_forms import Form, Forms, Part, Parts

Product: TypeAlias = tuple[Parts, tuple[int, ...]]  # factors, space of each index


@dataclass(frozen=True, slots=True)
class Frame:
    """Left side of a sum: the space of each of its indices and the group of its readers."""

    spaces: tuple[int, ...]
    group: Group
    code: int = field(init=False, compare=False, repr=False)  # hash, as groups are long

    def __post_init__(self) -> None:
        object.__setattr__(self, "code", hash((self.spaces, self.group)))

    def __hash__(self) -> int:
        return self.code

    @property
    def rank(self) -> int:
        """Number of left indices."""
        return len(self.spaces)


@dataclass(slots=True)
class Sum:
    """Terms with coefficients under a frame."""

    frame: Frame
    terms: dict[Product, Fraction]

    def add(self, product: Product, coeff: Fraction) -> None:
        """Add a canonical term, merging like ones."""
        total = self.terms.get(product, Fraction(0)) + coeff
        if total:
            self.terms[product] = total
        else:
            self.terms.pop(product, None)


@dataclass(frozen=True, slots=True)
class Split:
    """A term as ``common * rest``: what the rest is once the common part is canonical.

    Attributes:
        key: equal for terms of one sum that share the common part.
        sign: the term is ``sign * common * rest``.
        common: the common factors over the indices of the new term.
        place: index of the new term at each left index of the rest.
        outer: index of the new term at each left index of the sum.
        spaces: of the indices of the new term.
        frame: left side of the rest.
        rest: canonical in that frame.
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
    """The group of the identity alone."""
    return ((tuple(range(rank)), 1),)


@dataclass(slots=True)
class Algebra:
    """Operations on products, remembered."""

    forms: Forms
    splits: dict[tuple[Product, Frame, int], Split | None] = field(default_factory=dict)
    normals: dict[tuple[Product, Frame], tuple[Product, int]] = field(default_factory=dict)
    whole: dict[tuple[Product, int], Form] = field(default_factory=dict)

    def normal(self, product: Product, frame: Frame) -> tuple[Product, int]:
        """The canonical image of a product whose first indices are the left ones; sign 0: zero."""
        memo = (product, frame)
        found = self.normals.get(memo)
        if found is None:
            found = self._normal(product, frame)
            self.normals[memo] = found
        return found

    def _normal(self, product: Product, frame: Frame) -> tuple[Product, int]:
        parts, spaces = product
        rank = frame.rank
        kinds = tuple(2 * s + (n < rank) for n, s in enumerate(spaces))
        left = (self.forms.left(frame.group), tuple(range(rank)))
        form = self.forms.form((*parts, left), kinds)
        if form.vanishes:
            return product, 0
        *body, (_, outer) = form.parts
        number = {label: n for n, label in enumerate(outer)}
        for label in range(len(form.order)):
            number.setdefault(label, len(number))
        renamed = tuple(sorted((t, tuple(number[i] for i in held)) for t, held in body))
        new_spaces = [0] * len(number)
        for label, index in enumerate(form.order):
            new_spaces[number[label]] = spaces[index]
        return (renamed, tuple(new_spaces)), form.sign

    def invariance(self, product: Product, frame: Frame) -> Group:
        """The part of a frame's group under which a product itself is unchanged."""
        form = self.free_form(product, frame.rank)
        own: dict[tuple[int, ...], int] = {}
        for order, sign in form.ties():
            perm = list(range(frame.rank))
            for one, other in zip(form.order, order, strict=True):
                if one < frame.rank:
                    perm[one] = other
            own[tuple(perm)] = sign * form.sign
        return tuple((perm, sign) for perm, sign in frame.group if own.get(perm) == sign)

    def free_form(self, product: Product, rank: int) -> Form:
        """Form of a product whose left indices may be exchanged freely."""
        memo = (product, rank)
        found = self.whole.get(memo)
        if found is None:
            parts, spaces = product
            kinds = tuple(2 * s + (n < rank) for n, s in enumerate(spaces))
            found = self.whole[memo] = self.forms.form(parts, kinds)
        return found

    def split(self, product: Product, frame: Frame, mask: int) -> Split | None:
        """A term split into the factors of ``mask`` and the rest; None if that has no meaning."""
        memo = (product, frame, mask)
        if memo not in self.splits:
            self.splits[memo] = self._split(product, frame, mask)
        return self.splits[memo]

    def _split(self, product: Product, frame: Frame, mask: int) -> Split | None:
        parts, spaces = product
        rest = [p for n, p in enumerate(parts) if not mask >> n & 1]
        in_rest = {i for _, held in rest for i in held}
        form = self._cofactor(product, frame, mask)
        held, group = _unseen(form, in_rest)
        if group is None:
            return None
        position = {i: n for n, i in enumerate(held)}
        inner = Frame(tuple(spaces[i] for i in held), group)
        number = dict(position)
        inner_spaces = list(inner.spaces)
        for _, indices in rest:
            for i in indices:
                if i not in number:
                    number[i] = len(number)
                    inner_spaces.append(spaces[i])
        renamed = tuple(sorted((t, tuple(number[i] for i in ix)) for t, ix in rest))
        normal, sign = self.normal((renamed, tuple(inner_spaces)), inner)
        if sign == 0:
            return None
        *body, (_, outer) = form.parts
        label_of = {i: n for n, i in enumerate(form.order)}
        return Split(
            form.key,
            form.sign * sign,
            tuple(body),
            tuple(label_of[i] for i in held),
            outer,
            tuple(spaces[i] for i in form.order),
            inner,
            normal,
        )

    def _cofactor(self, product: Product, frame: Frame, mask: int) -> Form:
        """Form of the factors of ``mask`` and the left side, indices coloured by who holds them."""
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
        """What the factors of ``mask`` and the left side cannot tell about the other factors.

        Returns:
            The indices that the others share with them, and the signed permutations of these
            indices after which the term is the same; the identity alone where the term is zero.
        """
        in_rest = {i for n, (_, ix) in enumerate(product[0]) if not mask >> n & 1 for i in ix}
        held, group = _unseen(self._cofactor(product, frame, mask), in_rest)
        return held, trivial(len(held)) if group is None else group

    def joined(self, split: Split, label: int, axes: tuple[int, ...]) -> Product:
        """The common factors times an array, left indices first.

        Args:
            split: any split of the group.
            label: of the array.
            axes: left index of the rest that stands on each axis of the array.
        """
        number = {label_: n for n, label_ in enumerate(split.outer)}
        for n in range(len(split.spaces)):
            number.setdefault(n, len(number))
        array: Part = (label, tuple(number[split.place[a]] for a in axes))
        parts = [(t, tuple(number[i] for i in held)) for t, held in split.common]
        spaces = [0] * len(number)
        for n, space in enumerate(split.spaces):
            spaces[number[n]] = space
        return tuple(sorted((*parts, array))), tuple(spaces)

    def canonical_sum(
        self, frame: Frame, terms: Mapping[Product, Fraction]
    ) -> tuple[tuple[tuple[Product, Fraction], ...], tuple[int, ...], Fraction]:
        """A sum up to order of its left indices and a number.

        Returns:
            The canonical terms, the old left index at each new one, and the factor that the sum
            is of them.
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
        """The least way to write a sum, and every order and factor that lead to it."""
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
        place = {index: n for n, index in enumerate(order)}
        new_frame = Frame(tuple(frame.spaces[i] for i in order), trivial(frame.rank))
        total: dict[Product, Fraction] = {}
        for (parts, spaces), coeff in terms.items():
            renamed = tuple(sorted((t, tuple(place.get(i, i) for i in held)) for t, held in parts))
            product = (renamed, (*new_frame.spaces, *spaces[frame.rank :]))
            normal, sign = self.normal(product, new_frame)
            if sign:
                total[normal] = total.get(normal, Fraction(0)) + sign * coeff
        return sorted((t, c) for t, c in total.items() if c)


def _unseen(form: Form, in_rest: set[int]) -> tuple[tuple[int, ...], Group | None]:
    """Indices of the rest that a form holds and their signed exchanges; None where signs clash."""
    held = tuple(i for i in form.order if i in in_rest)
    position = {i: n for n, i in enumerate(held)}
    group: dict[tuple[int, ...], int] = {}
    for order, sign in form.ties():
        perm = tuple(position[i] for i in order if i in in_rest)
        if group.setdefault(perm, sign * form.sign) != sign * form.sign:
            return held, None
    return held, tuple(sorted(group.items()))

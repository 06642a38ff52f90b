"""An equation as a vector: a number for each canonical product and each place of its left indices.

Two equations are equal where their vectors are. A product is brought to canonical form once, its
left indices free; permutations then only move places, modulo the product's own symmetry.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

from ...ir.deltas import resolve_deltas
from ...ir.system import Equation, Permutation, Term
from ...ir.tensor import Index, Ref
from ..permutation_groups import Group
from .atoms import atom_of
from .canonical_product import FREE, canonical_product, free_group

Places: TypeAlias = tuple[int, ...]  # left position of each free index of a product
Value: TypeAlias = dict[Hashable, Fraction]


@dataclass(frozen=True, slots=True)
class Placed:
    """A term as the images under ``perms`` of a product.

    Attributes:
        coeff: of the term.
        sign: of its product against the canonical one.
        key: of the product, its left indices free.
        places: where they stand.
        group: symmetry of the product as a function of them.
        perms: the identity alone where there are none.
        signs: of the perms, by their images.
        closed: whether the perms are a group and the sign a homomorphism.
    """

    coeff: Fraction
    sign: int
    key: Hashable
    places: Places
    group: Group
    perms: tuple[Permutation, ...]
    signs: Mapping[tuple[int, ...], int]
    closed: bool

    def images(self, moved: tuple[int, ...] | None = None) -> Iterator[tuple[Places, int]]:
        """Least equal places and sign of each image, left index k moved to ``moved[k]``."""
        for perm in self.perms:
            places = tuple(perm.images[p] for p in self.places)
            if moved is not None:
                places = tuple(moved[p] for p in places)
            least, sign = _least(places, self.group)
            yield least, sign * perm.sign

    def vanishes(self) -> bool:
        """True where the images cancel."""
        if len(self.perms) == 1:
            return False
        if self._is_sum_over_group():
            return self._sign_to(self.places, -1) == -1
        total: dict[Places, int] = {}
        for places, sign in self.images():
            total[places] = total.get(places, 0) + sign
        return not any(total.values())

    def fixed(self) -> Places | None:
        """Equal for equal terms of one key where nothing moves the places."""
        return _least(self.places, self.group)[0] if len(self.perms) == 1 else None

    def relation(self, other: Placed) -> int:
        """The sign s by which the product is that of a term of equal key and perms; 0: none."""
        sign = self.sign * other.sign
        if self._is_sum_over_group():
            return sign * self._sign_to(other.places, 0)
        one, factor = _least(self.places, self.group)
        two, second = _least(other.places, other.group)
        return sign * factor * second if one == two else 0

    def _is_sum_over_group(self) -> bool:
        whole = len(self.places) == len(self.perms[0].images)
        return whole and len(self.perms) > 1 and self.closed

    def _sign_to(self, target: Places, wanted: int) -> int:
        """Sign of an image at ``target``, the ``wanted`` one if there are several; 0: none."""
        found = 0
        for image, sign in self.group:
            move = [0] * len(target)
            for s, place in enumerate(target):
                move[self.places[image[s]]] = place
            factor = self.signs.get(tuple(move), 0)
            if factor:
                found = sign * factor
                if found == wanted or not wanted:
                    return found
        return found


@dataclass(frozen=True, slots=True)
class Vector:
    """The terms of an equation, each in canonical form."""

    terms: tuple[Placed, ...]

    def value(self, images: tuple[int, ...] | None = None) -> Value:
        """A number for each product at its places.

        Args:
            images: left index k counts as standing at position ``images[k]``.
        """
        total: Value = {}
        for term in self.terms:
            for places, sign in term.images(images):
                key = (term.key, places)
                total[key] = total.get(key, Fraction(0)) + term.coeff * term.sign * sign
        return {key: coeff for key, coeff in total.items() if coeff}

    def has(self, images: tuple[int, ...], sign: int) -> bool:
        """True where moving left indices to ``images`` multiplies the equation by ``sign``."""
        # a sum over a group is its own image
        known = {t.signs.get(images, 0) if t.closed else 0 for t in self.terms}
        if len(known) == 1 and 0 not in known:
            return sign in known
        rest = Vector(
            tuple(t for t in self.terms if not (t.closed and t.signs.get(images) == sign))
        )
        plain = rest.value()
        return rest.value(images) == {key: sign * coeff for key, coeff in plain.items()}


def vector_of(equation: Equation, complex_values: bool) -> Vector:
    """The equation as a vector; hermitian symmetries are left alone in ``complex_values``."""
    resolved = (resolve_deltas(term) for term in equation.terms)
    found = (placed_term(t, equation.lhs, complex_values) for t in resolved if t is not None)
    return Vector(tuple(p for p in found if p is not None))


def placed_term(term: Term, lhs: Ref, complex_values: bool) -> Placed | None:
    """A term whose deltas are resolved; None where the symmetry of its factors makes it zero."""
    colours = dict.fromkeys(lhs.indices, FREE)
    position: dict[Index, int] = {index: k for k, index in enumerate(lhs.indices)}
    form = canonical_product(tuple(atom_of(f, complex_values) for f in term.factors), colours)
    if not form.sign:
        return None
    places = tuple(position[i] for i in form.order if i in colours)
    none = (Permutation(1, tuple(range(len(lhs.indices)))),)
    group = free_group(form, colours)
    perms = term.perms or none
    signs, closed = signs_of(perms), is_signed_group(perms)
    return Placed(term.coeff, form.sign, form.key, places, group, perms, signs, closed)


def _least(places: Places, group: Group) -> tuple[Places, int]:
    return min((tuple(places[s] for s in image), sign) for image, sign in group)


@lru_cache(maxsize=1000)
def signs_of(perms: tuple[Permutation, ...]) -> dict[tuple[int, ...], int]:
    """Sign of each permutation by its images."""
    return {p.images: p.sign for p in perms}


@lru_cache(maxsize=1000)
def is_signed_group(perms: tuple[Permutation, ...]) -> bool:
    """True where the permutations form a group and the sign is a homomorphism.

    Example:
        >>> is_signed_group((Permutation(1, (0, 1)), Permutation(-1, (1, 0))))
        True
    """
    signs = {p.images: p.sign for p in perms}
    start = tuple(range(len(perms[0].images)))
    if len(signs) < len(perms) or signs.get(start) != 1:
        return False
    # products with a few members that make all others
    makers: list[tuple[tuple[int, ...], int]] = []
    made = {start}
    for images, sign in signs.items():
        if images in made:
            continue
        makers.append((images, sign))
        waiting = list(made)
        while waiting:
            one = waiting.pop()
            for maker, _ in makers:
                new = tuple(maker[k] for k in one)
                if new not in signs:
                    return False
                if new not in made:
                    made.add(new)
                    waiting.append(new)
    return all(
        signs[tuple(maker[k] for k in images)] == sign * factor
        for maker, sign in makers
        for images, factor in signs.items()
    )

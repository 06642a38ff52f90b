"""Normal form of an equation: a vector of coefficients over canonical products.

A component of the vector is a canonical product with the positions of the left indices. Two
equations are equal exactly if their vectors are equal. The left indices of a canonical product are
free, so that a permutation of the left side only changes their positions, up to the symmetry of
the product itself. :class:`NormalForms` computes each form of a compilation once.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

from ...ir.reduction import Reduction
from ...ir.system import Equation, Factor, Permutation, System, Term
from ...ir.tensor import Index, Ref, Space, Symmetry, Tensor
from ...ir.term_rewriting import resolve_deltas
from ..permutation_groups import Group
from .canonical_product import FREE, Atom, Canonical, atom_of, canonical_product, free_group

Places: TypeAlias = tuple[int, ...]  # position on the left side of each free index of a product
Value: TypeAlias = dict[Hashable, Fraction]

_STORED = "normal forms"


@dataclass(frozen=True, slots=True)
class Placed:
    """A term: a canonical product, the positions of its left indices, and its permutations.

    Attributes:
        sign: its product is this sign times the canonical one.
        key: canonical key of the product with free left indices.
        places: position of each free index on the left side.
        group: symmetry of the product as a function of its free indices.
        perms: permutations of the term; the identity alone for a term without any.
        closed: True if the permutations form a group and the sign is a homomorphism.
        exact: False if the canonical form was cut off, so that equal terms may look different.
    """

    coeff: Fraction
    sign: int
    key: Hashable
    places: Places
    group: Group
    perms: tuple[Permutation, ...]
    signs: Mapping[tuple[int, ...], int]
    closed: bool
    exact: bool

    def images(self, moved: tuple[int, ...] | None = None) -> Iterator[tuple[Places, int]]:
        """Least places and sign of each image, left index k moved to ``moved[k]`` first."""
        for perm in self.perms:
            places = tuple(perm.images[p] for p in self.places)
            if moved is not None:
                places = tuple(moved[p] for p in places)
            least, sign = _least(places, self.group)
            yield least, sign * perm.sign

    def vanishes(self) -> bool:
        """True if the images cancel each other."""
        if len(self.perms) == 1:
            return False
        if self._is_sum_over_group():
            return self._sign_to(self.places, preferred=-1) == -1
        total: dict[Places, int] = {}
        for places, sign in self.images():
            total[places] = total.get(places, 0) + sign
        return not any(total.values())

    def fixed(self) -> Places | None:
        """The least places of a term without permutations: equal for equal terms of one key."""
        return _least(self.places, self.group)[0] if len(self.perms) == 1 else None

    def relation(self, other: Placed) -> int:
        """The sign s with ``self = s * other`` for a term of equal key and perms; 0: unequal."""
        sign = self.sign * other.sign
        if self._is_sum_over_group():
            return sign * self._sign_to(other.places, preferred=0)
        places, factor = _least(self.places, self.group)
        other_places, other_factor = _least(other.places, other.group)
        return sign * factor * other_factor if places == other_places else 0

    def _is_sum_over_group(self) -> bool:
        holds_left_side = len(self.places) == len(self.perms[0].images)
        return holds_left_side and len(self.perms) > 1 and self.closed

    def _sign_to(self, target: Places, preferred: int) -> int:
        """Sign of an image at ``target``, ``preferred`` if there are several; 0: there is none."""
        result = 0
        for image, sign in self.group:
            move = [0] * len(target)
            for s, place in enumerate(target):
                move[self.places[image[s]]] = place
            factor = self.signs.get(tuple(move), 0)
            if factor:
                result = sign * factor
                if result == preferred or not preferred:
                    return result
        return result


@dataclass(frozen=True, slots=True)
class Vector:
    """The terms of an equation, each in canonical form."""

    terms: tuple[Placed, ...]

    def value(self, images: tuple[int, ...] | None = None) -> Value:
        """Coefficient of each product at its places; products with coefficient 0 are left out.

        Left index k counts as standing at position ``images[k]``.
        """
        total: Value = {}
        for term in self.terms:
            for places, sign in term.images(images):
                key = (term.key, places)
                total[key] = total.get(key, Fraction(0)) + term.coeff * term.sign * sign
        return {key: coeff for key, coeff in total.items() if coeff}

    def has(self, images: tuple[int, ...], sign: int) -> bool:
        """True if moving left indices to ``images`` multiplies the equation by ``sign``."""
        # A sum over a group is its own image up to a sign, so it need not be written out.
        known = {t.signs.get(images, 0) if t.closed else 0 for t in self.terms}
        if len(known) == 1 and 0 not in known:
            return sign in known
        rest = Vector(
            tuple(t for t in self.terms if not (t.closed and t.signs.get(images) == sign))
        )
        plain = rest.value()
        return rest.value(images) == {key: sign * coeff for key, coeff in plain.items()}


def _missing() -> NormalForms:
    raise ValueError("the system is not normalised")


@dataclass(slots=True)
class NormalForms:
    """Canonical forms and symmetries of the equations of one compilation, each computed once.

    A normalised system stores them (:func:`~tcgen.algebra.equations.proven_symmetry.normalised`),
    and the passes that rewrite its equations add to them.

    Attributes:
        complex_values: False if conj is the identity, so that hermitian symmetries are exchanges.
        products: canonical forms by the atoms and the free indices of a product.
        vectors: vectors by the terms and left indices of an equation.
        symmetries: symmetries of left sides, by the terms, left indices and tensor of an equation.
    """

    complex_values: bool
    products: dict[tuple[tuple[Atom, ...], frozenset[Index]], Canonical] = field(
        default_factory=dict
    )
    vectors: dict[tuple[tuple[Term, ...], tuple[Index, ...]], Vector] = field(default_factory=dict)
    symmetries: dict[tuple[tuple[Term, ...], tuple[Index, ...], Tensor], tuple[Symmetry, ...]] = (
        field(default_factory=dict)
    )

    @staticmethod
    def of(system: System) -> NormalForms:
        """The forms that a normalised system stores."""
        return system.derived(_STORED, _missing)

    def store(self, system: System) -> System:
        """The same system, in which :meth:`of` finds these forms."""
        system.derived(_STORED, lambda: self)
        return system

    def product(self, factors: tuple[Factor, ...], free: Iterable[Index]) -> Canonical:
        """Canonical form of a product with the indices of ``free`` free, the others summed."""
        atoms = tuple(atom_of(f, self.complex_values) for f in factors)
        key = (atoms, frozenset(free))
        form = self.products.get(key)
        if form is None:
            form = self.products[key] = canonical_product(atoms, dict.fromkeys(key[1], FREE))
        return form

    def vector(self, equation: Equation) -> Vector:
        """The equation as a vector."""
        key = (equation.terms, equation.lhs.indices)
        vector = self.vectors.get(key)
        if vector is None:
            resolved = (resolve_deltas(term) for term in equation.terms)
            placed = (self.placed(t, equation.lhs) for t in resolved if t is not None)
            vector = self.vectors[key] = Vector(tuple(p for p in placed if p is not None))
        return vector

    def placed(self, term: Term, lhs: Ref) -> Placed | None:
        """A term with resolved deltas, placed; None if the symmetry of its factors makes it 0."""
        position = {index: k for k, index in enumerate(lhs.indices)}
        held = set(term.indices)
        form = self.product(term.factors, held.intersection(position))
        if not form.sign:
            return None
        places = tuple(position[i] for i in form.order if i in position)
        perms = term.perms or (Permutation(1, tuple(range(len(lhs.indices)))),)
        signs, closed = signs_of(perms), is_signed_group(perms)
        key: Hashable = form.key
        if term.reduction is not Reduction.SUM:
            along = tuple(position[i] for i in term.sums if i in position)
            key = (term.reduction.value, along, key)
        group = free_group(form, position)
        return Placed(term.coeff, form.sign, key, places, group, perms, signs, closed, form.exact)

    def clean(self, equation: Equation, zero: Collection[str] = ()) -> Equation:
        """The equation with resolved deltas, merged like terms and without terms that are zero.

        Terms with different permutations are not merged. ``zero`` names intermediates of zero.
        """
        groups: dict[Hashable, list[tuple[int, Term, Placed, Fraction]]] = {}
        for position, term in enumerate(equation.terms):
            if any(isinstance(f, Ref) and f.tensor.name in zero for f in term.factors):
                continue
            resolved = resolve_deltas(term)
            if resolved is None or resolved.coeff == 0:
                continue
            placed = self.placed(resolved, equation.lhs)
            if placed is None or placed.vanishes():
                continue
            group = groups.setdefault((placed.perms, placed.key, placed.fixed()), [])
            for n, (first, known, other, total) in enumerate(group):
                sign = placed.relation(other)
                if sign:
                    group[n] = first, known, other, total + resolved.coeff * sign
                    break
            else:
                group.append((position, resolved, placed, resolved.coeff))
        merged = sorted((m for group in groups.values() for m in group), key=lambda m: m[0])
        terms = tuple(replace(term, coeff=total) for _, term, _, total in merged if total != 0)
        return replace(equation, terms=terms)


def _least(places: Places, group: Group) -> tuple[Places, int]:
    return min((tuple(places[s] for s in image), sign) for image, sign in group)


@lru_cache(maxsize=1000)
def signs_of(perms: tuple[Permutation, ...]) -> dict[tuple[int, ...], int]:
    """Sign of each permutation by its images."""
    return {p.images: p.sign for p in perms}


@lru_cache(maxsize=1000)
def is_signed_group(perms: tuple[Permutation, ...]) -> bool:
    """True if the permutations form a group and the sign is a homomorphism.

    Example:
        >>> is_signed_group((Permutation(1, (0, 1)), Permutation(-1, (1, 0))))
        True
    """
    signs = {p.images: p.sign for p in perms}
    start = tuple(range(len(perms[0].images)))
    if len(signs) < len(perms) or signs.get(start) != 1:
        return False
    # Products with a few generators reach all other members.
    generators: list[tuple[tuple[int, ...], int]] = []
    reached = {start}
    for images, sign in signs.items():
        if images in reached:
            continue
        generators.append((images, sign))
        pending = list(reached)
        while pending:
            member = pending.pop()
            for generator, _ in generators:
                new = tuple(generator[k] for k in member)
                if new not in signs:
                    return False
                if new not in reached:
                    reached.add(new)
                    pending.append(new)
    return all(
        signs[tuple(generator[k] for k in images)] == sign * factor
        for generator, sign in generators
        for images, factor in signs.items()
    )


def same_spaces(spaces: tuple[Space, ...], images: tuple[int, ...]) -> bool:
    """True if a permutation of axes exchanges only axes of equal spaces."""
    return all(spaces[k] == spaces[image] for k, image in enumerate(images))

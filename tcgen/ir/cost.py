"""Exact costs: polynomials in the extents of base spaces, and multiply-adds equal by symmetry.

Units: flops count a multiply and an add as 2; memory is counted in elements or bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import prod
from typing import TypeVar

from .tensor import Index, Space, Tensor, distinct

Monomial = tuple[tuple[str, int], ...]  # ((space name, power), ...) sorted by name
I = TypeVar("I", bound=Hashable)
Perm = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Poly:
    """Sum of coefficient * product of extents; terms are sorted and have no zero coefficient.

    Example:
        >>> o, v = Space("o"), Space("v")
        >>> p = Poly.of(2, (o, v, v))
        >>> str(p + p), p.value({"o": 10, "v": 3})
        ('4 o v^2', 180)
    """

    terms: tuple[tuple[Monomial, Fraction], ...] = ()

    @staticmethod
    def of(coeff: int | Fraction, spaces: Iterable[Space] = ()) -> Poly:
        """``coeff`` times the product of the extents; a joined space is the sum of its bases."""
        result = Poly._from({(): Fraction(coeff)})
        for space in spaces:
            extent: dict[Monomial, Fraction] = {}
            for base in space.bases:
                key = ((base.name, 1),)
                extent[key] = extent.get(key, Fraction(0)) + 1
            result = result * Poly._from(extent)
        return result

    @staticmethod
    def _from(terms: Mapping[Monomial, Fraction]) -> Poly:
        def rank(item: tuple[Monomial, Fraction]) -> tuple[int, Monomial]:
            return (-sum(power for _, power in item[0]), item[0])

        return Poly(tuple(sorted(((k, c) for k, c in terms.items() if c), key=rank)))

    def __add__(self, other: Poly) -> Poly:
        total = dict(self.terms)
        for key, coeff in other.terms:
            total[key] = total.get(key, Fraction(0)) + coeff
        return Poly._from(total)

    def __mul__(self, other: Poly) -> Poly:
        total: dict[Monomial, Fraction] = {}
        for left, c in self.terms:
            for right, d in other.terms:
                powers = dict(left)
                for name, power in right:
                    powers[name] = powers.get(name, 0) + power
                key = tuple(sorted(powers.items()))
                total[key] = total.get(key, Fraction(0)) + c * d
        return Poly._from(total)

    def value(self, extents: Mapping[str, int]) -> int:
        """The number at given extents of the base spaces, rounded towards zero to an integer."""
        total = Fraction(0)
        for key, coeff in self.terms:
            product = 1
            for name, power in key:
                product *= extents[name] ** power
            total += coeff * product
        return int(total)

    def leading(self, extents: Mapping[str, int]) -> str:
        """The fewest terms that make 95 % of the number, the largest first: ``2 o v^2 + ...``."""
        sized = [(abs(Poly((term,)).value(extents)), term) for term in self.terms]
        sized.sort(key=lambda item: -item[0])
        all_of_them = sum(size for size, _ in sized)
        shown: list[tuple[Monomial, Fraction]] = []
        held = 0
        for size, term in sized:
            if shown and held * 20 >= all_of_them * 19:
                return f"{Poly(tuple(shown))} + ..."
            shown.append(term)
            held += size
        return str(Poly(tuple(shown)))

    def __str__(self) -> str:
        if not self.terms:
            return "0"
        parts = []
        for key, coeff in self.terms:
            names = " ".join(name if power == 1 else f"{name}^{power}" for name, power in key)
            if not names:
                parts.append(str(coeff))
            else:
                parts.append(names if coeff == 1 else f"{coeff} {names}")
        return " + ".join(parts).replace("+ -", "- ")


ZERO = Poly()


def iteration_space(indices: Iterable[Index], coeff: int = 1) -> Poly:
    """Number of points of a loop nest over distinct indices, times ``coeff``."""
    return _volume(tuple(i.space for i in distinct(tuple(indices))), coeff)


@lru_cache(maxsize=10_000)
def _volume(spaces: tuple[Space, ...], coeff: int) -> Poly:
    """``coeff`` times the product of the extents: the steps of a program have few of these."""
    return Poly.of(coeff, spaces)


def saving(tensor: Tensor, axis: int, extents: Mapping[str, int], held: int = 1) -> int:
    """Elements that contracting one axis saves: ``size(A) - rsize(A, i)`` of Allam's Eq. (10).

    An axis in tiles holds as many elements as a tile has.
    """
    shape = [space.extent_in(extents) for space in tensor.spaces]
    extent = shape.pop(axis)
    return prod(shape) * (extent - min(held, extent))


def equal_points(
    one: tuple[Iterable[Perm], Sequence[I]],
    two: tuple[Iterable[Perm], Sequence[I]],
    free: Collection[I],
) -> int:
    """Order of the group of index permutations that leave both factors unchanged up to sign.

    A factor is given by the permutations of its axes (its whole group, signs left out) and the
    index on each axis. The result has the indices ``free``.

    Example:
        The ladder ``r[a,b,i,j] += v[a,b,c,d] * t[c,d,i,j]`` with antisymmetric pairs: 2 for each
        of the pairs ab, ij and cd.

        >>> pairs = [(0, 1, 2, 3), (1, 0, 2, 3), (0, 1, 3, 2), (1, 0, 3, 2)]
        >>> equal_points((pairs, "abcd"), (pairs, "cdij"), "abij")
        8
    """
    place = {i: n for n, i in enumerate(dict.fromkeys((*one[1], *two[1])))}
    return _equal_points(
        (tuple(one[0]), tuple(place[i] for i in one[1])),
        (tuple(two[0]), tuple(place[i] for i in two[1])),
        frozenset(place[i] for i in free if i in place),
    )


@lru_cache(maxsize=10_000)
def _equal_points(
    one: tuple[tuple[Perm, ...], Perm], two: tuple[tuple[Perm, ...], Perm], free: frozenset[int]
) -> int:
    """The order of the group; the indices are numbers, for a program has few such patterns."""
    common = tuple(i for i in dict.fromkeys(one[1]) if i in two[1])
    first = _restricted(*one, common, free)
    second = _restricted(*two, common, free)
    return sum(count * second[images] for images, count in first.items())


def _restricted(
    perms: Iterable[Perm], held: Sequence[I], common: tuple[I, ...], free: Collection[I]
) -> Counter[tuple[I, ...]]:
    """Number of index permutations of one factor for each image of the common indices."""
    names = tuple(dict.fromkeys(held))
    colour = {i: (i in common, i in free) for i in names}
    restricted: dict[tuple[I, ...], tuple[I, ...]] = {}
    for perm in perms:
        images: dict[I, I] = {}
        # The axes of a diagonal may not get different indices.
        for axis, source in enumerate(perm):
            if images.setdefault(held[axis], held[source]) != held[source]:
                break
        else:
            if all(colour[i] == colour[image] for i, image in images.items()):
                whole = tuple(images[i] for i in names)
                if len(set(whole)) == len(names):
                    restricted[whole] = tuple(images[i] for i in common)
    return Counter(restricted.values())

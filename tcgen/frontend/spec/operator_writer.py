"""Signed permutations of left indices as the operators P and S of the .spec language."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import combinations, permutations
from math import prod
from typing import TypeAlias

from ...ir.system import Permutation, Term
from ...ir.tensor import Index, Ref, symmetry_group
from ...ir.term_rewriting import rename_term
from .permutations import Signed, compose, position_images, slash_operator, tuple_operator

_Images = dict[tuple[int, ...], int]
Group: TypeAlias = tuple[Permutation, ...]
"""Permutations of left indices that keep a term up to their sign, the identity included."""


@lru_cache(maxsize=1024)
def operator_text(perms: tuple[Permutation, ...], left: tuple[Index, ...], kept: Group = ()) -> str:
    """``P(i,j) P(a,b) `` for a list of permutations, or "" where no product of operators is it.

    Args:
        perms: of a term, the identity included.
        left: indices on the left of its equation.
        kept: symmetry of the term that is permuted. Permutations that differ by one of these are
            the same, so that a list of cosets is P(k/ij) whichever of each coset stands in it.

    Example:
        >>> from tcgen.ir.tensor import Space
        >>> left = tuple(Index(x, Space("o")) for x in "ijab")
        >>> operator_text((Permutation(1, (0, 1, 2, 3)), Permutation(1, (1, 0, 3, 2))), left)
        'S(ia,jb) '
        >>> cyclic = tuple(Permutation(s, p) for s, p in ((1, (0, 1, 2)), (1, (1, 2, 0)),
        ...                                               (1, (2, 0, 1))))
        >>> operator_text(cyclic, left[:3])
        ''
        >>> exchange = (Permutation(1, (0, 1, 2)), Permutation(-1, (1, 0, 2)))
        >>> operator_text(cyclic, left[:3], exchange)
        'P(a/ij) '
    """
    return _product(perms, left, ()) or _product(perms, left, kept)


def _product(perms: tuple[Permutation, ...], left: tuple[Index, ...], kept: Group) -> str:
    """The operators whose product has these cosets."""
    wanted = _cosets(((p.sign, p.images) for p in perms), kept)
    if wanted is None:
        return ""
    usable: list[tuple[str, Signed]] = []
    sizes: list[int] = []
    for text, signed in _operators(left):
        images = _images(signed, left, kept)
        if images is not None and all(wanted.get(k) == sign for k, sign in images.items()):
            if len(images) == len(wanted):
                return f"{text} "
            usable.append((text, signed))
            sizes.append(len(images))
    for count in (2, 3):
        for chosen in permutations(range(len(usable)), count):
            if prod(sizes[n] for n in chosen) != len(wanted):
                continue
            whole: Signed = ((1, ()),)
            for n in chosen:
                whole = compose(whole, usable[n][1])
            if _images(whole, left, kept) == wanted:
                return "".join(f"{usable[n][0]} " for n in chosen)
    return ""


def kept_by(term: Term, left: tuple[Index, ...]) -> Group:
    """Exchanges of two left indices, and their products, that leave the term up to its sign.

    Declared symmetries of tensors are used, and summed indices may change names in pairs.
    """
    found = {tuple(range(len(left))): 1}
    for one, other in combinations(range(len(left)), 2):
        sign = _exchanged(term, left[one], left[other])
        if sign:
            images = list(range(len(left)))
            images[one], images[other] = other, one
            found[tuple(images)] = sign
    generators = list(found.items())
    waiting = list(found)
    while waiting:
        first = waiting.pop()
        for second, sign in generators:
            both = tuple(first[k] for k in second)
            if both not in found:
                found[both] = found[first] * sign
                waiting.append(both)
    return tuple(Permutation(sign, images) for images, sign in found.items())


def _exchanged(term: Term, one: Index, other: Index) -> int:
    """Sign of the term after the exchange; 0 where it is another term."""
    if one.space != other.space:
        return 0
    plain = _written(term, {})
    pairs = [(x, y) for x, y in combinations(term.sums, 2) if x.space == y.space]
    for count in (0, 1, 2):
        for chosen in combinations(pairs, count):
            names = {one: other, other: one}
            for x, y in chosen:
                names |= {x: y, y: x}
            sign, factors = _written(term, names)
            if factors == plain[1]:
                return sign * plain[0]
    return 0


def _written(term: Term, names: Mapping[Index, Index]) -> tuple[int, list[str]]:
    """Sign and factors after a renaming, each tensor in the first of its equal ways."""
    sign, found = 1, list[str]()
    for factor in rename_term(term, names).factors:
        if isinstance(factor, Ref):
            ways = [
                (tuple(str(factor.indices[k]) for k in s.perm), s.sign)
                for s in symmetry_group(factor.tensor)
                if not s.conj
            ]
            letters, one = min(ways)
            sign *= one
            found.append(f"{factor.tensor.name}[{','.join(letters)}]")
        else:
            found.append(str(factor))
    return sign, sorted(found)


def _images(signed: Signed, left: tuple[Index, ...], kept: Group) -> _Images | None:
    return _cosets(((sign, position_images(renaming, left)) for sign, renaming in signed), kept)


def _cosets(images: Iterable[tuple[int, tuple[int, ...]]], kept: Group) -> _Images | None:
    """One of each coset with its sign; None where a coset occurs twice."""
    found: _Images = {}
    for sign, one in images:
        same = [(tuple(one[k] for k in p.images), sign * p.sign) for p in kept]
        first, value = min(same, default=(one, sign))
        if first in found:
            return None
        found[first] = value
    return found


def _operators(left: tuple[Index, ...]) -> Iterator[tuple[str, Signed]]:
    """Operators on these letters, the plain ones first."""
    for first, second in combinations(left, 2):
        if first.space == second.space:
            for word, signed in (("P", True), ("S", False)):
                operator = tuple_operator(((first,), (second,)), signed)
                yield f"{word}({first},{second})", operator
    for group in combinations(left, 3):
        if len({i.space for i in group}) == 1:
            for word, signed in (("P", True), ("S", False)):
                yield (
                    f"{word}({','.join(map(str, group))})",
                    tuple_operator(tuple((i,) for i in group), signed),
                )
                for one in group:
                    rest = tuple(i for i in group if i != one)
                    text = f"{word}({one}/{_together(rest)})"
                    yield text, slash_operator(((one,), rest), signed)
    for rows in (2, 3):
        for firsts in combinations(left, rows):
            yield from _tuples(left, firsts)


def _tuples(left: tuple[Index, ...], firsts: tuple[Index, ...]) -> Iterator[tuple[str, Signed]]:
    """S(ia,jb), P(ia,jb), S(ia,jb,kc): ``firsts`` paired with letters that stand after them."""
    if len({i.space for i in firsts}) > 1:
        return
    others = [i for i in left if i not in firsts and left.index(i) > left.index(firsts[0])]
    for seconds in permutations(others, len(firsts)):
        if len({i.space for i in seconds}) > 1:
            continue
        items = tuple(zip(firsts, seconds, strict=True))
        for word, signed in (("S", False), ("P", True)):
            names = ",".join(_pair(item) for item in items)
            yield f"{word}({names})", tuple_operator(items, signed)


def _pair(item: tuple[Index, ...]) -> str:
    names = [i.name for i in item]
    return "".join(names) if all(len(n) == 1 for n in names) else f"({','.join(names)})"


def _together(letters: tuple[Index, ...]) -> str:
    names = [i.name for i in letters]
    return "".join(names) if all(len(n) == 1 for n in names) else ",".join(names)

"""Signed permutations of left indices as the operators P and S of the .spec language."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import combinations, permutations

from ..ir.system import Permutation
from ..ir.tensor import Index
from .permutations import Signed, compose, position_images, slash_operator, tuple_operator

_Images = dict[tuple[int, ...], int]


@lru_cache(maxsize=256)
def operator_text(perms: tuple[Permutation, ...], left: tuple[Index, ...]) -> str:
    """``P(i,j) P(a,b) `` for a list of permutations, or "" where no product of operators is it.

    Args:
        perms: of a term, the identity included.
        left: indices on the left of its equation.

    Example:
        >>> from tcgen.ir.tensor import Space
        >>> left = tuple(Index(x, Space("o")) for x in "ijab")
        >>> operator_text((Permutation(1, (0, 1, 2, 3)), Permutation(1, (1, 0, 3, 2))), left)
        'S(ia,jb) '
    """
    wanted = {p.images: p.sign for p in perms}
    if len(wanted) != len(perms):
        return ""
    usable: list[tuple[str, Signed, _Images]] = []
    for text, signed in _operators(left):
        images = _images(signed, left)
        if images is not None and all(wanted.get(k) == sign for k, sign in images.items()):
            if len(images) == len(wanted):
                return f"{text} "
            usable.append((text, signed, images))
    for count in (2, 3):
        for chosen in combinations(usable, count):
            total = 1
            for _, _, images in chosen:
                total *= len(images)
            if total != len(wanted):
                continue
            whole: Signed = ((1, ()),)
            for _, signed, _ in chosen:
                whole = compose(whole, signed)
            if _images(whole, left) == wanted:
                return "".join(f"{text} " for text, _, _ in chosen)
    return ""


def _images(signed: Signed, left: tuple[Index, ...]) -> _Images | None:
    found: _Images = {}
    for sign, renaming in signed:
        images = position_images(renaming, left)
        if images in found:
            return None
        found[images] = sign
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

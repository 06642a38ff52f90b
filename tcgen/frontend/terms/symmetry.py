"""Symmetry strings of term lists: ``antisym(0,1) swap(01,23)``, ``pqrs=qpsr``, ``8-fold``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from ...ir.tensor import Symmetry

_WORD = re.compile(
    r"(?P<word>8-fold|antisym|sym|swap)(?:\((?P<axes>[0-9, ]+)\))?"
    r"|(?P<left>[A-Za-z_]\w*(?:\[[^\]]*\])?)\s*=\s*(?P<sign>-?)\s*"
    r"(?P<right>[A-Za-z_]\w*(?:\[[^\]]*\])?)"
)


def read_symmetry(declared: Any, rank: int) -> tuple[Symmetry, ...]:
    """Generators of a tensor's symmetry as a term list declares it.

    Args:
        declared: the tensor's entry, with ``sym`` (a string or a list of strings) and ``antisym``
            (a list of axis lists), both optional.
        rank: number of axes.

    Raises:
        ValueError: naming the text that cannot be understood.

    Example:
        >>> read_symmetry({"sym": "antisym(0,1) swap(01,23)"}, 4)[1]
        Symmetry(perm=(2, 3, 0, 1), sign=1, conj=False)
    """
    generators: list[Symmetry] = []
    groups, texts = declared.get("antisym") or [], declared.get("sym") or []
    texts = [texts] if isinstance(texts, str) else texts
    for group in groups if isinstance(groups, list) else [groups]:
        if not isinstance(group, list) or not all(isinstance(k, int) for k in group):
            raise ValueError(f"antisym {group!r} is not a list of axes")
        generators += _group(group, rank, -1)
    for text in texts if isinstance(texts, list) else [texts]:
        if not isinstance(text, str):
            raise ValueError(f"symmetry {text!r} is not a string")
        generators += _read_text(text, rank)
    for symmetry in generators:
        if sorted(symmetry.perm) != list(range(rank)):
            raise ValueError(f"a symmetry names axes that a tensor of {rank} axes does not have")
    return tuple(dict.fromkeys(generators))


def _read_text(text: str, rank: int) -> list[Symmetry]:
    generators: list[Symmetry] = []
    at = 0
    for match in _WORD.finditer(text):
        if text[at : match.start()].strip(" ,;"):
            break
        at = match.end()
        if match["left"]:
            generators.append(_equality(match["left"], match["right"], -1 if match["sign"] else 1))
        else:
            generators += _word(match["word"], match["axes"], rank)
    if text[at:].strip(" ,;"):
        raise ValueError(f"symmetry {text!r} is not understood")
    return generators


def _word(word: str, axes: str | None, rank: int) -> Iterator[Symmetry]:
    match word:
        case "8-fold":
            yield from (*_group([0, 1], rank, 1), *_group([2, 3], rank, 1))
            yield _exchange("01", "23", rank)
        case "swap":
            left, _, right = (axes or "").replace(" ", "").partition(",")
            yield _exchange(left, right, rank)
        case _:
            numbers = [_axis(k.strip()) for k in axes.split(",")] if axes else range(rank)
            yield from _group(numbers, rank, -1 if word == "antisym" else 1)


def _axis(text: str) -> int:
    if not text.isdigit() or len(text) > 9:
        raise ValueError(f"{text!r:.20} is not an axis")
    return int(text)


def _group(axes: Sequence[int], rank: int, sign: int) -> list[Symmetry]:
    return [Symmetry(_swapped(rank, (pair,)), sign) for pair in pairwise(axes)]


def _exchange(left: str, right: str, rank: int) -> Symmetry:
    if not left or len(left) != len(right):
        raise ValueError(f"swap({left},{right}) does not exchange tuples of axes: swap(01,23)")
    pairs = zip(map(_axis, left), map(_axis, right), strict=True)
    return Symmetry(_swapped(rank, tuple(pairs)))


def _swapped(rank: int, pairs: tuple[tuple[int, int], ...]) -> tuple[int, ...]:
    perm = list(range(rank))
    for first, second in pairs:
        if max(first, second) >= rank:
            raise ValueError(f"a symmetry names axis {max(first, second)} of {rank} axes")
        perm[first], perm[second] = second, first
    return tuple(perm)


def _equality(left: str, right: str, sign: int) -> Symmetry:
    """``pqrs=qpsr`` or ``t2[i,j,a,b]=t2[j,i,b,a]``."""
    old, new = _letters(left), _letters(right)
    if sorted(old) != sorted(new) or len(set(old)) != len(old):
        raise ValueError(f"symmetry {left}={right} does not permute letters")
    return Symmetry(tuple(old.index(x) for x in new), sign)


def _letters(text: str) -> list[str]:
    inside = re.search(r"\[(.*)\]", text)
    return [x.strip() for x in inside[1].split(",")] if inside else list(text)

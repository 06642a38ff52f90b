"""Evaluate and count formula sequences in the neutral form of ``tcgen explain --sequence``.

It uses NumPy and no part of tcgen, and counts operations from the text of the statements. The first
letter of an index tells its space: i..o occupied, a..h virtual, P..X auxiliary, W quadrature.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import factorial, prod
from typing import Any

import numpy as np

LETTERS = {"o": "ijklmno", "v": "abcdefgh", "x": "PQRSTUVX", "q": "W"}
SPACE = {letter: space for space, letters in LETTERS.items() for letter in letters}

Indices = tuple[str, ...]
Shape = tuple[str, tuple[str, ...]]  # name of an array and the space of each axis
Arrays = dict[Shape, np.ndarray]
Cost = Counter[tuple[str, ...]]  # multiply-adds by the sorted spaces of all indices


@dataclass(frozen=True)
class Term:
    """``out += coeff * product of factors``."""

    out: tuple[str, Indices]
    coeff: Fraction
    factors: tuple[tuple[str, Indices], ...]


def read(text: str) -> tuple[str, Indices]:
    """Name and indices of a reference such as ``t2[a,b,i,j]``."""
    found = re.fullmatch(r"([A-Za-z_]\w*)(?:\[(.*)\])?", text.strip())
    assert found is not None, text
    return found[1], tuple(x.strip() for x in (found[2] or "").split(",") if x.strip())


def terms_of(sequence: Mapping[str, Any]) -> list[Term]:
    """The terms of all statements in order."""
    found = []
    for statement in sequence["statements"]:
        for term in statement["terms"]:
            assert not term.get("denom"), "denominators are not counted here"
            factors = tuple(read(f) for f in term["factors"])
            found.append(Term(read(statement["out"]), Fraction(term["coef"]), factors))
    return found


def spaces(indices: Indices) -> tuple[str, ...]:
    """Space of each index."""
    return tuple(SPACE[i[0]] for i in indices)


def evaluate(terms: Sequence[Term], inputs: Arrays, extents: Mapping[str, int]) -> Arrays:
    """Every array that the terms define, and the inputs."""
    arrays = dict(inputs)
    for term in terms:
        name, left = term.out
        shape = (name, spaces(left))
        letters: dict[str, int] = {}
        operands: list[Any] = []
        for factor, held in term.factors:
            operands += [arrays[factor, spaces(held)], [_number(letters, i) for i in held]]
        value = np.einsum(*operands, [_number(letters, i) for i in left])
        start = arrays.get(shape)
        if start is None:
            start = np.zeros([extents[s] for s in shape[1]])
        arrays[shape] = start + float(term.coeff) * value
    return arrays


def _number(letters: dict[str, int], index: str) -> int:
    return letters.setdefault(index, len(letters))


def antisymmetric_groups(arrays: Arrays) -> dict[Shape, tuple[tuple[int, ...], ...]]:
    """Groups of axes under whose transpositions the values of an array change sign."""
    found = {}
    for shape, array in arrays.items():
        scale = 1e-9 * max(1.0, float(np.abs(array).max(initial=0.0)))
        groups: list[tuple[int, ...]] = []
        free = list(range(array.ndim))
        while free:
            first = free.pop(0)
            group = [first]
            for other in list(free):
                same = array.shape[first] == array.shape[other]
                if same and np.abs(array + array.swapaxes(first, other)).max(initial=0.0) < scale:
                    group.append(other)
                    free.remove(other)
            if len(group) > 1:
                groups.append(tuple(group))
        found[shape] = tuple(groups)
    return found


def count(
    terms: Sequence[Term], groups: Mapping[Shape, tuple[tuple[int, ...], ...]] | None = None
) -> tuple[Cost, Cost]:
    """Multiply-adds of products of two factors, and elements of terms with one factor.

    Args:
        terms: at most two factors each.
        groups: antisymmetric axes of each array; a contraction is then divided by k! for k such
            indices that stand in one factor only, and for k that both factors share.
    """
    contractions: Cost = Counter()
    additions: Cost = Counter()
    for term in terms:
        assert len(term.factors) <= 2, term
        held = {i for _, indices in term.factors for i in indices} | set(term.out[1])
        points = tuple(sorted(spaces(tuple(held))))
        if len(term.factors) < 2:
            additions[points] += Fraction(1)
            continue
        contractions[points] += Fraction(1, 1 if groups is None else _equal(term, groups))
    return contractions, additions


def _equal(term: Term, groups: Mapping[Shape, tuple[tuple[int, ...], ...]]) -> int:
    sides = [
        [{held[n] for n in group} for group in groups.get((name, spaces(held)), ())]
        for name, held in term.factors
    ]
    sets = [set(held) for _, held in term.factors]
    order = prod(factorial(len(g & h)) for g in sides[0] for h in sides[1])
    for mine, other in ((0, 1), (1, 0)):
        order *= prod(factorial(len(g - sets[other])) for g in sides[mine])
    return order


def value(cost: Cost, extents: Mapping[str, int]) -> Fraction:
    """A cost at given extents."""
    return sum((c * prod(extents[s] for s in points) for points, c in cost.items()), Fraction(0))


def text(cost: Cost, least: int = 0) -> str:
    """A cost as a polynomial, terms of at least ``least`` indices."""
    parts = []
    for points, c in sorted(cost.items(), key=lambda item: (-len(item[0]), item[0])):
        if len(points) >= least:
            powers = Counter(points)
            name = "".join(s.upper() + (str(n) if n > 1 else "") for s, n in sorted(powers.items()))
            parts.append(name if c == 1 else f"{c} {name}")
    return " + ".join(parts) or "0"

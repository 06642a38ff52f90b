"""Reads the arguments of P(..), S(..), sum(..), max(..) and others; looks up their letters."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeAlias

from ...errors import Span
from ...ir.system import Permutation
from ...ir.tensor import Index
from ...simplices import parity
from ..assemble import (
    FEWER,
    MOST_PERMUTATIONS,
    TOO_MANY,
    permutation_lists,
)
from ..source import Problems
from .names import Names
from .syntax import Operator, Word

Renaming: TypeAlias = tuple[tuple[Index, Index], ...]
"""Pairs (old index, new index); other indices are unchanged."""
Signed: TypeAlias = tuple[tuple[int, Renaming], ...]
"""Terms of an operator: the number of times that each renaming is added; the identity first.

Operators that cancel are ``((0, ()),)``.
"""


@dataclass(frozen=True, slots=True)
class Place:
    """An index and its place in the text."""

    index: Index
    span: Span


class OperatorReader:
    """Reads the operators of one spec."""

    def __init__(self, names: Names, problems: Problems) -> None:
        self._names, self._problems = names, problems

    def bound(self, operator: Operator) -> tuple[Place, ...]:
        """The indices of sum(..), max(..), min(..) or prod(..)."""
        sums: list[Place] = []
        if len(operator.groups) > 1:
            kind = operator.kind
            self._problems.add(operator.span, f"{kind} cannot have a slash", f"write {kind}(i,j)")
        for word in (w for item in operator.groups[0] for w in item):
            index = self._names.index(word)
            if index in [p.index for p in sums]:
                self._problems.add(
                    word.span, f"{word.text} is twice in {operator.kind}(..)", "name it once"
                )
            elif index is not None:
                sums.append(Place(index, word.span))
        return tuple(sums)

    def permutations(self, operator: Operator) -> tuple[Signed, tuple[Place, ...]]:
        """The renamings of P(..) or S(..), and the letters that it moves."""
        nothing: tuple[Signed, tuple[Place, ...]] = (((1, ()),), ())
        slashed = len(operator.groups) > 1
        groups = [[self._letters(item, slashed) for item in g] for g in operator.groups]
        places: list[Place] = []
        for group in groups:
            for item in group:
                if item is None:
                    return nothing
                places.extend(item)
        for n, place in enumerate(places):
            if place.index in [p.index for p in places[:n]]:
                message = f"{place.index} occurs twice in {operator.kind}(..)"
                self._problems.add(place.span, message, "use each letter once")
                return nothing
        items = [tuple(p.index for p in item or ()) for group in groups for item in group]
        if not slashed and len(items) == 1:
            letters = ",".join(i.name for i in items[0])
            kind = operator.kind
            message = f"{kind}({letters.replace(',', '')}) exchanges nothing"
            advice = f"write {kind}({letters})" if len(items[0]) > 1 else f"write {kind}(i,j)"
            self._problems.add(operator.span, message, advice)
            return nothing
        if not slashed and len({len(item) for item in items}) > 1:
            message = f"the tuples of {operator.kind}(..) differ in length"
            self._problems.add(operator.span, message, "write for example S(ia,jb)")
            return nothing
        columns = (
            [[i for item in items for i in item]] if slashed else list(zip(*items, strict=True))
        )
        for column in columns:
            if any(i.space != column[0].space for i in column):
                letters = " and ".join(f"{i} of {i.space.name}" for i in column)
                message = f"{operator.kind} exchanges indices of different spaces: {letters}"
                self._problems.add(operator.span, message, "exchange indices of the same space")
                return nothing
        signed = operator.kind == "P"
        sizes = tuple(sum(len(item or ()) for item in g) for g in groups)
        if term_count(sizes if slashed else (len(items),), slashed) > MOST_PERMUTATIONS:
            message = f"{operator.kind} of {len(places)} indices is {TOO_MANY}"
            self._problems.add(operator.span, message, FEWER)
            return nothing
        if not slashed:
            return tuple_operator(tuple(items), signed), tuple(places)
        parts = tuple(tuple(p.index for item in g for p in item or ()) for g in groups)
        return slash_operator(parts, signed), tuple(places)

    def product(self, outer: Signed, inner: Signed, span: Span) -> Signed:
        """The operator that applies ``inner`` first, then ``outer``."""
        if len(outer) * len(inner) > MOST_PERMUTATIONS:
            self._problems.add(span, f"the operators of this term make {TOO_MANY}", FEWER)
            return outer
        return compose(outer, inner)

    def _letters(self, item: tuple[Word, ...], slashed: bool) -> tuple[Place, ...] | None:
        """Indices of an item: a declared index, letters written together, or a tuple."""
        if len(item) > 1 and slashed:
            self._problems.add(
                item[0].span, "tuples cannot be combined with a slash", "write P(i1/j1,k1)"
            )
            return None
        words = item
        if len(item) == 1 and not self._names.is_index(item[0].text):
            words = _split(item[0])
        places = []
        for word in words:
            index = self._names.index(word)
            if index is None:
                return None
            places.append(Place(index, word.span))
        return tuple(places)


def _split(word: Word) -> tuple[Word, ...]:
    """Letters written together, each with the digits that follow it: ``ia``, ``i1a1``."""
    words: list[Word] = []
    for column, sign in enumerate(word.text):
        if sign.isdigit() and words:
            last = words.pop()
            span = replace(last.span, length=last.span.length + 1)
            words.append(Word(last.text + sign, span))
        else:
            span = replace(word.span, column=word.span.column + column, length=1)
            words.append(Word(sign, span))
    return tuple(words)


def tuple_operator(items: tuple[tuple[Index, ...], ...], signed: bool) -> Signed:
    """P(i,j) and S(ia,jb): all permutations of the tuples, identity first, signed for P."""
    result = []
    for order in itertools.permutations(range(len(items))):
        sign = parity(order) if signed else 1
        pairs = tuple(
            (old, new)
            for k, image in enumerate(order)
            for old, new in zip(items[k], items[image], strict=True)
            if old != new
        )
        result.append((sign, pairs))
    return tuple(result)


def slash_operator(groups: tuple[tuple[Index, ...], ...], signed: bool) -> Signed:
    """P(A/B): all exchanges of k letters of A with k of B, sign (-1)**k; A/B/C: P(A/BC) P(B/C)."""
    first, rest = groups[0], groups[1:]
    others = tuple(x for group in rest for x in group)
    here = []
    for count in range(min(len(first), len(others)) + 1):
        for left in itertools.combinations(first, count):
            for right in itertools.combinations(others, count):
                pairs = (*zip(left, right, strict=True), *zip(right, left, strict=True))
                here.append((-1 if signed and count % 2 else 1, pairs))
    return compose(tuple(here), slash_operator(rest, signed)) if len(rest) > 1 else tuple(here)


def term_count(groups: tuple[int, ...], slashed: bool) -> int:
    """Terms of an operator, before it is made: 6 of P(i,j,k) and of P(i/j/k), 3 of P(i/jk).

    ``groups`` are the numbers of letters between slashes, or the number of tuples.
    """
    if not slashed:
        return math.factorial(groups[0])
    return math.prod(math.comb(sum(groups[n:]), groups[n]) for n in range(len(groups) - 1))


def compose(outer: Signed, inner: Signed) -> Signed:
    """The operator that applies ``inner`` first, then ``outer``; equal renamings are added.

    Example:
        >>> from tcgen.ir.tensor import Space
        >>> i, j = Index("i", Space("o")), Index("j", Space("o"))
        >>> exchange = tuple_operator(((i,), (j,)), True)
        >>> [count for count, _ in compose(exchange, exchange)]
        [2, -2]
        >>> compose(exchange, tuple_operator(((i,), (j,)), False))
        ((0, ()),)
    """
    counts: Counter[Renaming] = Counter()
    for sign, after in outer:
        then = dict(after)
        for other, before in inner:
            first = dict(before)
            letters = (*first, *(x for x in then if x not in first))
            pairs = ((x, then.get(first.get(x, x), first.get(x, x))) for x in letters)
            moved = sorted(((x, y) for x, y in pairs if x != y), key=lambda pair: pair[0].name)
            counts[tuple(moved)] += sign * other
    left = tuple((count, renaming) for renaming, count in counts.items() if count)
    return left or ((0, ()),)


def position_images(renaming: Renaming, lhs: tuple[Index, ...]) -> tuple[int, ...]:
    """The renaming as positions of left indices: index k becomes ``lhs[images[k]]``."""
    images = dict(renaming)
    return tuple(lhs.index(images.get(x, x)) for x in lhs)


def gather(
    operator: Signed, lhs: tuple[Index, ...]
) -> list[tuple[Fraction, tuple[Permutation, ...]]]:
    """The operator as factors and permutation lists of terms (:func:`permutation_lists`)."""
    if not operator:
        return [(Fraction(1), ())]
    counts: Counter[tuple[int, ...]] = Counter()
    for count, renaming in operator:
        counts[position_images(renaming, lhs)] += count
    return permutation_lists(counts, len(lhs))

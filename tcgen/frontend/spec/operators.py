"""Reads the arguments of P(..), S(..), sum(..), max(..) and others; looks up their letters."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...errors import Span
from ...ir.tensor import Index
from ..permutation_counts import FEWER, MOST_PERMUTATIONS, TOO_MANY
from ..source import Problems
from .names import Names
from .permutations import Signed, compose, slash_operator, term_count, tuple_operator
from .syntax import Operator, Word


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

"""Completed products: x1*R + x2*R + x1*Z = (x1 + x2)*(R + Z) - x2*Z.

Let a sum read an array ``X = x1 + x2 + ...`` in ``X*R`` and have a term ``x1*Z`` as well. The term
can then move into the product, at the cost of new terms ``-x2*Z - ...``, which often are cheap or
merge with other terms. Greedy factoring cannot reach these forms, because it only takes out common
factors that the terms have already.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from .greedy import Search, State, prune, substituted
from .interning import FIRST_ARRAY, FIRST_HOLE
from .sums import Frame, Product, Split, TermSum, relabelled, renumbered, trivial


@dataclass(frozen=True, slots=True)
class Completion:
    """A term ``x1*Z`` that can move into a product ``X*R`` with ``X = x1 + x2 + ...``.

    Attributes:
        term: ``X*R``.
        moved: ``x1*Z``.
        array: label of X.
        source: x1.
        opened: ``X*hole``, with a placeholder in place of R, over the numbered indices of ``term``.
        axes: left index of ``split`` on each axis of the hole.
        factor: R over the axes of the hole.
        split: ``moved`` split into ``x1`` and Z.
        sign: sign of ``x1*hole`` against its canonical form.
    """

    reader: int
    term: Product
    moved: Product
    array: int
    source: Product
    opened: Product
    axes: tuple[int, ...]
    factor: Product
    split: Split
    sign: int


def completed(search: Search, state: State) -> tuple[State, int]:
    """The state with products completed as long as that lowers the cost, and its cost."""
    cost = search.costs.total(state.sums.values())
    while True:
        best: tuple[int, State] | None = None
        candidates = [c for label in state.sums for c in completions(search, state, label)]
        search.work += len(candidates)
        for completion in candidates[: search.thresholds.completions]:
            trial = state.copy()
            made = complete(search, trial, completion)
            prune(trial)
            search.run(trial, [n for n in made if n in trial.sums])
            prune(trial)
            trial_cost = search.costs.total(trial.sums.values())
            if trial_cost < cost and (best is None or trial_cost < best[0]):
                best = trial_cost, trial
        if best is None:
            return state, cost
        cost, state = best


def completions(search: Search, state: State, reader: int) -> list[Completion]:
    """All completions of the products of a sum."""
    total = state.sums[reader]
    commons = _commons(search, total)
    result: list[Completion] = []
    for term in sorted(total.terms):
        labels = [label for label, _ in term.factors]
        for place, array in enumerate(labels):
            inner = state.sums.get(array)
            if len(labels) < 2 or inner is None or len(inner.terms) < 2 or labels.count(array) > 1:
                continue
            opened, factor = _opened(search, term, place, total.frame.rank)
            at = next(n for n, (label, _) in enumerate(opened.factors) if label == array)
            for source in sorted(search.arrays.sources(inner)):
                signed_split = _hole_split(search, substituted(opened, at, source), total.frame)
                if signed_split is None:
                    continue
                split, sign = signed_split
                axes = split.rest.factors[0][1]
                result.extend(
                    Completion(reader, term, moved, array, source, opened, axes, factor, two, sign)
                    for moved, two in commons.get(split.key, ())
                    if moved != term
                )
    return result


def _hole_split(search: Search, product: Product, frame: Frame) -> tuple[Split, int] | None:
    """A product with a hole, split into the other factors and the hole, and its sign."""
    normal, sign = search.algebra.normal(product, frame)
    if not sign:
        return None
    hole = next(
        n for n, (label, _) in enumerate(normal.factors) if FIRST_HOLE <= label < FIRST_ARRAY
    )
    split = search.algebra.split(normal, frame, (1 << len(normal.factors)) - 1 ^ (1 << hole))
    return None if split is None else (split, sign * split.sign)


def _commons(search: Search, total: TermSum) -> dict[object, list[tuple[Product, Split]]]:
    """The terms of a sum and their splits, by each possible common factor."""
    commons: dict[object, list[tuple[Product, Split]]] = {}
    for term in sorted(total.terms):
        for mask in range(1, (1 << len(term.factors)) - 1):
            split = search.algebra.split(term, total.frame, mask)
            if split is not None:
                commons.setdefault(split.key, []).append((term, split))
    return commons


def _opened(search: Search, term: Product, place: int, rank: int) -> tuple[Product, Product]:
    """``X*hole``, and the factors that the hole replaces, over its axes."""
    parts, spaces = term
    array = parts[place]
    rest = [p for n, p in enumerate(parts) if n != place]
    held = sorted({i for _, indices in rest for i in indices})
    outer = tuple(i for i in held if i < rank or i in array[1])
    label = FIRST_HOLE + len(outer)
    if label not in search.algebra.forms.groups:
        search.algebra.forms.add(label, trivial(len(outer)))
    # Indices that only the other factors hold do not occur in the opened term.
    opened = renumbered(((label, outer), array), range(rank), spaces)
    return opened, renumbered(rest, (*outer, *held), spaces)


def complete(search: Search, state: State, completion: Completion) -> list[int]:
    """Rewrite a sum by a completion; returns the sums that changed or are new."""
    total = state.sums[completion.reader]
    sources = search.arrays.sources(state.sums[completion.array])
    weight = total.terms.pop(completion.term)
    moved = total.terms.pop(completion.moved)
    rank = len(completion.axes)
    ratio = moved * completion.split.sign
    ratio /= weight * sources[completion.source] * completion.sign
    # Z over the axes of the hole
    rest_factors, rest_spaces = completion.split.rest
    axis = {index: n for n, index in enumerate(completion.axes)}
    spaces = completion.factor.spaces[:rank]
    frame = Frame(spaces, trivial(rank))
    other = Product(
        relabelled(rest_factors, axis),
        (*spaces, *rest_spaces[rank:]),
    )
    both = TermSum(frame, {})
    search.algebra.add(both, completion.factor, Fraction(1))
    search.algebra.add(both, other, ratio)
    made: list[int] = [completion.reader]
    hole = next(n for n, (p, _) in enumerate(completion.opened.factors) if p == FIRST_HOLE + rank)
    if both.terms:
        label, axes, scale = search.array(state, both, completion.reader, made)
        filled = substituted(completion.opened, hole, Product(((label, axes),), spaces))
        search.algebra.add(total, filled, weight * scale)
    rest = substituted(completion.opened, hole, other)
    place = next(n for n, (p, _) in enumerate(rest.factors) if p == completion.array)
    for source, coeff in sources.items():
        if source != completion.source:
            product = substituted(rest, place, source)
            search.algebra.add(total, product, -weight * ratio * coeff)
    return made

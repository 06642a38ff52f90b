"""Completed products: x1*R + x2*R + x1*Z = (x1 + x2)*(R + Z) - x2*Z.

Where a sum reads an array ``X = x1 + x2 + ...`` in ``X*R`` and holds a term ``x1*Z`` as well, the
term can move into the product at the price of ``-x2*Z - ...``, which often merge with other terms
or are cheap. Greedy factoring cannot find these forms, as every step of it takes out a factor that
is there.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from .greedy import Search, State, prune, substituted
from .interning import FIRST_ARRAY
from .sums import Frame, Product, Split, Sum, trivial

_HOLE = 95_000  # labels of a factor to be filled in, by rank


@dataclass(frozen=True, slots=True)
class Completion:
    """One way to complete a product.

    Attributes:
        reader: the sum.
        term: ``X*R``.
        moved: ``x1*Z``.
        array: X.
        source: x1.
        opened: ``X*hole`` over the numbered indices of ``term``.
        axes: left index of ``split`` on each axis of the hole.
        factor: R over the axes of the hole.
        split: ``moved`` as ``x1`` and Z.
        sign: of ``x1*hole``.
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
    """The state with those products completed that make it cheaper, and its flops."""
    cost = search.ledger.total(state.sums.values())
    while True:
        best: tuple[int, State] | None = None
        ways = [c for label in state.sums for c in completions(search, state, label)]
        search.work += len(ways)
        for way in ways[: search.thresholds.completions]:
            trial = state.copy()
            made = complete(search, trial, way)
            prune(trial)
            search.run(trial, [n for n in made if n in trial.sums])
            prune(trial)
            flops = search.ledger.total(trial.sums.values())
            if flops < cost and (best is None or flops < best[0]):
                best = flops, trial
        if best is None:
            return state, cost
        cost, state = best


def completions(search: Search, state: State, reader: int) -> list[Completion]:
    """Every way to complete a product of a sum."""
    total = state.sums[reader]
    commons = _commons(search, total)
    found: list[Completion] = []
    for term in sorted(total.terms):
        labels = [label for label, _ in term[0]]
        for place, array in enumerate(labels):
            inner = state.sums.get(array)
            if len(labels) < 2 or inner is None or len(inner.terms) < 2 or labels.count(array) > 1:
                continue
            opened, factor = _opened(search, term, place, total.frame.rank)
            at = next(n for n, (label, _) in enumerate(opened[0]) if label == array)
            for source in sorted(search.arrays.sources(inner)):
                one = _hole_split(search, substituted(opened, at, source), total.frame)
                if one is None:
                    continue
                split, sign = one
                axes = split.rest[0][0][1]
                for moved, two in commons.get(split.key, ()):
                    if moved != term:
                        what = Completion(
                            reader, term, moved, array, source, opened, axes, factor, two, sign
                        )
                        found.append(what)
    return found


def _hole_split(search: Search, product: Product, frame: Frame) -> tuple[Split, int] | None:
    """A product with a hole as the other factors and the hole, and its sign."""
    normal, sign = search.algebra.normal(product, frame)
    if not sign:
        return None
    hole = next(n for n, (label, _) in enumerate(normal[0]) if _HOLE <= label < FIRST_ARRAY)
    split = search.algebra.split(normal, frame, (1 << len(normal[0])) - 1 ^ (1 << hole))
    return None if split is None else (split, sign * split.sign)


def _commons(search: Search, total: Sum) -> dict[object, list[tuple[Product, Split]]]:
    """The terms of a sum by each common part that they could be split into."""
    found: dict[object, list[tuple[Product, Split]]] = {}
    for term in sorted(total.terms):
        for mask in range(1, (1 << len(term[0])) - 1):
            split = search.algebra.split(term, total.frame, mask)
            if split is not None:
                found.setdefault(split.key, []).append((term, split))
    return found


def _opened(search: Search, term: Product, place: int, rank: int) -> tuple[Product, Product]:
    """``X*hole`` and the product that the hole stands for, over its axes."""
    parts, spaces = term
    kept = parts[place]
    rest = [p for n, p in enumerate(parts) if n != place]
    held = sorted({i for _, ix in rest for i in ix})
    outer = tuple(i for i in held if i < rank or i in kept[1])
    label = _HOLE + len(outer)
    if label not in search.algebra.forms.groups:
        search.algebra.forms.add(label, trivial(len(outer)))
    # indices that only the rest holds are gone from the opened term
    number = {i: n for n, i in enumerate(range(rank))}
    for i in (*outer, *kept[1]):
        number.setdefault(i, len(number))
    opened = tuple(sorted((t, tuple(number[i] for i in ix)) for t, ix in (kept, (label, outer))))
    order = sorted(number, key=number.__getitem__)
    inside = {i: n for n, i in enumerate(outer)}
    for i in held:
        inside.setdefault(i, len(inside))
    factor = tuple(sorted((t, tuple(inside[i] for i in ix)) for t, ix in rest))
    factor_order = sorted(inside, key=inside.__getitem__)
    return (
        (opened, tuple(spaces[i] for i in order)),
        (factor, tuple(spaces[i] for i in factor_order)),
    )


def complete(search: Search, state: State, what: Completion) -> list[int]:
    """Rewrite a sum by a completion; returns the sums that changed or are new."""
    total = state.sums[what.reader]
    sources = search.arrays.sources(state.sums[what.array])
    weight = total.terms.pop(what.term)
    moved = total.terms.pop(what.moved)
    rank = len(what.axes)
    share = moved * what.split.sign / (weight * sources[what.source] * what.sign)
    # Z over the axes of the hole
    axis = {index: n for n, index in enumerate(what.axes)}
    spaces = what.factor[1][:rank]
    frame = Frame(spaces, trivial(rank))
    other: Product = (
        tuple(sorted((t, tuple(axis.get(i, i) for i in ix)) for t, ix in what.split.rest[0])),
        (*spaces, *what.split.rest[1][rank:]),
    )
    both = Sum(frame, {})
    for product, coeff in ((what.factor, Fraction(1)), (other, share)):
        normal, sign = search.algebra.normal(product, frame)
        if sign:
            both.add(normal, coeff * sign)
    made: list[int] = [what.reader]
    hole = next(n for n, (p, _) in enumerate(what.opened[0]) if p == _HOLE + rank)

    def add(product: Product, coeff: Fraction) -> None:
        normal, sign = search.algebra.normal(product, total.frame)
        if sign:
            total.add(normal, coeff * sign)

    if both.terms:
        label, axes, scale = search.array(state, both, what.reader, made)
        filled = substituted(what.opened, hole, (((label, axes),), spaces))
        add(filled, weight * scale)
    rest = substituted(what.opened, hole, other)
    place = next(n for n, (p, _) in enumerate(rest[0]) if p == what.array)
    for source, coeff in sources.items():
        if source != what.source:
            add(substituted(rest, place, source), -weight * share * coeff)
    return made

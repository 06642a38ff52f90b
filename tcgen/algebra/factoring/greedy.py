"""Factoring by the distributive law: A*B + A*C = A*(B + C), over all sums at once.

The search is greedy: the common factor that saves most is taken out, the sum of the cofactors
becomes an array (one that is known already if it is equal up to order of axes and a number), and
the new terms take part like the old ones, until nothing saves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from random import Random

from ...thresholds import AlgebraThresholds
from ..permutation_groups import Group
from .costs import Ledger, Prices
from .interning import Arrays
from .sums import Algebra, Frame, Product, Split, Sum, trivial


@dataclass(slots=True)
class State:
    """Targets and the arrays in use, each with its terms as factored so far.

    Attributes:
        sums: by label; the group of an array's frame is what its value may differ by from the
            terms that it was made for, the trivial group before it is factored itself.
        factored: arrays whose group has been widened once.
    """

    sums: dict[int, Sum]
    targets: tuple[int, ...]
    factored: set[int] = field(default_factory=set)

    def copy(self) -> State:
        """A state whose sums can be changed."""
        sums = {n: Sum(s.frame, dict(s.terms)) for n, s in self.sums.items()}
        return State(sums, self.targets, set(self.factored))


@dataclass(slots=True)
class _Common:
    """Terms that have a factor in common.

    Attributes:
        splits: each term as that factor and its rest.
        weighed: what taking it out saves, and the terms that gain; None before they are weighed.
    """

    splits: dict[Product, Split] = field(default_factory=dict)
    weighed: tuple[int, list[Product]] | None = None


@dataclass(slots=True)
class _Table:
    """The common factors of a sum, and those of each of its terms."""

    commons: dict[tuple[object, ...], _Common] = field(default_factory=dict)
    keys: dict[Product, list[tuple[object, ...]]] = field(default_factory=dict)

    def put(self, term: Product, split: Split) -> None:
        """Enter a term, or another way to split it by the same factor."""
        common = self.commons.setdefault(split.key, _Common())
        if term not in common.splits:
            self.keys.setdefault(term, []).append(split.key)
        common.splits[term] = split
        common.weighed = None

    def remove(self, term: Product) -> None:
        """Take a term out of every common factor."""
        for key in self.keys.pop(term, ()):
            common = self.commons[key]
            del common.splits[term]
            common.weighed = None
            if not common.splits:
                del self.commons[key]


@dataclass(slots=True)
class Search:
    """The greedy factoring of a set of targets.

    Attributes:
        noise: 0 takes the best factor each time; above, savings are blurred by a random number
            to this power.
        paid: products that other sums compute.
        work: common factors weighed so far, the measure of effort.
    """

    algebra: Algebra
    arrays: Arrays
    ledger: Ledger
    random: Random
    thresholds: AlgebraThresholds
    noise: float = 0.0
    paid: frozenset[object] = frozenset()
    work: int = 0

    @property
    def prices(self) -> Prices:
        """What products cost at present."""
        return self.ledger.prices

    def start(self, targets: Mapping[int, Sum]) -> State:
        """The targets with nothing factored."""
        return State({n: Sum(s.frame, dict(s.terms)) for n, s in targets.items()}, tuple(targets))

    def run(self, state: State, waiting: list[int]) -> None:
        """Factor the sums that wait and every array made on the way."""
        waiting = list(waiting)
        while waiting:
            label = waiting.pop(0)
            if label not in state.targets:
                self.widen(state, label)
            rest = [s for n, s in state.sums.items() if n != label and n not in waiting]
            self.paid = self.ledger.paid(rest)
            self._factor(state, label, waiting)

    def widen(self, state: State, label: int) -> None:
        """Let an array vary by what none of its readers sees.

        Readers may have changed since the groups above were found: those are narrowed first.
        """
        if self.arrays.fixed:
            return
        readers: dict[int, list[int]] = {}
        for reader, total in state.sums.items():
            for part in dict.fromkeys(p for term in total.terms for p, _ in term[0]):
                if part in state.sums:
                    readers.setdefault(part, []).append(reader)
        self._regroup(state, label, readers, set(state.targets))
        state.factored.add(label)

    def _regroup(
        self, state: State, label: int, readers: Mapping[int, list[int]], done: set[int]
    ) -> None:
        done.add(label)
        for reader in readers.get(label, ()):
            if reader not in done and reader in state.factored:
                self._regroup(state, reader, readers, done)
        total = state.sums[label]
        groups = [dict(g) for g in self._seen_through(state, label, readers.get(label, ()))]
        if label in state.factored:
            groups.append(dict(total.frame.group))
        first, *others = groups or [dict(trivial(total.frame.rank))]
        common = tuple(
            sorted((p, s) for p, s in first.items() if all(g.get(p) == s for g in others))
        )
        if common == total.frame.group:
            return
        frame = Frame(total.frame.spaces, common)
        fresh = Sum(frame, {})
        for term, coeff in total.terms.items():
            normal, sign = self.algebra.normal(term, frame)
            if sign:
                fresh.add(normal, coeff * sign)
        state.sums[label] = fresh

    def _seen_through(self, state: State, label: int, readers: Iterable[int]) -> list[Group]:
        """For each place where an array is read, the signed group of its axes there."""
        found: list[Group] = []
        rank = state.sums[label].frame.rank
        for total in (state.sums[n] for n in readers):
            for term in total.terms:
                places = [n for n, (part, _) in enumerate(term[0]) if part == label]
                found.extend(
                    self._axes_group(term, total.frame, place, len(places), rank)
                    for place in places
                )
        return found

    def _axes_group(self, term: Product, frame: Frame, place: int, reads: int, rank: int) -> Group:
        full = (1 << len(term[0])) - 1
        held = term[0][place][1]
        if reads > 1 or len(set(held)) < rank or full == 1:
            # a lone array is seen through the group of the sum itself
            if reads == 1 and full == 1 and len(held) == frame.rank == len(set(held)):
                return _on_axes(frame.group, held)
            return trivial(rank)
        split = self.algebra.split(term, frame, full ^ (1 << place))
        if split is None or len(split.rest[0]) != 1 or split.frame.rank != rank:
            return trivial(rank)
        return _on_axes(split.frame.group, split.rest[0][0][1])

    def _factor(self, state: State, label: int, waiting: list[int]) -> None:
        total = state.sums[label]
        table = _Table()
        for term in sorted(total.terms):
            self._enter(table, term, total.frame)
        while True:
            chosen = self._choose(table, total)
            if chosen is None:
                return
            key, terms = chosen
            group = table.commons[key].splits
            first = group[terms[0]]
            inner = Sum(first.frame, {})
            for term in terms:
                split = group[term]
                inner.add(split.rest, total.terms[term] * split.sign)
            for term in terms:
                del total.terms[term]
                table.remove(term)
            if not inner.terms:
                continue
            array, axes, scale = self.array(state, inner, label, waiting)
            joined = self.algebra.joined(first, array, axes)
            normal, sign = self.algebra.normal(joined, total.frame)
            if sign:
                total.add(normal, sign * scale)
                if normal in total.terms:
                    self._enter(table, normal, total.frame)

    def array(
        self, state: State, inner: Sum, reader: int, waiting: list[int]
    ) -> tuple[int, tuple[int, ...], Fraction]:
        """An array that ``reader`` may read in place of ``inner``."""
        seen = dict(inner.frame.group)
        copy = 0
        while True:
            label, axes, scale = self.arrays.intern(inner, copy)
            known = state.sums.get(label)
            if known is None:
                raw = self.arrays.sums[label]
                state.sums[label] = Sum(raw.frame, dict(raw.terms))
                waiting.append(label)
                return label, axes, scale
            if self._may_read(known, axes, seen) and not _reads(state, label, reader):
                return label, axes, scale
            copy += 1

    def _may_read(
        self, known: Sum, axes: tuple[int, ...], seen: dict[tuple[int, ...], int]
    ) -> bool:
        """True where what an array may vary by is nothing that its new reader sees."""
        if self.arrays.fixed:
            return True
        # position of the array's axes in the frame of the reader
        place = {index: n for n, index in enumerate(axes)}
        images = {
            tuple(axes[perm[place[i]]] for i in range(len(axes))): sign
            for perm, sign in known.frame.group
        }
        return all(seen.get(perm) == sign for perm, sign in images.items())

    def _enter(self, table: _Table, term: Product, frame: Frame) -> None:
        count = len(term[0])
        if count < 2:
            return
        for mask in range(1, (1 << count) - 1):
            split = self.algebra.split(term, frame, mask)
            if split is None:
                continue
            common = table.commons.get(split.key)
            old = None if common is None else common.splits.get(term)
            if old is None or self._rest(split) < self._rest(old):
                table.put(term, split)

    def _rest(self, split: Split) -> int:
        return self.ledger.extra(split.rest, split.frame, self.paid)

    def _choose(self, table: _Table, total: Sum) -> tuple[tuple[object, ...], list[Product]] | None:
        best: tuple[float, tuple[object, ...], list[Product]] | None = None
        self.work += len(table.commons)
        for key, common in table.commons.items():
            if common.weighed is None:
                common.weighed = self._weighed(common.splits, total.frame)
            saving: float
            saving, terms = common.weighed
            if saving <= 0:
                continue
            if self.noise:
                saving *= self.random.random() ** self.noise
            if best is None or (saving, key) > (best[0], best[1]):
                best = (saving, key, terms)
        return None if best is None else (best[1], best[2])

    def _weighed(self, group: Mapping[Product, Split], frame: Frame) -> tuple[int, list[Product]]:
        """Flops that a common factor saves, and the terms that it is worth taking out of."""
        outer = self.prices.addition(frame.spaces)
        gains = []
        for term, split in group.items() if len(group) > 1 else ():
            gain = outer + self.ledger.extra(term, frame, self.paid) - self._rest(split)
            if len(split.rest[0]) > 1:
                gain -= self.prices.addition(split.frame.spaces)
            if gain > 0:
                gains.append((gain, term))
        if len(gains) < 2:
            return 0, []
        split = group[gains[0][1]]
        # n terms are n - 1 additions, within the sum and within the array
        saving = sum(g for g, _ in gains) - self._joined_cost(split, frame)
        saving += self.prices.addition(split.frame.spaces) - outer
        return saving, [t for _, t in gains]

    def _joined_cost(self, split: Split, frame: Frame) -> int:
        label = self.arrays.stand_in(split.frame)
        axes = tuple(range(split.frame.rank))
        return self.ledger.extra(self.algebra.joined(split, label, axes), frame, self.paid)

    def dissolve(self, state: State, label: int) -> list[int]:
        """Write the terms of an array into its readers; returns the sums that changed."""
        sources = self.arrays.sources(state.sums[label])
        changed = []
        for reader, total in state.sums.items():
            if not any(part == label for term in total.terms for part, _ in term[0]):
                continue
            changed.append(reader)
            fresh = Sum(total.frame, {})
            pending = list(total.terms.items())
            while pending:
                term, coeff = pending.pop()
                place = next((n for n, (p, _) in enumerate(term[0]) if p == label), None)
                if place is None:
                    fresh.add(term, coeff)
                    continue
                for source, factor in sources.items():
                    product = substituted(term, place, source)
                    normal, sign = self.algebra.normal(product, total.frame)
                    if sign:
                        pending.append((normal, coeff * factor * sign))
            state.sums[reader] = fresh
        del state.sums[label]
        state.factored.discard(label)
        return changed


def _reads(state: State, label: int, wanted: int) -> bool:
    """True where an array is, or needs, the sum ``wanted``."""
    waiting, done = [label], {label}
    while waiting:
        one = waiting.pop()
        if one == wanted:
            return True
        for term in state.sums[one].terms:
            for part, _ in term[0]:
                if part in state.sums and part not in done:
                    done.add(part)
                    waiting.append(part)
    return False


def _on_axes(group: Group, held: tuple[int, ...]) -> Group:
    """A group of indices as a group of the axes that hold them."""
    axis = {index: n for n, index in enumerate(held)}
    return tuple(sorted((tuple(axis[perm[i]] for i in held), sign) for perm, sign in group))


def substituted(term: Product, place: int, source: Product) -> Product:
    """A term with the array at ``place`` replaced by one of its terms."""
    parts, spaces = term
    held = parts[place][1]
    number = dict(enumerate(held))
    extended = list(spaces)
    for n in range(len(held), len(source[1])):
        number[n] = len(extended)
        extended.append(source[1][n])
    new = tuple((t, tuple(number[i] for i in ix)) for t, ix in source[0])
    every = tuple(sorted((*parts[:place], *parts[place + 1 :], *new)))
    return every, tuple(extended)


def prune(state: State) -> None:
    """Drop the arrays that no target needs."""
    waiting = list(state.targets)
    used = set(waiting)
    while waiting:
        for term in state.sums[waiting.pop()].terms:
            for part, _ in term[0]:
                if part in state.sums and part not in used:
                    used.add(part)
                    waiting.append(part)
    for label in [n for n in state.sums if n not in used]:
        del state.sums[label]
        state.factored.discard(label)

"""Greedy factoring by the distributive law: A*B + A*C = A*(B + C).

Each step takes out the common factor that saves most. The sum of the cofactors becomes an array;
if an array with these terms exists, up to the order of axes and a factor, that one is used. The new
term takes part like the others, and the search of a sum ends when no common factor saves anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from random import Random

from ...thresholds import AlgebraThresholds
from ..permutation_groups import Group
from .costs import ProductCosts, SequenceCosts
from .interning import ArrayTable
from .sums import Algebra, Frame, Product, Split, TermSum, trivial


@dataclass(slots=True)
class State:
    """The targets and the arrays in use, each with its terms as factored so far.

    Attributes:
        sums: terms of each target and array, by label. The readers of an array give the same
            result for every image of its value under the group of its frame; that group is trivial
            until the array is factored itself.
        targets: labels of the sums that the equations define.
        factored: arrays whose group has been widened once.
    """

    sums: dict[int, TermSum]
    targets: tuple[int, ...]
    factored: set[int] = field(default_factory=set)

    def copy(self) -> State:
        """A copy whose sums can be changed."""
        sums = {n: TermSum(s.frame, dict(s.terms)) for n, s in self.sums.items()}
        return State(sums, self.targets, set(self.factored))


@dataclass(slots=True)
class _CommonFactor:
    """Terms with a common factor, each split into that factor and the rest.

    ``weighed`` is the saving if the factor is taken out, and the terms that gain by it; None until
    it is computed.
    """

    splits: dict[Product, Split] = field(default_factory=dict)
    weighed: tuple[int, list[Product]] | None = None


@dataclass(slots=True)
class _CommonFactors:
    """The common factors of a sum, and those of each of its terms."""

    commons: dict[tuple[object, ...], _CommonFactor] = field(default_factory=dict)
    keys: dict[Product, list[tuple[object, ...]]] = field(default_factory=dict)

    def put(self, term: Product, split: Split) -> None:
        """Enter a term, or replace its split by another one with the same common factor."""
        common = self.commons.setdefault(split.key, _CommonFactor())
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
    """The greedy search.

    Attributes:
        costs: costs of sums at the planning extents.
        random: source of random numbers, seeded.
        noise: 0 takes the best common factor in each step; otherwise each saving is multiplied by a
            random number in [0, 1) to this power.
        computed: keys of the binary products that other sums compute.
        work: number of common factors weighed so far, the measure of effort.
    """

    algebra: Algebra
    arrays: ArrayTable
    costs: SequenceCosts
    random: Random
    thresholds: AlgebraThresholds
    noise: float = 0.0
    computed: frozenset[object] = frozenset()
    work: int = 0

    @property
    def product_costs(self) -> ProductCosts:
        """Costs of single products at the present extents."""
        return self.costs.product_costs

    def start(self, targets: Mapping[int, TermSum]) -> State:
        """A state that holds only the targets, nothing factored."""
        return State(
            {n: TermSum(s.frame, dict(s.terms)) for n, s in targets.items()}, tuple(targets)
        )

    def run(self, state: State, pending: list[int]) -> None:
        """Factor the sums ``pending`` and every array that this makes."""
        pending = list(pending)
        while pending:
            label = pending.pop(0)
            if label not in state.targets:
                self.widen(state, label)
            rest = [s for n, s in state.sums.items() if n != label and n not in pending]
            self.computed = self.costs.computed_by(rest)
            self._factor(state, label, pending)

    def widen(self, state: State, label: int) -> None:
        """Set the group of an array to all permutations that leave its readers unchanged.

        Readers may have changed since their own groups were set, so these are narrowed first.
        """
        if self.arrays.fixed:
            return
        readers: dict[int, list[int]] = {}
        for reader, total in state.sums.items():
            for part in dict.fromkeys(p for term in total.terms for p, _ in term.factors):
                if part in state.sums:
                    readers.setdefault(part, []).append(reader)
        self._regroup(state, label, readers, set(state.targets))
        state.factored.add(label)

    def _regroup(
        self, state: State, label: int, readers: Mapping[int, list[int]], done: set[int]
    ) -> None:
        """Set the group of an array, after those of its readers that are factored already."""
        done.add(label)
        for reader in readers.get(label, ()):
            if reader not in done and reader in state.factored:
                self._regroup(state, reader, readers, done)
        total = state.sums[label]
        groups = [dict(g) for g in self._reader_groups(state, label, readers.get(label, ()))]
        if label in state.factored:
            groups.append(dict(total.frame.group))
        first, *others = groups or [dict(trivial(total.frame.rank))]
        common = tuple(
            sorted((p, s) for p, s in first.items() if all(g.get(p) == s for g in others))
        )
        if common == total.frame.group:
            return
        frame = Frame(total.frame.spaces, common)
        regrouped = TermSum(frame, {})
        for term, coeff in total.terms.items():
            self.algebra.add(regrouped, term, coeff)
        state.sums[label] = regrouped

    def _reader_groups(self, state: State, label: int, readers: Iterable[int]) -> list[Group]:
        """For each reference to an array, the group that leaves the reader unchanged."""
        groups: list[Group] = []
        rank = state.sums[label].frame.rank
        for total in (state.sums[n] for n in readers):
            for term in total.terms:
                places = [n for n, (part, _) in enumerate(term.factors) if part == label]
                groups.extend(
                    self._axes_group(term, total.frame, place, len(places), rank)
                    for place in places
                )
        return groups

    def _axes_group(self, term: Product, frame: Frame, place: int, reads: int, rank: int) -> Group:
        """The group of the axes of the array at ``place`` that leaves a term unchanged."""
        full = (1 << len(term.factors)) - 1
        held = term.factors[place][1]
        if reads > 1 or len(set(held)) < rank or full == 1:
            # A term with the array as its only factor has the group of the sum itself.
            if reads == 1 and full == 1 and len(held) == frame.rank == len(set(held)):
                return _on_axes(frame.group, held)
            return trivial(rank)
        split = self.algebra.split(term, frame, full ^ (1 << place))
        if split is None or len(split.rest.factors) != 1 or split.frame.rank != rank:
            return trivial(rank)
        return _on_axes(split.frame.group, split.rest.factors[0][1])

    def _factor(self, state: State, label: int, pending: list[int]) -> None:
        """Take common factors out of a sum until none saves anything."""
        total = state.sums[label]
        table = _CommonFactors()
        for term in sorted(total.terms):
            self._enter(table, term, total.frame)
        while True:
            chosen = self._choose(table, total)
            if chosen is None:
                return
            key, terms = chosen
            splits = table.commons[key].splits
            first = splits[terms[0]]
            inner = TermSum(first.frame, {})
            for term in terms:
                split = splits[term]
                inner.add(split.rest, total.terms[term] * split.sign)
            for term in terms:
                del total.terms[term]
                table.remove(term)
            if not inner.terms:
                continue
            array, axes, scale = self.array(state, inner, label, pending)
            joined = self.algebra.joined(first, array, axes)
            normal, sign = self.algebra.normal(joined, total.frame)
            if sign:
                total.add(normal, sign * scale)
                if normal in total.terms:
                    self._enter(table, normal, total.frame)

    def array(
        self, state: State, inner: TermSum, reader: int, pending: list[int]
    ) -> tuple[int, tuple[int, ...], Fraction]:
        """An array that ``reader`` may read in place of ``inner``; a new one is made if needed.

        Returned are its label, the left index of ``inner`` on each of its axes, and the factor. A
        new array is added to the state and to ``pending``, the sums to factor.
        """
        reader_group = dict(inner.frame.group)
        copy = 0
        while True:
            label, axes, scale = self.arrays.intern(inner, copy)
            known = state.sums.get(label)
            if known is None:
                raw = self.arrays.sums[label]
                state.sums[label] = TermSum(raw.frame, dict(raw.terms))
                pending.append(label)
                return label, axes, scale
            if self._may_read(known, axes, reader_group) and reader not in _reached(state, [label]):
                return label, axes, scale
            copy += 1

    def _may_read(
        self, known: TermSum, axes: tuple[int, ...], reader_group: dict[tuple[int, ...], int]
    ) -> bool:
        """True if the group of an array leaves its new reader unchanged."""
        if self.arrays.fixed:
            return True
        axis_of = {index: n for n, index in enumerate(axes)}
        images = {
            tuple(axes[perm[axis_of[i]]] for i in range(len(axes))): sign
            for perm, sign in known.frame.group
        }
        return all(reader_group.get(perm) == sign for perm, sign in images.items())

    def _enter(self, table: _CommonFactors, term: Product, frame: Frame) -> None:
        """Enter a term under each of its possible common factors, with the cheapest rest."""
        count = len(term.factors)
        if count < 2:
            return
        for mask in range(1, (1 << count) - 1):
            split = self.algebra.split(term, frame, mask)
            if split is None:
                continue
            common = table.commons.get(split.key)
            old = None if common is None else common.splits.get(term)
            if old is None or self._rest_cost(split) < self._rest_cost(old):
                table.put(term, split)

    def _rest_cost(self, split: Split) -> int:
        return self.costs.extra(split.rest, split.frame, self.computed)

    def _choose(
        self, table: _CommonFactors, total: TermSum
    ) -> tuple[tuple[object, ...], list[Product]] | None:
        """The common factor that saves most and the terms to take it out of; None if none saves."""
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

    def _weighed(self, splits: Mapping[Product, Split], frame: Frame) -> tuple[int, list[Product]]:
        """Saving if a common factor is taken out, and the terms for which that pays."""
        outer = self.product_costs.addition(frame.spaces) * self.costs.runs(splits)
        gains = []
        for term, split in splits.items() if len(splits) > 1 else ():
            gain = outer + self.costs.extra(term, frame, self.computed) - self._rest_cost(split)
            if len(split.rest.factors) > 1:
                inner = self.product_costs.addition(split.frame.spaces)
                gain -= inner * self.costs.runs((split.rest,))
            if gain > 0:
                gains.append((gain, term))
        if len(gains) < 2:
            return 0, []
        split = splits[gains[0][1]]
        # n terms have n - 1 additions, in the sum and in the array
        rests = [splits[term].rest for _, term in gains]
        constant = self.algebra.is_constant(rests)
        saving = sum(g for g, _ in gains) - self._joined_cost(split, frame, constant=constant)
        saving += self.product_costs.addition(split.frame.spaces) * self.costs.runs(rests) - outer
        return saving, [t for _, t in gains]

    def _joined_cost(self, split: Split, frame: Frame, *, constant: bool) -> int:
        """Cost of the common factor times the array of the rests."""
        label = self.arrays.stand_in(split.frame, constant=constant)
        axes = tuple(range(split.frame.rank))
        return self.costs.extra(self.algebra.joined(split, label, axes), frame, self.computed)

    def dissolve(self, state: State, label: int) -> list[int]:
        """Replace an array by its terms in all its readers; returns the sums that changed."""
        sources = self.arrays.sources(state.sums[label])
        changed = []
        for reader, total in state.sums.items():
            if not any(part == label for term in total.terms for part, _ in term.factors):
                continue
            changed.append(reader)
            dissolved = TermSum(total.frame, {})
            pending = list(total.terms.items())
            while pending:
                term, coeff = pending.pop()
                place = next((n for n, (p, _) in enumerate(term.factors) if p == label), None)
                if place is None:
                    dissolved.add(term, coeff)
                    continue
                for source, factor in sources.items():
                    product = substituted(term, place, source)
                    normal, sign = self.algebra.normal(product, total.frame)
                    if sign:
                        pending.append((normal, coeff * factor * sign))
            state.sums[reader] = dissolved
        del state.sums[label]
        state.factored.discard(label)
        return changed


def _reached(state: State, labels: Iterable[int]) -> Iterator[int]:
    """Some sums, and those that they read directly or through others."""
    pending = list(labels)
    done = set(pending)
    while pending:
        current = pending.pop()
        yield current
        for term in state.sums[current].terms:
            for part, _ in term.factors:
                if part in state.sums and part not in done:
                    done.add(part)
                    pending.append(part)


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
    for n in range(len(held), len(source.spaces)):
        number[n] = len(extended)
        extended.append(source.spaces[n])
    new = tuple((label, tuple(number[i] for i in axes)) for label, axes in source.factors)
    factors = tuple(sorted((*parts[:place], *parts[place + 1 :], *new)))
    return Product(factors, tuple(extended))


def prune(state: State) -> None:
    """Remove the arrays that no target reads, directly or through other arrays."""
    used = set(_reached(state, state.targets))
    for label in [n for n in state.sums if n not in used]:
        del state.sums[label]
        state.factored.discard(label)

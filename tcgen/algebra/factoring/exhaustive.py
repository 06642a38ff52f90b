"""The cheapest factoring of a small system: all binary orders, common factors and shared arrays.

An array is a sum of products of the user's tensors. It is computed from smaller ones: each of its
terms, or of the blocks into which they are divided, is added from an array, or is a product of two
arrays (common factors times the sum of the others), or a product of tensors in one loop. The cost
of the rest depends only on the arrays still to be computed, largest first, so that a table over
sets of arrays has the optimum. Groups of arrays that have no part in common are searched apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from math import prod
from typing import NamedTuple

from ...ir.reduction import Reduction
from ...ir.system import Equation, System
from ...ir.tensor import Ref
from ...thresholds import AlgebraThresholds
from ..binary_orders import pays_in_one_loop
from ..cost_model import CostModel
from ..equations.inline import inline_all, keep_needed
from ..equations.normal_form import NormalForms
from .canonical_forms import Part, Parts
from .costs import ProductCosts
from .greedy import State
from .interning import ONES, ArrayTable
from .lift import Lifted, lift, without_name_order
from .sums import Algebra, Frame, Product, TermSum, renumbered, trivial
from .write_back import copies_first, outputs_as_arrays, write_system

_Terms = tuple[tuple[Fraction, Parts], ...]


class _Method(NamedTuple):
    """A method to compute an array, or to add one product to it.

    Attributes:
        cost: flops and traffic of its steps.
        needs: labels of the arrays that it reads, apart from the user's tensors.
        terms: products that its steps add, over the left indices of the array.
        additions: number of its steps that add to the array and are free if they come first.
    """

    cost: int
    needs: frozenset[int]
    terms: tuple[tuple[Product, Fraction], ...]
    additions: int = 0


def optima(
    system: System,
    extents: Mapping[str, int],
    forms: NormalForms,
    thresholds: AlgebraThresholds,
    models: Sequence[CostModel],
) -> list[tuple[System, Fraction] | None]:
    """For each cost, the cheapest factoring of a small system and its cost in one call.

    All definitions are inlined first, those of outputs too, so that the notation does not matter.
    None stands for a system that is too large, or has terms that the search cannot take.
    """
    lifted = None if any(m.packed for m in models) else _small(system, forms, thresholds)
    if lifted is None:
        return [None] * len(models)
    widths = tuple(sum(extents[b.name] for b in s.bases) for s in lifted.spaces)
    result: list[tuple[System, Fraction] | None] = []
    for model in models:
        calls = model.calls if lifted.algebra.constant else 1
        costs = ProductCosts(widths, replace(model, calls=calls), lifted.algebra.constant)
        arrays = ArrayTable(lifted.algebra)
        search = _Exhaustive(lifted.algebra, arrays, costs, thresholds.exhaustive_methods)
        found = search.best(lifted.targets)
        if found is None:
            result.append(None)
            continue
        state, cost = found
        written = outputs_as_arrays(copies_first(write_system(lifted, state)))
        result.append((written, Fraction(cost, calls)))
    return result


def _small(system: System, forms: NormalForms, thresholds: AlgebraThresholds) -> Lifted | None:
    """The multiplied-out system as sums, if it is small and its terms are products of tensors."""
    most = thresholds.exhaustive_terms
    known: dict[str, Equation] = {}
    for old in system.equations:
        plain = old.reduction is Reduction.SUM and not any(t.perms for t in old.terms)
        if not plain or old.lhs.tensor.accumulate or _grows(old, known, thresholds):
            return None
        known[old.lhs.tensor.name] = new = inline_all(old, known)
        if len(new.terms) > most:
            return None
    written = keep_needed(replace(system, equations=tuple(known.values())))
    limits = replace(thresholds, target_permutations=1)  # left sides without symmetry
    lifted = without_name_order(lift(written, forms, limits), limits.label_orders)
    terms = sum(len(total.terms) for total in lifted.targets.values())
    tensors = all(isinstance(factor, Ref) for factor in lifted.atoms.values())
    return lifted if tensors and terms <= most and not any(lifted.opaque.values()) else None


def _grows(
    equation: Equation, known: Mapping[str, Equation], thresholds: AlgebraThresholds
) -> bool:
    """True if an equation would be too large once the definitions it reads are inlined.

    Inlined terms that are alike are added up only then, so that some more are let through.
    """
    terms, longest = 0, 0
    for term in equation.terms:
        names = [f.tensor.name for f in term.factors if isinstance(f, Ref)]
        read = [known[name] for name in names if name in known]
        terms += prod(len(e.terms) for e in read)
        inner = sum(max((len(t.factors) for t in e.terms), default=0) for e in read)
        longest = max(longest, len(term.factors) - len(read) + inner)
    return terms > thresholds.exhaustive_terms**2 or longest > thresholds.term_factors


class _TooLargeError(Exception):
    """The work of a search is used up."""


@dataclass(slots=True)
class _Exhaustive:
    """The search.

    Attributes:
        work: number of methods that may still be examined.
        methods: all methods to compute each array.
        parts: each array and those that its methods read, directly or through others.
        least: least cost of each set of arrays, and the method for its largest one.
    """

    algebra: Algebra
    arrays: ArrayTable
    costs: ProductCosts
    work: int
    methods: dict[int, tuple[_Method, ...]] = field(default_factory=dict)
    parts: dict[int, frozenset[int]] = field(default_factory=dict)
    least: dict[frozenset[int], tuple[int, _Method]] = field(default_factory=dict)

    def best(self, targets: Mapping[int, TermSum]) -> tuple[State, int] | None:
        """The cheapest state and its cost; None if the search is too long."""
        self.algebra.forms.add(ONES, trivial(1))
        state = State({}, tuple(targets))
        needed: set[int] = set()
        for target, total in targets.items():
            rank = total.frame.rank
            spaces, terms = self._apart(total)
            state.sums[target] = TermSum(total.frame, {})
            value = self._value(range(rank), terms, spaces)
            if value is not None:
                part, scale = value
                state.sums[target].add(renumbered((part,), range(rank), spaces), scale)
                needed |= self._needs((part,))
        try:
            cost = self._cost(frozenset(needed))
        except _TooLargeError:
            return None
        pending = [frozenset(needed)]
        while pending:
            groups = self._apart_groups(pending.pop())
            for group in groups:
                label = self._largest(group)
                method = self.least[group][1]
                state.sums[label] = TermSum(self.arrays.sums[label].frame, dict(method.terms))
                pending.append((group - {label}) | method.needs)
        return state, cost

    def _apart_groups(self, pending: frozenset[int]) -> list[frozenset[int]]:
        """Arrays in groups without a common part, whose costs add up."""
        groups: list[tuple[frozenset[int], frozenset[int]]] = []
        for label in sorted(pending):
            members, parts = frozenset({label}), self._parts(label)
            apart = []
            for group in groups:
                if parts & group[1]:
                    members, parts = members | group[0], parts | group[1]
                else:
                    apart.append(group)
            groups = [*apart, (members, parts)]
        return [members for members, _ in groups]

    def _parts(self, label: int) -> frozenset[int]:
        """An array and all arrays that a method to compute it reads, directly or through others."""
        if label not in self.parts:
            read = frozenset().union(*(method.needs for method in self._methods(label)))
            self.parts[label] = frozenset({label}).union(*map(self._parts, read))
        return self.parts[label]

    def _apart(self, total: TermSum) -> tuple[list[int], _Terms]:
        """The spaces of the indices of a sum and its terms, each with summed indices of its own."""
        rank = total.frame.rank
        spaces = list(total.frame.spaces)
        terms = []
        for (parts, own), coeff in sorted(total.terms.items()):
            shift = len(spaces) - rank
            terms.append((coeff, _moved(parts, rank, shift)))
            spaces += own[rank:]
        return spaces, tuple(terms)

    def _value(
        self, left: Iterable[int], terms: _Terms, spaces: Sequence[int]
    ) -> tuple[Part, Fraction] | None:
        """A sum as a reference to a tensor or an array, and a factor; None if it is zero."""
        left = tuple(left)
        total = TermSum(Frame(tuple(spaces[i] for i in left), trivial(len(left))), {})
        for coeff, parts in terms:
            held = _held(parts)
            ones = tuple((ONES, (i,)) for i in left if i not in held)
            self.algebra.add(total, renumbered((*parts, *ones), left, spaces), coeff)
        if not total.terms:
            return None
        if len(total.terms) == 1:
            ((factors, own), coeff) = next(iter(total.terms.items()))
            if len(factors) == 1 and len(own) == len(left):
                ((label, axes),) = factors
                return (label, tuple(left[i] for i in axes)), coeff
        label, order, scale = self.arrays.intern(total, 0)
        return (label, tuple(left[i] for i in order)), scale

    def _needs(self, parts: Iterable[Part]) -> frozenset[int]:
        """The arrays among some factors."""
        return frozenset(label for label, _ in parts if label in self.arrays.sums)

    def _size(self, label: int) -> int:
        """Number of factors of all terms of an array; those that it reads have fewer."""
        return sum(len(_real(parts)) for parts, _ in self.arrays.sums[label].terms)

    def _largest(self, pending: frozenset[int]) -> int:
        """The array that is computed from others first, of which no other one is a part."""
        return max(pending, key=lambda label: (self._size(label), label))

    def _cost(self, pending: frozenset[int]) -> int:
        """The least cost of some arrays together."""
        return sum(map(self._cost_of_group, self._apart_groups(pending)))

    def _cost_of_group(self, group: frozenset[int]) -> int:
        """The least cost of arrays that have parts in common."""
        known = self.least.get(group)
        if known is None:
            label = self._largest(group)
            rest = group - {label}
            methods = self._methods(label)
            self._count(len(methods))
            known = self.least[group] = min(
                ((method.cost + self._cost(rest | method.needs), method) for method in methods),
                key=lambda found: found[0],
            )
        return known[0]

    def _count(self, work: int) -> None:
        """Take some work from what is left."""
        self.work -= work
        if self.work < 0:
            raise _TooLargeError

    def _methods(self, label: int) -> tuple[_Method, ...]:
        """All methods to compute an array, the cheapest for each set of arrays that it reads."""
        if label not in self.methods:
            total = self.arrays.sums[label]
            runs = 1 if label in self.algebra.constant else self.costs.model.calls
            best: dict[frozenset[int], _Method] = {}
            for method in self._methods_of(total, runs):
                self._count(1)
                if method.needs not in best or method.cost < best[method.needs].cost:
                    best[method.needs] = method
            self.methods[label] = tuple(best.values())
        return self.methods[label]

    def _methods_of(self, total: TermSum, runs: int) -> Iterator[_Method]:
        """All methods to compute a sum in ``runs`` calls: its terms in blocks, each by itself."""
        rank = total.frame.rank
        spaces, terms = self._apart(total)
        known: dict[_Terms, list[_Method]] = {}
        for blocks in _partitions(terms):
            for block in blocks:
                if block not in known:
                    known[block] = list(self._contributions(rank, block, spaces, runs, terms))
                    self._count(len(known[block]))
            for chosen in product(*(known[block] for block in blocks)):
                yield self._together(chosen, total.frame, runs)

    def _together(self, chosen: Sequence[_Method], frame: Frame, runs: int) -> _Method:
        """Several contributions; the first addition is free, and so is the commonest factor."""
        terms = tuple(term for method in chosen for term in method.terms)
        cost = sum(method.cost for method in chosen)
        additions = sum(method.additions for method in chosen)
        if additions:
            factors = [abs(c) for method in chosen if method.additions for _, c in method.terms]
            scaled = len(factors) - max(Counter(factors).values())
            count = additions - 1 + scaled
            cost += runs * int(self.costs.model.addition * count * self.costs.volume(frame.spaces))
        return _Method(cost, frozenset().union(*(method.needs for method in chosen)), terms)

    def _contributions(
        self, rank: int, block: _Terms, spaces: list[int], runs: int, terms: _Terms
    ) -> Iterator[_Method]:
        """Methods to add a block of the terms of a sum to its array, in one step."""
        held = {i for _, parts in block for i in _held(parts)}
        left = [i for i in range(rank) if i in held]
        (coeff, first), *others = block
        if not first and not others:
            one = Product((), tuple(spaces[:rank]))
            traffic = self._traffic([range(rank)], spaces)
            yield _Method(runs * traffic, frozenset(), ((one, coeff),), 1)
            return
        if len(block) < len(terms) or len(left) < rank:
            value = self._value(left, block, spaces)
            if value is not None:
                part, scale = value
                term = renumbered((part,), range(rank), spaces)
                arrays = [part[1], tuple(range(rank))]
                traffic = self._traffic(arrays, spaces)
                yield _Method(runs * traffic, self._needs((part,)), ((term, scale),), 1)
        if len(left) == rank:
            if not others and self._in_one_loop(rank, first, spaces):
                yield self._loop(rank, block[0], spaces, runs)
            yield from self._products(rank, block, spaces, runs)

    def _in_one_loop(self, rank: int, parts: Parts, spaces: Sequence[int]) -> bool:
        """True for a sum over one tensor, and for a product that no binary order computes faster.

        Indices that only one factor of a product holds are summed before.
        """
        number = {i: n for n, i in enumerate(_held(parts))}
        held = tuple(sum(1 << number[i] for i in set(indices)) for _, indices in parts)
        left = sum(1 << n for i, n in number.items() if i < rank)
        alone = any((left >> n & 1) + sum(h >> n & 1 for h in held) < 2 for n in number.values())
        widths = tuple(self.costs.extents[spaces[i]] for i in number)
        return len(parts) == 1 or (not alone and pays_in_one_loop(held, left, widths))

    def _loop(
        self, rank: int, term: tuple[Fraction, Parts], spaces: list[int], runs: int
    ) -> _Method:
        """All factors of a term in one loop."""
        coeff, parts = term
        points = self.costs.volume(tuple(spaces[i] for i in {*range(rank), *_held(parts)}))
        summed = not _held(parts) <= set(range(rank))
        count = len(parts) - (not summed)
        traffic = self._traffic([tuple(range(rank)), *(held for _, held in parts)], spaces)
        cost = runs * (int(self.costs.model.addition * count * points) + traffic)
        whole = renumbered(parts, range(rank), spaces)
        return _Method(cost, frozenset(), ((whole, coeff),), int(not summed))

    def _traffic(self, arrays: Iterable[Iterable[int]], spaces: Sequence[int]) -> int:
        """Cost of reading or writing some arrays, each given by the indices on its axes."""
        return self.costs.traffic(tuple(spaces[i] for i in dict.fromkeys(a)) for a in arrays)

    def _products(
        self, rank: int, block: _Terms, spaces: list[int], runs: int
    ) -> Iterator[_Method]:
        """Methods to compute a block as common factors times the sum of the other factors."""
        (coeff, first), *others = block
        forms = self.algebra.forms
        left = (forms.left(trivial(rank)), tuple(range(rank)))
        kinds = tuple(2 * space + (i < rank) for i, space in enumerate(spaces))
        halves = (
            _halves(first, whole=True)
            if others
            else _halves(first[1:], common=first[:1], whole=False)
        )
        for common, rest in halves:
            form = forms.form((*common, left), kinds)
            matches: list[list[tuple[Fraction, Parts]]] = []
            for other_coeff, parts in others:
                found = []
                for same, other_rest in _halves(parts, whole=True):
                    if len(same) != len(common):
                        continue
                    match = forms.form((*same, left), kinds)
                    if match.key == form.key:
                        for order, sign in match.ties():
                            image = dict(zip(order, form.order, strict=True))
                            moved = tuple(
                                (label, tuple(image.get(i, i) for i in held))
                                for label, held in other_rest
                            )
                            found.append((other_coeff * sign * form.sign, moved))
                matches.append(found)
            for chosen in product(*matches):
                method = self._product(rank, common, ((coeff, rest), *chosen), spaces, runs)
                if method is not None:
                    yield method

    def _product(
        self, rank: int, common: Parts, rests: _Terms, spaces: list[int], runs: int
    ) -> _Method | None:
        """The product of common factors and a sum; None if one of the two is zero."""
        inside = _held(common)
        outside = {i for _, parts in rests for i in _held(parts)}
        one = self._value(
            sorted(i for i in inside if i in outside or i < rank), ((Fraction(1), common),), spaces
        )
        two = self._value(sorted(i for i in outside if i in inside or i < rank), rests, spaces)
        if one is None or two is None:
            return None
        both = (one[0], two[0])
        points = {*range(rank), *_held(both)}
        flops = 2 * self.costs.volume(tuple(spaces[i] for i in points))
        traffic = self._traffic([tuple(range(rank)), one[0][1], two[0][1]], spaces)
        term = renumbered(both, range(rank), spaces)
        return _Method(runs * (flops + traffic), self._needs(both), ((term, one[1] * two[1]),))


def _held(parts: Iterable[Part]) -> set[int]:
    return {i for _, held in parts for i in held}


def _real(parts: Parts) -> Parts:
    """The factors without the ones along indices that no factor holds."""
    return tuple(p for p in parts if p[0] != ONES)


def _moved(parts: Parts, rank: int, shift: int) -> Parts:
    """The factors with other numbers for the summed indices."""
    return tuple(
        (label, tuple(i if i < rank else i + shift for i in held)) for label, held in _real(parts)
    )


def _halves(parts: Parts, common: Parts = (), *, whole: bool) -> Iterator[tuple[Parts, Parts]]:
    """The divisions of some factors into common ones, with those given, and others.

    With ``whole`` all factors may be common. No division has no common factors.
    """
    full = (1 << len(parts)) - 1
    for mask in range(full + whole):
        one = tuple(p for n, p in enumerate(parts) if mask >> n & 1)
        if common or one:
            yield (*common, *one), tuple(p for n, p in enumerate(parts) if not mask >> n & 1)


def _partitions(terms: _Terms) -> Iterator[list[_Terms]]:
    """All divisions of some terms into blocks."""
    if not terms:
        yield []
        return
    first, *others = terms
    for mask in range(1 << len(others)):
        block = (first, *(t for n, t in enumerate(others) if mask >> n & 1))
        rest = tuple(t for n, t in enumerate(others) if not mask >> n & 1)
        yield from ([block, *blocks] for blocks in _partitions(rest))

"""The search for the cheapest factorisation: a greedy start, then random improvement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, prod
from random import Random
from typing import TypeAlias

from ...ir.system import Equation, System
from ...ir.tensor import Ref, Role
from ...thresholds import AlgebraThresholds
from ..cost_model import CostModel
from ..equations.inline import inline_all, keep_needed
from ..equations.normal_form import NormalForms
from .basis_change import apply_change, changes, squares
from .complete_product import completed
from .costs import ProductCosts, SequenceCosts
from .greedy import Search, State, prune
from .interning import ArrayTable, SymmetricArrayTable
from .lift import Lifted, lift, orders, without_name_order
from .packed_costs import PackedSequenceCosts, split_products
from .sums import TermSum
from .write_back import write_system

_PROGRESS_ROUNDS = 50  # rounds of improvement between two reports of progress
_DENSE = CostModel()


def factored(
    system: System,
    extents: Mapping[str, int],
    forms: NormalForms,
    effort: int,
    thresholds: AlgebraThresholds,
    models: Sequence[CostModel] = (_DENSE,),
    progress: Callable[[str], None] = lambda _: None,
    note: Callable[[str], None] = lambda _: None,
) -> list[System]:
    """The system with brackets multiplied out and the sums factored anew, once for each cost.

    An intermediate keeps its name where its readers would get too large without it. The result is
    empty if the system is too large even so; the user's own factoring then stands. The symmetries
    of the system are derived. The search is deterministic; its ``effort`` is in units of
    ``work_per_effort``, and 0 is one greedy factoring. ``progress`` is called with a text that
    tells the best cost so far, and ``note`` with one for each equation or term that a limit keeps
    out of the search.
    """
    terms = sum(len(e.terms) for e in system.equations)
    most = thresholds.multiplied_out_terms
    if terms > most:
        note(f"all equations: they have {terms} terms, more than {most}")
        return []
    lifted = _lifted(system, forms, thresholds, progress, note)
    if lifted is None:
        return []
    widths = tuple(sum(extents[b.name] for b in s.bases) for s in lifted.spaces)
    terms = sum(len(e.terms) for e in lifted.system.equations)
    progress(f"factoring: {terms} terms, common factors")
    algebra = lifted.algebra
    packed = any(model.packed for model in models)
    arrays = SymmetricArrayTable(algebra) if packed else ArrayTable(algebra)
    made: list[System] = []
    state: State | None = None
    for model in models:
        # Smaller numbers for the same comparisons.
        model = model if algebra.constant else replace(model, calls=1)
        product_costs = ProductCosts(widths, model, algebra.constant)
        costs = (PackedSequenceCosts if packed else SequenceCosts)(algebra, product_costs)
        search = Search(algebra, arrays, costs, Random(0), thresholds)
        starts = _starts(search, lifted.targets, state, longer=effort > 0)
        state = _improved(search, starts, effort, progress)
        written = state
        if isinstance(costs, PackedSequenceCosts):
            written = split_products(search, costs, state)
        made.append(write_system(lifted, written, symmetric=packed))
    return made


def _lifted(
    system: System,
    forms: NormalForms,
    thresholds: AlgebraThresholds,
    progress: Callable[[str], None],
    note: Callable[[str], None],
) -> Lifted | None:
    """The sums of the multiplied-out system; None if they have too many splits.

    Like terms often leave so few terms that all of them can be factored. Otherwise the
    intermediates that make too many terms keep their names.
    """
    splits = 0
    for most_splits in (None, thresholds.term_splits):
        notes: list[str] = []
        multiplied = _multiplied_out(system, thresholds, most_splits, notes.append)
        terms = sum(len(e.terms) for e in multiplied.equations)
        progress(f"factoring: {terms} terms in canonical form")
        lifted = lift(multiplied, forms, thresholds)
        splits = lifted.splits
        if splits <= thresholds.term_splits:
            for text in (*notes, *lifted.notes):
                note(text)
            return without_name_order(lifted, thresholds.label_orders)
    note(f"all equations: {splits} splits of their terms, more than {thresholds.term_splits}")
    return None


def _starts(
    search: Search, targets: Mapping[int, TermSum], known: State | None, *, longer: bool
) -> list[State]:
    """The cheapest greedy state of several: from the planning extents and with one space longer.

    Where two forms have nearly equal costs, the greedy search may choose the wrong one. At extents
    where the costs differ more it chooses well, and its result is often the best one here too. A
    second state has squares, if these lower the cost. If the best state for another cost is
    ``known``, all spaces have their planning extents; without ``longer`` the state is that of the
    targets as they are, without changes of basis.
    """
    if not longer:
        return [_factored_from(search, search.start(targets), [])[0]]
    changed, states = _started(search, targets)
    if known is not None:
        return [*states, known.copy()]
    costs = search.costs
    least = min(costs.total(state.sums.values()) for state in states)
    for space in range(len(costs.product_costs.extents)):
        factor = search.thresholds.longer_extent_factor
        search.costs = costs.at(costs.product_costs.with_longer(space, factor))
        others = [_factored_from(search, *start)[0] for start in changed]
        search.costs = costs
        cost = min(costs.total(state.sums.values()) for state in others)
        if cost < least:
            states, least = others, cost
    return states


# Sums before they are factored, and the arrays in them that changes of basis made.
_Raw: TypeAlias = tuple[State, list[int]]


def _started(search: Search, targets: Mapping[int, TermSum]) -> tuple[list[_Raw], list[State]]:
    """The targets after the changes of basis that lower the cost, and factored greedily.

    A second state follows if squares lower the cost further. They come last: what they replace is
    no longer there for a change of basis.
    """
    raw = search.start(targets)
    made: list[int] = []
    best, least = _factored_from(search, raw, made)
    starts: list[tuple[_Raw, State]] = []
    for proposed in (changes, squares):
        pending = list(raw.targets)
        for label in pending:  # the list grows in the loop
            if label not in raw.targets:
                search.widen(raw, label)
            for change in proposed(search, raw, label):
                trial = raw.copy()
                new = apply_change(search, trial, change)
                state, cost = _factored_from(search, trial, [*made, *new])
                if cost < least:
                    best, least, raw = state, cost, trial
                    made = [*made, *(n for n in new if n not in made)]
                    pending += [label, *new]
                    break
        if not starts or best is not starts[0][1]:
            starts.append(((raw.copy(), made), best))
    return [start for start, _ in starts], [state for _, state in starts]


def _factored_from(search: Search, raw: State, made: list[int]) -> tuple[State, int]:
    """A factored copy of a state, and its cost."""
    state = raw.copy()
    search.run(state, [*state.targets, *made])
    prune(state)
    return state, search.costs.total(state.sums.values())


@dataclass(frozen=True, slots=True)
class _Expanded:
    """The size of an equation in which intermediates are inlined.

    Attributes:
        factors: number of factors of its longest term.
        repeats: maximum number of times that each tensor is a factor of one term.
        splits: places in which its terms can be split in two.
        searched: True if the search could take every term that inlining changes.
    """

    terms: int
    factors: int
    repeats: Mapping[str, int]
    splits: int
    searched: bool

    def fits(self, terms: int, splits: float) -> bool:
        """True if the search could take the equation, with at most so many terms and splits."""
        return self.searched and self.terms <= terms and self.splits <= splits


def _multiplied_out(
    system: System,
    thresholds: AlgebraThresholds,
    most_splits: int | None,
    note: Callable[[str], None],
) -> System:
    """The system with intermediates inlined.

    An intermediate stays, with a ``note``, from the first equation on that the search could not
    factor without it: there would be too many terms, terms with too many factors, or more than
    ``most_splits`` places in which the terms can be split, like terms apart (None: any number).
    """
    equations: list[Equation] = []
    known: dict[str, Equation] = {}
    expanded: dict[str, _Expanded] = {}  # sizes of ``known``
    kept: list[str] = []
    terms, splits = thresholds.multiplied_out_terms, inf if most_splits is None else most_splits
    for old in system.equations:
        whole = _expanded(old, expanded, thresholds)
        if not whole.fits(terms, splits):
            large = _largest_first(old, expanded)
            # The fewest of them, largest first, without which the equation is small enough.
            few, many = 1, len(large)
            while few < many:
                middle = (few + many) // 2
                rest = {n: e for n, e in expanded.items() if n not in large[:middle]}
                if _expanded(old, rest, thresholds).fits(terms, splits):
                    many = middle
                else:
                    few = middle + 1
            for name in large[:few]:
                kept.append(name)
                del known[name], expanded[name]
            whole = _expanded(old, expanded, thresholds)
        current = inline_all(old, known)
        if old.lhs.tensor.role is Role.TEMP:
            known[old.lhs.tensor.name] = current
            images = max((len(t.perms) for t in old.terms), default=0) or 1
            expanded[old.lhs.tensor.name] = replace(whole, terms=whole.terms * images)
        else:
            terms, splits = terms - whole.terms, splits - whole.splits
        equations.append(current)
    if kept:
        shown = ", ".join(kept[:3]) + (", ..." if len(kept) > 3 else "")
        note(f"{len(kept)} intermediates are not multiplied out, because of their size: {shown}")
    return keep_needed(replace(system, equations=tuple(equations)))


def _expanded(
    equation: Equation, expanded: Mapping[str, _Expanded], thresholds: AlgebraThresholds
) -> _Expanded:
    """The size of an equation once the given intermediates are inlined in it."""
    terms, factors, splits, searched = 0, 1, 0, True
    repeats: dict[str, int] = {}
    for term in equation.terms:
        names = [f.tensor.name if isinstance(f, Ref) else str(f) for f in term.factors]
        read = [expanded[name] for name in names if name in expanded]
        length = len(names) - len(read) + sum(e.factors for e in read)
        count = prod(e.terms for e in read)
        held = Counter(name for name in names if name not in expanded)
        for inner in read:
            held.update(inner.repeats)
        if count > 1 or length > len(names):
            searched &= length <= thresholds.term_factors
            searched &= orders(held.values()) <= thresholds.factor_orders
        terms += count
        factors = max(factors, length)
        splits += count << min(length, thresholds.term_factors)
        for name, times in held.items():
            repeats[name] = max(times, repeats.get(name, 0))
    return _Expanded(terms, factors, repeats, splits, searched)


def _largest_first(equation: Equation, expanded: Mapping[str, _Expanded]) -> list[str]:
    """The intermediates of an equation whose inlining makes it larger."""
    read = {name: expanded[name] for name in equation.reads if name in expanded}
    larger = [name for name, e in read.items() if e.terms > 1 or e.factors > 1]
    return sorted(larger, key=lambda name: (-read[name].factors, -read[name].terms))


def _improved(
    search: Search, starts: list[State], effort: int, progress: Callable[[str], None]
) -> State:
    """The cheapest state that random improvement reaches within the effort.

    A search of more effort goes on where one of less effort ends, so that its result is never
    worse. It ends early where a unit of effort that was not used up brought nothing.
    """
    firsts = [completed(search, state) for state in starts]
    best = min(firsts, key=lambda first: first[1])
    for number in range(effort):
        before, budget = best[1], search.work + search.thresholds.work_per_effort
        done = f"{number + 1} of {effort}"
        best = _round(search, firsts if number == 0 else [best], best, done, progress)
        if best[1] == before and search.work <= budget:
            break
    return best[0]


def _round(
    search: Search,
    firsts: list[tuple[State, int]],
    best: tuple[State, int],
    done: str,
    progress: Callable[[str], None],
) -> tuple[State, int]:
    """The cheapest state, and its cost, that one unit of effort reaches.

    Each trial dissolves some arrays and factors their readers anew, with random savings. The result
    replaces the current state if it is cheaper, or only a little dearer in early trials. A pass
    ends early when it no longer meets new costs, as small systems have few forms. There are several
    passes, from the starts in turn, because they may end in different forms.
    """
    limits = search.thresholds
    budget = search.work + limits.work_per_effort
    for number_of_pass in range(limits.improvement_passes):
        current, cost = firsts[number_of_pass % len(firsts)]
        arrays = len(current.sums) - len(current.targets)
        trials = limits.rounds_per_array * arrays
        known, latest = {cost}, 0  # costs seen in this pass, and the trial of the latest new one
        for number in range(trials):
            if search.work > budget:
                return best
            if number - latest >= limits.idle_rounds_per_array * arrays:
                break
            trial = current.copy()
            search.noise = limits.noise_exponent * search.random.random()
            changed = _dissolve_some(search, trial)
            prune(trial)
            search.run(trial, [n for n in dict.fromkeys(changed) if n in trial.sums])
            prune(trial)
            trial_cost = search.costs.total(trial.sums.values())
            if trial_cost not in known:
                known.add(trial_cost)
                latest = number
            if trial_cost <= cost * (1 + limits.accepted_increase * (1 - number / trials)):
                current, cost = trial, trial_cost
            if trial_cost < best[1]:
                best = completed(search, trial)
                current, cost = best
            if number % _PROGRESS_ROUNDS == 0:
                flops = best[1] / search.product_costs.model.calls
                progress(f"factoring: {flops:.4e} flops so far, effort {done}, trial {number}")
    return best


def _dissolve_some(search: Search, state: State) -> list[int]:
    """Dissolve arrays chosen at random; returns the sums to factor anew.

    The choice is among three: a few arrays anywhere; some of the arrays that one sum reads; or
    nearly all arrays that one sum reads, mostly with the arrays that those read, so that the sum
    can be built anew around the few that stay.
    """
    draw = search.random
    readers = [n for n, total in state.sums.items() if _read_by(state, total)]
    if not readers:
        return []
    kind = draw.random()
    if kind < 0.3:
        arrays = [n for n in state.sums if n not in state.targets]
        chosen = draw.sample(arrays, min(len(arrays), draw.choice((1, 1, 2, 2, 3, 4))))
        return _dissolve_all(search, state, chosen)
    near = _read_by(state, state.sums[draw.choice(readers)])
    if kind < 0.6:
        return _dissolve_all(search, state, draw.sample(near, draw.randint(1, len(near))))
    stay = set(draw.sample(near, min(len(near), draw.choice((1, 1, 2, 3)))))
    chosen = [n for n in near if n not in stay]
    if draw.random() < 0.7:
        for label in chosen:  # the list grows in the loop
            more = _read_by(state, state.sums[label])
            chosen.extend(n for n in more if n not in stay and n not in chosen)
    return _dissolve_all(search, state, chosen)


def _dissolve_all(search: Search, state: State, labels: list[int]) -> list[int]:
    return [n for label in labels for n in search.dissolve(state, label)]


def _read_by(state: State, total: TermSum) -> list[int]:
    """Arrays that a sum reads, each once."""
    labels = (label for term in sorted(total.terms) for label, _ in term.factors)
    arrays = (n for n in labels if n in state.sums and n not in state.targets)
    return list(dict.fromkeys(arrays))

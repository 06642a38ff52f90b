"""The factored system: greedy factoring, then improved as long as the effort allows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import prod
from random import Random

from ...ir.system import Equation, System
from ...ir.tensor import Role
from ...thresholds import AlgebraThresholds
from ..cost_model import CostModel
from ..equations.inline import inline_all, keep_needed
from .basis_change import apply_change, changes
from .binary_products import split_products
from .complete_product import completed
from .costs import Ledger, Prices
from .greedy import Search, State, prune
from .interning import Arrays, SymmetricArrays
from .lift import lift
from .packed_costs import PackedLedger
from .sums import Sum
from .write_back import write_system

_PROGRESS_ROUNDS = 50  # rounds of improvement between two reports of progress
_DENSE = CostModel()


def factored(
    system: System,
    extents: Mapping[str, int],
    complex_values: bool,
    effort: int,
    thresholds: AlgebraThresholds,
    model: CostModel = _DENSE,
    progress: Callable[[str], None] = lambda _: None,
    note: Callable[[str], None] = lambda _: None,
) -> System | None:
    """The system with every bracket multiplied out and the sums factored anew.

    None where there would be too many terms or factors: the user's own factoring stands then.

    Args:
        system: equations with derived symmetries.
        extents: planning extents of the base spaces.
        complex_values: whether hermitian symmetries must be left alone.
        effort: amount of work; the result depends on it and on nothing random.
        thresholds: limits of the search.
        model: what counts as cost.
        progress: called with the best cost so far.
        note: called with what is left as written because a limit is reached.
    """
    terms = _terms_multiplied_out(system)
    most = thresholds.multiplied_out_terms
    if terms > most:
        note(f"all equations: multiplied out they have {terms} terms, more than {most}")
        return None
    lifted = lift(_multiplied_out(system), complex_values, thresholds)
    splits = sum(1 << len(parts) for s in lifted.targets.values() for parts, _ in s.terms)
    if splits > thresholds.term_splits:
        most = thresholds.term_splits
        note(f"all equations: {splits} splits of their terms, more than {most}")
        return None
    for text in lifted.notes:
        note(text)
    prices = Prices(tuple(sum(extents[b.name] for b in s.bases) for s in lifted.spaces), model)
    algebra = lifted.algebra
    packed = PackedLedger(algebra, prices) if model.packed else None
    arrays = Arrays(algebra) if packed is None else SymmetricArrays(algebra)
    ledger = Ledger(algebra, prices) if packed is None else packed
    search = Search(algebra, arrays, ledger, Random(0), thresholds)
    state = _improved(search, _best_start(search, lifted.targets), effort, progress)
    if packed is not None:
        state = split_products(search, packed, state)
    return write_system(lifted, state, symmetric=packed is not None)


def _best_start(search: Search, targets: Mapping[int, Sum]) -> State:
    """The cheapest of the states found at the extents and where one space is longer.

    Near extents at which two forms cost the same the greedy choice may go wrong; it does not
    where they are further apart, and what it finds there is often the best one here too.
    """
    ledger = search.ledger
    best, least = None, 0
    for space in (None, *range(len(ledger.prices.extents))):
        if space is not None:
            search.ledger = ledger.at(
                ledger.prices.with_longer(space, search.thresholds.longer_extent_factor)
            )
        state = _started(search, targets)
        search.ledger = ledger
        flops = ledger.total(state.sums.values())
        if best is None or flops < least:
            best, least = state, flops
    assert best is not None
    return best


def _started(search: Search, targets: Mapping[int, Sum]) -> State:
    """The targets factored greedily, after those changes of basis that make this cheaper."""
    raw = search.start(targets)
    made: list[int] = []  # arrays of the changes, not factored
    best, least = _factored_from(search, raw, made)
    waiting = list(raw.targets)
    for label in waiting:  # grows
        if label not in raw.targets:
            search.widen(raw, label)
        for change in changes(search, raw, label):
            trial = raw.copy()
            new = apply_change(search, trial, change)
            state, flops = _factored_from(search, trial, [*made, *new])
            if flops < least:
                best, least, raw = state, flops, trial
                made += [n for n in new if n not in made]
                waiting += [label, *new]
                break
    return best


def _factored_from(search: Search, raw: State, made: list[int]) -> tuple[State, int]:
    state = raw.copy()
    search.run(state, [*state.targets, *made])
    prune(state)
    return state, search.ledger.total(state.sums.values())


def _terms_multiplied_out(system: System) -> int:
    """Terms of all equations once intermediates are inlined, with their permuted images."""
    counts: dict[str, int] = {}
    total = 0
    for equation in system.equations:
        tensor = equation.lhs.tensor
        inlined = _is_inlined(equation)
        count = 0
        for term in equation.terms:
            images = max(1, len(term.perms)) if inlined else 1
            count += images * prod(counts.get(ref.tensor.name, 1) for ref in term.refs)
        if inlined:
            counts[tensor.name] = count
        else:
            total += count
    return total


def _multiplied_out(system: System) -> System:
    """The system with intermediates inlined, but for constant products, which are computed once."""
    equations: list[Equation] = []
    known: dict[str, Equation] = {}
    for old in system.equations:
        current = inline_all(old, known)
        if _is_inlined(old):
            known[old.lhs.tensor.name] = current
        equations.append(current)
    return keep_needed(replace(system, equations=tuple(equations)))


def _is_inlined(equation: Equation) -> bool:
    """True of volatile intermediates and of constant sums, such as ``2*v[i,a,j,b] - v[i,b,j,a]``.

    A sum costs next to nothing, and as an array of its own it hides what it has in common with
    other terms; the search makes it again where it is a common factor.
    """
    tensor = equation.lhs.tensor
    sums = all(not t.sums and len(t.factors) == 1 == len(t.refs) for t in equation.terms)
    return tensor.role is Role.TEMP and (tensor.volatile or sums)


def _improved(search: Search, state: State, effort: int, progress: Callable[[str], None]) -> State:
    """Arrays dissolved at random and their readers factored anew, kept where that is cheaper.

    This is done several times from the start, because it may end in different forms; a small system
    has few, and once no new one turns up the rest of the effort is left.
    """
    first, least = completed(search, state)
    best = first
    limits = search.thresholds
    effort_work = effort * limits.work_per_effort
    budget = search.work + effort_work
    arrays = len(state.sums) - len(state.targets)
    rounds = effort * limits.rounds_per_array * arrays
    for _ in range(limits.improvement_passes):
        current = first
        cost = search.ledger.total(first.sums.values())
        known, latest = {cost}, 0  # costs, and the round of the latest new one
        for number in range(rounds):
            if search.work > budget:
                return best
            if number - latest >= limits.idle_rounds_per_array * arrays:
                break
            fresh = current.copy()
            search.noise = limits.noise_exponent * search.random.random()
            changed = _dissolved(search, fresh)
            prune(fresh)
            search.run(fresh, [n for n in dict.fromkeys(changed) if n in fresh.sums])
            prune(fresh)
            flops = search.ledger.total(fresh.sums.values())
            if flops not in known:
                known.add(flops)
                latest = number
            if flops <= cost * (1 + limits.accepted_increase * (1 - number / rounds)):
                current, cost = fresh, flops
            if flops < least:
                best, least = completed(search, fresh)
                current, cost = best, least
            if number % _PROGRESS_ROUNDS == 0:
                done = 100 - 100 * (budget - search.work) // effort_work
                progress(f"operations: {least:.4e} flops so far, {done} % of the effort")
    return best


def _dissolved(search: Search, state: State) -> list[int]:
    """Dissolve some arrays; returns the sums to factor anew.

    Either a few arrays anywhere, or some of those that one sum reads, or nearly all that one sum
    reads together with what they read, which leaves room to build on the few that stay.
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
        for label in chosen:  # grows
            more = _read_by(state, state.sums[label])
            chosen.extend(n for n in more if n not in stay and n not in chosen)
    return _dissolve_all(search, state, chosen)


def _dissolve_all(search: Search, state: State, labels: list[int]) -> list[int]:
    return [n for label in labels for n in search.dissolve(state, label)]


def _read_by(state: State, total: Sum) -> list[int]:
    """Arrays that a sum reads, each once."""
    found = (p for term in sorted(total.terms) for p, _ in term[0])
    return list(dict.fromkeys(p for p in found if p in state.sums and p not in state.targets))

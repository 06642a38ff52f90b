"""The factored system: greedy factoring, then improved as long as the effort allows."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from ..ir.system import System
from .expand import expand
from .lift import lift
from .search import Arrays, Ledger, Prices, Search, State, prune
from .write_sums import write_system

_ROUNDS_FOR_AN_ARRAY = 100
_MOST_ROUNDS = 3000
_BLUR = 3.0
_HEAT = 0.02


def factored(
    system: System, extents: Mapping[str, int], complex_values: bool, effort: int
) -> System:
    """The system with every bracket multiplied out and the sums factored anew.

    Args:
        system: equations with derived symmetries.
        extents: planning extents of the base spaces.
        complex_values: whether hermitian symmetries must be left alone.
        effort: amount of work; the result depends on it and on nothing random.
    """
    lifted = lift(expand(system, named=True), complex_values)
    prices = Prices(tuple(sum(extents[b.name] for b in s.bases) for s in lifted.spaces))
    algebra = lifted.algebra
    ledger = Ledger(algebra, prices)
    search = Search(algebra, Arrays(algebra), prices, ledger, Random(0))
    state = search.start(lifted.targets)
    search.run(state, list(state.targets))
    prune(state)
    return write_system(lifted, _improved(search, state, effort))


def _improved(search: Search, state: State, effort: int) -> State:
    """Arrays dissolved at random and their readers factored anew, kept where that is cheaper."""
    best, least = state, search.ledger.total(state)
    current, cost = best, least
    arrays = len(state.sums) - len(state.targets)
    rounds = effort * min(_MOST_ROUNDS, _ROUNDS_FOR_AN_ARRAY * arrays)
    draw = search.random
    for number in range(rounds):
        fresh = current.copy()
        search.noise = _BLUR * draw.random()
        changed: list[int] = []
        for _ in range(draw.choice((1, 1, 2, 2, 3, 4))):
            arrays_left = [n for n in fresh.sums if n not in fresh.targets]
            if arrays_left:
                changed += search.dissolve(fresh, draw.choice(arrays_left))
        prune(fresh)
        search.run(fresh, [n for n in dict.fromkeys(changed) if n in fresh.sums])
        prune(fresh)
        flops = search.ledger.total(fresh)
        if flops <= cost * (1 + _HEAT * (1 - number / rounds)):
            current, cost = fresh, flops
        if flops < least:
            best, least = fresh, flops
    return best

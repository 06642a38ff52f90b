"""Least memory of a program, exactly: searches with or without an order of the statements."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..sharing.candidates import (
    Arrangement,
    FusionCandidates,
    independent,
    unmodelled,
    without_order,
)
from ..sharing.statement_order import Cycle, in_order
from ..solver.memory_model import FusionModel, SearchResult


def solve_exact(
    candidates: FusionCandidates,
    weights: Mapping[int, int],
    extents: Mapping[str, int],
    seconds: float,
    hint: Arrangement,
    *,
    peak: bool,
    at_least: int = 0,
) -> SearchResult:
    """The arrangement of least static sum, or of least peak.

    Args:
        candidates: of the program.
        weights: by position in ``candidates.instances``, of one element: 1, or its bytes.
        extents: of the base spaces.
        seconds: deterministic.
        hint: an arrangement to start from.
        peak: the objective counts what is live at one time; else all arrays.
        at_least: a proven lower bound on the objective.

    Source: Allam et al., Eq. (6), for the static sum.

    Raises:
        PlanError: the solver refuses the model.
    """
    model = FusionModel(
        candidates,
        weights,
        extents,
        hint,
        peak=peak,
        ordered=True,
        at_least=at_least,
    )
    return model.solve(seconds)


def solve_static(
    candidates: FusionCandidates,
    extents: Mapping[str, int],
    seconds: float,
    hint: Arrangement,
    rounds: int,
) -> SearchResult:
    """The arrangement of least static sum, in elements: first loops, then an order for them.

    Parts that have no statement in common are solved one by one. Loops without a common order are
    forbidden, and the model is solved again.

    Args:
        candidates: of the program.
        extents: of the base spaces.
        seconds: deterministic.
        hint: an arrangement to start from.
        rounds: how often loops are forbidden before the search gives up.

    Returns:
        Without an arrangement where the search gives up, or where loops of several parts contradict
        each other.
    """
    models = [
        FusionModel(
            part,
            dict.fromkeys(range(len(part.instances)), 1),
            extents,
            hint,
            peak=False,
            ordered=False,
            unmodelled=unmodelled(part, candidates),
        )
        for part in independent(without_order(candidates))
    ]
    best: list[SearchResult] = []
    for model in models:
        best.append(model.least(seconds))
        seconds = max(0.0, seconds - model.spent)
    answers = [b.arrangement for b in best]

    def arranged(
        solve_again: Callable[[FusionModel, int], Arrangement | None],
    ) -> Arrangement | None:
        """The answers in one order; ``solve_again`` renews the answer of a model."""
        for _ in range(rounds):
            if None in answers:
                break
            order = in_order(
                candidates, tuple(loop for a in answers if a is not None for loop in a.loops)
            )
            if isinstance(order, Arrangement):
                return order
            changed = _exclude(models, order)
            if not changed:
                break
            for number in changed:
                answers[number] = solve_again(models[number], number)
        return None

    def least(model: FusionModel, number: int) -> Arrangement | None:
        best[number] = model.least(seconds)
        return best[number].arrangement

    arrangement = arranged(least)
    if arrangement is not None and all(b.proven for b in best):
        for number, model in enumerate(models):
            model.keep_memory()
            answers[number] = model.fewest(seconds / 10) or answers[number]
        arrangement = arranged(lambda model, _: model.fewest(seconds / 10)) or arrangement
    return SearchResult(arrangement, all(b.proven for b in best), sum(b.bound for b in best))


def _exclude(models: list[FusionModel], cycles: tuple[Cycle, ...]) -> list[int]:
    """Forbid each cycle whose loops belong to one model; the numbers of these models."""
    changed: dict[int, None] = {}
    for cycle in cycles:
        loops = [link.use for link in cycle if link.loop]
        for number, model in enumerate(models):
            if all(use in model.partners for use in loops) and model.exclude(cycle):
                changed[number] = None
    return sorted(changed)

"""Least memory of a program, exactly: the searches for one order of all statements, or for none."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..sharing.candidates import Arrangement, Sharing, independent, unmodelled, without_order
from ..sharing.statement_order import Cycle, in_order
from ..solver.memory_model import Found, FusionModel


def solve_exact(
    found: Sharing,
    weights: Mapping[int, int],
    extents: Mapping[str, int],
    work: float,
    hint: Arrangement,
    *,
    peak: bool,
    at_least: int = 0,
) -> Found:
    """The arrangement of least static sum, or of least peak.

    Args:
        found: what the program allows.
        weights: by position in ``found.instances``, what one element counts (1, or its bytes).
        extents: of the base spaces.
        work: deterministic seconds.
        hint: an arrangement to start from.
        peak: count what lives at one time; else everything.
        at_least: a proven bound on the objective.

    Source: Allam et al., Eq. (6), for the static sum.

    Raises:
        PlanError: the solver refuses the model.
    """
    model = FusionModel(
        found,
        weights,
        extents,
        hint,
        peak=peak,
        ordered=True,
        at_least=at_least,
    )
    return model.solve(work)


def solve_static(
    found: Sharing, extents: Mapping[str, int], work: float, hint: Arrangement, rounds: int
) -> Found:
    """The arrangement of least static sum, in elements; loops first, then an order for them.

    Parts that no statement connects are searched one by one. Loops that have no order are left out,
    and the search goes on. No arrangement where that comes to no end, or loops of several parts are
    in each other's way.
    """
    models = [
        FusionModel(
            part,
            dict.fromkeys(range(len(part.instances)), 1),
            extents,
            hint,
            peak=False,
            ordered=False,
            unmodelled=unmodelled(part, found),
        )
        for part in independent(without_order(found))
    ]
    best: list[Found] = []
    for model in models:
        best.append(model.least(work))
        work = max(0.0, work - model.spent)
    answers = [b.arrangement for b in best]

    def arranged(again: Callable[[FusionModel, int], Arrangement | None]) -> Arrangement | None:
        """The answers in one order; ``again`` makes that of a model anew."""
        for _ in range(rounds):
            if None in answers:
                break
            order = in_order(
                found, tuple(loop for a in answers if a is not None for loop in a.loops)
            )
            if isinstance(order, Arrangement):
                return order
            hit = _exclude(models, order)
            if not hit:
                break
            for number in hit:
                answers[number] = again(models[number], number)
        return None

    def least(model: FusionModel, number: int) -> Arrangement | None:
        best[number] = model.least(work)
        return best[number].arrangement

    arrangement = arranged(least)
    if arrangement is not None and all(b.proven for b in best):
        for number, model in enumerate(models):
            model.keep()
            answers[number] = model.fewest(work / 10) or answers[number]
        arrangement = arranged(lambda model, _: model.fewest(work / 10)) or arrangement
    return Found(arrangement, all(b.proven for b in best), sum(b.bound for b in best))


def _exclude(models: list[FusionModel], cycles: tuple[Cycle, ...]) -> list[int]:
    """Tell the models of the cycles that concern one of them alone; which models they are."""
    hit: dict[int, None] = {}
    for cycle in cycles:
        loops = [link.walk for link in cycle if link.loop]
        for number, model in enumerate(models):
            if all(walk in model.near for walk in loops) and model.exclude(cycle):
                hit[number] = None
    return sorted(hit)

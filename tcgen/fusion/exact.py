"""Least memory of a program, exactly: the searches for one order of all statements, or for none."""

from __future__ import annotations

from collections.abc import Mapping

from .model import Found, FusionModel
from .sharing import Arrangement, Sharing, Walk, independent


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
    found: Sharing, extents: Mapping[str, int], work: float, hint: Arrangement
) -> tuple[tuple[tuple[Walk, ...], ...], bool, int]:
    """Loops of least static sum without regard to the order of statements, part by part.

    Returns:
        The loops, whether no others take less, and a lower bound that holds in any case. Elements.
    """
    loops: list[tuple[Walk, ...]] = []
    proven, bound = True, 0
    for part in independent(found):
        ones = dict.fromkeys(range(len(part.instances)), 1)
        model = FusionModel(part, ones, extents, hint, peak=False, ordered=False)
        best = model.solve(work)
        work = max(0.0, work - model.spent)
        proven, bound = proven and best.proven, bound + best.bound
        loops += best.arrangement.loops if best.arrangement is not None else ()
    return tuple(loops), proven, bound

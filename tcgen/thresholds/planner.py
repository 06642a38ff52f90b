"""Thresholds of the planner: of factoring, of fusion, and of the parts of a program."""

from __future__ import annotations

from dataclasses import dataclass

from .algebra import AlgebraThresholds
from .fusion import FusionThresholds
from .legal_range import threshold


@dataclass(frozen=True, slots=True)
class PartsThresholds:
    """How many of the outermost loops are numbered.

    A finer division makes no better balance, but each iteration compares its number: about 2 ns,
    which 2**12 points hide.

    Attributes:
        iterations: more loops are numbered until there are this many iterations.
        points: and until an iteration has at most this many points.
    """

    iterations: int = threshold(64, 1, 2**30)
    points: int = threshold(2**20, 2**12, 2**40)


@dataclass(frozen=True, slots=True)
class PlannerThresholds:
    """Thresholds of the planner.

    Attributes:
        algebra: of the search for a formula sequence.
        fusion: of the search for a fusion plan.
        parts: of the loops along which a program is divided.
    """

    algebra: AlgebraThresholds = AlgebraThresholds()
    fusion: FusionThresholds = FusionThresholds()
    parts: PartsThresholds = PartsThresholds()

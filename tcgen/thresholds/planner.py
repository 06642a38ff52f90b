"""Thresholds of the planner: of factoring and of fusion."""

from __future__ import annotations

from dataclasses import dataclass

from .algebra import AlgebraThresholds
from .fusion import FusionThresholds


@dataclass(frozen=True, slots=True)
class PlannerThresholds:
    """Thresholds of the planner.

    Attributes:
        algebra: of the search for a formula sequence.
        fusion: of the search for a fusion plan.
    """

    algebra: AlgebraThresholds = AlgebraThresholds()
    fusion: FusionThresholds = FusionThresholds()

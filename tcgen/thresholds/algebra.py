"""Thresholds of the search for a formula sequence."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AlgebraThresholds:
    """Thresholds of the search for a formula sequence."""

"""Thresholds of the search for a fusion plan."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FusionThresholds:
    """Thresholds of the search for a fusion plan."""

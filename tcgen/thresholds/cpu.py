"""Thresholds of lowering to C and of its printer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CpuThresholds:
    """Thresholds of lowering to C and of its printer."""

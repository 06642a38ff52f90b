"""Thresholds of lowering to CUDA and of its printer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GpuThresholds:
    """Thresholds of lowering to CUDA and of its printer."""

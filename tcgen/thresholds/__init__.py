"""Numbers that change plans or speed but not results: thresholds and the time model.

``planner``, ``cpu`` and ``gpu`` hold one frozen record each;
:class:`Thresholds` joins them, and :class:`tcgen.options.Options` carries them to every pass.
``legal_range`` gives each field its range, so that a test can run every pass at both ends.
``time_model`` predicts seconds and holds all constants of these predictions.

Thresholds are rounded, most to powers of two. Those without a source of their own were chosen
before 2026-11-28 by trials on processors with AVX2 and AVX-512 and on an H100, which no script
repeats; ``benchmarks/ablation.py`` and ``benchmarks/tccg_cpu.py`` show what another value costs.
"""

from __future__ import annotations

from dataclasses import dataclass

from .cpu import CpuThresholds as CpuThresholds
from .gpu import GpuThresholds as GpuThresholds
from .legal_range import largest as largest
from .legal_range import smallest as smallest
from .planner import AlgebraThresholds as AlgebraThresholds
from .planner import FusionThresholds as FusionThresholds
from .planner import PlannerThresholds as PlannerThresholds


@dataclass(frozen=True, slots=True)
class Thresholds:
    """All thresholds of a compilation: of planning, and of lowering and printing C and CUDA."""

    planner: PlannerThresholds = PlannerThresholds()
    cpu: CpuThresholds = CpuThresholds()
    gpu: GpuThresholds = GpuThresholds()

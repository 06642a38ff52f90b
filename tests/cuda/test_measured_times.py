"""The time model reproduces what was measured on an H200 (benchmarks/RESULTS.md)."""

from __future__ import annotations

from dataclasses import replace

import pytest

import tcgen
from tcgen.compiler.driver import compile_system, read_system
from tcgen.options import Options
from tcgen.runtime.program import Program
from tcgen.thresholds import Thresholds

LIMIT = 8 * 2**30


@pytest.mark.slow
@pytest.mark.default_thresholds
@pytest.mark.parametrize(
    ("name", "extents", "limit", "milliseconds"),
    [
        ("ccsd_closed_shell", {"o": 30, "v": 200}, None, 142.0),
        ("df_ladder", {"o": 30, "v": 300, "x": 900}, LIMIT, 336.5),
        ("mp2_df", {"o": 30, "v": 200, "x": 600}, LIMIT, 0.92),
        ("mp2_closed_shell", {"o": 50, "v": 300}, None, 1.43),
    ],
)
def test_generated_kernels_of_programs(
    name: str, extents: dict[str, int], limit: int | None, milliseconds: float
) -> None:
    """(T) takes 1.3 times as long as is predicted of the kernels that were measured.

    Programs that were measured computed all elements of symmetric arrays.
    """
    usual = Thresholds()
    options = Options(
        extents=tuple(sorted(extents.items())),
        objective="time",
        memory_limit=limit,
        target="cuda",
        library=False,
        machine="h200",
        thresholds=replace(usual, gpu=replace(usual.gpu, symmetric_flops=10**18)),
    )
    found = compile_system(read_system(tcgen.spec_path(name)), options, documents=False)
    program = Program(found.artifact)
    predicted = 1e3 * program.seconds(0, program.parts(extents), extents)
    assert predicted == pytest.approx(milliseconds, rel=0.2)

"""The time model reproduces what was measured on an H200 (benchmarks/RESULTS.md)."""

from __future__ import annotations

import pytest

import tcgen

PLANNING = {"objective": "time", "memory_limit": "8GiB"}


@pytest.mark.slow
@pytest.mark.default_thresholds
@pytest.mark.parametrize(
    ("name", "extents", "planning", "milliseconds"),
    [
        ("ccsd_closed_shell", {"o": 30, "v": 200}, {}, 142.0),
        ("df_ladder", {"o": 30, "v": 300, "x": 900}, PLANNING, 336.5),
        ("mp2_df", {"o": 30, "v": 200, "x": 600}, PLANNING, 0.92),
    ],
)
def test_generated_kernels_of_programs(
    name: str, extents: dict[str, int], planning: dict[str, str], milliseconds: float
) -> None:
    """MP2 from integrals in memory and (T) take 1.6 times as long as predicted."""
    program = tcgen.compile(
        tcgen.spec_path(name),
        extents=extents,
        target="cuda",
        library=False,
        machine="h200",
        **planning,
    )
    predicted = 1e3 * program.seconds(0, program.parts(extents), extents)
    assert predicted == pytest.approx(milliseconds, rel=0.2)

"""Programs for a GPU that would launch too many kernels are refused with advice."""

from __future__ import annotations

from typing import Any

import pytest

import tcgen
from support.messages import mentions
from tcgen.compiler import launch_limit
from tcgen.resources import spec_path


@pytest.mark.parametrize(
    ("given", "advice"),
    [
        ({"objective": "time", "memory_limit": 8_000_000}, "limit 8,000,000 larger"),
        ({"objective": "peak"}, "objective time none"),
        ({"objective": "peak", "memory_limit": 8_000_000}, "limit 8,000,000 larger objective time"),
    ],
)
def test_too_many_launches_are_refused(
    given: dict[str, Any], advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    extents = {"o": 30, "v": 200, "x": 600}
    program = tcgen.compile(spec_path("mp2_df"), extents=extents, target="cuda", **given)
    count = program.report["launches"]
    assert count > 4
    monkeypatch.setattr(launch_limit, "MOST_LAUNCHES", count - 1)
    message = mentions(f"launches {count:,} {count - 1:,} loops host tiles by {advice}")
    with pytest.raises(tcgen.PlanError, match=message):
        tcgen.compile(spec_path("mp2_df"), extents=extents, target="cuda", **given)
    tcgen.compile(spec_path("mp2_df"), extents=extents, target="numpy", **given)

"""Every benchmark starts: what it needs of tcgen is there. What it measures is no test's matter."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "benchmarks"
MODULES = ("peers", "sequence_check")  # that scripts share


@pytest.mark.parametrize(
    "name", sorted(p.stem for p in FOLDER.glob("*.py") if p.stem not in MODULES)
)
def test_a_benchmark_says_how_to_run_it(name: str) -> None:
    command = [sys.executable, FOLDER / f"{name}.py", "--help"]
    here = os.environ | {"PYTHONPATH": str(ROOT)}
    made = subprocess.run(
        command, env=here, capture_output=True, text=True, check=False, timeout=120
    )
    assert made.returncode == 0, made.stderr
    assert "usage:" in made.stdout.lower()

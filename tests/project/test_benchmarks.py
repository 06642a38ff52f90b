"""Every benchmark starts: what it needs of tcgen is there. What it measures is no test's matter."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.paths import ROOT

FOLDER = ROOT / "benchmarks"
# Modules that scripts share.
MODULES = (
    *("einsums", "peers", "sequence_check"),
    *(f"gpu_{name}" for name in ("check", "contractions", "lazy", "measure", "programs")),
)


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "name", sorted(p.stem for p in FOLDER.glob("*.py") if p.stem not in MODULES)
)
def test_a_benchmark_says_how_to_run_it(name: str) -> None:
    command = [sys.executable, FOLDER / f"{name}.py", "--help"]
    here = os.environ | {"PYTHONPATH": str(ROOT)}
    made = subprocess.run(
        command, env=here, capture_output=True, text=True, check=False, timeout=600
    )
    assert made.returncode == 0, made.stderr
    assert "usage:" in made.stdout.lower()


@pytest.mark.slow
def test_launches_are_measured_on_a_device_that_does_nothing(tmp_path: Path) -> None:
    kept = tmp_path / "out.json"
    command = [sys.executable, FOLDER / "launch_overhead.py", "--seconds", "0.01", "--json", kept]
    here = os.environ | {"PYTHONPATH": str(ROOT)}
    made = subprocess.run(command, env=here, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    found = json.loads(kept.read_text())
    assert found["launches of the loop"] > found["kernels of CCSD"] > 10
    assert min(found.values()) > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        "ccsd_peers.py --no-memory --programs tcgen,pyscf.ccsd,ebcc.rccsd,numpy,opt_einsum",
        "ccsd_peers.py --no-memory --programs tcgen,pyscf.gccsd,ebcc.gccsd,numpy --spin-orbital",
        "mp2.py --system water --peers pyscf,numpy",
        "triples.py --system water --peers pyscf,numpy,opt_einsum",
    ],
)
def test_programs_of_a_chemistry_benchmark_agree(command: str, tmp_path: Path) -> None:
    """They end with a traceback where results differ; water in 6-31G."""
    pytest.importorskip("pyscf", reason="pyscf is not installed")
    pytest.importorskip("ebcc", reason="ebcc is not installed")
    script, *options = command.split()
    kept = tmp_path / "out.json"
    made = subprocess.run(
        [sys.executable, FOLDER / script, *options, "--repeat", "1", "--json", kept],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert made.returncode == 0, made.stderr
    programs = {"tcgen", *next(x for x in options if "," in x).split(",")}
    result = json.loads(kept.read_text())
    for row in result.get("rows", [result]):
        assert set(row["seconds"]) == programs
    assert all(f"| {name} |" in made.stdout for name in programs)

"""The folder for a GPU machine: programs, inputs and answers, and a check that can fail."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from support.cuda_device import EmulatedDevice
from support.paths import ROOT

SCRIPT = ROOT / "benchmarks" / "gpu_folder.py"


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("gpu_folder", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(shutil.which("g++") is None, reason="no C compiler: the emulator needs g++")
def test_prepared_programs_are_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = script()
    monkeypatch.setattr(made, "SMALL", ((2, 3), (1, 1)))
    monkeypatch.setattr(made, "CONTRACTIONS", (("ae,dcbe->dcba", 20),))
    made.prepare(tmp_path, ("energies", "contractions"))
    original = made.package

    def emulated(path: Path) -> Any:
        """The package, with the emulator in the place of CuPy."""
        package = original(path)
        runtime = sys.modules[f"{path.name}._tcgen.runtime.gpu.backend"]
        monkeypatch.setattr(runtime, "open_device", EmulatedDevice)
        return package

    monkeypatch.setattr(made, "package", emulated)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    report = tmp_path / "outcome.json"
    assert made.check(tmp_path, quick=True, report=report) == 0
    rows = json.loads(report.read_text())
    assert [r["program"] for r in rows] == [
        "energies_float64_none",
        "energies_float64_linear",
        "energies_float32_none",
        "energies_complex128_none",
        "contraction_ae_dcbe_dcba",
    ]
    # An answer that is not right any more is a difference.
    (data,) = (tmp_path / "data").glob("energies_float64_0.npz")
    with np.load(data) as arrays:
        changed = {n: a * 1.01 if n == "out:e" else a for n, a in arrays.items()}
    np.savez(data, **changed)
    assert made.check(tmp_path, quick=True, report=None) == 1
    assert "wrong" in capsys.readouterr().out
    # A program that fails is a fault, and the others still run.
    (tmp_path / "programs" / "energies_float64_linear" / "kernels.cu").write_text("broken")
    assert made.check(tmp_path, quick=True, report=report, names=("energies",)) == 1
    rows = json.loads(report.read_text())
    assert [bool(r["faults"]) for r in rows] == [True, True, False, False]
    assert "ArtifactError" in rows[1]["faults"][0]
    assert made.check(tmp_path, quick=True, report=None, names=("mp2_df",)) == 1  # none ran


def test_there_it_needs_no_tcgen(tmp_path: Path) -> None:
    """The copy in the folder runs where tcgen cannot be imported."""
    shutil.copy(SCRIPT, tmp_path)
    (tmp_path / "programs.json").write_text("[]")
    (tmp_path / "tcgen.py").write_text("raise ImportError('no tcgen here')\n")
    done = subprocess.run(
        [sys.executable, str(tmp_path / SCRIPT.name), "check", str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, "")  # nothing to check is no success

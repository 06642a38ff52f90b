"""The command line for a GPU on a machine without one: look at everything, run nothing."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from support.marks import slow
from support.messages import says
from support.paths import DATA, ROOT
from tcgen.cli.commands import main
from tcgen.cli.machine import examine

SPEC = DATA / "specs" / "mp2_df.spec"
EXTENTS = ("-e", "o=10", "-e", "v=40", "-e", "x=100")


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)


def test_compiling_and_looking_need_no_gpu(tmp_path: Path) -> None:
    folder = tmp_path / "mp2"
    wanted = ("compile", str(SPEC), *EXTENTS, "--target", "cuda", "-o", str(folder))
    result = CliRunner().invoke(main, [*wanted, "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.output)["target"] == "cuda"
    text = (folder / "kernels.cu").read_text()
    assert 'extern "C" __global__' in text
    assert "flops" in text
    for command in ("explain", "report"):
        result = CliRunner().invoke(main, [command, str(folder)])
        assert result.exit_code == 0, result.output


def test_running_says_what_to_install(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["run", str(SPEC), *EXTENTS, "--target", "cuda"])
    assert result.exit_code == 3
    assert says(result.output, "CuPy import")
    assert "pip install '.[cuda13]' in a clone" in result.output
    assert "Traceback" not in result.output


def test_the_doctor_names_the_gpu_or_what_is_missing() -> None:
    (found,) = [f for f in examine() if f["what"] == "GPU (optional)"]
    assert not found["works"]
    assert says(found["details"], "CuPy import")
    assert "pip install" in found["advice"]


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["none", *slow("memory")])
def test_same_bytes_under_any_hash_seed(objective: str) -> None:
    code = (
        "import sys, tcgen\n"
        f"program = tcgen.compile({str(SPEC)!r}, extents={{'o': 10, 'v': 40, 'x': 100}},\n"
        f"    target='cuda', objective={objective!r})\n"
        "files = ''.join(path + text for path, text in program.artifact.files)\n"
        "sys.stdout.write(files + program.artifact.manifest_text())\n"
    )
    found = set()
    for seed in ("0", "4711"):
        result = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=ROOT,
            capture_output=True,
            check=True,
        )
        found.add(hashlib.sha256(result.stdout).hexdigest())
    assert len(found) == 1

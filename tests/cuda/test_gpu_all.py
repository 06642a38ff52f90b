"""The one command for a GPU machine: what is prepared, checked and measured, against a stand-in."""

from __future__ import annotations

import importlib
import json
import math
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from support import cupy_stand_in
from support.cupy_stand_in import Library, Stream
from support.messages import says
from support.paths import ROOT
from tcgen.lazy_arrays import compile as kernels
from tcgen.lazy_arrays.backend import BACKENDS
from tcgen.runtime.gpu.cupy_device import CupyDevice

BENCHMARKS = ROOT / "benchmarks"
pytestmark = pytest.mark.skipif(
    shutil.which("g++") is None, reason="no C compiler: the emulator needs g++"
)


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> dict[str, ModuleType]:
    """The modules, with a stand-in for CuPy and small arrays for the ceilings."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    Stream.reset()
    monkeypatch.setitem(sys.modules, "cupy", Library())
    names = ("all", "check", "contractions", "lazy", "measure", "programs")
    made = {name: importlib.import_module(f"gpu_{name}") for name in names}
    original = made["measure"].package

    def package(path: Path) -> Any:
        loaded = original(path)
        # The stand-in's arrays are NumPy's, whose symmetry the runtime samples.
        execution = sys.modules[f"{path.name}._tcgen.runtime.execution"]
        monkeypatch.setattr(execution, "check_symmetry", lambda *_, **__: None)
        return loaded

    monkeypatch.setattr(made["measure"], "package", package)
    monkeypatch.setattr(made["measure"], "COPIED", 2**10)
    monkeypatch.setattr(made["measure"], "SIDE", 4)
    monkeypatch.setattr(made["contractions"].importlib.util, "find_spec", lambda _: None)
    monkeypatch.setattr(made["contractions"], "cutensor_module", lambda: (None, "not here"))
    monkeypatch.setattr(made["all"], "GPU_TESTS", ("no such test",))
    monkeypatch.setattr(made["all"].shutil, "which", lambda _: None)
    return made


def small(case: Any) -> Any:
    """A case at extents for the emulator, whose plan takes no time."""
    extents = {"o": 3, "v": 4, "x": 5}
    own = tuple({n: extents[n] for n in e} for e in case.extents[:1])
    return replace(case, extents=own, planning={"objective": "none"})


def run(scripts: dict[str, ModuleType], folder: Path, minutes: float = 30) -> dict[str, Any]:
    """What a run writes, with its status."""
    status = scripts["all"].run(folder, minutes, 1)
    figures: dict[str, Any] = json.loads((folder / "gpu_all.json").read_text())
    return {**figures, "status": status, "tables": (folder / "gpu_all.md").read_text()}


# Other thresholds choose cuBLAS, which the stand-in does not have.
@pytest.mark.default_thresholds
def test_everything_runs_and_what_is_wrong_is_reported(
    scripts: dict[str, ModuleType],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    check, contractions, programs = (scripts[n] for n in ("check", "contractions", "programs"))
    monkeypatch.setattr(check, "CONTRACTIONS", (("ae,dcbe->dcba", 20),))
    case = {"case": "tccg_07", "group": "few", "einsum": "ae,dcbe->dcba"}
    other = {"case": "random_00", "group": "random", "einsum": "ab,cb->ca"}
    suite = [c | {"extents": dict.fromkeys("abcde", 3)} for c in (case, other)]
    suite[1]["extents"] = {"a": 5, "b": 4, "c": 3}
    monkeypatch.setattr(contractions, "contractions", lambda: suite)
    monkeypatch.setattr(programs, "CASES", [small(c) for c in programs.CASES if c.name == "mp2"])
    sections = {"gpu_contractions": 1.0, "gpu_programs": 1.0}
    monkeypatch.setattr(scripts["all"], "SECTIONS", sections)
    made = check.prepare
    monkeypatch.setattr(check, "prepare", lambda folder: made(folder, ("contractions",)))
    folder = tmp_path / "day"
    scripts["all"].prepare(folder)
    assert (folder / "gpu_all.py").is_file()
    assert (folder / "tcgen" / "__init__.py").is_file()
    # Lazy arrays compile kernels there, with the package alone.
    code = "import tcgen.resources as r; print(r.template_text('cuda/head.cu'))"
    words = [sys.executable, "-c", code]
    alone = {"PYTHONPATH": str(folder), "PATH": "", "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run(words, cwd=tmp_path, env=alone, check=True, capture_output=True)

    found = run(scripts, folder)
    assert found["status"] == 0
    assert found["compiled"]["failed"] == {}
    assert found["tests"]["left_out"] == "no no such test here"
    assert found["sanitizer"]["left_out"] == "no compute-sanitizer"
    assert "cuTENSOR: not here." in found["tables"]
    assert [row["faults"] for row in found["checks"]] == [[]]
    (row, _) = found["gpu_contractions"]["rows"]
    assert set(row["seconds"]) == {"generated", "einsum"}
    assert row["difference"] < 1e-12
    for line in ("| few | ", "| random | ", "| all of the suite | ", "| mp2 | o=3 v=4 |"):
        assert line in found["tables"]

    # A wrong answer, a wrong reference and a broken program are faults, and the others still run.
    capsys.readouterr()
    (data,) = sorted((folder / "data").glob("contraction_*_3.npz"))
    with np.load(data) as arrays:
        changed = {n: a * 1.01 if n == "out:y" else a for n, a in arrays.items()}
    np.savez(data, **changed)
    (folder / "programs" / "tccg_07_generated" / "kernels.cu").write_text("broken")
    reference = programs.CASES[0].reference
    wrong = replace(
        programs.CASES[0],
        reference=lambda x, e: {n: 1.01 * v for n, v in reference(x, e).items()},
    )
    monkeypatch.setattr(programs, "CASES", [wrong])
    found = run(scripts, folder)
    assert found["status"] == 1
    assert "y differs by" in found["checks"][0]["faults"][0]
    assert "ArtifactError" in found["gpu_contractions"]["wrong"]["tccg_07"]
    assert [r["case"] for r in found["gpu_contractions"]["rows"]] == ["random_00"]
    assert "differs by" in found["gpu_programs"]["wrong"]["mp2"]
    assert "mp2: differs by" in capsys.readouterr().err

    # What does not fit is named.
    found = run(scripts, folder, 1e-9)
    assert found["status"] == 1
    assert found["gpu_contractions"]["left_out"] == ["tccg_07", "random_00"]
    assert "Not measured: tccg_07, random_00." in found["tables"]
    assert found["checks"][0]["left_out"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["ccsd", "df_ladder", "mp2_df", "ccd_spin_orbital", "t_closed_shell", "t_spin_orbital"],
)
def test_programs_agree_with_einsum(
    name: str,
    scripts: dict[str, ModuleType],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    measure = scripts["measure"]

    def save(folder: Path, name: str, compiled: Any) -> None:
        compiled(library=False).save(folder / "programs" / f"{name}_generated")

    # The stand-in has no cuBLAS.
    monkeypatch.setattr(measure, "save_ways", save)
    (case,) = (small(c) for c in scripts["programs"].CASES if c.name == name)
    extents = measure.prepare(tmp_path, [case])[name]
    row = measure.measure(tmp_path, case, extents, 1)
    assert row["difference"] < scripts["programs"].TOLERANCE
    assert f"| {name} | o=3 v=4" in measure.table([row], {"copy": 1.0, "dgemm": 1.0})


def test_the_contractions_are_the_suite_and_others(scripts: dict[str, ModuleType]) -> None:
    found = scripts["contractions"].contractions()
    assert [c["case"] for c in found] == [
        *(f"tccg_{n:02d}" for n in range(1, 49)),
        *(f"random_{n:02d}" for n in range(16)),
    ]
    assert found == scripts["contractions"].contractions()


def test_the_minutes_are_shared(
    scripts: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(scripts["all"].time, "monotonic", lambda: now[0])
    clock = scripts["all"].Clock(2, 4.0)
    first = clock.part(1.0)
    assert first() == 30
    now[0] = 110
    assert first() == 20
    assert clock.part(1.0)() == pytest.approx(110 / 3)
    now[0] = 230
    assert clock.part(2.0)() < 0


def test_there_it_needs_no_tcgen(tmp_path: Path) -> None:
    """Checks run in the folder where tcgen cannot be imported."""
    for path in BENCHMARKS.glob("gpu_*.py"):
        shutil.copy(path, tmp_path)
    (tmp_path / "checks.json").write_text("[]")
    (tmp_path / "tcgen.py").write_text("raise ImportError('no tcgen here')\n")
    done = subprocess.run(
        [sys.executable, str(tmp_path / "gpu_all.py"), "check", str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    # Nothing to check is no success.
    assert (done.returncode, done.stderr) == (1, "")


def test_lazy_arrays_are_measured_with_kernels_that_were_prepared(
    scripts: dict[str, ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is planned on the machine with the GPU."""
    monkeypatch.setenv("TCGEN_LAZY_MIN_ELEMENTS", "0")
    made = scripts["lazy"]
    device = CupyDevice(sys.modules["cupy"])
    for module in ("lazy_arrays.backend", "runtime.gpu.backend"):
        monkeypatch.setattr(f"tcgen.{module}.open_device", lambda: device)
    names = ("harris", "rosen")
    monkeypatch.setattr(made, "PROGRAMS", {name: made.PROGRAMS[name] for name in names})
    monkeypatch.setattr(made, "ELEMENTS", 42)
    made.prepare(tmp_path)
    monkeypatch.setattr(kernels.PROGRAMS, "_values", type(kernels.PROGRAMS._values)())
    monkeypatch.setattr(kernels, "_compiled", None)

    def section() -> dict[str, Any]:
        found: dict[str, Any] = scripts["all"].section(
            "gpu_lazy", tmp_path, 1, lambda: 1.0, lambda _: None
        )
        return found

    try:
        found = section()
        monkeypatch.setattr(scripts["measure"], "difference", lambda *_: math.nan)
        assert list(section()["wrong"]) == list(names)
    finally:
        BACKENDS.pop(cupy_stand_in.Array, None)
    assert found["wrong"] == {}
    assert [set(row["seconds"]) for row in found["rows"]] == [{"lazy", "kernels", "cupy"}] * 2
    table = made.table(found["rows"], {"copy": 1.0, "dgemm": 1.0})
    assert "geometric mean: 1.00 times" in table


def test_where_no_gpu_can_run_the_reason_is_said(
    scripts: dict[str, ModuleType],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["gpu_all.py", "run", str(tmp_path)])
    assert scripts["all"].main() == 3
    assert says(capsys.readouterr().err, "prepare first")
    (tmp_path / "programs").mkdir()
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert scripts["all"].main() == 3
    assert says(capsys.readouterr().err, "no GPU cupy install")

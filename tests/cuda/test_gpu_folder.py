"""The folder for a GPU machine: programs, inputs and answers, and a check that can fail."""

from __future__ import annotations

import importlib
import json
import math
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from support import cupy_stand_in
from support.cuda_device import EmulatedDevice
from support.cupy_stand_in import Stream
from support.paths import ROOT
from tcgen.lazy_arrays import compile as kernels
from tcgen.lazy_arrays.backend import BACKENDS
from tcgen.runtime.gpu.cupy_device import CupyDevice

SCRIPT = ROOT / "benchmarks" / "gpu_folder.py"


@pytest.fixture
def emulated(monkeypatch: pytest.MonkeyPatch) -> Callable[[ModuleType], None]:
    """Puts the emulator in the place of CuPy in the programs that a module loads."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def emulate(module: ModuleType) -> None:
        original = module.package

        def package(path: Path) -> Any:
            made = original(path)
            runtime = sys.modules[f"{path.name}._tcgen.runtime.gpu.backend"]
            monkeypatch.setattr(runtime, "open_device", EmulatedDevice)
            return made

        monkeypatch.setattr(module, "package", package)

    return emulate


class Clock:
    """Stands for a CUDA event."""

    def record(self) -> None: ...

    def synchronize(self) -> None: ...


def numpy_as_cupy() -> ModuleType:
    """A module with NumPy's functions and what the benchmarks use of ``cupy`` beside them."""
    cupy = ModuleType("cupy")
    cupy.__dict__.update(np.__dict__)
    facts = SimpleNamespace(
        getDeviceProperties=lambda _: {"name": b"no GPU"},
        getDeviceCount=lambda: 0,
        CUDARuntimeError=OSError,
    )
    cupy.cuda = SimpleNamespace(  # type: ignore[attr-defined]
        Event=Clock,
        get_elapsed_time=lambda *_: 1.0,
        runtime=facts,
        Device=lambda: SimpleNamespace(id=0),
    )
    pool = SimpleNamespace(free_all_blocks=lambda: None)
    cupy.get_default_memory_pool = lambda: pool  # type: ignore[attr-defined]
    return cupy


def with_extents(case: Any) -> Any:
    small = {"o": 3, "v": 4, "x": 5}
    return replace(case, extents=tuple({n: small[n] for n in e} for e in case.extents[:1]))


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="no C compiler: the emulator needs g++")
def test_prepared_programs_are_checked(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    emulated: Callable[[ModuleType], None],
) -> None:
    made = importlib.import_module("gpu_folder")
    monkeypatch.setattr(made, "SMALL", ((2, 3), (1, 1)))
    monkeypatch.setattr(made, "CONTRACTIONS", (("ae,dcbe->dcba", 20),))
    made.prepare(tmp_path, ("energies", "contractions"))
    emulated(made)
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
    for name in (SCRIPT.name, "gpu_measure.py"):
        shutil.copy(SCRIPT.parent / name, tmp_path)
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


@pytest.mark.skipif(shutil.which("g++") is None, reason="no C compiler: the emulator needs g++")
@pytest.mark.parametrize(
    ("script", "names"),
    [
        ("gpu_ccsd", ("mp2",)),
        pytest.param("gpu_ccsd", ("ccsd", "df_ladder", "mp2_df"), marks=pytest.mark.slow),
        pytest.param("gpu_triples", ("t_closed_shell", "t_spin_orbital"), marks=pytest.mark.slow),
    ],
)
def test_measured_programs_agree_with_einsum(
    script: str,
    names: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    emulated: Callable[[ModuleType], None],
) -> None:
    """The equations by einsum, the random inputs, and the table; a wrong result is reported."""
    measure = importlib.import_module("gpu_measure")
    emulated(measure)
    monkeypatch.setitem(sys.modules, "cupy", numpy_as_cupy())
    monkeypatch.setattr(measure, "COPIED", 2**10)
    monkeypatch.setattr(measure, "SIDE", 4)
    monkeypatch.setattr(measure, "WAYS", {"tcgen": {}})  # compiling takes most of the time
    made = importlib.import_module(script)
    cases = [with_extents(case) for case in made.CASES if case.name in names]
    measure.prepare(tmp_path, made.__file__, cases)
    options = SimpleNamespace(repeat=1, cases=None, programs=None, json=tmp_path / "figures.json")
    assert measure.run(tmp_path, made.__file__, cases, options) == 0
    rows = json.loads(options.json.read_text())["rows"]
    assert tuple(r["case"] for r in rows) == names
    assert f"| {names[0]} | o=3 v=4 |" in capsys.readouterr().out

    def other(x: dict[str, Any], einsum: Any) -> Any:
        return {n: 1.01 * value for n, value in cases[0].reference(x, einsum).items()}

    assert measure.run(tmp_path, made.__file__, [replace(cases[0], reference=other)], options) == 1
    assert "differs by" in capsys.readouterr().err


@pytest.mark.skipif(shutil.which("g++") is None, reason="no C compiler: the emulator needs g++")
def test_the_suite_is_measured_with_and_without_a_library(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    emulated: Callable[[ModuleType], None],
) -> None:
    measure = importlib.import_module("gpu_measure")
    made = importlib.import_module("gpu_tccg")
    emulated(made)
    monkeypatch.setitem(sys.modules, "cupy", numpy_as_cupy())
    monkeypatch.setattr(measure, "COPIED", 2**10)
    monkeypatch.setattr(measure, "SIDE", 4)
    monkeypatch.setattr(made, "cutensor_module", lambda: None)
    monkeypatch.setattr(made.importlib.util, "find_spec", lambda _: None)
    case = {"number": 7, "group": "few", "einsum": "ae,dcbe->dcba"}
    suite = tmp_path / "suite.json"
    suite.write_text(json.dumps([case | {"extents": dict.fromkeys("abcde", 3)}]))
    monkeypatch.setattr(made, "SUITE", str(suite))
    made.prepare(tmp_path / "folder")
    report = tmp_path / "figures.json"
    assert made.run(tmp_path / "folder", None, 1, report) == 0
    (row,) = json.loads(report.read_text())["rows"]
    assert set(row["seconds"]) == {"tcgen", "generated", "einsum"}
    assert row["difference"] < 1e-12
    assert "| geometric mean |" in capsys.readouterr().out


@pytest.mark.skipif(shutil.which("g++") is None, reason="no C compiler: the emulator needs g++")
def test_lazy_arrays_are_measured_with_kernels_that_were_prepared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is planned on the machine with the GPU."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setenv("TCGEN_LAZY_MIN_ELEMENTS", "0")
    measure = importlib.import_module("gpu_measure")
    made = importlib.import_module("gpu_lazy")
    Stream.reset()
    cupy = Library(cupy_stand_in.module)
    device = CupyDevice(cupy)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    for module in ("lazy_arrays.backend", "runtime.gpu.backend"):
        monkeypatch.setattr(f"tcgen.{module}.open_device", lambda: device)
    monkeypatch.setattr(measure, "device_name", lambda: "no GPU")
    monkeypatch.setattr(made, "ceilings", lambda _: {"copy": 1.0, "dgemm": 1.0})
    monkeypatch.setattr(made, "medians", one_second)
    names = ("harris", "rosen")
    monkeypatch.setattr(made, "PROGRAMS", {name: made.PROGRAMS[name] for name in names})
    made.prepare(tmp_path, 42)
    monkeypatch.setattr(kernels.PROGRAMS, "_values", type(kernels.PROGRAMS._values)())
    monkeypatch.setattr(kernels, "_compiled", None)
    report = tmp_path / "figures.json"
    options = SimpleNamespace(repeat=1, cases=None, elements=42, json=report)
    try:
        assert made.run(tmp_path, options) == 0
        monkeypatch.setattr(measure, "difference", lambda *_: math.nan)
        assert made.run(tmp_path, options) == 1
    finally:
        BACKENDS.pop(cupy_stand_in.Array, None)
    rows = json.loads(report.read_text())["rows"]
    assert [set(row["seconds"]) for row in rows] == [{"lazy", "kernels", "cupy"}] * 2
    assert "geometric mean: 1.00 times" in capsys.readouterr().out


class Library:
    """The stand-in for CuPy with NumPy's other functions, which leave its arrays to it."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name, None) or getattr(np, name)

    def full(self, shape: Any, value: float) -> Any:
        return self.asarray(np.full(shape, value))

    def fuse(self, _: Any) -> Any:
        def refuses(*_: Any) -> Any:
            raise TypeError("not fusible")

        return refuses

    def get_default_memory_pool(self) -> Any:
        return SimpleNamespace(free_all_blocks=lambda: None)


def one_second(calls: Any, repeat: int, host: dict[str, float]) -> dict[str, float]:
    """Runs each call once."""
    for call in calls.values():
        call()
    host.update(dict.fromkeys(calls, 1.0))
    return dict.fromkeys(calls, 1.0)

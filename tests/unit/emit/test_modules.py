"""Hand-written modules, compiled for every target, give what the interpreter gives."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest

from support import hand_modules as hand
from support.golden import check_golden, head_and_kernels, not_of_templates
from support.marks import slow
from tcgen.emit import emit_artifact
from tcgen.interp.modules import run_module
from tcgen.ir.loops import Module
from tcgen.ir.tensor import Role, element_type
from tcgen.records.loops import stored_shape
from tcgen.runtime.cpu.backend import CpuBackend
from tcgen.runtime.cpu.blas import blas_threads
from tcgen.runtime.program import Program

TARGETS = [
    pytest.param(
        "cpu", marks=pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
    ),
    "numpy",
]
TOLERANCE = {"float64": 1e-12, "float32": 2e-5, "complex128": 1e-12}


def arrays_for(
    module: Module, program: Program, extents: dict[str, int]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Random inputs, and arrays for the outputs that accumulate."""
    random = np.random.default_rng(7)
    inputs: dict[str, Any] = {}
    starts: dict[str, Any] = {}
    for tensor, entry in zip(module.tensors, program.manifest.tensors, strict=True):
        shape = stored_shape(entry, extents)
        values = random.uniform(-1, 1, shape)
        dtype = element_type(tensor, module.dtype)
        if dtype == "complex128":
            values = values + 1j * random.uniform(-1, 1, shape)
        array = np.asarray(values, dtype)
        if tensor.role is Role.OUTPUT:
            if tensor.accumulate:
                starts[tensor.name] = array
        elif tensor.default is None:
            inputs[tensor.name] = array
    return inputs, starts


def compare(module: Module, target: str, extents: dict[str, int]) -> Program:
    program = Program(emit_artifact(module, target=target, planning_extents=tuple(extents.items())))
    inputs, starts = arrays_for(module, program, extents)
    expected = run_module(module, inputs, extents, out=starts)
    before = {n: a.copy() for n, a in inputs.items()}
    actual = program(**inputs, out={n: a.copy() for n, a in starts.items()})
    assert set(actual) == set(expected)
    for name, reference in expected.items():
        entry = next(t for t in program.manifest.tensors if t.name == name)
        assert actual[name].dtype == np.dtype(element_type(entry, module.dtype))
        assert actual[name].shape == reference.shape
        scale = max(1.0, float(np.max(np.abs(reference), initial=0)))
        error = float(np.max(np.abs(actual[name] - reference), initial=0)) / scale
        assert error < TOLERANCE[module.dtype], f"{name}: {error}"
    for name, array in before.items():
        assert np.array_equal(array, inputs[name]), f"{name} was written to"
    return program


@pytest.mark.few(8)
@pytest.mark.parametrize("dtype", ["float64", *slow("float32"), "complex128"])
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", hand.ALL)
def test_values(name: str, target: str, dtype: str) -> None:
    compare(hand.ALL[name](dtype), target, dict(hand.EXTENTS))


@pytest.mark.few(24)
@pytest.mark.parametrize("extents", [{"o": 0, "v": 7}, {"o": 5, "v": 0}, {"o": 1, "v": 1}])
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", hand.ALL)
def test_empty_and_single_extents(name: str, target: str, extents: dict[str, int]) -> None:
    compare(hand.ALL[name](), target, extents)


@pytest.mark.few(4)
@pytest.mark.parametrize("name", hand.ALL)
def test_more_than_one_block_and_thread(name: str) -> None:
    """Extents beyond the blocks of transpositions and the threshold of threads."""
    compare(hand.ALL[name](), "cpu", {"o": 37, "v": 34} if name != "packed" else {"o": 9, "v": 35})


@pytest.mark.parametrize("name", ["gemm", "tiles", "phases"])
@pytest.mark.parametrize("dtype", ["float64", *slow("float32"), "complex128"])
def test_plain_product_without_blas(name: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tcgen.runtime.cpu.backend.blas_pointers", lambda: (None,) * 6)
    compare(hand.ALL[name](dtype), "cpu", dict(hand.EXTENTS))
    compare(hand.ALL[name](dtype), "cpu", {"o": 21, "v": 83})


@pytest.mark.few(3)
@pytest.mark.parametrize("most", [7, 50])
@pytest.mark.parametrize("name", ["gemm", "tiles", "phases", "energy"])
def test_matrices_larger_than_the_blas_takes(
    name: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its 32-bit arguments hold 2^31 - 1; here they hold no more than ``most``."""
    monkeypatch.setenv("TCGEN_CC", f"cc -DTC_BLAS_MOST={most}")
    for extents in ({"o": 21, "v": 83}, {"o": 3, "v": 60}, {"o": 60, "v": 2}):
        compare(hand.ALL[name](), "cpu", extents)


@pytest.mark.parametrize("name", ["gemm", "tiles"])
@pytest.mark.parametrize("dtype", ["float64", *slow("float32"), *slow("complex128")])
def test_products_of_the_blas_in_pieces(
    name: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Products are divided at millions of multiply-adds, so that they can be ended; here at 500."""
    monkeypatch.setenv("TCGEN_CC", "cc -DTC_PIECE_POINTS=500")
    for extents in ({"o": 21, "v": 83}, {"o": 3, "v": 60}):
        compare(hand.ALL[name](dtype), "cpu", extents)


@pytest.mark.parametrize("threads", [1, 2, 3, 6])
@pytest.mark.parametrize("name", ["gemm", "energy", "tiles", "orbits"])
def test_work_is_shared_by_any_number_of_threads(
    name: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Products large enough to be split, and the BLAS's own threads back afterwards."""
    monkeypatch.setattr(CpuBackend, "threads", threads)
    control = blas_threads()
    before = control._get() if control.controlled else 0
    compare(hand.ALL[name](), "cpu", {"o": 61, "v": 90})
    assert before == (control._get() if control.controlled else 0)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_what_threads_add_up_has_the_same_bits_each_time(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CpuBackend, "threads", threads)
    module, extents = hand.orbits(), {"o": 7, "v": 61}
    program = Program(emit_artifact(module, target="cpu", planning_extents=tuple(extents.items())))
    inputs, _ = arrays_for(module, program, extents)
    found = {program(**inputs, out={"n": np.zeros(())})["e"].tobytes() for _ in range(20)}
    assert len(found) == 1


@pytest.mark.parametrize("target", ["cpu", "numpy"])
@pytest.mark.parametrize("name", ["energy", "tiles", "orbits", "triangle", "packed"])
def test_golden_text(name: str, target: str) -> None:
    file, suffix, folder = {
        "cpu": ("kernels.c", "c", "c"),
        "numpy": ("kernels.py", "py.txt", "numpy"),
    }[target]
    head, kernels = head_and_kernels(emit_artifact(hand.ALL[name](), target=target).text(file))
    assert not_of_templates(head, folder) == []
    check_golden(f"emit/{name}.{suffix}", kernels)

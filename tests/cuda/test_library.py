"""Products that cuBLAS computes: which ones, their transpositions, memory and calls.

NumPy multiplies in the place of cuBLAS here; with ``-m gpu`` cuBLAS does.
"""

from __future__ import annotations

import importlib
import itertools
import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tcgen
from support.campaigns import cases
from support.command_line import invoke
from support.cuda_device import DEVICES, EmulatedDevice, device_named
from support.marks import slow
from support.messages import says
from tcgen.compiler.driver import Compilation, compile_system, read_system
from tcgen.errors import ExtentError, UnavailableError, VerifyError
from tcgen.frontend.einsum import subscripts_system
from tcgen.hardware import CUTENSOR
from tcgen.interp import evaluate_system
from tcgen.ir.expr import Prod
from tcgen.ir.loops import Assign, Gemm
from tcgen.ir.system import System
from tcgen.ir.thread_mapping import Library
from tcgen.ir.verify.thread_mapping import check_thread_mapping
from tcgen.options import Options
from tcgen.runtime.device_protocol import Contraction, Matrix, MatrixProduct, Operand
from tcgen.runtime.gpu.cuda_libraries import TRANSPOSED, Cublas, Cutensor, gemm_call, load_cutensor
from tcgen.runtime.gpu.cupy_device import CupyDevice
from tcgen.runtime.gpu.library import prepare_product
from tcgen.runtime.program import Program
from tcgen.testing import (
    assert_same_values,
    extents_for,
    random_arrays,
    split_starts,
    systems,
)
from tcgen.thresholds import Thresholds
from tcgen.thresholds.gpu import GpuThresholds

# Every product that the library can compute is left to it.
EAGER = Thresholds(
    gpu=GpuThresholds(
        launch_bytes=0,
        library_percent=100,
        copy_percent=100,
        tensor_percent=1,
        blocked_percent=1,
        tile_percent=1,
        point_percent=1,
    )
)
PLANNED = {"o": 10, "v": 40, "x": 100, "q": 8, "O": 9, "V": 41}
SMALL = {"o": 3, "v": 5, "x": 7, "q": 3, "O": 2, "V": 4}


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    if request.param == "emulator" and shutil.which("g++") is None:
        pytest.skip("no C compiler: the CUDA emulator needs g++")
    found = device_named(request.param)
    monkeypatch.setattr("tcgen.runtime.gpu.backend.open_device", lambda: found)
    return found


def of(system: System, extents: dict[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted((s.name, extents[s.name]) for s in system.spaces if not s.parts))


def made(subscripts: str, extents: dict[str, int], **options: Any) -> Compilation:
    options = {"target": "cuda", "thresholds": EAGER, **options}
    chosen = Options(extents=tuple(sorted(extents.items())), **options)
    return compile_system(subscripts_system(subscripts), chosen)


def products(compilation: Compilation) -> list[Gemm]:
    found = [k for k in compilation.module.kernels if isinstance(k.mapping, Library)]
    return [s for k in found for s in k.body if isinstance(s, Gemm)]


def check(system: System, compilation: Compilation, extents: dict[str, int], dtype: str) -> None:
    inputs, starts = split_starts(system, random_arrays(system, extents, dtype=dtype, seed=1))
    expected = evaluate_system(system, inputs, extents, out=starts, dtype=dtype)
    out = {n: np.array(a) for n, a in starts.items()}
    close = 1e-4 if dtype == "float32" else 1e-10
    actual = Program(compilation.artifact)(**inputs, out=out)
    assert_same_values(actual, expected, rtol=close, atol=close)


@pytest.mark.parametrize(
    "case",
    [
        ("mp2_df", {"dtype": "complex128"}),
        ("drpa", {"dtype": "float32"}),
        ("df_ladder", {"objective": "time", "memory_limit": 6 * 2**20}),
        *slow(("ccd_spin_orbital", {}), ("cc2_df", {})),
    ],
)
def test_specs_equal_the_interpreter(case: tuple[str, dict[str, Any]], device: Any) -> None:
    """Also inside loops of the host, with partial tiles."""
    name, options = case
    system = read_system(tcgen.spec_path(name))
    asked = Options(extents=of(system, PLANNED), target="cuda", thresholds=EAGER, **options)
    compilation = compile_system(system, asked)
    assert products(compilation)
    check(system, compilation, dict(of(system, SMALL)), asked.dtype)


@pytest.mark.parametrize(
    "subscripts",
    [
        "ab,bc->ac",
        "ba,cb->ca",  # by columns
        "xab,xbc->xac",  # a strided batch
        "xab,bc->xac",
        "xyab,ybxc->xyac",  # two distances in b: loops of calls
        "abcd,dbe->cae",  # transposed before and after
        "ab,b->a",  # no matrix
    ],
)
def test_contractions(subscripts: str, device: Any) -> None:
    letters = sorted(set(subscripts) - set(",->"))
    compilation = made(subscripts, dict.fromkeys(letters, 40))
    assert bool(products(compilation)) == (subscripts != "ab,b->a")
    program, random = Program(compilation.artifact), np.random.default_rng(1)
    for extents in ((3, 4, 5, 2, 6), (1, 1, 1, 1, 1), (1, 7, 1, 3, 2), (4, 0, 2, 3, 1)):
        length = dict(zip(letters, extents, strict=False))
        operands = subscripts.partition("->")[0].split(",")
        x, y = (random.standard_normal([length[c] for c in text]) for text in operands)
        found = program(x0=x, x1=y)["y"]
        np.testing.assert_allclose(found, np.einsum(subscripts, x, y), rtol=1e-12, atol=1e-12)


@st.composite
def drawn(draw: st.DrawFn) -> tuple[System, dict[str, int]]:
    system = draw(systems())
    return system, draw(extents_for(system))


@pytest.mark.slow
@cases(8, 500)
@given(
    case=drawn(),
    dtype=st.sampled_from(["float64", "float32", "complex128"]),
    objective=st.sampled_from(["none", "linear", "memory", "peak"]),
)
def test_random_systems_equal_the_interpreter(case: Any, dtype: str, objective: str) -> None:
    if shutil.which("g++") is None:
        pytest.skip("no C compiler: the CUDA emulator needs g++")
    system, extents = case
    planned = tuple(sorted((n, max(1, e)) for n, e in extents.items()))
    options = Options(
        extents=planned, dtype=dtype, target="cuda", objective=objective, thresholds=EAGER
    )
    compilation = compile_system(system, options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tcgen.runtime.gpu.backend.open_device", EmulatedDevice)
        check(system, compilation, dict(planned), dtype)


# ---- which ones ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("subscripts", "extents", "calls", "launches"),
    [
        ("ca,bc->ba", (5136, 5120, 5136), 1, 1),
        ("dca,bd->cba", (312, 296, 312, 312), 0, 1),  # a batch is not faster
        ("fbea,ecfd->dcba", (72, 72, 72, 72, 72, 72), 0, 1),  # transpositions cost more
        ("dfae,cebf->dcba", (72, 72, 72, 72, 72, 72), 1, 4),  # unit stride along e and along f
        ("dabfe,fc->edcba", (48, 32, 24, 32, 48, 32), 0, 1),  # memory is the limit
        ("bged,cafg->fedcba", (24, 16, 16, 24, 16, 16, 24), 0, 1),  # a short sum
        ("ab,bc->ac", (100, 100, 100), 0, 1),  # too small for the model
    ],
)
def test_the_model_chooses(
    subscripts: str, extents: tuple[int, ...], calls: int, launches: int
) -> None:
    """As measured on an H200 (benchmarks/RESULTS.md), with all letters in order."""
    letters = sorted(set(subscripts) - set(",->"))
    planned = dict(zip(letters, extents, strict=True))
    compilation = made(subscripts, planned, thresholds=Thresholds())
    assert len(products(compilation)) == calls
    assert len(compilation.module.kernels) == launches
    alone = made(subscripts, planned, thresholds=Thresholds(), library=False)
    assert not products(alone)
    assert len(alone.module.kernels) == 1


def test_the_order_of_axes_spares_transpositions() -> None:
    """The 12.8 GB of W[a,b,e,f] are made as the ladder reads them."""
    system = read_system(tcgen.spec_path("df_ladder"))
    extents = (("o", 30), ("v", 200), ("x", 600))
    options = Options(extents=extents, target="cuda", thresholds=Thresholds())
    compilation = compile_system(system, options)
    (ladder,) = products(compilation)
    (large,) = (b for b in compilation.module.buffers if b.name == "W")
    assert "W" in (ladder.a.buffer, ladder.b.buffer)
    assert large.order == (0, 1, 2, 3)
    report = compilation.artifact.json("report.json")
    assert report["memory"]["peak_bytes"] < 1.2 * 8 * 200**4


def test_other_targets_have_no_library() -> None:
    with pytest.raises(tcgen.ArgumentError) as caught:
        tcgen.compile("ab,bc->ac", extents={"a": 2, "b": 3, "c": 4}, target="cpu", library=False)
    assert says(str(caught.value), "library cuda cpu")


# ---- memory --------------------------------------------------------------------------------------

TRANSPOSED_BOTH = ("dfae,cebf->dcba", dict.fromkeys("abcdef", 12))
WHOLE = 8 * 12**4


def test_transposed_arrays_count(device: Any) -> None:
    subscripts, extents = TRANSPOSED_BOTH
    compilation = made(subscripts, extents)
    report = compilation.artifact.json("report.json")
    assert report["memory"]["peak_bytes"] >= 3 * WHOLE
    program, random = Program(compilation.artifact), np.random.default_rng(2)
    x, y = (random.standard_normal([12] * 4) for _ in range(2))
    put = 2 * WHOLE  # copies of NumPy inputs
    np.testing.assert_allclose(program(x0=x, x1=y)["y"], np.einsum(subscripts, x, y), atol=1e-11)
    assert program.allocated_bytes >= report["memory"]["peak_bytes"] + put - WHOLE


@pytest.mark.parametrize("limit", [WHOLE, 2 * WHOLE])
def test_a_memory_limit_leaves_no_room_for_them(limit: int) -> None:
    compilation = made(*TRANSPOSED_BOTH, memory_limit=limit)
    assert not products(compilation)
    assert compilation.artifact.json("report.json")["memory"]["peak_bytes"] <= limit


def test_the_largest_scratch() -> None:
    few = Thresholds(gpu=replace(EAGER.gpu, library_scratch=WHOLE))
    assert not products(made(*TRANSPOSED_BOTH, thresholds=few))


# ---- documents -----------------------------------------------------------------------------------


def test_reports_name_the_calls() -> None:
    compilation = made("abcd,dbe->cae", dict.fromkeys("abcde", 20))
    artifact = compilation.artifact
    (row,) = artifact.json("report.json")["library"]
    assert (row["batch"] * row["m"] * row["n"], row["k"]) == (20**3, 400)
    assert "cuBLAS" in artifact.text("explain.txt")
    assert row["product"] in artifact.text("explain.txt")
    (kernel,) = (k for k in artifact.manifest.kernels if k.product is not None)
    assert kernel.name == row["kernel"]
    assert f"kernel {kernel.name}" in artifact.text("kernels.cu")
    assert "cuBLAS" in artifact.text("kernels.cu")
    assert kernel.symbol not in artifact.text("kernels.cu")  # there is no such function
    alone = made("abcd,dbe->cae", dict.fromkeys("abcde", 20), library=False).artifact
    assert alone.json("report.json")["library"] == []
    assert "cuBLAS" not in alone.text("explain.txt") + alone.text("kernels.cu")


def test_artifacts_keep_them(tmp_path: Any, device: Any) -> None:
    compilation = made("xab,xbc->xac", dict.fromkeys("xabc", 30))
    Program(compilation.artifact).save(tmp_path / "saved")
    program = tcgen.load(tmp_path / "saved")
    x, y = np.random.default_rng(3).standard_normal((2, 4, 5, 5))
    np.testing.assert_allclose(program(x0=x, x1=y)["y"], x @ y, atol=1e-12)


def test_the_checker_refuses_other_bodies() -> None:
    compilation = made("ab,bc->ac", dict.fromkeys("abc", 30))
    (kernel,) = compilation.module.kernels
    buffers = {b.name: b for b in compilation.module.buffers}
    check_thread_mapping(kernel, buffers)
    with pytest.raises(VerifyError, match="one matrix product"):
        check_thread_mapping(replace(kernel, body=kernel.body * 2), buffers)
    hidden = {n: replace(b, place="private") for n, b in buffers.items()}
    with pytest.raises(VerifyError, match="no address"):
        check_thread_mapping(kernel, hidden)


# ---- calls of cuBLAS -----------------------------------------------------------------------------


def by_columns(call: Any, product: MatrixProduct, memory: list[Any]) -> None:
    """What cuBLAS does, on flat arrays: out, a, b."""
    out, a, b = memory
    factors = [(b, product.b), (a, product.a)] if call.swapped else [(a, product.a), (b, product.b)]
    rows, columns, k = call.rows, call.columns, product.k
    shapes = [(rows, k), (k, columns)]
    for index in range(product.count):
        matrices = []
        for (flat, place), shape, operation, step in zip(
            factors, shapes, call.operations, call.steps, strict=False
        ):
            high, wide = shape[::-1] if operation == TRANSPOSED else shape
            assert step >= max(1, high)
            start = place.offset + index * place.apart
            stored = np.array(
                [[flat[start + i + j * step] for j in range(wide)] for i in range(high)]
            ).reshape(high, wide)
            matrices.append(stored.T if operation == TRANSPOSED else stored)
        value = product.factor * (matrices[0] @ matrices[1])
        start = product.out.offset + index * product.out.apart
        for i, j in itertools.product(range(rows), range(columns)):
            at = start + i + j * call.steps[2]
            out[at] = value[i, j] + (out[at] if product.accumulate else 0)


def laid_out(by_rows: bool, rows: int, columns: int, pitch: int) -> Matrix:
    step = (columns if by_rows else rows) + pitch
    row, column = (step, 1) if by_rows else (1, step)
    return Matrix(2, row, column, step * max(rows, columns) + 3)


@pytest.mark.parametrize(
    "shape", [(2, 3, 4), (1, 3, 4), (3, 1, 4), (3, 4, 1), (1, 1, 1), (2, 2, 2)]
)
def test_arguments_of_cublas(shape: tuple[int, int, int]) -> None:
    """All layouts, padded or not, against NumPy; cuBLAS counts by columns."""
    m, n, k = shape
    random = np.random.default_rng(4)
    for layout in itertools.product((True, False), repeat=3):
        for pitch, accumulate in itertools.product((0, 2), (True, False)):
            sides = [
                laid_out(by_rows, *side, pitch)
                for by_rows, side in zip(layout, ((m, n), (m, k), (k, n)), strict=True)
            ]
            product = MatrixProduct("float64", m, n, k, 2, 0.5, accumulate, *sides)
            memory = [random.standard_normal(200) for _ in range(3)]
            wanted = [a.copy() for a in memory]
            EmulatedDevice().multiply(product, *wanted)
            by_columns(gemm_call(product), product, memory)
            np.testing.assert_allclose(memory[0], wanted[0], atol=1e-13)


class FakeArray:
    def __init__(self, pointer: int) -> None:
        self.data = SimpleNamespace(ptr=pointer)


def test_what_cublas_is_called_with(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pointers count bytes, distances elements; a batch goes by another function."""
    called: list[tuple[str, tuple[Any, ...]]] = []
    library = ModuleType("cublas")
    library.getVersion = lambda handle: 130_100 + handle  # type: ignore[attr-defined]
    for name in ("zgemm", "zgemmStridedBatched"):
        monkeypatch.setattr(
            library, name, lambda *args, name=name: called.append((name, args)), raising=False
        )
    libs = ModuleType("cupy_backends.cuda.libs")
    libs.cublas = library  # type: ignore[attr-defined]
    for name in ("cupy_backends", "cupy_backends.cuda"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "cupy_backends.cuda.libs", libs)
    cuda = SimpleNamespace(device=SimpleNamespace(get_cublas_handle=lambda: 77))
    cublas = Cublas(SimpleNamespace(cuda=cuda))
    assert cublas.version == 130_177
    sides = (Matrix(5, 3, 1, 6), Matrix(0, 4, 1, 8), Matrix(1, 3, 1, 0))
    arrays = [FakeArray(1000), FakeArray(2000), FakeArray(3000)]
    for count in (1, 9):
        product = MatrixProduct("complex128", 2, 3, 4, count, 1.0, False, *sides)
        cublas.multiply(product, *arrays)
    (one, first), (many, second) = called
    assert (one, many) == ("zgemm", "zgemmStridedBatched")
    fixed = (77, 0, 0, 3, 2, 4)
    assert first[:6] == second[:6] == fixed
    assert (*first[7:11], *first[12:]) == (3016, 3, 2000, 4, 1080, 3)
    assert (*second[7:13], *second[14:]) == (3016, 3, 0, 2000, 4, 8, 1080, 3, 6, 9)


class StridedArray(np.ndarray[Any, Any]):
    """An array whose memory is a pointer that counts bytes, as CuPy's is."""

    @property
    def data(self) -> Any:
        return Address(self, 0)


class Address:
    def __init__(self, owner: Any, offset: int) -> None:
        self.owner, self.offset = owner, offset

    def __add__(self, count: int) -> Address:
        return Address(self.owner, self.offset + count)


def test_what_cutensor_is_called_with(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for CuPy multiplies by NumPy; an empty sum is no call."""
    calls: list[tuple[Any, ...]] = []

    def contraction(alpha: Any, a: Any, in_a: Any, b: Any, in_b: Any, beta: Any, c: Any, in_c: Any):
        calls.append((alpha, in_a, in_b, beta, in_c))
        value = alpha * np.einsum(a, in_a, b, in_b, in_c)
        c[...] = value + (beta * c if beta else 0)

    cupyx = ModuleType("cupyx")
    cupyx.cutensor = SimpleNamespace(contraction=contraction)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cupyx", cupyx)
    for name in ("cupy_backends", "cupy_backends.cuda", "cupy_backends.cuda.libs"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    binding = SimpleNamespace(get_version=lambda: 20_300)
    monkeypatch.setitem(sys.modules, "cupy_backends.cuda.libs.cutensor", binding)
    cupy = SimpleNamespace(
        ndarray=lambda shape, dtype, at, strides: np.ndarray(
            shape, dtype, at.owner.view(np.ndarray), at.offset, strides
        )
    )
    library, random = Cutensor(cupy), np.random.default_rng(5)
    assert library.version == "2.3.0"
    for lengths, accumulate in itertools.product(
        ((2, 3, 4, 5), (2, 3, 4, 0), (2, 0, 4, 5)), (True, False)
    ):
        out, a, b = (
            Operand(3, (0, 1, 2), (1, 2, 7)),
            Operand(1, (0, 1, 3), (20, 5, 1)),
            Operand(0, (2, 3), (6, 1)),
        )
        product = Contraction("float64", lengths, 0.5, accumulate, out, a, b)
        memory = [random.standard_normal(80).view(StridedArray) for _ in range(3)]
        wanted = [np.array(x) for x in memory]
        EmulatedDevice().contract(product, *wanted)
        library.contract(product, *memory)
        np.testing.assert_allclose(np.array(memory[0]), wanted[0], atol=1e-13)
    assert [call[3] for call in calls] == [1.0, 0.0]
    assert calls[0] == (0.5, (0, 1, 3), (2, 3), 1.0, (0, 1, 2))
    monkeypatch.setitem(sys.modules, "cupyx", ModuleType("cupyx"))
    with pytest.raises(UnavailableError) as caught:
        Cutensor(cupy)
    assert says(str(caught.value), "cuTENSOR pip install cutensor again")


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no C compiler")
def test_both_libraries_of_the_wheel_are_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CuPy 14.2 needs libcutensorMg of cutensor-cu13 2.8.1, and finds libcutensor alone."""
    library = tmp_path / "cutensor" / "lib" / "libcutensorMg.so.2"
    library.parent.mkdir(parents=True)
    (tmp_path / "empty.c").write_text("int cutensorMgStandIn;\n")
    command = ["gcc", "-shared", "-o", str(library), str(tmp_path / "empty.c")]
    subprocess.run(command, check=True)
    backends = tmp_path / "cupy_backends" / "cuda" / "libs"
    backends.mkdir(parents=True)
    (tmp_path / "cupyx").mkdir()
    (tmp_path / "cupyx" / "cutensor.py").write_text("")
    (backends / "cutensor.py").write_text(
        "from pathlib import Path\n"
        "if 'libcutensorMg.so.2' not in Path('/proc/self/maps').read_text():\n"
        "    raise ImportError('libcutensorMg.so.2: cannot open shared object file')\n"
        "def get_version():\n"
        "    return 20800\n"
    )
    for name in ("cutensor", "cupyx", "cupy_backends"):
        for loaded in [m for m in sys.modules if m == name or m.startswith(f"{name}.")]:
            monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    assert load_cutensor()[1] == "2.8.0"
    found = json.loads(invoke("doctor", "--json").stdout)["findings"]
    (row,) = [row for row in found if row["what"].startswith("cuTENSOR")]
    assert row["works"]
    assert row["details"] == "2.8.0"


def test_the_doctor_says_why_cutensor_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupyx", None)
    found = json.loads(invoke("doctor", "--json").stdout)["findings"]
    (row,) = [row for row in found if row["what"].startswith("cuTENSOR")]
    assert not row["works"]
    assert says(row["advice"], "--tune pip install cutensor-cu13")


def test_the_checker_knows_what_cutensor_computes() -> None:
    compilation = made("aebd,ce->dcba", dict.fromkeys("abcde", 6), library=False)
    (kernel,) = compilation.module.kernels
    buffers = {b.name: b for b in compilation.module.buffers}
    call = replace(kernel, mapping=Library(CUTENSOR))
    check_thread_mapping(call, buffers)
    (stmt,) = call.body
    assert isinstance(stmt, Assign)
    lonely = replace(stmt, expr=Prod((stmt.out,)))
    for body in (call.body * 2, (lonely,)):
        with pytest.raises(VerifyError, match="cuTENSOR"):
            check_thread_mapping(replace(call, body=body), buffers)
    for change in ({"place": "private"}, {"dtype": "float32"}):
        other = buffers | {stmt.out.buffer: replace(buffers[stmt.out.buffer], **change)}
        with pytest.raises(VerifyError, match=r"address|element type"):
            check_thread_mapping(call, other)


def test_missing_cublas() -> None:
    def missing() -> None:
        raise RuntimeError("libcublas.so.13: cannot open")

    device = CupyDevice(
        SimpleNamespace(
            ndarray=np.ndarray,
            cuda=SimpleNamespace(
                device=SimpleNamespace(get_cublas_handle=missing),
                memory=SimpleNamespace(OutOfMemoryError=MemoryError),
                driver=SimpleNamespace(CUDADriverError=OSError),
                runtime=SimpleNamespace(CUDARuntimeError=OSError, getDevice=lambda: 0),
            ),
        )
    )
    with pytest.raises(UnavailableError) as caught:
        device.load_library("cuBLAS")
    assert says(str(caught.value), "cuBLAS library=False --no-library pip install")


def test_numbers_beyond_32_bits() -> None:
    compilation = made("ab,bc->ac", dict.fromkeys("abc", 30))
    (kernel,) = compilation.artifact.manifest.kernels
    extents = {"a": 2**32, "b": 4, "c": 5}
    launch = prepare_product(kernel, compilation.artifact.manifest, extents, EmulatedDevice())
    with pytest.raises(ExtentError) as caught:
        list(launch.products({}))
    assert says(str(caught.value), f"{2**32:,} library=False {kernel.name}")

"""Programs for a GPU as their callers see them: whose arrays go where, and what is refused.

They run under the emulator; what is CuPy's own is asked of a stand-in for CuPy.
"""

from __future__ import annotations

import copy
import itertools
import pickle
import shutil
import sys
from dataclasses import replace
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tcgen
from support.cuda_device import DEVICES, device_named
from support.cupy_stand_in import (
    CUDADriverError,
    CUDARuntimeError,
    NvrtcError,
    OutOfMemoryError,
    PinnedMemory,
    Stream,
)
from support.cupy_stand_in import module as stand_in_cupy
from support.messages import mentions
from tcgen.cli.machine import examine
from tcgen.errors import (
    ArgumentError,
    BuildError,
    DtypeError,
    ExtentError,
    MemoryLimitError,
    ShapeError,
    UnavailableError,
)
from tcgen.runtime.gpu.cupy_device import CupyDevice, open_device
from tcgen.runtime.program import Program

pytestmark = pytest.mark.skipif(
    shutil.which("g++") is None, reason="no C compiler: the CUDA emulator needs g++"
)


@pytest.fixture(autouse=True, params=DEVICES)
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    found = device_named(request.param)
    monkeypatch.setattr("tcgen.runtime.gpu.backend.open_device", lambda: found)
    return found


SPEC = """
space o
space v
index i j : o
index a b : v
input k[o,v,v] constant
input t[o,v]
input g[o,o,v] generated
output r, e
r[i,a] = k[i,a,b]*t[i,b] + g[i,j,a]*t[j,a]
e = r[i,a]*t[i,a]
"""


def arrays_of(extents: dict[str, int]) -> dict[str, Any]:
    random = np.random.default_rng(3)
    o, v = extents["o"], extents["v"]
    return {
        "k": random.random((o, v, v)),
        "t": random.random((o, v)),
        "g": random.random((o, o, v)),
    }


def compiled(**options: Any) -> Program:
    return tcgen.compile(SPEC, extents={"o": 3, "v": 4}, target="cuda", **options)


def test_numpy_in_numpy_out_and_device_in_device_out(device: Any) -> None:
    program = compiled()
    arrays = arrays_of({"o": 3, "v": 4})
    wanted = tcgen.compile(SPEC, extents={"o": 3, "v": 4}, target="numpy")(**arrays)
    found = program(**arrays)
    assert all(type(a) is np.ndarray for a in found.values())
    there = {n: device.put(a) for n, a in arrays.items()}
    device.put_bytes = device.got_bytes = 0
    result = program(**{**there, "g": lambda out, ranges: np.copyto(out, arrays["g"][ranges])})
    tiles = device.put_bytes
    assert tiles == arrays["g"].nbytes  # of the generated input, nothing else is copied
    assert device.got_bytes == 0
    again = program(**there)
    out = {"r": device.empty((3, 4), "float64"), "e": np.empty(())}
    given = program(**there, out=out)
    assert given["r"] is out["r"]
    for name, value in wanted.items():
        for some in (found, result, again, given):
            array = device.get(some[name]) if device.holds(some[name]) else some[name]
            np.testing.assert_allclose(array, value, rtol=1e-12)
    assert all(device.holds(a) for a in result.values())
    # What a kernel writes may not be what it reads.
    over = program(**there, out={"r": there["t"]})
    for name, value in wanted.items():
        np.testing.assert_allclose(device.get(over[name]), value, rtol=1e-12)


def test_constants_stay_on_the_device(device: Any) -> None:
    program = compiled()
    arrays = arrays_of({"o": 3, "v": 4})
    bound = program.bind(k=arrays["k"])
    assert device.put_bytes == arrays["k"].nbytes
    device.put_bytes = 0
    found = bound(t=arrays["t"], g=arrays["g"])
    assert device.put_bytes == arrays["t"].nbytes + arrays["g"].nbytes
    np.testing.assert_allclose(found["r"], program(**arrays)["r"], rtol=1e-13)
    assert program.allocated_bytes > 0
    copied = pickle.loads(pickle.dumps(program))
    np.testing.assert_array_equal(copied(**arrays)["e"], program(**arrays)["e"])


def test_wrong_arrays_are_refused(device: Any) -> None:
    program = compiled()
    arrays = arrays_of({"o": 3, "v": 4})
    with pytest.raises(DtypeError, match=mentions('t float64 t.astype("float64")')):
        program(**{**arrays, "t": device.put(arrays["t"].astype("float32"))})
    with pytest.raises(ShapeError, match=mentions("1 axes")):
        program(**{**arrays, "t": device.put(np.ones(3))})
    with pytest.raises(ShapeError, match=mentions('out["r"] shape (3, 4)')):
        program(**arrays, out={"r": device.put(np.ones((4, 4)))})
    with pytest.raises(ArgumentError, match=mentions("NumPy CuPy list")):
        program(**arrays, out={"r": [1.0]})
    with pytest.raises(MemoryLimitError, match=mentions("memory limit 2,000")):
        compiled(memory_limit=2000)(**arrays_of({"o": 3, "v": 30}))


def test_results_that_share_memory_are_refused(device: Any) -> None:
    """One of them would be lost; what lies between the other's elements is right."""
    program = tcgen.compile(
        "space o\nindex i j : o\ninput x[o,o]\noutput r, s\nr[i,j] = 2*x[i,j]\ns[i,j] = x[j,i]",
        extents={"o": 3},
        target="cuda",
    )
    x = np.random.default_rng(1).random((3, 3))
    for put in (device.put, np.array):
        memory = put(np.zeros(12))
        out = {"r": memory[:9].reshape(3, 3), "s": memory[3:].reshape(3, 3)}
        with pytest.raises(ArgumentError, match=mentions('out["r"] out["s"] overlap')):
            program(x=x, out=out)
        memory = put(np.zeros((3, 6)))
        program(x=x, out={"r": memory[:, ::2], "s": memory[:, 1::2]})
        found = device.get(memory) if device.holds(memory) else memory
        np.testing.assert_array_equal(found[:, ::2], 2 * x)
        np.testing.assert_array_equal(found[:, 1::2], x.T)


class CudaArray:
    """Looks like an array of CuPy."""

    def __init__(self) -> None:
        self.__cuda_array_interface__: dict[str, Any] = {}
        self.shape, self.dtype = (3, 4), np.dtype("float64")


CudaArray.__module__ = "cupy"


def test_a_program_for_the_cpu_refuses_arrays_of_a_gpu() -> None:
    program = tcgen.compile(SPEC, extents={"o": 3, "v": 4}, target="numpy")
    with pytest.raises(ArgumentError, match=mentions("t cupy cupy.asnumpy(t)")):
        program(**{**arrays_of({"o": 3, "v": 4}), "t": CudaArray()})


@pytest.mark.parametrize(("library", "advice"), [("torch", "t.detach()"), ("numba", "t")])
def test_arrays_of_other_libraries_need_not_leave_the_gpu(
    library: str, advice: str, device: Any
) -> None:
    if not hasattr(device, "waits"):
        pytest.skip("a real device adopts arrays of other libraries")
    other = type("Tensor", (CudaArray,), {"__module__": library})
    with pytest.raises(ArgumentError) as found:
        compiled()(**{**arrays_of({"o": 3, "v": 4}), "t": other()})
    assert str(found.value).endswith(f"takes arrays of NumPy and CuPy: pass cupy.asarray({advice})")


def test_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """The source can be looked at; running says what to install."""
    monkeypatch.setattr("tcgen.runtime.gpu.backend.open_device", open_device)
    monkeypatch.setitem(sys.modules, "cupy", None)
    program = compiled()
    assert 'extern "C" __global__' in program.source
    assert program.peak_bytes() > 0
    with pytest.raises(UnavailableError, match=mentions("CuPy pip clone tcgen")):
        program(**arrays_of({"o": 3, "v": 4}))
    assert copy.copy(UnavailableError("x")).exit_code == 3


def test_bound_constants_are_there_for_every_stream(device: Any) -> None:
    """Calls may be on another stream than the one on which the program was bound."""
    if not hasattr(device, "waits"):
        pytest.skip("counts what a real device does not say")
    program = compiled()
    arrays = arrays_of({"o": 3, "v": 4})
    bound = program.bind(k=arrays["k"])
    assert device.waits > 0
    device.waits = 0
    bound(t=arrays["t"], g=arrays["g"])
    assert device.waits == 0  # calls queue their work and wait for results alone


def test_copies_of_bound_constants_count(device: Any) -> None:
    """They stay on the device as long as the bound program does."""
    arrays = arrays_of({"o": 3, "v": 4})
    copied = compiled().bind(k=arrays["k"])
    there = compiled().bind(k=device.put(arrays["k"]))
    assert copied.kept_bytes - there.kept_bytes == arrays["k"].nbytes
    needed = compiled().peak_bytes() + arrays["t"].nbytes + arrays["g"].nbytes
    limited = compiled(memory_limit=needed).bind(k=device.put(arrays["k"]))
    limited(t=arrays["t"], g=arrays["g"])
    with pytest.raises(MemoryLimitError, match=mentions("memory limit")):
        compiled(memory_limit=needed).bind(k=arrays["k"])(t=arrays["t"], g=arrays["g"])


def test_only_copies_and_new_results_count_against_the_limit(device: Any) -> None:
    arrays = arrays_of({"o": 3, "v": 4})
    there = {n: device.put(a) for n, a in arrays.items()}
    peak = compiled().peak_bytes()
    program = compiled(memory_limit=peak)
    wanted = program(**there)
    assert program.allocated_bytes == peak
    with pytest.raises(MemoryLimitError, match="pass k, t as CuPy arrays in C order, so that no"):
        program(**arrays)
    out = {"r": device.empty((3, 4), "float64"), "e": device.empty((), "float64")}
    given = program(**there, out=out)
    assert program.allocated_bytes == peak - 8 * 13
    np.testing.assert_array_equal(device.get(given["r"]), device.get(wanted["r"]))


def test_arrays_of_another_gpu_are_refused(device: Any) -> None:
    if not hasattr(device, "waits"):
        pytest.skip("needs two devices")
    program = compiled()
    arrays = arrays_of({"o": 3, "v": 4})
    t, r = device.put(arrays["t"]), device.empty((3, 4), "float64")
    t.place = r.place = "GPU 1, but the current one is GPU 0"
    with pytest.raises(ArgumentError, match=mentions("t GPU 1 0")):
        program(**{**arrays, "t": t})
    with pytest.raises(ArgumentError, match=mentions('out["r"] GPU 1 0')):
        program(**arrays, out={"r": r})


def test_more_blocks_than_a_gpu_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A share that was chosen for small extents may ask for too many at large ones."""
    program = compiled()
    monkeypatch.setattr("tcgen.runtime.gpu.backend.LARGEST_GRID", 0)
    with pytest.raises(ExtentError, match=mentions("blocks o=3 v=4 GPU 0")):
        program(**arrays_of({"o": 3, "v": 4}))


def test_launches_with_dynamic_shared_memory(device: Any) -> None:
    """More than every kernel may use: the device is asked for it before the launch."""
    asked = 150_000
    artifact = compiled().artifact
    manifest = artifact.manifest
    kernels = tuple(
        replace(k, grid=replace(k.grid, shared_bytes=asked)) for k in manifest.kernels if k.grid
    )
    program = Program(replace(artifact, manifest=replace(manifest, kernels=kernels)))
    arrays = arrays_of({"o": 3, "v": 4})
    taken: list[int] = []
    found = device.function

    def counted(module: Any, name: str, shared_bytes: int) -> Any:
        kernel = found(module, name, shared_bytes)

        def launch(grid: Any, block: Any, args: Any, *, shared_mem: int = 0) -> None:
            taken.append(shared_mem)
            kernel(grid, block, args, shared_mem=shared_mem)

        return launch

    device.function = counted
    np.testing.assert_allclose(program(**arrays)["r"], compiled()(**arrays)["r"], rtol=1e-13)
    assert asked in taken


def stand_in(fault: Exception | None = None) -> CupyDevice:
    """A device whose CuPy fails with one fault at whatever it is asked for."""

    def asked(*_: object, **__: object) -> Any:
        if fault is not None:
            raise fault
        return "made"

    module = SimpleNamespace(compile=asked)
    return CupyDevice(
        SimpleNamespace(
            empty=asked,
            ndarray=np.ndarray,
            asarray=asked,
            RawModule=lambda **_: module,
            get_default_memory_pool=lambda: SimpleNamespace(free_bytes=lambda: 24),
            cuda=SimpleNamespace(
                memory=SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
                driver=SimpleNamespace(CUDADriverError=CUDADriverError),
                compiler=SimpleNamespace(CompileException=NvrtcError),
                runtime=SimpleNamespace(
                    CUDARuntimeError=CUDARuntimeError,
                    getDevice=lambda: 0,
                    getDeviceProperties=lambda _: {"sharedMemPerBlockOptin": 100_000},
                    memGetInfo=lambda: (1000, 2000),
                ),
            ),
        )
    )


def on_device(start: int, dtype: str, *, contiguous: bool = True, number: int = 0) -> Any:
    """What CuPy says of an array that begins at an address."""
    return SimpleNamespace(
        data=SimpleNamespace(ptr=start),
        dtype=np.dtype(dtype),
        nbytes=64,
        flags=SimpleNamespace(c_contiguous=contiguous),
        device=SimpleNamespace(id=number),
        copy=lambda order: f"copy in {order}",
    )


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_arrays_that_begin_between_elements_are_copied(dtype: str) -> None:
    """A kernel's loads of 16 bytes fault there, and with them all that CuPy does after."""
    cupy = stand_in()
    whole = np.dtype(dtype).itemsize
    for start in (512, 512 + whole):
        array = on_device(start, dtype)
        assert cupy.direct(array)
        assert cupy.contiguous(array) is array
    for array in (on_device(512 + whole // 2, dtype), on_device(512, dtype, contiguous=False)):
        assert not cupy.direct(array)
        assert cupy.contiguous(array) == "copy in C"


def test_where_an_array_of_cupy_is() -> None:
    cupy = stand_in()
    assert cupy.elsewhere(on_device(512, "float64")) is None
    where = cupy.elsewhere(on_device(512, "float64", number=3))
    assert where == "GPU 3, but the current one is GPU 0"


def test_slices_of_one_array_of_another_library_overlap() -> None:
    """CuPy says of each that it is an allocation of its own, and so that they do not."""

    def slice_of(start: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
        data, dtype = SimpleNamespace(ptr=start), np.dtype("float64")
        return SimpleNamespace(data=data, dtype=dtype, shape=shape, strides=strides)

    whole = slice_of(1024, (4, 4), (32, 8))
    for other, meets in (
        (slice_of(1056, (3, 4), (32, 8)), True),
        (slice_of(1144, (), ()), True),
        (slice_of(1152, (4,), (8,)), False),
        (slice_of(1176, (4,), (-8,)), False),
        (slice_of(1168, (4,), (-8,)), True),
        (slice_of(1016, (), ()), False),
        (slice_of(1056, (0, 4), (32, 8)), False),
    ):
        assert stand_in().overlap(whole, other) is meets
        assert stand_in().overlap(other, whole) is meets


def test_too_little_memory_on_the_gpu() -> None:
    cupy = stand_in(OutOfMemoryError("limit of 80 GiB"))
    with pytest.raises(MemoryLimitError, match=mentions("memory 8,000,000 bytes 1,024 free limit")):
        cupy.empty((1000, 1000), "float64")
    with pytest.raises(MemoryLimitError, match=mentions("memory 80 bytes")):
        cupy.put(np.zeros(10))


def test_without_nvrtc(monkeypatch: pytest.MonkeyPatch) -> None:
    """CuPy's wheels come without it: said before anything is copied to the GPU."""

    def version() -> tuple[int, int]:
        raise RuntimeError("No such file: libnvrtc.so.13,\n  libnvrtc.so.12")

    runtime = SimpleNamespace(
        getDevice=lambda: 0, getDeviceCount=lambda: 1, CUDARuntimeError=CUDARuntimeError
    )
    cuda = SimpleNamespace(
        runtime=runtime,
        nvrtc=SimpleNamespace(getVersion=version),
        memory=stand_in_cupy.cuda.memory,
        driver=stand_in_cupy.cuda.driver,
    )
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=cuda, ndarray=np.ndarray))
    with pytest.raises(UnavailableError, match=mentions("NVRTC libnvrtc install")):
        open_device()
    (found,) = [f for f in examine() if f["what"] == "GPU (optional)"]
    assert found["details"].endswith("(No such file: libnvrtc.so.13, libnvrtc.so.12)")
    assert found["advice"].startswith("for target cuda: install a driver and CuPy")
    cuda.nvrtc = SimpleNamespace(getVersion=lambda: (13, 5))
    assert isinstance(open_device(), CupyDevice)


def test_kernels_that_cannot_be_compiled() -> None:
    with pytest.raises(BuildError, match=mentions("NVRTC line 3")):
        stand_in(NvrtcError("line 3")).module("")
    for missing in (RuntimeError("no libnvrtc.so"), ImportError("no libnvrtc.so")):
        with pytest.raises(BuildError, match=mentions("libnvrtc.so .[cuda13]")):
            stand_in(missing).module("")


@pytest.mark.parametrize(
    ("arch", "fault", "words"),
    [
        (60, NvrtcError("invalid value for --gpu-architecture"), "13.0 sm_60 sm_75 sm_90 older"),
        (100, CUDADriverError("no binary for GPU"), "13.0 sm_100 sm_75 sm_90 newer"),
        (90, NvrtcError("line 3"), "line 3"),
        (89, NvrtcError("line 3"), "line 3"),
    ],
)
def test_architectures_that_nvrtc_does_not_know(arch: int, fault: Exception, words: str) -> None:
    cupy = stand_in(fault)
    facts = {"major": arch // 10, "minor": arch % 10}
    cupy.library.cuda.runtime.getDeviceProperties = lambda _: facts
    cupy.library.cuda.nvrtc = SimpleNamespace(
        getVersion=lambda: (13, 0), getSupportedArchs=lambda: [90, 80, 75]
    )
    with pytest.raises(BuildError, match=mentions(words)):
        cupy.module("")


def test_kernels_that_take_more_shared_memory_than_a_block_has() -> None:
    kernel = SimpleNamespace(shared_size_bytes=1000)
    module = SimpleNamespace(get_function=lambda _: kernel)
    made: Any = stand_in().function(module, "r", 0)
    assert not hasattr(made, "max_dynamic_shared_size_bytes")
    made = stand_in().function(module, "r", 99_000)
    assert made.max_dynamic_shared_size_bytes == 99_000
    with pytest.raises(ExtentError, match=mentions("kernel r 99,001 99,000 compile")):
        stand_in().function(module, "r", 99_001)


@pytest.fixture
def cupy_device(device: Any, monkeypatch: pytest.MonkeyPatch) -> CupyDevice:
    """The device of a stand-in whose streams run at random."""
    if not hasattr(device, "waits"):
        pytest.skip("a stand-in for CuPy computes on the CPU")
    Stream.reset()
    found = CupyDevice(stand_in_cupy)
    monkeypatch.setattr("tcgen.runtime.gpu.backend.open_device", lambda: found)
    return found


def small_pieces(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """All copies go through pinned buffers of a few bytes."""
    monkeypatch.setattr("tcgen.runtime.gpu.host_copies.PIECE_BYTES", count)
    monkeypatch.setattr("tcgen.runtime.gpu.cupy_device.MIN_BUFFERED_BYTES", 0)


@pytest.mark.parametrize("seed", range(4))
def test_copies_through_two_pinned_buffers(
    seed: int, cupy_device: CupyDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sources may change behind the call; any order of axes, nothing, and no axes are copied."""
    small_pieces(monkeypatch, 1024)
    monkeypatch.setattr(Stream, "order", Random(seed))
    random, before = np.random.default_rng(seed), PinnedMemory.pinned
    for array in (
        random.random((7, 300)),
        random.random((300, 7)).T,
        random.random((2, 3, 5, 70))[:, ::2],
        random.random((4, 5, 6)).astype("complex128").transpose(2, 0, 1),
        random.random((0, 3)),
        np.asarray(3.5),
    ):
        wanted = array.copy()
        there = cupy_device.put(array)
        array[...] = 0
        np.testing.assert_array_equal(cupy_device.get(there), wanted)
    assert 0 < PinnedMemory.pinned - before <= 2 * 1024


@pytest.mark.parametrize("seed", range(4))
def test_tiles_come_on_a_second_stream(
    seed: int, cupy_device: CupyDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kernels that read the last tile may still be queued when the next one comes."""
    small_pieces(monkeypatch, 256)
    monkeypatch.setattr(Stream, "order", Random(seed))
    program = tcgen.compile(SPEC, extents={"o": 3, "v": 4}, target="cuda", objective="memory")
    arrays = arrays_of({"o": 5, "v": 9})
    wanted = tcgen.compile(SPEC, extents={"o": 3, "v": 4}, target="numpy")(**arrays)
    with Stream():
        found = program(**arrays)
    for name, value in wanted.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-12)
    assert len(Stream.made) == 3


def test_freed_memory_is_poisoned(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the order of its own stream: work of another one that does not wait may meet it."""
    met = set()
    for seed, waits in itertools.product(range(16), (True, False)):
        Stream.reset()
        monkeypatch.setattr(Stream, "order", Random(seed))
        first, second = Stream.current, Stream()
        array, there = (stand_in_cupy.empty(4) for _ in range(2))
        array.set(np.ones(4))
        made, read = stand_in_cupy.cuda.Event(), stand_in_cupy.cuda.Event()
        made.record(first)
        second.wait_event(made)
        there.data.copy_from_device_async(array.data, array.nbytes, second)
        read.record(second)
        if waits:
            first.wait_event(read)
        del array
        first.synchronize()
        second.synchronize()
        met.add((waits, bool(np.isnan(there.view(np.ndarray)).any())))
    assert met == {(True, False), (False, False), (False, True)}


def test_a_call_within_a_capture_is_refused(cupy_device: CupyDevice) -> None:
    program = compiled()
    arrays = arrays_of({"o": 3, "v": 4})
    with Stream() as stream:
        stream.capturing = True
        with pytest.raises(ArgumentError, match=mentions("capturing graph end_capture")):
            program(**arrays)
        stream.capturing = False
        program(**arrays)


def test_errors_of_the_driver(cupy_device: CupyDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    """A launch that fails, and a fault of earlier work of which a wait reports."""
    program = compiled()
    arrays = arrays_of({"o": 3, "v": 4})
    Stream.fault = CUDARuntimeError("cudaErrorIllegalAddress")
    with pytest.raises(UnavailableError, match=mentions("cudaErrorIllegalAddress new process")):
        program(**arrays)
    Stream.reset()

    def refused(*_: object, **__: object) -> None:
        raise CUDADriverError("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES")

    monkeypatch.setattr(cupy_device, "function", lambda *_: refused)
    with pytest.raises(UnavailableError, match=mentions("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES")):
        compiled()(**arrays)
    for fault, kind in ((OutOfMemoryError("80 GiB"), MemoryLimitError), (KeyError("x"), KeyError)):
        with pytest.raises(kind), cupy_device.translated():
            raise fault

"""Lazy arrays of a GPU: NumPy's values by CUDA kernels, and by CuPy without a kernel.

CuPy is a stand-in whose streams run when they are waited for; kernels run under the emulator.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from inspect import signature
from typing import Any

import numpy as np
import pytest

import tcgen
from support import cuda_compile, cupy_stand_in
from support.cupy_dispatch import plain
from support.cupy_stand_in import Array, Stream
from support.lazy_programs import ARRAYS, OTHERS, RECORDED, X, Y, check
from support.marks import slow, slow_where
from support.messages import mentions
from tcgen.errors import ArgumentError
from tcgen.lazy_arrays import dispatch
from tcgen.lazy_arrays import run as evaluation
from tcgen.lazy_arrays.backend import BACKENDS
from tcgen.lazy_arrays.compile import kernel_of, lazy_system
from tcgen.lazy_arrays.dispatch import LIMITS
from tcgen.lazy_arrays.graph import linearize
from tcgen.runtime.gpu.cupy_device import CupyDevice

pytestmark = pytest.mark.skipif(
    shutil.which("g++") is None, reason="no C compiler: the CUDA emulator needs g++"
)
CUPY = cupy_stand_in.module
RANDOM = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A stand-in for CuPy; kernels run from the first time on."""
    Stream.reset()
    device = CupyDevice(CUPY)
    for module in ("lazy_arrays.backend", "runtime.gpu.backend"):
        monkeypatch.setattr(f"tcgen.{module}.open_device", lambda: device)
    monkeypatch.setenv("TCGEN_LAZY_MIN_ELEMENTS", "0")
    yield
    BACKENDS.pop(Array, None)


def on_gpu(array: Any) -> Any:
    return tcgen.lazy(CUPY.asarray(array))


def values(array: Any) -> Any:
    """Of a lazy array, or of CuPy's, from the GPU."""
    found = array.compute() if isinstance(array, tcgen.LazyArray) else array
    assert type(found) is Array
    return found.get()


FEW = ("chain of functions", "argmax", "integers", "softmax", "stencil", "red-black", "updates")
NAMES = [
    *(
        *FEW,
        "broadcast",
        "masks",
        "clip",
        "comparison",
        "max",
        "min",
        "variance",
        "any",
        "booleans",
    ),
    *("reversed", "product", "periodic", "masked sum", "slices of functions"),
    *("complex: divided by zero", "joined"),
]
MORE = [n for n in OTHERS if n.startswith("cupy: ")]


@pytest.mark.parametrize("name", [*NAMES, *MORE])
@pytest.mark.parametrize("least", ["3", "1000"])
def test_values(least: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Recorded, but run by CuPy, and by CuPy at once."""
    monkeypatch.setenv("TCGEN_LAZY_MIN_ELEMENTS", least)
    pending = check({**RECORDED, **OTHERS}[name], on_gpu, values)
    assert pending > 0 or name in MORE or least == "1000"


@pytest.mark.few(4)
@pytest.mark.parametrize("name", slow_where(lambda name: name not in FEW, [*NAMES, *MORE]))
def test_values_by_kernels(name: str) -> None:
    """From the first time on."""
    assert check({**RECORDED, **OTHERS}[name], on_gpu, values) > 0 or name in MORE


@pytest.mark.parametrize("name", ["chain of functions", *slow("softmax", "integers", "variance")])
def test_values_of_single_precision(name: str) -> None:
    check(RECORDED[name], on_gpu, values, single=True)


@pytest.mark.skipif(not cuda_compile.can_compile(), reason=cuda_compile.MISSING)
@pytest.mark.parametrize(
    "dtype", ["float64", *slow("every float64", "every float32", "complex128")]
)
def test_kernels_compile(dtype: str) -> None:
    """Operations, reductions, mixed types and slices, by the compiler for a GPU."""
    kind = dtype.split()[-1]
    evaluated = ("periodic", "updates", "slices of functions", "joined")
    rest = [n for n in NAMES if n not in evaluated and not n.startswith("complex")]
    works = [RECORDED[name] for name in (["softmax", "argmax"] if kind == dtype else rest)]
    if kind == "complex128":
        works = [lambda x, y, i, b: np.exp(x * y).sum(0) / np.sqrt(y[1:]) - np.conj(x[:-1]) + i[1:]]
    named = {"x": X.astype(kind), "y": Y.astype(kind), "i": ARRAYS["i"], "b": ARRAYS["b"]}
    for work in works:
        line = linearize((work(*(tcgen.lazy(named[n]) for n in signature(work).parameters))._node,))
        if line.operands[-1]:  # else NumPy has computed it, in another type
            program = kernel_of(lazy_system(line), kind, "cuda").program
            for arch in (80, 90):
                assert cuda_compile.compile_cuda(program.source, arch)


def test_updates_write_in_place_but_not_to_what_was_handed_out() -> None:
    x = on_gpu(X) * 1
    memory = x.compute().data.ptr
    x[0] = 5  # moves, since the array above may still be held
    assert x.compute().data.ptr != memory
    y = on_gpu(X) + 1
    float(y.sum())
    settled = y._values().data.ptr
    y[1:3] *= 2
    y[0] = 7
    assert y._values().data.ptr == settled
    kept = y.compute()
    before = kept.get()
    y += 1
    np.testing.assert_array_equal(kept.get(), before)
    np.testing.assert_array_equal(values(y), before + 1)


def test_the_array_that_was_given_is_never_written_to() -> None:
    given = CUPY.asarray(X)
    x = tcgen.lazy(given)
    x[0] = 5
    x += 1
    np.testing.assert_array_equal(given.get(), X)
    np.testing.assert_array_equal(values(x)[0], np.full(7, 6.0))
    copied = tcgen.lazy(given, copy=True)
    assert copied.compute().data.ptr != given.data.ptr


def test_an_array_of_cupy_joins_from_both_sides() -> None:
    x, y = on_gpu(X), CUPY.asarray(Y)
    for made in (x + y, y + x, np.add(y, x), np.where(x > y, x, y) + np.minimum(x, y)):
        assert made.pending > 0
        np.testing.assert_allclose(values(made), X + Y)
    y[0] = 0.0  # after it was recorded
    np.testing.assert_allclose(values(x + y)[0], X[0])


@pytest.mark.parametrize("least", ["0", "1000"])
@pytest.mark.parametrize(
    "work",
    [
        lambda x, host: x + host,
        lambda x, host: np.multiply(x, tcgen.lazy(host)),
        lambda x, host: tcgen.lazy(host) - x,
        lambda x, host: np.concatenate([x, host]),
        lambda x, host: np.where(x > 0, x, host),
        lambda x, host: np.einsum("ij,ij", x, tcgen.lazy(host)),
        lambda x, host: tcgen.lazy(host) + x.compute(),
    ],
)
def test_arrays_of_both_memories_do_not_mix(
    work: Callable[[Any, Any], Any], least: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TCGEN_LAZY_MIN_ELEMENTS", least)
    x = on_gpu(X)
    with pytest.raises(ArgumentError, match=mentions("CPU GPU cupy.asarray x.compute")) as caught:
        work(x, X)
    assert isinstance(caught.value, TypeError)  # like CuPy's error


def test_values_go_to_the_cpu_when_they_are_asked_for() -> None:
    x = on_gpu(X)
    with pytest.raises(ArgumentError, match=mentions("GPU cupy.asnumpy")):
        np.asarray(x + 1)
    assert float((x * 0 + 2).sum()) == 84.0
    assert str(abs(x[0]) * 0) == str(np.zeros(7))
    assert repr(x) == "<lazy array of shape (6, 7), float64, 0 pending operations>"
    total = x.sum()
    assert (total.shape, type(total.compute())) == ((), Array)
    with pytest.raises(ArgumentError, match=mentions("GPU NumPy functions tcgen.lazy")):
        x.__array_namespace__()


@pytest.mark.parametrize("least", ["0", "1000"])
def test_arrays_are_sent_to_the_gpu(least: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TCGEN_LAZY_MIN_ELEMENTS", least)
    for given in (X, X.tolist(), tcgen.lazy(X), tcgen.lazy(X / 2) * 2, on_gpu(X)):
        x = tcgen.lazy(given, device="cuda")
        np.testing.assert_allclose(values(np.exp(x) + x), np.exp(X) + X)
        x[0] = 5  # a copy
    assert tcgen.lazy(x, device="cuda") is x
    given = CUPY.asarray(X)
    tcgen.lazy(given, device="cuda", copy=True)[0] = 5
    np.testing.assert_array_equal(given.get(), X)
    with pytest.raises(ArgumentError, match=mentions("device 'gpu' cuda")):
        tcgen.lazy(X, device="gpu")


def test_arrays_of_both_memories_are_computed_together() -> None:
    x, y = on_gpu(X) + 1, tcgen.lazy(Y) + 1
    one, other = tcgen.compute(x, y)
    assert (type(one), type(other)) == (Array, np.ndarray)
    np.testing.assert_array_equal(one.get(), X + 1)
    np.testing.assert_array_equal(other, Y + 1)


def test_kernels_come_from_the_background_and_measurements_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """CuPy runs a form until its kernel is there; later runs do not wait for the queue."""
    monkeypatch.setenv("TCGEN_LAZY_MIN_ELEMENTS", "3")
    monkeypatch.setattr(LIMITS, "spent", 0.0)
    ran: list[str] = []
    waits: list[int] = []
    original = evaluation.run_in_numpy
    monkeypatch.setattr(
        evaluation, "run_in_numpy", lambda line: (ran.append("cupy"), original(line))[1]
    )
    x = on_gpu(X)
    device: Any = BACKENDS[Array]
    monkeypatch.setattr(type(device), "wait", lambda _: waits.append(1))
    for _ in range(12):
        before = len(waits)
        np.testing.assert_allclose(values(np.exp(x) * 3 + x), np.exp(X) * 3 + X)
        dispatch.wait_for_background()
    assert ran[0] == "cupy"
    *_, form = (f for f in dispatch.FORMS._values.values() if f.kernel is not None)  # the latest
    assert form.kernel is not None
    assert form.kernel.program.manifest.target == "cuda"
    assert len(waits) == before  # during the last run


def test_threads_find_their_elements_of_whole_arrays_without_divisions() -> None:
    x, y = tcgen.lazy(X), tcgen.lazy(Y)
    for work, divides in (
        (np.sin(x) * 2 + y, False),
        ((abs(x) * y).sum(), False),
        (x[:, 1:] * y[:, 1:], True),
    ):
        line = linearize((work._node,))
        source = kernel_of(lazy_system(line), "float64", "cuda").program.source
        kernels = source[source.index('extern "C"') :]
        assert ("%N_" in kernels) == divides


class Tensor:
    """An array of another library on the GPU, which hands its memory over."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0)

    def __dlpack__(self, *, stream: Any = None) -> Any:
        assert stream is not None
        return self.array


def test_arrays_of_other_libraries_are_not_copied() -> None:
    given = X.copy()
    x = tcgen.lazy(Tensor(given))
    assert np.shares_memory(plain(x._values()), given)
    np.testing.assert_allclose(values(x * 2), X * 2)


def test_another_gpu_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CupyDevice, "elsewhere", lambda *_: "GPU 1, but the current one is GPU 0")
    with pytest.raises(ArgumentError, match=mentions("GPU 1 copy")):
        on_gpu(X)


def test_slices_are_read_and_written_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    copied: list[Any] = []
    contiguous, copy = CupyDevice.contiguous, Array.copy
    monkeypatch.setattr(
        CupyDevice,
        "contiguous",
        lambda own, array: copied.append(array) or contiguous(own, array),
    )
    given, target = on_gpu(X), on_gpu(Y) + 0
    float(target.sum())
    monkeypatch.setattr(Array, "copy", lambda own, *o: copied.append(own) or copy(own, *o))
    memory = target._values().data.ptr
    target[1:-1, 1:-1] = given[1:-1, 2:] + given[1:-1, :-2] + given[2:, 1:-1]
    target[2:] -= 0.5 * (given[2:] - given[1:-1])
    assert target._values().data.ptr == memory
    assert not [array for array in copied if not array.flags.c_contiguous]
    wanted = Y.copy()
    wanted[1:-1, 1:-1] = X[1:-1, 2:] + X[1:-1, :-2] + X[2:, 1:-1]
    wanted[2:] -= 0.5 * (X[2:] - X[1:-1])
    np.testing.assert_allclose(values(target), wanted, rtol=1e-13)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("first", [0, 1, 2])
def test_groups_of_elements_begin_where_memory_is_aligned(dtype: str, first: int) -> None:
    for length in (0, 1, 2, 7, 8, 1031):
        x = RANDOM.standard_normal(length + 2).astype(dtype)
        y = RANDOM.standard_normal(length).astype(dtype)
        part = slice(first, first + length)
        found = values(np.exp(on_gpu(x)[part]) * on_gpu(y) + 2)
        np.testing.assert_allclose(found, np.exp(x[part]) * y + 2, rtol=1e-4)

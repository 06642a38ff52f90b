"""Time of the CPU for a launch on a GPU, and for a small call on the CPU, in microseconds.

    taskset -c 0 python benchmarks/launch_overhead.py [--seconds 2] [--json FILE]

Kernels of a GPU go to a device that does nothing: a stand-in for CuPy whose arrays are memory of
the CPU that nobody touches, and whose launches return at once. So the numbers are what tcgen and
Python take, without the driver (about 2 microseconds a launch), on a machine without a GPU. The
last line is a call of a compiled program with two arrays of 4 x 4. Each number is the least of many
short rounds in some seconds. All kernels are generated (``library=False``).
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from math import prod
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

import tcgen
from tcgen.records.loops import stored_shape
from tcgen.runtime.gpu.cupy_device import CupyDevice

PRODUCT = "space s\nindex i j k : s\ninput a[s,s], b[s,s]\noutput c\nc[i,j] = a[i,k]*b[k,j]\n"
BARS = {
    "launch in a loop": 12.0,
    "kernel in CCSD": 10.0,
    "one kernel": 10.0,
    "4 x 4 on a CPU": 15.0,
}


class Pointer:
    """An address of the device."""

    __slots__ = ("ptr",)

    def __init__(self, ptr: int) -> None:
        self.ptr = ptr

    def __add__(self, count: int) -> Pointer:
        return Pointer(self.ptr + count)


class Flags:
    """Every array is in C order."""

    c_contiguous = True


class Array:
    """An array of the device: a shape, an element type and an address."""

    flags = Flags()
    device = SimpleNamespace(id=0)

    def __init__(self, shape: Any, dtype: Any, memptr: Pointer | None = None) -> None:
        self.shape, self.dtype = shape, np.dtype(dtype)
        self.ndim = len(shape)
        self.data = memptr or Pointer(512)

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * self.dtype.itemsize

    def __getitem__(self, _: Any) -> Array:
        return self

    def __setitem__(self, _: Any, value: Any) -> None:
        """Nothing is copied."""


class Launches:
    """Counts launches."""

    number = 0


class IdleKernel:
    """A kernel that does nothing."""

    shared_size_bytes = 0
    max_dynamic_shared_size_bytes = 0

    def __call__(self, grid: Any, block: Any, args: Any, shared_mem: int = 0) -> None:  # noqa: ARG002
        Launches.number += 1


launch = IdleKernel()


def device() -> CupyDevice:
    """A GPU that does nothing."""
    runtime = SimpleNamespace(
        getDevice=lambda: 0,
        getDeviceProperties=lambda _: {"sharedMemPerBlockOptin": 227 * 1024},
        streamIsCapturing=lambda _: False,
        CUDARuntimeError=RuntimeError,
    )
    stream = SimpleNamespace(ptr=0, synchronize=lambda: None)
    module = SimpleNamespace(get_function=lambda _: launch, compile=lambda: None)
    cuda = SimpleNamespace(
        runtime=runtime,
        driver=SimpleNamespace(CUDADriverError=RuntimeError),
        memory=SimpleNamespace(OutOfMemoryError=MemoryError),
        compiler=SimpleNamespace(CompileException=SyntaxError),
        get_current_stream=lambda: stream,
    )
    cupy = SimpleNamespace(cuda=cuda, empty=Array, ndarray=Array, RawModule=lambda **_: module)
    return CupyDevice(cupy)


def least(run: Callable[[], object], seconds: float) -> float:
    """Seconds of one call: the least mean of short rounds, between the turns of other programs."""
    start = time.perf_counter()
    run()
    calls = max(1, int(2e-4 / (time.perf_counter() - start)))
    best, end = float("inf"), time.perf_counter() + seconds
    while (start := time.perf_counter()) < end:
        for _ in range(calls):
            run()
        best = min(best, (time.perf_counter() - start) / calls)
    return best


def inputs(program: Any, extents: dict[str, int]) -> dict[str, Array]:
    """Arrays of the device for all inputs."""

    from tcgen.ir.tensor import element_type

    manifest = program.manifest
    return {
        t.name: Array(stored_shape(t, extents), element_type(t, manifest.dtype))
        for t in manifest.tensors
        if t.role != "output"
    }


def call(program: Any, extents: dict[str, int], seconds: float) -> tuple[float, int]:
    """Seconds of one call, measured for ``seconds``, and its launches."""
    arrays = inputs(program, extents)
    program(**arrays)
    Launches.number = 0
    program(**arrays)
    number = Launches.number
    return least(lambda: program(**arrays), seconds), number


def measure(each: float) -> dict[str, float]:
    """Microseconds by the names of BARS; ``each`` is measured for so many seconds."""
    from tcgen.runtime.gpu import backend

    made = device()
    backend.open_device = lambda: made
    found: dict[str, float] = {}
    specs = Path(tcgen.__file__).parents[1] / "specs"
    extents = {"o": 8, "v": 24}
    triples = tcgen.compile(
        specs / "t_closed_shell.spec",
        extents=extents,
        target="cuda",
        objective="time",
        memory_limit="1MiB",
        library=False,
    )
    seconds, number = call(triples, extents, each)
    found["launch in a loop"] = seconds / number * 1e6
    found["launches of the loop"] = number
    ccsd = tcgen.compile(
        specs / "ccsd_closed_shell.spec",
        extents={"o": 20, "v": 100},
        target="cuda",
        library=False,
    )
    seconds, number = call(ccsd, {"o": 20, "v": 100}, each)
    found["kernel in CCSD"] = seconds / number * 1e6
    found["kernels of CCSD"] = number
    program = tcgen.compile(PRODUCT, extents={"s": 4}, target="cuda")
    arrays = inputs(program, {"s": 4})
    a, b = arrays["a"], arrays["b"]

    def by_hand() -> None:
        launch((1,), (128,), (a, b, made.empty((4, 4), "float64"), 4))

    whole, hand = least(lambda: program(a=a, b=b), each), least(by_hand, each)
    found["one kernel"] = (whole - hand) * 1e6
    small = tcgen.compile(PRODUCT, extents={"s": 4}, target="cpu")
    x, y = np.ones((4, 4)), np.ones((4, 4))
    small(a=x, b=y)
    found["4 x 4 on a CPU"] = least(lambda: small(a=x, b=y), each) * 1e6
    return found


def main() -> None:
    """Print a table, and write the numbers as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=2.0, help="for each number (2)")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = measure(options.seconds)
    for name, value in found.items():
        bar = f"at most {BARS[name]:g}" if name in BARS else ""
        print(f"{name:24} {value:10.1f} {bar}")
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()

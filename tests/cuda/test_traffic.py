"""Bank conflicts and sectors of generated kernels, counted from the addresses of their PTX."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from support import cuda_compile
from support.cuda_device import PtxDevice
from support.cuda_emulator import EmulatedKernel
from support.kernel_families import FAMILIES, compiled
from support.ptx_engine import PtxModule
from support.ptx_engine.traffic import Traffic, excess, traffic_of
from tcgen.runtime.program import Program
from tcgen.testing import random_arrays

pytestmark = [
    pytest.mark.default_thresholds,
    pytest.mark.skipif(not cuda_compile.can_compile(), reason=cuda_compile.MISSING),
    pytest.mark.skipif(
        shutil.which("g++") is None, reason="no C compiler: the PTX engine needs g++"
    ),
]


class CountingDevice(PtxDevice):
    """The PTX engine, which counts the traffic of all launches."""

    def __init__(self, arch: int = 90) -> None:
        super().__init__(arch)
        self.traffic: list[Traffic] = []

    def launch(
        self,
        module: PtxModule,
        kernel: EmulatedKernel,
        grid: Any,
        block: Any,
        args: Any,
        shared: int,
    ) -> None:
        self.traffic += traffic_of(kernel, module.ptx, grid, block, args, shared_mem=shared)


# Bounds for full tiles: cost for each least cost, of reads and writes of shared memory and of reads
# and writes of global memory. To tighten them, write what `found` has when the test is run.
BOUNDS = {
    "tiles": (1.5, 2.1, 1.7, 2.1),
    "transposed tiles": (1.0, 1.0, 1.0, 1.0),
    "a sum": (1.1, 1.0, 4.1, 1.0),
}
FULL = {
    "tiles": {"o": 8, "v": 16},
    "transposed tiles": {"o": 32, "v": 32},
    "a sum": {"o": 4, "v": 32},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BOUNDS)
def test_full_tiles(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    device = CountingDevice()
    monkeypatch.setattr("tcgen.runtime.gpu.backend.open_device", lambda: device)
    system, artifact = compiled(name)
    inputs = random_arrays(system, FULL[name], dtype=FAMILIES[name].dtype, seed=3)
    Program(artifact)(**inputs)
    kinds = [(space, write) for space in ("shared", "global") for write in (False, True)]
    found = tuple(round(excess(device.traffic, *kind), 2) for kind in kinds)
    assert all(f <= most for f, most in zip(found, BOUNDS[name], strict=True)), found


COLUMNS = """
extern "C" __global__ void columns(const double *__restrict__ x, double *__restrict__ y)
{
    __shared__ double tile[32][PITCH];
    for (int i = 0; i < 32; ++i) tile[i][threadIdx.x] = x[i*32 + threadIdx.x];
    __syncthreads();
    for (int i = 0; i < 32; ++i) y[threadIdx.x*32 + i] = tile[threadIdx.x][i];
}
"""


@pytest.mark.parametrize(("pitch", "passes"), [(32, 16.0), (33, 1.0), (36, 4.0)])
def test_conflicts_and_sectors_are_counted(pitch: int, passes: float) -> None:
    """Rows of 32 doubles have all elements of a column in one pair of banks."""
    module = PtxModule(COLUMNS.replace("PITCH", str(pitch)))
    x, y = np.random.default_rng(1).random((32, 32)), np.zeros((32, 32))
    found = traffic_of(module.get_function("columns"), module.ptx, (1,), (32,), (x, y))
    assert np.array_equal(y, x.T.T)
    assert excess(found, "shared", False) == passes
    assert excess(found, "shared", True) == 1.0
    assert excess(found, "global", False) == 1.0
    assert excess(found, "global", True) == 4.0  # a sector for each of the lanes
    loads = [t for t in found if t.space == "global" and not t.write]
    assert sum(t.accesses for t in loads) == 32
    assert sum(t.bytes for t in loads) == x.nbytes
    assert all("ld.global" in t.instruction for t in loads)
    assert replace(loads[0], cost=0) != loads[0]

"""Kernels of arrays with billions of elements: a few blocks, on memory that nobody fills.

The largest arrays for integers of 32 bits, and arrays for which those are too short.
"""

from __future__ import annotations

import mmap
import shutil
import sys
from typing import Any

import numpy as np
import pytest

import tcgen
from support import cuda_compile
from support.cuda_device import DeviceArray, PtxDevice
from support.cuda_emulator import EmulatedKernel
from support.ptx_engine import PtxModule
from tcgen.artifact.grid import NARROW
from tcgen.artifact.kernel_abi import NARROW_INTEGERS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not cuda_compile.can_compile(), reason=cuda_compile.MISSING),
    pytest.mark.skipif(
        shutil.which("g++") is None, reason="no C compiler: the PTX engine needs g++"
    ),
    pytest.mark.skipif(sys.platform != "linux", reason="memory without pages is Linux's"),
]
ENDS = 100_000  # elements at both ends of a result that are compared
MAP_NORESERVE = 0x4000  # of <sys/mman.h>; Python has no name for it everywhere
KEPT = 64 * 2**20  # bytes up to which an array is filled


def sparse(shape: tuple[int, ...]) -> Any:
    """An array of zeros, of whose pages those alone exist that are written."""
    count = int(np.prod(shape, dtype=np.int64))
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE
    memory = mmap.mmap(-1, 8 * count, flags=flags)
    return np.frombuffer(memory, np.float64).reshape(shape).view(DeviceArray)


class FewBlocks(PtxDevice):
    """The PTX engine, which runs the first blocks of a launch and the last ones, in place.

    ``narrow``: for each source that was compiled, whether its integers have 32 bits.
    """

    def __init__(self) -> None:
        super().__init__()
        self.narrow: list[bool] = []

    def module(self, code: str) -> Any:
        self.narrow.append(code.startswith(NARROW_INTEGERS))
        return super().module(code)

    def launch(
        self,
        module: PtxModule,
        kernel: EmulatedKernel,
        grid: Any,
        block: Any,
        args: Any,
        shared: int,
    ) -> None:
        count = int(np.prod(grid))
        kernel.in_place = True
        kernel.blocks = sorted({0, 1, count - 2, count - 1} & set(range(count)))
        super().launch(module, kernel, grid, block, args, shared)

    def empty(self, shape: tuple[int, ...], dtype: str) -> Any:
        assert np.prod(shape) * np.dtype(dtype).itemsize < KEPT
        return super().empty(shape, dtype)

    def put(self, array: Any) -> Any:
        return array.view(DeviceArray)


def check_ends(found: Any, value_of: Any) -> None:
    """What was written of the first and of the last elements has the right values."""
    flat = found.view(np.ndarray).reshape(-1)
    for begin in (0, flat.size - ENDS):
        written = begin + np.flatnonzero(flat[begin : begin + ENDS])
        assert {0, flat.size - 1} & set(written.tolist())
        places = np.unravel_index(written, found.shape)
        np.testing.assert_allclose(flat[written], value_of(*places), rtol=1e-12)


@pytest.fixture(autouse=True)
def device(monkeypatch: pytest.MonkeyPatch) -> FewBlocks:
    found = FewBlocks()
    monkeypatch.setattr("tcgen.runtime.gpu.backend.open_device", lambda: found)
    return found


@pytest.mark.parametrize(("v", "narrow"), [(208, True), (209, False), (216, False), (260, False)])
def test_the_largest_results(v: int, narrow: bool, device: FewBlocks) -> None:
    """Up to the limit, beyond it, beyond 2^31 and beyond 2^32 elements."""
    x = 9
    assert narrow == (v**4 < NARROW)
    program = tcgen.compile(
        "acx,bdx->abcd", extents={**dict.fromkeys("abcd", v), "x": x}, target="cuda", library=False
    )
    random = np.random.default_rng(1)
    t, u = (random.uniform(1, 2, (v, v, x)) for _ in range(2))
    out = sparse((v,) * 4)
    names = [tensor.name for tensor in program.manifest.tensors]
    program(**dict(zip(names, (t, u), strict=False)), out={names[-1]: out})
    check_ends(out, lambda a, b, c, d: np.einsum("nx,nx->n", t[a, c], u[b, d]))
    assert device.narrow == [narrow]


@pytest.mark.parametrize(("v", "narrow"), [(1233, True), (1625, False)])
@pytest.mark.parametrize("subscripts", ["abc->cba", "abc,->abc"])
def test_the_largest_element_wise_steps(
    subscripts: str, v: int, narrow: bool, device: FewBlocks
) -> None:
    """Tiles of a transposition, and elements that threads take in turn."""
    assert narrow == (v**3 < NARROW)
    program = tcgen.compile(subscripts, extents=dict.fromkeys("abc", v), target="cuda")
    *inputs, result = [tensor.name for tensor in program.manifest.tensors]
    (kernel,) = program.manifest.kernels
    assert kernel.grid is not None
    last = v**3 - 1
    if kernel.grid.most is not None:  # the last that the last thread of the grid takes
        step = kernel.grid.most * kernel.grid.strips[0].tile
        last = v**3 // step * step - 1
    x, out = sparse((v,) * 3), sparse((v,) * 3)
    for value, place in enumerate((0, last), 1):
        at = np.unravel_index(place, x.shape)
        x[at[::-1] if subscripts == "abc->cba" else at] = value
    program(**dict(zip(inputs, (x, np.float64(2)), strict=False)), out={result: out})
    found = out.view(np.ndarray).reshape(-1)
    assert (found[0], found[last]) == ((1, 2) if len(inputs) == 1 else (2, 4))
    assert device.narrow == [narrow]


def test_an_input_beyond_32_bits() -> None:
    v, x = 1640, 24
    assert v**3 > 2**32
    program = tcgen.compile(
        "abc,cx->abx", extents={**dict.fromkeys("abc", v), "x": x}, target="cuda", library=False
    )
    random = np.random.default_rng(1)
    w, t, out = sparse((v,) * 3), random.uniform(1, 2, (v, x)), sparse((v, v, x))
    w[0, :200] = random.uniform(1, 2, (200, v))
    w[-1, -200:] = random.uniform(1, 2, (200, v))
    names = [tensor.name for tensor in program.manifest.tensors]
    program(**dict(zip(names, (w, t), strict=False)), out={names[-1]: out})
    flat = out.view(np.ndarray)
    for a, rows in ((0, slice(0, 200)), (-1, slice(v - 200, v))):
        found, expected = flat[a, rows], w[a, rows] @ t
        written = found != 0
        assert written[0 if a == 0 else -1].any()
        np.testing.assert_allclose(found[written], expected[written], rtol=1e-12)

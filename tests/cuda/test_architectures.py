"""Tiles on every architecture: right values, nothing in memory, few instructions for each product.

Bounds of instructions need no device. They hold for the compilers of the extra ``test``.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from functools import cache

import pytest

import tcgen
from support import cuda_compile, sass
from support.cuda_compile import compiled as compile_text
from support.cuda_compile import compiler_version
from support.cuda_device import EmulatedDevice, PtxDevice
from support.kernel_families import FAMILIES, compiled, is_right
from support.marks import slow, slow_where
from support.ptx_engine.module import ptx_of
from support.sass import Kernel
from tcgen.artifact.kernel_abi import NARROW_INTEGERS

compiles = pytest.mark.skipif(not cuda_compile.can_compile(), reason=cuda_compile.MISSING)
emulates = pytest.mark.skipif(shutil.which("g++") is None, reason="no C compiler: needs g++")
reads = pytest.mark.skipif(not sass.can_read(), reason=sass.MISSING)
pytestmark = pytest.mark.default_thresholds
TILES = ["tiles", "tiles in TF32", "tiles of complex numbers"]
# A100, H100, B200, B300, and graphics GPUs of the same generation.
ARCHITECTURES = (80, 90, 100, 103, 120)


def known(text: str, arch: int) -> dict[str, Kernel]:
    """The machine code of a text; skips where the compiler is older than the architecture."""
    try:
        return sass.kernels_of(compile_text(f"{NARROW_INTEGERS}\n{text}", arch, "cubin"))
    except cuda_compile.CompileError as error:
        if "--gpu-architecture" not in str(error):
            raise
        pytest.skip(f"{compiler_version()} does not know sm_{arch}")


@emulates
@pytest.mark.parametrize("arch", [103, *slow(75, 80, 90, 120)])
@pytest.mark.parametrize("name", TILES)
def test_values_of_the_text(name: str, arch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tcgen.runtime.gpu.backend.open_device", lambda: EmulatedDevice(arch))
    assert is_right(name)


@compiles
@emulates
@pytest.mark.slow
@pytest.mark.parametrize("arch", [75, 100, 103, 120])
@pytest.mark.parametrize("name", TILES)
def test_values_of_the_ptx(name: str, arch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    known(compiled(name)[1].text("kernels.cu"), arch)
    monkeypatch.setattr("tcgen.runtime.gpu.backend.open_device", lambda: PtxDevice(arch))
    assert is_right(name)


@compiles
@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_products_of_an_architecture(arch: int) -> None:
    """Double precision by ``fma()`` where ptxas pads matrix products; TF32 always by them."""
    known(compiled("tiles")[1].text("kernels.cu"), arch)
    by_cores = {n: "mma.sync" in ptx_of(compiled(n)[1].text("kernels.cu"), arch) for n in TILES}
    double = arch in (80, 90, 100)
    expected = {"tiles": double, "tiles in TF32": True, "tiles of complex numbers": double}
    assert by_cores == expected


@compiles
@reads
@pytest.mark.parametrize("arch", slow_where(lambda arch: arch != 103, ARCHITECTURES))
@pytest.mark.parametrize("name", slow_where(lambda name: name != "tiles", FAMILIES))
def test_families_hold_nothing_in_memory(name: str, arch: int) -> None:
    for kernel in known(compiled(name)[1].text("kernels.cu"), arch).values():
        # The whole of local memory: what spills, and arrays with indices.
        assert kernel.stack == kernel.count("LDL") == kernel.count("STL") == 0, kernel.name


@dataclass(frozen=True, slots=True)
class Product:
    """A contraction, and the most instructions for each of its products by architecture.

    To tighten a bound, print what holds with ``python benchmarks/gpu_sass.py`` and write it here.
    """

    einsum: str
    extent: int
    most: dict[str, float]
    dtype: str = "float64"
    tf32: bool = False


# Of a DMMA, an HMMA or an FMA of a warp in the main loop, by its name in machine code. An FMA takes
# a point of k for 32 elements, DMMA.884 and DMMA.8x8x4 8 times as many, the others 32 times.
PRODUCTS = {
    "doubles": Product(
        "ik,kj->ij",
        512,
        {"DMMA.884": 4.2, "DMMA.16x8x8": 15.5, "DMMA.8x8x4": 4.7, "DFMA": 1.5},
    ),
    "complex numbers": Product(
        "fbea,ecfd->dcba",
        72,
        {"DMMA.884": 2.0, "DMMA.16x8x8": 13.0, "DMMA.8x8x4": 2.9, "DFMA": 1.25},
        dtype="complex128",
    ),
    "singles": Product("fbea,ecfd->dcba", 72, {"FFMA.FTZ": 1.35}, dtype="float32"),
    "singles in TF32": Product(
        "fbea,ecfd->dcba",
        72,
        {"HMMA.1688.F32.TF32": 9.8},
        dtype="float32",
        tf32=True,
    ),
}
DOUBLES = {80: "DMMA.884", 90: "DMMA.16x8x8", 100: "DMMA.8x8x4", 103: "DFMA", 120: "DFMA"}


@cache
def text_of(name: str) -> str:
    case = PRODUCTS[name]
    extents = dict.fromkeys(re.findall(r"[a-z]", case.einsum), case.extent)
    program = tcgen.compile(
        case.einsum,
        extents=extents,
        target="cuda",
        library=False,
        dtype=case.dtype,
        tf32=case.tf32,
    )
    return program.artifact.text("kernels.cu")


@compiles
@reads
@pytest.mark.parametrize("arch", slow_where(lambda arch: arch not in (90, 103), ARCHITECTURES))
@pytest.mark.parametrize("name", slow_where(lambda name: name != "doubles", PRODUCTS))
def test_instructions_of_a_product(name: str, arch: int) -> None:
    case = PRODUCTS[name]
    (kernel,) = known(text_of(name), arch).values()
    loop = kernel.main_loop()
    assert loop is not None
    assert loop.product == (next(iter(case.most)) if len(case.most) == 1 else DOUBLES[arch])
    assert loop.per_product <= case.most[loop.product]
    assert kernel.stack == kernel.count("LDL") == kernel.count("STL") == 0
    assert kernel.divergent_products() == []


# The table of docs/targets.md: products in the kernel, and most instructions of all.
@compiles
@reads
@pytest.mark.parametrize(
    ("arch", "product", "count"),
    [
        (90, "DMMA.16x8x8", 16),
        (103, "DFMA", 512),
        *(
            pytest.param(*row, marks=pytest.mark.slow)
            for row in (
                (75, "DFMA", 512),
                (80, "DMMA.884", 64),
                (86, "DMMA.884", 64),
                (89, "DMMA.884", 64),
                (100, "DMMA.8x8x4", 64),
                (110, "DFMA", 512),
                (120, "DFMA", 512),
                (121, "DFMA", 512),
            )
        ),
    ],
)
def test_the_kernel_of_two_matrices(arch: int, product: str, count: int) -> None:
    """No architecture has the instructions without effect that ptxas puts behind products."""
    (kernel,) = known(text_of("doubles"), arch).values()
    assert kernel.count(product) == count
    assert len(kernel.code) <= 1700

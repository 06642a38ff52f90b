"""What ptxas makes of generated kernels: matrix products, widths of accesses, nothing in memory.

Bounds of speed that need no device. They hold for the compilers of the extra ``test``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

import pytest

import tcgen
from support import cuda_compile, sass
from support.cuda_compile import compiled
from support.kernel_families import FAMILIES
from support.kernel_families import compiled as family
from support.marks import slow
from support.sass import Kernel
from tcgen.artifact.kernel_abi import NARROW_INTEGERS
from tcgen.dtypes import BY_NAME

pytestmark = [
    pytest.mark.few(1),
    pytest.mark.default_thresholds,
    pytest.mark.skipif(not cuda_compile.can_compile(), reason=cuda_compile.MISSING),
    pytest.mark.skipif(not sass.can_read(), reason=sass.MISSING),
]


@dataclass(frozen=True, slots=True)
class Case:
    """A contraction of the TCCG suite, and what its kernel must keep to on sm_90.

    To tighten a bound, print what holds with ``python benchmarks/gpu_sass.py`` and write it here.

    Attributes:
        einsum: in C order.
        extents: of its labels.
        per_product: most instructions for each DMMA on the path of full tiles through the main
            loop.
        copies: least part of the bytes of LDGSTS that move 128 bits at once, counted over the
            instructions of the kernel.
        outside: most instructions outside of the loops with products, whose integers have 32 bits:
            tables, first copies, stores.
        registers: most for each thread.
        dtype: of the elements.
    """

    einsum: str
    extents: tuple[tuple[str, int], ...]
    per_product: float
    copies: float
    outside: int
    registers: int = 255
    dtype: str = "float64"


def all_of(labels: str, extent: int, **others: int) -> tuple[tuple[str, int], ...]:
    return tuple(sorted({**dict.fromkeys(labels, extent), **others}.items()))


CASES = {
    "a product of matrices": Case("ea,eb->ab", all_of("abe", 5184), 11.7, 0.25, 1900),
    "ccsd 20": Case("fbea,ecfd->dcba", all_of("abcdef", 72), 11.7, 0.25, 1900),
    "ccsd 20, complex": Case(
        "fbea,ecfd->dcba", all_of("abcdef", 72), 13.0, 1.0, 1900, dtype="complex128"
    ),
    "ccsd_t 31": Case("gdab,efgc->fedcba", all_of("abcdefg", 24), 11.7, 0.25, 1900),
    "ccsd 13, a split sum": Case("dca,cbd->ba", all_of("ad", 312, b=296, c=296), 11.7, 0.25, 1900),
}
VARIANTS = {80: "DMMA.884", 90: "DMMA.16x8x8"}


@cache
def machine_code(text: str, arch: int) -> dict[str, Kernel]:
    return sass.kernels_of(compiled(text, arch, "cubin"))


@cache
def text_of(name: str) -> str:
    case = CASES[name]
    return tcgen.compile(
        case.einsum,
        extents=dict(case.extents),
        target="cuda",
        library=False,
        dtype=case.dtype,
    ).artifact.text("kernels.cu")


def narrow(text: str) -> str:
    return f"{NARROW_INTEGERS}\n{text}"


def check(kernel: Kernel, arch: int) -> None:
    """Nothing that a kernel holds is in memory; products are the architecture's, by whole warps."""
    assert kernel.stack == 0, kernel.name
    assert kernel.count("LDL") == kernel.count("STL") == 0, kernel.name
    assert kernel.count("DMMA") == kernel.count(VARIANTS[arch]), kernel.name
    assert kernel.divergent_products() == [], kernel.name


@pytest.mark.parametrize(
    "name",
    [
        "a product of matrices",
        "ccsd 20, complex",
        *slow("ccsd 20", "ccsd_t 31", "ccsd 13, a split sum"),
    ],
)
def test_the_main_loop_of_a_contraction(name: str) -> None:
    case = CASES[name]
    kernels = machine_code(narrow(text_of(name)), 90)
    for kernel in kernels.values():
        check(kernel, 90)
        assert kernel.registers <= case.registers
        assert kernel.outside() <= case.outside
        assert kernel.count("CALL") == 0, f"{kernel.name} divides integers of 64 bits"
    kernel = max(kernels.values(), key=lambda k: k.count("DMMA"))
    loop = kernel.main_loop()
    assert loop is not None
    assert loop.product == VARIANTS[90]
    assert loop.per_product <= case.per_product
    assert kernel.share("LDGSTS") >= case.copies
    # Where rows allow it, all that a thread holds leaves 128 bits at a time.
    rows, columns = map(int, re.findall(r"tc_sum\[(\d+)\]\[(\d+)\];", text_of(name))[0])
    elements = rows * columns * BY_NAME[case.dtype].itemsize * 8
    assert 128 * kernel.widths("STG").get(128, 0) >= 0.9 * elements


@pytest.mark.slow
@pytest.mark.parametrize("arch", [90, *slow(80)])
@pytest.mark.parametrize("name", ["tiles", *slow(*(n for n in FAMILIES if n != "tiles"))])
def test_families_hold_nothing_in_memory(name: str, arch: int) -> None:
    text = family(name)[1].text("kernels.cu")
    kernels = machine_code(narrow(text), arch)
    for kernel in (*kernels.values(), *machine_code(text, arch).values()):
        check(kernel, arch)
    if name in ("tiles", "tiles of complex numbers", "an epilogue"):
        assert any(kernel.count(VARIANTS[arch]) for kernel in kernels.values())


@pytest.mark.parametrize("name", ["elements in step", "elements in step in single precision"])
def test_elements_in_step_move_in_groups_of_16_bytes(name: str) -> None:
    for kernel in machine_code(narrow(family(name)[1].text("kernels.cu")), 90).values():
        assert kernel.widths("STG").get(128, 0) >= 1
        assert kernel.widths("LDG").get(128, 0) >= 2, "t and w; c is one number"


# ---- the reader itself

KEPT = """
extern "C" __global__ void indexed(double *x, int n) {
    __shared__ double row[24];
    double y[40];
    row[threadIdx.x] = x[n];
    __syncthreads();
    for (int i = 0; i < n; ++i) y[i*7%40] = x[i]*row[i];
    for (int i = 0; i < n; ++i) x[i] = y[i*3%40];
}
"""


@pytest.mark.parametrize("arch", [80, 90])
def test_local_and_shared_memory_are_read(arch: int) -> None:
    kernel = sass.kernels_of(compiled(KEPT, arch, "cubin"))["indexed"]
    assert (kernel.stack, kernel.count("LDL") > 0, kernel.count("STL") > 0) == (320, True, True)
    assert 192 <= kernel.shared <= 192 + 1024  # the system's own, from sm_90 on
    assert 0 < kernel.registers <= 255
    with pytest.raises(ValueError, match="ELF"):
        sass.kernels_of(b"no cubin")


LISTING = """
	.section	.text.f,"ax",@progbits
        /*0000*/                   S2R R0, SR_TID.X ;
.L_x_1:
        /*0010*/              @!P0 BRA `(.L_x_2) ;
        /*0020*/                   LDGSTS.E.BYPASS.LTC128B.128 [R1], desc[UR4][R2.64] ;
        /*0030*/                   LDS.64 R4, [R1] ;
.L_x_2:
        /*0040*/                   DMMA.16x8x8 R8, R4, R6, R8 ;
        /*0050*/                   DMMA.16x8x8 R8, R4, R6, R8 ;
        /*0060*/               @P1 BRA `(.L_x_1) ;
        /*0070*/                   STG.E.EF.128 desc[UR4][R2.64], R8 ;
        /*0080*/                   STG.E.64 desc[UR4][R2.64], R8 ;
        /*0090*/                   BSSY B0, `(.L_x_3) ;
        /*00a0*/                   DMMA.16x8x8 R8, R4, R6, R8 ;
        /*00b0*/              @!P0 BRA `(.L_x_3) ;
        /*00c0*/                   DMMA.16x8x8 R8, R4, R6, R8 ;
        /*00d0*/                   WARPSYNC 0xffffffff ;
        /*00e0*/                   DMMA.16x8x8 R8, R4, R6, R8 ;
.L_x_3:
        /*00f0*/                   BSYNC B0 ;
        /*0100*/                   EXIT ;
"""


def test_a_listing_is_read() -> None:
    code = sass.instructions(LISTING)["f"]
    kernel = Kernel("f", code, 32, 0, 0)
    loop = kernel.main_loop()
    assert loop is not None
    assert (loop.product, loop.products, len(loop.code), loop.path) == ("DMMA.16x8x8", 2, 6, 6)
    assert (loop.per_product, loop.static_per_product) == (3.0, 3.0)
    assert kernel.widths("STG") == {64: 1, 128: 1}
    assert kernel.share("STG") == pytest.approx(2 / 3)
    assert kernel.share("LDGSTS") == 1.0
    assert kernel.share("LDL") == 1.0
    assert kernel.outside() == len(code) - 6
    assert kernel.divergent_products() == [code[12]]
    assert code[12].kind == "DMMA"
    table = sass.table([kernel])
    assert "STG: 1 of 64, 1 of 128 bits (67% of bytes by 128, 1 streaming)" in table
    assert "1 matrix products where lanes may be apart" in table


def test_copies_that_a_way_leaves_out_do_not_shorten_it() -> None:
    """The path copies what the loop can copy, though the way without copies is shorter."""
    without = "\n".join(x for x in LISTING.splitlines() if "LDGSTS" not in x)
    loop = Kernel("f", sass.instructions(without)["f"], 32, 0, 0).main_loop()
    assert loop is not None
    assert loop.path == 4

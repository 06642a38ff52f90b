"""The PTX engine: what the compiler makes of kernels gives what NumPy gives; faults are named."""

from __future__ import annotations

import re
import shutil
from typing import Any

import numpy as np
import pytest

from support import cuda_compile
from support.cuda_emulator import EmulationError
from support.messages import mentions
from support.paths import CUDA_KERNELS
from support.ptx_engine import PtxModule
from support.ptx_engine.parse import Brace, Instruction, Label, PtxError, parse

pytestmark = [
    pytest.mark.skipif(not cuda_compile.can_compile(), reason=cuda_compile.MISSING),
    pytest.mark.skipif(
        shutil.which("g++") is None, reason="no C compiler: the PTX engine needs g++"
    ),
]


def text(*files: str) -> str:
    return "".join(CUDA_KERNELS.joinpath(file).read_text() for file in files)


# ---- the parser


PTX = """
.version 8.0
.target sm_90
.global .align 8 .u64 table[3] = {1, 0x10, 3};
.func (.param .b64 result) twice(.param .b64 x) { .reg .b64 %rd<2>; ret; }
.visible .entry f(
    .param .u64 f_param_0,
    .param .align 16 .b8 f_param_1[16]
)
.maxntid 64, 2, 1
{
    .reg .pred %p<2>;
    .shared .align 8 .b8 tile[256];  // a comment; with a semicolon

$L__BB0_1:
    @!%p1 ld.global.nc.v2.f64 {%fd1, %fd2}, [%rd1+8];
    { .reg .b64 %t; call (r), twice, (%t, %t); }
    ret;
}
"""


def test_functions_arrays_and_instructions_are_read() -> None:
    found = parse(PTX)
    table = found.arrays[0]
    assert (table.name, table.bytes, table.values) == ("table", 24, ("1", "0x10", "3"))
    twice, f = found.functions
    assert (twice.kernel, twice.results, twice.parameters) == (False, (("result", 8),), (("x", 8),))
    assert f.parameters == (("f_param_0", 8), ("f_param_1", 16))
    assert f.threads == 128
    load, call, _ = (item for item in f.body if isinstance(item, Instruction))
    assert load.guard == "!%p1"
    assert load.parts == ("ld", "global", "nc", "v2", "f64")
    assert load.operands == ("{%fd1, %fd2}", "[%rd1+8]")
    assert PTX.splitlines()[load.line - 1].endswith("[%rd1+8];")
    assert call.operands == ("(r)", "twice", "(%t, %t)")
    assert sum(isinstance(item, Label | Brace) for item in f.body) == 3
    functions, arrays = found.needs("f")
    assert ([x.name for x in functions], arrays) == (["twice", "f"], ())


# ---- instructions

SKELETON = """
.version 7.8
.target sm_80
.address_size 64
.visible .entry f(.param .u64 f_param_0)
{
    .reg .pred %p<9>;
    .reg .b16 %rs<9>;
    .reg .b32 %r<9>;
    .reg .b64 %rd<9>;
    .reg .f32 %f<9>;
    .reg .f64 %fd<9>;
    ld.param.u64 %rd8, [f_param_0];
BODY
    ret;
}
"""
NAN = "0d7FF8000000000000"
# What an instruction leaves in %rd1, as 64 bits.
MEANINGS = [
    ("mov.u64 %rd1, -1;", 2**64 - 1),
    ("mov.u32 %r1, 7; sub.s32 %r2, %r1, 9; cvt.s64.s32 %rd1, %r2;", 2**64 - 2),
    ("mov.u32 %r1, 7; sub.s32 %r2, %r1, 9; cvt.u64.u32 %rd1, %r2;", 2**32 - 2),
    ("mul.lo.s64 %rd1, 4294967297, 4294967297;", 2 * 2**32 + 1),
    ("mul.hi.u64 %rd1, -1, -1;", 2**64 - 2),
    ("mul.hi.s64 %rd1, -1, 5;", 2**64 - 1),
    ("mul.wide.u32 %rd1, -1, 2;", 2 * (2**32 - 1)),
    ("mul.wide.s32 %rd1, -1, 2;", 2**64 - 2),
    ("mov.u64 %rd2, 5; mad.wide.s32 %rd1, -3, 4, %rd2;", 2**64 - 7),
    ("mad.lo.s32 %r1, 3, 4, 5; cvt.u64.u32 %rd1, %r1;", 17),
    ("div.s64 %rd1, -7, 2;", 2**64 - 3),
    ("rem.s64 %rd1, -7, 2;", 2**64 - 1),
    ("div.u32 %r1, -7, 2; cvt.u64.u32 %rd1, %r1;", (2**32 - 7) // 2),
    ("min.s64 %rd1, -7, 2;", 2**64 - 7),
    ("max.u64 %rd1, -7, 2;", 2**64 - 7),
    ("shl.b64 %rd1, 3, 63;", 2**63),
    ("shl.b64 %rd1, 3, 64;", 0),
    ("shr.s64 %rd1, -8, 1;", 2**64 - 4),
    ("shr.s64 %rd1, -8, 99;", 2**64 - 1),
    ("shr.u64 %rd1, -8, 61;", 7),
    ("not.b64 %rd1, 5;", 2**64 - 6),
    ("neg.s64 %rd1, 5;", 2**64 - 5),
    ("bfi.b64 %rd1, 5, 0, 4, 2;", 0x10),
    ("bfe.u64 %rd1, 240, 5, 2;", 3),
    ("bfe.s32 %r1, 240, 5, 3; cvt.s64.s32 %rd1, %r1;", 2**64 - 1),
    ("mov.u32 %r1, 255; clz.b32 %r2, %r1; cvt.u64.u32 %rd1, %r2;", 24),
    ("popc.b64 %r1, 255; cvt.u64.u32 %rd1, %r1;", 8),
    ("brev.b32 %r1, 1; cvt.u64.u32 %rd1, %r1;", 2**31),
    ("prmt.b32 %r1, 1144201745, 2, 16534; cvt.u64.u32 %rd1, %r1;", 0x02110000),
    ("shf.l.wrap.b32 %r1, -1, 1, 4; cvt.u64.u32 %rd1, %r1;", 0x1F),
    ("lop3.b32 %r1, 12, 10, 6, 150; cvt.u64.u32 %rd1, %r1;", 12 ^ 10 ^ 6),
    ("add.cc.u32 %r1, -1, 2; addc.u32 %r2, 0, 0; mov.b64 %rd1, {%r1, %r2};", 2**32 + 1),
    ("sub.cc.u32 %r1, 0, 1; subc.u32 %r2, 5, 0; cvt.u64.u32 %rd1, %r2;", 4),
    ("mad.lo.cc.u32 %r1, -1, 2, 2; madc.hi.u32 %r2, -1, 2, 0; cvt.u64.u32 %rd1, %r2;", 2),
    ("mov.u64 %rd2, 8589934593; mov.b64 {%r1, %r2}, %rd2; mov.b64 %rd1, {%r2, %r1};", 2**32 + 2),
    ("setp.lt.s32 %p1, -1, 1; selp.b64 %rd1, 3, 4, %p1;", 3),
    ("setp.lt.u32 %p1, -1, 1; selp.b64 %rd1, 3, 4, %p1;", 4),
    (f"setp.lt.f64 %p1, {NAN}, 0d0000000000000000; selp.b64 %rd1, 3, 4, %p1;", 4),
    (f"setp.ltu.f64 %p1, {NAN}, 0d0000000000000000; selp.b64 %rd1, 3, 4, %p1;", 3),
    ("setp.eq.s32 %p1, 1, 1; setp.eq.and.s32 %p2|%p3, 1, 2, %p1; selp.b64 %rd1, 3, 4, %p3;", 3),
    ("mov.pred %p1, 0; @!%p1 bra $A; mov.u64 %rd1, 1; $A: mov.u64 %rd1, 2;", 2),
    ("cvt.rzi.s32.f64 %r1, 0dC004000000000000; cvt.s64.s32 %rd1, %r1;", 2**64 - 2),
    ("cvt.rni.s64.f64 %rd1, 0d4004000000000000;", 2),
    ("cvt.rzi.s32.f64 %r1, 0d7FF0000000000000; cvt.u64.u32 %rd1, %r1;", 2**31 - 1),
    ("cvt.rzi.u32.f64 %r1, 0dC004000000000000; cvt.u64.u32 %rd1, %r1;", 0),
    ("cvt.rn.f64.s64 %fd1, -2; mov.b64 %rd1, %fd1;", 0xC000000000000000),
    (f"min.f64 %fd1, {NAN}, 0d3FF0000000000000; mov.b64 %rd1, %fd1;", 0x3FF0000000000000),
    ("fma.rn.f64 %fd1, 0d4000000000000000, 0d4008000000000000, 0d3FF0000000000000;"
     "mov.b64 %rd1, %fd1;", 0x401C000000000000),
    ("copysign.f64 %fd1, 0d8000000000000000, 0d3FF0000000000000; mov.b64 %rd1, %fd1;",
     0xBFF0000000000000),
    ("mul.ftz.f32 %f1, 0f00400000, 0f3F800000; mov.b32 %r1, %f1; cvt.u64.u32 %rd1, %r1;", 0),
    ("mul.f32 %f1, 0f00400000, 0f3F800000; mov.b32 %r1, %f1; cvt.u64.u32 %rd1, %r1;", 0x00400000),
    ("{ .reg .pred q; setp.ne.s32 q, 0, 0; mov.u64 %rd1, 1; @q mov.u64 %rd1, 2; }", 1),
    ("mov.u16 %rs1, -1; cvt.u64.u16 %rd1, %rs1;", 65535),
    ("testp.infinite.f64 %p1, 0d7FF0000000000000; selp.b64 %rd1, 3, 4, %p1;", 3),
]  # fmt: skip


@pytest.mark.slow
def test_instructions_of_numbers() -> None:
    """In one kernel: each leaves its result, the next begins without registers of the last."""
    lines = []
    for number, (instructions, _) in enumerate(MEANINGS):
        renamed = instructions.replace("$A", f"$L{number}").replace(": ", ":\n")
        lines.append(f"mov.u64 %rd1, 12345; {renamed} st.global.u64 [%rd8+{8 * number}], %rd1;")
    ptx = SKELETON.replace("BODY", "\n".join(lines))
    module = PtxModule('extern "C" __global__ void f(long long *y) { }', change=lambda _: ptx)
    found = np.zeros(len(MEANINGS), np.uint64)
    module.get_function("f")((1,), (1,), (found,))
    wrong = {
        instructions: (hex(int(value)), hex(meant))
        for (instructions, meant), value in zip(MEANINGS, found, strict=True)
        if int(value) != meant
    }
    assert wrong == {}


def test_an_instruction_without_a_translation_is_named() -> None:
    ptx = SKELETON.replace("BODY", "    tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd8, {%r1}];")
    module = PtxModule('extern "C" __global__ void f(long long *y) { }', change=lambda _: ptx)
    with pytest.raises(PtxError, match=mentions("line 14 tex")):
        module.get_function("f")


# ---- what the compiler makes of hand-written kernels


@pytest.mark.few(1)
@pytest.mark.parametrize("arch", [80, 90])
def test_kernels_of_the_emulator(arch: int) -> None:
    """Transposes, sums, products by cp.async, shuffles, votes, atomics, vectors and constants."""
    random = np.random.default_rng(1)
    x, y = random.random((37, 53)), np.zeros((53, 37))
    module = PtxModule(text("transpose.cu", "vectors.cu", "atomics.cu"), arch=arch)
    module.get_function("transpose")((4, 3), (16, 16), (x, y, np.int32(37), np.int32(53)))
    assert np.array_equal(y, x.T)
    u, v = random.random((37, 4)).astype(np.float32), np.zeros((37, 4), np.float32)
    p, q = random.random((37, 2)), np.zeros((37, 2))
    module.get_function("scale")((2,), (32,), (p, q, u, v, np.int32(37)))
    assert np.array_equal(q, p * 2.0 ** (np.arange(37) % 4)[:, None])
    assert np.array_equal(v, u[:, ::-1])
    n = random.integers(0, 1000, 500).astype(np.int32)
    counts, ends, total = np.zeros(8, np.int32), np.array([n[0], n[0]], np.int32), np.zeros(1)
    module.get_function("statistics")((4,), (128,), (n, counts, ends, total, np.int32(n.size)))
    assert np.array_equal(counts, np.bincount(n % 8))
    assert (ends.tolist(), total[0]) == ([n.min(), n.max()], n.sum())


def test_a_product_by_two_buffers() -> None:
    random = np.random.default_rng(3)
    a, b, c = random.random((33, 18)), random.random((18, 34)), np.full((33, 34), np.nan)
    product = PtxModule(text("ptx.cu", "matmul.cu")).get_function("matmul")
    product((2, 2), (128,), (a, b, c, np.int32(33), np.int32(34), np.int32(18)))
    np.testing.assert_allclose(c, a @ b, rtol=1e-13)


@pytest.mark.parametrize(("m", "k"), [(8, 4), (16, 4), (16, 8), (16, 16)])
def test_matrix_fragments(m: int, k: int) -> None:
    random = np.random.default_rng(4)
    a, b, c = random.random((m, k)), random.random((k, 8)), random.random((m, 8))
    expected = c + a @ b
    module = PtxModule(text("ptx.cu", "fragments.cu"))
    module.get_function(f"m{m}n8k{k}")((1,), (32,), (a, b, c))
    np.testing.assert_allclose(c, expected, rtol=1e-14)


def test_shuffles_and_votes() -> None:
    module = PtxModule(text("warp.cu"))
    x, y = np.arange(100.0, 132.0), np.zeros((4, 32))
    module.get_function("shuffle_double")((1,), (32,), (x, y, np.int32(16)))
    lane = np.arange(32)
    first = lane // 16 * 16
    up = np.where(lane - 5 < first, lane, lane - 5)
    down = np.where(lane + 5 >= first + 16, lane, lane + 5)
    assert np.array_equal(
        y, np.stack([x[s] for s in (first + (lane + 3) % 16, up, down, lane ^ 9)])
    )
    odd = (np.arange(64) < 5).astype(np.int32)
    votes = np.zeros((64, 6), np.uint32)
    module.get_function("votes")((1,), (64,), (odd, votes, np.int32(64)))
    assert votes[0].tolist() == [31, 1, 0, 5, 1, 0]
    assert votes[40].tolist() == [0, 0, 0, 5, 1, 0]


SINES = """
extern "C" __global__ void sines(const double *x, double *y, int n)
{
    const int i = blockIdx.x*blockDim.x + threadIdx.x;
    if (i < n) y[i] = sin(x[i]);
}
"""


def test_functions_with_local_arrays_are_called() -> None:
    """Sines of large angles reduce them in a function of its own, by a table."""
    module = PtxModule(SINES)
    assert ".func" in module.ptx
    assert ".local" in module.ptx
    x = np.array([0.5, 1e10, -3e200, 1e300, 7.0])
    y = np.zeros(5)
    module.get_function("sines")((1,), (32,), (x, y, np.int32(5)))
    np.testing.assert_allclose(y, np.sin(x), rtol=1e-14)


# ---- copies, and faults

COPIES = """
extern __shared__ double held[];
__device__ __forceinline__ unsigned place(void *p) { return (unsigned)__cvta_generic_to_shared(p); }
extern "C" __global__ void copies(const double *__restrict__ x, double *__restrict__ y, int n)
{
    const int t = threadIdx.x;
    const int bytes = t < n ? 8 : 0;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;"
        :: "r"(place(&held[t])), "l"(x + (t < n ? t : 0)), "r"(bytes) : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    __syncthreads();
    if (t%2 == 0) {
        const double2 pair = make_double2(held[(t + 2)%32], held[(t + 3)%32]);
        __stcs((double2 *)(y + t), pair);
    }
    if (n > 32) {
        __syncthreads();
        y[t] += y[(t + 2)%32];
    }
}
"""


def copied(
    change: Any = None, *, n: int = 30, launched: int = 256, size: int = 32, wide: bool = False
) -> Any:
    x, y = np.arange(1.0, 34.0 if wide else 31.0), np.zeros(size)
    kernel = PtxModule(COPIES, change=change).get_function("copies")
    kernel((1,), (32,), (x, y, np.int32(n)), shared_mem=launched)
    return x, y


def test_copies_of_no_bytes_leave_zeros() -> None:
    x, y = copied()
    assert np.array_equal(y, np.roll([*x, 0.0, 0.0], -2))


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ("cp.async.wait_group 0;", "", "cp.async"),
        ("cp.async.commit_group;", "", "cp.async"),
        ("bar.sync", "//", "race|unwritten|cp.async"),
        ("cp.async.ca.shared.global", "//", "unwritten"),
        ("st.global.cs.v2.f64", "st.global.cs.v4.f64", "PtxError"),
    ],
)
def test_faults_of_copies(old: str, new: str, kind: str) -> None:
    def change(ptx: str) -> str:
        assert old in ptx
        return ptx.replace(old, new)

    with pytest.raises((EmulationError, PtxError, RuntimeError)) as caught:
        copied(change)
    assert getattr(caught.value, "kind", "PtxError") in kind.split("|")


def test_bounds_alignment_and_data_that_is_read_as_constant() -> None:
    with pytest.raises(EmulationError, match=mentions("out of bounds argument x 240")) as caught:
        copied(n=32)
    assert caught.value.line is not None
    with pytest.raises(EmulationError, match=mentions("out of bounds shared array 192")):
        copied(launched=192)
    with pytest.raises(EmulationError, match=mentions("out of bounds argument y 240")):
        copied(size=30)
    odd = re.compile(r"(st\.global\.cs\.v2\.f64\s*\[%rd\d+)\]")
    with pytest.raises(EmulationError, match=mentions("misaligned 16 bytes 8")):
        copied(lambda ptx: odd.sub(r"\1+8]", ptx))
    again = re.compile(r"ld\.global\.f64")
    with pytest.raises(
        EmulationError, match=mentions("read-only constant argument y launch wrote")
    ):
        copied(lambda ptx: again.sub("ld.global.nc.f64", ptx), n=33, wide=True)

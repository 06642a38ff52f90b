"""The CUDA emulator: hand-written kernels give what NumPy gives, on a CPU."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest

from support.cuda_emulator import EmulatedKernel, EmulatedModule, EmulationError
from support.messages import mentions
from support.paths import CUDA_KERNELS

pytestmark = pytest.mark.skipif(
    shutil.which("g++") is None, reason="no C compiler: the CUDA emulator needs g++"
)
FULL_MASK = (1 << 32) - 1


def kernel(file: str, name: str, *, arch: int = 90) -> EmulatedKernel:
    code = CUDA_KERNELS.joinpath(file).read_text()
    return EmulatedModule(code, arch=arch, file_name=file).get_function(name)


def blocks(n: int, of: int) -> int:
    return -(-n // of)


@pytest.mark.parametrize(("n", "m"), [(1, 1), (16, 16), (37, 53), (5, 64)])
def test_transpose_through_shared_memory(n: int, m: int) -> None:
    a = np.random.default_rng(1).random((n, m))
    b = np.zeros((m, n))
    kernel("transpose.cu", "transpose")(
        (blocks(m, 16), blocks(n, 16)), (16, 16), (a, b, np.int32(n), np.int32(m))
    )
    assert np.array_equal(b, a.T)


@pytest.mark.parametrize("n", [1, 127, 1000])
def test_block_reduction_with_a_second_pass(n: int) -> None:
    x = np.random.default_rng(2).random(n)
    sums, result = np.full(5, np.nan), np.zeros(1)
    kernel("reduction.cu", "partial_sums")((5,), (128,), (x, sums, np.int64(n)))
    kernel("reduction.cu", "whole_sum")((1,), (128,), (sums, result, np.int32(5)))
    assert result[0] == pytest.approx(x.sum(), rel=1e-14)


@pytest.mark.parametrize("threads", [1, 32, 256])
def test_dynamic_shared_memory(threads: int) -> None:
    x = np.arange(301, dtype=np.float32)
    result = np.zeros(1, np.float32)
    kernel("reduction.cu", "tree_sum")(
        (1,), (threads,), (x, result, np.int32(301)), shared_mem=4 * threads
    )
    assert result[0] == x.sum()


@pytest.mark.parametrize(("n", "m", "k"), [(1, 2, 2), (33, 34, 18), (64, 32, 40), (70, 66, 2)])
def test_matmul_with_two_buffers_of_cp_async(n: int, m: int, k: int) -> None:
    random = np.random.default_rng(3)
    a, b, c = random.random((n, k)), random.random((k, m)), np.full((n, m), np.nan)
    kernel("matmul.cu", "matmul")(
        (blocks(m, 32), blocks(n, 32)),
        (128,),
        (a, b, c, np.int32(n), np.int32(m), np.int32(k)),
    )
    np.testing.assert_allclose(c, a @ b, rtol=1e-13)


@pytest.mark.parametrize(("m", "k"), [(8, 4), (16, 4), (16, 8), (16, 16)])
def test_matrix_fragments(m: int, k: int) -> None:
    random = np.random.default_rng(4)
    a, b, c = random.random((m, k)), random.random((k, 8)), random.random((m, 8))
    expected = c + a @ b
    kernel("fragments.cu", f"m{m}n8k{k}")((1,), (32,), (a, b, c))
    np.testing.assert_allclose(c, expected, rtol=1e-14)


def test_shapes_of_sm_90_are_not_on_sm_80() -> None:
    module = EmulatedModule(CUDA_KERNELS.joinpath("fragments.cu").read_text(), arch=80)
    assert module.names == ("m8n8k4",)
    with pytest.raises(RuntimeError, match="tc_mma_m16n8k4"):
        EmulatedModule(
            'extern "C" __global__ void f() {'
            "double a[2] = {}, b[1] = {}, c[4] = {}; tc_mma_m16n8k4(c, a, b); }",
            arch=80,
        )


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("width", [32, 16])
def test_shuffles(dtype: str, width: int) -> None:
    names = {"float32": "float", "float64": "double", "int32": "int", "int64": "long"}
    x = np.arange(100, 132).astype(dtype)
    y = np.zeros((4, 32), dtype)
    kernel("warp.cu", f"shuffle_{names[dtype]}")((1,), (32,), (x, y, np.int32(width)))
    lane = np.arange(32)
    first = lane // width * width
    sources = [
        first + (lane + 3) % width,
        np.where(lane - 5 < first, lane, lane - 5),
        np.where(lane + 5 >= first + width, lane, lane + 5),
        lane ^ 9,
    ]
    assert np.array_equal(y, np.stack([x[source] for source in sources]))


def test_shuffles_of_half_a_warp() -> None:
    x = np.random.default_rng(5).integers(0, 100, 32).astype(np.int32)
    y = np.zeros(32, np.int32)
    kernel("warp.cu", "halves")((1,), (32,), (x, y))
    assert np.array_equal(y, np.repeat([x[:16].sum(), x[16:].max()], 16))


@pytest.mark.parametrize("odd", [0, 5, 64])
def test_votes(odd: int) -> None:
    x = (np.arange(64) < odd).astype(np.int32)
    y = np.zeros((64, 6), np.uint32)
    kernel("warp.cu", "votes")((1,), (64,), (x, y, np.int32(64)))
    for warp in range(2):
        mine = x[32 * warp : 32 * warp + 32]
        ballot = sum(int(bit) << lane for lane, bit in enumerate(mine))
        expected = [ballot, ballot != 0, ballot == FULL_MASK, odd, odd > 0, odd == 64]
        assert (y[32 * warp : 32 * warp + 32] == np.array(expected, np.uint32)).all()


def test_order_by_syncwarp() -> None:
    x, y = np.arange(64.0), np.zeros(64)
    kernel("warp.cu", "exchange")((1,), (64,), (x, y))
    assert np.array_equal(y, x.reshape(32, 2)[:, ::-1].ravel())


def test_atomics() -> None:
    x = np.random.default_rng(6).integers(0, 1000, 500).astype(np.int32)
    counts, total = np.zeros(8, np.int32), np.zeros(1)
    extremes = np.array([x[0], x[0]], np.int32)
    kernel("atomics.cu", "statistics")((4,), (128,), (x, counts, extremes, total, np.int32(x.size)))
    assert np.array_equal(counts, np.bincount(x % 8))
    assert extremes.tolist() == [x.min(), x.max()]
    assert total[0] == x.sum()


def test_compare_and_swap() -> None:
    x = np.random.default_rng(7).random(100)
    largest = np.zeros(1)
    kernel("atomics.cu", "largest")((4,), (32,), (x, largest.view(np.uint64), np.int32(100)))
    assert largest[0] == x.max()


def test_vectors_constants_and_cache_hints() -> None:
    random = np.random.default_rng(8)
    x, y = random.random((37, 2)), np.zeros((37, 2))
    u, v = random.random((37, 4)).astype(np.float32), np.zeros((37, 4), np.float32)
    kernel("vectors.cu", "scale")((2,), (32,), (x, y, u, v, np.int32(37)))
    assert np.array_equal(y, x * 2.0 ** (np.arange(37) % 4)[:, None])
    assert np.array_equal(v, u[:, ::-1])


def test_shared_arrays_of_structures() -> None:
    code = """
    struct __align__(16) Complex {
        double re, im;
        Complex() = default;
        __device__ __forceinline__ Complex(double x, double y = 0.0) : re(x), im(y) {}
    };
    extern "C" __global__ void reverse(const Complex *x, Complex *y) {
        __shared__ Complex values[8];
        values[threadIdx.x] = x[threadIdx.x];
        __syncthreads();
        y[threadIdx.x] = values[7 - threadIdx.x];
    }
    """
    x, y = np.arange(8) + 2j, np.zeros(8, np.complex128)
    EmulatedModule(code).get_function("reverse")((1,), (8,), (x, y))
    assert np.array_equal(y, x[::-1])


def test_slices_of_one_arena_are_arrays_of_their_own() -> None:
    arena = np.zeros(1024, np.uint8)
    a = arena[:128].view(np.float64).reshape(4, 4)
    b = arena[128:256].view(np.float64).reshape(4, 4)
    a[:] = np.arange(16.0).reshape(4, 4)
    transpose = kernel("transpose.cu", "transpose")
    transpose((1, 1), (16, 16), (a, b, np.int32(4), np.int32(4)))
    assert np.array_equal(b, a.T)
    assert not arena[256:].any()
    with pytest.raises(EmulationError, match=mentions("argument a 128")):
        transpose((1, 1), (16, 16), (a, b, np.int32(5), np.int32(4)))


def test_seeds_change_the_order_and_not_the_result() -> None:
    x = np.random.default_rng(9).random(999)
    found = []
    for seed in range(5):
        partial_sums = kernel("reduction.cu", "partial_sums")
        partial_sums.seed = seed
        sums = np.zeros(3)
        partial_sums((3,), (128,), (x, sums, np.int64(999)))
        found.append(sums)
    assert all(np.array_equal(sums, found[0]) for sums in found)


def test_many_barriers_of_a_large_block() -> None:
    code = """
    extern "C" __global__ void __launch_bounds__(256) turn(double *x, int n) {
        __shared__ double values[256];
        values[threadIdx.x] = x[threadIdx.x];
        __syncthreads();
        for (int i = 0; i < n; ++i) {
            const double next = values[(threadIdx.x + 1) % 256];
            __syncthreads();
            values[threadIdx.x] = next;
            __syncthreads();
        }
        x[threadIdx.x] = values[threadIdx.x];
    }
    """
    x = np.arange(256.0)
    EmulatedModule(code).get_function("turn")((1,), (256,), (x, np.int32(200)))
    assert np.array_equal(x, np.roll(np.arange(256.0), -200))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros(4), np.zeros(4), np.int32(2)), "3 arguments 4"),
        ((np.zeros(4, np.float32), np.zeros(4), np.int32(2), np.int32(2)), "float32 float 64"),
        ((np.zeros(4), np.zeros(4), 2, np.int32(2)), "n 2 int64 int 32"),
        ((np.zeros(4), 3.0, np.int32(2), np.int32(2)), "b 3.0 pointer"),
    ],
)
def test_wrong_arguments(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(EmulationError, match=mentions(message)):
        kernel("transpose.cu", "transpose")((1, 1), (16, 16), arguments)


@pytest.mark.parametrize(
    ("grid", "block", "message"),
    [
        ((0,), (32,), "extent positive"),
        ((1, 70000), (32,), "limits"),
        ((1,), (32, 16), "512 threads __launch_bounds__ 256"),
    ],
)
def test_wrong_launches(grid: tuple[int, ...], block: tuple[int, ...], message: str) -> None:
    arrays = np.zeros((2, 2)), np.zeros((2, 2)), np.int32(2), np.int32(2)
    with pytest.raises(EmulationError, match=mentions(message)) as caught:
        kernel("transpose.cu", "transpose")(grid, block, arrays)
    assert caught.value.kind == "launch"


@pytest.mark.parametrize(
    ("arch", "shared", "allowed", "message"),
    [
        (90, 50000, None, "max_dynamic_shared_size_bytes 49152"),
        (80, 170000, 170000, "block sm_80 166912"),
        (90, 240000, 240000, "block sm_90 232448"),
        (90, 170000, 170000, None),
    ],
)
def test_limits_of_shared_memory(
    arch: int, shared: int, allowed: int | None, message: str | None
) -> None:
    tree_sum = kernel("reduction.cu", "tree_sum", arch=arch)
    # The array of block_sum counts for every kernel: a device function may be called by any.
    static = tree_sum.shared_size_bytes
    tree_sum.max_dynamic_shared_size_bytes = allowed or 49152
    x, result = np.ones(8, np.float32), np.zeros(1, np.float32)
    launch = (1,), (32,), (x, result, np.int32(8))
    if message is None:
        tree_sum(*launch, shared_mem=shared - static)
        assert result[0] == 8
    else:
        with pytest.raises(EmulationError, match=mentions(message)):
            tree_sum(*launch, shared_mem=shared)


def test_text_that_is_no_cuda() -> None:
    with pytest.raises(RuntimeError, match=mentions("kernels.cu:1")):
        EmulatedModule('extern "C" __global__ void f(double *x) { x[0] = y; }')

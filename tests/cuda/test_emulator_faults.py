"""The CUDA emulator names the fault of every mutant that is planted in a kernel, and its line."""

from __future__ import annotations

import re
import shutil
from typing import Any

import numpy as np
import pytest

from support.cuda_emulator import EmulatedModule, EmulationError
from support.messages import says
from support.paths import CUDA_KERNELS

pytestmark = [
    pytest.mark.few(2),
    pytest.mark.skipif(
        shutil.which("g++") is None, reason="no C compiler: the CUDA emulator needs g++"
    ),
]


def planted(code: str, old: str, new: str) -> str:
    """The text with one place changed."""
    assert code.count(old) == 1, f"{code.count(old)} places: {old}"
    return code.replace(old, new)


def fault(
    code: str, name: str, grid: Any, block: Any, args: Any, *, shared_mem: int = 0, seed: int = 0
) -> EmulationError:
    kernel = EmulatedModule(code).get_function(name)
    kernel.seed = seed
    with pytest.raises(EmulationError) as caught:
        kernel(grid, block, args, shared_mem=shared_mem)
    return caught.value


def line_of(code: str, text: str) -> int:
    assert code.count(text) == 1
    return code[: code.index(text)].count("\n") + 1


TRANSPOSE = CUDA_KERNELS.joinpath("transpose.cu").read_text()
STORE = "tile[threadIdx.y][threadIdx.x] ="
LOAD = "tile[threadIdx.x][threadIdx.y]"
BARRIER = "__syncthreads();"


@pytest.mark.parametrize(
    ("old", "new", "kind", "message"),
    [
        # a removed barrier; one that some threads skip, or leave before
        (BARRIER, "", "unwritten", "shared array tile, which nobody has written"),
        (
            BARRIER,
            f"{BARRIER} if (threadIdx.y != 3) {BARRIER}",
            "divergent barrier",
            "has left the kernel",
        ),
        (BARRIER, f"if (j >= m) return; {BARRIER}", "divergent barrier", "waits at __syncthreads"),
        (
            BARRIER,
            f"if (threadIdx.x) {BARRIER}\nelse {BARRIER}",
            "divergent barrier",
            r"waits at __syncthreads \(kernels.cu:\d+\) while .* waits at __syncthreads",
        ),
        # a wrong guard, an index off by one, a tile off by one
        ("if (j < m && i < n) tile", "if (j <= m && i < n) tile", "out of bounds", "argument a"),
        (
            "j * n + i] =",
            "j * n + i + 1] =",
            "out of bounds",
            "15688 of argument b, which has 15688",
        ),
        (
            LOAD,
            "tile[threadIdx.x + 1][threadIdx.y]",
            "out of bounds",
            r"index 16 of .*'double \[16\]",
        ),
        (LOAD, "(&tile[0][0])[threadIdx.x + 17 * 16]", "out of bounds", "which has 2176"),
        (LOAD, "(&tile[0][0])[1 << 20]", "out of bounds", "at an address of no argument"),
        (STORE, f"if (threadIdx.x < 15) {STORE}", "unwritten", "nobody has written"),
        # elements that are written twice, by the threads of a block and by blocks
        ("b[(long long)j * n + i]", "b[j]", "race", r"byte \d+ of argument b .* wrote"),
        (
            "b[(long long)j * n + i]",
            "b[threadIdx.y * 16 + threadIdx.x]",
            "race",
            r"block \(\d,\d,0\) wrote",
        ),
        # types and arithmetic
        (
            "b[(long long)j",
            "const_cast<double *>(a)[(long long)j",
            "const",
            "argument a, a pointer to const",
        ),
        ("(long long)i * m + j]", "(i + 1) * (m << 26) + j]", "arithmetic", "overflows"),
        ("(long long)i * m + j]", "i / (m - 53) + j]", "arithmetic", "divided by zero"),
    ],
)
def test_mutants_of_a_transpose(old: str, new: str, kind: str, message: str) -> None:
    code = planted(TRANSPOSE, old, new)
    args = np.ones((37, 53)), np.ones((53, 37)), np.int32(37), np.int32(53)
    error = fault(code, "transpose", (4, 3), (16, 16), args)
    assert (error.kind, error.kernel) == (kind, "transpose")
    assert re.search(message, str(error)), str(error)
    assert error.line is not None


def test_messages_name_thread_block_and_line() -> None:
    code = planted(TRANSPOSE, "j * n + i] =", "j * n + i + 1] =")
    args = np.ones((16, 16)), np.ones((16, 16)), np.int32(16), np.int32(16)
    error = fault(code, "transpose", (1, 1), (16, 16), args)
    assert (error.block, error.thread) == ((0, 0, 0), (15, 15, 0))
    assert error.line == line_of(code, "j * n + i + 1] =")
    assert str(error) == (
        "transpose, block (0, 0, 0), thread (15, 15, 0): out of bounds: writes 8 bytes at byte "
        f"2048 of argument b, which has 2048 (kernels.cu:{error.line})"
    )


def test_results_stay_out_of_the_arrays_after_a_fault() -> None:
    code = planted(TRANSPOSE, "j * n + i] =", "j * n + i + 1] =")
    b = np.full((16, 16), 7.0)
    fault(code, "transpose", (1, 1), (16, 16), (np.ones((16, 16)), b, np.int32(16), np.int32(16)))
    assert (b == 7).all()


REDUCTION = CUDA_KERNELS.joinpath("reduction.cu").read_text()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("old", "new", "kind", "message"),
    [
        (
            "        __syncthreads();\n    }\n    if (threadIdx.x == 0) *result = values[0];",
            "    }\n    if (threadIdx.x == 0) *result = values[0];",
            "race",
            r"(reads|writes) byte \d+ of shared array of the launch \(.*\), which thread .* "
            r"(wrote|read) .* no barrier lies between",
        ),
        (
            "threadIdx.x < half",
            "threadIdx.x <= half",
            "race|out of bounds",
            "shared array",
        ),
        (
            "if (threadIdx.x == 0) *result = values[0]",
            "*result = values[0]",
            "race",
            "argument result",
        ),
        ("threadIdx.x + half]", "threadIdx.x + half + 1]", "race|out of bounds", "shared array"),
    ],
)
def test_mutants_of_a_sum_in_dynamic_shared_memory(
    old: str, new: str, kind: str, message: str, seed: int
) -> None:
    code = planted(REDUCTION, old, new)
    args = np.ones(100, np.float32), np.zeros(1, np.float32), np.int32(100)
    error = fault(code, "tree_sum", (1,), (64,), args, shared_mem=4 * 64, seed=seed)
    assert re.fullmatch(kind, error.kind)  # the order of the threads decides which comes first
    assert re.search(message, str(error)), str(error)


@pytest.mark.parametrize(
    ("old", "new", "kind", "message"),
    [
        (
            "if (lane == 0) partial[warp] = value;\n    __syncthreads();",
            "if (lane == 0) partial[warp] = value;",
            "unwritten",
            "shared array partial",
        ),
        (
            "threadIdx.x < blockDim.x / 32 ?",
            "threadIdx.x <= blockDim.x / 32 ?",
            "unwritten",
            "shared array partial",
        ),
        ("if (warp == 0) {", "if (threadIdx.x < 16) {", "mask", "names lane|divergent"),
        ("if (lane == 0) partial[warp]", "partial[warp]", "race", "shared array partial"),
        (
            "partial[warp] = value",
            "partial[warp + 29] = value",
            "out of bounds",
            r"index 32 of an array of type 'double \[32\]'",
        ),
    ],
)
def test_mutants_of_a_reduction_by_shuffles(old: str, new: str, kind: str, message: str) -> None:
    code = planted(REDUCTION, old, new)
    args = np.ones(300), np.zeros(2), np.int64(300)
    error = fault(code, "partial_sums", (2,), (128,), args)
    assert error.kind == kind
    assert re.search(message, str(error)), str(error)


MATMUL = CUDA_KERNELS.joinpath("matmul.cu").read_text()
END = "tc_cp_async_wait<0>();"


@pytest.mark.parametrize(
    ("old", "new", "kind", "message"),
    [
        # a wait that is missing, or waits for too little
        (END, "", "cp.async", "is not waited for"),
        ("tc_cp_async_wait<1>();", "tc_cp_async_wait<2>();", "cp.async", "is not waited for"),
        ("    tc_cp_async_commit();\n", "", "cp.async", "is not waited for"),
        # a barrier that is missing after the wait, or before the buffer is filled again
        (
            "        }\n        __syncthreads();\n",
            "        }\n",
            "race|unwritten",
            "no barrier lies between|nobody has written",
        ),
        ("        __syncthreads();\n    }\n", "    }\n", "race", "no barrier lies between"),
        # guards
        ("row + i < n && k0 + l < k", "row + i <= n && k0 + l < k", "out of bounds", "copies from"),
        ("l = threadIdx.x % 4 * 2", "l = threadIdx.x % 4 * 2 + 1", "misaligned", "16 bytes"),
        ("a_tile[i][l] = a_tile[i][l + 1] = 0", "a_tile[i][l] = 0", "unwritten", "a_tile"),
    ],
)
def test_mutants_of_a_double_buffered_matmul(old: str, new: str, kind: str, message: str) -> None:
    code = planted(MATMUL, old, new)
    n, m, k = 33, 34, 22
    args = np.ones((n, k)), np.ones((k, m)), np.zeros((n, m)), np.int32(n), np.int32(m), np.int32(k)
    error = fault(code, "matmul", (2, 2), (128,), args)
    assert re.fullmatch(kind, error.kind)
    assert re.search(message, str(error)), str(error)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("int s = 0; s < steps", "int s = 0; s <= steps"),
        ("(k + STEP - 1) / STEP", "k / STEP"),
        ("int l = 0; l < STEP", "int l = 1; l < STEP"),
        ("sum[p][q] +=", "sum[p][q] ="),
    ],
)
def test_mutants_that_touch_only_what_they_may_are_wrong_in_value(old: str, new: str) -> None:
    code = planted(MATMUL, old, new)
    n, m, k = 33, 34, 22
    random = np.random.default_rng(1)
    a, b, c = random.random((n, k)), random.random((k, m)), np.zeros((n, m))
    matmul = EmulatedModule(code).get_function("matmul")
    matmul((2, 2), (128,), (a, b, c, np.int32(n), np.int32(m), np.int32(k)))
    assert not np.allclose(c, a @ b)


WARP = CUDA_KERNELS.joinpath("warp.cu").read_text()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("0x0000ffffu", "0xffffffffu", "mask|waits at"),
        ("0xffff0000u", "0x0000ffffu", "which its mask 0x0000ffff lacks"),
        (
            "int step = 8; step > 0; step /= 2) value +=",
            "int step = 16; step > 0; step /= 2) value +=",
            "reads lane 16, which the mask 0x0000ffff lacks",
        ),
        (
            "if (threadIdx.x < 16) {",
            "if (threadIdx.x == 5) return;\n    if (threadIdx.x < 16) {",
            "names lane 5, which has left the kernel|waits at .* has left",
        ),
    ],
)
def test_wrong_shuffle_masks(old: str, new: str, message: str) -> None:
    code = planted(WARP, old, new)
    error = fault(code, "halves", (1,), (32,), (np.ones(32, np.int32), np.ones(32, np.int32)))
    assert error.kind in ("mask", "divergent barrier")
    assert re.search(message, str(error)), str(error)


def test_shuffle_in_a_block_that_is_no_multiple_of_a_warp() -> None:
    args = np.ones(32), np.zeros((4, 32)), np.int32(32)
    error = fault(WARP, "shuffle_double", (1,), (24,), args)
    assert re.search("names lane 24, which the block of 24 threads lacks", str(error))


@pytest.mark.parametrize("width", [0, 5, 64])
def test_wrong_shuffle_widths(width: int) -> None:
    error = fault(
        WARP,
        "shuffle_int",
        (1,),
        (32,),
        (np.ones(32, np.int32), np.zeros((4, 32), np.int32), np.int32(width)),
    )
    assert says(str(error), "power 32")


def test_memory_that_a_warp_exchanges_without_syncwarp() -> None:
    code = planted(WARP, "    __syncwarp();\n", "")
    error = fault(code, "exchange", (1,), (64,), (np.ones(64), np.ones(64)))
    assert error.kind in ("race", "unwritten")
    code = planted(WARP, "values[threadIdx.x ^ 1]", "values[threadIdx.x ^ 32]")
    error = fault(code, "exchange", (1,), (64,), (np.ones(64), np.ones(64)))
    assert error.kind in ("race", "unwritten")


def test_fragments_need_the_whole_warp() -> None:
    code = CUDA_KERNELS.joinpath("fragments.cu").read_text()
    arrays = np.ones((8, 4)), np.ones((4, 8)), np.zeros((8, 8))
    whole = "tc_mma_m8n8k4(f.c, f.a, f.b);"
    error = fault(
        planted(code, whole, f"if (threadIdx.x != 7) {whole}"), "m8n8k4", (1,), (32,), arrays
    )
    assert error.kind in ("mask", "divergent barrier")
    assert "m8n8k4" in str(error)


def test_plain_and_atomic_accesses_of_one_place_race() -> None:
    code = CUDA_KERNELS.joinpath("atomics.cu").read_text()
    code = planted(
        code,
        "atomicAdd(&counts[threadIdx.x], mine[threadIdx.x])",
        "counts[threadIdx.x] += mine[threadIdx.x]",
    )
    x, counts = np.ones(64, np.int32), np.zeros(8, np.int32)
    args = x, counts, np.zeros(2, np.int32), np.zeros(1), np.int32(64)
    error = fault(code, "statistics", (2,), (32,), args)
    assert error.kind == "race"
    assert says(str(error), "argument")


def test_misaligned_vectors() -> None:
    code = CUDA_KERNELS.joinpath("vectors.cu").read_text()
    x = np.zeros(9)
    args = x[1:], np.zeros((4, 2)), np.zeros((4, 4), np.float32), np.zeros((4, 4), np.float32)
    error = fault(code, "scale", (1,), (32,), (*args, np.int32(4)))
    assert error.kind == "misaligned"
    assert says(str(error), "16 bytes 8")


def test_registers_of_another_thread() -> None:
    code = """
    extern "C" __global__ void f(double *y) {
        __shared__ double *place;
        double mine = threadIdx.x;
        if (threadIdx.x == 0) place = &mine;
        __syncthreads();
        y[threadIdx.x] = *place;
    }
    """
    error = fault(code, "f", (1,), (2,), (np.zeros(2),))
    assert says(str(error), "thread registers")


def test_shared_arrays_of_other_kernels_are_out_of_reach() -> None:
    code = """
    extern "C" __global__ void f(double *y) {
        __shared__ double mine[4];
        mine[threadIdx.x] = 1;
        y[threadIdx.x] = mine[threadIdx.x];
        y[0] = (&mine[0])[y[1] > 5 ? 4 : 100];
    }
    extern "C" __global__ void g(double *y) {
        __shared__ double theirs[400];
        theirs[threadIdx.x] = 1;
        y[threadIdx.x] = theirs[threadIdx.x];
    }
    """
    assert fault(code, "f", (1,), (1,), (np.zeros(2),)).kind == "out of bounds"
    assert fault(code, "f", (1,), (1,), (np.full(2, 9.0),)).kind == "out of bounds"

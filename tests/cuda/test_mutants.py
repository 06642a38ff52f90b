"""Faults planted in generated kernels are caught: by the emulator, or by the values.

Each mutant is a change of one place of a generated text. Where a plan or a printer changes, a place
may read otherwise: the test says so, and the mutant is to be written anew.
"""

from __future__ import annotations

import re
import shutil
from functools import cache
from typing import Any

import numpy as np
import pytest

from support import hand_modules
from support.cuda_device import EmulatedDevice
from support.cuda_emulator import EmulationError
from support.gpu_programs import compare, generated, on_gpu
from tcgen.artifact.folder import Artifact
from tcgen.compiler.driver import compile_system
from tcgen.frontend.spec.reader import read_spec
from tcgen.interp import evaluate_system
from tcgen.ir.system import System
from tcgen.options import Options
from tcgen.runtime.program import Program
from tcgen.testing import random_arrays

pytestmark = [
    pytest.mark.few(1),
    pytest.mark.default_thresholds,
    pytest.mark.skipif(
        shutil.which("g++") is None, reason="no C compiler: the CUDA emulator needs g++"
    ),
]
PLANNED = (("o", 10), ("v", 40))
EXTENTS = {"o": 3, "v": 23}  # two tiles of rows, three of columns, five steps, the last partial
# Pairs of elements are neighbours, the offsets of k take two chunks, and the first step is partial.
WIDE_EXTENTS = {"o": 4, "v": 34}
HEAD = """
space o occupied
space v virtual
index i j k : o
index a b c : v
"""
# The loop of one of two nests.
LOOP_OF_C0 = "tc_point < tc_tiles(N_v, 3); tc_point += gridDim.x) {\n        const tc_int c0"
# Indices of a column of EPILOGUE.
COLUMN = (
    "".join(f"{20 * ' '}const tc_int {i} = tc_of_{i}[tc_x + tc_c/2*8 + tc_c%2];\n" for i in "ai")
    + 20 * " "
)
PRODUCT = """
input t[o,v,o,v], u[v,o,v,o]
output r
r[i,a,j,b] = t[i,c,k,a]*u[b,k,c,j]
"""
ENERGY = """
input g[o,v,o,v], e_o[o], e_v[v]
output e
e = g[i,a,j,b]*g[j,a,i,b]/(e_o[i] + e_o[j] - e_v[a] - e_v[b])
"""
PERMUTATION = """
input t[o,v,o,v]
output r
r[a,i,b,j] = 2*t[i,b,j,a]
"""
EPILOGUE = """
input t[o,v,o,v], u[v,o,v,o], e_o[o], e_v[v]
output x, e
r[i,a,j,b] = t[i,c,k,a]*u[b,k,c,j]
x[b,j,a,i] = r[i,a,j,b]/(e_o[i] + e_o[j] - e_v[a] - e_v[b])
e = r[i,a,j,b]*r[i,a,j,b]/(e_o[i] + e_o[j] - e_v[a] - e_v[b])
"""
CONJUGATED = """
input s[o,v,o,v], t[o,v,o,v], w[o,v,o,v], x[v,o,v,o], y[v,o,v,o], z[v,o,v,o]
output r
r[i,a,j,b] = conj(s[i,c,k,a])*x[b,k,c,j] + t[i,c,k,a]*conj(y[b,k,c,j])
r[i,a,j,b] += conj(w[i,c,k,a])*conj(z[b,k,c,j])
"""
WRONG = "wrong values"


@cache
def compiled(text: str, dtype: str = "float64") -> tuple[System, Artifact]:
    system = read_spec(HEAD + text)
    options = Options(extents=PLANNED, target="cuda", dtype=dtype, library=False)
    return system, compile_system(system, options).artifact


class PlantingDevice(EmulatedDevice):
    """The emulator, with a text changed in one place before it is compiled."""

    compiles = False

    def __init__(self, old: str, new: str) -> None:
        super().__init__()
        self._old, self._new = old, new

    def module(self, code: str) -> Any:
        assert code.count(self._old) == 1, f"{code.count(self._old)} places: {self._old}"
        return super().module(code.replace(self._old, self._new))


def outcome(
    text: str, device: EmulatedDevice, monkeypatch: pytest.MonkeyPatch, dtype: str = "float64"
) -> str:
    """Kind of the fault that a program meets, or whether its values are right."""
    system, artifact = compiled(text, dtype)
    monkeypatch.setattr("tcgen.runtime.gpu.backend.open_device", lambda: device)
    inputs = random_arrays(system, EXTENTS, dtype=dtype, seed=3)
    expected = evaluate_system(system, inputs, EXTENTS, dtype=dtype)
    program = Program(artifact)
    try:
        found = program(**inputs)
    except EmulationError as error:
        return error.kind
    right = all(np.allclose(found[n], expected[n], rtol=1e-10) for n in expected)
    return "right" if right else WRONG


@pytest.mark.parametrize("text", [PRODUCT, ENERGY, PERMUTATION, EPILOGUE])
def test_nothing_planted(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert outcome(text, EmulatedDevice(), monkeypatch) == "right"


def check(text: str, old: str, new: str, kinds: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = outcome(text, PlantingDevice(old, new), monkeypatch)
    assert re.fullmatch(kinds, found), found


@pytest.mark.parametrize(
    ("old", "new", "kinds"),
    [
        # barriers, and waits for copies
        (
            "tc_cp_async_wait<STAGES - 2>();\n        __syncthreads();",
            "tc_cp_async_wait<STAGES - 2>();",
            "race|unwritten",
        ),
        ("        tc_cp_async_wait<STAGES - 2>();", "", "cp.async"),
        ("tc_cp_async_wait<STAGES - 2>();", "tc_cp_async_wait<STAGES - 1>();", "cp.async"),
        ("tc_cp_async_commit();\n                    pipe.arrive();", "pipe.arrive();", "cp.async"),
        ("fill(0);\n        __syncthreads();", "fill(0);", "race|unwritten"),
        # buffers and steps
        ("                    pipe.next = pipe.after(pipe.next);\n", "", "race|unwritten|cp.async"),
        (
            "buffer + 1 == STAGES ? 0",
            "buffer + 2 == STAGES ? 0",
            "race|unwritten|cp.async|out of bounds",
        ),
        ("(tc_dynamic + 26112);", "(tc_dynamic + 25840);", f"race|cp.async|{WRONG}"),
        ("tc_steps = tc_tiles(tc_depth, 16)", "tc_steps = tc_depth/16", WRONG),
        (
            "pipe.fill(chunk + 1);\n        int step = chunk*pipe.CHUNK_STEPS;\n"
            "        const int end = min(step + pipe.CHUNK_STEPS, pipe.steps);\n"
            "        #pragma unroll 1\n        for (; step < end; ++step) {\n"
            "            const int load = step + pipe.STAGES_AHEAD;\n            pipe.look_up",
            "int step = chunk*pipe.CHUNK_STEPS;\n"
            "        const int end = min(step + pipe.CHUNK_STEPS, pipe.steps);\n"
            "        #pragma unroll 1\n        for (; step < end; ++step) {\n"
            "            const int load = step + pipe.STAGES_AHEAD;\n            pipe.look_up",
            "unwritten",
        ),
        # the points of k that fill the first step
        ("(ALONG_K ? entry : row + turn) >= missing", "true", f"{WRONG}|out of bounds"),
        # the order of shared memory
        ("m%RUN*SEGMENT + m/RUN)]", "m%RUN*SEGMENT + m%RUN)]", f"{WRONG}|unwritten|cp.async"),
        (
            "entry/(LENGTH/RUN)*SEGMENT + entry%",
            "entry%(LENGTH/RUN)*SEGMENT + entry%",
            f"race|{WRONG}",
        ),
        ("start + (INDEX)(fixed + offset(turn));", "start + offset(turn);", WRONG),
        # fragments of the tensor cores that hold other elements
        ("m + n%2*8 + lane/4)", "m + n/2*8 + lane/4)", WRONG),
        ("k + lane%4 + n/2*4, m", "k + lane/8 + n/2*4, m", WRONG),
        ("k + lane%4 + 4, n", "k + lane%4, n", WRONG),
        ("tc_x = tc_side + tc_lane%4*2", "tc_x = tc_side + tc_lane%4", f"{WRONG}|race|misaligned"),
        # guards of partial tiles, and tiles of other blocks
        (
            "if (tc_i >= 0 && tc_j >= 0) tc_store_pair",
            "if (tc_i >= 0) tc_store_pair",
            "race|misaligned",
        ),
        ("row = first + block%height;", "row = first + block/height;", f"{WRONG}|race"),
        ("tc_r0_first = tc_row*64;", "tc_r0_first = tc_row*16;", f"{WRONG}|race"),
        ("tc_depth = N_v*N_o, tc_last", "tc_depth = N_v*N_o + 8, tc_last", "out of bounds"),
    ],
)
def test_mutants_of_a_product_by_tiles(
    old: str, new: str, kinds: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for space, extent in WIDE_EXTENTS.items():
        monkeypatch.setitem(EXTENTS, space, extent)
    check(PRODUCT, old, new, kinds, monkeypatch)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("lower_right.re, a_re, b_re);", "lower_right.re, a_im, b_im);"),
        ("a_re,\n                B_CONJUGATED ? minus_im : b_im", "a_re, minus_im"),
        ("A_CONJUGATED == B_CONJUGATED ? minus_im : b_im);", "b_im);"),
        ("A_CONJUGATED ? minus_re : b_re);", "b_im);"),
        ("lower_left.im, lower_right.im, a_im", "lower_right.im, lower_left.im, a_im"),
    ],
)
def test_mutants_of_a_complex_product(old: str, new: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert outcome(PRODUCT, EmulatedDevice(), monkeypatch, "complex128") == "right"
    assert outcome(PRODUCT, PlantingDevice(old, new), monkeypatch, "complex128") == WRONG


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a_re,\n                B_CONJUGATED ? minus_im : b_im", "a_re, b_im"),
        ("A_CONJUGATED == B_CONJUGATED ?", "A_CONJUGATED ?"),
        ("A_CONJUGATED == B_CONJUGATED ?", "B_CONJUGATED ?"),
        ("A_CONJUGATED ? minus_re : b_re);", "b_re);"),
    ],
)
def test_mutants_of_conjugated_products(
    old: str, new: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert outcome(CONJUGATED, EmulatedDevice(), monkeypatch, "complex128") == "right"
    assert outcome(CONJUGATED, PlantingDevice(old, new), monkeypatch, "complex128") == WRONG


@pytest.mark.parametrize(("condition", "o", "v"), [("N_v%2 == 0", 4, 23), ("N_o%2 == 0", 3, 34)])
def test_copies_of_neighbours_that_are_none(
    condition: str, o: int, v: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Odd extents take the loop that copies one element at a time."""
    monkeypatch.setitem(EXTENTS, "o", o)
    monkeypatch.setitem(EXTENTS, "v", v)
    old = f"            && {condition}\n            && (unsigned long long)tc_"
    check(PRODUCT, old, old.replace(condition, "true"), f"misaligned|{WRONG}", monkeypatch)


@pytest.mark.parametrize(
    ("old", "new", "kinds"),
    [
        ("*tc_groups; tc_n +=", "*tc_groups + 1; tc_n +=", "out of bounds"),
        ("tc_group + tc_at < N_v;", "tc_group + tc_at <= N_v;", f"out of bounds|{WRONG}"),
        ("if (threadIdx.x == 0) e[0] = tc_sum;", "e[0] = tc_sum;", "race"),
        (
            "((double *)tc_scratch)[blockIdx.x] = tc_sum;",
            "((double *)tc_scratch)[0] = tc_sum;",
            "race",
        ),
        (
            "if (threadIdx.x%32 == 0) parts[threadIdx.x/32] = value;\n    __syncthreads();",
            "if (threadIdx.x%32 == 0) parts[threadIdx.x/32] = value;",
            "race|unwritten",
        ),
        ("if (threadIdx.x%32 == 0) parts", "parts", "race"),
        (
            "T tc_down(T x, int lanes)\n{\n    return __shfl_down_sync(0xffffffffu",
            "T tc_down(T x, int lanes)\n{\n    return __shfl_down_sync(0x7fffffffu",
            "mask",
        ),
        ("__launch_bounds__(256)\ntcgen_map_0(", "__launch_bounds__(128)\ntcgen_map_0(", "launch"),
        (
            "    const tc_int tc_groups =",
            "    if (tc_split*256 + threadIdx.x >= N_o*N_v) return;\n    const tc_int tc_groups =",
            "mask|divergent barrier",
        ),
    ],
)
def test_mutants_of_a_sum(old: str, new: str, kinds: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check(ENERGY, old, new, kinds, monkeypatch)


@pytest.mark.parametrize(
    ("old", "new", "kinds"),
    [
        (
            "    __syncthreads();\n    for (int tc_n = tc_y",
            "    for (int tc_n = tc_y",
            "race|unwritten",
        ),
        ("if (tc_row + tc_x < tc_rows", "if (tc_row + tc_x <= tc_rows", "out of bounds"),
        ("if (tc_row + tc_n < tc_rows", "if (tc_row + tc_n <= tc_rows", "unwritten"),
        ("double tc_tile[32][33]", "double tc_tile[2][33]", "out of bounds"),
        ("tc_tile[tc_x][tc_n];", "tc_tile[tc_n][tc_x];", "unwritten"),
        ("*N_o + j] = 2.0", "*N_o + 1 + j] = 2.0", "out of bounds"),
        ("*N_o + j] = 2.0", "*N_o] = 2.0", "race"),
    ],
)
def test_mutants_of_a_permutation(
    old: str, new: str, kinds: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    check(PERMUTATION, old, new, kinds, monkeypatch)


@pytest.mark.parametrize(
    ("old", "new", "kinds"),
    [
        (
            "+= 2.0*x[i*N_v + c];\n        }\n        __syncthreads();",
            "+= 2.0*x[i*N_v + c];\n        }",
            "race",
        ),
        ("            w[tc_n] = double(0);", "", "unwritten"),
        ("q[(c - c0)*N_o + j] = tc_sum;", "q[j] = tc_sum;", f"race|unwritten|{WRONG}"),
        (
            "const tc_int c0 = tc_point*3;",
            "const tc_int c0 = tc_point*3; if (threadIdx.x == 5) return;",
            "mask|divergent barrier",
        ),
        (f"tc_point = blockIdx.x; {LOOP_OF_C0}", f"tc_point = 0; {LOOP_OF_C0}", "race"),
    ],
)
def test_mutants_of_a_nest(old: str, new: str, kinds: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = generated(hand_modules.tiles())
    bound, program = on_gpu(module, {"o": 10, "v": 30})
    assert program.artifact.text("kernels.cu").count(old) == 1
    device = PlantingDevice(old, new)
    monkeypatch.setattr("tcgen.runtime.gpu.backend.open_device", lambda: device)
    try:
        compare(module, bound, program, {"o": 5, "v": 7})
        found = "right"
    except EmulationError as error:
        found = error.kind
    except AssertionError:
        found = WRONG
    assert re.fullmatch(kinds, found), found


@pytest.mark.parametrize(
    ("old", "new", "kinds"),
    [
        # elements that do not exist, and values of another row or column
        (
            f"if (tc_i >= 0 && tc_j >= 0) {{\n{COLUMN}double tc_value",
            f"if (tc_i >= 0) {{\n{COLUMN}double tc_value",
            f"race|{WRONG}",
        ),
        ("        tc_of_b[tc_n] = b;\n", "", "unwritten"),
        (
            "const tc_int j = tc_of_j[tc_y",
            "const tc_int j = tc_of_b[tc_y",
            f"{WRONG}|out of bounds",
        ),
        ("__shared__ tc_int tc_of_a[32];", "__shared__ tc_int tc_of_a[16];", "out of bounds"),
        ("tc_value = tc_sum[tc_r][tc_c];", "tc_value = tc_sum[tc_c][tc_r];", WRONG),
        # numbers: the parts of a block, of all blocks
        ("(0*(tc_int)gridDim.x + blockIdx.x)*16)", "(0*(tc_int)gridDim.x)*16)", "race"),
        ("if (threadIdx.x == 0) *(double *)(tc_scratch", "*(double *)(tc_scratch", "race"),
        (
            "tc_total0 = tc_block_sum(tc_total0",
            "if (tc_warp == 0) tc_total0 = tc_block_sum(tc_total0",
            "divergent barrier",
        ),
        ("tc_n < tc_blocks; ", "tc_n + 1 < tc_blocks; ", WRONG),
        ("tc_n < tc_blocks; ", "tc_n <= tc_blocks; ", "out of bounds"),
        ("(0*tc_blocks + tc_n)*16)", "(0*tc_blocks + tc_n)*8)", WRONG),
        ("if (threadIdx.x == 0) e[0] = tc_sum;", "e[0] = tc_sum;", "race"),
    ],
)
def test_mutants_of_an_epilogue(
    old: str, new: str, kinds: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    check(EPILOGUE, old, new, kinds, monkeypatch)

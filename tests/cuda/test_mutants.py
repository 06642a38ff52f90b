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

from support.cuda_device import EmulatedDevice
from support.cuda_emulator import EmulationError
from tcgen.artifact.folder import Artifact
from tcgen.compiler.driver import compile_system
from tcgen.frontend.spec.reader import read_spec
from tcgen.interp import evaluate_system
from tcgen.ir.system import System
from tcgen.options import Options
from tcgen.runtime.program import Program
from tcgen.testing import random_arrays

pytestmark = [
    pytest.mark.default_thresholds,
    pytest.mark.skipif(
        shutil.which("g++") is None, reason="no C compiler: the CUDA emulator needs g++"
    ),
]
PLANNED = (("o", 10), ("v", 40))
EXTENTS = {"o": 3, "v": 23}  # two tiles of rows, three of columns, five steps, the last partial
HEAD = """
space o occupied
space v virtual
index i j k : o
index a b c : v
"""
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
FUSED = """
input t[o,v,v], u[o,v,v], w[o,v]
output r
r[i,a] = (t[i,c,b]*u[i,c,a])*w[i,b]
"""
EPILOGUE = """
input t[o,v,o,v], u[v,o,v,o], e_o[o], e_v[v]
output x, e
r[i,a,j,b] = t[i,c,k,a]*u[b,k,c,j]
x[b,j,a,i] = r[i,a,j,b]/(e_o[i] + e_o[j] - e_v[a] - e_v[b])
e = r[i,a,j,b]*r[i,a,j,b]/(e_o[i] + e_o[j] - e_v[a] - e_v[b])
"""
WRONG = "wrong values"


@cache
def compiled(text: str) -> tuple[System, Artifact]:
    system = read_spec(HEAD + text)
    objective = "linear" if text is FUSED else "none"
    options = Options(extents=PLANNED, target="cuda", objective=objective, library=False)
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


def outcome(text: str, device: EmulatedDevice, monkeypatch: pytest.MonkeyPatch) -> str:
    """Kind of the fault that a program meets, or whether its values are right."""
    system, artifact = compiled(text)
    monkeypatch.setattr("tcgen.runtime.gpu.backend.open_device", lambda: device)
    inputs = random_arrays(system, EXTENTS, dtype="float64", seed=3)
    expected = evaluate_system(system, inputs, EXTENTS)
    program = Program(artifact)
    try:
        found = program(**inputs)
    except EmulationError as error:
        return error.kind
    right = all(np.allclose(found[n], expected[n], rtol=1e-10) for n in expected)
    return "right" if right else WRONG


@pytest.mark.parametrize("text", [PRODUCT, ENERGY, PERMUTATION, FUSED, EPILOGUE])
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
            "tc_cp_async_wait<1>();\n            __syncthreads();",
            "tc_cp_async_wait<1>();",
            "race|unwritten",
        ),
        ("            tc_cp_async_wait<1>();", "", "cp.async"),
        ("            tc_cp_async_wait<1>();", "            tc_cp_async_wait<2>();", "cp.async"),
        ("            tc_cp_async_commit();", "", "cp.async"),
        (
            "const int tc_slot = (int)(tc_load%3);",
            "const int tc_slot = (int)(tc_load%2);",
            "race|unwritten|cp.async",
        ),
        # tiles that are too small, or one step short
        ("double tc_left[3][16]", "double tc_left[3][15]", "out of bounds|cp.async"),
        ("double tc_right[3]", "double tc_right[2]", "out of bounds"),
        ("tc_load < tc_steps + 2;", "tc_load < tc_steps + 1;", WRONG),
        ("tc_steps = tc_tiles(tc_depth, 16)", "tc_steps = tc_depth/16", WRONG),
        # two elements at once: neighbours in memory, on 16 bytes, each pair once
        ("second == first + 1 && ", "", f"{WRONG}|out of bounds"),
        (" && (unsigned long long)source%16 == 0", "", "misaligned"),
        ("tc_cp_async8(shared + 1, global + second);", "", "unwritten"),
        ("tc_cp_async8(shared + 1, global + second)", "tc_cp_async8(shared + 1, source)", WRONG),
        ("tc_m = tc_n%32*2, tc_k", "tc_m = tc_n%32, tc_k", "race|unwritten|misaligned|cp.async"),
        # fragments of the tensor cores that hold other elements
        ("tc_n%2*8];", "tc_n/2*8];", WRONG),
        ("tc_lane%4 + tc_n/2*4][", "tc_lane/8 + tc_n/2*4][", WRONG),
        ("tc_x = tc_side + tc_lane%4*2", "tc_x = tc_side + tc_lane%4", f"{WRONG}|race"),
        ("if (tc_step >= 0) {", "if (tc_step >= 0 && tc_lane != 9) {", "mask|divergent barrier"),
        # guards of partial tiles
        ("if (tc_i >= 0 && tc_j >= 0)", "if (tc_i >= 0)", "race|out of bounds"),
        ("if (tc_rest >= 16) {", "if (tc_rest >= 0) {", WRONG),
        (
            "tc_load + 1 < tc_steps && threadIdx.x < 16",
            "tc_load + 1 < tc_steps && threadIdx.x < 15",
            "unwritten",
        ),
        ("tc_depth = N_v*N_o;", "tc_depth = N_v*N_o + 1;", "out of bounds"),
        # the block's rows overlap with the next one's
        (
            "tc_r0_first = tc_block%tc_r0_tiles*64;",
            "tc_r0_first = tc_block%tc_r0_tiles*16;",
            f"{WRONG}|race",
        ),
        ("tc_c1_first = tc_block%tc_c1_tiles*8;", "tc_c1_first = 0;", f"{WRONG}|race"),
    ],
)
def test_mutants_of_a_product_by_tiles(
    old: str, new: str, kinds: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    check(PRODUCT, old, new, kinds, monkeypatch)


def test_rows_of_shared_memory_that_do_not_start_on_16_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Seen where arrays of an even extent turn the alignment from row to row."""
    monkeypatch.setitem(EXTENTS, "o", 2)
    check(
        PRODUCT, "double tc_left[3][16][68]", "double tc_left[3][16][67]", "misaligned", monkeypatch
    )


@pytest.mark.parametrize(
    ("old", "new", "kinds"),
    [
        ("tc_n < N_o*N_v*N_o*N_v;", "tc_n <= N_o*N_v*N_o*N_v;", "out of bounds"),
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
            "double tc_down(double x, int lanes)\n{\n    return __shfl_down_sync(0xffffffffu",
            "double tc_down(double x, int lanes)\n{\n    return __shfl_down_sync(0x7fffffffu",
            "mask",
        ),
        ("__launch_bounds__(256)\ntcgen_map_0(", "__launch_bounds__(128)\ntcgen_map_0(", "launch"),
        (
            "    double tc_sum = 0.0;\n    for (tc_int tc_n = tc_split",
            "    double tc_sum = 0.0;\n    if (tc_split*256 + threadIdx.x >= N_o*N_v) return;\n"
            "    for (tc_int tc_n = tc_split",
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
            "x1 = tc_sum;\n            }\n            __syncthreads();",
            "x1 = tc_sum;\n            }",
            "race|unwritten",
        ),
        ("if (threadIdx.x == 0) x1 = tc_sum;", "x1 = tc_sum;", "race"),
        ("if (threadIdx.x == 0) x1 = tc_sum;", "", "unwritten"),
        (
            "const tc_int i = tc_point;",
            "const tc_int i = tc_point; if (threadIdx.x == 5) return;",
            "mask|divergent barrier",
        ),
        ("tc_point < N_o;", "tc_point <= N_o;", "out of bounds"),
        ("tc_point = blockIdx.x;", "tc_point = 0;", "race"),
    ],
)
def test_mutants_of_a_fused_nest(
    old: str, new: str, kinds: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    check(FUSED, old, new, kinds, monkeypatch)


@pytest.mark.parametrize(
    ("old", "new", "kinds"),
    [
        # elements that do not exist, and values of another row or column
        ("if (tc_i >= 0 && tc_j >= 0) {", "if (tc_i >= 0) {", f"race|{WRONG}"),
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

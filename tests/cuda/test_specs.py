"""Specs and random systems compiled for CUDA give what the interpreter gives.

They run under the emulator here, and with ``-m gpu`` on the device of this machine. Plans are made
for extents of real molecules, where products go by tiles, and run at small ones, where tiles are
partial.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tcgen
from support import cuda_compile
from support.campaigns import cases
from support.cuda_device import DEVICES, Compiling, EmulatedDevice, device_named
from support.marks import slow, slow_where
from tcgen.artifact.folder import Artifact
from tcgen.compiler.driver import compile_system, read_system
from tcgen.frontend.spec.reader import read_spec
from tcgen.interp import evaluate_system
from tcgen.ir.system import System
from tcgen.ir.tensor import Role
from tcgen.options import Options
from tcgen.runtime.program import Program
from tcgen.testing import (
    assert_same_values,
    extents_for,
    random_arrays,
    split_starts,
    systems,
)
from tcgen.thresholds.time_model import Machine

PLANNED = {"o": 10, "v": 40, "O": 9, "V": 41, "x": 100, "q": 8}
SMALL = {"o": 3, "v": 5, "O": 2, "V": 4, "x": 7, "q": 3}
ONE = dict.fromkeys(PLANNED, 1)
MORE_OCCUPIED = {"o": 5, "v": 2, "O": 4, "V": 3, "x": 3, "q": 2}
ODD = {"o": 4, "v": 17, "O": 3, "V": 13, "x": 35, "q": 5}  # beyond a tile
TOLERANCE = {"float64": 1e-10, "complex128": 1e-10, "float32": 1e-4}
SPECS = (
    "mp2_closed_shell",
    "mp2_df",
    "mp2_spin_orbital",
    "sosmp2_laplace_df",
    "drpa",
    "df_ladder",
    "ccd_spin_orbital",
    "cc2_df",
)
LARGE_SPECS = (
    "t_spin_orbital",
    "t_closed_shell",
    "ccsd_spin_orbital",
    "ccsd_closed_shell",
    "uccsd_energy_t1",
)
COMPILER = pytest.mark.skipif(not cuda_compile.can_compile(), reason=cuda_compile.MISSING)


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "emulator" and shutil.which("g++") is None:
        pytest.skip("no C compiler: the CUDA emulator needs g++")
    found = device_named(request.param)
    monkeypatch.setattr("tcgen.runtime.gpu.backend.open_device", lambda: found)
    return request.param


@cache
def spec(
    name: str, objective: str = "none", dtype: str = "float64", **more: Any
) -> tuple[System, Artifact]:
    system = read_system(tcgen.spec_path(name))
    options = Options(
        extents=of(system, PLANNED),
        target="cuda",
        objective=objective,
        dtype=dtype,
        library=False,
        **more,
    )
    return system, compile_system(system, options).artifact


def of(system: System, extents: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """Extents of a system's spaces, in the order of options."""
    return tuple(sorted((s.name, extents[s.name]) for s in system.spaces if not s.parts))


def check(system: System, artifact: Artifact, extents: Mapping[str, int], dtype: str) -> None:
    inputs, starts = split_starts(system, random_arrays(system, extents, dtype=dtype, seed=1))
    expected = evaluate_system(system, inputs, extents, out=starts, dtype=dtype)
    actual = Program(artifact)(**inputs, out={n: np.array(a) for n, a in starts.items()})
    assert_same_values(actual, expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.few(1)
@pytest.mark.parametrize("extents", [SMALL, ONE, MORE_OCCUPIED, ODD], ids=str)
@pytest.mark.parametrize("name", slow_where(lambda name: name == "cc2_df", SPECS))
def test_specs_equal_the_interpreter(name: str, extents: dict[str, int], device: str) -> None:
    system, artifact = spec(name)
    if name == "ccd_spin_orbital" and extents is ODD:
        extents = {"o": 2, "v": 9}
    check(system, artifact, dict(of(system, {**PLANNED, **extents})), "float64")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["df_ladder", "drpa"])
def test_specs_for_sm_80(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other fragments of the tensor cores than those of sm_90."""
    if shutil.which("g++") is None:
        pytest.skip("no C compiler: the CUDA emulator needs g++")
    monkeypatch.setattr("tcgen.runtime.gpu.backend.open_device", lambda: EmulatedDevice(80))
    system, artifact = spec(name)
    check(system, artifact, dict(of(system, ODD)), "float64")


@pytest.mark.parametrize("name", slow("ccsd_closed_shell", "t_closed_shell"))
def test_large_specs_as_they_are_written(name: str, device: str) -> None:
    """Without a search for a better sequence, which takes longer than to run what it finds."""
    system, artifact = spec(name, optimize=False)
    check(system, artifact, dict(of(system, {**PLANNED, "o": 2, "v": 3})), "float64")


@pytest.mark.slow
@pytest.mark.parametrize("extents", [SMALL, ONE, MORE_OCCUPIED], ids=str)
@pytest.mark.parametrize("name", LARGE_SPECS)
def test_large_specs_equal_the_interpreter(name: str, extents: dict[str, int], device: str) -> None:
    system, artifact = spec(name)
    check(system, artifact, dict(of(system, extents)), "float64")


@pytest.mark.slow
def test_pairs_of_tiles_within_a_limit(device: str) -> None:
    system = read_system(tcgen.spec_path("df_ladder"))
    planned = of(system, {"o": 7, "v": 23, "x": 17})
    slow = Machine()  # with calls so cheap that pairs of tiles pay at these extents
    options = Options(planned, "cuda", objective="time", memory_limit=300_000, machine=slow)
    compiled = compile_system(system, options)
    assert any(loop.order_after for loop in compiled.plan.loops)
    check(system, compiled.artifact, dict(of(system, {"o": 3, "v": 7, "x": 4})), "float64")


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("name", ["df_ladder", "sosmp2_laplace_df"])
def test_other_element_types(name: str, dtype: str, device: str) -> None:
    system, artifact = spec(name, dtype=dtype)
    check(system, artifact, dict(of(system, SMALL)), dtype)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["df_ladder", "sosmp2_laplace_df"])
def test_fused_specs_equal_the_interpreter(name: str, device: str) -> None:
    system, artifact = spec(name, objective="linear")
    check(system, artifact, dict(of(system, {**SMALL, "o": 2, "v": 3})), "float64")


# ---- compiled for devices that need not be there -------------------------------------------------


def compiled(artifact: Artifact) -> None:
    """The text compiles for every architecture, and no kernel spills or has local memory."""
    text, architectures = artifact.text("kernels.cu"), Compiling.architectures
    with ThreadPoolExecutor() as pool:  # NVRTC works outside of Python's lock
        uses = list(pool.map(lambda arch: cuda_compile.compile_cuda(text, arch), architectures))
    for arch, kernels in zip(architectures, uses, strict=True):
        assert kernels
        assert [use for use in kernels if use.stack or use.spills] == [], f"sm_{arch}"


@pytest.mark.few(1)
@pytest.mark.default_thresholds
@COMPILER
@pytest.mark.parametrize(
    "name", slow_where(lambda name: name == "cc2_df", [n for n in SPECS if n != "ccd_spin_orbital"])
)
def test_specs_compile_without_spills(name: str) -> None:
    compiled(spec(name)[1])


@COMPILER
@pytest.mark.slow
@pytest.mark.parametrize("name", ["ccd_spin_orbital", *LARGE_SPECS])
def test_large_specs_compile_without_spills(name: str) -> None:
    # With the weight of an H100. With that of a processor, CCSD has a sum of which ptxas puts 20
    # bytes into memory on sm_90, so that more threads fit.
    compiled(spec(name, byte_weight=1.0)[1])


@pytest.mark.few(1)
@COMPILER
@pytest.mark.parametrize(
    "subscripts", ["dca,bd->cba", "da,cdb->cba", "abcd,dbe->cae", "acd,db->cba"]
)
def test_tiles_of_products_leave_registers_for_a_second_block(subscripts: str) -> None:
    """Of 65,536 on a multiprocessor; one block alone would wait for its own loads and barriers."""
    letters = sorted(set(subscripts) - set(",->"))
    artifact = tcgen.compile(
        subscripts, extents=dict.fromkeys(letters, 300), target="cuda", library=False
    ).artifact
    (kernel,) = artifact.manifest.kernels
    assert kernel.grid is not None
    compiled(artifact)
    for arch in Compiling.architectures:
        uses = {u.name: u for u in cuda_compile.compile_cuda(artifact.text("kernels.cu"), arch)}
        use = uses[kernel.symbol]
        assert 2 * kernel.grid.threads * use.registers <= 65536, f"sm_{arch}"


# ---- random systems ------------------------------------------------------------------------------


def drawn(draw: st.DrawFn) -> tuple[System, dict[str, int]]:
    system = draw(systems())
    return system, draw(extents_for(system))


CASES = st.composite(drawn)()
ELEMENT_TYPES = st.sampled_from(["float64", "float64", "float32", "complex128"])


def check_random(
    case: tuple[System, dict[str, int]], dtype: str, objective: str, planned: int | None
) -> None:
    """Planned for the extents at which it runs, or for others, as far as inputs show them."""
    system, extents = case
    # A joined axis shows the sum of its parts, not each of them.
    shown = {s.name for t in system.tensors if t.role is Role.INPUT for s in t.spaces}
    chosen = {n: (planned if n in shown else None) or max(1, e) for n, e in extents.items()}
    extents = {n: e if n in shown else chosen[n] for n, e in extents.items()}
    options = Options(
        extents=tuple(sorted(chosen.items())), dtype=dtype, target="cuda", objective=objective
    )
    check(system, compile_system(system, options).artifact, extents, dtype)


@pytest.mark.few(4)
@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=str)
@pytest.mark.parametrize(
    "equation", ["A[m,m,a]*A[m,m,b]", "A[m,m,a]*B[m,b]", "B[m,a]*A[m,m,b]", "A[m,m,a] + B[m,a]"]
)
def test_elements_of_a_diagonal_are_no_neighbours(equation, order, device) -> None:
    """Even extents allow copies of neighbours by 16 bytes; steps along a diagonal are longer."""
    stored = ",".join(map(str, order))
    system = read_spec(
        "space o\nspace v\nindex m : o\nindex a b : v\n"
        f"input A[o,o,v] stored ({stored})\ninput B[o,v]\noutput r\n"
        f"r[{'m,a' if '+' in equation else 'a,b'}] = {equation}\n"
    )
    for extents in ({"o": 2, "v": 2}, {"o": 18, "v": 20}):
        check_random((system, extents), "float64", "none", 20)


@pytest.mark.few(4)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("kind", ["symmetric", "antisymmetric"])
@pytest.mark.parametrize(
    "declared",
    [
        "input A[v,v,o] KIND (0,1) packed (0,1), B[v]\noutput r\nr[i,a,b] = A[a,b,i]*B[b]",
        "input A[o,v,v] KIND (1,2)\noutput r[v,v,o] KIND (0,1) packed (0,1)\nr[a,b,i] = A[i,a,b]",
    ],
    ids=["source", "target"],
)
def test_packed_arrays_are_not_transposed(declared, kind, dtype, device) -> None:
    """A packed array has no tile, so it is read and written with its own places."""
    head = "space o\nspace v\nindex i : o\nindex a b : v\n"
    system = read_spec(head + declared.replace("KIND", kind) + "\n")
    for extents in ({"o": 1, "v": 0}, {"o": 1, "v": 1}, {"o": 7, "v": 5}, {"o": 3, "v": 11}):
        check_random((system, extents), dtype, "none", 60)


@cases(3, 1000)
@given(
    case=CASES,
    dtype=ELEMENT_TYPES,
    objective=st.sampled_from(["none", "linear", "memory"]),
    planned=st.sampled_from([None, 20, 60, 200]),
)
def test_random_systems_equal_the_interpreter(case, dtype, objective, planned, device) -> None:
    check_random(case, dtype, objective, planned)

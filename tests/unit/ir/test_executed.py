"""Reports say what runs: the interpreter and counting C execute the flops of the report."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tcgen
from support.executed_counts import counted_by_c, interpreted, reported
from support.marks import slow
from support.spec_sample import SPEC_SAMPLE
from tcgen.compiler.driver import Compilation, compile_system, read_system
from tcgen.ir.executed import executed_by, totals
from tcgen.ir.system import System
from tcgen.lower import lower_plan
from tcgen.options import Options
from tcgen.testing import random_arrays, split_starts

NEEDS_C = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
PLANNED = {"o": 4, "v": 6, "O": 3, "V": 5, "x": 7, "q": 3}
RUN = {"o": 5, "v": 3, "O": 3, "V": 2, "x": 7, "q": 2, "Ni": 3, "Nj": 5, "Nk": 2, "Nl": 3}
HALVES = Options().thresholds
HALVES = replace(HALVES, cpu=replace(HALVES.cpu, pair_flops=1, pair_copy_flops=0))


def compiled(name: str, **options: Any) -> Compilation:
    system = read_system(tcgen.spec_path(name))
    spaces = sorted(s.name for s in system.spaces if not s.parts)
    planning = tuple((s, PLANNED.get(s, 4)) for s in spaces)
    return compile_system(system, Options(extents=planning, **options), documents=False)


def check(made: Compilation, *, by_c: bool) -> dict[int, int]:
    """Compare at extents with tails of tiles and more occupied than virtual orbitals."""
    extents = {name: RUN[name] for name, _ in made.plan.extents}
    arrays = random_arrays(made.system, extents, seed=0)
    inputs, starts = split_starts(made.system, arrays)
    said = reported(made.module, extents)
    assert interpreted(made.module, inputs, starts, extents) == said
    if by_c:
        assert counted_by_c(made.module, inputs, starts, made.plan.extents) == said
    return said


@NEEDS_C
@pytest.mark.parametrize("name", slow(*SPEC_SAMPLE))
def test_every_shipped_spec_executes_what_the_report_says(name: str) -> None:
    check(compiled(name), by_c=True)


@NEEDS_C
@pytest.mark.parametrize("name", ["drpa", "allam_figure1"])
def test_c_executes_what_the_report_says(name: str) -> None:
    check(compiled(name), by_c=True)


@pytest.mark.parametrize(
    "options",
    [
        {"objective": "peak"},
        {"objective": "linear"},
        {"target": "cuda"},
        {"objective": "time", "memory_limit": 12_000},
    ],
    ids=["peak", "linear", "cuda", "limit"],
)
@pytest.mark.parametrize("name", ["df_ladder", "mp2_df"])
def test_fused_loops_tiles_and_epilogues(name: str, options: dict[str, Any]) -> None:
    check(compiled(name, **options), by_c=False)


def test_half_of_symmetric_pairs() -> None:
    """Groups of antisymmetric pairs run an eighth of the multiply-adds or more."""
    made = compiled("ccd_spin_orbital", thresholds=HALVES, optimize=False)
    said = check(made, by_c=False)
    extents = {name: RUN[name] for name, _ in made.plan.extents}
    chosen = {s.id: s.flops.value(extents) for s in made.program.steps}
    assert any(0 < said[s] < 0.4 * chosen[s] for s in said)
    assert all(flops <= chosen[step] for step, flops in said.items())


PACKED = {"optimize": False, "thresholds": HALVES}
LIMITED = {**PACKED, "objective": "time", "memory_limit": 20_000}


def packed(name: str) -> System:
    """A shipped spec of which the inputs store their symmetric axes as one."""
    lines = []
    for line in tcgen.spec_path(name).read_text().splitlines():
        if line.startswith("input"):
            line = re.sub(r"symmetric((?: \(\d,\d\))+)", r"symmetric\1 packed\1", line)
        lines.append(line)
    return tcgen.read_spec("\n".join(lines))


@pytest.mark.few(1)
@NEEDS_C
@pytest.mark.parametrize(
    ("name", "options"),
    [
        pytest.param("ccd_spin_orbital", PACKED, id="groups"),
        pytest.param("ccd_spin_orbital", {**PACKED, "objective": "peak"}, id="peak"),
        pytest.param("ccd_spin_orbital", LIMITED, id="limit", marks=pytest.mark.slow),
        pytest.param("t_spin_orbital", LIMITED, id="triples", marks=pytest.mark.slow),
    ],
)
def test_groups_of_packed_indices(name: str, options: dict[str, Any]) -> None:
    """Distinct values of groups, in operands that store them alone, with and without loops."""
    system = packed(name)
    made = compile_system(system, Options(extents=(("o", 4), ("v", 6)), **options), documents=False)
    assert any(buffer.packed for buffer in made.module.buffers)
    check(made, by_c=True)


@pytest.mark.parametrize("extent", [1, 5, 7])
def test_hand_written_plans(hand_plans: ModuleType, extent: int) -> None:
    """Tiles with tails, triangular loops, recomputation, loops of the host."""
    for make in hand_plans.LEGAL:
        plan = make()
        extents = {name: extent + n % 2 for n, (name, _) in enumerate(plan.extents)}
        inputs: dict[str, Any] = {
            t.name: np.ones([extents[s.name] for s in t.spaces]) for t in plan.program.inputs
        }
        for target in ("cpu", "cuda"):
            module = lower_plan(plan, Options(target=target))
            assert interpreted(module, inputs, {}, extents) == reported(module, extents)


def bytes_of(text: str, extents: Mapping[str, int]) -> tuple[int, int]:
    system = tcgen.read_spec(text)
    options = Options(extents=tuple(sorted(extents.items())), optimize=False)
    module = compile_system(system, options, documents=False).module
    counts = totals(executed_by(module), extents).per_call
    return counts.read, counts.written


def test_bytes_of_a_matrix_product_and_of_a_packed_input() -> None:
    """Each reference counts what it reaches once; a packed pair counts its triangle."""
    o, v = 5, 7
    head = "space o = 5\nspace v = 7\nindex i j : o\nindex a b : v\n"
    read, written = bytes_of(
        f"{head}input A[o,v], B[v,o]\noutput r\nr[i,j] = A[i,a]*B[a,j]\n", {"o": o, "v": v}
    )
    assert (read, written) == (8 * 2 * o * v, 8 * o * o)
    read, written = bytes_of(
        f"{head}input S[v,v] symmetric (0,1) packed (0,1), x[v]\noutput e\ne = S[a,b]*x[a]*x[b]\n",
        {"o": o, "v": v},
    )
    assert read >= 8 * v * (v + 1) // 2
    assert read < 8 * v * v + 8 * 4 * v


def test_the_work_of_a_module_is_counted_once() -> None:
    made = compiled("mp2_closed_shell")
    assert executed_by(made.module) is executed_by(made.module)

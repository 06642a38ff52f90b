"""Parts of shipped specs and of random systems add up, and read only the elements they touch."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tcgen
from support.campaigns import cases
from support.marks import slow, slow_where
from support.parts import check_system
from support.spec_sample import SPEC_SAMPLE
from tcgen.compiler.driver import Compilation, compile_system, read_system
from tcgen.interp import run_module
from tcgen.ir.system import System
from tcgen.options import Options
from tcgen.runtime.program import Program
from tcgen.testing import assert_same_values, extents_for, random_arrays, split_starts, systems

# Thresholds decide how many parts there are; these tests ask for more than one.
pytestmark = pytest.mark.default_thresholds

# Spec, extents and memory limit of the plan, other extents of calls.
DIVIDED = {
    "mp2_df": ({"o": 20, "v": 80, "x": 200}, None, {"o": 8, "v": 7, "x": 11}),
    "t_closed_shell": ({"o": 5, "v": 53}, 2**26, {"o": 3, "v": 17}),
    "df_ladder": ({"o": 12, "v": 60, "x": 180}, 30_000_000, {"o": 3, "v": 29, "x": 7}),
    "sosmp2_laplace_df": (
        {"o": 10, "v": 40, "q": 6, "x": 80},
        1_000_000,
        {"o": 3, "v": 7, "q": 2, "x": 31},
    ),
}
LARGE = ("cc2_df", "ccsd_closed_shell", "t_spin_orbital", "uccsd_energy_t1")  # minutes of planning
OTHERS = [name for name in SPEC_SAMPLE if name not in (*DIVIDED, *LARGE)]


@cache
def compiled(name: str, target: str) -> tuple[Program, System]:
    extents, limit, _ = DIVIDED[name]
    system = read_system(tcgen.spec_path(name))
    chosen = Options(
        extents=tuple(sorted(extents.items())),
        memory_limit=limit,
        objective="time",
        target=target,
    )
    return Program(compile_system(system, chosen, documents=False).artifact), system


QUICK = [(name, "numpy") for name in DIVIDED if name != "t_closed_shell"]
COMPILED = [(name, "cpu") for name in DIVIDED]


@pytest.mark.few(1)
@pytest.mark.parametrize("case", [*QUICK, *slow(*COMPILED)], ids="-".join)
def test_specs_planned_for_time_have_parts_that_add_up(case: tuple[str, str]) -> None:
    name, target = case
    program, system = compiled(name, target)
    assert program.parts() > 1
    assert check_system(program, system, DIVIDED[name][2]) > 1


@pytest.mark.parametrize("case", [*QUICK, *slow(("t_closed_shell", "cpu"))], ids="-".join)
def test_parts_at_other_extents(case: tuple[str, str]) -> None:
    name, target = case
    program, system = compiled(name, target)
    bases = program.manifest.bases
    check_system(program, system, dict.fromkeys(bases, 0))
    check_system(program, system, dict.fromkeys(bases, 1))
    check_system(program, system, {base: (5, 0, 3, 2)[n] for n, base in enumerate(bases)})


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_parts_of_other_specs_add_up(name: str) -> None:
    system = read_system(tcgen.spec_path(name))
    bases = [s.name for s in system.spaces if not s.parts]
    planned = tuple(sorted(dict.fromkeys(bases, 6).items()))
    chosen = Options(extents=planned, objective="time", target="numpy")
    program = Program(compile_system(system, chosen, documents=False).artifact)
    check_system(program, system, {base: 2 + n % 2 for n, base in enumerate(bases)})


SLICED = {"mp2_df": "b_ov", "df_ladder": "b_vv"}


@pytest.mark.parametrize("name", slow_where("mp2_df".__ne__, SLICED))
def test_parts_of_host_loops_that_read_slices(name: str) -> None:
    extents = {**DIVIDED[name][0]}
    limit = 4_000_000 if name == "mp2_df" else DIVIDED[name][1]
    system = read_system(tcgen.spec_path(name))
    chosen = Options(
        extents=tuple(sorted(extents.items())),
        memory_limit=limit,
        objective="time",
        target="numpy",
        sliced=(SLICED[name],),
    )
    program = Program(compile_system(system, chosen, documents=False).artifact)
    assert check_system(program, system, {"o": 3, "v": 61, "x": 4}) > 1


def drawn(draw: st.DrawFn) -> tuple[System, dict[str, int]]:
    system = draw(systems())
    return system, draw(extents_for(system))


CASES = st.composite(drawn)()


def fused(system: System, extents: dict[str, int], **options: object) -> Compilation:
    chosen = Options(extents=tuple(sorted(extents.items())), optimize=False, **options)
    return compile_system(system, chosen, documents=False)


@cases(8, 1000)
@given(case=CASES, objective=st.sampled_from(["linear", "memory", "none"]))
def test_parts_of_random_systems_add_up(case, objective: str) -> None:
    system, extents = case
    compilation = fused(system, extents, target="numpy", objective=objective)
    program = Program(compilation.artifact)
    count = check_system(program, system, extents, rtol=1e-11)
    inputs, starts = split_starts(system, random_arrays(system, extents, seed=1))
    for part in ((0, count // 2), (count // 2, count)):
        meant = run_module(compilation.module, inputs, extents, out=starts, part=part)
        found = program(**inputs, out={n: a.copy() for n, a in starts.items()}, part=part)
        assert_same_values(found, meant, rtol=1e-10, atol=1e-10)


@cases(2, 300)
@given(case=CASES)
def test_parts_of_generated_c_add_up(case) -> None:
    program = Program(fused(*case, target="cpu", objective="linear").artifact)
    check_system(program, *case, rtol=1e-11)

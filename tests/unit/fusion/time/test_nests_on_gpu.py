"""Nests of plans for a GPU: kernels of single threads, or loops of the host over tiles."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import tcgen
from support.marks import slow_where
from tcgen.algebra import form_sequence
from tcgen.compiler.driver import compile_system, read_system
from tcgen.fusion import plan_fusion
from tcgen.fusion.placement.memory import plan_peak, static_elements
from tcgen.fusion.solver.time_cost import nothing_saved, plan_picoseconds
from tcgen.interp import evaluate_system
from tcgen.interp.modules import run_module
from tcgen.ir.plan import FusionPlan, GroupKind
from tcgen.ir.program import FormulaSequence
from tcgen.ir.thread_mapping import Nest
from tcgen.options import Options
from tcgen.testing import assert_same_values, random_arrays
from tcgen.thresholds.time_model import GPUS

H100 = GPUS["h100"]
LARGE = {"o": 30, "v": 200, "x": 600}
pytestmark = pytest.mark.default_thresholds


@cache
def sequence(name: str) -> tuple[FormulaSequence, Options]:
    system = read_system(tcgen.spec_path(name))
    spaces = sorted(s.name for s in system.spaces)
    options = Options(extents=tuple((s, LARGE[s]) for s in spaces), target="cuda")
    return form_sequence(system, options), options


def plan(name: str, objective: str, memory_limit: int | None = None) -> FusionPlan:
    program, options = sequence(name)
    options = replace(options, objective=objective, memory_limit=memory_limit)
    found = plan_fusion(program, options)
    found.verify()
    return found


def seconds(found: FusionPlan) -> float:
    return plan_picoseconds(found, H100, "float64", nothing_saved) / 1e12


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["df_ladder", "mp2_df", "ccd_spin_orbital"])
def test_linear_is_no_slower_than_whole_steps(name: str) -> None:
    assert seconds(plan(name, "linear")) <= seconds(plan(name, "none"))


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["df_ladder", "mp2_df", "ccd_spin_orbital"])
@pytest.mark.parametrize("objective", ["memory", "peak"])
def test_little_memory_costs_little_time(name: str, objective: str) -> None:
    whole, found = plan(name, "none"), plan(name, objective)
    assert seconds(found) <= 1.1 * seconds(whole)
    if objective == "peak":
        assert found.solve.value == plan_peak(found) < 0.9 * plan_peak(whole)
    else:
        assert found.solve.value == static_elements(found) < 0.9 * static_elements(whole)
    assert found.solve.bound is not None
    assert found.solve.bound <= found.solve.value
    assert found.solve.status == "FEASIBLE"


@pytest.mark.parametrize("reader", ["", "e = W[a,b,c,d]*W[a,c,b,d]"])
@pytest.mark.parametrize("objective", ["none", "linear", "memory", "peak"])
@pytest.mark.parametrize("extents", [{"o": 4, "v": 6, "x": 5}, {"o": 30, "v": 200, "x": 600}])
def test_status_and_value_are_those_of_the_plan_that_is_emitted(
    objective: str, extents: dict[str, int], reader: str
) -> None:
    """Equation (10) promised saved elements that tiles of the host, or whole steps, do not save."""
    system = tcgen.read_spec(
        "space o\nspace v\nspace x\nindex i j : o\nindex a b c d : v\nindex P : x\n"
        f"input B[x,v,v], t[o,o,v,v]\noutput r{reader[:1] and ', e'}\n"
        f"W[a,b,c,d] = B[P,a,c]*B[P,b,d]\nr[i,j,a,b] = W[a,b,c,d]*t[i,j,c,d]\n{reader}"
    )
    for target in ("cpu", "cuda"):
        planned = tuple(extents.items())
        options = Options(planned, objective=objective, optimize=False, target=target)
        found = plan_fusion(form_sequence(system, options), options)
        whole = extents["v"] ** 4
        values = {
            "none": whole,
            "memory": static_elements(found),
            "peak": plan_peak(found),
            "linear": sum(
                whole - whole // extents["v"] * (loop.tile or 1)
                for array in found.arrays
                for _, loop in array.contracted
            ),
        }
        assert found.solve.value == values[objective]
        reached = found.solve.value == found.solve.bound
        status = "OPTIMAL" if reached else "FEASIBLE"
        assert found.solve.status == (None if objective == "none" else status)
        if not any(nest.kernel for nest in found.solve.nests):
            assert reached == (target == "cpu" and objective != "none")


def test_a_limit_makes_tiles_smaller_still() -> None:
    loose = plan("df_ladder", "memory")
    limit = plan_peak(loose) // 4 + 30**2 * 200**2 * 8
    tight = plan("df_ladder", "memory", memory_limit=limit)
    assert plan_peak(tight) <= plan_peak(loose) // 4
    assert seconds(tight) > 1.1 * seconds(plan("df_ladder", "none"))


LONG = ("cc2_df", "ccd_spin_orbital")
SPECS = ("df_ladder", "mp2_df", "ccd_spin_orbital", "sosmp2_laplace_df", "drpa", "cc2_df")


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "name", slow_where(lambda name: name in ("cc2_df", "ccd_spin_orbital"), SPECS)
)
def test_blocks_walk_the_nests_that_the_plan_says(name: str) -> None:
    """Values too: each module means the equations, at extents that its tiles do not divide."""
    system = read_system(tcgen.spec_path(name))
    spaces = [s.name for s in system.spaces if not s.parts]
    small = {space: 3 + n for n, space in enumerate(spaces)}
    arrays = random_arrays(system, small, dtype="float64", seed=3)
    expected = evaluate_system(system, arrays, small, dtype="float64")
    for objective in ("linear", "memory", "peak", "kernels"):
        options = Options(
            extents=tuple(sorted((s, 40 + 7 * n) for n, s in enumerate(spaces))),
            objective=objective,
            target="cuda",
        )
        found = compile_system(system, options, documents=False)
        by_blocks = [k.name for k in found.module.kernels if isinstance(k.mapping, Nest)]
        assert len(by_blocks) == sum(nest.kernel for nest in found.plan.solve.nests)
        for group in found.plan.groups:
            assert group.kind is not GroupKind.NEST or not group.host_loops
        assert_same_values(run_module(found.module, arrays, small), expected, rtol=1e-10)


# Energies are added up in loops that no thread can have by itself.
SCATTERED = """
space o
index i j : o
input x[o,o], y[o,o]
output r, e
t[i,j] = x[i,j]*y[i,j]
r[i,j] = t[i,j] + 2*t[j,i]
e = r[i,j]*r[i,j]
"""


@pytest.mark.parametrize("objective", ["linear", "memory", "peak", "kernels"])
def test_elements_that_threads_would_exchange(objective: str) -> None:
    program = tcgen.compile(SCATTERED, extents={"o": 500}, target="cuda", objective=objective)
    assert program.report["launches"] < 20
    assert not np.any([k.private for k in program.manifest.kernels])

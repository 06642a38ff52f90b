"""Exact optima at extents up to 3000, where sums pass 2^31 and 2^53, and the code of these plans.

Trees are compared with a dynamic program and with every loop program, DAGs with every loop program.
The plans are made for the large extents; their code runs at small ones.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import count, islice

import numpy as np
import pytest

from support import brute_force as brute
from support import random_programs as programs
from support.campaigns import numbers
from support.tree_prefixes import least_by_prefixes
from tcgen.emit import emit_artifact
from tcgen.fusion import plan_fusion
from tcgen.fusion.placement.memory import whole_elements
from tcgen.fusion.sharing.graph import fusion_graph
from tcgen.interp import evaluate_program
from tcgen.ir.program import FormulaSequence
from tcgen.ir.tensor import Index, Space
from tcgen.lower import lower_plan
from tcgen.options import Options
from tcgen.runtime.program import Program as Compiled

# A space for each letter: arrays of five axes pass 2^53 elements.
WIDE = tuple(Index(name, Space(f"n{name}")) for name in "ijklm")
# Most loop programs that are tried.
PROGRAMS = 6000


def large(program: FormulaSequence, seed: int) -> tuple[tuple[str, int], ...]:
    rng = random.Random(seed)
    # a third of all cases near the upper end
    low = (2, 300, 2500)[seed % 3]
    return tuple(sorted((s.name, rng.randint(low, 3000)) for s in program.spaces))


def small_trees() -> Iterator[tuple[int, FormulaSequence]]:
    for seed in count():
        program = programs.random_tree(seed, 2 + seed % 3, 0.0, loops=WIDE, rank=5)
        if len(program.steps) > 1 and brute.count(program, PROGRAMS) < PROGRAMS:
            yield seed, program


def small_dags(kind: str) -> Iterator[tuple[int, FormulaSequence]]:
    shared, added = (0.0, 0.9) if kind == "accumulation" else (0.95, 0.0)
    for seed in count():
        program = brute.small_dag(seed, 3 + seed % 2, shared, added, letters=WIDE, rank=5)
        arrays = program.intermediates
        if kind == "accumulation":
            fits = any(len(program.producers(t)) > 1 for t in arrays)
        else:
            fits = any(len(program.consumers(t)) > 1 for t in arrays)
        if fits and brute.count(program, PROGRAMS) < PROGRAMS:
            yield seed, program


def sums_of(drawn: Iterator[tuple[int, FormulaSequence]]) -> list[int]:
    """Bytes of all intermediates of 30 cases, unfused: the sums that the solver has to hold."""
    return [
        8 * sum(whole_elements(t, dict(large(program, seed))) for t in program.tensors if t.is_held)
        for seed, program in islice(drawn, 30)
    ]


def larger_trees() -> Iterator[tuple[int, FormulaSequence]]:
    return ((seed, larger_tree(seed)) for seed in count())


def larger_tree(seed: int) -> FormulaSequence:
    return programs.random_tree(seed, 3 + seed % 6, 0.7, loops=WIDE, rank=5)


def test_sums_of_the_cases_pass_32_bits() -> None:
    for kind in ("accumulation", "shared"):
        assert any(n > 2**31 for n in sums_of(small_dags(kind)))
    assert sum(n > 2**31 for n in sums_of(small_trees())) > 15
    assert any(n > 2**31 for n in sums_of(larger_trees()))


def check(seed: int, program: FormulaSequence, target: str) -> None:
    """Both optima are those of all loop programs, and the code of both plans is right."""
    extents = large(program, seed)
    best = dict(zip(("memory", "peak"), brute.least(program, extents), strict=True))
    rng = np.random.default_rng(seed)
    sizes = {s.name: 2 + n % 3 for n, s in enumerate(program.spaces)}
    given = {t.name: rng.random([sizes[s.name] for s in t.spaces]) for t in program.inputs}
    wanted = evaluate_program(program, given, sizes)
    for objective, least in best.items():
        options = Options(extents=extents, objective=objective)
        plan = plan_fusion(program, options)
        plan.verify()
        assert plan.solve.status == "OPTIMAL", (seed, objective)
        assert plan.solve.value == plan.solve.bound == least, (seed, objective)
        module = lower_plan(plan, options)
        module.verify()
        compiled = Compiled(emit_artifact(module, target=target, planning_extents=extents))
        found = compiled(**given)
        for name, value in wanted.items():
            np.testing.assert_allclose(found[name], value, rtol=1e-9, err_msg=f"{seed} {objective}")


def check_many(drawn: Iterator[tuple[int, FormulaSequence]], wanted: list[int]) -> None:
    """C for every tenth case, NumPy for the others."""
    for n, (seed, program) in enumerate(islice(drawn, wanted[-1] + 1)):
        if n in wanted:
            check(seed, program, "numpy" if n % 10 else "cpu")


@pytest.mark.campaign
@pytest.mark.parametrize("kind", ["accumulation", "shared"])
def test_dags(kind: str) -> None:
    check_many(small_dags(kind), numbers(6, 150))


@pytest.mark.slow
@pytest.mark.campaign
def test_trees() -> None:
    check_many(small_trees(), numbers(8, 300))


def check_tree_memory(seed: int) -> None:
    """The static sum of a larger tree, generated inputs counted, is the dynamic program's."""
    program = larger_tree(seed)
    graph, extents = fusion_graph(program), large(program, seed)
    plan = plan_fusion(program, Options(extents=extents, objective="memory"))
    assert plan.solve.status == "OPTIMAL"
    if not graph.restricted:
        scalars = sum(t.rank == 0 for t in program.intermediates)
        least = sum(least_by_prefixes(graph, p, dict(extents)) for p in graph.parts)
        assert plan.solve.value == least + scalars, seed


@pytest.mark.campaign
def test_trees_against_the_dynamic_program() -> None:
    for seed in numbers(10, 300):
        check_tree_memory(seed)

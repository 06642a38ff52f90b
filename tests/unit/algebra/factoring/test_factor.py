"""Factoring across terms and targets: values, counts, any way of writing the terms."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tcgen
from support.campaigns import cases
from support.paths import DATA
from tcgen.algebra import form_sequence
from tcgen.algebra.equations.normal_form import NormalForms
from tcgen.algebra.equations.proven_symmetry import normalised
from tcgen.algebra.factoring.factor import factored
from tcgen.algebra.permutation_groups import aligned, stages_of
from tcgen.compiler.driver import read_system
from tcgen.frontend import read_spec
from tcgen.interp import evaluate_program, evaluate_system
from tcgen.ir.program import Add, Contract, FormulaSequence
from tcgen.ir.system import System
from tcgen.options import Options
from tcgen.simplices import parity
from tcgen.testing import assert_same_values, random_arrays, split_starts
from tcgen.testing.strategies import extents_for, systems
from tcgen.thresholds import AlgebraThresholds, PlannerThresholds, Thresholds, largest, smallest

EQS = DATA / "eqs"
HEAD = "space o occupied\nspace v virtual\nindex i j k l m n : o\nindex a b c d : v\n"
LARGE = {"o": 20, "v": 100}


@cache
def sequence(system: System, effort: int = 1) -> FormulaSequence:
    program = form_sequence(
        system, Options(byte_weight=0.0, extents=tuple(LARGE.items()), effort=effort)
    )
    program.verify()
    return program


def multiply_adds(program: FormulaSequence) -> int:
    total = 0
    for step in program.steps:
        if isinstance(step.op, Contract):
            total += step.flops.value(LARGE) // 2
    return total


def same_values(system: System, other: System | FormulaSequence, extents: dict[str, int]) -> None:
    inputs, starts = split_starts(system, random_arrays(system, extents, dtype="float64", seed=3))
    expected = evaluate_system(system, inputs, extents, out=starts)
    evaluate = evaluate_program if isinstance(other, FormulaSequence) else evaluate_system
    actual = evaluate(other, inputs, extents, out=starts)  # type: ignore[operator]
    assert_same_values(actual, expected, rtol=1e-12, atol=1e-12)


def test_the_search_ends_where_nothing_new_is_found() -> None:
    system = read_system(tcgen.spec_path("mp2_closed_shell"))
    found = []
    for effort in (100, 1000):
        said: list[str] = []
        options = Options(extents=tuple(LARGE.items()), effort=effort)
        found.append((form_sequence(system, options, said.append), len(said)))
    assert found[0] == found[1]


@pytest.mark.slow
def test_more_effort_is_never_worse() -> None:
    system = read_system(DATA / "eqs" / "rccd_sa.json")
    few = AlgebraThresholds(work_per_effort=2_000)
    planner = PlannerThresholds(algebra=few)
    costs = []
    for effort in (1, 2, 3, 4):
        options = Options(
            extents=(("o", 10), ("v", 30)),
            effort=effort,
            byte_weight=0.0,
            thresholds=Thresholds(planner=planner),
        )
        costs.append(form_sequence(system, options).flops().value({"o": 10, "v": 30}))
    assert costs == sorted(costs, reverse=True)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("ccd_so", 6.0165e10),
        ("rccd_sa", 7.6165e10),
        *(
            pytest.param(*row, marks=pytest.mark.slow)
            for row in (("ccsd_so", 6.3817e10), ("rccsd_sa", 8.046e10))
        ),
    ],
)
def test_counts_of_coupled_cluster(name: str, most: float) -> None:
    system = read_system(EQS / f"{name}.sym.json")
    program = sequence(system)
    assert multiply_adds(program) <= most
    same_values(system, program, {"o": 3, "v": 4})


@pytest.mark.slow
def test_counts_of_triples() -> None:
    system = read_system(EQS / "ccsdt_so.sym.json")
    program = sequence(system)
    assert multiply_adds(program) <= 1.05e14
    same_values(system, program, {"o": 5, "v": 6})


@cases(40, 400)
@given(system=systems(), data=st.data())
def test_factored_systems_have_the_same_values(system: System, data: st.DataObject) -> None:
    extents = data.draw(extents_for(system))
    (found,) = factored(normalised(system), extents, NormalForms(False), 1, AlgebraThresholds())
    found.verify()
    same_values(system, found, extents)


@pytest.mark.few(1)
@pytest.mark.parametrize("end", [smallest, largest])
@cases(10)
@given(system=systems(), data=st.data())
def test_values_at_both_ends_of_all_thresholds(
    end: Callable[[AlgebraThresholds], AlgebraThresholds], system: System, data: st.DataObject
) -> None:
    extents = data.draw(extents_for(system))
    thresholds = Thresholds(planner=PlannerThresholds(algebra=end(AlgebraThresholds())))
    options = Options(
        extents=tuple(sorted(extents.items())),
        cost=data.draw(st.sampled_from(("dense", "packed"))),
        thresholds=thresholds,
    )
    program = form_sequence(system, options)
    program.verify()
    same_values(system, program, extents)


@pytest.mark.parametrize("name", ["ccd_spin_orbital", "cc2_df", "mp2_closed_shell"])
def test_the_smallest_thresholds_leave_the_equations_as_written(name: str) -> None:
    system = read_system(tcgen.spec_path(name))
    thresholds = Thresholds(planner=PlannerThresholds(algebra=smallest(AlgebraThresholds())))
    extents = {s.name: 10 for s in system.spaces if not s.parts}
    options = Options(extents=tuple(sorted(extents.items())), thresholds=thresholds)
    program = form_sequence(system, options)
    assert any("more than 0" in note for note in program.notes)
    same_values(system, program, dict.fromkeys(extents, 3))


def test_common_factor_of_two_terms() -> None:
    system = read_spec(
        HEAD + "input v[v,v,v,v], t[v,v,o,o], u[v,o]\noutput r\n"
        "r[a,b,i,j] = v[a,b,c,d]*t[c,d,i,j] + v[a,b,c,d]*u[c,i]*u[d,j]\n"
    )
    contractions = [s for s in sequence(system).steps if isinstance(s.op, Contract)]
    assert len(contractions) == 2
    same_values(
        system,
        *factored(system, LARGE, NormalForms(False), 1, AlgebraThresholds()),
        {"o": 3, "v": 4},
    )


def test_product_of_two_sums() -> None:
    system = read_spec(
        HEAD + "input p[o,v], q[o,v], x[v,o], y[v,o]\noutput r\n"
        "r[i,j] = p[i,a]*x[a,j] + p[i,a]*y[a,j] + q[i,a]*x[a,j] + q[i,a]*y[a,j]\n"
    )
    assert sum(isinstance(s.op, Contract) for s in sequence(system).steps) == 1


def test_the_program_says_which_terms_are_too_long_to_factor() -> None:
    nine = "*".join(["p[i,j]"] * 9)
    system = read_spec(
        HEAD + f"input p[o,o], q[o,o]\noutput r\nr[i,j] = p[i,k]*p[k,j] + p[i,k]*q[k,j] + {nine}\n"
    )
    program = sequence(system)
    assert program.notes == ("r: 1 of 3 terms, which have more than 8 factors",)
    same_values(system, program, {"o": 3, "v": 1})
    assert sequence(read_spec(HEAD + "input p[o,o]\noutput r\nr[i,j] = p[j,i]\n")).notes == ()


def test_stages_add_up_to_the_group() -> None:
    cyclic = ((0, 1, 2), (1, 2, 0), (2, 0, 1))
    odd = ((1, 0, 2), (0, 2, 1), (2, 1, 0))
    group = tuple(sorted([(p, 1) for p in cyclic] + [(p, -1) for p in odd]))
    stages = stages_of(group)
    assert [len(s) for s in stages] == [2, 3]
    made = {
        tuple(outer[n] for n in inner): s * t for outer, s in stages[1] for inner, t in stages[0]
    }
    assert made == dict(group)


def test_terms_are_replaced_by_images_with_one_symmetry() -> None:
    """Each term has the symmetry of another pair of axes; their sum is left with that of one."""
    signs = {p: parity(p) for p in permutations(range(3))}
    group = tuple(sorted(signs.items()))
    pairs = [(1, 0, 2), (2, 1, 0), (0, 2, 1)]
    own_groups = [(((0, 1, 2), 1), (pair, -1)) for pair in pairs]
    moves, common = aligned(group, own_groups)
    assert common == own_groups[0]
    for pair, (move, sign) in zip(pairs, moves, strict=True):
        exchanged = {move[n] for n in range(3) if pair[n] != n}
        assert exchanged == {0, 1}
        assert sign == signs[move]


@pytest.mark.parametrize("cost", ["dense", "packed"])
def test_fewer_images_are_added_where_terms_are_symmetric_alike(cost: str) -> None:
    """Three images instead of 2 + 3, and an intermediate less."""
    system = read_spec(
        HEAD + "input t[o,o,o] antisymmetric (0,1)\ninput u[o,o,o] antisymmetric (1,2)\n"
        "input f[o,o], g[o,o], q[o]\ninput h[o,o] antisymmetric (0,1)\n"
        "output r[o,o,o] antisymmetric (0,1,2)\n"
        "r[i,j,k] = P(k/ij) t[i,j,l]*f[l,k] + P(j/ik) q[j]*h[i,k] + P(i/jk) g[i,l]*u[l,j,k]\n"
    )
    program = form_sequence(system, Options(extents=(("o", 4), ("v", 4)), cost=cost))
    assert sum(isinstance(s.op, Add) for s in program.steps) == 3
    assert len(program.intermediates) == 1
    same_values(system, program, {"o": 4, "v": 1})


def squared(count: int) -> str:
    steps = "".join(f"s{n + 1} = s{n}*s{n}\n" for n in range(count))
    return HEAD + f"input p[o,o]\noutput e\ns0 = p[i,j]*p[j,i]\n{steps}e = s{count}\n"


def brackets(count: int) -> str:
    names = [f"p{n}" for n in range(count)]
    product = "*".join(f"(x + sum(i) {name}[i])" for name in names)
    inputs = ", ".join(f"{name}[o]" for name in names)
    return HEAD + f"input x, {inputs}\noutput e\ne = {product}\n"


@pytest.mark.parametrize("text", [squared(4), squared(12), brackets(10), brackets(20)])
def test_names_are_kept_where_their_products_would_be_too_long(text: str) -> None:
    """Multiplied out, these are products of up to 2**13 factors, or up to 2**20 products."""
    system = read_spec(text)
    program = sequence(system)
    assert len(program.steps) < 100
    assert any("not multiplied out" in note for note in program.notes)
    same_values(system, program, {"o": 2, "v": 1})


@pytest.mark.slow
def test_terms_with_many_equal_factors_take_no_part() -> None:
    left = "i,j,k,l,m,n,i1"
    product = "*".join(f"p[{x}]" for x in left.split(","))
    system = read_spec(HEAD + f"input p[o]\noutput r\nr[{left}] = {product}\n")
    program = sequence(system)
    assert "r: 1 of 1 terms, which have equal factors in more than 720 orders" in program.notes
    same_values(system, program, {"o": 2, "v": 1})


@pytest.mark.slow
def test_deep_chains_of_functions_become_several_steps() -> None:
    chain = "".join(f"s{n + 1}[i] = cos(s{n}[i])\n" for n in range(120))
    system = read_spec(HEAD + f"input p[o]\noutput e\ns0[i] = p[i]\n{chain}e = s120[i]*p[i]\n")
    program = sequence(system)
    assert 2 <= len(program.steps) <= 6
    p = np.array([0.2, 1.3, 2.1])
    wanted = p
    for _ in range(120):
        wanted = np.cos(wanted)
    found = evaluate_program(program, {"p": p}, {"o": 3, "v": 1})["e"]
    np.testing.assert_allclose(found, wanted @ p, rtol=1e-12)

"""Objectives memory, peak and linear: exact on small programs, right as code, checked apart."""

from __future__ import annotations

import random
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tcgen
import tcgen.fusion.memory.large_programs as grow
import tcgen.fusion.memory.objective as objectives
import tcgen.fusion.sharing.dependences as dependences
import tcgen.fusion.solver.loop_constraints as rules
import tcgen.fusion.solver.memory_model as model
from support import brute_force as brute
from support import random_programs as programs
from support.campaigns import cases
from tcgen.algebra import form_sequence
from tcgen.compiler.driver import read_system
from tcgen.emit import emit_artifact
from tcgen.errors import VerifyError
from tcgen.fusion import plan_fusion
from tcgen.fusion.memory.descent import Descent
from tcgen.fusion.memory.objective import least_value
from tcgen.fusion.placement.memory import live_ranges, once_elements, pack
from tcgen.fusion.placement.nest import place_arrangement
from tcgen.fusion.placement.plan import build_plan, shared_axes
from tcgen.fusion.sharing.candidates import fusion_candidates
from tcgen.fusion.sharing.graph import fusion_graph
from tcgen.interp import evaluate_program, run_module
from tcgen.ir.plan import Solve
from tcgen.ir.program import Contract, FormulaSequence
from tcgen.ir.tensor import Role
from tcgen.lower import lower_plan
from tcgen.options import Options
from tcgen.records.arena import Block
from tcgen.resources import spec_path
from tcgen.runtime.program import Program as Compiled
from tcgen.thresholds import PlannerThresholds, Thresholds
from tcgen.thresholds.planner import DescentThresholds, FusionThresholds, MemoryThresholds

seeds = st.integers(0, 2**32)


def planned(program: FormulaSequence, extents, objective: str, thresholds=FusionThresholds()):
    wanted = Thresholds(planner=PlannerThresholds(fusion=thresholds))
    plan = plan_fusion(program, Options(extents=extents, objective=objective, thresholds=wanted))
    plan.verify()
    assert plan.solve.objective == objective
    return plan


def arrays(program: FormulaSequence, extents, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    sizes = dict(extents)
    return {
        t.name: rng.random([sum(sizes[b.name] for b in s.bases) for s in t.spaces])
        for t in program.inputs
    }


def check_optimum(seed: int, statements: int, limit: int) -> None:
    program = brute.small_dag(seed, statements)
    if brute.count(program, limit) >= limit:
        return
    rng = random.Random(seed)
    extents = (("o", rng.randint(2, 3000)), ("v", rng.randint(2, 3000)))
    static, peak, saved = brute.optima(program, extents)
    for objective, best, count in (
        ("memory", static, brute.static_sum),
        ("peak", peak, brute.greatest_sum),
        ("linear", saved, brute.saved),
    ):
        plan = planned(program, extents, objective)
        assert plan.solve.status == "OPTIMAL", seed
        assert plan.solve.value == plan.solve.bound == best == count(plan), (seed, objective)


def check_values(program: FormulaSequence, seed: int) -> None:
    extents = (("o", 3), ("v", 4))
    given_arrays = arrays(program, extents, seed)
    wanted = evaluate_program(program, given_arrays, dict(extents))
    for objective in ("memory", "peak", "linear"):
        module = lower_plan(planned(program, extents, objective), Options())
        module.verify()
        found = run_module(module, given_arrays, dict(extents))
        for name, value in wanted.items():
            np.testing.assert_allclose(found[name], value, rtol=1e-10, err_msg=f"{seed} {name}")


@cases(60, 600)
@given(seeds, st.integers(2, 4))
def test_optimum_is_that_of_all_loop_programs(seed, statements):
    check_optimum(seed, statements, 3000)


@pytest.mark.parametrize("close", [0.0, 0.2])
def test_searches_over_some_arrays_bound_the_optimum(close, monkeypatch):
    """A few arrays give a bound that holds for all, and arrays join until the peak is proven."""
    # The descent alone would nearly always do: it has no trials here.
    memory = MemoryThresholds(direct_constraints=-1, close=close, first_trials=0, part_trials=0)
    constraints = 200_000 if close == 0 else -1
    thresholds = FusionThresholds(memory=memory, solver_constraints=constraints)
    of_part, searches = grow.solve_part, []

    def counted(*given, **more):
        searches.append(of_part(*given, **more))
        return searches[-1]

    monkeypatch.setattr(grow, "solve_part", counted)
    extents, total = (("o", 2), ("v", 50)), 0
    for seed in range(40):
        program = brute.small_dag(seed, 4, 0.8, 0.5)
        if brute.count(program, 2000) >= 2000:
            continue
        searches.clear()
        solve, (_, peak) = (
            planned(program, extents, "peak", thresholds).solve,
            brute.least(program, extents),
        )
        total += len(searches)
        assert all(s.bound <= peak for s in searches), seed
        assert solve.bound <= peak <= solve.value, seed
        if not close:
            assert solve.status == "OPTIMAL", seed
    assert total > 5, total


@cases(40, 400)
@given(seeds, st.integers(2, 4))
def test_descent_is_legal_counts_right_and_is_never_below_the_optimum(seed, statements):
    program, extents = brute.small_dag(seed, statements, 0.7, 0.3), (("o", 2), ("v", 50))
    if brute.count(program, 2000) >= 2000:
        return
    graph = fusion_graph(program)
    found = fusion_candidates(graph)
    weights = dict.fromkeys(range(len(found.instances)), 8)
    descent = Descent(found, weights, dict(extents), DescentThresholds())
    best = descent.improve(descent.nested(()), 200)
    placed = place_arrangement(found, best.arrangement)
    plan = build_plan(graph, placed, shared_axes(found, placed), extents, "float64", Solve(), 2**24)
    plan.verify()
    assert least_value(plan, "float64", peak=True) == best.peak
    assert best.peak >= brute.least(program, extents)[1]
    again = descent.from_arrangement(best.arrangement)
    assert again is not None
    assert again.peak == best.peak
    less = descent.shrink(descent.nested(()))
    placed = place_arrangement(found, less.arrangement)
    plan = build_plan(graph, placed, shared_axes(found, placed), extents, "float64", Solve(), 2**24)
    plan.verify()
    assert 8 * least_value(plan, "float64", peak=False) == less.static
    assert less.static >= 8 * brute.least(program, extents)[0]


@cases(12, 300)
@given(seeds, st.integers(1, 6))
def test_plans_of_dags_compute_the_program(seed, length):
    check_values(programs.random_dag(seed, length), seed)


@cases(10, 200)
@given(seeds, st.integers(3, 7))
def test_plans_of_shared_arrays_compute_the_program(seed, statements):
    check_values(brute.small_dag(seed, statements, 0.8, 0.5), seed)


@cases(25, 250)
@given(seeds, st.integers(2, 6))
def test_trees_take_no_more_than_the_linear_plan(seed, leaves):
    program = programs.random_tree(seed, leaves)
    extents = (("o", 7), ("v", 30))

    def taken(plan) -> int:
        counted = once_elements(plan).items()
        return sum(n for a, n in counted if a.tensor.role is not Role.OUTPUT)

    least, peak = (planned(program, extents, o) for o in ("memory", "peak"))
    assert least.solve.value == taken(least) <= taken(planned(program, extents, "linear"))
    assert peak.solve.value <= 8 * least.solve.value
    assert peak.arena <= peak.solve.value
    lives = [(a, life) for a, life in live_ranges(peak) if a.offset is not None]
    for n, (a, one) in enumerate(lives):
        for b, two in lives[:n]:
            if one[0] <= two[1] and two[0] <= one[1]:
                assert a.offset + a.bytes <= b.offset or b.offset + b.bytes <= a.offset


@pytest.mark.few(5)
@pytest.mark.parametrize("objective", ["memory", "peak"])
@pytest.mark.parametrize("seed", range(0, 40, 8))
def test_generated_c_is_right(seed, objective):
    program = brute.small_dag(seed, 5, 0.8, 0.5)
    extents = (("o", 3), ("v", 4))
    plan = planned(program, extents, objective)
    module = lower_plan(plan, Options())
    compiled = Compiled(emit_artifact(module, target="cpu", planning_extents=plan.extents))
    given_arrays = arrays(program, extents, seed)
    found = compiled(**given_arrays)
    for name, value in evaluate_program(program, given_arrays, dict(extents)).items():
        np.testing.assert_allclose(found[name], value, rtol=1e-10)


@pytest.mark.slow
def test_every_loop_program_that_the_checker_accepts_is_right():
    """Loop programs of some DAGs, executed where the checker accepts them; it refuses many."""
    right = wrong = 0
    extents = (("o", 2), ("v", 3))
    for seed in range(30):
        program = brute.small_dag(seed, 3, 0.8, 0.5)
        given_arrays = arrays(program, extents, seed)
        wanted = evaluate_program(program, given_arrays, dict(extents))
        for plan in islice(brute.programs(program, extents), 60):
            if brute.legal(plan):
                module = lower_plan(plan, Options())
                found = run_module(module, given_arrays, dict(extents))
                for name, value in wanted.items():
                    np.testing.assert_allclose(found[name], value, rtol=1e-10, err_msg=str(seed))
                right += 1
            else:
                wrong += 1
    assert right > 200
    assert wrong > 50


def _all_pairs(maker, reader, **_):
    return frozenset((i, j) for i in maker.indices for j in reader.indices if i.space == j.space)


# How each rule of the model is left out.
RULES = {
    "index pairs": "_index_pairs",
    "one loop is an equivalence": "_relate",
    "nested or apart": "_nest",
    "intervals": "_keep_together",
}


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_left_out_of_the_model_is_noticed(rule, monkeypatch):
    """The checker refuses the plan, or it is no longer the least one."""
    # Loops that overlap and orders without intervals are rare, and reach the checker only from the
    # objective of orders.
    orders = {"intervals": (4, 16, 75, 85), "nested or apart": (2, 5, 19, 25)}
    seeds, objective = (orders[rule], "peak") if rule in orders else (range(40), "memory")
    cases = [brute.small_dag(seed, 6, 0.9, 0.1) for seed in seeds]
    extents = (("o", 20), ("v", 30))
    least = [planned(program, extents, objective).solve.value for program in cases]
    if rule == "index pairs":
        monkeypatch.setattr(dependences, "_index_pairs", _all_pairs)
        monkeypatch.setattr(rules, "pairs_of", _any_pairs)
    else:
        monkeypatch.setattr(model.FusionModel, RULES[rule], lambda self: None)
    refused = other = 0
    for program, value in zip(cases, least, strict=True):
        try:
            found = planned(program, extents, objective).solve
        except VerifyError:
            refused += 1
        else:
            other += found.value != value or found.bound != value
    assert refused + other > 0


@pytest.mark.parametrize("direct", [10_000, -1])
def test_loops_that_overlap_are_not_both_shared(direct, monkeypatch):
    """Models without an order may leave overlaps to uses that they lack; here they always do."""
    thresholds = FusionThresholds(memory=MemoryThresholds(direct_constraints=direct))
    cases = [brute.small_dag(seed, 6, 0.9, 0.1) for seed in range(40)]
    extents = (("o", 20), ("v", 30))
    least = [planned(program, extents, "memory").solve.value for program in cases]
    monkeypatch.setattr(model.FusionModel, "_nest", lambda self: None)
    monkeypatch.setattr(model.FusionModel, "exclude", lambda self, cycle: False)
    # With an order the rule is needed.
    monkeypatch.setattr(objectives._Progress, "exactly", lambda self, *, peak: None)
    for program, value in zip(cases, least, strict=True):
        solve = planned(program, extents, "memory", thresholds).solve
        assert solve.bound <= value <= solve.value


@pytest.mark.slow
def test_loops_of_a_long_program_do_not_overlap():
    extents = (("o", 4), ("v", 10))
    program = form_sequence(read_system(spec_path("ccsd_closed_shell")), Options(extents))
    planned(program, extents, "memory")
    linear = planned(program, extents, "linear")
    assert 0 < linear.solve.value == brute.saved(linear) <= linear.solve.bound


def _any_pairs(found):
    groups = found.groups
    return tuple(
        (a, b)
        for group in groups
        for n, a in enumerate(group)
        for b in group[n + 1 :]
        if a[0] != b[0]
    )


def test_an_array_read_with_exchanged_indices_stays_whole(hand_plans):
    """x[i,j]*x[j,i] needs every element before the first product is done."""
    h = hand_plans
    b, x = h.tensor("b", h.P, h.I), h.tensor("x", h.I, h.I, role=Role.TEMP)
    e = h.tensor("e", role=Role.OUTPUT)
    program = h.program(
        "exchange",
        (b,),
        (h.at(x, h.i, h.i2), Contract(h.at(b, h.p, h.i), h.at(b, h.p, h.i2)), (h.p,)),
        (h.at(e), Contract(h.at(x, h.i, h.i2), h.at(x, h.i2, h.i)), (h.i, h.i2)),
    )
    plan = planned(program, (("i", 5), ("p", 3)), "memory")
    assert (plan.solve.value, plan.solve.model, plan.loops) == (25, "dag", ())


def test_a_statement_that_only_stands_between_two_members_may_be_in_their_loop(hand_plans):
    """r += b*b reads nothing of x, yet it is added between the two products of x."""
    h = hand_plans
    b, x = h.tensor("b", h.I), h.tensor("x", h.I, role=Role.TEMP)
    r = h.tensor("r", h.I, role=Role.OUTPUT)
    of_x = Contract(h.at(x, h.i), h.at(b, h.i))
    program = h.program(
        "between",
        (b,),
        (h.at(x, h.i), Contract(h.at(b, h.i), h.at(b, h.i)), ()),
        (h.at(r, h.i), of_x, ()),
        (h.at(r, h.i2), Contract(h.at(b, h.i2), h.at(b, h.i2)), ()),
        (h.at(r, h.i), of_x, ()),
    )
    extents = (("i", 5), ("p", 3))
    assert brute.least(program, extents) == (1, 8)
    assert [planned(program, extents, o).solve.value for o in ("memory", "peak")] == [1, 8]


def test_memory_of_large_programs_is_bounded_by_the_peak():
    by_parts = FusionThresholds(memory=MemoryThresholds(static_constraints=-1))
    extents = (("o", 20), ("v", 30))
    for seed in range(12):
        program = brute.small_dag(seed, 5, 0.8, 0.3)
        least = planned(program, extents, "memory").solve.value
        solve = planned(program, extents, "memory", by_parts).solve
        assert solve.bound <= least <= solve.value, seed
        most = planned(program, extents, "linear").solve.value
        solve = planned(program, extents, "linear", by_parts).solve
        assert solve.value <= most <= solve.bound, seed


def test_two_loops_that_need_each_other_are_not_both_shared(hand_plans, monkeypatch):
    """x and y could each shrink, but each one's last reader needs the other one's first."""
    h = hand_plans
    b, c = h.tensor("b", h.I), h.tensor("c", h.P)
    x, y = h.tensor("x", h.I, role=Role.TEMP), h.tensor("y", h.P, role=Role.TEMP)
    u, v = h.tensor("u", role=Role.TEMP), h.tensor("v", role=Role.TEMP)
    r, s = h.tensor("r", role=Role.OUTPUT), h.tensor("s", role=Role.OUTPUT)
    program = h.program(
        "crossed",
        (b, c),
        (h.at(x, h.i), Contract(h.at(b, h.i), h.at(b, h.i)), ()),
        (h.at(u), Contract(h.at(x, h.i), h.at(b, h.i)), (h.i,)),
        (h.at(y, h.p), Contract(h.at(c, h.p), h.at(c, h.p)), ()),
        (h.at(v), Contract(h.at(y, h.p), h.at(c, h.p)), (h.p,)),
        (h.at(r), Contract(h.at(x, h.i), h.at(v)), (h.i,)),
        (h.at(s), Contract(h.at(y, h.p), h.at(u)), (h.p,)),
    )
    extents = (("i", 50), ("p", 30))
    excluded, exclude = [], objectives._exclude
    with monkeypatch.context() as patch:
        patch.setattr(
            objectives, "_exclude", lambda *given: excluded.append(given[1]) or exclude(*given)
        )
        assert planned(program, extents, "memory").solve.value == 1 + 30 + 1 + 1
    assert excluded  # the loops alone would take 4 elements
    assert brute.least(program, extents)[0] == 33


def test_sums_beyond_53_bits_are_exact():
    extents = (("o", 300_000_007), ("v", 100_000_007))
    for seed in range(12):
        program = brute.small_dag(seed, 3)
        static, peak = brute.least(program, extents)
        assert planned(program, extents, "memory").solve.value == static
        assert planned(program, extents, "peak").solve.value == peak


def test_offsets_reach_the_peak_where_first_fit_does_not():
    rng = random.Random(3)
    for _ in range(20):
        rows = []
        for n in range(14):
            first = rng.randint(0, 10)
            rows.append(Block(f"{n}", 8 * rng.randint(1, 60), first, rng.randint(first, 12)))
        found = pack(tuple(rows), 1.0)
        for n, (a, (_, at)) in enumerate(zip(rows, found.offsets, strict=True)):
            assert at + a.bytes <= found.total
            for b, (_, to) in zip(rows[:n], found.offsets[:n], strict=True):
                apart = a.last < b.first or b.last < a.first
                assert apart or at + a.bytes <= to or to + b.bytes <= at
        peak = max(sum(a.bytes for a in rows if a.first <= t <= a.last) for t in range(13))
        assert found.total == peak
    assert pack((), 1.0).total == 0


@pytest.mark.parametrize("objective", ["memory", "peak"])
def test_producers_of_an_array_whose_diagonal_is_read_walk_the_same_axis(objective: str) -> None:
    """Else a loop may hold all of them, none of which computes what the others add to."""
    program = tcgen.compile(
        """
        space o = 7
        index i j k : o
        input A[o,o], y[o]
        output e
        p[j,i,k] = A[k,j]*y[i]
        t[j,i,k] = S(i,k) p[j,i,k]
        x[i] = sum(k) t[k,i,i]
        e = x[i]*A[i,i]
        """,
        target="numpy",
        objective=objective,
        optimize=False,
    )
    a, y = np.arange(9.0).reshape(3, 3), np.arange(3.0)
    wanted = 2 * np.einsum("ik,i,ii->", a, y, a)
    np.testing.assert_allclose(program(A=a, y=y)["e"], wanted)

"""The peak of trees: prefixes and profiles against loop programs, the solver and all orders."""

from __future__ import annotations

from itertools import count, islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import brute_force as brute
from support import random_programs as programs
from support.campaigns import cases
from tcgen.fusion.memory.objective import least_value
from tcgen.fusion.memory.tree_fusions import end_of, merged, no_worse, peak_of, profile_of
from tcgen.fusion.memory.tree_peak import least_tree_peak
from tcgen.fusion.placement.nest import place_arrangement
from tcgen.fusion.placement.plan import build_launches, shared_axes
from tcgen.fusion.sharing.candidates import Arrangement, fusion_candidates
from tcgen.fusion.sharing.graph import fusion_graph
from tcgen.fusion.solver.memory_model import FusionModel
from tcgen.ir.plan import Solve
from tcgen.ir.program import FormulaSequence
from tcgen.thresholds.planner import TreeThresholds

EXTENTS = (("o", 3), ("v", 50))
rows = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=4)


def some_trees(leaves: int, generated: float):
    for seed in count():
        program = programs.random_tree(seed, 2 + seed % leaves, generated)
        if not fusion_graph(program).restricted and len(program.steps) > 2:
            yield seed, program


def searched(program: FormulaSequence, effort: int = 8, **thresholds):
    found, thresholds = fusion_candidates(fusion_graph(program)), TreeThresholds(**thresholds)
    weights = dict.fromkeys(range(len(found.instances)), 8)
    start = Arrangement((), ())
    best = least_tree_peak(found, weights, dict(EXTENTS), start, effort, thresholds)
    return found, weights, best


def value_of(found, arrangement: Arrangement) -> int:
    placed, graph = place_arrangement(found, arrangement), found.graph
    axes = shared_axes(found, placed)
    plan = build_launches(graph, placed, axes, EXTENTS, "float64", Solve())
    plan.verify()
    return least_value(plan, "float64", peak=True)


def curve(steps) -> list[tuple[int, int, tuple[int, ...]]]:
    """Peaks and what is left after each of some steps, which add and then free something."""
    held, found = 0, []
    for n, (more, less) in enumerate(steps):
        top = held + more
        held = max(0, top - less)
        found.append((top, held, (n,)))
    return found


def all_merges(one, other):
    if not one or not other:
        yield (*one, *other)
        return
    for rest in all_merges(one[1:], other):
        yield (one[0], *rest)
    for rest in all_merges(one, other[1:]):
        yield (other[0], *rest)


def changes(segments):
    held = 0
    for hill, valley, _ in segments:
        yield hill - held, valley - held
        held = valley


def peak_of_changes(rows) -> int:
    held = top = 0
    for hill, change in rows:
        top, held = max(top, held + hill), held + change
    return top


@cases(100)
@given(rows, rows)
def test_merged_profiles_take_no_more_than_any_order(one, other):
    left, right = curve(one), curve(other)
    found = merged(profile_of(left), profile_of(right))
    orders = all_merges(tuple(changes(left)), tuple(changes(right)))
    assert peak_of(found) == min(map(peak_of_changes, orders))
    assert end_of(found) == end_of(tuple(left)) + end_of(tuple(right))


@cases(100)
@given(rows, rows, rows)
def test_a_profile_that_is_no_worse_takes_no_more_beside_any_other(one, other, third):
    left, right, beside = (profile_of(curve(steps)) for steps in (one, other, third))
    assert no_worse(left, left)
    if no_worse(left, right):
        a, b = merged(left, beside), merged(right, beside)
        assert peak_of(a) <= peak_of(b)
        assert end_of(a) <= end_of(b)


@pytest.mark.slow
def test_the_peak_of_trees_is_that_of_all_loop_programs():
    cases = 0
    for seed, program in islice(some_trees(3, 0.0), 45):
        if brute.count(program, 1000) >= 1000:
            continue
        found, _, best = searched(program)
        assert best.proven, seed
        assert best.bound == brute.least(program, EXTENTS)[1], seed
        assert value_of(found, best.arrangement) == best.bound, seed
        cases += 1
    assert cases > 15


@pytest.mark.slow
def test_the_peak_of_trees_with_generated_inputs_is_that_of_the_solver():
    others = 0
    for seed, program in islice(some_trees(4, 0.8), 20):
        found, weights, best = searched(program)
        if best.arrangement is None:  # two instances of an input would live at one time
            others += 1
            continue
        hint = Arrangement((), ())
        model = FusionModel(found, weights, dict(EXTENTS), hint, peak=True, ordered=True)
        exact = model.solve(10.0)
        assert exact.proven, seed
        assert best.proven, seed
        assert exact.bound == best.bound == value_of(found, best.arrangement), seed
    assert others < 10


@pytest.mark.parametrize("work", [0, 1500])
def test_a_search_that_is_cut_short_states_a_bound(work):
    for seed, program in islice(some_trees(9, 1.0), 8):
        found, _, best = searched(program, 1, steps=work)
        _, _, last = searched(program, 1, steps=10**7)
        if best.arrangement is None:
            continue
        assert last.proven, seed
        assert best.bound <= last.bound <= value_of(found, best.arrangement), seed
        assert best.proven == (best.bound == value_of(found, best.arrangement)), seed

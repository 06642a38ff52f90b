"""Random programs: every plan passes the checker, and trees are solved to optimality."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from support import random_programs as programs
from support.campaigns import cases
from tcgen.fusion import plan_fusion
from tcgen.fusion.linear import path_inequalities, savings, solve_linear, variables
from tcgen.fusion.placement.memory import static_elements
from tcgen.fusion.placement.nest import place_nodes
from tcgen.fusion.placement.plan import build_plan, fused_axes
from tcgen.fusion.sharing.graph import fusion_graph
from tcgen.ir.plan import Solve
from tcgen.ir.program import Add, Contract, Produce
from tcgen.ir.tensor import Role
from tcgen.options import Options
from tcgen.thresholds.planner import FusionThresholds

seeds = st.integers(0, 2**32)
extents = st.tuples(st.integers(1, 12), st.integers(1, 60)).map(
    lambda e: (("o", e[0]), ("v", e[1]))
)


def laminar(graph, fused) -> bool:
    """Theorem 1, from its words: chains of two loops are apart or nested."""
    chains: list[tuple[int, set[int]]] = []
    for e, loop in fused:
        nodes = {graph.edges[e].producer, graph.edges[e].consumer}
        met = [c for c in chains if c[0] == loop and c[1] & nodes]
        chains = [c for c in chains if c not in met] + [(loop, nodes.union(*(c[1] for c in met)))]
    return all(
        not (a & b) or a <= b or b <= a
        for n, (j, a) in enumerate(chains)
        for k, b in chains[:n]
        if j != k
    )


def check_small_tree(seed: int, leaves: int, sizes) -> None:
    graph = fusion_graph(programs.random_tree(seed, leaves))
    best = 0
    for part in graph.parts:
        order = variables(graph, part)
        if len(order) > 11:
            return
        rules = path_inequalities(graph, part)
        weights = savings(graph, part, dict(sizes))
        values = []
        for choice in product((0, 1), repeat=len(order)):
            fused = tuple(v for v, on in zip(order, choice, strict=True) if on)
            legal = laminar(graph, fused)
            assert legal == all(r.holds(fused) for r in rules), (seed, fused)
            if legal:
                values.append(sum(weights[v] for v in fused))
        best += max(values)
    found = solve_linear(graph, dict(sizes), 2.0)
    assert found.value == found.bound == best


def check_legal_plans(program, sizes) -> None:
    for objective in ("none", "linear"):
        options = Options(extents=sizes, objective=objective)
        plan = plan_fusion(program, options)
        plan.verify()
        assert plan == plan_fusion(program, options)
        if objective == "none":
            assert plan.solve.value == static_elements(plan)
        else:
            assert plan.solve.status == "OPTIMAL"


@cases(40, 600)
@given(seeds, st.integers(2, 4), extents)
def test_inequalities_are_theorem_1_and_the_optimum_is_exact(seed, leaves, sizes):
    check_small_tree(seed, leaves, sizes)


@cases(40, 600)
@given(seeds, st.integers(2, 6), extents)
def test_plans_of_trees_pass_the_checker(seed, leaves, sizes):
    check_legal_plans(programs.random_tree(seed, leaves), sizes)


@cases(30, 600)
@given(seeds, st.integers(1, 8), extents)
def test_plans_of_dags_pass_the_checker(seed, length, sizes):
    check_legal_plans(programs.random_dag(seed, length), sizes)


@cases(15, 200)
@given(seeds, st.integers(2, 4), st.data())
def test_every_legal_choice_becomes_a_plan_that_passes_the_checker(seed, leaves, data):
    graph = fusion_graph(programs.random_tree(seed, leaves, generated=0.3))
    rules = [r for part in graph.parts for r in path_inequalities(graph, part)]
    order = [v for part in graph.parts for v in variables(graph, part)]
    for _ in range(20):
        fused = tuple(v for v in order if data.draw(st.booleans()))
        if all(r.holds(fused) for r in rules):
            sizes = (("o", 3), ("v", 4))
            placed, axes = place_nodes(graph, fused), fused_axes(graph, fused)
            build_plan(graph, placed, axes, sizes, "float64", Solve(), 2**24).verify()


def test_savings_beyond_int64_are_solved_with_a_bound():
    sizes = (("o", 3_000_000), ("v", 10_000_000))
    for seed in range(6):
        graph = fusion_graph(programs.random_tree(seed, 5))
        found = solve_linear(graph, dict(sizes), 2.0)
        weights = {v: w for p in graph.parts for v, w in savings(graph, p, dict(sizes)).items()}
        assert found.value == sum(weights[v] for v in found.fused)
        assert found.value <= found.bound <= sum(weights.values())
        assert found.bound - found.value <= max(found.bound // 2**40, 0)


def test_a_large_generated_input_is_tiled_below_the_budget(hand_plans):
    program = hand_plans.generated_tile().program
    sizes = (("j", 3000), ("l", 5), ("p", 3000))
    budget = FusionThresholds().generated_tile_bytes
    plan = plan_fusion(program, Options(extents=sizes, objective="none"))
    plan.verify()
    tile = next(a for a in plan.arrays if a.tensor.role is Role.GENERATED)
    assert budget // 2 < tile.bytes <= budget
    sizes = (("j", 3_000_000), ("l", 5), ("p", 3000))
    plan = plan_fusion(program, Options(extents=sizes, objective="none"))
    plan.verify()
    tile = next(a for a in plan.arrays if a.tensor.role is Role.GENERATED)
    assert len(tile.contracted) == 2
    assert tile.bytes <= budget


def test_long_programs_are_solved_to_optimality_within_the_default_work():
    sizes = (("o", 10), ("v", 40))
    program = programs.random_dag(0, 120)
    assert len(program.steps) > 100
    check_legal_plans(program, sizes)


def test_two_generated_inputs_without_a_common_index(hand_plans):
    h = hand_plans
    A, B = h.tensor("A", h.I, role=Role.GENERATED), h.tensor("B", h.J, role=Role.GENERATED)
    X = h.tensor("X", h.I, h.J, role=Role.OUTPUT)
    program = h.program(
        "outer",
        (A, B),
        (h.at(A, h.i), Produce(A), ()),
        (h.at(B, h.j), Produce(B), ()),
        (h.at(X, h.i2, h.j2), Contract(h.at(A, h.i2), h.at(B, h.j2)), ()),
    )
    # Both cannot be fused without repeating one; that one is fetched again in the other's loop.
    for objective, saved in (("none", None), ("linear", 6)):
        plan = plan_fusion(program, Options(extents=(("i", 5), ("j", 7)), objective=objective))
        plan.verify()
        held = {a.tensor.name: a for a in plan.arrays}
        assert held["A"].contracted
        assert held["B"].contracted
        assert sum(bool(v.redundant) for v in plan.visits) == 1
        assert saved is None or plan.solve.value == saved


def test_a_generated_input_read_by_two_steps_is_produced_for_each(hand_plans):
    h = hand_plans
    G = h.tensor("G", h.I, h.J, role=Role.GENERATED)
    X, Y = h.tensor("X", h.I, role=Role.OUTPUT), h.tensor("Y", h.J, role=Role.OUTPUT)
    program = h.program(
        "twice",
        (G,),
        (h.at(G, h.i, h.j), Produce(G), ()),
        (h.at(X, h.i2), Add(h.at(G, h.i2, h.j)), (h.j,)),
        (h.at(Y, h.j), Add(h.at(G, h.i, h.j)), (h.i,)),
    )
    for objective in ("none", "linear"):
        plan = plan_fusion(program, Options(extents=(("i", 5), ("j", 7)), objective=objective))
        plan.verify()
        assert [v.step for v in plan.visits] == [0, 1, 0, 2]
        assert plan.solve.model == "tree"

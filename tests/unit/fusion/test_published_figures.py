"""Figures 1, 2 and 5 of Allam et al., reproduced number by number."""

from __future__ import annotations

import re
import signal
import threading
from itertools import compress, product
from math import prod

import pytest

from support.messages import mentions
from tcgen.algebra import form_sequence
from tcgen.errors import ExtentError
from tcgen.frontend.spec.reader import read_spec
from tcgen.fusion import plan_fusion
from tcgen.fusion.linear import path_inequalities, savings, variables
from tcgen.fusion.placement.memory import array_elements, static_elements, whole_elements
from tcgen.fusion.sharing.graph import fusion_graph
from tcgen.fusion.solver.cp_sat import interruptible_solve
from tcgen.ir.plan import GroupKind, Place
from tcgen.ir.program import Add, Contract, FormulaSequence, Produce
from tcgen.ir.tensor import Role
from tcgen.options import Options

EXTENTS = (("i", 10), ("j", 10), ("k", 12), ("l", 10))
OBJECTIVE = "90 90 9 1080 1100 1080 110 108 108 110"
FIGURE_5 = """
x1 - x2 + x3 <= 1
- x1 + x2 - x3 <= 1
x4 - x5 - x9 + x10 <= 1
- x4 + x5 + x9 - x10 <= 1
- x7 - x9 + x10 <= 1
x7 + x9 - x10 <= 1
x4 - x6 - x9 <= 1
- x4 + x6 + x9 <= 1
- x8 - x9 <= 1
x8 + x9 <= 1
x5 - x6 - x10 <= 1
- x5 + x6 + x10 <= 1
x7 - x8 - x10 <= 1
- x7 + x8 + x10 <= 1
x4 - x5 + x7 <= 1
- x4 + x5 - x7 <= 1
x3 - x9 + x10 <= 1
- x3 + x9 - x10 <= 1
x3 - x4 + x5 + x10 <= 2
- x3 + x4 - x5 + x9 <= 2
x3 + x7 + x10 <= 2
- x3 - x7 + x9 <= 2
x4 - x6 + x8 <= 1
- x4 + x6 - x8 <= 1
x5 - x6 - x7 + x8 <= 1
- x5 + x6 + x7 - x8 <= 1
"""


@pytest.fixture
def figure_1(hand_plans) -> FormulaSequence:
    h = hand_plans
    A = h.tensor("A", h.I, h.J, role=Role.GENERATED)
    B = h.tensor("B", h.J, h.K, h.L, role=Role.GENERATED)
    C = h.tensor("C", h.K, h.L, role=Role.GENERATED)
    f1, f2 = h.tensor("f1", h.J, role=Role.TEMP), h.tensor("f2", h.J, h.K, role=Role.TEMP)
    W = h.tensor("W", h.K, role=Role.OUTPUT)
    i, j, j2, k, l = h.i, h.j, h.j2, h.k, h.l
    return h.program(
        "figure_1",
        (A, B, C),
        (h.at(A, i, j), Produce(A), ()),
        (h.at(B, j, k, l), Produce(B), ()),
        (h.at(C, k, l), Produce(C), ()),
        (h.at(f1, j), Add(h.at(A, i, j)), (i,)),
        (h.at(f2, j2, k), Contract(h.at(B, j2, k, l), h.at(C, k, l)), (l,)),
        (h.at(W, k), Contract(h.at(f1, j), h.at(f2, j, k)), (j,)),
    )


def _parse(line: str) -> tuple[frozenset[tuple[int, int]], int]:
    terms = re.findall(r"(-?) ?x(\d+)", line)
    return frozenset((int(n), -1 if s else 1) for s, n in terms), int(line.split("<=")[1])


def test_figure_5_constraints_and_coefficients(figure_1):
    graph = fusion_graph(figure_1)
    (part,) = graph.parts
    number = {v: n for n, v in enumerate(variables(graph, part), 1)}
    found = [
        (frozenset((number[v], c) for v, c in r.terms), r.bound)
        for r in path_inequalities(graph, part)
    ]
    paper = [_parse(line) for line in FIGURE_5.strip().splitlines()]
    assert len(paper) == len(found) == 26
    assert set(found) == set(paper)
    assert len(set(found)) == 26
    assert sum(r.vacuous for r in path_inequalities(graph, part)) == 11
    weights = savings(graph, part, dict(EXTENTS))
    assert " ".join(str(weights[v]) for v in number) == OBJECTIVE


def test_figure_1_plan_takes_23_elements(figure_1):
    plan = plan_fusion(figure_1, Options(extents=EXTENTS, objective="linear"))
    plan.verify()
    assert (plan.solve.value, plan.solve.bound, plan.solve.unit) == (3768, 3768, "saved_elements")
    assert (plan.solve.status, plan.solve.model) == ("OPTIMAL", "tree")
    assert static_elements(plan) == 23
    assert plan.arena == 23 * 8
    # Every loop encloses the production of a generated input, so all of them run on the host.
    assert all(g.host_loops == plan.visits[g.visits[0]].loops for g in plan.groups)


SECTION_4_3 = """
space I = 10
space J = 15
space K = 20
space M = 1000
index i : I
index j : J
index k : K
index m : M
input U[M,J], D[M,I], V[K]
output X
L[m,j] = U[m,j]*U[m,j]
A[i,j] = L[m,j]*D[m,i]
B[k] = V[k]*V[k]
X[i,j,k] = A[i,j]*B[k]
"""


def test_equation_10_chooses_as_section_4_3_says():
    """A can fuse only j, since L fuses m and j; j of A and k of B exclude each other."""
    options = Options(objective="linear", optimize=False)
    program = form_sequence(read_spec(SECTION_4_3), options)
    graph, extents = fusion_graph(program), {"I": 10, "J": 15, "K": 20, "M": 1000}
    order = [v for part in graph.parts for v in variables(graph, part)]
    rules = [r for part in graph.parts for r in path_inequalities(graph, part)]
    choices = [tuple(compress(order, on)) for on in product((0, 1), repeat=len(order))]
    legal = [fused for fused in choices if all(r.holds(fused) for r in rules)]

    def extent_fused(fused) -> int:
        """Equation (9)."""
        spaces = {
            (e.id, c.loop): e.array.spaces[c.axis].name for e in graph.edges for c in e.candidates
        }
        return sum(extents[spaces[v]] for v in fused)

    def of_a_and_b(fused) -> int:
        return sum(
            prod(
                1 if (e.id, c.loop) in fused else extents[e.array.spaces[c.axis].name]
                for c in e.candidates
            )
            for e in graph.edges
            if e.array.name in "AB"
        )

    assert of_a_and_b(max(legal, key=extent_fused)) == 150 + 1
    plan = plan_fusion(program, options)
    held = {a.tensor.name: array_elements(a, extents) for a in plan.arrays}
    assert held["A"] + held["B"] == 10 + 20
    assert (plan.solve.status, plan.solve.model) == ("OPTIMAL", "tree")


def test_unfused_figure_1_still_holds_generated_inputs_in_tiles(figure_1):
    plan = plan_fusion(figure_1, Options(extents=EXTENTS, objective="none"))
    plan.verify()
    held_whole = sum(whole_elements(t, dict(EXTENTS)) for t in figure_1.tensors if t.is_held)
    assert held_whole == 100 + 1200 + 120 + 10 + 120
    held = {a.tensor.name: a for a in plan.arrays}
    for name in "ABC":
        assert held[name].contracted, name
    assert held["f2"].contracted == ()
    assert plan.solve.value == static_elements(plan) < 1550
    assert [g.kind for g in plan.groups if g.host_loops == ()] == [GroupKind.LIBRARY]


def test_resident_inputs_are_no_nodes(hand_plans):
    program = hand_plans.nested_fusion().program
    plan = plan_fusion(program, Options(extents=EXTENTS, objective="linear"))
    plan.verify()
    assert static_elements(plan) == 2
    assert [a.place for a in plan.arrays] == [Place.REG, Place.REG, Place.CALLER]
    assert [g.kind for g in plan.groups] == [GroupKind.NEST]


def test_missing_extent_is_named(figure_1):
    with pytest.raises(ExtentError, match=mentions("k extent -e k=10")):
        plan_fusion(figure_1, Options(extents=(("i", 1), ("j", 1), ("l", 1))))


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_stops_the_search():
    class Endless:
        """A search that ends only when it is told to."""

        def __init__(self):
            self.stopped = threading.Event()

        def solve(self, _):
            signal.raise_signal(signal.SIGINT)
            assert self.stopped.wait(600)

        def stop_search(self):
            self.stopped.set()

    solver = Endless()
    with pytest.raises(KeyboardInterrupt):
        interruptible_solve(solver, None)
    assert solver.stopped.is_set()


@pytest.mark.usefixtures("interruptible")
def test_the_search_leaves_ctrl_c_to_python(figure_1):
    plan_fusion(figure_1, Options(extents=EXTENTS, objective="linear"))
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)

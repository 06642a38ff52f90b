"""The fusion graph as text: edges, what excludes a fusion, and what is saved."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

import tcgen
from support import random_programs as programs
from support.campaigns import cases
from tcgen.fusion import plan_fusion
from tcgen.fusion.linear import path_inequalities, solve_linear
from tcgen.fusion.sharing.graph import fusion_graph
from tcgen.options import Options
from tcgen.report.fusions import excluding
from tcgen.report.nest import visits_in_loops

FIGURE_1 = """
objective linear, model tree, OPTIMAL, value 3,768 saved_elements
A[i1,j2]     s0 -> s1  100 -> 1    contracted i1 (90), j2 (90)
f1[j]        s1 -> s5  10          j is excluded by Nk#2
C[k1,l2]     s3 -> s4  120 -> 10   contracted k1 (110); l2 is excluded by Nj#3
B[j1,k2,l3]  s2 -> s4  1,200 -> 1  contracted j1 (1,080), k2 (1,100), l3 (1,080)
f2[j,k]      s4 -> s5  120 -> 1    contracted j (108), k (110)
legality    by Theorem 1: every two loops are nested or apart
linearised  3,768 elements saved by Eq. (10), of 3,885 over all edges
exact       184 bytes, of 12,400 unfused
"""

SHARED = """
space v = 6
space x = 5
index a b c d : v
index P : x
input B[x,v,v]
output r, e
W[a,b,c,d] = B[P,a,c]*B[P,b,d]
r[b,d] = W[a,b,c,d]*W[c,b,a,d]
e = W[a,b,c,d]*B[P,a,b]*B[P,c,d]
"""


def section(program: tcgen.Program) -> str:
    text = program.explain()
    return text[text.index("Fusion graph\n") + 13 : text.index("\nLoop nest\n")]


def test_figure_1() -> None:
    source = tcgen.spec_path("allam_figure1")
    program = tcgen.compile(source, objective="linear", target="numpy")
    assert section(program) == FIGURE_1


def test_arrays_with_several_readers() -> None:
    lines = section(tcgen.compile(SHARED, objective="linear", target="numpy", optimize=False))
    assert "W[a,b,c,d]" in lines
    # Axes a and c are read with exchanged indices.
    assert "contracted b (1,080), d (1,080)" in lines
    assert "legality    by the rules of graphs" in lines
    program = tcgen.compile(SHARED, objective="none", target="numpy", optimize=False)
    assert "not contracted b, d" in section(program)
    assert "legality    no two steps share a loop" in section(program)


@cases(40, 400)
@given(st.integers(0, 2**32), st.integers(2, 6))
def test_a_fusion_is_excluded_where_it_breaks_the_inequalities(seed: int, leaves: int) -> None:
    program, extents = programs.random_tree(seed, leaves, generated=0), (("o", 5), ("v", 7))
    plan = plan_fusion(program, Options(extents=extents, objective="linear"))
    graph = fusion_graph(program)
    fused = solve_linear(graph, dict(extents), 2.0).fused
    rules = [r for part in graph.parts for r in path_inequalities(graph, part)]
    place = {visit.step: n for n, visit in enumerate(plan.visits)}
    inside = {loop: set(visits) for loop, visits in visits_in_loops(plan).items()}
    for edge in graph.edges:
        for c in edge.candidates:
            if (edge.id, c.loop) in fused:
                continue
            ends = ((edge.producer, c.producer_index), (edge.consumer, c.consumer_index))
            walks = [(place[graph.nodes[node].step], index) for node, index in ends]
            legal = all(r.holds((*fused, (edge.id, c.loop))) for r in rules)
            assert bool(excluding(plan, walks, inside)) == (not legal)

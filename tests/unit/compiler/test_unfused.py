"""The choice between fused and unfused plans by the flops that both execute."""

from __future__ import annotations

import tcgen
from tcgen.compiler.documents import read_plan

PAIRS = """
space o = 8
space v = 36
space x = 120
index i j : o
index a b e f : v
index P : x
input  b_vv[x,v,v] symmetric (1,2)
input  tau[o,o,v,v] symmetry (0,2)<->(1,3)
output r2
W[a,b,e,f] = b_vv[P,a,e]*b_vv[P,b,f]
r2[i,j,a,b] = W[a,b,e,f]*tau[i,j,e,f]
"""


def flops_and_loops(spec: str, objective: str) -> tuple[int, int]:
    """Executed flops of a call, and the number of shared loops."""
    program = tcgen.compile(spec, objective=objective, target="cpu")
    executed = program.report["operations"]["executed_per_call"]
    return executed, len(read_plan(program.artifact).loops)


def test_loops_are_not_shared_where_symmetry_saves_more() -> None:
    """W is symmetric in three ways if it is whole: a quarter of it is computed."""
    whole, _ = flops_and_loops(PAIRS, "none")
    assert flops_and_loops(PAIRS, "time") == (whole, 0)


def test_a_memory_limit_asks_for_shared_loops() -> None:
    program = tcgen.compile(PAIRS, memory_limit="4MiB", target="cpu")
    assert read_plan(program.artifact).loops
    assert program.peak_bytes() <= 4 * 2**20


def test_loops_are_shared_where_that_is_faster() -> None:
    program = tcgen.compile("mp2_df", extents={"o": 12, "v": 70, "x": 250}, target="cpu")
    assert read_plan(program.artifact).loops

"""Intermediates that are stored in groups, although some steps need all of their elements."""

from __future__ import annotations

import pytest

from support.paths import DATA
from tcgen.compiler.driver import compile_system, read_system
from tcgen.frontend.spec.reader import read_spec
from tcgen.ir.executed import executed_by, totals
from tcgen.ir.tensor import Packing
from tcgen.options import Options
from tcgen.runtime.program import Program
from tcgen.testing import assert_same_values, random_arrays
from tcgen.thresholds import Thresholds
from tcgen.thresholds.cpu import CpuThresholds

# x has the symmetry that its terms have in common; the first one has more.
TEXT = """space o
space v
index i j k l : o
index a b : v
input t[o,o,o,v] antisymmetric (0,1,2)
input w[o,o,v,v] antisymmetric (0,1) packed (0,1)
input f[v,v], u[o,v]
output r
x[i,j,k,a] = t[i,j,k,b]*f[b,a] + w[i,j,a,b]*u[k,b]
r[i,j,k,a] = x[i,j,k,a] - x[i,k,j,a] + x[j,k,i,a]
"""


@pytest.mark.parametrize(("v", "pays"), [(100, True), (30, False)])
def test_packed_where_products_save_more_than_reads_cost(v: int, pays: bool) -> None:
    """Every product adds to the stored elements, and reads look them up."""
    options = Options(extents=(("o", 8), ("v", v)), optimize=False)
    module = compile_system(read_spec(TEXT), options).module
    assert module.buffer("x").packed == ((Packing(0, antisymmetric=True),) if pays else ())


@pytest.mark.slow
def test_coupled_cluster_triples() -> None:
    """Each product of CCSDT walks distinct values; peak memory counts the packed intermediates."""
    system = read_system(DATA / "eqs" / "ccsdt_so.sym.json")
    extents = {"o": 8, "v": 24}
    options = Options(extents=tuple(extents.items()), cost="packed", objective="none")
    made = compile_system(system, options)
    executed = totals(executed_by(made.module), extents).per_call.flops
    assert executed <= 1.25 * made.plan.program.packed_flops().value(extents)
    small = {"o": 4, "v": 5}
    arrays = random_arrays(system, small, seed=4)
    # The limit is above every contraction.
    cpu = CpuThresholds(pair_flops=2**62)
    whole = Options(extents=tuple(small.items()), thresholds=Thresholds(cpu=cpu))
    wanted = Program(compile_system(system, whole).artifact)(**arrays)
    found = Program(made.artifact)
    assert_same_values(found(**arrays), wanted, rtol=1e-11, atol=1e-11)
    assert found.allocated_bytes <= found.peak_bytes(small)

"""The cost by which finished formula sequences are compared."""

from __future__ import annotations

from dataclasses import replace

import pytest

import tcgen
from tcgen.algebra import form_sequence
from tcgen.algebra.cost_model import CostModel
from tcgen.options import Options

EXTENTS = {"o": 10, "q": 12, "v": 40, "x": 150, "y": 4}
GW = Options(extents=tuple(EXTENTS.items()), target="cpu")
PAIRS = """
space v = 60
space x = 160
index a b : v
index P Q : x
input B[x,v,v] symmetric (1,2), W[x,x], y[v,v]
output r
T[P,a,b] = W[P,Q]*B[Q,a,b]
r[P] = T[P,a,b]*y[a,b]
"""


def test_half_of_a_symmetric_product_is_cheaper_than_the_whole() -> None:
    options = Options(optimize=False, target="cpu", byte_weight=0.0)
    program = form_sequence(tcgen.read_spec(PAIRS), options)
    extents = {"v": 60, "x": 160}
    whole = replace(CostModel.of(options), halving=None).cost(program, extents)
    half = CostModel.of(options).cost(program, extents)
    pairs, points = 160 * 160 * 60 * 59 // 2, 160 * 60 * 60
    copies = options.thresholds.cpu.pair_copy_flops * (points // 2 + 2 * points)
    assert whole == 2 * 160 * 160 * 60 * 60 + 2 * points
    assert whole - half == 2 * pairs - copies > 0


def test_halves_count_on_a_processor_and_in_dense_costs_alone() -> None:
    assert CostModel.of(GW).halving == GW.thresholds.cpu
    assert CostModel.of(replace(GW, target="numpy")).halving is None
    assert CostModel.of(replace(GW, cost="packed")).halving is None


@pytest.mark.slow
def test_the_candidate_of_which_half_runs_is_chosen() -> None:
    """The product of all pairs of orbitals has more flops, and half of them run."""
    gw = tcgen.read_spec_file(tcgen.spec_path("gw_self_energy_df"))
    options = replace(GW, byte_weight=1.0)
    halved, whole = (form_sequence(gw, replace(options, target=t)) for t in ("cpu", "numpy"))
    assert whole.flops().value(EXTENTS) < halved.flops().value(EXTENTS)
    model = CostModel.of(options)
    assert model.cost(halved, EXTENTS) < model.cost(whole, EXTENTS)
    assert any(s.out.tensor.name == "T" for s in halved.steps)

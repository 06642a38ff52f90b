"""Scratch of contractions: no large operand is copied whole, whatever the layouts."""

from __future__ import annotations

from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.campaigns import cases
from support.contraction_programs import contraction_module
from tcgen.dtypes import BY_NAME
from tcgen.records.loops import buffer_bytes
from tcgen.thresholds.cpu import CpuThresholds

EXTENTS = (1, 2, 3, 7, 16, 31, 48, 60, 257, 900, 1000, 2000)
HELD = ("0o", "1o", "01", "01o")  # m, n, k and the batch; o is the result
# Slices of small operands, of which no copy is whole.
SMALL = CpuThresholds(
    slice_elements=6,
    cached_operand=2,
    copied_operand=4,
    largest_slice=12,
    sliced_least=0,
    repacked=10**6,
    slice_mn=1,
    thin_side=1,
    batch_products=0,
)


@st.composite
def contractions(draw: st.DrawFn, extents: tuple[int, ...]) -> tuple[str, dict[str, int], str]:
    """Subscripts of two operands, with at least an m, an n and a k, extents and element type."""
    more = draw(st.lists(st.sampled_from(HELD), max_size=3))
    held = dict(zip("abcdef", (*HELD[:3], *more), strict=False))
    one, two, out = (
        "".join(draw(st.permutations([c for c, kind in held.items() if place in kind])))
        for place in "01o"
    )
    sizes = {c: draw(st.sampled_from(extents)) for c in held}
    return f"{one},{two}->{out}", sizes, draw(st.sampled_from(sorted(BY_NAME)))


@cases(60, 3000)
@given(contraction=contractions(EXTENTS))
def test_scratch_is_bounded(contraction: tuple[str, dict[str, int], str]) -> None:
    """At most a slice of each operand, and the result in another order.

    Sums of single precision are added up in double.
    """
    labels, extents, dtype = contraction
    module, planning = contraction_module(labels, extents, dtype)
    scratch = sum(buffer_bytes(b, planning) for b in module.buffers if b.place != "caller")
    slice_bytes = 2 * CpuThresholds().largest_slice * BY_NAME[dtype].itemsize
    result = prod(extents[c] for c in labels.split("->")[1])
    wide = "float64" if dtype == "float32" else dtype
    assert scratch <= 2 * slice_bytes + result * BY_NAME[wide].itemsize, module.pretty()


def test_a_batch_of_stride_1_is_cut() -> None:
    """The batch f is the fastest axis of an operand of two columns, 14 MB in all."""
    extents = {"d": 60, "f": 1000, "c": 900, "b": 2}
    module, planning = contraction_module("dfc,bcf->dfb", extents, "float64")
    scratch = sum(buffer_bytes(b, planning) for b in module.buffers if b.place != "caller")
    assert scratch <= 2 * 8 * CpuThresholds().slice_elements, module.pretty()


@cases(20, 1000)
@given(contraction=contractions((1, 2, 3, 4, 5)))
def test_values_of_parts(contraction: tuple[str, dict[str, int], str]) -> None:
    """The check of values runs the modules of random contractions that are cut into parts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TCGEN_VERIFY", "2")
        contraction_module(*contraction, SMALL)

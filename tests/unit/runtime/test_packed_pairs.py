"""Symmetric pairs of axes in triangles, from a whole array."""

from __future__ import annotations

import numpy as np
import pytest

import tcgen
from support.messages import mentions
from tcgen.interp.storage import to_caller
from tcgen.ir.tensor import Packing, Role, Space, Storage, Tensor


def symmetric(n: int, sign: int = 1) -> np.ndarray:
    x = np.random.default_rng(n).random((3, n, n, n, n))
    x = x + sign * x.transpose(0, 2, 1, 3, 4)
    return x + sign * x.transpose(0, 1, 2, 4, 3)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_pairs_are_stored_as_programs_take_them(n: int, sign: int) -> None:
    o, v = Space("o"), Space("v")
    pairs = (Packing(1, sign < 0), Packing(3, sign < 0))
    tensor = Tensor("g", (o, v, v, v, v), Role.INPUT, storage=Storage(packed=pairs))
    array = symmetric(n, sign)
    got = tcgen.pack_pairs(array, (1, 2), (3, 4), antisymmetric=sign < 0)
    np.testing.assert_array_equal(got, to_caller(tensor, array))


def test_what_cannot_be_packed_is_refused() -> None:
    whole = symmetric(4)[0]
    with pytest.raises(tcgen.AxisError, match=mentions("axis 4 4 axes")):
        tcgen.pack_pairs(whole, (3, 4))
    with pytest.raises(tcgen.ArgumentError, match=mentions("(0, 2) neighbours")):
        tcgen.pack_pairs(whole, (0, 2))
    with pytest.raises(tcgen.ArgumentError, match=mentions("(0, 1) (1, 2) share an axis")):
        tcgen.pack_pairs(whole, (0, 1), (1, 2))
    for wrong in ((0, 1), ((0.0, 1.0),), ("01",), (None,)):
        with pytest.raises(tcgen.ArgumentError, match=mentions("groups of axes (0, 1)")):
            tcgen.pack_pairs(whole, *wrong)
    with pytest.raises(tcgen.ShapeError, match=mentions("(0, 1) same length (2, 3)")):
        tcgen.pack_pairs(np.zeros((2, 3)), (0, 1))
    with pytest.raises(tcgen.DtypeError, match=mentions("int64 float64")):
        tcgen.pack_pairs(np.ones((2, 2), "int64"), (0, 1))
    whole[2, 1, 0, 0] += 1e-3
    with pytest.raises(tcgen.CheckError, match=mentions("[2, 1, 0, 0]")):
        tcgen.pack_pairs(whole, (0, 1), (2, 3))


def test_a_whole_array_for_a_packed_input_is_answered_by_the_call_that_packs_it() -> None:
    head = "space v\nindex a b : v\ninput x[v,v] symmetric (0,1) packed (0,1)\n"
    text = head + "output e\ne = sum(a,b) x[a,b]\n"
    program = tcgen.compile(text, extents={"v": 3}, target="numpy")
    whole = np.arange(9.0).reshape(3, 3)
    whole += whole.T
    with pytest.raises(tcgen.ShapeError, match=mentions("x tcgen.pack_pairs(x, (0, 1))")):
        program(x=whole)
    assert program(x=tcgen.pack_pairs(whole, (0, 1)))["e"] == whole.sum()

"""Conversion of amplitudes between spin orbitals and blocks."""

from __future__ import annotations

import numpy as np
import pytest

import tcgen
from support.messages import mentions
from tcgen.errors import ArgumentError, ShapeError
from tcgen.frontend import read_spec, read_spec_file
from tcgen.testing import random_arrays

SOURCE = read_spec_file(tcgen.spec_path("ccd_spin_orbital"))


def test_unrestricted_amplitudes_both_ways_in_any_order_of_orbitals() -> None:
    orbspin = {"o": [1, 0, 0], "v": [0, 1, 1, 0, 1]}
    (t2,) = [t for t in SOURCE.inputs if t.name == "t2"]
    whole = random_arrays([t2], {"o": 3, "v": 5})["t2"]
    spins = [np.array(orbspin[s.name]) for s in t2.spaces]
    total = sum(x.reshape([-1 if k == n else 1 for k in range(4)]) * (1 if n < 2 else -1)
                for n, x in enumerate(spins))  # fmt: skip
    whole[total != 0] = 0  # those elements break the conservation of spin
    blocks = tcgen.spin_blocks(SOURCE, {"t2": whole}, "unrestricted", orbspin=orbspin)
    assert {n: b.shape for n, b in blocks.items()} == {
        "t2aa": (2, 2, 2, 2),
        "t2ab": (2, 1, 2, 3),
        "t2bb": (1, 1, 3, 3),
    }
    assert blocks["t2ab"][0, 0, 1, 2] == whole[1, 0, 3, 4]
    again = tcgen.spin_orbital(SOURCE, blocks, "unrestricted", orbspin=orbspin)
    np.testing.assert_array_equal(again["t2"], whole)


def test_exchanged_integrals_have_the_sign_of_physicists() -> None:
    v = np.random.default_rng(0).normal(size=(4, 4, 4, 4))
    v -= v.transpose(0, 1, 3, 2)
    blocks = tcgen.spin_blocks(SOURCE, {"v_ovov": v}, "closed-shell")
    np.testing.assert_array_equal(blocks["v_ovov"], v[:2, 2:, :2, 2:])
    np.testing.assert_array_equal(blocks["v_ovvo"], -v[:2, 2:, 2:, :2].transpose(0, 1, 3, 2))


def test_joined_spaces() -> None:
    source = read_spec(
        "space o occupied\nspace v virtual\nspace p = o + v\nindex i : o\nindex a : v\n"
        "index q : p\ninput h[p,p], t[o,v]\noutput e\ne = h[i,a]*t[i,a] + h[q,q]"
    )
    extents = {"o": 2, "v": 1, "O": 1, "V": 3}
    derived = tcgen.spin_integrated(source, "unrestricted")
    arrays = random_arrays(derived, extents, seed=2)
    whole = tcgen.spin_orbital(source, arrays, "unrestricted")
    found = tcgen.evaluate_system(derived, arrays, extents)["e"]
    expected = tcgen.evaluate_system(source, whole, {"o": 3, "v": 4})["e"]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)
    back = tcgen.spin_blocks(
        source, whole, "unrestricted", orbspin={"o": [0, 0, 1], "v": [0, 1, 1, 1]}
    )
    for name, array in back.items():
        np.testing.assert_array_equal(array, arrays[name])


def test_messages() -> None:
    square = {"f_oo": np.zeros((3, 3))}
    with pytest.raises(ArgumentError, match=mentions("space o 3 orbspin")):
        tcgen.spin_blocks(SOURCE, square, "closed-shell")
    with pytest.raises(ArgumentError, match=mentions("2 alpha 1 beta closed shell")):
        tcgen.spin_blocks(SOURCE, square, "closed-shell", orbspin={"o": [0, 1, 0]})
    with pytest.raises(ArgumentError, match=mentions("t3 t2")):
        tcgen.spin_blocks(SOURCE, {"t3": np.zeros(2)}, "closed-shell")
    with pytest.raises(ShapeError, match=mentions("f_oo (4,) 2 axes")):
        tcgen.spin_blocks(SOURCE, {"f_oo": np.zeros(4)}, "closed-shell")
    with pytest.raises(ArgumentError, match=mentions("t2ab t2bb missing")):
        tcgen.spin_orbital(SOURCE, {"t2aa": np.zeros((2, 2, 2, 2))}, "unrestricted")


def test_extents_that_no_axis_shows() -> None:
    source = read_spec(
        "space o occupied\nspace v virtual\nspace p = o + v\nindex q : p\ninput h[p,p]\n"
        "output e\ne = h[q,q]"
    )
    whole = {"h": np.diag([1.0, 2.0, 3.0, 4.0])}
    with pytest.raises(ArgumentError, match=mentions("o orbspin [0, 0, 1, 1]")):
        tcgen.spin_blocks(source, whole, "closed-shell")
    orbspin = {"o": [1, 0], "v": [0, 1]}
    blocks = tcgen.spin_blocks(source, whole, "closed-shell", orbspin=orbspin)
    np.testing.assert_array_equal(blocks["h"], np.diag([2.0, 3.0]))
    again = tcgen.spin_orbital(source, blocks, "closed-shell", orbspin=orbspin)
    np.testing.assert_array_equal(again["h"], np.diag([2.0, 2.0, 3.0, 3.0]))
    with pytest.raises(ArgumentError, match=mentions("orbspin x o, v")):
        tcgen.spin_orbital(source, blocks, "closed-shell", orbspin={"x": [0, 1]})

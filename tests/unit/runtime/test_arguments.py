"""What a user may pass to a program, where results go, and what the messages say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tcgen
from support.campaigns import cases
from support.hand_programs import O, V, made, rand, tiles_expected
from support.messages import mentions
from tcgen.errors import (
    ArgumentError,
    DtypeError,
    ExtentError,
    ShapeError,
)
from tcgen.runtime.arguments import overlaps_itself
from tcgen.runtime.program import Program


def energy_inputs() -> dict[str, Any]:
    return {"g": rand(O, V), "e_o": rand(O) - 2, "e_v": rand(V) + 2, "shift": 0.5}


@pytest.fixture(scope="module", params=["cpu", "numpy"])
def energy(request: pytest.FixtureRequest) -> Program:
    return made("energy", request.param)


@pytest.fixture(scope="module", params=["cpu", "numpy"])
def tiles(request: pytest.FixtureRequest) -> Program:
    return made("tiles", request.param)


def test_unknown_and_missing_keywords(energy: Program) -> None:
    inputs = energy_inputs()
    del inputs["g"]
    with pytest.raises(ArgumentError, match=mentions("missing input g unknown gg")):
        energy(**inputs, gg=1)


def test_default_of_a_scalar(energy: Program) -> None:
    inputs = energy_inputs()
    given = energy(**inputs)
    del inputs["shift"]
    assert np.array_equal(given["t"], energy(**inputs)["t"])


def test_rank_and_contradictory_extents(energy: Program) -> None:
    inputs = energy_inputs()
    with pytest.raises(ShapeError, match=mentions("g[o,v] 2 axes 3")):
        energy(**{**inputs, "g": rand(O, V, 1)})
    message = "axis 0 e_v[v] space v 8 axis 1 g[o,v] 7 shape (7,) (8,)"
    with pytest.raises(ExtentError, match=mentions(message)):
        energy(**{**inputs, "e_v": rand(8)})


def test_joined_extents(request: pytest.FixtureRequest) -> None:
    program = made("joined", planning_extents=(("o", 2), ("v", 3)))
    assert program(double=rand(5, 5))["ov"].shape == (2, 3)
    with pytest.raises(ShapeError, match=mentions("length 5 p o=2 v=3 6")):
        program(double=rand(6, 6))
    products = made("gemm")
    inputs = {
        "a": rand(O, V),
        "at": rand(V, O),
        "b": rand(V, O + V),
        "bt": rand(O + V, V),
        "t": rand(O, V, O),
        "u": rand(O, O, V),
    }
    assert products.extents_for(**inputs) == {"o": O, "v": V}
    # a part that only a joined axis shows is what the other parts leave of it
    assert products.extents_for(b=rand(V, O + V)) == {"o": O, "v": V}
    with pytest.raises(ShapeError, match=mentions("axis 1 b[v,p] length 12")):
        products(**{**inputs, "b": rand(V, O + V + 1)})
    with pytest.raises(ExtentError, match=mentions("extent o v extents=")):
        made("joined")(double=rand(5, 5))


def test_packed_lengths() -> None:
    program = made("packed")
    good = {"g": rand(15, 21), "n": rand(V, 10)}
    program(**good)
    with pytest.raises(ShapeError, match=mentions("packed pair n(n+1)/2 16")):
        program(**{**good, "g": rand(16, 21)})
    with pytest.raises(ShapeError, match=mentions("n(n-1)/2 11")):
        program(**{**good, "n": rand(V, 11)})


def test_element_types(energy: Program) -> None:
    inputs = energy_inputs()
    with pytest.raises(DtypeError, match=mentions('g float64 float32 g.astype("float64")')):
        energy(**{**inputs, "g": inputs["g"].astype("float32")})
    with pytest.raises(DtypeError, match=mentions('g.real.astype("float64")')):
        energy(**{**inputs, "g": inputs["g"] + 0j})
    with pytest.raises(DtypeError, match=mentions("float64")):
        energy(**{**inputs, "g": inputs["g"].astype(">f8")})
    with pytest.raises(DtypeError, match=mentions("shift float64")):
        energy(**{**inputs, "shift": 1j})
    for shift in (1, 0.5, np.float64(0.5), np.float32(0.5), np.array(0.5)):
        energy(**{**inputs, "shift": shift})


def test_foreign_and_strange_arrays(energy: Program) -> None:
    inputs = energy_inputs()

    class Elsewhere:
        __cuda_array_interface__ = ()

    Elsewhere.__module__ = "cupy"
    with pytest.raises(ArgumentError, match=mentions("g cupy cupy.asnumpy(g)")):
        energy(**{**inputs, "g": Elsewhere()})
    with pytest.raises(ArgumentError, match=mentions("generated input")):
        energy(**{**inputs, "g": lambda out, ranges: None})
    for nothing in (None, "g", [None] * O):
        with pytest.raises(DtypeError, match=mentions("g float64")):
            energy(**{**inputs, "g": nothing})
    with pytest.raises(ArgumentError, match=mentions("masked")):
        energy(**{**inputs, "g": np.ma.masked_array(inputs["g"])})


def test_awkward_but_right_arrays(tiles: Program) -> None:
    x, y = rand(O, V), rand(V, O, seed=1)
    expected = tiles_expected(x, y)
    raw = np.zeros(x.nbytes + 1, np.uint8)
    misaligned = np.ndarray(x.shape, "f8", raw, 1)
    misaligned[...] = x
    frozen = x.copy()
    frozen.flags.writeable = False
    wide = np.zeros((O, 2 * V))
    wide[:, ::2] = x
    for form in (
        np.asfortranarray(x),
        misaligned,
        frozen,
        wide[:, ::2],
        x[::-1][::-1],
        x.tolist(),
        x.view(type("Sub", (np.ndarray,), {})),
    ):
        out = tiles(x=form, y=y)
        for name, value in expected.items():
            assert np.allclose(out[name], value, rtol=0, atol=1e-13)
            assert type(out[name]) is np.ndarray


def test_out_is_filled_and_reused(tiles: Program) -> None:
    x, y = rand(O, V), rand(V, O, seed=1)
    expected = tiles_expected(x, y)
    out: dict[str, Any] = {}
    assert tiles(x=x, y=y, out=out) is out
    first = dict(out)
    tiles(x=x, y=2 * y, out=out)
    assert out["s"] is first["s"]
    assert np.allclose(out["s"], 2 * expected["s"])
    wide = np.zeros((V, 2 * O))
    tiles(x=x, y=y, out={"r": wide[:, ::2]})
    assert np.allclose(wide[:, ::2], expected["r"])
    assert not wide[:, 1::2].any()


def test_out_may_overlap_an_input_but_not_an_output(tiles: Program) -> None:
    memory = np.zeros((V + 1, O))
    memory[:V] = rand(V, O, seed=1)
    x, y = rand(O, V), memory[:V]
    expected = tiles_expected(x, y.copy())
    result = tiles(x=x, y=y, out={"r": memory[1:]})
    assert np.allclose(result["r"], expected["r"])
    assert np.allclose(result["s"], expected["s"])
    with pytest.raises(ArgumentError, match=mentions('out["r"] out["s"] overlap')):
        tiles(x=x, y=rand(V, O), out={"r": memory[:V], "s": memory[:O]})


@cases(100, 3000)
@given(
    axes=st.lists(st.tuples(st.integers(0, 4), st.integers(-5, 5)), max_size=3),
    item=st.sampled_from(("f8", "f4")),
)
def test_arrays_whose_elements_share_memory(axes: list[tuple[int, int]], item: str) -> None:
    memory = np.zeros(120, "f4")[60:].view(item)
    shape, strides = [n for n, _ in axes], [4 * s for _, s in axes]
    array = np.lib.stride_tricks.as_strided(memory, shape, strides)
    places = [sum(map(int.__mul__, at, strides)) for at in np.ndindex(*shape)]
    held = [p + n for p in places for n in range(0, array.itemsize, 4)]
    assert overlaps_itself(array) == (len(set(held)) < len(held))


def test_out_whose_elements_share_memory_is_refused(tiles: Program) -> None:
    x, y = rand(O, V), rand(V, O)
    windows = np.lib.stride_tricks.as_strided
    for strides in ((8, 8), (0, 8), (8, 0), (8 * O - 8, 8), (8 * O, 0)):
        out = windows(np.zeros(V * O + O), (V, O), strides)
        for program in (tiles, tiles.bind()):
            with pytest.raises(ArgumentError, match=mentions('out["r"] share memory copy')):
                program(x=x, y=y, out={"r": out})
        lazy = tcgen.lazy(np.ones((V, O)))
        with pytest.raises(ArgumentError, match=mentions("out share memory copy")):
            np.add(lazy, lazy, out=out)
        for call in (tcgen.einsum, tcgen.contract):
            with pytest.raises(ArgumentError, match=mentions("out share memory copy")):
                call("ij,jk->ik", y, np.eye(O), out=out)


def test_wrong_out(tiles: Program) -> None:
    x, y = rand(O, V), rand(V, O)
    for out, error, message in (
        ({"q": x}, ArgumentError, "out q output"),
        ([], ArgumentError, "out dict"),
        ({"r": [1.0]}, ArgumentError, "NumPy"),
        ({"r": np.zeros((V, O + 1))}, ShapeError, "shape (7, 5) (7, 6)"),
        ({"r": np.zeros((V, O), "f4")}, DtypeError, 'out["r"] float64'),
        ({"r": np.broadcast_to(0.0, (V, O))}, ArgumentError, "read-only"),
        ({"r": np.broadcast_to(0.0, (V, O))}, ValueError, "read-only"),
    ):
        with pytest.raises(error, match=mentions(message)):
            tiles(x=x, y=y, out=out)  # type: ignore[arg-type]


def test_any_name_may_be_an_input() -> None:
    text = """
    space o = 2
    index i : o
    input self[o] constant, name[o]
    output r
    r[i] = self[i]*name[i]
    """
    program = tcgen.compile(text, target="numpy")
    one, two = np.ones(2), np.arange(2.0)
    assert program.extents_for(**{"self": one}) == {"o": 2}
    assert program(**{"self": one, "name": two})["r"].tolist() == [0.0, 1.0]
    assert program.bind(**{"self": one})(name=two)["r"].tolist() == [0.0, 1.0]


def test_arrays_come_by_name() -> None:
    text = "space o = 2\nindex i : o\ninput c[o] constant\ninput x[o]\noutput e\ne = c[i]*x[i]\n"
    program = tcgen.compile(text, target="numpy")
    one = np.ones(2)
    with pytest.raises(ArgumentError, match=mentions("name program(c=..., x=...)")):
        program(one, one)
    with pytest.raises(ArgumentError, match=mentions("name program(x=...)")):
        program.bind(c=one)(one)
    assert repr(program.bind(c=one)) == "<spec, bound(x), numpy, float64>"
    with pytest.raises(ArgumentError, match=mentions("unknown input y")):
        tcgen.compile("ij->ji", extents={"i": 1, "j": 1}, target="numpy").bind(y=one)


@pytest.mark.parametrize(
    "number", [1e39, -1e39, 1e-46, pytest.param(10**5000, id="digits"), np.float64(1e300)]
)
def test_numbers_outside_the_range_of_single_precision_are_refused(number: Any) -> None:
    text = "space o = 2\nindex i : o\ninput x[o], c\noutput r\nr[i] = c*x[i]\n"
    program = tcgen.compile(text, dtype="float32", target="numpy")
    x = np.ones(2, np.float32)
    with pytest.raises(DtypeError, match=mentions("c float32 3.4e+38")):
        program(x=x, c=number)
    for accepted in (np.inf, 0, -0.0, 3e38, 2):
        np.testing.assert_allclose(program(x=x, c=accepted)["r"], accepted)

"""Contractions that are symmetric under an exchange are computed for one of each pair."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from support.contraction_programs import compiled_with
from tcgen.errors import VerifyError
from tcgen.frontend.spec.reader import read_spec
from tcgen.interp import evaluate_system
from tcgen.ir.expr import Access, Subscript
from tcgen.ir.loops import Axis, BandVar, Buffer, Gemm, Kernel, Launch, Module, PackingScheme
from tcgen.ir.tensor import Packing, Space
from tcgen.testing import random_arrays
from tcgen.thresholds.cpu import CpuThresholds

HEAD = """
space o occupied
space v virtual
index i j k l : o
index a b c d : v
"""
LADDER = """
input v[v,v,v,v] symmetric (0,1) (2,3) symmetry (0,1)<->(2,3)
input t[o,o,v,v] symmetry (0,2)<->(1,3)
output r
"""
CASES = {
    "overwritten": LADDER + "r[i,j,a,b] = v[c,a,d,b]*t[i,j,c,d]",
    "added": LADDER + "r[i,j,a,b] = t[i,j,a,b] - 1/2*v[c,a,d,b]*t[i,j,c,d]",
    "rows last": LADDER + "r[a,b,i,j] = v[c,a,d,b]*t[i,j,c,d]",
    "rows apart": LADDER + "r[i,a,j,b] = v[c,a,d,b]*t[i,j,c,d]",
    "rows of the second factor": LADDER + "r[b,i,a,j] = t[i,j,c,d]*v[a,c,b,d]",
    "an intermediate": LADDER.replace("output", "input y[o,v]\noutput")
    + "x[i,j,a,b] = t[i,j,a,b] + y[i,a]*y[j,b]\nr[i,j,a,b] = v[c,a,d,b]*x[i,j,c,d]",
    "antisymmetric": "input v[v,v,v,v] antisymmetric (0,1) (2,3)\n"
    "input t[o,o,v,v] antisymmetric (0,1) (2,3)\noutput r\n"
    "r[i,j,a,b] = t[i,j,a,b] + v[a,b,c,d]*t[i,j,c,d]",
    "packed": LADDER.replace("(2,3)\n", "(2,3) packed (0,1) (2,3)\n", 1)
    + "r[i,j,a,b] = t[i,j,a,b] + v[c,a,d,b]*t[i,j,c,d]",
    "packed antisymmetric": "input v[v,v,v,v] antisymmetric (0,1) (2,3) packed (0,1) (2,3)\n"
    "input t[o,o,v,v] antisymmetric (0,1) (2,3)\noutput r\n"
    "r[i,j,a,b] = v[a,b,c,d]*t[i,j,c,d]",
    "a pair apart among its rows": "input t[o,o,v,v] symmetric (0,1)\ninput f[v,v]\noutput r\n"
    "r[i,a,j,b] = t[i,j,a,c]*f[c,b]",
    "one sum": "input f[v,v]\ninput t[o,o,v] symmetric (0,1)\noutput r\nr[a,i,j] = f[a,b]*t[i,j,b]",
}
NOT = {
    "no symmetry of t": "input v[v,v,v,v] symmetric (0,1) (2,3) symmetry (0,1)<->(2,3)\n"
    "input t[o,o,v,v]\noutput r\nr[i,j,a,b] = v[c,a,d,b]*t[i,j,c,d]",
    "no symmetry of v": "input v[v,v,v,v] symmetric (0,1)\n"
    "input t[o,o,v,v] symmetry (0,2)<->(1,3)\noutput r\nr[i,j,a,b] = v[c,a,d,b]*t[i,j,c,d]",
    "rows of both factors": "input t[o,v] \noutput r\nr[i,j] = t[i,a]*t[j,a]",
}


SMALL = CpuThresholds(pair_copy_flops=0, pair_flops=1)  # small contractions are halved too


@pytest.mark.few(5)
@pytest.mark.parametrize(
    ("name", "dtype"),
    [(name, "float64") for name in CASES]
    + [(name, other) for name in ("added", "antisymmetric") for other in ("float32", "complex128")],
)
def test_one_of_each_pair(name: str, dtype: str) -> None:
    """Values at planning extents and at others, 1 and 0 included, and half of the flops."""
    system = read_spec(HEAD + CASES[name] + "\n")
    program = compiled_with(HEAD + CASES[name] + "\n", SMALL, {"o": 5, "v": 3}, dtype=dtype)
    assert re.search(r"N_o\*\(N_o [+-] 1\)/2", program.source)
    rtol = 1e-4 if dtype == "float32" else 1e-11
    for extents in ({"o": 5, "v": 3}, {"o": 1, "v": 4}, {"o": 7, "v": 1}, {"o": 0, "v": 2}):
        arrays = random_arrays(system, extents, dtype=dtype, seed=3)
        wanted = evaluate_system(system, arrays, extents)["r"]
        found = program(**arrays)["r"]
        np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("constant", [True, False])
def test_half_of_a_packed_factor_is_copied(constant: bool) -> None:
    """The pair is chosen by what copies cost: none of the packed factor is unpacked whole."""
    text = HEAD + CASES["packed"] + "\n"
    text = text.replace("packed (0,1) (2,3)\n", f"packed (0,1) (2,3){' constant' * constant}\n")
    planned = {"o": 24, "v": 60}
    program = compiled_with(text, CpuThresholds(), planned)
    assert "N_v*(N_v + 1)/2" in program.source
    assert bool(re.search(r"tcgen_product_\d_constants", program.source)) == constant
    system, extents = read_spec(text), {"o": 3, "v": 5}
    arrays = random_arrays(system, extents, seed=4)
    wanted = evaluate_system(system, arrays, extents)["r"]
    np.testing.assert_allclose(program(**arrays)["r"], wanted, rtol=1e-11, atol=1e-11)
    bound = program.bind(v=arrays.pop("v")) if constant else None
    if bound is not None:
        np.testing.assert_allclose(bound(**arrays)["r"], wanted, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("name", NOT)
def test_unproven_contractions_stay_whole(name: str) -> None:
    """Without a proof every pair is computed."""
    program = compiled_with(HEAD + NOT[name] + "\n", SMALL, {"o": 5, "v": 3})
    assert "(N_o + 1)/2" not in program.source


def test_modules_keep_the_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter of modules fills what is not written with NaN: none of it is read."""
    monkeypatch.setenv("TCGEN_VERIFY", "2")
    for name, text in CASES.items():
        program = compiled_with(HEAD + text + "\n", SMALL, {"o": 4, "v": 3})
        assert re.search(r"\(N_o [+-] 1\)/2", program.source), name


def test_small_contractions_stay_whole() -> None:
    """Where copies cost more than they save, nothing is copied."""
    costly = replace(SMALL, pair_copy_flops=40)
    text = HEAD + CASES["one sum"] + "\n"
    program = compiled_with(text, costly, {"o": 40, "v": 5}, optimize=True)
    assert "(N_o + 1)/2" not in program.source


def triangle(**changes: object) -> Module:
    """``r[i>=j,a] = t[i>=j,b] * f[a,b]`` on scratch, with fields of the product changed."""
    o, v = Space("o"), Space("v")
    i, j = BandVar("i", o), BandVar("j", o, below="i")
    a, b = BandVar("a", v), BandVar("b", v)

    def at(name: str, letters: str) -> Access:
        return Access(name, tuple(Subscript(x) for x in letters))

    packed = (Packing(0),)
    axes = (Axis(o), Axis(o), Axis(v))
    buffers = (
        Buffer("t", axes, (0, 1, 2), "float64", "arena", packed=packed),
        Buffer("r", axes, (0, 1, 2), "float64", "arena", packed=changes.pop("packed", packed)),
        Buffer("f", (Axis(v), Axis(v)), (0, 1), "float64", "arena"),
    )
    fields = {"m": (i, j), "n": (a,), "k": (b,), "scheme": PackingScheme(), **changes}
    product = Gemm(at("r", "ija"), at("t", "ijb"), at("f", "ab"), (), **fields)  # type: ignore
    kernel = Kernel("one", (), (), (product,))
    return Module("m", "float64", (o, v), (), buffers, (kernel,), (), (Launch("one"),))


@pytest.mark.parametrize(
    "changes",
    [
        {"scheme": None},
        {"packed": ()},
        {"packed": (Packing(0, antisymmetric=True),)},
        {"m": (BandVar("i", Space("o")), BandVar("j", Space("o")))},
    ],
)
def test_triangles_are_checked(changes: dict[str, object]) -> None:
    """A triangle needs the generated kernel, and a packed pair in each operand that holds it."""
    triangle().verify()
    with pytest.raises(VerifyError, match=r"triangular|packed"):
        triangle(**changes).verify()


ADDED = {name: CASES[name] for name in ("added", "antisymmetric", "packed")}
ADDED["packed antisymmetric"] = CASES["packed antisymmetric"].replace(" = ", " = t[i,j,a,b] - ")


@pytest.mark.default_thresholds
@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("name", "dtype", "sliced"),
    [(name, "float64", ("v",)) for name in ADDED]
    + [("packed", dtype, ()) for dtype in ("float64", "float32", "complex128")]
    + [("packed", "complex128", ("v",)), ("added", "float32", ("v",))],
)
def test_within_a_limit(name: str, dtype: str, sliced: tuple[str, ...]) -> None:
    """Half of the flops in loops over slices of an input, and where half of it is too large.

    The pair is one of the other factor then.
    """
    text, extents = HEAD + ADDED[name] + "\n", {"o": 5, "v": 11} if sliced else {"o": 4, "v": 16}
    limit = 700_000 * (2 if dtype == "complex128" else 1)
    asked = {"objective": "time", "memory_limit": limit, "sliced": sliced}
    program = compiled_with(text, SMALL, extents, dtype=dtype, **asked)
    operations = program.report["operations"]
    assert operations["executed_per_call"] < 0.65 * operations["sequence"]
    assert program.report["memory"]["peak_bytes"] <= limit
    rtol = 1e-4 if dtype == "float32" else 1e-11
    for sizes in (extents, {"o": 1, "v": 4}, {"o": 7, "v": 1}, {"o": 0, "v": 2}, {"o": 6, "v": 13}):
        arrays = random_arrays(read_spec(text), sizes, dtype=dtype, seed=3)
        wanted = evaluate_system(read_spec(text), arrays, sizes)["r"]
        np.testing.assert_allclose(program(**arrays)["r"], wanted, rtol=rtol, atol=rtol)


@pytest.mark.default_thresholds
def test_a_pair_behind_the_index_of_a_loop() -> None:
    """The loop over slices of t walks i, which stands before the pair a, b of the target.

    A module that the kernel does not suit would be a fault, of which tcgen warns.
    """
    inputs, _, _ = CASES["antisymmetric"].partition("output")
    text = HEAD + inputs.replace("(2,3)", "(2,3) constant", 1)
    text += "input u[o,o,v,v] antisymmetric (0,1) (2,3)\noutput r\n"
    text += "r[i,a,j,b] = -v[a,b,c,d]*u[i,j,c,d]\nr[i,a,j,b] += v[a,b,c,d]*t[i,j,c,d]\n"
    extents = {"o": 2, "v": 9}
    asked = {"objective": "time", "memory_limit": 234_000, "sliced": ("t",)}
    program = compiled_with(text, SMALL, extents, **asked)
    arrays = random_arrays(read_spec(text), extents, seed=3)
    wanted = evaluate_system(read_spec(text), arrays, extents)["r"]
    np.testing.assert_allclose(program(**arrays)["r"], wanted, rtol=1e-11, atol=1e-11)

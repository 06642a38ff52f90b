"""Rules 1 to 10 and 23 of the .spec language: lines, names and declarations."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from support.messages import says
from tcgen.errors import SpecError
from tcgen.frontend import read_spec, read_spec_file, spec_text
from tcgen.interp import evaluate_system
from tcgen.ir.system import System
from tcgen.ir.tensor import Packing, Role, Symmetry, Tensor
from tcgen.records.quantity import Quantity

OV = "space o\nspace v\nindex i j k l m n : o\nindex a b c d : v\n"
JOINED = OV + "space u = o + v\nindex p q r s : u\n"


def spec(text: str, head: str = OV) -> System:
    system = read_spec(head + text)
    system.verify()
    return system


def error(text: str, head: str = OV) -> str:
    with pytest.raises(SpecError) as caught:
        read_spec(head + text, "x.spec")
    return str(caught.value)


def tensor(system: System, name: str) -> Tensor:
    return next(t for t in system.tensors if t.name == name)


def rand(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape)


def test_rule_01_comments_and_continuation_lines() -> None:
    system = spec(
        "input x[o], y[o]  # a comment with ( an open bracket\n"
        "output e # here\n"
        "e = x[i]*y[i]\n"
        "\n"
        "  # a comment between\n"
        "    + 2*(x[j]\n"
        "   # inside\n"
        "*y[j])\n"
        "/2\n"
    )
    x, y = rand(3), rand(3)
    out = evaluate_system(system, {"x": x, "y": y}, {"o": 3, "v": 2})
    assert float(out["e"]) == pytest.approx(2 * x @ y)


def test_rule_01_a_statement_ends_at_the_line_and_an_open_bracket_is_reported() -> None:
    message = error("input x[o]\noutput e\ne = 2*(x[i]*x[i]\ne += 1\nf = x[i\n")
    assert says(message, "x.spec:7:7 error bracket closed")
    assert "\n    e = 2*(x[i]*x[i]\n" in message
    assert "\n          ^\n" in message
    assert says(message, "x.spec:9:6 bracket")


def test_rule_01_carets_stand_right_in_continued_lines() -> None:
    message = error("input x[o]\noutput e\ne = x[i]*x[i]\n    + x[j]*zz[j]\n")
    assert says(message, "x.spec:8:12 error zz declared")
    assert "        + x[j]*zz[j]\n               ^^^^^\n" in message


def test_rule_02_tensors_and_indices_are_different_worlds() -> None:
    system = spec("input i[o]\noutput e\ne = i[i]*i[i]")
    assert [t.name for t in system.tensors] == ["i", "e"]
    assert says(error("index o : v\noutput e\ne = 1"), "o space index")


def test_rule_02_a_declared_letter_with_digits_is_an_index_of_its_space() -> None:
    system = spec("input x[o]\noutput e\ne = x[i1]*x[i1]")
    assert [(i.name, i.space.name) for i in system.equations[0].terms[0].sums] == [("i1", "o")]
    assert says(error("input x[o]\noutput e\ne = x[z1]*x[z1]"), "index z1 declared")


def test_rule_02_operators_are_special_only_before_a_bracket() -> None:
    head = OV + "space x\nindex P Q S : x\n"
    text = "input b[x,o], S[x,x], sum\noutput r\nr[P] = b[P,i]*b[Q,i]*S[P,Q]*sum"
    system = spec(text, head)
    assert [t.name for t in system.inputs] == ["b", "S", "sum"]


@pytest.mark.parametrize("name", ["I", "lambda", "double", "None", "register", "index", "space"])
def test_rule_02_words_of_other_languages_are_legal_names(name: str) -> None:
    system = spec(f"input {name}[o]\noutput e\ne = {name}[i]*{name}[i]")
    assert system.inputs[0].name == name


@pytest.mark.parametrize("name", ["delta", "exp", "conj"])
def test_rule_02_delta_and_functions_are_reserved(name: str) -> None:
    message = error(f"input {name}[o]\noutput e\ne = 1")
    assert says(message, f"x.spec:5:7 error {name} reserved")
    assert says(error("output e\ne = 1\nexp = 2"), "exp reserved")


def test_an_input_named_out_is_refused_where_it_stands() -> None:
    message = error("input out[o]\noutput e\ne = out[i]*out[i]")
    assert says(message, "x.spec:5:7 input out")


def test_rule_03_kinds_extents_and_joined_spaces() -> None:
    text = "space g = x + w\nspace w virtual = 4\nspace x = 10\nindex z : g\ninput t[g]\noutput e\n"
    system = read_spec(text + "e = sum(z) t[z]")
    spaces = {s.name: s for s in system.spaces}
    assert [s.name for s in system.spaces] == ["x", "w", "g"]
    assert (spaces["w"].kind, spaces["w"].extent, spaces["x"].extent) == ("virtual", 4, 10)
    assert [s.name for s in spaces["g"].parts] == ["x", "w"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("space q filled", "filled kind space"),
        ("space q = 0", "extent 0 1 2^63 - 1"),
        ("space q = o", "q one space"),
        ("space q = o + o", "q space twice"),
        ("space q = o + q", "space q"),
        ("space q = o + zebra", "space zebra declared"),
        ("space o virtual", "space o declared x.spec:5"),
        ("index i : v", "index i declared x.spec:3"),
        ("index w : nowhere", "space nowhere declared"),
        ("space", "statement"),
        ("index i j o", "statement"),
    ],
)
def test_rule_03_wrong_spaces_are_explained(line: str, message: str) -> None:
    assert says(error(line + "\noutput e\ne = 1"), message)


def test_rule_04_lists_axes_by_letters_and_stored_order() -> None:
    system = spec(
        "input f[o,o] symmetric (0,1), t2[a,b,i,j] stored (i,j,a,b) symmetry (a,i)<->(b,j)\n"
        "output e\ne = f[i,j]*f[i,j] + t2[a,b,i,j]*t2[a,b,i,j]"
    )
    assert tensor(system, "f").symmetry == (Symmetry((1, 0)),)
    t2 = tensor(system, "t2")
    assert [s.name for s in t2.spaces] == ["v", "v", "o", "o"]
    assert t2.storage.order == (2, 3, 0, 1)
    assert t2.symmetry == (Symmetry((1, 0, 3, 2)),)


@pytest.mark.parametrize(
    ("declaration", "message"),
    [
        ("t[o,a]", "a index spaces"),
        ("t[a,a]", "axis a twice"),
        ("t[o,o] stored (0)", "stored axis once"),
        ("t[o,o] stored (0,0)", "axis 0 twice"),
        ("t[o,o] symmetric (0,2)", "t axis 2"),
        ("t[o,o] symmetric (i,j)", "i axis t"),
        ("t[o,o] symmetric (0)", "symmetric two axes"),
        ("t[o,v] symmetric (0,1)", "axes 0 1 t o v"),
        ("t[o,o] symmetry (0,1)<->(0)", "axis 0 twice"),
        ("t[o,o,o] symmetry (0,1)<->(2)", "symmetry tuples length"),
        ("t[o,o] symetric (0,1)", "'symetric'"),
        ("t[o] constant volatile", "constant volatile"),
        ("t[o] constant volatile", "remove one"),
        ("t[o] accumulate", "accumulate input"),
        ("t[o] = 3", "scalar default"),
    ],
)
def test_rule_04_wrong_declarations_are_explained(declaration: str, message: str) -> None:
    assert says(error(f"input {declaration}\noutput e\ne = 1"), message)


def test_rule_05_an_output_takes_its_axes_from_the_first_left_side() -> None:
    system = spec("input x[o,v]\noutput r, e[]\nr[i,a] = x[i,a]\nr[j,b] += x[j,b]\ne = 1")
    assert [s.name for s in tensor(system, "r").spaces] == ["o", "v"]
    assert [t.name for t in system.outputs] == ["r", "e"]


def test_rule_05_declared_axes_are_checked_and_an_output_is_needed() -> None:
    assert says(error("input x[o,v]\noutput r[o,o]\nr[i,a] = x[i,a]"), "left r[o,o]")
    assert says(error("output r"), "output r")
    assert says(error("output r[o]"), "output r")
    assert says(error("input x[o]\ns = x[i]*x[i]"), "output declared")
    assert says(error("output e constant\ne = 1"), "constant output")


def test_rule_06_symmetries_combine_and_a_forced_zero_is_an_error() -> None:
    system = spec(
        "input v[o,o,o,o] antisymmetric (0,1) (2,3) hermitian (0,1)<->(2,3), t[o,o,o] "
        "antisymmetric (0,1,2), h[o,o] real hermitian (0)<->(1)\noutput e\n"
        "e = v[i,j,k,l]*h[i,j]*h[k,l] + t[i,j,k]*t[i,j,k]"
    )
    assert tensor(system, "v").symmetry == (
        Symmetry((1, 0, 2, 3), -1),
        Symmetry((0, 1, 3, 2), -1),
        Symmetry((2, 3, 0, 1), 1, conj=True),
    )
    assert len(tensor(system, "t").symmetry) == 2
    assert tensor(system, "h").real
    message = error("input z[o,o] symmetric (0,1) antisymmetric (0,1)\noutput e\ne = 1")
    assert says(message, "z zero")


def test_rule_07_symmetry_of_an_output_is_kept_for_the_planner() -> None:
    system = spec("input x[o]\noutput r symmetric (0,1)\nr[i,j] = x[i]*x[j]")
    assert tensor(system, "r").symmetry == (Symmetry((1, 0)),)
    by_letters = spec("input x[o]\noutput r symmetric (i,j)\nr[i,j] = x[i]*x[j]")
    assert tensor(by_letters, "r").symmetry == (Symmetry((1, 0)),)


def test_rule_08_packed_pairs() -> None:
    system = spec(
        "input w[o,v,v,v] packed (2,3), g[v,v,v,v] packed (0,1) (2,3), x[o,o] antisymmetric (0,1) "
        "packed (0,1)\noutput e\n"
        "e = w[i,a,b,c]*w[i,a,b,c] + g[a,b,c,d]*g[a,b,c,d] + x[i,j]*x[i,j]"
    )
    assert tensor(system, "w").storage.packed == (Packing(2),)
    assert tensor(system, "w").symmetry == (Symmetry((0, 1, 3, 2)),)
    assert tensor(system, "g").storage.packed == (Packing(0), Packing(2))
    assert tensor(system, "x").storage.packed == (Packing(0, antisymmetric=True),)
    triangle = rand(3)
    out = evaluate_system(
        spec("input x[o,o] antisymmetric (0,1) packed (0,1)\noutput y\ny[i,j] = x[i,j]"),
        {"x": triangle},
        {"o": 3, "v": 2},
    )
    full = np.zeros((3, 3))
    full[np.tril_indices(3, -1)] = triangle
    np.testing.assert_array_equal(out["y"], full - full.T)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ("packed (0,2)", "packed axes adjacent"),
        ("packed (0,1)", "axes 0 1 t o v"),
        ("packed (1,2) stored (2,1,0,3)", "packed axes order"),
        ("packed (1,2) (2,3)", "axis packed twice"),
        ("generated packed (1,2)", "generated input layout"),
    ],
)
def test_rule_08_wrong_packing_is_explained(attributes: str, message: str) -> None:
    assert says(error(f"input t[o,v,v,v] {attributes}\noutput e\ne = 1"), message)


def test_rule_09_an_index_of_a_part_is_a_slice_of_a_joined_axis() -> None:
    system = spec("input f[u,u]\noutput r\nr[i,a] = f[i,a]", JOINED)
    f = rand(5, 5)
    out = evaluate_system(system, {"f": f}, {"o": 2, "v": 3})
    np.testing.assert_array_equal(out["r"], f[:2, 2:])
    message = error("input x[o]\noutput r\nr[p] = x[p]", JOINED)
    assert says(message, "index p space u axis 0 x o")


BLOCKED = (
    "input v[u,u,u,u] antisymmetric (0,1) (2,3) symmetry (0,1)<->(2,3) blocks oooo ooov oovv ovov "
    "ovvv vvvv\n"
)


def whole_integrals(o: int, v: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    g = np.random.default_rng(1).standard_normal((o + v,) * 4)
    g = g - g.transpose(1, 0, 2, 3)
    g = g - g.transpose(0, 1, 3, 2)
    g = g + g.transpose(2, 3, 0, 1)
    cut = {"o": slice(0, o), "v": slice(o, None)}
    names = ("oooo", "ooov", "oovv", "ovov", "ovvv", "vvvv")
    return g, {f"v_{n}": g[tuple(cut[x] for x in n)] for n in names}


def test_rule_09_blocks_are_inputs_read_with_the_sign_that_symmetry_gives() -> None:
    text = BLOCKED + "output r, s\nr[a,b,m,j] = v[a,b,m,j]\ns[a,m,j,b] = v[a,m,j,b] + 1/v[a,m,j,b]"
    system = spec(text, JOINED)
    assert [t.name for t in system.inputs][:3] == ["v_oooo", "v_ooov", "v_oovv"]
    assert all(t.family == "v" for t in system.inputs)
    assert tensor(system, "v_ooov").symmetry == (Symmetry((1, 0, 2, 3), -1),)
    assert tensor(system, "v_ovov").symmetry == (Symmetry((2, 3, 0, 1), 1),)
    assert "r[a,b,m,j] = v_oovv[m,j,a,b]" in system.pretty()
    assert "s[a,m,j,b] = -v_ovov[m,a,j,b]" in system.pretty()
    g, blocks = whole_integrals(2, 3)
    out = evaluate_system(system, blocks, {"o": 2, "v": 3})
    np.testing.assert_allclose(out["r"], g[2:, 2:, :2, :2])
    np.testing.assert_allclose(out["s"], g[2:, :2, :2, 2:] + 1 / g[2:, :2, :2, 2:])


def test_rule_09_a_joined_index_means_all_its_parts() -> None:
    text = BLOCKED + "input c[u], w[u]\noutput r\nr[p,i] = 2*v[p,q,i,r]*c[q]*c[r]/w[p]"
    system = spec(text, JOINED)
    g, blocks = whole_integrals(2, 3)
    c, w = rand(5), rand(5)
    out = evaluate_system(system, {**blocks, "c": c, "w": w}, {"o": 2, "v": 3})
    wanted = 2 * np.einsum("pqir,q,r->pi", g[:, :, :2], c, c) / w[:, None]
    np.testing.assert_allclose(out["r"], wanted, rtol=1e-12, atol=1e-12)


def test_rule_09_a_hermitian_image_is_conjugated_unless_real() -> None:
    head = JOINED + "input h[u,u] hermitian (0)<->(1) blocks oo ov vv{}\noutput r\nr[a,i] = h[a,i]"
    system = spec("", head.format(""))
    assert "r[a,i] = (conj(h_ov[i,a]))" in system.pretty()
    assert "r[a,i] = h_ov[i,a]" in spec("", head.format(" real")).pretty()
    ov = rand(2, 3) + 1j * rand(2, 3).T.reshape(2, 3)
    blocks = {"h_oo": np.eye(2) + 0j, "h_ov": ov, "h_vv": np.eye(3) + 0j}
    out = evaluate_system(system, blocks, {"o": 2, "v": 3})
    np.testing.assert_array_equal(out["r"], ov.conj().T)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("input v[u,u] blocks oo ov\noutput r\nr[a,i] = v[a,i]", "v[a,i] block v_vo"),
        ("input v[u,u] blocks oo ow\noutput r\nr[i,j] = v[i,j]", "ow block v"),
        ("input v[u,u] blocks oo oo\noutput r\nr[i,j] = v[i,j]", "block oo twice"),
        ("input v[o,o] blocks oo\noutput r\nr[i,j] = v[i,j]", "v axis space"),
        ("input v[u,u] packed (0,1) blocks oo\noutput e\ne = 1", "packed blocks"),
        ("input v[u,u] blocks oo, v_oo[o]\noutput e\ne = 1", "v_oo block"),
    ],
)
def test_rule_09_wrong_blocks_are_explained(text: str, message: str) -> None:
    assert says(error(text, JOINED), message)


def test_rule_09_an_unreachable_block_names_what_is_given() -> None:
    message = error("input v[u,u] blocks oo ov\noutput r\nr[a,i] = v[a,i]", JOINED)
    assert "x.spec:9:10: error" in message
    assert says(message, "v_oo v_ov vo blocks symmetry")


def test_rule_09_other_blocks_are_zero() -> None:
    text = (
        "input w[u,u] symmetric (0,1) blocks oo vv, others 0, y[o,v], z[u,u] blocks oo others 0\n"
        "output e, r, q\ne = w[p,q]*w[q,p] + w[i,a]*y[i,a]\nr[i,a] = w[i,a]\n"
        "q[a,b] = w[a,b] + exp(z[a,b])"
    )
    system = spec(text, JOINED)
    assert [t.name for t in system.inputs] == ["w_oo", "w_vv", "y", "z_oo"]
    oo, vv = rand(2, 2), rand(3, 3)
    oo, vv = oo + oo.T, vv + vv.T
    arrays = {"w_oo": oo, "w_vv": vv, "y": rand(2, 3), "z_oo": rand(2, 2)}
    out = evaluate_system(system, arrays, {"o": 2, "v": 3})
    assert float(out["e"]) == pytest.approx((oo**2).sum() + (vv**2).sum())
    np.testing.assert_array_equal(out["r"], np.zeros((2, 3)))
    np.testing.assert_allclose(out["q"], vv + 1)
    assert says(error("input w[u,u] blocks oo, others 1\noutput e\ne = w[i,i]", JOINED), "1")


def test_rule_09_delta_compares_orbitals_of_base_spaces() -> None:
    text = "input x[u]\noutput r, s, z\nr[p,q] = delta[p,q]*x[p]\ns[p,i] = delta[p,i]\nz[i,a] = "
    system = spec(text + "delta[i,a]*x[i]*x[a]", JOINED)
    x = rand(5)
    out = evaluate_system(system, {"x": x}, {"o": 2, "v": 3})
    np.testing.assert_array_equal(out["r"], np.diag(x))
    np.testing.assert_array_equal(out["s"], np.eye(5)[:, :2])
    np.testing.assert_array_equal(out["z"], np.zeros((2, 3)))
    assert "unrelated" in error("output z\nz[i,a] = delta[i,a]")
    assert says(error("output z\nz[i] = delta[i]"), "delta two indices")


def test_rule_09_delta_with_a_summed_index_renames_it() -> None:
    system = spec("input f[o,o]\noutput r\nr[i,j] = f[i,k]*delta[k,j]")
    assert system.pretty() == "r[i,j] = f[i,j]\n"


def test_rule_09_spin_blocks_are_spaces_of_their_own() -> None:
    text = "space O\nspace V\nindex I J : O\nindex A B : V\ninput t2ab[i,J,a,B]\noutput e\n"
    system = spec(text + "e = t2ab[i,J,a,B]*t2ab[i,J,a,B]")
    assert [s.name for s in system.inputs[0].spaces] == ["o", "O", "v", "V"]


def test_rule_10_an_input_says_what_it_is() -> None:
    text = "input w[u,u,u,u] symmetric (0,1) from eri(chemist) blocks ovov, k[o,v] from fock, x[o]"
    text += "\noutput e\ne = w[i,a,j,b]*k[i,a]*k[j,b]*x[i]"
    system = spec(text, JOINED)
    assert [t.quantity for t in system.inputs] == [Quantity.CHEMIST, Quantity.FOCK, None]
    assert [t.quantity for t in read_spec(spec_text(system)).inputs] == [
        t.quantity for t in system.inputs
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("from eri", "eri eri(chemist) df fock"),
        ("from integrals(x)", "integrals(x) eri(chemist) df fock"),
        ("from df", "k 2 3 df"),
        ("from fock from hcore", "k two remove"),
    ],
)
def test_rule_10_wrong_quantities_are_explained(words: str, message: str) -> None:
    text = error(f"input k[o,v] {words}\noutput e\ne = k[i,a]*k[i,a]")
    assert "x.spec:5:" in text
    assert says(text, message)


def test_rule_10_axes_through_which_spin_is_conserved() -> None:
    text = "input g[i,a,j,b] conserves (i,j)->(a,b), t[o,v]\noutput e, r conserves (0)->(1)\n"
    system = spec(text + "e = g[i,a,j,b]*t[i,a]*t[j,b]\nr[i,a] = t[i,a]")
    declared = {t.name: t.conserves for t in system.tensors}
    assert declared == {"g": ((0, 2), (1, 3)), "t": None, "e": None, "r": ((0,), (1,))}
    assert {t.name: t.conserves for t in read_spec(spec_text(system)).tensors} == declared


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("conserves (0)->(3)", "k axis 3"),
        ("conserves (0)->(0)", "axis 0 twice"),
        ("conserves (2)->(0)", "axis 2 k spin x auxiliary"),
        ("conserves (0,1)", "conserves"),
    ],
)
def test_rule_10_wrong_conservation_is_explained(words: str, message: str) -> None:
    text = f"space x auxiliary\nindex q : x\ninput k[o,v,x] {words}\noutput e\n"
    text = error(text + "e = k[i,a,q]*k[i,a,q]")
    assert "x.spec:7:" in text
    assert says(text, message)


GRADED = "space o occupied graded = 5\nspace v virtual graded strict\nspace x graded\nspace n\n"
GRADED += "index i j : o\nindex a b : v\nindex q : x\n"


def test_graded_spaces_labels_and_charges() -> None:
    text = GRADED + "input f[o,o] label, r[o,v] charge x, u[o,o] conserves (0,1)->() charge y\n"
    text += "input B[x,o,o] conserves (1)->(0,2), e[v] from energies\noutput s charge x, d label\n"
    text += "s[i,a] = r[i,a]*f[i,j]*e[a]*u[i,j]*0 + r[i,a]\nd[i] = e[a]*f[i,i]*B[q,j,j]"
    system = read_spec(text.replace("d[i] = e[a]", "d[i] = sum(a,q,j) e[a]"))
    marks = {s.name: (s.graded, s.strict, s.extent) for s in system.spaces}
    assert marks["o"] == (True, False, 5)
    assert marks["v"] == (True, True, None)
    assert marks["n"] == (False, False, None)
    found = {t.name: (t.label, t.charge, t.conserves) for t in system.tensors}
    assert found["f"] == (True, None, None)
    assert found["r"] == (False, "x", None)
    assert found["u"] == (False, "y", ((0, 1), ()))
    assert found["B"] == (False, None, ((1,), (0, 2)))
    assert found["s"] == (False, "x", None)
    assert found["d"] == (True, None, None)
    again = read_spec(spec_text(system))
    assert [(s.name, s.graded, s.strict) for s in again.spaces] == [
        (s.name, s.graded, s.strict) for s in system.spaces
    ]
    assert {t.name: (t.label, t.charge, t.conserves) for t in again.tensors} == found
    assert again.inputs == system.inputs


def test_words_of_gradings_are_names_elsewhere() -> None:
    text = "space graded\nspace strict graded\nindex label : graded\nindex charge : strict\n"
    text += (
        "input g[graded,strict] label\noutput strict_\nstrict_ = g[label,charge]*g[label,charge]"
    )
    system = read_spec(text)
    assert [(s.name, s.graded) for s in system.spaces] == [("graded", False), ("strict", True)]


@pytest.mark.parametrize(
    ("text", "line", "facts"),
    [
        ("input k[o,v] label conserves (0)->(1)", 8, "k conserves remove label"),
        ("input k[o,v] charge x label", 8, "k charge remove label"),
        ("input k[o,v] charge", 8, "ends too early"),
        ("space p graded = o + v", 8, "p joins parts o, v"),
        ("space o occupied", 1, "space o differently"),
        ("space w strict", 8, "strict kind of space"),
        ("input k[o,v] graded", 8, "graded attribute label"),
    ],
)
def test_wrong_words_of_gradings_are_explained(text: str, line: int, facts: str) -> None:
    with pytest.raises(SpecError) as caught:
        read_spec(f"{GRADED}{text}\ninput t[o,v]\noutput e\ne = t[i,a]*t[i,a]", "x.spec")
    assert f"x.spec:{line}:" in str(caught.value)
    assert says(str(caught.value), facts)


def test_rule_10_constant_volatile_default_and_generated() -> None:
    system = spec(
        "input f[o] constant, t[o] volatile, u[o], shift = 0, scale = -1/2, B[o,v] generated\n"
        "output e\ne = scale*f[i]*t[i]*u[i] + B[i,a]*B[i,a]/(f[i] + shift)"
    )
    found = {t.name: (t.volatile, t.default, t.role) for t in system.inputs}
    assert found["f"] == (False, None, Role.INPUT)
    assert found["t"] == found["u"] == (True, None, Role.INPUT)
    assert found["shift"][1] == 0
    assert found["scale"][1] == Fraction(-1, 2)
    assert found["B"][2] is Role.GENERATED
    assert says(error("input s generated\noutput e\ne = s"), "scalar generated")


def test_rule_23_include_is_textual_and_each_file_counts_once(tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    (folder / "spaces.spec").write_text('space o\nindex i j : o\ninclude "../main.spec"\n')
    (folder / "square.spec").write_text(
        'include "spaces.spec"\ninput x[o]\noutput s\ns = x[i]*x[i]\n'
    )
    main = tmp_path / "main.spec"
    main.write_text(
        'include "parts/spaces.spec"\ninclude "parts/square.spec"\nspace o\ninput x[o]\n'
        "output e\ne = s*s  # see parts\n"
    )
    system = read_spec_file(main)
    system.verify()
    assert system.name == "main"
    assert [t.name for t in system.outputs] == ["s", "e"]
    assert read_spec_file(str(main)) == system
    assert read_spec(main.read_text(), str(main), folder=str(tmp_path)) == system


def test_rule_23_problems_in_an_included_file_name_both_places(tmp_path: Path) -> None:
    (tmp_path / "one.spec").write_text("space o\nindex i : o\ninput x[o] symmetric (0,1)\n")
    main = tmp_path / "main.spec"
    main.write_text('include "one.spec"\nspace o = 3\ninclude "two.spec"\noutput e\ne = 1\n')
    with pytest.raises(SpecError) as caught:
        read_spec_file(main)
    first, second, third, fourth = (str(d) for d in caught.value.diagnostics)
    assert f"one.spec:1:7: error: space o is declared differently at {main}:2" in first
    assert says(second, "one.spec:3:25 x axis 1")
    assert f"{main}:2:7: error: space o is declared differently at" in third
    assert f"{main}:3:9: error: cannot read" in fourth
    assert 'include "two.spec"\n            ^^^^^^^^^^' in fourth
    assert says(fourth, "two.spec")


def test_rule_23_a_text_without_a_folder_cannot_include() -> None:
    assert says(error('include "a.spec"\noutput e\ne = 1'), "folder include")

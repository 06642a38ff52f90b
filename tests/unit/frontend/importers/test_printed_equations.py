"""Equations that pdaggerq and wick&d print: the same values as other derivations, and errors."""

from __future__ import annotations

import itertools
import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from support.messages import mentions, says
from support.paths import DATA
from tcgen.cli.commands import main
from tcgen.errors import SpecError, TcgenError
from tcgen.frontend import read, read_spec
from tcgen.frontend.importers.pdaggerq import from_pdaggerq
from tcgen.frontend.importers.wicked import from_wicked
from tcgen.interp import evaluate_system
from tcgen.ir.system import System
from tcgen.ir.tensor import Tensor, symmetry_group
from tcgen.testing import assert_same_values, random_arrays

PDAGGERQ = DATA / "pdaggerq" / "ccsd.txt"
WICKED = DATA / "wicked" / "ccsd.txt"


def whole(tensor: Tensor, extents: dict[str, int]) -> np.ndarray:
    """Random values with the symmetry of the tensor."""
    rng = np.random.default_rng(sum(map(ord, tensor.name)))
    raw = rng.standard_normal([extents[s.name] for s in tensor.spaces])
    group = symmetry_group(tensor)
    return sum(s.sign * raw.transpose(np.argsort(s.perm)) for s in group) / len(group)


def test_wicked_agrees_with_pdaggerq() -> None:
    """The two number amplitudes differently: t2[i,j,a,b] and t2[a,b,i,j]."""
    ours = from_wicked(WICKED.read_text(), real=True)
    theirs = from_pdaggerq(PDAGGERQ.read_text(), real=True)
    ours.verify()
    extents = {"o": 4, "v": 5}
    arrays = {t.name: whole(t, extents) for t in ours.inputs}
    transposed = {n: a.transpose(2, 3, 0, 1) if a.ndim == 4 else a.T for n, a in arrays.items()}
    other = {n: transposed[n] if n in ("t1", "t2") else a for n, a in arrays.items()}
    got = evaluate_system(ours, arrays, extents)
    wanted = evaluate_system(theirs, other, extents)
    # pdaggerq's energy holds that of the reference determinant
    reference = np.trace(other["f_oo"]) - 0.5 * np.einsum("ijij", other["v_oooo"])
    assert_same_values(got["e"], wanted["e"] - reference)
    assert_same_values(got["r1"], wanted["r1"].T)
    assert_same_values(got["r2"], wanted["r2"].transpose(2, 3, 0, 1))


def test_triples_of_wicked_agree_with_pdaggerq() -> None:
    ours = from_wicked((DATA / "wicked" / "ccsdt.txt").read_text(), real=True)
    theirs = from_pdaggerq((DATA / "pdaggerq" / "ccsdt.txt").read_text(), real=True)
    ours.verify()
    extents = {"o": 3, "v": 4}
    arrays = {t.name: whole(t, extents) for t in theirs.inputs}
    transposed = {n: a.transpose(turn(a.ndim)) if n[0] == "t" else a for n, a in arrays.items()}
    got = evaluate_system(ours, transposed, extents)
    wanted = evaluate_system(theirs, arrays, extents)
    for name in ("r1", "r2", "r3"):
        assert_same_values(got[name], wanted[name].transpose(turn(wanted[name].ndim)), rtol=1e-9)


def turn(rank: int) -> list[int]:
    """Axes with the second half first."""
    return [*range(rank // 2, rank), *range(rank // 2)]


def test_wicked_prints_what_was_recorded() -> None:
    """The package is not needed; where it is there, it still prints these lines."""
    wickd = pytest.importorskip("wickd", reason="wick&d is not installed")
    wickd.reset_space()
    wickd.add_space("o", "fermion", "occupied", list("ijklmn"))
    wickd.add_space("v", "fermion", "unoccupied", list("abcdef"))
    excitations = wickd.op("t", ["v+ o", "v+ v+ o o"])
    hamiltonian = wickd.utils.gen_op("f", 1, "ov", "ov") + wickd.utils.gen_op("v", 2, "ov", "ov")
    series = wickd.bch_series(hamiltonian, excitations, 4)
    found = wickd.WickTheorem().contract(wickd.rational(1), series, 0, 4)
    equations = found.to_manybody_equation("r")
    wanted = {k: equations[k] for k in ("|", "o|v", "oo|vv")}
    printed = [str(x) for block in wanted.values() for x in block]
    assert sorted(printed) == sorted(WICKED.read_text().splitlines()[1:])
    read_lines = {t for e in from_wicked(WICKED.read_text()).equations for t in e.terms}
    assert {t for e in from_wicked(wanted).equations for t in e.terms} == read_lines


def test_other_spaces_and_blocks_of_wicked() -> None:
    """Lines of a commutator over core, active and virtual orbitals, with density matrices."""
    system = from_wicked(
        """r^{a0}_{c0} += - eta1^{a2}_{a1} t^{c1}_{a2} v^{a0,a1}_{c0,c1}
        r^{a0}_{v0} += - f^{a0}_{a1} gamma1^{a1}_{a2} t^{a2}_{v0}
        r^{a0,a1}_{c0,v0} += 1/2 t^{a0}_{v0} t^{a1}_{v1} f^{v1}_{c0}"""
    )
    system.verify()
    assert [t.name for t in system.outputs] == ["r1_ac", "r1_av", "r2"]
    extents = {"a": 3, "c": 2, "v": 4}
    arrays = random_arrays(system, extents)
    assert {"t1_av", "t1_ca", "eta1", "gamma1"} <= set(arrays)
    found = evaluate_system(system, arrays, extents)
    wanted = np.einsum("xy,yz,zv->xv", arrays["f_aa"], arrays["gamma1"], arrays["t1_av"])
    assert_same_values(found["r1_av"], -wanted)
    # only a0 and a1 are of one space and on one side
    pair = np.einsum("xv,yw,wc->xycv", arrays["t1_av"], arrays["t1_av"], arrays["f_vc"]) / 2
    assert_same_values(found["r2"], pair - pair.transpose(1, 0, 2, 3))


@pytest.mark.parametrize("path", [PDAGGERQ, WICKED], ids=["pdaggerq", "wicked"])
def test_convert_writes_a_spec_of_equal_values(path: Path, tmp_path: Path) -> None:
    out = tmp_path / "ccsd.spec"
    result = CliRunner().invoke(main, ["convert", str(path), "-o", str(out)])
    assert result.exit_code == 0, result.output
    text = out.read_text()
    assert "P(i,j)" in text
    first, second = read(path), read(out)
    extents = {"o": 3, "v": 3}
    arrays = random_arrays(first, extents)
    wanted = evaluate_system(first, arrays, extents)
    assert_same_values(evaluate_system(second, arrays, extents), wanted)
    shown = CliRunner().invoke(main, ["convert", str(out)])
    assert shown.stdout == text
    real = CliRunner().invoke(main, ["convert", "--real", str(path)])
    assert "v_vvoo" in text
    assert "v_vvoo" not in real.stdout
    refused = CliRunner().invoke(main, ["convert", "--real", str(out)])
    assert refused.exit_code == 2
    assert ".jsonl" in refused.output


def values(system: System, extents: dict[str, int]) -> dict[str, np.ndarray]:
    system.verify()
    return evaluate_system(system, random_arrays(system, extents), extents)


@pytest.mark.parametrize(
    ("operator", "spec"),
    [
        (["P(i,j)"], "P(i,j)"),
        (["P(i,j)", "P(a,b)"], "P(i,j) P(a,b)"),
        (["PP2(i,a,j,b)"], "S(ia,jb)"),
        (["PP6(i,a,j,b,k,c)"], "S(ia,jb,kc)"),
    ],
)
def test_operators(operator: list[str], spec: str) -> None:
    left = "i,j,k,a,b,c" if "k" in spec else "i,j,a,b"
    factors = ["x3(i,j,k,a,b,c)"] if "k" in spec else ["x1(i,a)", "y1(j,b)"]
    system = from_pdaggerq({f"r({left})": [["1.0", *operator, *factors]]})
    product = "*".join(f.replace("(", "[").replace(")", "]") for f in factors)
    text = (
        f"space o\nspace v\nindex i j k : o\nindex a b c : v\noutput r\n"
        f"input {'x3[o,o,o,v,v,v]' if 'k' in spec else 'x1[o,v], y1[o,v]'}\n"
        f"r[{left}] = {spec} {product}"
    )
    extents, other = {"o": 3, "v": 3}, read_spec(text)
    arrays = random_arrays(other, extents)
    if "k" in spec:  # x3 of pdaggerq is antisymmetric in each half
        arrays = random_arrays(system, extents)
    wanted = evaluate_system(other, arrays, extents)
    assert_same_values(evaluate_system(system, arrays, extents), wanted)


def test_pp3_adds_the_exchanges_with_the_first_pair() -> None:
    string = ["1.0", "PP3(i,a,j,b,k,c)", "x1(i,a)", "y1(j,b)", "y1(k,c)"]
    system = from_pdaggerq({"r(i,j,k,a,b,c)": [string]})
    extents = {"o": 2, "v": 3}
    arrays = random_arrays(system, extents)
    one = np.einsum("ia,jb,kc->ijkabc", arrays["x1"], arrays["y1"], arrays["y1"])
    wanted = one + one.transpose(1, 0, 2, 4, 3, 5) + one.transpose(2, 1, 0, 5, 4, 3)
    assert_same_values(evaluate_system(system, arrays, extents)["r"], wanted)


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("r2(a,b,i)", [(0, 1)]),
        ("l2(i,j,a)", [(0, 1)]),
        ("l2(i,a,b)", [(1, 2)]),
        ("r2(a,b)", [(0, 1)]),
        ("l2(i,j)", [(0, 1)]),
        ("r3(a,b,c,i)", [(0, 1, 2)]),
        ("r3(a,b,c,i,j)", [(0, 1, 2), (3, 4)]),
        ("r2_aba(a,b,i)", []),
        ("t2(a,b,i,j)", [(0, 1), (2, 3)]),
        ("x1(i,a)", []),
        ("x1(i,j)", []),
    ],
)
def test_amplitudes_are_antisymmetric_in_axes_of_one_space(
    text: str, groups: list[tuple[int, ...]]
) -> None:
    """Amplitudes of states with more or fewer electrons have no halves."""
    labels = text.partition("(")[2].rstrip(")")
    (tensor,) = from_pdaggerq({f"s({labels})": [["1.0", text]]}).inputs
    made = {tuple(k for k, image in enumerate(s.perm) if k != image) for s in tensor.symmetry}
    assert made == {pair for group in groups for pair in itertools.pairwise(group)}
    assert all(s.sign == -1 for s in tensor.symmetry)


def test_spin_blocks_get_spaces_of_their_own() -> None:
    strings = [["+1.0", "<i,j||a,b>_abab", "t2_abab(a,b,i,j)"], ["+0.5", "f_bb(i,a)", "t1_bb(a,i)"]]
    system = from_pdaggerq(strings)
    assert "v_oOvV[i,J,a,B]" in system.pretty().replace(" ", "")
    assert "t2_abab[a,B,i,J]" in system.pretty()
    assert {s.name for s in system.spaces} == {"o", "v", "O", "V"}
    with pytest.raises(SpecError, match=mentions("index spins")):
        from_pdaggerq([["1", "f_aa(i,a)", "t1_bb(a,i)"]])


def test_deltas_and_scalars() -> None:
    system = from_pdaggerq([["2.0", "d(i,j)", "f(j,a)", "t1(a,i)", "w0"]])
    assert system.pretty() == "e = sum(j,a) 2*f_ov[j,a]*t1[a,j]*w0\n"


def ir(**line: object) -> str:
    return json.dumps(line)


def tensor(name: str, indices: str, classes: str, **more: object) -> dict[str, object]:
    return {"name": name, "indices": list(indices), "classes": list(classes), **more}


LINE = {"is_assignment": True, "coeff": 1}


def test_values_of_one_name_that_is_assigned_again() -> None:
    """pdaggerq holds each product that it permutes in the same array; ``perm`` is a note."""
    held, r2 = tensor('tmps_["perm_vo"]', "ai", "vo", is_intermediate=True), tensor("r", "ai", "vo")
    note = {"perm": {"type": 1, "pairs": [["a", "b"]]}}
    system = from_pdaggerq(
        [
            "# an options banner",
            ir(target=held, **LINE, **note, operands=[tensor("x", "ai", "vo")]),
            ir(target=r2, **LINE, **note, operands=[held]),
            ir(target=held, **LINE, operands=[tensor("y", "ai", "vo")], pairing=[0, 1]),
            ir(target=r2, is_assignment=False, coeff=-2, operands=[held]),
            ir(target=held, is_assignment=False, coeff=1, operands=[tensor("x", "ai", "vo")]),
            ir(
                target=r2,
                is_assignment=False,
                coeff=0.33333333333333331,
                coeff_rational="1/3",
                operands=[held],
            ),
        ]
    )
    system.verify()
    assert [e.lhs.tensor.name for e in system.equations] == [
        *("tmps_perm_vo_1", "tmps_perm_vo_2", "tmps_perm_vo", "r")
    ]
    arrays = random_arrays(system, {"o": 2, "v": 3})
    x, y = arrays["x"], arrays["y"]
    found = evaluate_system(system, arrays, {"o": 2, "v": 3})["r"]
    np.testing.assert_allclose(found, x - 2 * y + (y + x) / 3)


def test_coefficients_of_lines_are_exact() -> None:
    target, x = tensor("e", "", ""), tensor("x", "", "")
    coeffs = [0.24999999999999978, -1.0000000000000002, 1 / 36, 0.1234567]
    lines = [
        ir(target=target, is_assignment=n == 0, coeff=c, operands=[x]) for n, c in enumerate(coeffs)
    ]
    terms = from_pdaggerq(lines).equations[0].terms
    assert [t.coeff for t in terms[:3]] == [Fraction(1, 4), -1, Fraction(1, 36)]
    assert float(terms[3].coeff) == 0.1234567


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "terms"),
        ("e = 1/4 v t2", "target list"),
        ("['+x', 'f(i,a)']", "coefficient '+x' number"),
        ("['1.0', 'Q(i,j']", "'Q(i,j' tensor"),
        ("['1.0', 'f(i,z)']", "index z occupied"),
        ("{bad", "JSON"),
        ("['1.0', '<i,j|a,b>', 't2(a,b,i,j)']", "'<i,j|a,b>' tensor"),
        ("['1.0', 'a*(i)', 'a(j)', 'd(i,j)']", "'a*(i)'"),
        ("['1.0', 'B+', 'w0']", "'B+'"),
        ("['1.0', 'f(ni,na)', 't1_n(na,ni)']", "ni label nucleus"),
        ("['1.0', 'f(i)']", "f(i) 1 labels 2"),
        ("['1.0', 't2_ab(a,b,i,j)']", "block ab t2_ab(a,b,i,j)"),
        ("['1.0', 'PP3(i,a,j,b)', 'x(a,b,i,j)']", "PP3(i,a,j,b) 4 labels 6"),
        ("['1.0', 'P(i,l)', 'x(a,b,i,j)']", "label l tensor"),
        ('{"coeff": 1}', "'target' missing"),
        (ir(**LINE, target=tensor("e", "", ""), operands=[], perms=[]), "line 'perms' 'perm'"),
        (
            ir(**LINE, target=tensor("e", "", ""), operands=[tensor("t", "", "", indexes=[])]),
            "tensor 'indexes' 'indices'",
        ),
        (
            ir(target=tensor("e", "", ""), is_assignment="false", coeff=1, operands=[]),
            "is_assignment 'false'",
        ),
        ('{"coeff": 1, "coeff": 2}', "'coeff' twice"),
        (
            ir(**LINE, target=tensor("e", "", ""), operands=[tensor("t", "ai", "v")]),
            "2 indices 1",
        ),
        (
            ir(**LINE, target=tensor("e", "", ""), operands=[], conditions=["t3"]),
            "['t3']",
        ),
        (
            ir(**LINE, target=tensor("t1", "", ""), operands=[tensor("t1", "", "")]),
            "t1 input target",
        ),
        (
            ir(
                **LINE,
                target=tensor("e", "", ""),
                operands=[tensor("tmps_1", "", "", is_intermediate=True)],
            ),
            "tmps_1",
        ),
        (
            ir(
                **LINE,
                target=tensor("e", "", ""),
                operands=[tensor('t1["ab"]', "aiQ", "voQ"), tensor('t2["b"]', "ai", "vo")],
            ),
            "block b t2",
        ),
    ],
)
def test_pdaggerq_errors(text: str, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        from_pdaggerq(text, filename="eq.txt")
    assert says(str(caught.value), message)
    assert "eq.txt:1:" in str(caught.value)


@pytest.mark.parametrize("key", [*LINE, "coeff_rational", "conditions", "target", "operands"])
@pytest.mark.parametrize("value", [None, True, 0, 2.5, "x", [], {}, [None], {"a": 1}])
def test_values_of_other_types_are_named(key: str, value: object) -> None:
    line = {**LINE, "target": tensor("e", "", ""), "operands": [tensor("x", "", "")], key: value}
    right = [("is_assignment", True), ("coeff", 0), ("coeff", 2.5)]
    if (key, value) in [*right, ("conditions", []), ("operands", [])]:
        from_pdaggerq(json.dumps(line))
        return
    with pytest.raises(SpecError) as caught:
        from_pdaggerq(json.dumps(line))
    message = str(caught.value)
    assert key in message or "object of a tensor" in message or "'x' is not a number" in message
    assert "NoneType" not in message


@pytest.mark.parametrize("part", ["name", "indices", "classes", "is_intermediate"])
@pytest.mark.parametrize("value", [None, 1, 2.5, {}, [None], {"a": 1}, "o"])
def test_values_of_tensors_of_other_types_are_named(part: str, value: object) -> None:
    one = tensor("x", "i", "o")
    for target, operand in (({**one, part: value}, one), (one, {**one, part: value})):
        names = {"name": "e" if part != "name" or operand != one else value}
        line = ir(**LINE, target={**target, **names}, operands=[operand])
        if part == "name" and value == "o":
            from_pdaggerq(line)
            continue
        with pytest.raises(SpecError, match=f"{part} is "):
            from_pdaggerq(line)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"coeff": 0.25, "coeff_rational": "1/3"}, "coeff 0.25 coeff_rational 1/3"),
        ({"target": tensor("e", "i", "v")}, "index i o v"),
    ],
)
def test_values_that_contradict_each_other(changes: dict[str, object], message: str) -> None:
    line = {**LINE, "target": tensor("e", "i", "o"), "operands": [tensor("x", "i", "o")]}
    with pytest.raises(SpecError, match=mentions(message)):
        from_pdaggerq(json.dumps(line | changes))


@pytest.mark.parametrize("first", ["[", ",", "//", "x = "])
def test_no_line_of_json_is_skipped(first: str) -> None:
    line = ir(**LINE, target=tensor("e", "", ""), operands=[tensor("x", "", "")])
    with pytest.raises(SpecError, match=":3:"):
        from_pdaggerq(f"# comment\n{line}\n{first}{line}")


def test_a_heading_names_the_free_labels() -> None:
    with pytest.raises(SpecError, match=mentions("r1(a) labels i")):
        from_pdaggerq({"r1(a)": [["1", "f(a,i)"]]})


def test_labels_in_upper_case_are_orbitals_of_the_same_space() -> None:
    """pdaggerq goes on with I, J, ... and A, B, ... after i to n and a to f."""
    system = from_pdaggerq([["1", "x(a,I)", "y(I,A)", "z(A,i)", "w(j,o1)", "u(o1,j)"]])
    assert {s.name for s in system.spaces} == {"o", "v"}
    assert len(system.equations[0].terms[0].sums) == 4
    blocked = from_pdaggerq([["1", "x_aa(a,I)", "y_bb(I1,A)", "y_bb(J,A)", "z_ab(I,J)"]])
    assert {s.name for s in blocked.spaces} == {"o", "v", "O", "V"}


def test_wicked_errors() -> None:
    with pytest.raises(SpecError, match=mentions("eq:2:1 wick&d")):
        from_wicked("r^{o0}_{v0} += f^{o0}_{v0}\nr += 1", filename="eq")
    with pytest.raises(SpecError, match=mentions("equations")):
        from_wicked("# nothing")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("r^{o0}_{v0} += f^{o0}_{v1}", "index v0 right"),
        ("r^{o0}_{v0} += 1/4", "index o0 right"),
        ("r^{o0}_{v0} += f^{o0}_{v0} t^{o1}_{v1}", "index o1 twice"),
        ("r^{o0}_{v0} += f^{o0}_{v0} t^{o0}_{v0}", "index o0 2 times"),
        ("r^{o0}_{v0} += t^{o0,o1}_{v0,v1} v^{v1,o1}_{v1,o1}", "index o1 3 times"),
        ("r^{o0,o0}_{v0,v1} += t^{o0,o0}_{v0,v1}", "o0 twice left"),
        ("r^{o0}_{} += f^{o0,}_{}", "'' label"),
        ("r^{5}_{} += f^{5}_{}", "'5' label"),
        ("r^{o0}_{} += 1/0 f^{o0}_{}", "1/0 0"),
    ],
)
def test_an_index_of_wicked_is_on_the_left_or_summed(line: str, message: str) -> None:
    with pytest.raises(SpecError, match=mentions(f"eq:1:1 {message}")):
        from_wicked(line, filename="eq")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ([["+1.0", "t1(a,)"]], "'' label"),
        ([["+1.0", "t1(,)"]], "'' label"),
        ([["+1.0", "P(i,)", "t1(a,i)"]], "label operator"),
        ({"r1(a,)": [["+1.0", "t1(a,i)"]]}, "'' label"),
        ({"r1(a,a)": [["+1.0", "t1(a,i)"]]}, "labels distinct"),
        ({"5": [["+1.0", "w0"]]}, "'5' target"),
        ({"e + 1": [["+1.0", "w0"]]}, "'e + 1' target"),
        ({5: [["+1.0", "w0"]]}, "5 target"),
        ({}, "terms"),
        ({"r2(a,b,i,j)": [["1", "t2(a,b,i,j)"], ["1", "f(a,i)"]]}, "term lacks b, j f[a,i]"),
        ([["1", "t2(a,b,i,j)"], ["1", "f(a,i)"]], "term lacks b, j f[a,i]"),
        ([["1", "t\u00e9(a,i)"]], "tensor"),
        (5, "int terms"),
        (None, "terms"),
        ([[5]], "strings"),
    ],
)
def test_labels_and_targets_of_pdaggerq(source: object, message: str) -> None:
    with pytest.raises(SpecError, match=mentions(message)):
        from_pdaggerq(source)


@pytest.mark.parametrize(
    ("target", "operand", "message"),
    [
        (tensor("r", "ai", "vo"), tensor("x", "a", "v"), "index i operand"),
        (tensor("r", "aa", "vv"), tensor("x", "a", "v"), "r[a,a] distinct"),
        (tensor("r", ["a;"], "v"), tensor("x", ["a;"], "v"), "'a;' name"),
        (tensor("r", [""], "v"), tensor("x", [""], "v"), "'' name"),
        (tensor("r", "a", ["v\n"]), tensor("x", "a", ["v\n"]), "name class"),
    ],
)
def test_indices_of_json_lines(target: object, operand: object, message: str) -> None:
    with pytest.raises(SpecError, match=mentions(message)):
        from_pdaggerq(ir(**LINE, target=target, operands=[operand]))


@pytest.mark.parametrize(
    "keywords", [{"name": 5}, {"filename": None}, {"energy": "5"}, {"blocks": 5}]
)
def test_keywords_of_importers(keywords: dict[str, object]) -> None:
    with pytest.raises(TcgenError):
        from_wicked("r^{o0}_{v0} += f^{o0}_{v0}", **keywords)
    shared = {k: v for k, v in keywords.items() if k in ("name", "filename")}
    if shared:
        with pytest.raises(TcgenError):
            from_pdaggerq([["1", "w0"]], **shared)


def test_other_spaces_of_wicked_keep_their_labels() -> None:
    system = from_wicked("r^{a0}_{c0} += 1/3 f^{a0}_{a1} t^{a1}_{c0}")
    assert "f_aa[a0,a1]*t1[a1,c0]" in system.pretty()


def test_unknown_suffix(tmp_path: Path) -> None:
    (tmp_path / "x.f90").touch()
    with pytest.raises(TcgenError, match=mentions(".jsonl pdaggerq")):
        read(tmp_path / "x.f90")

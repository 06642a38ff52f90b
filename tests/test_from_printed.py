"""Equations that pdaggerq and wick&d print: the same values as other derivations, and errors."""

from __future__ import annotations

import json
import sys
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

import tcgen
from tcgen.cli import main
from tcgen.errors import SpecError, TcgenError
from tcgen.frontend import from_pdaggerq, from_wicked, read, read_spec
from tcgen.interp import evaluate_system
from tcgen.ir.system import System
from tcgen.ir.tensor import Tensor, symmetry_group
from tcgen.testing import assert_same_values, random_arrays

DATA = Path(__file__).parent / "data"
EXAMPLES = Path(__file__).parent.parent / "examples"
PDAGGERQ = DATA / "pdaggerq" / "ccsd.txt"
WICKED = DATA / "wicked" / "ccsd.txt"


@pytest.fixture(scope="module")
def examples() -> SimpleNamespace:
    sys.path.insert(0, str(EXAMPLES))
    import diis
    import spin_orbitals

    return SimpleNamespace(diis=diis, spin=spin_orbitals)


def whole(tensor: Tensor, extents: dict[str, int]) -> np.ndarray:
    """Random values with the symmetry of the tensor."""
    rng = np.random.default_rng(sum(map(ord, tensor.name)))
    raw = rng.standard_normal([extents[s.name] for s in tensor.spaces])
    group = symmetry_group(tensor)
    return sum(s.sign * raw.transpose(np.argsort(s.perm)) for s in group) / len(group)


def test_pdaggerq_strings_are_the_term_list_they_came_from() -> None:
    system, listed = read(PDAGGERQ), read(DATA / "eqs" / "ccsd_so.sym.json")
    system.verify()
    extents = {"o": 4, "v": 5}
    arrays = random_arrays(system, extents)
    wanted = evaluate_system(listed, arrays, extents)
    assert_same_values(evaluate_system(system, arrays, extents), wanted)
    assert {t.coeff.denominator for e in system.equations for t in e.terms} <= {1, 2, 4}


def test_wicked_agrees_with_pdaggerq() -> None:
    """The two number amplitudes differently: t2[i,j,a,b] and t2[a,b,i,j]."""
    ours = from_wicked(WICKED.read_text(), real=True)
    theirs = from_pdaggerq(PDAGGERQ.read_text(), real=True)
    ours.verify()
    extents = {"o": 4, "v": 5}
    arrays = {t.name: whole(t, extents) for t in ours.inputs}
    turned = {n: a.transpose(2, 3, 0, 1) if a.ndim == 4 else a.T for n, a in arrays.items()}
    other = {n: turned[n] if n in ("t1", "t2") else a for n, a in arrays.items()}
    got = evaluate_system(ours, arrays, extents)
    wanted = evaluate_system(theirs, other, extents)
    assert_same_values(got["e"], wanted["e"])
    assert_same_values(got["r1"], wanted["r1"].T)
    assert_same_values(got["r2"], wanted["r2"].transpose(2, 3, 0, 1))


@pytest.mark.parametrize("path", [PDAGGERQ, WICKED], ids=["pdaggerq", "wicked"])
@pytest.mark.parametrize("target", ["cpu", "numpy"])
def test_ccsd_energy_of_water(path: Path, target: str, examples: SimpleNamespace) -> None:
    """H2O/6-31G over spin orbitals, from the printed equations to the energy."""
    if target == "cpu" and tcgen.api.default_target() != "cpu":
        pytest.skip("no C compiler")
    printed = {PDAGGERQ: tcgen.from_pdaggerq, WICKED: tcgen.from_wicked}[path]
    system = printed(path.read_text(), real=True)
    program = tcgen.compile(system, extents={"o": 10, "v": 16}, target=target)
    with np.load(EXAMPLES / "data" / "water_631g.npz") as file:
        closed = dict(file)
    names = [t.name for t in system.inputs]
    arrays = examples.spin.spin_orbital_blocks(closed, names)
    e_o, e_v = arrays.pop("e_o"), arrays.pop("e_v")
    d1, d2 = examples.diis.denominators(e_o, e_v)
    start = {"t1": np.zeros(d1.shape), "t2": arrays["v_oovv"] / d2}
    virtual_first = next(t for t in system.inputs if t.name == "t1").spaces[0].name == "v"
    if virtual_first:
        d1, d2 = d1.T, d2.transpose(2, 3, 0, 1)
        start = {"t1": start["t1"].T, "t2": start["t2"].transpose(2, 3, 0, 1)}
    step = examples.diis.updating(program.bind(**arrays), d1, d2)
    result = examples.diis.iterate(step, {n: np.ascontiguousarray(t) for n, t in start.items()})
    assert abs(result.energy - float(closed["e_ccsd"])) < 1e-9


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
        (["PP2(i,j;a,b)"], "S(ia,jb)"),
        (["PP6(i,a;j,b;k,c)"], "S(ia,jb,kc)"),
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


def test_spin_blocks_get_spaces_of_their_own() -> None:
    strings = [["+1.0", "<i,j||a,b>_abab", "t2_abab(a,b,i,j)"], ["+0.5", "f_bb(i,a)", "t1_bb(a,i)"]]
    system = from_pdaggerq(strings)
    assert "v_oOvV[i,J,a,B]" in system.pretty().replace(" ", "")
    assert "t2_abab[a,B,i,J]" in system.pretty()
    assert {s.name for s in system.spaces} == {"o", "v", "O", "V"}
    with pytest.raises(SpecError, match=r"index . has both spins"):
        from_pdaggerq([["1", "f_aa(i,a)", "t1_bb(a,i)"]])


def test_deltas_and_scalars() -> None:
    system = from_pdaggerq([["2.0", "d(i,j)", "f(j,a)", "t1(a,i)", "w0"]])
    assert system.pretty() == "e = sum(j,a) 2*f_ov[j,a]*t1[a,j]*w0\n"


def ir(**line: object) -> str:
    return json.dumps(line)


def tensor(name: str, indices: str, classes: str, **more: object) -> dict[str, object]:
    return {"name": name, "indices": list(indices), "classes": list(classes), **more}


def test_ir_lines() -> None:
    lines = [
        "# an options banner",
        ir(
            target=tensor('tmps_["0002_oooo"]', "klij", "oooo", is_intermediate=True),
            is_assignment=True,
            coeff=1,
            operands=[
                tensor('B["Qov"]', "Qkd", "Qov"),
                tensor('B["Qov"]', "Qlc", "Qov"),
                tensor("t2", "cdij", "vvoo"),
            ],
            pairing=[[0, 1], 2],
        ),
        ir(
            target=tensor("r2", "abij", "vvoo"),
            is_assignment=True,
            coeff=0.0833333333,
            coeff_rational=[1, 12],
            operands=[tensor('tmps_["0002_oooo"]', "klij", "oooo"), tensor("t2", "abkl", "vvoo")],
        ),
        ir(
            target=tensor("r2", "abij", "vvoo"),
            is_assignment=False,
            coeff=-0.5,
            perm={"type": 1, "pairs": [["i", "j"], ["a", "b"]]},
            operands=[tensor("f", "ki", "oo"), tensor("t2", "abkj", "vvoo")],
        ),
        ir(
            target=tensor("r2", "abij", "vvoo"),
            is_assignment=False,
            coeff_rational="1/3",
            perm={"type": 2, "pairs": [["i", "a"], ["j", "b"]]},
            operands=[
                tensor('Id["oo"]', "ii", "oo"),
                tensor("y", "ai", "vo"),
                tensor("z", "bj", "vo"),
            ],
        ),
    ]
    system = from_pdaggerq("\n".join(lines), name="ir")
    system.verify()
    assert [t.name for t in system.outputs] == ["r2"]
    assert system.equations[1].terms[0].coeff == Fraction(1, 12)
    extents = {"o": 3, "v": 3, "Q": 4}
    arrays = random_arrays(system, extents)
    a = {n.split("_")[0]: x for n, x in arrays.items()}
    t2 = a["t2"]
    w = np.einsum("Qkd,Qlc,cdij->klij", a["B"], a["B"], t2)
    x = np.einsum("ki,abkj->abij", a["f"], t2)
    x = x - x.transpose(0, 1, 3, 2)
    x = x - x.transpose(1, 0, 2, 3)
    y = np.einsum("ai,bj->abij", a["y"], a["z"])
    wanted = np.einsum("klij,abkl->abij", w, t2) / 12 - x / 2
    wanted += (y + y.transpose(1, 0, 3, 2)) / 3
    assert_same_values(evaluate_system(system, arrays, extents)["r2"], wanted)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no terms"),
        ("e = 1/4 v t2", "neither a target nor a list"),
        ("['+x', 'f(i,a)']", "the coefficient '+x' is no number"),
        ("['1.0', 'Q(i,j']", "'Q(i,j' is neither a tensor nor"),
        ("['1.0', 'f(i,z)']", "index z is neither occupied"),
        ("{bad", "no JSON"),
        ('{"coeff": 1}', "target"),
        (ir(target=tensor("e", "", ""), operands=[tensor("t", "ai", "v")]), "2 indices, 1 classes"),
    ],
)
def test_pdaggerq_errors(text: str, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        from_pdaggerq(text, filename="eq.txt")
    assert message in str(caught.value)
    assert "eq.txt:1:" in str(caught.value)


def test_an_intermediate_that_changes_is_refused() -> None:
    first = ir(target=tensor("w", "", "", is_intermediate=True), operands=[tensor("a", "", "")])
    reads = ir(target=tensor("e", "", ""), operands=[tensor("w", "", "")])
    with pytest.raises(SpecError, match="w changes after it was read"):
        from_pdaggerq("\n".join([first, reads, first]))


def test_wicked_errors() -> None:
    with pytest.raises(SpecError, match=r"eq:2:1: error: no equation of wick&d"):
        from_wicked("r^{o0}_{v0} += f^{o0}_{v0}\nr += 1", filename="eq")
    with pytest.raises(SpecError, match="no equations"):
        from_wicked("# nothing")


def test_other_spaces_of_wicked_keep_their_labels() -> None:
    system = from_wicked("r^{a0}_{c0} += 1/3 f^{a0}_{a1} t^{a1}_{c0}")
    assert "f_aa[a0,a1]*t1[a1,c0]" in system.pretty()


def test_unknown_suffix(tmp_path: Path) -> None:
    with pytest.raises(TcgenError, match=r"\.jsonl files with the output of pdaggerq"):
        read(tmp_path / "x.f90")

"""Derived equations beside matrices over all determinants, which know nothing of Wick's theorem."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcgen
from support.fock_space import FockSpace, commutator, series, transformed
from support.marks import slow
from support.messages import mentions
from tcgen.compiler.derived import derived_spec
from tcgen.interp import evaluate_system
from tcgen.testing import random_arrays

pytest.importorskip("wickd", reason="wickd is not installed")

SLOW = pytest.mark.slow
SPACES: dict[tuple[int, int], FockSpace] = {}
Operators = dict[str, np.ndarray]


def space(o: int, v: int) -> FockSpace:
    return SPACES.setdefault((o, v), FockSpace(o, v))


def ground(
    fock: FockSpace, ranks: tuple[int, ...], letter: str = "t"
) -> tuple[Operators, Operators]:
    """Random amplitudes by name, and their operators."""
    arrays = {f"{letter}{n}": fock.amplitudes(n, n) for n in ranks}
    return arrays, {name: fock.operator(a, a.ndim // 2) for name, a in arrays.items()}


def check(system: Any, fock: FockSpace, arrays: Operators, expected: Operators) -> None:
    names = [t.name for t in system.inputs]
    given = {n: arrays[n] for n in names if n in arrays} | fock.integrals(names)
    found = evaluate_system(system, given, fock.extents)
    assert set(found) == set(expected)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=0, atol=1e-12, err_msg=name)


def whole(h: Any, f: Any, t: Operators) -> list[np.ndarray]:
    return [transformed(h, sum(t.values()))] * (1 + len(t))


def quadratic(h: Any, f: Any, t: Operators) -> list[np.ndarray]:
    total = h + commutator(h, t["t1"] + t["t2"])
    twice = commutator(commutator(h, t["t2"]), t["t2"]) / 2
    return [total, total + commutator(commutator(h, t["t1"]), t["t2"]), total + twice]


def second(h: Any, f: Any, t: Operators) -> list[np.ndarray]:
    full = transformed(h, t["t1"] + t["t2"])
    return [full, full, transformed(h, t["t1"]) + commutator(f, t["t2"])]


def third(h: Any, f: Any, t: Operators) -> list[np.ndarray]:
    last = commutator(transformed(h, t["t1"]), t["t2"]) + commutator(f, t["t3"])
    return [*whole(h, f, t)[:3], last]


def third_iterated(h: Any, f: Any, t: Operators) -> list[np.ndarray]:
    last = transformed(h, t["t1"] + t["t2"]) + commutator(f, t["t3"])
    return [*whole(h, f, t)[:3], last]


@pytest.mark.parametrize(
    ("name", "ranks", "commutators", "values"),
    [
        ("CCD", (2,), None, whole),
        ("CCSD", (1, 2), None, whole),
        pytest.param("CCSDT", (1, 2, 3), None, whole, marks=SLOW),
        pytest.param("CCSDT-3", (1, 2, 3), None, third_iterated, marks=SLOW),
        ("CC2", (1, 2), None, second),
        ("CC3", (1, 2, 3), None, third),
        ("LCCD", (2,), None, lambda h, f, t: [series(h, t["t2"], 1)] * 2),
        ("QCISD", (1, 2), None, quadratic),
        ("ccsd", (1, 2), 2, lambda h, f, t: [series(h, t["t1"] + t["t2"], 2)] * 3),
        (
            "UCCSD",
            (1, 2),
            2,
            lambda h, f, t: [series(h, (x := t["t1"] + t["t2"]) - x.T, 2)] * 3,
        ),
    ],
)
def test_ground_states(
    name: str, ranks: tuple[int, ...], commutators: int | None, values: Callable[..., Any]
) -> None:
    fock = space(3, 3)
    arrays, operators = ground(fock, ranks)
    energy, *residuals = values(fock.hamiltonian, fock.f_part, operators)
    pairs = zip(ranks, residuals, strict=True)
    expected = {f"r{n}": fock.projected(x, n, n) for n, x in pairs} | {"e": fock.mean(energy)}
    check(tcgen.derive(name, commutators=commutators), fock, arrays, expected)


@pytest.mark.parametrize("name", ["CISD", *slow("CISDT", "CCSDTQ", "CISDTQ")])
def test_configuration_interaction_and_quadruples(name: str) -> None:
    ranks = tuple("SDTQ".index(x) + 1 for x in name[2:])
    fock = space(4, 4) if len(ranks) == 4 else space(3, 3)
    letter = "c" if name.startswith("CI") else "t"
    arrays, operators = ground(fock, ranks, letter)
    total, h = sum(operators.values()), fock.hamiltonian
    if letter == "c":
        energy = fock.mean(h @ total)
        vector = h @ (np.eye(len(h)) + total) - energy * total
    else:
        vector = transformed(h, total)
        energy = fock.mean(vector)
    expected = {f"r{n}": fock.projected(vector, n, n) for n in ranks} | {"e": energy}
    check(tcgen.derive(name), fock, arrays, expected)


SECTORS = {"EE": (1, 1), "IP": (1, 0), "EA": (0, 1), "DIP": (2, 0), "DEA": (0, 2)}


@pytest.mark.parametrize(
    ("sector", "ranks"),
    [
        ("IP", (1, 2)),
        ("EA", (1, 2)),
        pytest.param("DIP", (1, 2), marks=SLOW),
        pytest.param("EE", (1, 2), marks=SLOW),
        pytest.param("DEA", (1, 2, 3), marks=SLOW),
    ],
)
def test_right_and_left_vectors(sector: str, ranks: tuple[int, ...]) -> None:
    fock = space(3, 3)
    arrays, operators = ground(fock, ranks)
    kinds = {n: tuple(x + n - 1 for x in SECTORS[sector]) for n in ranks}
    right = {n: fock.amplitudes(*kinds[n]) for n in ranks}
    left = {f"l{n}": fock.amplitudes(*kinds[n]) for n in ranks}
    r = sum(fock.operator(a, kinds[n][0]) for n, a in right.items())
    arrays |= {f"r{n}": a for n, a in right.items()}
    sigma = commutator(transformed(fock.hamiltonian, sum(operators.values())), r)
    expected = {f"s{n}": fock.projected(sigma, *kinds[n]) for n in ranks}
    name = f"EOM-{sector}-CC{'SDT'[: len(ranks)]}"
    check(tcgen.derive(name), fock, arrays, expected)
    # The left matrix is the transposed one: l.s(r) = s(l).r
    system = tcgen.derive(f"{name}-left")
    names = [t.name for t in system.inputs]
    given = {n: a for n, a in (arrays | left).items() if n in names} | fock.integrals(names)
    found = evaluate_system(system, given, fock.extents)
    distinct = {n: _distinct(*kinds[n]) for n in ranks}
    one = sum(np.sum(left[f"l{n}"] * expected[f"s{n}"]) / distinct[n] for n in ranks)
    two = sum(np.sum(found[f"d_L_r{n}"] * right[n]) for n in ranks)
    assert abs(one - two) < 1e-12


def _distinct(holes: int, particles: int) -> int:
    return int(np.prod([*range(1, holes + 1), *range(1, particles + 1)]))


def test_left_vectors_from_the_product_less_the_energy() -> None:
    """The ket |R> projects from the right, and e is the energy that an earlier line defines."""
    fock = space(3, 3)
    arrays, operators = ground(fock, (2,))
    left = {"l1": fock.amplitudes(1, 0), "l2": fock.amplitudes(2, 1)}
    hbar = transformed(fock.hamiltonian, operators["t2"])
    l = sum(fock.operator(a, n + 1).T for n, a in enumerate(left.values()))
    product = l @ hbar - fock.mean(hbar) * l
    expected = {f"s{n}": fock.from_the_left(product, n, n - 1) for n in (1, 2)}
    system = tcgen.derive(
        """T = t2
        L = l1{o+} + l2{o+ o+ v}
        R = r1{o} + r2{v+ o o}
        e = <0| exp(-T) H exp(T) |0>
        s = <0| L exp(-T) H exp(T) - e L |R>"""
    )
    check(system, fock, arrays | left, expected | {"e": fock.mean(hbar)})


def test_complex_orbitals() -> None:
    """Blocks v_vvoo and v_oovv are two arrays, the bra first."""
    fock = FockSpace(2, 3, dtype="complex128")
    arrays, operators = ground(fock, (1, 2))
    hbar = transformed(fock.hamiltonian, sum(operators.values()))
    expected = {f"r{n}": fock.projected(hbar, n, n) for n in (1, 2)} | {"e": fock.mean(hbar)}
    check(tcgen.derive("CCSD", real=False), fock, arrays, expected)
    with pytest.raises(tcgen.SpecError, match="real orbitals"):
        tcgen.derive("UCCD", real=False, commutators=1)


@pytest.mark.parametrize(
    ("name", "shipped"),
    [
        ("CCD", "ccd"),
        ("CCSD", "ccsd"),
        ("LCCD", "cepa0"),
        ("LCCSD", "lccsd"),
        ("CCSD-lambda", "ccsd_lambda"),
        ("CCSD-density", "ccsd_density"),
    ],
)
def test_equal_to_specs_by_hand(name: str, shipped: str) -> None:
    system, other = (
        tcgen.derive(name),
        tcgen.read_spec_file(tcgen.spec_path(f"{shipped}_spin_orbital")),
    )
    fock = space(3, 3)
    arrays = {n: fock.amplitudes(k, k) for k in (1, 2) for n in (f"t{k}", f"l{k}")}
    given = [arrays | fock.integrals([t.name for t in x.inputs]) for x in (system, other)]
    values = [
        evaluate_system(x, {t.name: a[t.name] for t in x.inputs}, fock.extents)
        for x, a in zip((system, other), given, strict=True)
    ]
    for output, value in values[0].items():
        np.testing.assert_allclose(value, values[1][output], rtol=1e-13, atol=1e-13)


def test_a_spec_to_read() -> None:
    text = derived_spec("eom-ip-ccsd")
    assert text.splitlines()[4:7] == [
        "#   R = r1{o} + r2{v+ o o}",
        "#   s = <R| [exp(-T) H exp(T), R] |0>",
        "# i..n occupied, a..h virtual; v = <pq||rs>, f the Fock matrix; r1[i], r2[i,j,a], "
        "t1[i,a],",
    ]
    assert "input  r2[o,o,v] antisymmetric (0,1) conserves (0,1)->(2)\n" in text
    assert "input  t1[o,v] constant\n" in text
    assert "\ns2[i,j,a] -= P(i,j) f_oo[k,i]*r2[k,j,a]" in text or "s2[i,j,a] += P(i,j) (" in text
    assert derived_spec("eom-ip-ccsd") == text
    system = tcgen.read_spec(text)
    assert [t.name for t in system.inputs if t.volatile] == ["r1", "r2"]
    short = derived_spec("T = t2; e = <0| H T |0>", name="pairs")
    assert short.endswith("\ne = 1/4*t2[i,j,a,b]*v_oovv[i,j,a,b]\n")


@pytest.mark.parametrize(
    ("name", "declared"),
    [
        ("ccd", {"t2": "antisymmetric (0,1) (2,3)"}),
        (
            "eom-ip-ccsd",
            {
                "r1": "conserves (0)->() charge x",
                "r2": "antisymmetric (0,1) conserves (0,1)->(2) charge x",
                "t1": "constant",
            },
        ),
        (
            "eom-ea-ccsd",
            {
                "r1": "conserves (0)->() charge x",
                "r2": "antisymmetric (1,2) conserves (1,2)->(0) charge x",
            },
        ),
        (
            "eom-ee-ccsd",
            {
                "r1": "conserves (1)->(0) charge x",
                "r2": "antisymmetric (0,1) (2,3) conserves (2,3)->(0,1) charge x",
            },
        ),
        (
            "eom-ip-ccsd-left",
            {
                "l1": "conserves (0)->() charge x",
                "l2": "antisymmetric (0,1) conserves (0,1)->(2) charge x",
            },
        ),
    ],
)
@pytest.mark.parametrize("spin", [None, "closed-shell", "unrestricted"])
def test_complex_orbitals_are_graded(name: str, declared: dict[str, str], spin: str | None) -> None:
    """The text reads, so that all terms conserve momenta and hold for complex orbitals."""
    text = derived_spec(name, spin=spin, real=False)
    assert "complex spin orbitals" in text or spin is not None
    system = tcgen.read_spec(text)
    assert all(s.graded and s.strict for s in system.spaces)
    charged = {t.name for t in system.inputs if t.charge == "x"}
    assert {n[:2] for n in charged} == {n for n in declared if "charge" in declared[n]}
    for tensor, words in declared.items():
        if spin is None:
            assert any(
                line.startswith(f"input  {tensor}[") and line.endswith(f"] {words}")
                for line in text.splitlines()
            ), text


@pytest.mark.parametrize("sector", ["ip", "ea", "ee"])
def test_shipped_vectors_of_complex_orbitals_are_derived(sector: str) -> None:
    text = tcgen.spec_path(f"eom_{sector}_ccsd_complex_spin_orbital").read_text(encoding="utf-8")
    made = derived_spec(f"eom-{sector}-ccsd", real=False)
    assert text.splitlines()[1:] == made.splitlines()[1:]


@pytest.mark.parametrize(
    ("ansatz", "words"),
    [
        ("CCSX", ("no method named 'CCSX'", "CCSDT", "T = t2;")),
        ("exp(-T) H exp(T)", ("names no projection", "r = <T| exp(-T) H exp(T) |0>")),
        ("T = t1 + t2", ("names no projection", "r = <T| exp(-T) H exp(T) |0>")),
        ("T = t2; r = <T| exp(T) H |0>", (":2:", "exp does not stand on both sides")),
        ("T = t2; r = <T| exp(-T) H exp(T + t1) |0>", ("not opposite",)),
        ("T = t2; r = <T| exp(adj(T) - T) H exp(T - adj(T)) |0>", ("bch(H, T - adj(T), 2)",)),
        ("T = t2; r = <T| H Q |0>", ("operator Q is not known", "r2{v+ o o}")),
        ("T = t2; r = <H| H T |0>", ("needs amplitudes", "<T|")),
        ("T = t1 + t2; r1 = <T| H T |0>", ("r1 is one output and has 2 projections",)),
        ("T = t2; r = <T| F |0>", ("the projection r2 is zero",)),
        (f"e = <0| {'(' * 3000}H{')' * 3000} |0>", ("brackets", "50")),
        (f"e = <0| {'[' * 60}H, t2{']' * 60} |0>", ("brackets", "50")),
        ("T = t2; T = t1; r = <T| H |0>", ("T is defined twice",)),
        ("T = t2{v+ o}; r = <T| H t2{v+ v+ o o} |0>", ("t2 is of two kinds",)),
        ("T = t2; r = <T| H T |0", ("cannot read",)),
        ("UCCSD", ("commutators=2",)),
    ],
)
def test_mistakes(ansatz: str, words: tuple[str, ...]) -> None:
    with pytest.raises(tcgen.TcgenError) as caught:
        tcgen.derive(ansatz)
    for word in words:
        assert word in str(caught.value)


def test_several_numbers_are_outputs_of_their_own() -> None:
    """One of them may stand in another equation."""
    first, second = "e = <0| H t2 |0>", "g = <0| [F, t1] |0>"
    both = tcgen.derive(f"{first}; {second}; r = <t1| F t1 - g t1 |0>")
    assert {t.name for t in both.outputs} == {"e", "g", "r1"}
    for text in (first, second):
        assert tcgen.derive(text).pretty().strip() in both.pretty()


@pytest.mark.parametrize(
    ("ansatz", "message"),
    [
        ("T = T; e = <0| H T |0>", "T is defined by itself: T -> T"),
        ("A = t1 + B; B = 2 A; e = <0| H A |0>", "A is defined by itself: A -> B -> A"),
        ("T = f{v+ o}; e = <0| H T |0>", "the name f is that of integrals"),
        ("v = <0| H t2 |0>", "the output v has the name"),
        ("r = <t1| F t1 |0>; r1 = <t1| F |0>", "the output r1 is defined twice"),
        ("R = r1{o}; r = <R| [H, R] |0>", "the output r1 has the name"),
        ("r = <t1| bch(H, t1, 1/2) |0>", "cannot read '/2"),
        ("e = <0| H t2{o + v} |0>", "cannot read '{o"),
        ("e = <0| H", "cannot read 'the end of the line'"),
    ],
)
def test_texts_that_are_refused(ansatz: str, message: str) -> None:
    with pytest.raises(tcgen.SpecError) as caught:
        tcgen.derive(ansatz)
    assert message in str(caught.value)


def test_a_component_is_projected_on_once() -> None:
    """A comment ends with its line."""
    once, several = (
        tcgen.derive(f"T = {t}  # of t1; t2\nr = <T| F + V |0>") for t in ("t1", "t1 + 1/2 t1 t1")
    )
    assert once == several


def test_options_that_do_not_fit() -> None:
    with pytest.raises(tcgen.ArgumentError, match="closed-shell"):
        tcgen.derive("CCD", spin="singlet")
    with pytest.raises(tcgen.ArgumentError, match=r"r1\[o,o\].*over spin orbitals"):
        tcgen.derive("EOM-DIP-CCD", spin="unrestricted")
    with pytest.raises(tcgen.ArgumentError, match="no series"):
        tcgen.derive("CISD", commutators=2)
    with pytest.raises(tcgen.ArgumentError, match="bch"):
        tcgen.derive("T = t2; e = <0| H T |0>", commutators=2)
    with pytest.raises(tcgen.ArgumentError, match="at least 1"):
        tcgen.derive("CCD", commutators=0)
    with pytest.raises(tcgen.ArgumentError, match="a name is a text"):
        tcgen.derive("CCD", name=3)  # type: ignore[arg-type]


def test_a_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "wickd", None)
    with pytest.raises(tcgen.UnavailableError) as caught:
        tcgen.derive("CCD")
    assert "pip install wickd" in str(caught.value)


OWN = """derive T = t2
derive e = <0| [H, T] |0>
derive r = <T| H
    + [H, T] |0>  # one statement on two lines
index m : o
output pair
pair[i,m] = 1/4*v_oovv[i,m,a,b]*t2[i,m,a,b]
"""


def test_an_ansatz_in_a_spec() -> None:
    system = tcgen.read_spec(OWN, "own.spec")
    assert [t.name for t in system.outputs] == ["e", "r2", "pair"]
    derived = tcgen.derive("LCCD")
    sizes = {"o": 3, "v": 4}
    arrays = random_arrays(derived, sizes, seed=3)
    found, expected = (
        evaluate_system(system, arrays, sizes),
        evaluate_system(derived, arrays, sizes),
    )
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=0, atol=1e-13)
    assert found["pair"].sum() == pytest.approx(found["e"])


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("derive T = t2\noutput e\ne = f_oo[i,i]", 1, "no projection"),
        ("# own\n\nderive T = t2\nderive r = <T| H Q |0>", 4, "operator Q not known"),
        ("derive T = t2\nderive r = <T| H, |0>", 2, "cannot read"),
        ("derive T = t2\nderive r = <T| H |0>\nspace o virtual", 3, "o declared"),
    ],
)
def test_errors_of_an_ansatz_in_a_spec(text: str, place: int, words: str) -> None:
    with pytest.raises(tcgen.SpecError, match=mentions(words)) as caught:
        tcgen.read_spec(text, "own.spec")
    assert place in [d.span.line for d in caught.value.diagnostics]


def test_derive_is_a_name_too() -> None:
    text = "space o\nindex i : o\ninput derive[o]\noutput e\ne = derive[i]*derive[i]"
    assert tcgen.read_spec(text).inputs[0].name == "derive"

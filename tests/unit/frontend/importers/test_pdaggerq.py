"""Output of pdaggerq, read and evaluated: each recorded form against the others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.marks import slow_where
from support.paths import DATA
from support.whole_orbitals import WholeOrbitals
from tcgen.frontend import read, read_spec, spec_text
from tcgen.frontend.importers.pdaggerq import from_pdaggerq
from tcgen.interp import evaluate_system
from tcgen.ir.system import System
from tcgen.records.quantity import Quantity
from tcgen.testing import assert_same_values, random_arrays

FILES = DATA / "pdaggerq"
LINES = sorted(FILES.glob("*.jsonl"))
EVEN = {"o": 2, "O": 2, "v": 2, "V": 2}
UNEVEN = {"o": 3, "O": 2, "v": 2, "V": 3}


def statements(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().split("\n") if line.startswith("{")]


def one_after_another(path: Path, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Results of JSON lines executed as they stand, which is what pdaggerq means by them."""
    held = dict(arrays)
    results: dict[str, None] = {}
    for line in statements(path):
        operands, target = line["operands"], line["target"]
        subscripts = ",".join("".join(x["indices"]) for x in operands)
        made = line["coeff"] * np.einsum(
            f"{subscripts}->{''.join(target['indices'])}",
            *(held[x["name"]] for x in operands),
            optimize=True,
        )
        new = line["is_assignment"] or target["name"] not in held
        held[target["name"]] = made if new else held[target["name"]] + made
        if not target["is_intermediate"]:
            results.setdefault(target["name"])
    return {name: held[name] for name in results}


@pytest.mark.parametrize("path", LINES, ids=lambda p: p.stem)
def test_json_lines_mean_what_they_do_one_after_another(path: Path) -> None:
    """``perm`` and ``pairing`` are notes; arrays that are assigned again are other values."""
    system = read(path)
    system.verify()
    extents = {s.name: 2 + n % 3 for n, s in enumerate(system.spaces)}
    arrays = random_arrays(system, extents)
    spaces = {}
    for line in statements(path):
        for x in line["operands"]:
            if not x["is_intermediate"]:
                spaces[x["name"]] = x["classes"]
    by_name = {}
    for name in spaces:
        plain = name.replace('["', "_").replace('"]', "")
        if name.startswith("Id"):
            spin = "O" if "bb_" in name else "o"
            by_name[name] = np.eye(extents[spin])
        else:
            by_name[name] = arrays[plain]
    wanted = one_after_another(path, by_name)
    assert_same_values(evaluate_system(system, arrays, extents), wanted)


@pytest.fixture(scope="module")
def plain() -> System:
    return read(FILES / "ccsd.txt")


def compare(orbitals: Any, whole: System, other: System, targets: tuple[str, ...]) -> None:
    """Each target of ``other`` is the part of the plain one that its axes and name say."""
    wanted = orbitals.evaluate(whole, plain=True)
    found = orbitals.evaluate(other, plain=False)
    assert sorted(t.name for t in other.outputs) == sorted(targets)
    for tensor in other.outputs:
        reference = wanted[tensor.name.partition("_")[0]]
        np.testing.assert_allclose(
            found[tensor.name], orbitals.part(reference, tensor), rtol=1e-9, atol=1e-8
        )
        assert np.abs(found[tensor.name]).max() > 0.1


def test_ccsd_is_the_term_list_of_another_derivation(plain: System) -> None:
    listed = read(DATA / "eqs" / "ccsd_so.sym.json")
    extents = {"o": 4, "v": 5}
    arrays = random_arrays(plain, extents)
    wanted = evaluate_system(listed, arrays, extents)
    found = evaluate_system(plain, arrays, extents)
    reference = np.trace(arrays["f_oo"]) - 0.5 * np.einsum("ijij", arrays["v_oooo"])
    assert_same_values({**found, "e": found["e"] - reference}, wanted)


@pytest.mark.parametrize("name", ["ccsd.jsonl", "ccsd_df.jsonl"])
def test_optimised_lines_are_the_strings(name: str, plain: System) -> None:
    orbitals = WholeOrbitals(EVEN)
    found = orbitals.evaluate(read(FILES / name), plain=True)
    assert_same_values(found, orbitals.evaluate(plain, plain=True), rtol=1e-9)


@pytest.mark.parametrize("name", ["ccsd_spin.txt", "ccsd_spin.jsonl"])
def test_spin_blocks(name: str, plain: System) -> None:
    targets = ("e", "r1_aa", "r1_bb", "r2_aaaa", "r2_abab", "r2_bbbb")
    compare(WholeOrbitals(UNEVEN, spin=True), plain, read(FILES / name), targets)


@pytest.mark.parametrize("name", ["r1_active.txt", "r1_active.jsonl"])
def test_active_ranges(name: str, plain: System) -> None:
    """The target has active indices, which the recorded label ranges say."""
    system = read(FILES / name)
    assert {s.name for s in system.outputs[0].spaces} == {"O", "V"}
    compare(WholeOrbitals(UNEVEN), plain, system, ("r1",))


@pytest.fixture(scope="module")
def triples() -> System:
    return read(FILES / "ccsdt.txt")


def test_paired_permutations(triples: System) -> None:
    """PP3 and PP6: 84 terms stand for 174 with P(i,j) alone."""
    orbitals = WholeOrbitals({"o": 4, "O": 0, "v": 4, "V": 0}, ranks=(1, 2, 3))
    paired = read(FILES / "r3_paired.txt")
    assert (len(paired.equations[0].terms), len(triples.equations[-1].terms)) == (84, 174)
    wanted = orbitals.evaluate(triples, plain=True)
    assert_same_values(orbitals.evaluate(paired, plain=True), {"r3": wanted["r3"]}, rtol=1e-9)


def test_paired_permutations_of_spin_blocks(triples: System) -> None:
    """PP2."""
    orbitals = WholeOrbitals({"o": 3, "O": 2, "v": 3, "V": 2}, spin=True, ranks=(1, 2, 3))
    compare(orbitals, triples, read(FILES / "r3_paired_spin.txt"), ("r3_aabaab",))


@pytest.mark.few(4)
@pytest.mark.parametrize(
    "path",
    slow_where(
        lambda path: path.name.startswith(("ccsdt", "r3_")),
        sorted(p for p in FILES.iterdir() if p.suffix in (".txt", ".jsonl")),
    ),
    ids=lambda p: p.name,
)
def test_written_as_a_spec(path: Path) -> None:
    """``tcgen convert`` of everything recorded: the text reads back with equal values."""
    system = read(path)
    text = spec_text(system)
    again = read_spec(text, f"{system.name}.spec")
    again.verify()
    assert spec_text(again) == text
    extents = {s.name: 2 + (s.name in "ov") for s in system.spaces}
    arrays = random_arrays(system, extents)
    wanted = evaluate_system(system, arrays, extents)
    assert_same_values(evaluate_system(again, arrays, extents), wanted)


def test_lines_as_they_are_returned() -> None:
    """``to_strings("ir")`` returns a list."""
    lines = (FILES / "r1_active.jsonl").read_text().splitlines()
    assert from_pdaggerq(lines).pretty() == from_pdaggerq("\n".join(lines)).pretty()


@pytest.mark.parametrize(
    ("term", "target"),
    [
        (["+1.0", "f(a,b)", "r1(b,i)"], "s1[a,i]"),
        (["+1.0", "f(i,c)", "r2(a,c,j,i)"], "s1[a,j]"),
        (["+1.0", "f(a,b)", "r1(b)"], "s1[a]"),
        (["+1.0", "f(j,i)", "r2(a,b,j)"], "s2[a,b,i]"),
        (["+1.0", "<a,b||c,i>", "t1(c,j)"], "r2[a,b,i,j]"),
    ],
)
def test_the_target_of_a_bare_list(term: list[str], target: str) -> None:
    assert from_pdaggerq([term]).pretty().startswith(f"{target} = ")


def test_integrals_are_known_to_be_antisymmetrised() -> None:
    system = from_pdaggerq([["+1.0", "<j,a||b,i>", "r1(b,j)"]])
    assert {t.name: t.quantity for t in system.inputs} == {
        "v_ovov": Quantity.ANTISYMMETRISED,
        "r1": None,
    }

"""``solve`` over the blocks of a point group equals ``solve`` with dense arrays."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcgen
from support.command_line import invoke
from tcgen.chem.auxiliary import AuxiliaryIrreps
from tcgen.chem.integrals import Irreps
from tcgen.chem.pairs import AllowedPairs, forbidden_norm, half_transformed, transposed_parts
from tcgen.errors import ArgumentError, MemoryLimitError

pyscf = pytest.importorskip("pyscf")

WATER = "O 0 0 0.1173; H 0 0.7572 -0.4692; H 0 -0.7572 -0.4692"
HYDRIDE = "Li 0 0 0; H 0 0 1.6"
PEROXIDE = "O 0 0 0; O 0 1.4 0.1; H 0.9 -0.2 0.3; H -0.3 1.7 0.9"
ETHYLENE = (
    "C 0 0 0.667; C 0 0 -0.667; H 0 0.923 1.238; H 0 -0.923 1.238; H 0 0.923 -1.238; "
    "H 0 -0.923 -1.238"
)
EQUAL = 1e-9
BY_SPIN = """
space oa occupied
space va virtual
space ob occupied
space vb virtual
index i : oa
index j : ob
index a : va
index b : vb
input g[oa,va,ob,vb] from eri(chemist)
input e_i[oa] from energies, e_j[ob] from energies, e_a[va] from energies, e_b[vb] from energies
output e
e = g[i,a,j,b]*g[i,a,j,b]/(e_i[i] + e_j[j] - e_a[a] - e_b[b])
"""
MUST_WARN = "solve uses one block"


@cache
def mean_field(
    atoms: str, *, basis: str = "sto-3g", kind: str = "RHF", symmetry: bool = True, spin: int = 0
) -> Any:
    from pyscf import gto, scf

    mol = gto.M(atom=atoms, basis=basis, symmetry=symmetry, spin=spin, verbose=0)
    reference = getattr(scf, kind)(mol)
    reference.conv_tol, reference.conv_tol_grad = 1e-13, 1e-9
    reference.kernel()
    assert reference.converged
    return reference


solve = partial(tcgen.chem.solve, optimize=False, show=False)


def dense(source: str, reference: Any, **keywords: Any) -> tcgen.chem.Solution:
    return solve(source, reference, target="numpy", **keywords)


def equal(found: tcgen.chem.Solution, expected: tcgen.chem.Solution) -> bool:
    """Energies, amplitudes and values agree; the blocks were used."""
    assert "note" not in found.symmetry
    assert found.converged
    assert found.energies.keys() == expected.energies.keys()
    pairs = [(found.energies[n], expected.energies[n]) for n in expected.energies]
    for one, other in (
        (found.amplitudes, expected.amplitudes),
        (found.values, expected.values),
    ):
        assert one.keys() == other.keys()
        pairs += [(one[n], other[n]) for n in other]
    return all(np.shape(a) == np.shape(b) and np.allclose(a, b, 0, EQUAL) for a, b in pairs)


@pytest.mark.parametrize(
    ("atoms", "group", "frozen"),
    [
        pytest.param(WATER, "C2v", 1, marks=pytest.mark.slow),
        (WATER, "C2v", [0, 6]),
        pytest.param("N 0 0 0.55; N 0 0 -0.55", "D2h", 2, marks=pytest.mark.slow),
        ("N 0.55 0 0; N -0.55 0 0", "D2h", 0),
        pytest.param("C 0 0 0; O 0 0 1.13", "C2v", 0, marks=pytest.mark.slow),
        pytest.param("Be 0 0 0", "D2h", 0, marks=pytest.mark.slow),
        (ETHYLENE, "D2h", 2),
        ("O 0 0 0; H 0 0.9 0.1; F 1.2 0.3 0", "Cs", 0),
    ],
)
def test_ccsd_over_blocks(atoms: str, group: str, frozen: Any) -> None:
    reference = mean_field(atoms)
    found = solve("ccsd_closed_shell", reference, symmetry=True, frozen=frozen)
    assert equal(found, dense("ccsd_closed_shell", reference, frozen=frozen))
    assert found.symmetry["group"] == group
    counts = found.symmetry["orbitals"]
    assert sum(counts["o"].values()) == found.amplitudes["t1"].shape[0]
    assert sum(counts["v"].values()) == found.amplitudes["t1"].shape[1]
    assert 0 < found.symmetry["bytes"] < found.symmetry["dense_bytes"]


def test_atoms_have_d_orbitals_of_irreps_modulo_ten() -> None:
    reference = mean_field("Ne 0 0 0", basis="cc-pvdz")
    assert reference.get_orbsym().max() > 100
    found = solve("mp3_closed_shell", reference, symmetry=True)
    assert equal(found, dense("mp3_closed_shell", reference))
    assert found.symmetry["group"] == "D2h"
    assert found.symmetry["orbitals"]["v"]["Ag"] == 3  # 3s, and two of the 3d orbitals


def test_triples_read_amplitudes_over_blocks() -> None:
    reference = mean_field(WATER)
    singles = dense("ccsd_closed_shell", reference)
    found = solve("t_closed_shell", reference, symmetry=True, amplitudes=singles)
    assert equal(found, dense("t_closed_shell", reference, amplitudes=singles))


@pytest.mark.parametrize(
    ("name", "kind", "spin"),
    [
        ("mp2_spin_orbital", "RHF", 0),
        ("mp2_spin_orbital", "GHF", 0),
        ("ccsd_spin_orbital", "UHF", 2),
        ("ccsd_spin_orbital", "ROHF", 2),
        pytest.param("qcisd_closed_shell", "RHF", 0, marks=pytest.mark.slow),
        ("rpa_sosex_spin_orbital", "RHF", 0),
        ("mp2_df", "RHF", 0),
        pytest.param("ccsd_df", "RHF", 0, marks=pytest.mark.slow),
        ("dcsd_closed_shell", "RHF", 0),
        pytest.param("uccsd", "UHF", 2, marks=pytest.mark.slow),
        pytest.param("cisd_closed_shell", "RHF", 0, marks=pytest.mark.slow),
        pytest.param("ccsdt_closed_shell", "RHF", 0, marks=pytest.mark.slow),
    ],
)
def test_methods_over_blocks(name: str, kind: str, spin: int) -> None:
    reference = mean_field(WATER, kind=kind, spin=spin)
    found = solve(name, reference, symmetry=True, frozen=2 if kind == "GHF" else 1)
    assert equal(found, dense(name, reference, frozen=2 if kind == "GHF" else 1))


@pytest.mark.filterwarnings("ignore:.*leaves out elements of the Fock matrix")
@pytest.mark.parametrize("kind", ["RHF", "ROHF", "UHF"])
def test_spaces_by_spin_have_their_own_irreps(kind: str) -> None:
    reference = mean_field(WATER, kind=kind, spin=0 if kind == "RHF" else 2)
    found = solve(BY_SPIN, reference, symmetry=True, frozen=1)
    assert equal(found, dense(BY_SPIN, reference, frozen=1))
    sizes = {space: sum(n.values()) for space, n in found.symmetry["orbitals"].items()}
    assert sizes == {"oa": 4, "va": 2, "ob": 4, "vb": 2} if kind == "RHF" else sizes["ob"] == 3


@pytest.mark.slow
def test_lambda_and_densities_over_blocks() -> None:
    reference = mean_field(WATER, kind="GHF")
    singles = dense("ccsd_spin_orbital", reference)
    found = solve("ccsd_lambda_spin_orbital", reference, symmetry=True, amplitudes=singles)
    assert equal(found, dense("ccsd_lambda_spin_orbital", reference, amplitudes=singles))
    density = solve("ccsd_density_spin_orbital", reference, symmetry=True, amplitudes=found)
    assert density.values
    assert equal(density, dense("ccsd_density_spin_orbital", reference, amplitudes=found))


@pytest.mark.parametrize(
    ("dtype", "close"),
    [pytest.param("complex128", EQUAL, marks=pytest.mark.slow), ("float32", 1e-5)],
)
def test_element_types(dtype: str, close: float) -> None:
    reference = mean_field(WATER)
    found = solve("ccsd_closed_shell", reference, symmetry=True, dtype=dtype, tolerance=1e-5)
    expected = dense("ccsd_closed_shell", reference, dtype=dtype, tolerance=1e-5)
    assert "note" not in found.symmetry
    assert found.amplitudes["t2"].dtype == expected.amplitudes["t2"].dtype
    assert abs(found.e_corr - expected.e_corr) < close


def test_options_of_the_iteration(tmp_path: Path) -> None:
    reference = mean_field(WATER)
    start = dense("ccsd_closed_shell", reference, tolerance=1e-4)
    chosen: dict[str, Any] = {"level_shift": 0.1, "damping": 0.1, "diis": 4, "amplitudes": start}
    found = solve("ccsd_closed_shell", reference, symmetry=True, **chosen)
    expected = dense("ccsd_closed_shell", reference, **chosen)
    assert found.iterations == expected.iterations
    assert equal(found, expected)
    # A later run continues; one without blocks has other amplitudes, and is refused.
    file = tmp_path / "state.h5"
    with warnings.catch_warnings(action="ignore"):
        solve("ccsd_closed_shell", reference, symmetry=True, checkpoint=file, max_cycle=4)
    again = solve("ccsd_closed_shell", reference, symmetry=True, checkpoint=file)
    assert abs(again.e_corr - expected.e_corr) < EQUAL
    with pytest.raises(ArgumentError, match="checkpoint"):
        dense("ccsd_closed_shell", reference, checkpoint=file)


def test_a_saved_solution_keeps_the_blocks_in_words(tmp_path: Path) -> None:
    lines: list[str] = []
    found = solve("mp2_closed_shell", mean_field(WATER), symmetry=True, show=lines.append)
    assert any("C2v" in line and "3 A1" in line and "blocks" in line for line in lines)
    assert tcgen.chem.load(found.save(tmp_path / "mp2.npz")).symmetry == found.symmetry


def without_symmetry(reference: Any) -> Any:
    other = reference.copy()
    other.mol = reference.mol.copy()
    other.mol.symmetry = False
    return other


@pytest.mark.parametrize(
    "reference",
    [
        lambda: mean_field(WATER, symmetry=False),
        lambda: mean_field(PEROXIDE),
        lambda: without_symmetry(mean_field(WATER)),
        lambda: tcgen.chem.hamiltonian(np.diag([-1.0, 0.5]), np.zeros((2, 2, 2, 2)), nelec=2),
    ],
    ids=["no symmetry", "C1", "switched off", "arrays"],
)
def test_orbitals_without_irreps_are_one_block(reference: Callable[[], Any]) -> None:
    source = reference()
    lines: list[str] = []
    with warnings.catch_warnings(action="error"):
        found = solve("mp2_closed_shell", source, symmetry=True, show=lines.append)
    assert found.symmetry["group"] == "C1"
    assert "mol.symmetry" in found.symmetry["note"]
    assert any("one block" in line for line in lines)
    assert abs(found.e_corr - dense("mp2_closed_shell", source).e_corr) < EQUAL


def copied(reference: Any, coefficients: np.ndarray) -> Any:
    other = reference.copy()
    other.mo_coeff = coefficients
    return other


def test_degenerate_orbitals_that_are_mixed_are_named() -> None:
    reference = mean_field("N 0 0 0.55; N 0 0 -0.55")
    c = np.array(reference.mo_coeff)
    pi = np.flatnonzero(np.abs(reference.mo_energy - reference.mo_energy[4]) < 1e-6)
    assert len(pi) == 2
    turn = np.array([[np.cos(0.4), -np.sin(0.4)], [np.sin(0.4), np.cos(0.4)]])
    c[:, pi] = c[:, pi] @ turn
    turned = copied(reference, c)
    with pytest.warns(RuntimeWarning, match=MUST_WARN) as caught:
        found = solve("ccsd_closed_shell", turned, symmetry=True)
    text = str(caught[0].message)
    assert all(f"{n} (" in text for n in pi)
    assert "mol.symmetry" in text
    assert caught[0].filename == __file__
    expected = dense("ccsd_closed_shell", reference)
    assert abs(found.e_corr - expected.e_corr) < EQUAL


def test_wrong_labels_are_not_believed() -> None:
    from pyscf import lib

    reference = mean_field(WATER)
    labels = reference.get_orbsym().copy()
    labels[[2, 3]] = labels[[3, 2]]
    wrong = copied(reference, lib.tag_array(np.array(reference.mo_coeff), orbsym=labels))
    with pytest.warns(RuntimeWarning, match=MUST_WARN):
        found = solve("mp2_closed_shell", wrong, symmetry=True)
    assert abs(found.e_corr - dense("mp2_closed_shell", reference).e_corr) < EQUAL


def test_a_field_that_breaks_the_symmetry_is_found() -> None:
    reference = mean_field(WATER).copy()
    with_field = reference.get_hcore() + 1e-3 * reference.mol.intor("int1e_r")[0]
    reference.get_hcore = lambda *_: with_field
    with pytest.warns(RuntimeWarning, match=MUST_WARN) as caught:
        solve("mp2_closed_shell", reference, symmetry=True)
    assert "Fock matrix" in str(caught[0].message)


@pytest.mark.parametrize("name", ["mp2_closed_shell", "ccsd_closed_shell"])
def test_integrals_that_break_the_symmetry_are_found(name: str) -> None:
    """The Hamiltonian and the Fock matrix may be symmetric where integrals are not."""
    from pyscf import ao2mo

    reference = mean_field(WATER).copy()
    c, n = reference.mo_coeff, reference.mol.nao
    eri = ao2mo.restore(1, ao2mo.full(reference.mol, c), n)
    labels = reference.get_orbsym()
    i, a = 4, 5  # an occupied and a virtual orbital of other irreps: exchange of three orbitals
    b = next(k for k in range(5, n) if labels[k] not in (labels[a], labels[i]))
    places = {(i, a, i, b), (a, i, i, b), (i, a, b, i), (a, i, b, i)}
    for p, q, r, s in places | {(r, s, p, q) for p, q, r, s in places}:
        eri[p, q, r, s] += 1e-5
    inverse = np.linalg.inv(c)
    back = ao2mo.incore.full(ao2mo.restore(8, eri, n), inverse)
    kept = reference.get_veff()
    reference.get_veff = lambda *_, **__: kept
    reference._eri = ao2mo.restore(8, back, n)
    with pytest.warns(RuntimeWarning, match=MUST_WARN) as caught:
        solve(name, reference, symmetry=True)
    worst = re.search(r"(up to|but is) -?(\d\.\d+e-05)", str(caught[0].message))
    assert worst is not None
    assert 1e-5 <= float(worst[2]) < 1e-4


def test_integrals_of_equal_irreps_are_those_of_the_whole_transform() -> None:
    rng = np.random.default_rng(1)
    products = np.arange(4)[:, None] ^ np.arange(4)
    functions, sets = 9, [np.array([0, 3, 1, 1, 0, 2]), np.array([2, 0, 0, 3])]
    irreps = Irreps(sets, products)
    columns, rows = irreps.of_pairs(0), irreps.of_pairs(1)
    half = rng.standard_normal((len(columns), functions * (functions + 1) // 2))
    c = rng.standard_normal((functions, 4))
    whole = half_transformed(transposed_parts(half), len(half), c, c, triangle=True)
    allowed = rows[:, None] == columns
    made = AllowedPairs(half, columns, c, rows, 4)
    every, some = (np.arange(len(x)) for x in (rows, columns)), (np.array([3, 0, 7]), np.array([5]))
    for r, k in (every, some):
        expected = np.where(allowed, whole, 0)[np.ix_(r, k)]
        np.testing.assert_allclose(made.cut(r, k), expected, rtol=0, atol=1e-12)
    # Pairs of different orbitals stand twice in this norm.
    i, j = np.tril_indices(4)
    weights = np.where(i == j, 1, 2)[:, None]
    left_out = np.sqrt((weights * np.where(allowed, 0, whole) ** 2).sum())
    found = forbidden_norm(half, columns, c, sets[1], products)
    assert 0.3 * left_out < found < 3 * left_out


def test_auxiliary_functions_have_irreps() -> None:
    rng = np.random.default_rng(0)
    products = np.array([[0, 1], [1, 0]])
    irreps = np.array([0, 1, 0, 1, 1])
    allowed = np.array([0, 0, 0, 1, 1])[:, None, None] == products[irreps[:, None], irreps]
    b = rng.standard_normal((5, 5, 5)) * allowed
    b = np.tensordot(np.linalg.qr(rng.standard_normal((5, 5)))[0], b + b.transpose(0, 2, 1), 1)
    found = AuxiliaryIrreps([(b, irreps)], products)
    assert found.irreps == [0, 0, 0, 1, 1]
    assert found.forbidden < 1e-12
    for g, vectors in enumerate(found.vectors):
        own = b * (products[irreps[:, None], irreps] == g)
        np.testing.assert_allclose(vectors @ (vectors.T @ own.reshape(5, -1)), own.reshape(5, -1),
                                   atol=1e-12)  # fmt: skip
    b[0, 0, 1] += 1e-3
    b[0, 1, 0] += 1e-3
    assert 1e-4 < AuxiliaryIrreps([(b, irreps)], products).forbidden < 1


def test_blocks_are_cut_out_of_a_file(tmp_path: Path) -> None:
    reference = mean_field(WATER, basis="6-31g").copy()
    e_mp3 = solve("mp3_closed_shell", reference, target="numpy").e_corr
    file = tmp_path / "water.h5"
    for path in (file, file, None):
        found = solve("mp3_closed_shell", reference, symmetry=True, integral_file=path)
        assert "note" not in found.symmetry
        assert abs(found.e_corr - e_mp3) < 1e-9
        assert found.disk["written"] or found.disk["reads"]
        # Half of it takes the blocks, but not dense integrals.
        reference.max_memory = (found.symmetry["bytes"] + found.symmetry["dense_bytes"]) / 1e6
    reference.max_memory = 0.01
    with pytest.warns(RuntimeWarning, match=r"blocks of integrals.*raise mf\.max_memory"):
        solve("mp3_closed_shell", reference, symmetry=True)


def test_what_has_no_blocks_says_so() -> None:
    reference = mean_field(WATER)
    given = {"d": np.ones((2, 5, 2))}
    with pytest.warns(RuntimeWarning, match="pi is over auxiliary functions"):
        found = solve("drpa", reference, symmetry=True, target=None, inputs=given)
    assert "auxiliary" in found.symmetry["note"]
    with pytest.raises(ArgumentError, match="target"):
        solve("mp2_closed_shell", reference, symmetry=True, target="numpy")
    with pytest.raises(ArgumentError, match="precision"):
        solve("mp2_closed_shell", reference, symmetry=True, precision="mixed")
    with pytest.raises(MemoryLimitError, match="over blocks"):
        solve("ccsd_closed_shell", reference, symmetry=True, memory_limit=100)


def test_command_line() -> None:
    result = invoke("solve", "mp2_closed_shell", "--atom", WATER, "--basis", "sto-3g", "--symmetry",
                    "--json", "--no-optimize")  # fmt: skip
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["symmetry"]["group"] == "C2v"
    assert set(found["symmetry"]) == {
        "group", "orbitals", "blocks", "bytes", "dense_bytes", "program_bytes"
    }  # fmt: skip
    assert "A1" in result.stderr


@pytest.mark.slow
def test_irreps_of_roots_on_the_command_line() -> None:
    result = invoke("solve", "ccsd_closed_shell", "eom_ee_ccsd_closed_shell", "--atom", WATER,
                    "--basis", "sto-3g", "--symmetry", "--irrep", "A2", "--json",
                    "--no-optimize")  # fmt: skip
    assert result.exit_code == 0, result.stderr
    states = json.loads(result.stdout)["solutions"][1]["states"]
    assert {state["irrep"] for state in states} == {"A2"}


@pytest.mark.parametrize(
    ("atoms", "vectors", "ground"),
    [
        (HYDRIDE, "eom_ip_ccsd_complex_spin_orbital", "ccsd_complex_spin_orbital"),
        *(
            pytest.param(WATER, f"eom_{vectors}", ground, marks=pytest.mark.slow)
            for vectors, ground in (
                ("ip_ccsd_complex_spin_orbital", "ccsd_complex_spin_orbital"),
                ("ea_ccsd_complex_spin_orbital", "ccsd_complex_spin_orbital"),
                ("ee_ccsd_complex_spin_orbital", "ccsd_complex_spin_orbital"),
                ("ee_ccsd_closed_shell", "ccsd_closed_shell"),
            )
        ),
    ],
)
def test_roots_of_irreps(atoms: str, vectors: str, ground: str) -> None:
    """The lowest of all irreps are those without symmetry; those of one irrep are among them."""
    reference = mean_field(atoms)
    singles = dense(ground, reference)
    every = dense(vectors, reference, amplitudes=singles, nroots=10)
    blocks = partial(solve, vectors, reference, amplitudes=singles, symmetry=True)
    found = blocks(nroots=4)
    assert found.converged
    assert found.symmetry["group"] in ("C2v", "C2v x Sz")
    # Davidson's method over all vectors may miss a root, but not the lowest ones.
    assert np.allclose(found.roots[:2], every.roots[:2], rtol=0, atol=1e-8)
    names = {state.irrep for state in every.states} - {None}
    assert len(names) > 1
    for name in names:
        one = blocks(irrep=name, nroots=1)
        assert {state.irrep for state in one.states} == {name}
        expected = [state.energy for state in every.states if state.irrep == name]
        assert one.roots[0] <= expected[0] + 1e-8
    assert found.states[0].irrep == every.states[0].irrep
    assert found.amplitudes["r2"].shape == (4, *every.amplitudes["r2"].shape[1:])


def test_roots_of_an_irrep_that_does_not_exist() -> None:
    reference = mean_field(HYDRIDE)
    vectors, ground = "eom_ip_ccsd_complex_spin_orbital", "ccsd_complex_spin_orbital"
    singles = dense(ground, reference)
    with pytest.raises(ArgumentError, match=r"Ag.*A1"):
        solve(vectors, reference, amplitudes=singles, symmetry=True, irrep="Ag")
    with pytest.raises(ArgumentError, match=r"0 vectors.*A2"):  # one occupied orbital is removed
        solve(vectors, reference, amplitudes=singles, symmetry=True, irrep="A2")
    with pytest.raises(ArgumentError, match="symmetry=True"):
        solve(vectors, reference, amplitudes=singles, irrep="A1")
    without = mean_field(HYDRIDE, symmetry=False)
    ground = dense("ccsd_closed_shell", without)
    with pytest.raises(ArgumentError, match="needs blocks"):
        solve("eom_ee_ccsd_closed_shell", without, symmetry=True, irrep="A1", amplitudes=ground)


@pytest.mark.parametrize("kind", ["UHF", "GHF"])
def test_spins_of_spin_orbitals(kind: str) -> None:
    """Without a point group, spin orbitals are divided by their spins; GHF orbitals have none."""
    reference = mean_field(HYDRIDE, kind="UHF", symmetry=False)
    if kind == "GHF":
        reference = reference.to_ghf()
        turned = reference.mo_coeff.copy()
        c, s = np.cos(0.3), np.sin(0.3)
        turned[:, :2] = turned[:, :2] @ np.array([[c, s], [-s, c]])
        mixed = copied(reference, turned)
        assert solve("mp2_spin_orbital", mixed, symmetry=True).symmetry["group"] == "C1"
    found = solve("ccsd_spin_orbital", reference, symmetry=True)
    assert found.symmetry["group"] == "Sz"
    assert found.symmetry["bytes"] < found.symmetry["dense_bytes"] / 2
    assert equal(found, dense("ccsd_spin_orbital", reference))

"""``solve`` on mean fields with k-points, against PySCF's k-point codes."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcgen
from tcgen.blocks.arrays import BlockedArray
from tcgen.chem.crystal import momenta_of
from tcgen.errors import ArgumentError, ConvergenceError, TcgenError

pyscf = pytest.importorskip("pyscf")

FITTED = """
space o occupied
space v virtual
space x auxiliary
index i : o
index a : v
index P : x
input b[x,o,v] from df, e_o[o] from energies, e_v[v] from energies
output e
e = conj(b[P,i,a])*b[P,i,a]/(e_o[i] - e_v[a])
"""
# Per cell, in Hartree. Energies of iterated amplitudes depend on where an iteration ends.
EQUAL, ITERATED = 1e-9, 1e-7
solve = partial(tcgen.chem.solve, optimize=False, show=False, tolerance=1e-8)


def cell_of(name: str, **keywords: Any) -> Any:
    from pyscf.pbc import gto

    fcc = np.array([[0, 0.5, 0.5], [0.5, 0, 0.5], [0.5, 0.5, 0]])
    atoms, lattice = {
        "H2": ("H 0 0 0.1; H 0 0 0.85", np.diag([4.5, 4.5, 2.0])),
        "H4": (
            "H 0 0 0.1; H 0 0 0.85; H 0 2.2 0.1; H 0 2.2 0.85",
            np.diag([4.5, 4.5, 2.0]),
        ),
        "LiH": ("Li 0 0 0; H 2.0417 2.0417 2.0417", 4.0834 * fcc),
        "C": ("C 0 0 0; C 0.8917 0.8917 0.8917", 3.5668 * fcc),
    }[name]
    chosen = {"basis": "gth-szv", "pseudo": "gth-pade", "verbose": 0} | keywords
    return gto.M(atom=atoms, a=lattice, **chosen)


@cache
def mean_field(
    name: str = "H2",
    mesh: tuple[int, ...] = (1, 1, 3),
    kind: str = "KRHF",
    exxdiv: str | None = "ewald",
    center: tuple[float, ...] | None = None,
    spin: int = 0,
) -> Any:
    from pyscf.pbc import scf

    cell = cell_of(name, spin=spin, **({"basis": "gth-dzv"} if name == "H2" else {}))
    kpts = cell.make_kpts(mesh, scaled_center=center)
    reference = getattr(scf, kind)(cell, kpts, exxdiv=exxdiv).density_fit()
    reference.conv_tol = 1e-11
    reference.kernel()
    assert reference.converged
    return reference


@cache
def krccsd(reference: Any) -> Any:
    from pyscf.pbc import cc

    solver = cc.KRCCSD(reference)
    solver.conv_tol, solver.conv_tol_normt, solver.max_cycle = 1e-10, 1e-8, 80
    solver.kernel()
    return solver


def kmp2(reference: Any, **keywords: Any) -> float:
    from pyscf.pbc import mp

    return float(mp.KMP2(reference, **keywords).kernel()[0])


@cache
def ccsd(reference: Any) -> tcgen.chem.Solution:
    return solve("ccsd_complex_closed_shell", reference)


def mp2(reference: Any, **keywords: Any) -> float:
    return solve("mp2_complex_closed_shell", reference, **keywords).e_corr


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PySCF's (T) writes a file into the current folder."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("exxdiv", ["ewald", None])
def test_mp2_has_the_energies_of_the_mean_field(exxdiv: str | None) -> None:
    reference = mean_field(exxdiv=exxdiv)
    assert abs(mp2(reference) - kmp2(reference)) < EQUAL


def test_ccsd_and_triples() -> None:
    reference = mean_field()
    found, expected = ccsd(reference), krccsd(reference)
    assert abs(found.e_corr - expected.e_corr) < ITERATED
    assert abs(found.e_tot - expected.e_tot) < ITERATED
    assert found.symmetry["group"] == "k-points 1 x 1 x 3"
    triples = solve("t_complex_closed_shell", reference, amplitudes=found).energies["e_t"]
    assert abs(triples - expected.ccsd_t()) < ITERATED


def test_amplitudes_are_those_of_pyscf() -> None:
    reference = mean_field()
    found, expected = ccsd(reference), krccsd(reference)
    t2 = found.amplitudes["t2"]
    assert isinstance(t2, BlockedArray)
    for (i, j, a, _b), block in t2.blocks():
        np.testing.assert_allclose(block, expected.t2[i, j, a], rtol=0, atol=1e-6)


@pytest.mark.parametrize("suffix", ["npz", "h5"])
def test_amplitudes_are_saved_as_blocks(tmp_path: Path, suffix: str) -> None:
    pytest.importorskip("h5py")
    found = ccsd(mean_field())
    blocks = found.amplitudes["t2"]
    file = tmp_path / f"h2.{suffix}"
    vectors = replace(found, name="roots", amplitudes={"r1": [blocks, blocks]}, solved=["r1"])
    found.save(file)
    vectors.save(file)
    read = tcgen.chem.load(file, "roots").amplitudes["r1"]
    assert [x.grading for x in read] == [blocks.grading] * 2
    np.testing.assert_array_equal(read[1].data, blocks.data)
    stored = tcgen.chem.load(file, found.name)
    again = solve("ccsd_complex_closed_shell", mean_field(), amplitudes=stored)
    assert again.iterations == 1
    again = solve("ccsd_complex_closed_shell", mean_field(), amplitudes=stored.amplitudes)
    assert again.iterations == 1
    # Equal amplitudes of several solutions leave no choice.
    replace(found, name="copy").save(file)
    assert solve("t_complex_closed_shell", mean_field(), amplitudes=file).energies["e_t"]


@pytest.mark.slow
def test_the_exchange_correction_does_not_change_ccsd_and_lowers_energies_of_triples() -> None:
    """PySCF's (T) has lowered energies always, tcgen's where the mean field has them."""
    from pyscf.pbc import tools

    references = [mean_field(), mean_field(exxdiv=None)]
    ewald, none = (ccsd(reference) for reference in references)
    assert abs(ewald.e_corr - none.e_corr) < ITERATED
    reference, madelung = references[1], tools.madelung(references[1].cell, references[1].kpts)
    triples = partial(solve, "t_complex_closed_shell", reference, amplitudes=none)
    lowered = [e[:1] - madelung for e in reference.mo_energy]
    shifted = triples(inputs={"e_o": np.concatenate(lowered)}).energies["e_t"]
    assert abs(shifted - krccsd(reference).ccsd_t()) < ITERATED
    assert abs(shifted - triples().energies["e_t"]) > 1e-5


@pytest.mark.parametrize("mesh", [(1, 1, 2), pytest.param((2, 1, 2), marks=pytest.mark.slow)])
def test_a_shifted_mesh(mesh: tuple[int, ...]) -> None:
    reference = mean_field(mesh=mesh, center=(0.1, 0.2, 0.3))
    assert abs(mp2(reference) - kmp2(reference)) < EQUAL
    if mesh != (1, 1, 2):
        assert abs(ccsd(reference).e_corr - krccsd(reference).e_corr) < ITERATED


def test_one_k_point() -> None:
    reference = mean_field(mesh=(1, 1, 1))
    assert abs(mp2(reference) - kmp2(reference)) < EQUAL


def test_points_in_another_order() -> None:
    """The group is found from the points, in whatever order they are."""
    from pyscf.pbc import scf

    cell = cell_of("H2", basis="gth-dzv")
    kpts = cell.make_kpts((1, 1, 3))[[2, 0, 1]]
    reference = scf.KRHF(cell, kpts).density_fit()
    reference.conv_tol = 1e-11
    reference.kernel()
    assert abs(mp2(reference) - mp2(mean_field())) < 1e-7


@pytest.mark.parametrize(
    ("name", "frozen"),
    [
        ("H2", [3]),
        ("H2", [[3], [2, 3], []]),
        pytest.param("LiH", 1, marks=pytest.mark.slow),
        pytest.param("LiH", [[0], [0], [0]], marks=pytest.mark.slow),
    ],
)
def test_frozen_orbitals(name: str, frozen: Any) -> None:
    reference = mean_field(name)
    assert abs(mp2(reference, frozen=frozen) - kmp2(reference, frozen=frozen)) < EQUAL


def test_masks_of_frozen_orbitals() -> None:
    """A mask is not a list of the numbers 0 and 1."""
    mask = [False, False, False, True]
    expected = mp2(mean_field(), frozen=[[3], [], [3]])
    assert mp2(mean_field(), frozen=[mask, [], np.array(mask)]) == pytest.approx(expected)


@pytest.mark.parametrize(
    "frozen", [[[0]], [7], -1, "core", [0], [1.0], [[1.7], [], []], [[True], [], []]]
)
def test_frozen_orbitals_that_do_not_fit(frozen: Any) -> None:
    with pytest.raises(ArgumentError, match="frozen"):
        mp2(mean_field(), frozen=frozen)


def test_open_shells_with_different_occupations() -> None:
    """Three k-points have one, one and two occupied alpha orbitals, and one has no beta orbital."""
    from pyscf.pbc import cc

    reference = mean_field(kind="KUHF", spin=2)
    counts = {tuple(int(o.sum()) for o in spin) for spin in reference.mo_occ}
    assert any(len(set(c)) > 1 for c in counts)
    assert any(0 in c for c in counts)
    found = solve("ccsd_complex_spin_orbital", reference)
    assert found.symmetry["group"] == "k-points 1 x 1 x 3 x Sz"
    expected = cc.KUCCSD(reference)
    expected.conv_tol, expected.conv_tol_normt, expected.max_cycle = 1e-10, 1e-8, 80
    expected.kernel()
    assert abs(found.e_corr - expected.e_corr) < ITERATED


@pytest.mark.slow
def test_a_metal() -> None:
    """Two k-points with three and one occupied orbitals."""
    from pyscf.pbc import scf

    cell = cell_of("H4")
    reference = scf.KRHF(cell, cell.make_kpts((1, 1, 2))).density_fit()
    occupations = [np.array([2.0, 2, 2, 0]), np.array([2.0, 0, 0, 0])]
    reference.get_occ = lambda *_, **__: occupations
    reference.conv_tol = 1e-11
    reference.kernel()
    assert reference.converged
    assert abs(mp2(reference) - kmp2(reference)) < EQUAL
    found = solve("mp2_complex_closed_shell", reference).symmetry["orbitals"]
    assert found["o"] == {"0,0,0": 3, "0,0,1": 1}


@pytest.mark.slow
def test_spin_orbitals_of_a_closed_shell() -> None:
    reference = mean_field()
    closed = ccsd(reference)
    for orbitals in (reference, reference.to_ghf()):
        found = solve("ccsd_complex_spin_orbital", orbitals)
        assert abs(found.e_corr - closed.e_corr) < ITERATED
        triples = solve("t_complex_spin_orbital", orbitals, amplitudes=found).energies["e_t"]
        expected = solve("t_complex_closed_shell", reference, amplitudes=closed).energies["e_t"]
        assert abs(triples - expected) < ITERATED


@pytest.mark.slow
@pytest.mark.parametrize(("name", "mesh"), [("LiH", (2, 2, 2)), ("C", (2, 2, 2))])
def test_crystals_of_eight_cells(name: str, mesh: tuple[int, ...]) -> None:
    reference = mean_field(name, mesh)
    assert abs(mp2(reference) - kmp2(reference)) < EQUAL
    expected = krccsd(reference)
    found = ccsd(reference)
    assert abs(found.e_corr - expected.e_corr) < ITERATED


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ip", "ea"])
def test_roots_of_each_momentum(kind: str) -> None:
    """The lowest root of a momentum is that of PySCF; without one, the lowest of all are found."""
    reference = mean_field()
    solver = krccsd(reference)
    ground = solve("ccsd_complex_spin_orbital", reference)
    roots = partial(
        solve, f"eom_{kind}_ccsd_complex_spin_orbital", reference, amplitudes=ground, tolerance=1e-6
    )
    lowest = []
    for k in range(3):
        expected = float(np.ravel(getattr(solver, f"{kind}ccsd")(nroots=1, kptlist=[k])[0])[0])
        found = roots(irrep=(f"0,0,{k}", k, (0, 0, k))[k])
        assert found.converged
        assert abs(found.roots[0] - expected) < 1e-5
        assert found.states[0].irrep == f"0,0,{k}"
        lowest.append(found.roots[0])
    found = roots(nroots=2)
    assert abs(found.roots[0] - min(lowest)) < 1e-6
    assert all(isinstance(vector, BlockedArray) for vector in found.amplitudes["r2"])
    with pytest.raises(ArgumentError, match=r"B1.*0,0,0"):
        roots(irrep="B1")


@pytest.mark.slow
def test_symmetry_of_the_space_group_is_undone() -> None:
    from pyscf.pbc import scf

    cell = cell_of("LiH", space_group_symmetry=True, symmorphic=False)
    kpts = cell.make_kpts((2, 2, 2), space_group_symmetry=True, time_reversal_symmetry=True)
    reference = scf.KRHF(cell, kpts).density_fit()
    reference.conv_tol = 1e-11
    reference.kernel()
    assert abs(mp2(reference) - mp2(mean_field("LiH", (2, 2, 2)))) < ITERATED


@pytest.mark.parametrize(
    ("points", "words"),
    [
        ([[0, 0, 0], [0, 0, 0.25]], "not closed"),
        ([[0, 0, 0], [0, 0, 1 / 3]], "not closed"),
        ([[0, 0, 0], [0, 0, 0.31830989]], "those of a mesh"),
        ([[0, 0, 0], [0, 0, 0.5], [0, 0, 1.5]], "twice"),
    ],
)
def test_lists_that_are_no_group(points: list[list[float]], words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        momenta_of(np.array(points))


def test_momenta_of_a_part_of_a_mesh() -> None:
    """A diagonal of a mesh is a group; points may lie in any cell of the reciprocal lattice."""
    assert momenta_of(np.array([[0, 0, 0], [0.5, -0.5, 1]])) == ((2, 2, 1), (0, 3))
    shifted = np.array([[0.1, 0, 0.9], [0.1, 0, 0.9 - 1 / 3], [0.1, 0, 0.9 + 1 / 3]])
    assert momenta_of(shifted) == ((1, 1, 3), (0, 2, 1))


def changed(**attributes: Any) -> Any:
    reference = mean_field().copy()
    for name, value in attributes.items():
        setattr(reference, name, value)
    return reference


def test_what_is_refused() -> None:
    from pyscf.pbc import scf

    reference = mean_field()
    half = [np.full(len(o), 0.5) for o in reference.mo_occ]
    grid = scf.KRHF(reference.cell, reference.kpts)
    grid.mo_coeff, grid.mo_occ, grid.mo_energy = (
        reference.mo_coeff, reference.mo_occ, reference.mo_energy,
    )  # fmt: skip
    grid.converged = True
    cases: list[tuple[Any, str, dict[str, Any], type[TcgenError], str]] = [
        (changed(converged=False), "mp2_complex_closed_shell", {}, ConvergenceError, "kernel"),
        (changed(mo_occ=half), "mp2_complex_closed_shell", {}, ArgumentError, "fractional"),
        (grid, "mp2_complex_closed_shell", {}, ArgumentError, "density_fit"),
        (reference, "mp2_closed_shell", {}, ArgumentError, "real orbitals"),
        (reference, FITTED, {}, ArgumentError, "three-index"),
        (reference, "mp2_complex_closed_shell", {"dtype": "float32"}, ArgumentError, "complex128"),
        (
            reference,
            "mp2_complex_closed_shell",
            {"dtype": "complex64"},
            ArgumentError,
            "complex128",
        ),
        (reference, "mp2_complex_closed_shell", {"auxbasis": "weigend"}, ArgumentError, "auxbasis"),
        (reference, "mp2_complex_closed_shell", {"irrep": "0,0,1"}, ArgumentError, "irrep"),
        (reference, "mp2_complex_closed_shell", {"target": "cuda"}, ArgumentError, "target"),
    ]
    for source, spec, keywords, kind, words in cases:
        with pytest.raises(kind, match=words):
            solve(spec, source, **keywords)
    with pytest.raises(ArgumentError, match="core Hamiltonian"):
        tcgen.chem.write_fcidump("CRYSTAL", reference)
    with pytest.raises(ArgumentError, match="k-points"):
        tcgen.chem.properties("ccsd_complex_closed_shell", reference)

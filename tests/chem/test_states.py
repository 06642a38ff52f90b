"""States: strengths against full CI, left vectors against transposed matrices, spins, irreps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcgen
from support.command_line import invoke
from support.marks import slow
from support.messages import mentions
from tcgen.chem.driver import opened
from tcgen.chem.eigen import Layout, Roots
from tcgen.chem.excited import ground_state
from tcgen.chem.options import solve_options
from tcgen.chem.root_vectors import groups
from tcgen.chem.states import State, States
from tcgen.chem.vector_pairs import paired

Chemistry = Callable[[str], Any]
FAST: dict[str, Any] = {"target": "numpy", "optimize": False, "show": False}
ROOT = 1e-8  # Hartree
STRENGTH = 1e-7


@pytest.fixture(scope="module")
def states() -> Callable[..., tcgen.chem.Solution]:
    pytest.importorskip("pyscf")
    return partial(tcgen.chem.excited_states, **FAST)


@pytest.fixture(scope="module")
def solve() -> Callable[..., tcgen.chem.Solution]:
    pytest.importorskip("pyscf")
    return partial(tcgen.chem.solve, **FAST)


@pytest.fixture(scope="module")
def lih(chemistry: Chemistry) -> Any:
    return chemistry("lih_sto3g").reference


@pytest.fixture(scope="module")
def three(states: Any, lih: Any) -> tcgen.chem.Solution:
    """The three lowest singlets of LiH; the second and third are equal."""
    return states("ccsd_closed_shell", lih, nroots=3)


@pytest.fixture(scope="module")
def hydrogen() -> Any:
    """A molecule of two electrons, to which CCSD is exact, and its states by full CI."""
    pytest.importorskip("pyscf")
    from pyscf import ao2mo, fci, gto, scf

    atoms = "He 0 0.1 0; H 0 0.6 0.7"
    mf = scf.RHF(gto.M(atom=atoms, basis="6-31g", charge=1, verbose=0)).run(conv_tol=1e-13)
    c = mf.mo_coeff
    n = c.shape[1]
    solver = fci.direct_spin1.FCI()
    solver.conv_tol = 1e-13
    integrals = c.T @ mf.get_hcore() @ c, ao2mo.restore(1, ao2mo.full(mf.mol, c), n)
    energies, vectors = solver.kernel(*integrals, n, mf.mol.nelec, nroots=16)
    dipole = np.einsum("xpq,pi,qj->xij", mf.mol.intor("int1e_r"), c, c)
    found = []
    for energy, vector in zip(energies[1:], vectors[1:], strict=True):
        spin = fci.spin_op.spin_square(vector, n, mf.mol.nelec)[1]
        density = fci.direct_spin1.trans_rdm1(vectors[0], vector, n, mf.mol.nelec)
        moment = np.einsum("xij,ij->x", dipole, density)
        found.append((energy - energies[0], round(spin), moment**2))
    return mf, found


@pytest.mark.parametrize(
    "spec", ["ccsd_spin_orbital", *slow("ccsd_closed_shell", "uccsd", "ccsd_df")]
)
def test_two_electrons_have_the_moments_of_full_ci(spec: str, states: Any, hydrogen: Any) -> None:
    mf, exact = hydrogen
    closed = spec in ("ccsd_closed_shell", "ccsd_df")
    found = states(spec, mf, nroots=4 if closed else 7)
    assert found.converged
    expected = [one for one in exact if one[1] == 1 or not closed]
    # Fitted integrals are not those of the full CI.
    root, close = (3e-3, 5e-3) if spec == "ccsd_df" else (ROOT, STRENGTH)
    for state, (energy, multiplicity, squares) in zip(found.states[:-1], expected, strict=False):
        assert state.multiplicity == multiplicity
        assert abs(state.energy - energy) < root
        np.testing.assert_allclose(state.moments, squares, rtol=0, atol=close)
        assert abs(state.strength - 2 / 3 * energy * squares.sum()) < close
    assert max(state.strength for state in found.states) > 0.1


def test_strengths_of_four_electrons_are_near_full_ci(three: Any, lih: Any) -> None:
    from pyscf import ao2mo, fci

    c = lih.mo_coeff
    n = c.shape[1]
    integrals = c.T @ lih.get_hcore() @ c, ao2mo.restore(1, ao2mo.full(lih.mol, c), n)
    energies, vectors = fci.direct_spin0.FCI().kernel(*integrals, n, lih.mol.nelec, nroots=4)
    dipole = np.einsum("xpq,pi,qj->xij", lih.mol.intor("int1e_r"), c, c)
    densities = [fci.direct_spin0.trans_rdm1(vectors[0], v, n, lih.mol.nelec) for v in vectors[1:]]
    moments = np.einsum("xij,kij->kx", dipole, densities)
    expected = 2 / 3 * (energies[1:] - energies[0]) * (moments**2).sum(axis=1)
    strengths = [state.strength for state in three.states]
    np.testing.assert_allclose(strengths, expected, rtol=5e-3)
    assert strengths[1] > 0.2


@pytest.mark.slow
@pytest.mark.parametrize("spec", ["ccsd_closed_shell", "ccsd_spin_orbital"])
def test_vectors_are_those_of_the_dense_matrix(spec: str, states: Any, lih: Any) -> None:
    """Every root as often as it is there; left vectors of the transposed matrix; pairs."""
    count = 9
    found = states(spec, lih, nroots=count)
    state = ground_state(spec, lih, solve_options(None, {**FAST, "amplitudes": None}))
    made = state.lagrangian
    system = made.right_product()
    roles = {
        f"d_{a.output.name}": f"residual of x_{a.tensor.name}" for a in made.equations.amplitudes
    }
    with opened(system, lih, state.options_for(system, state.amplitudes, roles)) as problem:
        multiply, parts, _ = problem.matrix(lambda _: None)
        layout = Layout(parts)
        rows = sum(part.places.size for part in parts.values())
        matrix = np.array(layout.vectors(multiply(layout.amplitudes(np.eye(rows))))).T
    roots = np.sort(np.linalg.eigvals(matrix).real)[:count]
    np.testing.assert_allclose(found.roots, roots, rtol=0, atol=1e-7)
    right = {f"x_t{n}": found.amplitudes[f"r{n}"] for n in (1, 2)}
    left = {f"x_t{n}": found.amplitudes[f"l{n}"] for n in (1, 2)}
    for root, vector in zip(found.roots, layout.vectors(right), strict=True):
        np.testing.assert_allclose(matrix @ vector, root * vector, rtol=0, atol=1e-7)
    # Products of left vectors with unit vectors are their elements in the dual space.
    units = {n: a.reshape(rows, -1) for n, a in layout.amplitudes(np.eye(rows)).items()}
    own = {"t1": right["x_t1"], "t2": right["x_t2"]}
    pairs = state.overlap({"t1": left["x_t1"], "t2": left["x_t2"]}, own)
    np.testing.assert_allclose(pairs, np.eye(count), rtol=0, atol=1e-6)
    by_unit = state.overlap(
        {"t1": left["x_t1"], "t2": left["x_t2"]},
        {n[2:]: a.reshape(rows, *left[n].shape[1:]) for n, a in units.items()},
    )
    for root, covector in zip(found.roots, by_unit, strict=True):
        np.testing.assert_allclose(covector @ matrix, root * covector, rtol=0, atol=1e-6)


@pytest.mark.slow
def test_a_pair_of_equal_roots_is_cut_after_it_was_matched(
    states: Any, three: Any, lih: Any
) -> None:
    two = states("ccsd_closed_shell", lih, nroots=2)
    assert len(two.roots) == len(two.states) == 2
    assert len(two.amplitudes["l2"]) == 2
    assert abs(two.states[1].strength - three.states[1].strength) < STRENGTH
    whole = states("ccsd_closed_shell", lih, nroots=44, moments=False)
    assert len(whole.roots) == 44
    with pytest.raises(tcgen.ArgumentError, match=mentions("nroots 45 44")):
        states("ccsd_closed_shell", lih, nroots=45)


def test_spin_orbital_roots_are_states(states: Any, three: Any, lih: Any) -> None:
    """Roots come once, three and six times, and each state is named once."""
    found = states("ccsd_spin_orbital", lih, nroots=12, moments=False).states
    assert [(s.multiplicity, len(s.roots)) for s in found] == [
        (3, 3), (1, 1), (3, 3), (3, 3), (1, 1), (1, 1)
    ]  # fmt: skip
    assert [s.s2 for s in found] == [2.0, 0.0, 2.0, 2.0, 0.0, 0.0]
    own = [s.energy for s in found if s.multiplicity == 1]
    np.testing.assert_allclose(own, three.roots, rtol=0, atol=ROOT)
    assert found[0].strength is None


def test_quartets_among_doublets(solve: Any, lih: Any) -> None:
    """All 52 roots: two orbitals with one hole, and two holes with a particle in four orbitals.

    Two holes in one orbital leave a doublet for each particle, those in both two doublets and a
    quartet.
    """
    ground = solve("ccsd_spin_orbital", lih)
    found = solve("eom_ip_ccsd_spin_orbital", lih, amplitudes=ground, nroots=52)
    counts = Counter(state.multiplicity for state in found.states)
    assert counts == {2: 2 + 2 * 4 + 2 * 4, 4: 4}
    assert sorted(k for s in found.states for k in s.roots) == list(range(52))
    assert {s.s2 for s in found.states} == {0.75, 3.75}


CIS = """
space o occupied
space v virtual
space roots
index i j : o
index a b : v
index x : roots
input v_ovov[o,v,o,v], v_oovv[o,o,v,v] symmetric (0,1) (2,3), e_o[o], e_v[v]
input c[o,v,roots]
output s
s[i,a,x] = (e_v[a] - e_o[i])*c[i,a,x] - v_oovv[i,j,a,b]*c[j,b,x] + {}*v_ovov[i,a,j,b]*c[j,b,x]
"""


@pytest.mark.parametrize(("factor", "multiplicity"), [(2, 1), (0, 3), (1, None)])
@pytest.mark.filterwarnings("ignore:input v_ovov is not read")
def test_singlets_and_triplets_are_told_apart(
    factor: int, multiplicity: int | None, solve: Any, lih: Any
) -> None:
    found = solve(CIS.format(factor), lih, nroots=2)
    assert [state.multiplicity for state in found.states] == [multiplicity] * 2


@pytest.mark.slow
def test_shipped_equations_name_the_spin(solve: Any, lih: Any) -> None:
    ground = solve("ccsd_closed_shell", lih)
    found = solve("eom_ee_ccsd_closed_shell", lih, amplitudes=ground, nroots=2)
    assert [(state.multiplicity, state.s2) for state in found.states] == [(1, 0.0)] * 2
    assert found.states[0].leading[0] == (pytest.approx(0.91, abs=0.01), "1 -> 2")


def test_irreps_and_numbers_of_orbitals(states: Any, lih: Any) -> None:
    from pyscf import scf

    mol = lih.mol.copy()
    mol.build(symmetry=True, dump_input=False)
    mf = scf.RHF(mol).run(conv_tol=1e-12)
    found = states("ccsd_closed_shell", mf, nroots=3, moments=False, frozen=1)
    assert [state.irrep for state in found.states] == ["A1", "B1", "B2"]
    assert [state.leading[0][1] for state in found.states] == ["1 -> 2", "1 -> 3", "1 -> 4"]


@pytest.mark.slow
def test_states_of_an_open_shell_have_no_spin(states: Any) -> None:
    """The lowest one is the doublet itself with the other spin, of energy zero."""
    from pyscf import gto, scf

    mol = gto.M(atom="Be 0 0 0; H 0 0 1.3426", basis="sto-3g", spin=1, verbose=0)
    found = states("ccsd_spin_orbital", scf.UHF(mol).run(conv_tol=1e-12), nroots=3).states
    assert {state.multiplicity for state in found} == {None}
    assert abs(found[0].energy) < 1e-3
    assert found[0].leading[0][1] == "2a -> 2b"
    assert found[0].strength == pytest.approx(0.0, abs=1e-9)
    assert found[1].strength == pytest.approx(found[2].strength, abs=1e-7)
    assert found[1].strength > 0.02


def test_no_number_of_a_table_is_a_negative_zero() -> None:
    (_, row) = States([State(-1e-9, (0,), strength=-1e-9)]).lines()
    assert "-" not in row


@pytest.mark.slow
def test_states_of_integrals(states: Any, lih: Any, three: Any) -> None:
    """Labels of orbitals are those of states; there are no strengths without coordinates."""
    from pyscf import ao2mo

    c = lih.mo_coeff
    h, eri = c.T @ lih.get_hcore() @ c, ao2mo.full(lih.mol, c)
    # A1, B1 and B2 in Molpro's numbers.
    held = tcgen.chem.hamiltonian(h, eri, nelec=4, irreps=[1, 1, 1, 2, 3, 1])
    found = states("ccsd_closed_shell", held, nroots=3)
    np.testing.assert_allclose(found.roots, three.roots, rtol=0, atol=ROOT)
    assert [state.irrep for state in found.states] == ["1", "2", "3"]
    assert [state.strength for state in found.states] == [None] * 3
    with pytest.raises(tcgen.ArgumentError, match="no strengths: compute them with moments"):
        found.states.spectrum([1.0])


def test_states_in_files(three: Any, tmp_path: Path) -> None:
    again = tcgen.chem.load(three.save(tmp_path / "states.npz"))
    assert again.states == three.states
    record = three.as_json()["states"][0]
    assert record["ev"] == pytest.approx(record["energy"] * 27.2114, rel=1e-5)
    assert record["multiplicity"] == 1
    assert "<td>1</td>" in three.states._repr_html_()
    assert len(str(three.states).splitlines()) == 4


def test_a_spectrum_has_the_strengths_of_its_states() -> None:
    states = States([State(0.2, (0,), strength=0.5), State(0.3, (1,), strength=0.25)])
    energies = np.linspace(0.0, 15.0, 20001)
    curve = states.spectrum(energies, width=0.3)
    assert np.trapezoid(curve, energies) == pytest.approx(0.75, abs=1e-9)
    assert energies[np.argmax(curve)] == pytest.approx(0.2 * 27.2114, abs=1e-2)


def test_a_picture_of_a_spectrum(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    states = States([State(0.2, (0,), strength=0.5)])
    path = states.plot(tmp_path / "spectrum.svg")
    assert "energy / eV" in path.read_text()
    for name in ("spectrum", "spectrum.xyz"):
        with pytest.raises(tcgen.ArgumentError, match="names no format of pictures: write"):
            states.plot(tmp_path / name)


def test_a_picture_needs_matplotlib_and_states(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    path = tmp_path / "spectrum.png"
    with pytest.raises(tcgen.UnavailableError, match="pip install matplotlib"):
        States([State(0.2, (0,), strength=0.5)]).plot(path)
    with pytest.raises(tcgen.ArgumentError, match="at least one state to draw"):
        States().plot(path)
    assert not path.exists()
    # The command says so before it computes anything.
    command = ("solve", "ccsd_closed_shell", "--atom", "He", "--states", 1, "--spectrum", path)
    made = invoke(*command)
    assert made.exit_code == 3
    assert "pip install matplotlib" in made.stderr
    assert not made.stdout


def test_vectors_without_pairs_are_refused() -> None:
    """Two equal roots with one vector: left and right vectors are orthogonal."""
    vectors = {"l": np.eye(2)}
    overlap = np.diag([2.0, 0.0])
    with pytest.raises(tcgen.ConvergenceError, match=r"the root 0\.300000 have no pairs"):
        paired("ccsd", (0.3, 0.3), Roots((0.3, 0.3), vectors, (0.0, 0.0), 1), overlap, 1e-9)
    for values, norms in (((0.3, 0.4), (0.0, 0.0)), ((0.3, 0.3), (0.0, 1e-3))):
        with pytest.raises(tcgen.ConvergenceError, match=r"roots of left vectors of ccsd differ"):
            paired("ccsd", (0.3, 0.3), Roots(values, vectors, norms, 1), overlap, 1e-9)
    left = paired(
        "ccsd", (0.2, 0.3), Roots((0.2, 0.3), vectors, (0.0, 0.0), 1), 2 * np.eye(2), 1e-9
    )
    np.testing.assert_allclose(left["l"], np.eye(2) / 2)


def test_groups_of_equal_roots() -> None:
    assert groups([]) == []
    assert groups([0.1, 0.1 + 1e-7, 0.2]) == [[0, 1], [2]]


UPDATED = """space o occupied
space v virtual
index i j k : o
index a b c : v
input v_oovv[o,o,v,v] antisymmetric (0,1) (2,3), e_o[o], e_v[v]
input t2[o,o,v,v] antisymmetric (0,1) (2,3)
output e, {out}
e = 1/4*v_oovv[i,j,a,b]*t2[i,j,a,b]
{out}[i,j,a,b] = {value}
"""
DIVIDED = "v_oovv[i,j,a,b]/(e_o[i] + e_o[j] - e_v[a] - e_v[b])"
ENERGIES = "v_oovv[i,j,a,b] + (e_o[i] + e_o[j] - e_v[a] - e_v[b])*t2[i,j,a,b]"


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("mp2_closed_shell", "mp2_closed_shell has no amplitudes of a ground state"),
        (UPDATED.format(out="t2_new", value=DIVIDED), "t2_new updated residuals"),
        (UPDATED.format(out="r2", value=ENERGIES), "e_o, e_v f_oo"),
    ],
)
def test_equations_without_a_lagrangian_are_refused(
    spec: str, said: str, states: Any, lih: Any
) -> None:
    with pytest.raises(tcgen.ArgumentError, match=mentions(said)):
        states(spec, lih)


def test_equations_that_read_other_amplitudes_are_refused(
    states: Any, lih: Any, three: Any
) -> None:
    with pytest.raises(tcgen.ArgumentError, match="amplitudes of a ground state"):
        states("t_closed_shell", lih, amplitudes=three)


def test_complex_numbers_are_refused(states: Any, lih: Any) -> None:
    with pytest.raises(tcgen.ArgumentError, match="complex128: states and properties"):
        states("ccsd_spin_orbital", lih, dtype="complex128")


def test_a_ground_state_that_does_not_converge(states: Any, lih: Any) -> None:
    with pytest.raises(tcgen.ConvergenceError, match="amplitudes of ccsd_closed_shell"):
        states("ccsd_closed_shell", lih, max_cycle=2)


@pytest.mark.slow
def test_dyson_norms_of_two_electrons_are_those_of_full_ci(blocks: Any, wickd: None) -> None:
    """Ionisation is exact; attachment misses what three electrons do together."""
    from pyscf import ao2mo, fci

    field = blocks.mean_field(blocks.molecule("H 0 0 0; H 0 0 1.0", "6-31g"), "RHF")
    c = field.mo_coeff
    n = c.shape[1]
    h, eri = c.T @ field.get_hcore() @ c, ao2mo.kernel(field.mol, c)
    energy, ground = fci.direct_spin1.kernel(h, eri, n, (1, 1), tol=1e-13)
    for attachment, electrons in ((False, (0, 1)), (True, (2, 1))):
        change = fci.addons.cre_a if attachment else fci.addons.des_a
        roots, vectors = fci.direct_spin1.kernel(h, eri, n, electrons, nroots=n)
        orbitals = [[np.vdot(v, change(ground, n, (1, 1), p)) for p in range(n)] for v in vectors]
        expected = (np.array(orbitals) ** 2).sum(axis=1)
        found = tcgen.chem.ionised_states(
            field, attachment=attachment, nroots=1 if attachment else 3,
            target="numpy", optimize=False, show=False, tolerance=1e-10,
        )  # fmt: skip
        assert [s.multiplicity for s in found.states] == [2] * len(found.states)
        energies, norms = zip(*((s.energy, s.dyson) for s in found.states), strict=True)
        size = 1e-3 if attachment else 1e-8
        np.testing.assert_allclose(energies, roots[: len(norms)] - energy, rtol=0, atol=size)
        np.testing.assert_allclose(norms, expected[: len(norms)], rtol=0, atol=size)
        left, right = (found.values[f"dyson_{x}"] for x in ("left", "right"))
        assert left.shape == right.shape == (len(found.roots), 2 * n)
    assert "Dyson" in str(found.states)
    with pytest.raises(tcgen.ArgumentError, match="CCSD"):
        tcgen.chem.ionised_states(field, method="qcisd")


@pytest.mark.slow
@pytest.mark.parametrize("attachment", [False, True])
def test_closed_shells_have_the_dyson_norms_of_spin_orbitals(
    attachment: bool, lih: Any, wickd: None
) -> None:
    """Quartets have none; two roots of a doublet are one."""
    ionised = partial(tcgen.chem.ionised_states, lih, attachment=attachment, **FAST)
    found, whole = ionised(nroots=5, orbitals="spatial"), ionised(nroots=12)
    names = [(s.multiplicity, round(s.energy, 7), round(s.dyson or 0.0, 7)) for s in whole.states]
    assert [
        (s.multiplicity, round(s.energy, 7), round(s.dyson or 0.0, 7)) for s in found.states
    ] == names[:5]
    assert {s.multiplicity for s in found.states} == ({2, 4} if attachment else {2})
    assert found.values["dyson_left"].shape == (5, 6)
    axes = {letters for n, letters in found.letters.items() if n.startswith("r2_")}
    assert axes == {"xovv" if attachment else "xoov"}


def test_quartets_of_a_closed_shell(solve: Any, lih: Any, wickd: None) -> None:
    """Blocks of several spins hold the component of a quartet that has one hole of each spin."""
    ground = solve("ccsd_closed_shell", lih)
    found = solve("eom_ip_ccsd_closed_shell", lih, amplitudes=ground, nroots=22)
    assert Counter(s.multiplicity for s in found.states) == {2: 18, 4: 4}
    assert {s.s2 for s in found.states} == {0.75, 3.75}
    quartet = next(s for s in found.states if s.multiplicity == 4)
    assert all(name.count("a") + name.count("b") == 3 for _, name in quartet.leading)

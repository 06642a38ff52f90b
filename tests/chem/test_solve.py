"""``tcgen.chem.solve`` on PySCF references, to 1e-8 Hartree of PySCF's own codes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tcgen
from support.messages import mentions
from support.paths import TESTS
from tcgen.chem.iterate import Step
from tcgen.chem.table import Table

Chemistry = Callable[[str], Any]
TOLERANCE = 1e-8  # Hartree
CLOSED = "space o occupied\nspace v virtual\nindex i j k l : o\nindex a b c d : v\n"


@pytest.fixture(scope="module")
def solve() -> Callable[..., tcgen.chem.Solution]:
    """``solve`` that compiles fast and prints nothing."""
    pytest.importorskip("pyscf")
    return partial(tcgen.chem.solve, target="numpy", optimize=False, show=False)


@pytest.fixture(scope="module")
def radical(blocks: Any) -> SimpleNamespace:
    """References of BeH, an open shell of five electrons."""
    from pyscf import scf

    mol = blocks.molecule("Be 0 0 0; H 0 0 1.3426", "sto-3g", spin=1)
    uhf, rohf = (blocks.mean_field(mol, kind) for kind in ("UHF", "ROHF"))
    ghf = scf.addons.convert_to_ghf(uhf)
    cosine, sine = np.cos(0.3), np.sin(0.3)
    turn = np.kron(np.array([[cosine, -sine], [sine, cosine]]), np.eye(mol.nao))
    turned = scf.GHF(mol)
    turned.conv_tol, turned.conv_tol_grad = 1e-13, 1e-8
    turned.kernel(turn @ ghf.make_rdm1() @ turn.T)
    assert turned.converged
    assert (
        np.abs(turned.mo_coeff[: mol.nao]).max(axis=0).min() > 0.1
    )  # every orbital has both spins
    return SimpleNamespace(UHF=uhf, ROHF=rohf, GHF=turned)


def uccsd(reference: Any, blocks: Any, frozen: int = 0) -> Any:
    from pyscf import cc

    solver = blocks.tight(cc.UCCSD(reference, frozen=frozen or None))
    solver.kernel()
    return solver


@pytest.mark.parametrize("name", ["lih_sto3g", "h2o_sto3g"])
def test_ccsd_closed_shell(name: str, chemistry: Chemistry, solve: Any) -> None:
    case = chemistry(name)
    found = solve("ccsd_closed_shell", case.reference)
    assert found.converged
    assert abs(found.e_corr - case.energies["E_CCSD_corr"]) < TOLERANCE
    assert abs(found.e_tot - found.e_corr - case.energies["E_HF"]) < TOLERANCE
    assert found.energies == {"e": found.e_corr}
    assert found.residual_norms.keys() == {"r1", "r2"}
    assert max(found.residual_norms.values()) <= 1e-9
    assert np.allclose(found.amplitudes["t2"], case.closed_solver.t2, rtol=0, atol=1e-8)


@pytest.mark.parametrize(
    "frozen", [1, np.int64(1), (0, 6), [0, -1], None, np.arange(2), np.arange(7) < 1]
)
def test_frozen_orbitals_are_those_of_pyscf(
    frozen: Any, chemistry: Chemistry, solve: Any, blocks: Any
) -> None:
    from pyscf import cc

    reference = chemistry("h2o_sto3g").reference
    mask = isinstance(frozen, np.ndarray) and frozen.dtype == bool
    numbers = np.flatnonzero(frozen) if mask else frozen
    solver = blocks.tight(cc.rccsd.RCCSD(reference, frozen=numbers))
    solver.kernel()
    found = solve("ccsd_closed_shell", reference, frozen=frozen)
    assert abs(found.e_corr - solver.e_corr) < TOLERANCE


@pytest.mark.filterwarnings("ignore:.*leaves out elements of the Fock matrix")
@pytest.mark.parametrize("frozen", [[[0, 1], [0]], [[], [0]], [np.arange(2), np.arange(1)]])
@pytest.mark.parametrize("kind", ["UHF", "ROHF"])
def test_frozen_orbitals_of_each_spin(
    kind: str, frozen: Any, radical: SimpleNamespace, solve: Any, blocks: Any
) -> None:
    from pyscf import mp

    reference = getattr(radical, kind)
    if kind == "ROHF":
        reference = reference.to_uhf()
        found = solve("mp2_spin_orbital", reference, frozen=frozen)
        masks = [np.isin(np.arange(reference.mo_occ.shape[1]), spin) for spin in frozen]
        again = solve("mp2_spin_orbital", reference, frozen=masks).e_corr
        assert again == pytest.approx(found.e_corr, abs=1e-12)
        return
    found = solve("mp2_spin_orbital", reference, frozen=frozen)
    expected = mp.UMP2(reference, frozen=frozen).run().e_corr
    assert abs(found.e_corr - expected) < TOLERANCE


@pytest.mark.filterwarnings("ignore:.*leaves out elements of the Fock matrix")
@pytest.mark.parametrize("kind", ["RHF", "UHF", "ROHF"])
def test_a_reaction_field_is_in_the_fock_matrix(
    kind: str, radical: SimpleNamespace, chemistry: Chemistry, solve: Any
) -> None:
    from pyscf import mp, scf

    mol = chemistry("h2o_sto3g").reference.mol if kind == "RHF" else radical.UHF.mol
    reference = getattr(scf, kind)(mol).ddCOSMO()
    reference.conv_tol = 1e-11
    reference.kernel()
    spec = "mp2_closed_shell" if kind == "RHF" else "mp2_spin_orbital"
    found = solve(spec, reference)
    assert abs(found.e_hf - reference.e_tot) < 1e-9
    if kind != "ROHF":
        expected = getattr(mp, f"{kind[0]}MP2")(reference).run().e_corr
        assert abs(found.e_corr - expected) < TOLERANCE
    else:  # without orbital rotations, the same equations on the Fock matrices of UHF
        same = solve(spec, reference.to_uhf())
        assert abs(found.e_corr - same.e_corr) < TOLERANCE


def test_a_mean_field_that_changes_its_fock_matrix(chemistry: Chemistry, solve: Any) -> None:
    reference = chemistry("lih_sto3g").reference.copy()
    plain = reference.get_fock
    text = CLOSED + "input f_oo[o,o]\noutput e\ne = f_oo[i,i]\n"
    before = solve(text, reference).energies["e"]
    reference.get_fock = lambda *args, **keys: plain(*args, **keys) + reference.get_ovlp()
    assert abs(solve(text, reference).energies["e"] - before - 2) < 1e-8


def test_no_attribute_is_searched_in_all_modules(chemistry: Chemistry, solve: Any) -> None:
    from pyscf import scf

    class Strict(scf.hf.RHF):
        def __getattr__(self, name: str) -> Any:
            raise AssertionError(name)

    reference = chemistry("lih_sto3g").reference.view(Strict)
    assert abs(solve("mp2_closed_shell", reference).e_corr + 0.012870135774) < 1e-8


@pytest.mark.filterwarnings("ignore:.*leaves out elements of the Fock matrix")
def test_the_energy_is_that_of_the_orbitals(chemistry: Chemistry, solve: Any) -> None:
    reference = chemistry("lih_sto3g").reference.copy()
    turn = np.eye(6)
    turn[1:3, 1:3] = [[np.cos(0.1), -np.sin(0.1)], [np.sin(0.1), np.cos(0.1)]]
    reference.mo_coeff = reference.mo_coeff @ turn
    expected = reference.energy_tot(reference.make_rdm1())
    assert expected > reference.e_tot + 1e-4
    assert abs(solve("mp2_closed_shell", reference).e_hf - expected) < 1e-10
    reference.e_tot = 0.0  # as for orbitals that were read from a file
    assert abs(solve("mp2_closed_shell", reference).e_hf - expected) < 1e-10


@pytest.mark.parametrize("frozen", [0, 1])
@pytest.mark.parametrize("kind", ["UHF", "ROHF", "GHF"])
def test_ccsd_over_spin_orbitals(
    kind: str, frozen: int, radical: SimpleNamespace, solve: Any, blocks: Any
) -> None:
    reference = getattr(radical, kind)
    if kind == "ROHF":
        solver = blocks.tight(blocks.general_solver(reference, frozen))
        solver.kernel()
    else:  # the turned GHF reference is the UHF one in other orbitals
        solver = uccsd(radical.UHF, blocks, frozen)
    count = 2 * frozen if kind == "GHF" else frozen
    found = solve("ccsd_spin_orbital", reference, frozen=count)
    assert found.reference == kind
    assert abs(found.e_corr - solver.e_corr) < TOLERANCE


def test_amplitudes_over_spin_orbitals_have_the_order_of_pyscf(
    chemistry: Chemistry, solve: Any
) -> None:
    case = chemistry("lih_sto3g")
    found = solve("ccsd_spin_orbital", case.reference)
    for name in ("t1", "t2"):
        pyscf = getattr(case.spin_solver, name)
        assert np.allclose(found.amplitudes[name], pyscf, rtol=0, atol=1e-7)


def test_singles_by_spin_from_the_doubles_of_pyscf(
    radical: SimpleNamespace, solve: Any, blocks: Any
) -> None:
    """Chemists' blocks by spin, beta in upper case."""
    solver = uccsd(radical.UHF, blocks)
    doubles = dict(zip(("t2aa", "t2ab", "t2bb"), solver.t2, strict=True))
    found = solve("uccsd_energy_t1", radical.UHF, amplitudes=doubles)
    assert abs(found.e_corr - solver.e_corr) < TOLERANCE
    assert np.allclose(found.amplitudes["t1a"], solver.t1[0], rtol=0, atol=1e-8)
    assert np.allclose(found.amplitudes["t1b"], solver.t1[1], rtol=0, atol=1e-8)


BY_SPIN = """
space oa occupied
space va virtual
space ob occupied
space vb virtual
space pa = oa + va
space pb = ob + vb
index i j : oa
index a b e : va
index I J : ob
index A B E : vb
index m : oa
index M : ob
input fa[pa,pa] symmetric (0,1), fb[pb,pb] symmetric (0,1)
input gaa[pa,pa,pa,pa] antisymmetric (0,1) (2,3), gbb[pb,pb,pb,pb] antisymmetric (0,1) (2,3)
input gab[pa,pb,pa,pb]
input t2aa[oa,oa,va,va] antisymmetric (0,1) (2,3), t2bb[ob,ob,vb,vb] antisymmetric (0,1) (2,3)
input t2ab[oa,ob,va,vb]
output e, r2aa, r2bb, r2ab
e = 1/4*gaa[i,j,a,b]*t2aa[i,j,a,b] + 1/4*gbb[I,J,A,B]*t2bb[I,J,A,B] + gab[i,J,a,B]*t2ab[i,J,a,B]
r2aa[i,j,a,b] = gaa[i,j,a,b] + P(a,b) fa[b,e]*t2aa[i,j,a,e] - P(i,j) fa[m,j]*t2aa[i,m,a,b]
r2bb[I,J,A,B] = gbb[I,J,A,B] + P(A,B) fb[B,E]*t2bb[I,J,A,E] - P(I,J) fb[M,J]*t2bb[I,M,A,B]
r2ab[i,J,a,B] = gab[i,J,a,B] + fa[a,e]*t2ab[i,J,e,B] + fb[B,E]*t2ab[i,J,a,E]
              - fa[m,i]*t2ab[m,J,a,B] - fb[M,J]*t2ab[i,M,a,B]
"""


def test_blocks_by_spin_in_physicists_notation(
    radical: SimpleNamespace, solve: Any, blocks: Any
) -> None:
    """Whole integrals over joined spaces, spins by suffix: MP2 by iteration."""
    from pyscf import mp

    expected = mp.UMP2(radical.UHF).kernel()[0]
    assert abs(solve(BY_SPIN, radical.UHF).e_corr - expected) < TOLERANCE


def test_equations_by_spin_take_a_closed_shell(chemistry: Chemistry, solve: Any) -> None:
    case = chemistry("lih_sto3g")
    found = solve(BY_SPIN, case.reference)
    assert abs(found.e_corr - case.energies["E_MP2_corr"]) < TOLERANCE


@pytest.mark.parametrize("spec", ["mp2_closed_shell", "mp2_spin_orbital"])
def test_an_energy_without_amplitudes(spec: str, chemistry: Chemistry, solve: Any) -> None:
    case = chemistry("h2o_sto3g")
    found = solve(spec, case.reference)
    assert found.converged
    assert found.iterations == 0
    assert abs(found.e_corr - case.energies["E_MP2_corr"]) < TOLERANCE


def test_orders_of_perturbation_theory_are_added(chemistry: Chemistry, solve: Any) -> None:
    case = chemistry("h2o_sto3g")
    text = CLOSED + (
        "input g[o,v,o,v], e_o[o], e_v[v]\noutput e2, e3\n"
        "e2 = (2*g[i,a,j,b] - g[i,b,j,a])*g[i,a,j,b]/(e_o[i] + e_o[j] - e_v[a] - e_v[b])\n"
        "e3 = 1/2*e2\n"
    )
    found = solve(text, case.reference)
    assert abs(found.e_corr - 1.5 * case.energies["E_MP2_corr"]) < TOLERANCE


def test_density_fitting_with_a_chosen_basis(chemistry: Chemistry, solve: Any) -> None:
    case = chemistry("lih_sto3g")
    found = solve("mp2_df", case.reference, auxbasis=case.record.get("auxbasis", "cc-pvdz-ri"))
    assert abs(found.e_corr - case.energies["E_DFMP2_corr"]) < TOLERANCE


def test_a_fitted_reference_gives_fitted_integrals(
    chemistry: Chemistry, solve: Any, blocks: Any
) -> None:
    from pyscf import cc

    reference = chemistry("h2o_sto3g").reference.density_fit().run()
    solver = blocks.tight(cc.CCSD(reference))
    solver.kernel()
    assert abs(solve("ccsd_closed_shell", reference).e_corr - solver.e_corr) < TOLERANCE


@pytest.mark.parametrize("spec", ["t_closed_shell", "t_spin_orbital"])
def test_triples_from_an_earlier_solution(spec: str, chemistry: Chemistry, solve: Any) -> None:
    case = chemistry("h2o_sto3g")
    earlier = solve(spec.replace("t_", "ccsd_", 1), case.reference)
    found = solve(spec, case.reference, amplitudes=earlier)
    assert abs(found.energies["e_t"] - case.energies["E_(T)"]) < TOLERANCE
    assert found.e_corr is None  # a part of the correlation energy only
    assert found.amplitudes["t2"] is not None


def test_layouts_that_a_spec_declares(chemistry: Chemistry, solve: Any) -> None:
    """Packed pairs, another stored order, slices of a generated input, energies of all orbitals."""
    case = chemistry("lih_sto3g")
    text = CLOSED + (
        "space p = o + v\n"
        "input v_ooov[o,o,o,v] symmetric (0,1) packed (0,1)\n"
        "input g[o,v,o,v] generated, e_p[p], f_vo[v,o] stored (1,0)\n"
        "output e, x, y\n"
        "e = (2*g[i,a,j,b] - g[i,b,j,a])*g[i,a,j,b]/(e_p[i] + e_p[j] - e_p[a] - e_p[b])\n"
        "x[i,j,k,a] = v_ooov[i,j,k,a]\n"
        "y[i,a] = f_vo[a,i]\n"
    )
    found = solve(text, case.reference)
    assert abs(found.e_corr - case.energies["E_MP2_corr"]) < TOLERANCE
    assert np.allclose(found.values["x"], case.closed["v_ovoo"].transpose(2, 3, 0, 1))
    assert np.allclose(found.values["y"], case.closed["f_ov"], rtol=0, atol=1e-10)


RINGS = CLOSED + (
    "space x auxiliary\nindex Q : x\n"
    "input b[x,o,v] constant, e_o[o] constant, e_v[v] constant\n"
    "input t[o,v,o,v] symmetry (0,1)<->(2,3) volatile\n"
    "output e_rpa, e_sosex, t_new\n"
    "K[i,a,j,b] = b[Q,i,a]*b[Q,j,b]\n"
    "L[i,a,j,b] = K[i,a,j,b] + K[i,a,k,c]*t[k,c,j,b]\n"
    "r[i,a,j,b] = 2*L[i,a,j,b] + 2*t[i,a,k,c]*L[k,c,j,b]\n"
    "t_new[i,a,j,b] = r[i,a,j,b]/(e_o[i] + e_o[j] - e_v[a] - e_v[b])\n"
    "e_rpa = K[i,a,j,b]*t[i,a,j,b]\n"
    "e_sosex = (K[i,a,j,b] - 1/2*K[i,b,j,a])*t[i,a,j,b]\n"
)


def test_an_updated_amplitude_without_a_residual(
    chemistry: Chemistry, solve: Any, blocks: Any
) -> None:
    """Direct ring CCD is the plasmon formula of the random-phase approximation."""
    case = chemistry("lih_sto3g")
    arrays = case.fitted
    gaps = (arrays["e_v"] - arrays["e_o"][:, None]).ravel()
    coulomb = np.einsum("Pia,Pjb->iajb", arrays["b_ov"], arrays["b_ov"], optimize=True)
    matrix = 2 * coulomb.reshape(gaps.size, gaps.size)
    root = np.sqrt(gaps)
    squares = np.diag(gaps**2) + 2 * root[:, None] * matrix * root
    frequencies = np.sqrt(np.linalg.eigvalsh(squares))
    expected = (frequencies.sum() - gaps.sum() - np.trace(matrix)) / 2

    auxbasis = case.record.get("auxbasis", "cc-pvdz-ri")
    found = solve(RINGS, case.reference, auxbasis=auxbasis)
    assert abs(found.energies["e_rpa"] - expected) < TOLERANCE
    assert found.e_corr is None  # two numbers, neither of which is called e
    said = solve(RINGS, case.reference, auxbasis=auxbasis, outputs={"e_rpa": "energy"})
    assert abs(said.e_corr - expected) < TOLERANCE


def test_outputs_without_a_role_are_not_computed(
    chemistry: Chemistry, solve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tcgen.chem import bound_program

    outputs: list[list[str]] = []
    bound = bound_program.bound

    def noted(program: Any, system: Any, *rest: Any) -> Any:
        outputs.append([t.name for t in system.outputs])
        assert {"e_o", "e_v"}.isdisjoint(t.name for t in system.inputs)
        return bound(program, system, *rest)

    monkeypatch.setattr(bound_program, "bound", noted)
    case = chemistry("lih_sto3g")
    # Passed orbital energies are denominators, though no output that is computed reads them.
    energies = {name: case.fitted[name] for name in ("e_o", "e_v")}
    for inputs in ({}, energies, {"e_v": energies["e_v"] + 1.0}):
        found = solve("ccsd_closed_shell", case.reference, inputs=inputs)
        assert abs(found.e_corr - case.energies["E_CCSD_corr"]) < TOLERANCE
        assert outputs.pop() == ["e", "r1", "r2"]
        denominators = found.iterations
    assert denominators > solve("ccsd_closed_shell", case.reference).iterations


def test_a_spec_with_other_names(chemistry: Chemistry, solve: Any) -> None:
    """Names and signs of one's own: the residual is found by what it is."""
    case = chemistry("lih_sto3g")
    text = CLOSED + (
        "input w[o,v,o,v], f[o,o], fock_vv[v,v], doubles[v,v,o,o]\n"
        "output energy, omega\n"
        "energy = (2*w[i,a,j,b] - w[i,b,j,a])*doubles[a,b,i,j]\n"
        "omega[i,j,a,b] = -3*S(ia,jb) (1/2*w[i,a,j,b] + fock_vv[a,c]*doubles[c,b,i,j]\n"
        "                              - f[k,i]*doubles[a,b,k,j])\n"
    )
    found = solve(text, case.reference, inputs={"w": "(pq|rs)"})
    assert abs(found.e_corr - case.energies["E_MP2_corr"]) < TOLERANCE
    assert found.amplitudes["doubles"].shape == (4, 4, 2, 2)


PHYSICISTS = CLOSED + (
    "input v_oovv[o,o,v,v], v_ovov[o,v,o,v], f_oo[o,o], f_vv[v,v], t2[o,o,v,v]\noutput e, r2, x\n"
    "e = (2*v_oovv[i,j,a,b] - v_oovv[i,j,b,a])*t2[i,j,a,b]\n"
    "r2[i,j,a,b] = v_oovv[i,j,a,b] + S(ia,jb) (f_vv[a,c]*t2[i,j,c,b] - f_oo[k,i]*t2[k,j,a,b])\n"
    "x = v_ovov[i,a,j,b]*t2[i,j,a,b]\n"
)
BY_HAND = CLOSED + (
    "input v[o,o,v,v], e_o[o], e_v[v], t2[o,o,v,v] antisymmetric (0,1) (2,3)\noutput e, r2\n"
    "e = 1/2*v[i,j,a,b]*t2[i,j,a,b]\n"
    "r2[i,j,a,b] = v[i,j,a,b] - v[i,j,b,a] - (e_o[i] + e_o[j] - e_v[a] - e_v[b])*t2[i,j,a,b]\n"
)
ENERGY = CLOSED + (
    "input g[o,o,v,v], e_o[o], e_v[v]\noutput e\n"
    "e = (2*g[i,j,a,b] - g[i,j,b,a])*g[i,j,a,b]/(e_o[i] + e_o[j] - e_v[a] - e_v[b])\n"
)


WHOLE = CLOSED + (
    "space p = o + v\ninput g[p,p,p,p], e[p]\noutput e_mp2\n"
    "e_mp2 = (2*g[i,j,a,b] - g[i,j,b,a])*g[i,j,a,b]/(e[i] + e[j] - e[a] - e[b])\n"
)


@pytest.mark.parametrize("text", [PHYSICISTS, BY_HAND, ENERGY, WHOLE])
def test_integrals_without_declared_symmetry(text: str, chemistry: Chemistry, solve: Any) -> None:
    """<pq|rs>, over spatial and over spin orbitals: first order shows which integrals are meant."""
    case = chemistry("lih_sto3g")
    assert abs(solve(text, case.reference).e_corr - case.energies["E_MP2_corr"]) < TOLERANCE


def test_inputs_that_the_caller_passes(chemistry: Chemistry, solve: Any) -> None:
    case = chemistry("lih_sto3g")
    points, weights = np.polynomial.laguerre.laggauss(40)
    gap = 2 * (case.fitted["e_v"].min() - case.fitted["e_o"].max())
    quadrature = {"t": points / gap, "c": weights * np.exp(points) / gap}
    auxbasis = case.record.get("auxbasis", "cc-pvdz-ri")
    found = solve("sosmp2_laplace_df", case.reference, inputs=quadrature, auxbasis=auxbasis)
    ovov = np.einsum("Pia,Pjb->iajb", case.fitted["b_ov"], case.fitted["b_ov"])
    d1 = case.fitted["e_o"][:, None] - case.fitted["e_v"]
    assert abs(found.e_corr - (ovov**2 / (d1[:, :, None, None] + d1)).sum()) < 1e-6


def test_the_table_and_the_repr(
    chemistry: Chemistry, solve: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    found = solve("ccsd_closed_shell", chemistry("lih_sto3g").reference, show=True)
    lines = capsys.readouterr().out.splitlines()
    assert "RHF" in lines[0]
    assert lines[1].split() == ["cycle", "E(corr)", "dE", "|r1|", "|r2|", "seconds"]
    rows = lines[2 : 2 + found.iterations]
    assert [int(row.split()[0]) for row in rows] == list(range(1, found.iterations + 1))
    assert f"{found.e_corr:.12f}" in lines[-2]
    assert f"{found.e_tot:.12f}" in lines[-1]
    assert "converged" in repr(found)
    assert f"{found.e_corr:.10f}" in repr(found)


@pytest.mark.parametrize(
    ("width", "columns"),
    [
        (120, ["cycle", "E(corr)", "dE", *(f"|r{n}|" for n in range(5)), "seconds"]),
        (95, ["cycle", "E(corr)", "dE", *(f"|r{n}|" for n in range(5))]),
        (80, ["cycle", "E(corr)", *(f"|r{n}|" for n in range(5))]),
        (60, ["cycle", "E(corr)", "dE", "max", "|r|", "seconds"]),
        (40, ["cycle", "E(corr)", "max", "|r|"]),
    ],
)
def test_columns_that_do_not_fit_are_left_out(width: int, columns: list[str]) -> None:
    lines: list[str] = []
    norms = {f"r{n}": 10.0**n for n in range(5)}
    table = Table(lines.append, ["e"], list(norms), width)
    table.header()
    table.row(1, Step({}, norms, {"e": np.array(-0.5)}))
    assert lines[0].split() == columns
    assert len(lines[0]) == len(lines[1]) <= width
    assert "-0.500000000000" in lines[1]
    assert "1.0e+04" in lines[1]


def test_progress_is_told(chemistry: Chemistry, solve: Any) -> None:
    texts: list[str] = []
    solve("mp2_closed_shell", chemistry("lih_sto3g").reference, progress=texts.append)
    # Programs are planned while integrals are made.
    assert {"reading", "making integrals"} <= {*texts}
    solve("ccsd_closed_shell", chemistry("lih_sto3g").reference, progress=texts.append)
    assert texts[-1].startswith("iteration ")
    assert any("about" in text and "more" in text and "s left" in text for text in texts)
    assert any("of the first half" in text for text in texts)


def test_lines_go_to_a_function(
    chemistry: Chemistry, solve: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    lines: list[str] = []
    solve("mp2_closed_shell", chemistry("lih_sto3g").reference, show=lines.append)
    assert any("E(corr)" in line for line in lines)
    assert capsys.readouterr().out == ""


def test_a_solution_is_saved_and_starts_another(
    chemistry: Chemistry, solve: Any, tmp_path: Path
) -> None:
    reference = chemistry("lih_sto3g").reference
    first = solve("ccsd_closed_shell", reference)
    path = first.save(tmp_path / "lih.npz")
    again = tcgen.chem.load(path)
    assert again.as_json() == first.as_json()
    assert np.array_equal(again.amplitudes["t2"], first.amplitudes["t2"])
    for source in (path, again, first.amplitudes):
        assert solve("ccsd_closed_shell", reference, amplitudes=source).iterations == 1


def test_imaginary_parts_are_not_dropped(chemistry: Chemistry, solve: Any) -> None:
    reference = chemistry("lih_sto3g").reference
    text = CLOSED + "input t1[o,v], w[o,v]\noutput e\ne = t1[i,a]*w[i,a]\n"
    weights = np.ones((2, 4))
    given = {"t1": weights * 1j, "w": weights}
    with pytest.raises(tcgen.ArgumentError, match="t1 has an imaginary part"):
        solve(text, reference, amplitudes=given)
    with pytest.raises(tcgen.ArgumentError, match="e has the imaginary part 8"):
        solve(text, reference, amplitudes=given, dtype="complex128")
    for dtype in ("float64", "complex128"):
        real = {name: array + 0j for name, array in {"t1": weights, "w": weights}.items()}
        assert solve(text, reference, amplitudes=real, dtype=dtype).energies["e"] == 8.0
    both = solve(
        text, reference, amplitudes={"t1": 1j * weights, "w": -1j * weights}, dtype="complex128"
    )
    assert both.energies["e"] == 8.0


def test_a_file_of_several_solutions(chemistry: Chemistry, solve: Any, tmp_path: Path) -> None:
    reference = chemistry("lih_sto3g").reference
    path = tmp_path / "lih.npz"
    first = solve("ccsd_closed_shell", reference)
    first.save(path)
    solve("t_closed_shell", reference, amplitudes=path).save(path)
    solve("mp2_closed_shell", reference).save(path)
    assert tcgen.chem.load(path).as_json() == first.as_json()
    assert solve("ccsd_closed_shell", reference, amplitudes=path).iterations == 1
    # The amplitudes of another method do not replace those of this one.
    other = solve("dcsd_closed_shell", reference, amplitudes=path)
    other.save(path)
    names = ("ccsd_closed_shell", "t_closed_shell", "mp2_closed_shell", "dcsd_closed_shell")
    assert all(tcgen.chem.load(path, name).name == name for name in names)
    assert solve("ccsd_closed_shell", reference, amplitudes=path).iterations == 1
    words = mentions("t1 t2 ccsd_closed_shell dcsd_closed_shell --amplitudes-of load")
    with pytest.raises(tcgen.ArgumentError, match=words):
        solve("t_closed_shell", reference, amplitudes=path)
    energies = []
    for solution in (first, other):
        chosen = tcgen.chem.load(path, solution.name)
        energies += [
            solve("t_closed_shell", reference, amplitudes=source).energies["e_t"]
            for source in (solution, chosen)
        ]
    # Sums may depend on the alignment of arrays.
    assert energies[0] == pytest.approx(energies[1], rel=1e-12)
    assert energies[2] == pytest.approx(energies[3], rel=1e-12)
    assert abs(energies[0] - energies[2]) > 1e-8
    # Amplitudes of other orbitals do not fit.
    solve("ccsd_spin_orbital", reference, amplitudes=path).save(path)
    solve("t_spin_orbital", reference, amplitudes=path)
    text = tmp_path / "notes.npz"
    text.write_text("text")
    with pytest.raises(tcgen.ArgumentError, match=mentions("notes.npz")):
        other.save(text)
    assert text.read_text() == "text"


def test_amplitudes_of_another_order_of_axes(chemistry: Chemistry, solve: Any) -> None:
    reference = chemistry("lih_sto3g").reference
    earlier = solve("ccsd_closed_shell", reference)
    text = CLOSED + (
        "input t2[a,b,i,j]\ninput v_ovov[o,v,o,v]\noutput e\n"
        "e = (2*v_ovov[i,a,j,b] - v_ovov[i,b,j,a])*t2[a,b,i,j]\n"
    )
    v = chemistry("lih_sto3g").closed["v_ovov"]
    weights = 2 * v - v.transpose(0, 3, 2, 1)
    expected = np.einsum("iajb,ijab->", weights, earlier.amplitudes["t2"])
    assert abs(solve(text, reference, amplitudes=earlier).energies["e"] - expected) < 1e-12


@pytest.mark.parametrize("options", [{"diis": 0}, {"damping": 0.2}, {"level_shift": 0.2}])
def test_the_path_does_not_change_the_solution(
    options: dict[str, Any], chemistry: Chemistry, solve: Any
) -> None:
    case = chemistry("lih_sto3g")
    found = solve("ccsd_closed_shell", case.reference, **options)
    assert found.converged
    assert abs(found.e_corr - case.energies["E_CCSD_corr"]) < TOLERANCE


def test_few_iterations_do_not_converge(chemistry: Chemistry, solve: Any) -> None:
    with pytest.warns(RuntimeWarning, match="ccsd_closed_shell is not converged"):
        found = solve("ccsd_closed_shell", chemistry("lih_sto3g").reference, max_cycle=3)
    assert not found.converged
    assert found.iterations == 3
    assert "NOT converged" in repr(found)


def test_dipole_integrals(chemistry: Chemistry, solve: Any) -> None:
    reference = chemistry("lih_sto3g").reference
    text = CLOSED + "space z = 3\nindex x : z\ninput mu[z,o,o]\noutput d\nd[x] = 2*mu[x,i,i]\n"
    nuclei = reference.mol.atom_charges() @ reference.mol.atom_coords()
    dipole = nuclei - solve(text, reference).values["d"]
    assert np.allclose(dipole, reference.dip_moment(unit="AU", verbose=0), rtol=0, atol=1e-8)


def test_core_hamiltonian(chemistry: Chemistry, solve: Any) -> None:
    reference = chemistry("lih_sto3g").reference
    text = CLOSED + "input h_oo[o,o], f_oo[o,o]\noutput e\ne = h_oo[i,i] + f_oo[i,i]\n"
    expected = reference.e_tot - reference.mol.energy_nuc()
    assert abs(solve(text, reference).energies["e"] - expected) < 1e-8


@pytest.mark.parametrize(
    ("spec", "key"), [("ccsd_closed_shell", "E_CCSD_corr"), ("ccsd_spin_orbital", "E_GCCSD_corr")]
)
def test_integrals_larger_than_memory_come_from_a_file(
    spec: str, key: str, chemistry: Chemistry, solve: Any
) -> None:
    case = chemistry("lih_sto3g")
    reference = case.reference.copy()
    reference.max_memory = 0.004  # MB; v_ovvv takes 1024 bytes, triangles of v_vvvv 800
    lines: list[str] = []
    found = solve(spec, reference, show=lines.append)
    assert abs(found.e_corr - case.energies[key]) < TOLERANCE
    pairs, atomic = 21, 21
    assert found.disk["written"] == 8 * pairs * (pairs + atomic)
    rows = [line for line in lines if line.split()[0] == "read"]
    assert len(rows) == found.iterations
    counted = sum(int(row.split()[1].replace(",", "")) for row in rows)
    assert 0 < counted <= found.disk["read"]
    assert 0 < found.timings["disk"] < found.timings["iterations"]


def test_fitted_integrals_larger_than_memory(chemistry: Chemistry, solve: Any) -> None:
    reference = chemistry("lih_sto3g").reference.density_fit().run()
    whole = solve("ccsd_df", reference)
    reference.max_memory = 0.01
    found = solve("ccsd_df", reference)
    assert abs(found.e_corr - whole.e_corr) < 1e-9
    assert found.disk["read"] > found.disk["written"] > 0


@pytest.mark.parametrize(
    "source", ["ccsd.txt", "ccsd.jsonl", pytest.param("ccsd_df.jsonl", marks=pytest.mark.slow)]
)
def test_equations_of_pdaggerq(source: str, chemistry: Chemistry, solve: Any, blocks: Any) -> None:
    """Their energy contains the reference, and the JSON lines declare no symmetry."""
    from pyscf import cc

    case = chemistry("lih_sto3g")
    system = tcgen.from_pdaggerq((TESTS / "data" / "pdaggerq" / source).read_text())
    reference = case.reference
    if "df" in source:
        reference = reference.density_fit().run()
    solver = blocks.tight(cc.CCSD(reference))
    solver.kernel()
    found = solve(system, reference)
    assert abs(found.e_corr - solver.e_corr) < TOLERANCE
    assert abs(found.e_tot - solver.e_tot) < TOLERANCE


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["UHF", "ROHF"])
@pytest.mark.parametrize("frozen", [0, 1])
def test_uccsd_of_pdaggerq(
    kind: str, frozen: int, radical: SimpleNamespace, solve: Any, blocks: Any
) -> None:
    system = tcgen.from_pdaggerq((TESTS / "data" / "pdaggerq" / "ccsd_spin.txt").read_text())
    reference = getattr(radical, kind)
    if kind == "UHF":
        solver = uccsd(reference, blocks, frozen)
    else:
        solver = blocks.tight(blocks.general_solver(reference, frozen))
        solver.kernel()
    assert abs(solve(system, reference, frozen=frozen).e_corr - solver.e_corr) < TOLERANCE


def test_fitted_equations_of_pdaggerq_on_an_exact_reference(
    chemistry: Chemistry, solve: Any
) -> None:
    case = chemistry("lih_sto3g")
    system = tcgen.from_pdaggerq((TESTS / "data" / "pdaggerq" / "ccsd_df.jsonl").read_text())
    assert abs(solve(system, case.reference).e_corr - case.energies["E_CCSD_corr"]) < 1e-4


def test_equations_of_wicked(chemistry: Chemistry, solve: Any) -> None:
    case = chemistry("lih_sto3g")
    system = tcgen.from_wicked((TESTS / "data" / "wicked" / "ccsd.txt").read_text())
    assert abs(solve(system, case.reference).e_corr - case.energies["E_CCSD_corr"]) < TOLERANCE


@pytest.mark.slow
def test_ccsdt_of_pdaggerq(chemistry: Chemistry, solve: Any) -> None:
    system = tcgen.from_pdaggerq((TESTS / "data" / "pdaggerq" / "ccsdt.txt").read_text(), real=True)
    found = solve(system, chemistry("lih_sto3g").reference)
    assert abs(found.e_corr - -0.0203892963) < 1e-9


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_element_types(dtype: str, chemistry: Chemistry, solve: Any) -> None:
    case = chemistry("lih_sto3g")
    tolerance = 1e-5 if dtype == "float32" else 1e-9
    found = solve("ccsd_spin_orbital", case.reference, dtype=dtype, tolerance=tolerance)
    assert abs(found.e_corr - case.energies["E_CCSD_corr"]) < 10 * tolerance


@pytest.mark.parametrize(("atom", "spin"), [("H 0 0 0", 1), ("He 0 0 0", 0)])
def test_spaces_without_orbitals(atom: str, spin: int, solve: Any, blocks: Any) -> None:
    """No beta electron, no virtual orbital."""
    reference = blocks.mean_field(blocks.molecule(atom, "sto-3g", spin=spin), "UHF")
    assert solve(BY_SPIN, reference).e_corr == 0.0
    assert solve("mp2_spin_orbital", reference).e_corr == 0.0


def test_an_input_says_in_the_spec_what_it_is(chemistry: Chemistry, solve: Any) -> None:
    """Names and symmetry that fit no rule, and a convention that the rules would not choose."""
    case = chemistry("lih_sto3g")
    text = CLOSED + (
        "input w[o,o,v,v] from eri(physicist), eo[o] from energies, k[v] from energies\n"
        "output e\ne = (2*w[i,j,a,b] - w[i,j,b,a])*w[i,j,a,b]/(eo[i] + eo[j] - k[a] - k[b])\n"
    )
    assert abs(solve(text, case.reference).e_corr - case.energies["E_MP2_corr"]) < TOLERANCE
    given = solve(text, case.reference, inputs={"w": "<pq||rs>"}).e_corr
    assert abs(given - case.energies["E_MP2_corr"]) > 1e-4


@pytest.mark.parametrize(
    "integrals",
    [
        "w[o,o,v,v] conserves (0,1)->(2,3) from eri(physicist)",
        "w[i,j,a,b] stored (i,a,j,b) conserves (i,j)->(a,b) from eri(physicist)",
    ],
)
def test_orbitals_with_a_conserved_spin_are_spin_orbitals(
    integrals: str, chemistry: Chemistry, solve: Any
) -> None:
    """Equations without antisymmetry, which closed shells could have as well."""
    case = chemistry("lih_sto3g")
    text = CLOSED + (
        f"input {integrals}, e_o[o], e_v[v]\noutput e\n"
        "e = 1/2*(w[i,j,a,b] - w[i,j,b,a])*w[i,j,a,b]/(e_o[i] + e_o[j] - e_v[a] - e_v[b])\n"
    )
    for reference in (case.reference, case.reference.to_uhf()):
        assert abs(solve(text, reference).e_corr - case.energies["E_MP2_corr"]) < TOLERANCE


def test_a_notebook_shows_a_table() -> None:
    solution = tcgen.chem.Solution(
        name="a<b", reference="RHF", converged=False, e_hf=-1.0, e_corr=-0.25, energies={"e": -0.25}
    )
    html = solution._repr_html_()
    assert "a&lt;b on RHF, NOT converged" in html
    assert "<td>E(total)</td><td>-1.2500000000</td>" in html

"""Methods whose equations are derived: shipped ones, and those that ``solve`` derives by name."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcgen
from support.command_line import invoke
from support.marks import slow
from tcgen.compiler.derived import derived_spec
from tcgen.compiler.driver import read_system

Chemistry = Callable[[str], Any]
TOLERANCE = 1e-8  # Hartree
# Shipped specs that derived_spec wrote: the method and the form.
DERIVED = {
    "cc3_closed_shell": ("CC3", "closed-shell"),
    "cc3_spin_orbital": ("CC3", None),
    "ccsdt_closed_shell": ("CCSDT", "closed-shell"),
    "ccsdt_spin_orbital": ("CCSDT", None),
    "ccsdtq_spin_orbital": ("CCSDTQ", None),
    "ccsd_density_closed_shell": ("CCSD-density", "closed-shell"),
    "ccsd_lambda_closed_shell": ("CCSD-lambda", "closed-shell"),
    "cisd_closed_shell": ("CISD", "closed-shell"),
    "cisd_spin_orbital": ("CISD", None),
    "eom_ea_ccsd_spin_orbital": ("EOM-EA-CCSD", None),
    "eom_ee_ccsd_closed_shell": ("EOM-EE-CCSD", "closed-shell"),
    "eom_ee_ccsd_triplet": ("EOM-EE-CCSD", "triplet"),
    "qcisd_closed_shell": ("QCISD", "closed-shell"),
    "qcisd_spin_orbital": ("QCISD", None),
}


@pytest.fixture(scope="module")
def solve() -> Callable[..., tcgen.chem.Solution]:
    """``solve`` that compiles fast and prints nothing."""
    pytest.importorskip("pyscf")
    return partial(tcgen.chem.solve, target="numpy", optimize=False, show=False)


@pytest.fixture(scope="module")
def lih(chemistry: Chemistry) -> Any:
    return chemistry("lih_sto3g")


@pytest.mark.parametrize("name", [*slow(*list(DERIVED)[:5]), *list(DERIVED)[5:]])
def test_shipped_specs_are_derived(name: str, wickd: None) -> None:
    """The same equations, whatever version of wickd the heading names."""
    method, spin = DERIVED[name]
    derived, shipped = derived_spec(method, spin=spin), tcgen.spec_path(name).read_text("utf-8")
    assert _without_comments(derived) == _without_comments(shipped)


def _without_comments(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith("#")]


def tight(solver: Any) -> float:
    """PySCF's correlation energy."""
    solver.conv_tol = 1e-11
    solver.conv_tol_normt = 1e-9
    solver.kernel()
    return float(solver.e_corr)


@pytest.mark.parametrize("form", [*slow("closed_shell"), "spin_orbital"])
def test_configuration_interaction(form: str, solve: Any, lih: Any) -> None:
    from pyscf import ci

    found = solve(f"cisd_{form}", lih.reference)
    assert found.converged
    assert abs(found.e_corr - tight(ci.CISD(lih.reference))) < TOLERANCE


@pytest.mark.parametrize("form", ["closed_shell", *slow("spin_orbital")])
def test_quadratic_configuration_interaction(form: str, solve: Any, lih: Any) -> None:
    from pyscf.cc import qcisd

    found = solve(f"qcisd_{form}", lih.reference)
    reference = qcisd.QCISD(lih.reference)
    assert abs(found.e_corr - tight(reference)) < TOLERANCE
    triples = solve(f"qcisd_t_{form}", lih.reference, amplitudes=found)
    assert abs(triples.energies["e_t"] - reference.qcisd_t()) < TOLERANCE


@pytest.mark.slow
def test_triples_of_a_closed_shell(solve: Any, lih: Any, chemistry: Chemistry) -> None:
    rccsdt = pytest.importorskip("pyscf.cc.rccsdt")
    for case in (lih, chemistry("h2o_sto3g")):
        expected = tight(rccsdt.RCCSDT(case.reference))
        assert abs(solve("ccsdt_closed_shell", case.reference).e_corr - expected) < TOLERANCE
    found = solve("ccsdt_spin_orbital", lih.reference)
    assert abs(found.e_corr - tight(rccsdt.RCCSDT(lih.reference))) < TOLERANCE


@pytest.mark.slow
@pytest.mark.parametrize("form", ["closed_shell", "spin_orbital"])
def test_approximate_triples(form: str, solve: Any, lih: Any) -> None:
    ebcc = pytest.importorskip("ebcc", reason="ebcc is not installed")
    solver = ebcc.REBCC(lih.reference, ansatz="CC3", log=ebcc.NullLogger())
    solver.options.e_tol, solver.options.t_tol = 1e-11, 1e-9
    solver.kernel()
    found = solve(f"cc3_{form}", lih.reference)
    assert abs(found.e_corr - float(solver.e_corr)) < TOLERANCE


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cisdtq", "ccsdtq_spin_orbital"])
def test_four_electrons_are_exact(name: str, wickd: None) -> None:
    """Four hydrogen atoms; on a CPU target the C of quadruples compiles for minutes."""
    from pyscf import fci, gto, scf

    atoms = "H 0 0 0; H 0 0 1; H 0 1.2 0; H 0 1.2 1.1"
    mf = scf.RHF(gto.M(atom=atoms, basis="sto-3g", verbose=0)).run(conv_tol=1e-12)
    exact = fci.FCI(mf).kernel()[0] - mf.e_tot
    found = tcgen.chem.solve(name, mf, objective="none", target="numpy", show=False)
    assert abs(found.e_corr - exact) < TOLERANCE


def test_electron_attachment(solve: Any, lih: Any) -> None:
    amplitudes = solve("ccsd_spin_orbital", lih.reference)
    found = solve("eom_ea_ccsd_spin_orbital", lih.reference, amplitudes=amplitudes, nroots=3)
    expected = lih.spin_solver.eaccsd(nroots=3)[0]
    np.testing.assert_allclose(found.roots, np.sort(expected), rtol=0, atol=TOLERANCE)


@pytest.mark.slow
def test_densities_of_a_closed_shell(solve: Any, lih: Any) -> None:
    """Those of alpha electrons, and integrals with densities as the energy."""
    found = solve("ccsd_lambda_closed_shell", lih.reference, amplitudes=ground(solve, lih))
    solver = lih.closed_solver
    l1, l2 = solver.solve_lambda()
    np.testing.assert_allclose(found.amplitudes["l1"], l1, rtol=0, atol=1e-7)
    np.testing.assert_allclose(found.amplitudes["l2"], l2, rtol=0, atol=1e-7)
    values = solve("ccsd_density_closed_shell", lih.reference, amplitudes=found).values
    expected, o = solver.make_rdm1() / 2, 2
    np.testing.assert_allclose(values["d_L_f_oo"], expected[:o, :o] - np.eye(o), atol=1e-7)
    np.testing.assert_allclose(values["d_L_f_vv"], expected[o:, o:], rtol=0, atol=1e-7)
    np.testing.assert_allclose(values["d_L_f_ov"], 2 * expected[:o, o:], rtol=0, atol=1e-7)
    assert abs(energy_of(values, lih.reference, o) - solver.e_corr) < TOLERANCE


def energy_of(values: Any, mf: Any, o: int) -> float:
    """The sum over all spins of densities, whose blocks are those of spins abab, with integrals."""
    from pyscf import ao2mo

    c = mf.mo_coeff
    n = c.shape[1]
    integrals = ao2mo.restore(1, ao2mo.full(mf.mol, c), n).transpose(0, 2, 1, 3)
    part = {"o": slice(0, o), "v": slice(o, n)}
    fock = np.diag(mf.mo_energy)

    def over(array: Any, letters: str) -> Any:
        return array[np.ix_(*(range(n)[part[x]] for x in letters))]

    energy = sum(2 * np.vdot(values[f"d_L_f_{x}"], over(fock, x)) for x in ("oo", "ov", "vv"))
    for letters in ("oooo", "ooov", "oovv", "ovvv", "vvvv"):
        block, g = values[f"d_L_v_{letters}"], over(integrals, letters)
        exchanged = block.transpose((0, 1, 3, 2) if letters == "ovvv" else (1, 0, 2, 3))
        # aaaa is abab less abba; both pairs of integrals, and abba and abab, are equal.
        energy += 4 * np.vdot(block - exchanged, g) + 4 * np.vdot(block, g)
    abab, abba = values["d_L_v_ovov"], values["d_L_v_ovov_abba"]
    direct, exchange = over(integrals, "ovov"), over(integrals, "ovvo").transpose(0, 1, 3, 2)
    energy += 2 * np.vdot(abab + abba, direct - exchange)
    return float(energy + 2 * np.vdot(abab, direct) - 2 * np.vdot(abba, exchange))


def ground(solve: Any, case: Any) -> Any:
    return solve("ccsd_closed_shell", case.reference)


@pytest.mark.slow
def test_singlets(solve: Any, lih: Any) -> None:
    amplitudes = solve("ccsd_closed_shell", lih.reference)
    found = solve("eom_ee_ccsd_closed_shell", lih.reference, amplitudes=amplitudes, nroots=3)
    expected = lih.closed_solver.eomee_ccsd_singlet(nroots=3)[0]
    np.testing.assert_allclose(found.roots, np.sort(expected), rtol=0, atol=TOLERANCE)


@pytest.mark.slow
def test_triplets(solve: Any, lih: Any) -> None:
    amplitudes = solve("ccsd_closed_shell", lih.reference)
    found = solve("eom_ee_ccsd_triplet", lih.reference, amplitudes=amplitudes, nroots=4)
    expected = lih.closed_solver.eomee_ccsd_triplet(nroots=4)[0]
    np.testing.assert_allclose(found.roots, np.sort(expected), rtol=0, atol=TOLERANCE)
    assert {state.multiplicity for state in found.states} == {3}


def test_a_method_that_does_not_ship(
    solve: Any, lih: Any, wickd: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is derived once; then its cached spec needs no wickd."""
    monkeypatch.setenv("TCGEN_CACHE_DIR", str(tmp_path))
    expected = solve("cepa0_spin_orbital", lih.reference).e_corr
    for name in ("lccd", "lccd_closed_shell"):
        assert abs(solve(name, lih.reference).e_corr - expected) < TOLERANCE
    assert len(list(tmp_path.glob("specs/*.spec"))) == 2
    monkeypatch.setitem(sys.modules, "wickd", None)
    assert abs(solve("lccd", lih.reference).e_corr - expected) < TOLERANCE
    with pytest.raises(tcgen.UnavailableError, match="pip install wickd"):
        solve("lccsdt", lih.reference)
    assert invoke("solve", "lccsdt", "--atom", "He").exit_code == 3


def test_names_of_shipped_specs_come_first() -> None:
    assert read_system(Path("ccsdt")).name == "ccsdt_closed_shell"
    assert read_system(Path("uccsd")).name == "uccsd"
    with pytest.raises(tcgen.TcgenError, match="tcgen derive"):
        read_system(Path("ccsdx"))


def test_derive_on_the_command_line(tmp_path: Path, wickd: None) -> None:
    out = tmp_path / "pairs.spec"
    ansatz = "T = t2; e = <0| [H, T] |0>; r = <T| H + [H, T] |0>"
    assert invoke("derive", ansatz, "-o", out).exit_code == 0
    assert "#   r = <T| H + [H, T] |0>\n" in out.read_text()
    assert tcgen.read_spec_file(out).name == "pairs"
    closed = invoke("derive", "ccd", "--closed-shell", "--commutators", 1)
    assert "T = t2\n#   e = <0| bch(H, T, 1) |0>" in closed.stdout
    assert "S(ia,jb)" in closed.stdout
    assert "v_vvoo" in invoke("derive", "ccd", "--complex").stdout
    refused = invoke("derive", "exp(-T) H exp(T)")
    assert refused.exit_code == 2
    assert "names no projection" in refused.stderr


@pytest.mark.slow
@pytest.mark.parametrize("form", ["closed_shell", "spin_orbital"])
def test_left_vectors_have_the_roots_of_right_ones(
    form: str, solve: Any, lih: Any, wickd: None
) -> None:
    amplitudes = solve(f"ccsd_{form}", lih.reference)
    names = (f"eom_ip_ccsd_{form}", f"eom_ip_ccsd_left_{form}")
    right, left = (solve(n, lih.reference, amplitudes=amplitudes, nroots=2).roots for n in names)
    np.testing.assert_allclose(left, right, rtol=0, atol=TOLERANCE)
    expected = np.sort(lih.spin_solver.ipccsd(nroots=4)[0])
    np.testing.assert_allclose(left, expected[:: 2 if form == "closed_shell" else 1][:2], atol=1e-7)

"""Programs from equations over spin orbitals, integrated over spins, against PySCF."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import tcgen
from support.marks import slow
from support.paths import DATA
from tcgen.chem.conventions import is_over_spin_orbitals
from tcgen.chem.spaces import classify
from tcgen.chem.spin_notes import annotated_spec
from tcgen.compiler.driver import read_system
from tcgen.frontend import read_spec, read_spec_file
from tcgen.interp import evaluate_system

Chemistry = Callable[[str], Any]
CCSD = read_spec_file(tcgen.spec_path("ccsd_spin_orbital"))
TOLERANCE = 1e-9  # Hartree


@pytest.fixture(scope="module")
def solve() -> Callable[..., tcgen.chem.Solution]:
    """``solve`` that compiles fast and prints nothing."""
    pytest.importorskip("pyscf")
    return partial(tcgen.chem.solve, target="numpy", optimize=False, show=False, tolerance=1e-10)


@pytest.mark.parametrize(
    "name", ["lih_sto3g", *slow("h2o_sto3g", "h2o_631g", "nh4plus_ccpvdz", "n2_ccpvdz")]
)
def test_closed_shell_ccsd(name: str, chemistry: Chemistry, solve: Any) -> None:
    case = chemistry(name)
    found = solve(annotated_spec(CCSD, "closed-shell"), case.reference)
    assert abs(found.e_corr - case.energies["E_CCSD_corr"]) < TOLERANCE
    assert set(found.amplitudes) == {"t1", "t2"}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ch3_ccpvdz", "o2_631g", "h2oplus_ccpvdz"])
def test_unrestricted_ccsd(name: str, chemistry: Chemistry, solve: Any) -> None:
    case = chemistry(name)
    found = solve(tcgen.spin_integrated(CCSD, "unrestricted"), case.reference)
    assert abs(found.e_corr - case.energies["E_CCSD_corr"]) < TOLERANCE


def test_direct_rpa(chemistry: Chemistry, solve: Any) -> None:
    """Integrals without exchange, and amplitudes of which the flipped block is zero."""
    rings = read_spec_file(tcgen.spec_path("rpa_sosex_spin_orbital"))
    reference = chemistry("lih_sto3g").reference
    expected = solve(rings, reference).energies
    occupied = reference.mol.nelectron // 2
    virtual = reference.mol.nao - occupied
    flipped = np.zeros((occupied, occupied, virtual, virtual))
    text = annotated_spec(rings, "closed-shell")
    found = solve(text, reference, inputs={"t_abba": flipped}).energies
    assert all(abs(found[name] - expected[name]) < TOLERANCE for name in ("e", "e_sosex"))


@pytest.mark.slow
def test_restricted_open_shell(solve: Any, blocks: Any) -> None:
    mol = blocks.molecule("Be 0 0 0; H 0 0 1.3426", "sto-3g", spin=1)
    reference = blocks.mean_field(mol, "ROHF")
    found = solve(tcgen.spin_integrated(CCSD, "unrestricted"), reference)
    expected = solve(CCSD, reference)
    assert abs(found.e_corr - expected.e_corr) < TOLERANCE


@pytest.mark.slow
@pytest.mark.parametrize(("form", "triples"), [("closed-shell", 1), ("unrestricted", 4)])
def test_ccsdt(form: Any, triples: int, chemistry: Chemistry, solve: Any) -> None:
    """One list of terms gives both programs, with as many blocks of triples as there must be."""
    system = tcgen.spin_integrated(read_system(DATA / "eqs" / "ccsdt_so.sym.json"), form)
    assert len([t for t in system.outputs if t.rank == 6]) == triples
    found = solve(system, chemistry("lih_sto3g").reference)
    assert abs(found.e_corr - -0.0203892963) < TOLERANCE


@pytest.mark.slow
def test_singlet_roots_of_eom(chemistry: Chemistry, solve: Any) -> None:
    case = chemistry("h2o_sto3g")
    ground = solve(tcgen.spin_integrated(CCSD, "closed-shell"), case.reference)
    sigma = tcgen.jvp(CCSD, {"t1": "x1", "t2": "x2"}, of=["r1", "r2"])
    system = tcgen.spin_integrated(sigma, "closed-shell")
    states = solve(system, case.reference, amplitudes=ground, nroots=3)
    expected = case.closed_solver.eomee_ccsd_singlet(nroots=3)[0]
    np.testing.assert_allclose(states.roots, expected, rtol=0, atol=1e-7)


def test_triples_of_a_closed_shell_are_not_over_spin_orbitals() -> None:
    head = "space o occupied\nspace v virtual\nindex i j k : o\nindex a b c : v\n"
    system = read_spec(
        f"{head}input t3[o,o,o,v,v,v] antisymmetric (0,1,2) (3,4,5)\n"
        "input v_oovv[o,o,v,v] antisymmetric (0,1) (2,3)\noutput r1\n"
        "r1[i,a] = 1/4*v_oovv[j,k,b,c]*t3[i,j,k,a,b,c]"
    )
    spaces = classify(system)
    assert is_over_spin_orbitals(system.inputs, spaces)
    closed = tcgen.spin_integrated(system, "closed-shell")
    assert not is_over_spin_orbitals(closed.inputs, spaces)


@pytest.mark.parametrize("form", ["closed-shell", "unrestricted"])
def test_comments_give_arrays_of_pyscf(form: str, chemistry: Chemistry, blocks: Any) -> None:
    """The expressions of the comments fill the inputs with which the residuals vanish."""
    pyscf = pytest.importorskip("pyscf")
    from pyscf import ao2mo, cc

    if form == "closed-shell":
        reference = chemistry("h2o_sto3g").reference
        solver = blocks.tight(cc.CCSD(reference)).run()
        nmo, nocc = reference.mo_coeff.shape[1], reference.mol.nelectron // 2
        names = {"nmo": nmo, "nocc": nocc}
    else:
        mol = blocks.molecule("Be 0 0 0; H 0 0 1.3426", "sto-3g", spin=1)
        reference = blocks.mean_field(mol, "UHF")
        solver = blocks.tight(cc.UCCSD(reference)).run()
        names = {"nmo": mol.nao, "nalpha": mol.nelec[0], "nbeta": mol.nelec[1]}
    text = annotated_spec(CCSD, form)
    heading = re.findall(r"^# (.*)$", text, re.MULTILINE)
    first = next(n for n, line in enumerate(heading) if line.startswith("mf is")) + 1
    known = {"mf": reference, "mycc": solver, "pyscf": pyscf, **names}
    assert ao2mo is pyscf.ao2mo
    exec("\n".join(heading[first:]), known)
    arrays = {}
    for name, note in re.findall(r"^input  (\w+).*?# (.*)$", text, re.MULTILINE):
        arrays[name] = eval(note.rpartition(": ")[2], known)
    system = read_spec(text)
    extents = {t: n for s in system.inputs for t, n in
               zip((x.name for x in s.spaces), arrays[s.name].shape, strict=True)}  # fmt: skip
    found = evaluate_system(system, arrays, extents)
    assert abs(found["e"] - solver.e_corr) < 1e-8
    assert max(np.abs(found[t.name]).max() for t in system.outputs if t.rank) < 1e-6

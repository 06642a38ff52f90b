"""Densities against PySCF, polarisabilities against differences of energies in a field."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import tcgen
from support.command_line import invoke
from support.marks import slow

Chemistry = Callable[[str], Any]
FAST: dict[str, Any] = {"target": "numpy", "optimize": False, "show": False}
DENSITY = 1e-7
FIELD = 1e-3  # atomic units


@pytest.fixture(scope="module")
def properties() -> Callable[..., tcgen.chem.Properties]:
    pytest.importorskip("pyscf")
    return partial(tcgen.chem.properties, **FAST)


@pytest.fixture(scope="module")
def lih(chemistry: Chemistry) -> Any:
    return chemistry("lih_sto3g").reference


def density_of(solver: Any) -> Any:
    """PySCF's density over atomic orbitals, of both spins."""
    solver.conv_tol, solver.conv_tol_normt = 1e-12, 1e-10
    solver.kernel()
    solver.solve_lambda()
    density = np.asarray(solver.make_rdm1(ao_repr=True))
    return density.sum(axis=0) if density.ndim == 3 else density


@pytest.mark.parametrize(
    ("frozen", "spec"),
    [(1, "ccsd_closed_shell"), pytest.param(0, "ccsd_df", marks=pytest.mark.slow)],
)
def test_a_closed_shell(frozen: int, spec: str, properties: Any, lih: Any) -> None:
    from pyscf import cc

    mf = lih.density_fit().run() if spec == "ccsd_df" else lih
    solver = cc.CCSD(mf, frozen=frozen or None)
    density = density_of(solver)
    found = properties(spec, mf, frozen=frozen)
    np.testing.assert_allclose(found.density, density, rtol=0, atol=DENSITY)
    expected = lih.dip_moment(lih.mol, density, unit="au", verbose=0)
    np.testing.assert_allclose(found.dipole, expected, rtol=0, atol=10 * DENSITY)
    electrons = np.einsum("xpq,pq->x", lih.mol.intor("int1e_rr"), density).reshape(3, 3)
    place = lih.mol.atom_coords()[1]
    np.testing.assert_allclose(
        found.quadrupole, np.outer(place, place) - electrons, rtol=0, atol=1e-5
    )
    occupations, orbitals = found.occupations, found.orbitals
    overlap = lih.mol.intor("int1e_ovlp")
    np.testing.assert_allclose(occupations.sum(), 4.0, rtol=0, atol=DENSITY)
    np.testing.assert_allclose(orbitals.T @ overlap @ orbitals, np.eye(6), rtol=0, atol=1e-9)
    own = (orbitals * occupations) @ orbitals.T
    np.testing.assert_allclose(own, density, rtol=0, atol=DENSITY)
    assert {"l1", "l2"} <= found.solution.amplitudes.keys()
    l1 = found.solution.amplitudes["l1"]
    # Multipliers of residuals, which are those of PySCF but for a factor of the spin.
    if spec == "ccsd_closed_shell":
        np.testing.assert_allclose(l1, 2 * solver.l1, rtol=0, atol=DENSITY)


@pytest.mark.parametrize("spec", ["ccsd_spin_orbital", *slow("uccsd")])
def test_an_open_shell(spec: str, properties: Any) -> None:
    from pyscf import cc, gto, scf

    mol = gto.M(atom="Be 0 0 0; H 0 0 1.3426", basis="sto-3g", spin=1, verbose=0)
    mf = scf.UHF(mol).run(conv_tol=1e-12)
    found = properties(spec, mf)
    density = density_of(cc.UCCSD(mf))
    np.testing.assert_allclose(found.density, density, rtol=0, atol=DENSITY)
    assert abs(found.occupations.sum() - 5) < DENSITY


def in_a_field(spec: str, mf: Any, axis: int) -> float:
    """Minus the second difference of energies, over the orbitals without a field."""
    from pyscf import ao2mo

    c = mf.mo_coeff
    h, eri = c.T @ mf.get_hcore() @ c, ao2mo.full(mf.mol, c)
    z = c.T @ mf.mol.intor("int1e_r")[axis] @ c
    energies = []
    for field in (-2, -1, 0, 1, 2):
        moved = tcgen.chem.hamiltonian(h + field * FIELD * z, eri, nelec=mf.mol.nelectron)
        energies.append(tcgen.chem.solve(spec, moved, tolerance=1e-11, **FAST).e_tot)
    weights = np.array([-1, 16, -30, 16, -1]) / 12
    return float(-(weights @ energies) / FIELD**2)


@pytest.mark.slow
@pytest.mark.parametrize(
    "spec", ["ccsd_closed_shell", "ccsd_spin_orbital", "dcsd_closed_shell", "cc2_spin_orbital"]
)
@pytest.mark.filterwarnings("ignore:.*not canonical", "ignore:.*Fock matrix")
def test_a_polarizability_is_a_difference_of_energies(spec: str, properties: Any, lih: Any) -> None:
    found = properties(spec, lih, polarizability=True).polarizability
    assert abs(found[2, 2] - in_a_field(spec, lih, 2)) < 1e-4
    np.testing.assert_allclose(found, np.diag(found.diagonal()), rtol=0, atol=1e-7)
    assert abs(found[0, 0] - found[1, 1]) < 1e-7


@pytest.mark.slow
def test_integrals_without_a_basis_set(properties: Any, lih: Any) -> None:
    from pyscf import ao2mo

    c = lih.mo_coeff
    held = tcgen.chem.hamiltonian(
        c.T @ lih.get_hcore() @ c, ao2mo.full(lih.mol, c), nelec=4, frozen=1
    )
    found = properties("ccsd_closed_shell", held)
    assert found.dipole is None
    assert found.quadrupole is None
    expected = properties("ccsd_closed_shell", lih, frozen=1)
    np.testing.assert_allclose(found.occupations, expected.occupations, rtol=0, atol=DENSITY)
    with pytest.raises(tcgen.ArgumentError, match="polarizability: arrays has no integrals"):
        properties("ccsd_closed_shell", held, polarizability=True)


LIH = ("--atom", "Li 0 0 0; H 0 0 1.5957", "--basis", "sto-3g")


@pytest.mark.slow
def test_on_the_command_line() -> None:
    fast = ("--target", "numpy", "--no-optimize")
    asked = ("--states", 1, "--properties", "--json")
    result = invoke("solve", "ccsd_closed_shell", *LIH, *fast, *asked)
    assert result.exit_code == 0, result.stderr
    ground, states = json.loads(result.stdout)["solutions"]
    assert abs(ground["properties"]["dipole"][2] - -1.8178) < 1e-3
    assert abs(states["states"][0]["ev"] - 3.6247) < 1e-3
    assert "strength  leading amplitudes" in result.stderr


@pytest.mark.parametrize(
    ("specs", "options", "said"),
    [
        (["t_closed_shell"], ["--states", 1], "--states is about one ground state"),
        (["t_closed_shell"], ["--properties"], "--properties is about one ground state"),
        ([], ["--spectrum", "x.png"], "--spectrum draws the states of --states N"),
    ],
)
def test_options_that_do_not_fit(specs: list[str], options: list[Any], said: str) -> None:
    pytest.importorskip("pyscf")
    refused = invoke("solve", "ccsd_closed_shell", *specs, *LIH, *options)
    assert refused.exit_code == 2
    assert said in refused.stderr

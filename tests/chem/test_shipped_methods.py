"""Shipped specs on small molecules, against PySCF and ebcc to 1e-8."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import tcgen
from tcgen.compiler.driver import read_system

Chemistry = Callable[[str], Any]
TOLERANCE = 1e-8  # Hartree
SLOW = pytest.mark.slow


@pytest.fixture(scope="module")
def solve() -> Callable[..., tcgen.chem.Solution]:
    """``solve`` that compiles fast and prints nothing."""
    pytest.importorskip("pyscf")
    return partial(tcgen.chem.solve, target="numpy", optimize=False, show=False)


@pytest.fixture(scope="module")
def lih(chemistry: Chemistry) -> Any:
    return chemistry("lih_sto3g")


@pytest.fixture(scope="module")
def ground(solve: Any, lih: Any) -> tcgen.chem.Solution:
    return solve("ccsd_spin_orbital", lih.reference)


@pytest.fixture(scope="module")
def radical(blocks: Any) -> Any:
    mol = blocks.molecule("Be 0 0 0; H 0 0 1.3426", "sto-3g", spin=1)
    return blocks.mean_field(mol, "UHF")


@pytest.fixture(scope="module")
def methyl(blocks: Any) -> Any:
    atoms = "C 0 0 0; H 1.079 0 0; H -0.5395 0.934441 0; H -0.5395 -0.934441 0"
    return blocks.mean_field(blocks.molecule(atoms, "sto-3g", spin=1), "UHF")


@pytest.fixture(scope="module")
def fitted(lih: Any) -> Any:
    reference = lih.reference.density_fit(auxbasis="weigend")
    return reference.run(conv_tol=1e-12)


def ebcc_energy(reference: Any, ansatz: str) -> float:
    """Correlation energy of ebcc's equations for spatial orbitals or for alpha and beta ones."""
    ebcc = pytest.importorskip("ebcc", reason="ebcc is not installed")
    kind = ebcc.UEBCC if np.ndim(reference.mo_energy[0]) else ebcc.REBCC
    solver = kind(reference, ansatz=ansatz, log=ebcc.NullLogger())
    solver.options.e_tol, solver.options.t_tol = 1e-11, 1e-9
    solver.kernel()
    return float(solver.e_corr)


@pytest.mark.parametrize(
    ("spec", "molecule", "ansatz"),
    [
        ("lccsd_spin_orbital", "lih_sto3g", "LCCSD"),
        pytest.param("cepa0_spin_orbital", "lih_sto3g", "LCCD", marks=SLOW),
        ("mp3_closed_shell", "h2o_sto3g", "MP3"),
        ("cc2_spin_orbital", "lih_sto3g", "CC2"),
        ("dcsd_closed_shell", "h2o_sto3g", "DCSD"),
        pytest.param("dcsd_closed_shell", "lih_sto3g", "DCSD", marks=SLOW),
    ],
)
def test_energies_of_ebcc(
    spec: str, molecule: str, ansatz: str, chemistry: Chemistry, solve: Any
) -> None:
    reference = chemistry(molecule).reference
    found = solve(spec, reference)
    assert found.converged
    assert abs(found.e_corr - ebcc_energy(reference, ansatz)) < TOLERANCE


@pytest.mark.parametrize(
    ("spec", "ansatz"),
    [
        pytest.param("cc2_spin_orbital", "CC2", marks=SLOW),
        ("lccsd_spin_orbital", "LCCSD"),
        ("mp3_spin_orbital", "MP3"),
        ("dcsd_spin_orbital", "DCSD"),
    ],
)
def test_an_open_shell_over_spin_orbitals(spec: str, ansatz: str, methyl: Any, solve: Any) -> None:
    found = solve(spec, methyl)
    assert found.converged
    assert found.reference == "UHF"
    assert abs(found.e_corr - ebcc_energy(methyl, ansatz)) < TOLERANCE


def test_dcsd_over_spin_orbitals_is_that_of_a_closed_shell(solve: Any, lih: Any) -> None:
    closed = solve("dcsd_closed_shell", lih.reference)
    assert abs(solve("dcsd_spin_orbital", lih.reference).e_corr - closed.e_corr) < TOLERANCE


@pytest.mark.slow
def test_uccsd(radical: Any, solve: Any, blocks: Any) -> None:
    from pyscf import cc

    solver = blocks.tight(cc.UCCSD(radical))
    solver.kernel()
    found = solve("uccsd", radical)
    assert abs(found.e_corr - solver.e_corr) < TOLERANCE
    for name, expected in zip(("t2aa", "t2ab", "t2bb"), solver.t2, strict=True):
        assert np.allclose(found.amplitudes[name], expected, rtol=0, atol=1e-7)


@pytest.mark.slow
def test_density_fitted_ccsd(fitted: Any, solve: Any, blocks: Any) -> None:
    from pyscf import cc

    solver = blocks.tight(cc.CCSD(fitted))
    solver.kernel()
    assert abs(solve("ccsd_df", fitted).e_corr - solver.e_corr) < TOLERANCE


@pytest.mark.parametrize(
    ("spec", "method", "nroots"),
    [
        ("eom_ip_ccsd_spin_orbital", "ipccsd", 4),
        pytest.param("eom_ee_ccsd_spin_orbital", "eeccsd", 4, marks=SLOW),
    ],
)
def test_roots_of_eom(
    spec: str, method: str, nroots: int, solve: Any, lih: Any, ground: Any
) -> None:
    found = solve(spec, lih.reference, amplitudes=ground, nroots=nroots)
    expected = getattr(lih.spin_solver, method)(nroots=nroots)[0]
    assert found.converged
    assert np.allclose(found.roots, np.sort(expected), rtol=0, atol=TOLERANCE)


def test_direct_rpa_and_screened_exchange(solve: Any, fitted: Any) -> None:
    """Against the amplitudes Y X^-1 of the eigenvectors of the RPA matrix."""
    found = solve("rpa_sosex_df", fitted)
    arrays = tcgen.chem.solve(
        "space o\nspace v\nspace x\nindex i : o\nindex a : v\nindex Q : x\n"
        "input b_ov[x,o,v], e_o[o], e_v[v]\noutput b, d\n"
        "b[Q,i,a] = b_ov[Q,i,a]\nd[i,a] = e_v[a] - e_o[i]\n",
        fitted,
        target="numpy",
        show=False,
    ).values
    gaps = arrays["d"].ravel()
    b = arrays["b"].reshape(-1, gaps.size)
    coupling = 2 * b.T @ b
    matrix = np.diag(gaps) + coupling
    values, vectors = np.linalg.eig(np.block([[matrix, coupling], [-coupling, -matrix]]))
    chosen = np.argsort(-values.real)[: gaps.size]
    x, y = np.split(vectors[:, chosen].real, 2)
    t = y @ np.linalg.inv(x)
    energy = np.trace(coupling @ t) / 2
    assert abs(energy - (values.real[chosen].sum() - np.trace(matrix)) / 2) < 1e-10
    assert abs(found.e_corr - energy) < TOLERANCE
    exchange = (b.T @ b).reshape(arrays["d"].shape * 2).transpose(0, 3, 2, 1)
    sosex = -np.einsum("iajb,iajb->", exchange, t.reshape(exchange.shape)) / 2
    assert abs(found.energies["e_sosex"] - sosex) < TOLERANCE


def test_direct_rpa_of_an_open_shell(solve: Any, methyl: Any) -> None:
    urpa = pytest.importorskip("pyscf.gw.urpa")
    reference = methyl.density_fit(auxbasis="weigend").run(conv_tol=1e-12)
    solver = urpa.URPA(reference)
    solver.with_df = reference.with_df
    solver.kernel(nw=40)
    found = solve("rpa_sosex_spin_orbital", reference)
    assert found.converged
    assert abs(found.e_corr - solver.e_corr) < TOLERANCE


def test_direct_rpa_over_spin_orbitals_is_that_of_a_closed_shell(solve: Any, fitted: Any) -> None:
    closed = solve("rpa_sosex_df", fitted).energies
    found = solve("rpa_sosex_spin_orbital", fitted).energies
    assert found.keys() == closed.keys()
    assert all(abs(found[name] - closed[name]) < TOLERANCE for name in closed)


def test_gw(fitted: Any) -> None:
    """The polarizability and the self-energy of PySCF's analytic continuation."""
    gw_ac = pytest.importorskip("pyscf.gw.gw_ac")
    solver = gw_ac.GWAC(fitted)
    solver.with_df = fitted.with_df
    integrals = np.asarray(solver.ao2mo())
    energies, o = fitted.mo_energy, solver.nocc
    points, weights = np.polynomial.legendre.leggauss(6)
    omega, weight = (1 + points) / (1 - points) / 2, weights / (1 - points) ** 2
    numbers = {"o": o, "v": energies.size - o, "x": len(integrals), "q": 6, "y": 3}

    def made(spec: str, **arrays: Any) -> Any:
        system = read_system(tcgen.spec_path(spec))
        bases = [s.name for s in system.spaces if not s.parts]
        program = tcgen.compile(
            system, extents={n: numbers[n] for n in bases}, target="numpy", optimize=False
        )
        return program(**arrays)

    pi = made(
        "gw_polarizability_df",
        b_ov=np.ascontiguousarray(integrals[:, :o, o:]),
        e_o=energies[:o],
        e_v=energies[o:],
        omega=omega,
    )["pi"]
    for w, frequency in enumerate(omega):
        expected = gw_ac.get_rho_response(
            frequency, energies, np.ascontiguousarray(integrals[:, :o, o:])
        )
        assert np.allclose(pi[w], expected, rtol=0, atol=1e-10)
    one = np.eye(len(integrals))
    nu, level = np.array([0.1, 0.7, 2.0]), (energies[o - 1] + energies[o]) / 2
    sigma = made(
        "gw_self_energy_df",
        B=integrals,
        Wc=np.linalg.inv(one - pi) - one,
        x=level - energies,
        omega=omega,
        weight=weight / np.pi,
        nu=nu,
    )
    expected, _ = gw_ac.get_sigma(
        solver, list(range(energies.size)), integrals, omega, weight, level, energies, eval_freqs=nu
    )
    assert np.allclose(sigma["re"] + 1j * sigma["im"], expected[:, -3:], rtol=0, atol=1e-10)


@pytest.mark.slow
def test_lambda_and_densities(solve: Any, lih: Any, ground: Any) -> None:
    solver, o = lih.spin_solver, 4
    multipliers = solve("ccsd_lambda_spin_orbital", lih.reference, amplitudes=ground)
    for name, expected in zip(("l1", "l2"), solver.solve_lambda(), strict=True):
        assert np.allclose(multipliers.amplitudes[name], expected, rtol=0, atol=1e-7)
    found = solve("ccsd_density_spin_orbital", lih.reference, amplitudes=multipliers).values
    energy = sum(
        float(np.sum(found[f"d_L_{n}"] * a)) for n, a in lih.spin.items() if f"d_L_{n}" in found
    )
    assert abs(energy - ground.e_corr) < TOLERANCE

    from pyscf.cc import gccsd_rdm

    one = solver.make_rdm1()
    assert np.allclose(found["d_L_f_oo"], one[:o, :o] - np.eye(o), rtol=0, atol=1e-7)
    two = gccsd_rdm.make_rdm2(
        solver, solver.t1, solver.t2, solver.l1, solver.l2, with_dm1=False
    ).transpose(0, 2, 1, 3)
    part = {"o": slice(0, o), "v": slice(o, None)}
    for block, factor in {
        "oooo": 0.25,
        "vvvv": 0.25,
        "oovv": 0.5,
        "ooov": 1,
        "ovov": 1,
        "ovvv": 1,
    }.items():
        expected = factor * two[tuple(part[letter] for letter in block)]
        assert np.allclose(found[f"d_L_v_{block}"], expected, rtol=0, atol=1e-7)


@pytest.mark.parametrize(
    ("name", "inputs"),
    [("ccsd_lambda_spin_orbital", ("t1", "t2")), ("ccsd_density_spin_orbital", ("f_", "v_"))],
)
def test_derived_specs_are_what_derivative_makes(name: str, inputs: tuple[str, ...]) -> None:
    lagrangian = read_system(tcgen.spec_path("ccsd_lagrangian_spin_orbital"))
    chosen = [t.name for t in lagrangian.inputs if t.name.startswith(inputs)]
    made = tcgen.spec_text(tcgen.derivative(lagrangian, chosen, of="L")).partition("\n")[2]
    text = tcgen.spec_path(name).read_text(encoding="utf-8").splitlines(keepends=True)
    assert "".join(line for line in text if not line.startswith("#")) == made


def test_headers_name_a_reference() -> None:
    """The title has one line, for ``tcgen list``; a year follows, and which letters are which."""
    for path in tcgen.spec_path("mp2_df").parent.glob("*.spec"):
        title, *rest = path.read_text(encoding="utf-8").partition("\nspace ")[0].splitlines()
        assert title.startswith("# ")
        assert title.endswith("."), path
        assert any(word.strip("().,").isdigit() for line in rest for word in line.split()), path

"""Roots over complex orbitals: EOM against PySCF's GCCSD and dense matrices, and left vectors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import tcgen
from support.marks import slow
from tcgen.chem.driver import opened
from tcgen.chem.eigen import Layout, independent_elements, lowest_roots
from tcgen.chem.options import solve_options
from tcgen.compiler.api import read_equations
from tcgen.ir.tensor import Role, Space, Tensor

FAST: dict[str, Any] = {
    "target": "numpy", "optimize": False, "show": False, "dtype": "complex128",
}  # fmt: skip
solve = partial(tcgen.chem.solve, **FAST)
ROOT = 1e-8  # Hartree


def in_a_field(kind: str = "GHF") -> Any:
    """Lithium hydride in a magnetic field across the bond, 0.05 atomic units."""
    pytest.importorskip("pyscf")
    from pyscf import gto, scf
    from scipy.linalg import block_diag

    mol = gto.M(atom="Li 0 0 0; H 0 0 1.5957", basis="sto-3g", verbose=0)
    core = scf.hf.get_hcore(mol) + 0.05 * 0.5j * mol.intor("int1e_cg_irxp", comp=3)[0]
    spin = 0.05 * 0.5 * mol.intor("int1e_ovlp")
    field = getattr(scf, kind)(mol)
    core = block_diag(core + spin, core - spin) if kind == "GHF" else core
    field.get_hcore = lambda *_: core
    field.conv_tol = 1e-13
    field.kernel(field.get_init_guess() + 0j)
    assert np.abs(field.mo_coeff.imag).max() > 0.01
    return field


@pytest.fixture(scope="module")
def field() -> Any:
    return in_a_field()


@pytest.fixture(scope="module")
def ground(field: Any) -> tcgen.chem.Solution:
    return solve("ccsd_complex_spin_orbital", field)


@pytest.mark.parametrize("sector", ["ip", "ea", *slow("ee")])
def test_roots_of_pyscf(sector: str, field: Any, ground: Any) -> None:
    from pyscf import cc

    solver = cc.GCCSD(field)
    solver.conv_tol, solver.conv_tol_normt = 1e-11, 1e-9
    solver.kernel()
    expected = np.sort(getattr(solver, f"{sector}ccsd")(nroots=3)[0].real)
    found = solve(f"eom_{sector}_ccsd_complex_spin_orbital", field, amplitudes=ground, nroots=4)
    assert found.converged
    # PySCF passes over the second excitation.
    roots = found.roots[:3] if sector != "ee" else np.delete(found.roots, 1)
    np.testing.assert_allclose(roots, expected, rtol=0, atol=ROOT)
    (first, *_) = found.states
    assert first.multiplicity is None
    assert first.leading[0][0] > 0.9
    assert not set(first.leading[0][1]) & set("ab")


def dense(spec: str, field: Any, ground: Any) -> tuple[np.ndarray, Layout]:
    """The matrix of a spec, and the layout of its vectors."""
    options = solve_options(None, FAST | {"amplitudes": ground})
    with opened(read_equations(spec), field, options) as problem:
        multiply, parts, _ = problem.matrix(lambda _: None)
        layout = Layout(parts)
        rows = sum(part.places.size for part in parts.values())
        return np.array(layout.vectors(multiply(layout.amplitudes(np.eye(rows))))).T, layout


@pytest.mark.parametrize("sector", ["ip", *slow("ea", "ee", "dip")])
def test_left_vectors_belong_to_the_transpose(
    sector: str, field: Any, ground: Any, wickd: None
) -> None:
    names = [f"eom_{sector}_ccsd{end}_complex_spin_orbital" for end in ("", "_left")]
    right, left = (solve(name, field, amplitudes=ground, nroots=4) for name in names)
    matrix, layout = dense(names[0], field, ground)
    assert np.abs(matrix.imag).max() > 0.01
    assert np.abs(matrix - matrix.conj().T).max() > 0.001
    roots = np.sort(np.linalg.eigvals(matrix).real)[:4]
    np.testing.assert_allclose(right.roots, roots, rtol=0, atol=ROOT)
    np.testing.assert_allclose(left.roots, roots, rtol=0, atol=ROOT)
    of_right = np.array(layout.vectors({n: right.amplitudes[n] for n in layout.parts}))
    of_left = np.array(layout.vectors({n: left.amplitudes[f"l{n[1:]}"] for n in layout.parts}))
    for root, row, column in zip(roots, of_left, of_right, strict=True):
        np.testing.assert_allclose(matrix @ column, root * column, rtol=0, atol=1e-7)
        np.testing.assert_allclose(row @ matrix, root * row, rtol=0, atol=1e-7)
    overlap = of_left @ of_right.T
    away = overlap - np.diag(overlap.diagonal())
    apart = np.abs(np.subtract.outer(roots, roots)) > 1e-6
    np.testing.assert_allclose(away[apart], 0, atol=1e-6)


@pytest.mark.slow
def test_closed_shells(wickd: None) -> None:
    """Singlets and doublets over complex spatial orbitals, of spin orbitals' equations."""
    field = in_a_field("RHF")
    ground = solve("ccsd_complex_closed_shell", field)
    spins = solve("ccsd_complex_spin_orbital", field)
    for sector in ("ip", "ee"):
        found = solve(f"eom_{sector}_ccsd_complex_closed_shell", field, amplitudes=ground, nroots=2)
        whole = solve(f"eom_{sector}_ccsd_complex_spin_orbital", field, amplitudes=spins, nroots=14)
        kept = [s.energy for s in whole.states if s.multiplicity == (2 if sector == "ip" else 1)]
        np.testing.assert_allclose(found.roots, kept[:2], rtol=0, atol=1e-7)
        assert {s.multiplicity for s in found.states} == {2 if sector == "ip" else 1}


@pytest.mark.parametrize("rows", [20, 120])
@pytest.mark.parametrize("imaginary", [0.0, 1e-4])
def test_roots_that_are_complex(rows: int, imaginary: float) -> None:
    """Lowest real parts, of a matrix that is made whole and of one that is not; and a warning."""
    pytest.importorskip("pyscf")
    rng = np.random.default_rng(4)
    values = np.arange(rows) + imaginary * 1j * (np.arange(rows) % 2)
    draw = np.eye(rows) + 0.02 * (rng.random((rows, rows)) + 1j * rng.random((rows, rows)))
    matrix = draw @ np.diag(values) @ np.linalg.inv(draw)
    part = independent_elements(Tensor("x", (Space("o"),), Role.INPUT), (rows,))

    def run() -> Any:
        return lowest_roots(
            lambda v: {"x": v["x"] @ matrix.T}, {"x": part}, {"x": matrix.diagonal().real}, {},
            count=3, tolerance=1e-8, max_cycle=100,
        )  # fmt: skip

    if imaginary:
        with pytest.warns(RuntimeWarning, match=r"imaginary parts up to 1\.0e-04 Hartree"):
            found = run()
    else:
        found = run()
    np.testing.assert_allclose(found.values, [0, 1, 2], rtol=0, atol=1e-8)
    assert max(found.norms) < 1e-8


def test_methods_over_complex_orbitals_by_name(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, wickd: None
) -> None:
    monkeypatch.setenv("TCGEN_CACHE_DIR", str(tmp_path))
    read: Callable[[str], Any] = read_equations
    real, other = read("lccd"), read("lccd_complex")
    assert "v_vvoo" in {t.name for t in other.inputs} - {t.name for t in real.inputs}
    assert read("lccd_complex_closed_shell").name != real.name

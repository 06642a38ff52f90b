"""Complex orbitals: equations that keep bra and ket apart, and others, which are refused."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcgen
from support.messages import mentions

solve = partial(tcgen.chem.solve, target="numpy", optimize=False, show=False, dtype="complex128")
# CCSD with integrals over all orbitals, dressed with singles as in cc2_spin_orbital.
CC2 = (
    tcgen.spec_path("cc2_spin_orbital")
    .read_text()
    .replace("symmetric (0,1) constant", "hermitian (0)<->(1) constant")
    .replace("symmetry (0,1)<->(2,3)", "hermitian (0,1)<->(2,3)")
    .replace("index i j m n", "index i j k l m n")
)
CCSD = (
    CC2.partition("# doubles to first")[0]
    + """
r2[i,j,a,b]  = X[a,p]*X[b,q]*g[p,q,r,s]*Y[r,i]*Y[s,j]
r2[i,j,a,b] += P(a,b) X[b,p]*F[p,c]*t2[i,j,a,c] - P(i,j) F[m,q]*Y[q,j]*t2[i,m,a,b]
r2[i,j,a,b] += 1/2*X[a,p]*X[b,q]*g[p,q,c,d]*t2[i,j,c,d]
r2[i,j,a,b] += 1/2*g[m,n,r,s]*Y[r,i]*Y[s,j]*t2[m,n,a,b]
r2[i,j,a,b] -= P(i,j) P(a,b) t2[i,k,a,c]*X[b,p]*g[k,p,q,c]*Y[q,j]
r2[i,j,a,b] += 1/4*t2[i,j,c,d]*t2[k,l,a,b]*g[k,l,c,d]
r2[i,j,a,b] += P(a,b) t2[i,k,a,c]*t2[j,l,b,d]*g[k,l,c,d]
r2[i,j,a,b] -= 1/2*P(a,b) t2[i,j,a,c]*t2[k,l,b,d]*g[k,l,c,d]
r2[i,j,a,b] -= 1/2*P(i,j) t2[i,k,a,b]*t2[j,l,c,d]*g[k,l,c,d]
"""
)
HEAD = "space o occupied\nspace v virtual\nindex i j : o\nindex a b c : v\n"
ENERGY = HEAD + (
    "input v_oovv[o,o,v,v] antisymmetric (0,1) (2,3), e_o[o], e_v[v]\noutput e\n"
    "e = 1/4*v_oovv[i,j,a,b]*{}/(e_o[i] + e_o[j] - e_v[a] - e_v[b])\n"
)


@pytest.fixture(scope="module")
def relativistic(blocks: Any) -> Any:
    """Hydrogen fluoride with spin-orbit coupling."""
    from pyscf import scf

    field = scf.GHF(blocks.molecule("H 0 0 0; F 0 0 0.917", "sto-3g")).x2c()
    field.conv_tol = 1e-12
    field.kernel(field.get_init_guess() + 0j)
    assert np.abs(field.mo_coeff.imag).max() > 0.1
    return field


def test_spin_orbit_coupling(relativistic: Any, tmp_path: Path) -> None:
    from pyscf import cc

    solver = cc.GCCSD(relativistic)
    mp2 = solver.init_amps(solver.ao2mo())[0]
    conjugate = ENERGY.format("conj(v_oovv[i,j,a,b])")
    assert solve(conjugate, relativistic).e_corr == pytest.approx(mp2, abs=1e-9)
    tcgen.chem.write_fcidump(tmp_path / "FCIDUMP", relativistic)
    held = tcgen.chem.read_fcidump(tmp_path / "FCIDUMP")
    assert held.e_hf == pytest.approx(relativistic.e_tot, abs=1e-9)
    assert solve(conjugate, held).e_corr == pytest.approx(mp2, abs=1e-9)
    with pytest.raises(tcgen.ArgumentError, match=mentions("complex128 FCIDUMP")):
        solve(conjugate, held, dtype="float64")


@pytest.mark.slow
def test_ccsd_with_spin_orbit_coupling(relativistic: Any) -> None:
    from pyscf import cc

    solver = cc.GCCSD(relativistic)
    solver.conv_tol, solver.conv_tol_normt = 1e-11, 1e-9
    for frozen in (0, 2):
        solver.frozen = frozen
        expected = solver.kernel()[0]
        for spec in (CCSD, "ccsd_complex_spin_orbital"):
            found = solve(spec, relativistic, frozen=frozen)
            assert found.e_corr == pytest.approx(expected, abs=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["GHF", "UHF", "RHF"])
def test_rotations_by_complex_numbers(kind: str, blocks: Any) -> None:
    from pyscf import scf

    mol = blocks.molecule("Li 0 0 0; H 0 0 1.5957", "sto-3g")
    field = getattr(scf, kind)(mol).run(conv_tol=1e-12)
    expected = solve(CC2, field)
    rng = np.random.default_rng(4)

    def turned(c: np.ndarray, occupations: np.ndarray) -> np.ndarray:
        result = c.astype(complex)
        for places in (np.flatnonzero(occupations > 0), np.flatnonzero(occupations == 0)):
            n = len(places)
            draw = rng.random((n, n)) + 1j * rng.random((n, n))
            result[:, places] = c[:, places] @ np.linalg.qr(draw)[0]
        return result

    other = field.copy()
    parts = zip(field.mo_coeff, field.mo_occ, strict=True)
    other.mo_coeff = (
        np.array([turned(*part) for part in parts])
        if kind == "UHF"
        else turned(field.mo_coeff, field.mo_occ)
    )
    assert solve(CC2, other).e_corr == pytest.approx(expected.e_corr, abs=1e-8)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("ccsd_spin_orbital", "f_oo symmetry complex hermitian"),
        ("mp2_spin_orbital", "e real orbitals complex v_vvoo"),
        ("eom_ip_ccsd_spin_orbital", "f symmetry complex hermitian"),
        (ENERGY.format("v_oovv[i,j,a,b]"), "e real orbitals complex v_vvoo"),
        (
            HEAD.replace("i j", "i j k") + "input f_vv[v,v], f_oo[o,o]\n"
            "input v_oovv[o,o,v,v], t2[o,o,v,v] antisymmetric (0,1) (2,3)\noutput e, r2\n"
            "e = 1/4*v_oovv[i,j,a,b]*t2[i,j,a,b]\nr2[i,j,a,b] = v_oovv[i,j,a,b] "
            "+ P(a,b) f_vv[b,c]*t2[i,j,a,c] - P(i,j) f_oo[k,j]*t2[i,k,a,b]\n",
            "r2 real orbitals complex v_vvoo",
        ),
    ],
)
def test_equations_of_real_orbitals_are_refused(spec: str, words: str, relativistic: Any) -> None:
    with pytest.raises(tcgen.ArgumentError, match=mentions(words)):
        solve(spec, relativistic)


@pytest.mark.parametrize("keyword", ["amplitudes", "inputs"])
def test_amplitudes_of_other_equations(keyword: str, relativistic: Any) -> None:
    """They have phases, whichever keyword passes them; their energy is none of correlation."""
    pairs = HEAD + (
        "input v_oovv[o,o,v,v] antisymmetric (0,1) (2,3), t2[o,o,v,v] antisymmetric (0,1) (2,3)\n"
        "output e_pairs\ne_pairs = 1/4*v_oovv[i,j,a,b]*t2[i,j,a,b]\n"
    )
    t2 = np.zeros((10, 10, 2, 2), complex)
    found = solve(pairs, relativistic, **{keyword: {"t2": t2}})
    assert found.energies == {"e_pairs": 0.0}
    assert found.e_corr is None


def test_energies_that_are_complex() -> None:
    from tcgen.chem.problem import real_number

    assert real_number("e", 1 + 1e-9j, 1e-9) == 1.0
    with pytest.raises(tcgen.ArgumentError, match=mentions("e imaginary 1.0e-07")):
        real_number("e", 1 + 1e-7j, 1e-9)

"""Density-fitted programs against dense sums and PySCF: ladder, CC2, direct RPA, SOS-MP2."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

Compiled = Callable[[str], Any]
Chemistry = Callable[[str], Any]


def dense_ovov(b_ov: np.ndarray) -> np.ndarray:
    """g[i,a,j,b] = (ia|jb)."""
    return np.einsum("Pia,Pjb->iajb", b_ov, b_ov, optimize=True)


@pytest.mark.parametrize("name", ["lih_sto3g", "h2o_631g", "h2o_ccpvdz"])
def test_ladder(name: str, compiled: Compiled, chemistry: Chemistry) -> None:
    case = chemistry(name)
    b_vv, tau = case.fitted["b_vv"], case.closed_solver.t2
    out = compiled("df_ladder")(b_vv=b_vv, tau=tau)
    dense = np.einsum("Pae,Pbf->abef", b_vv, b_vv, optimize=True)
    expected = np.einsum("abef,ijef->ijab", dense, tau, optimize=True)
    assert np.allclose(out["r2"], expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize("name", ["lih_sto3g", "h2o_631g", "h2o_ccpvdz_fc"])
def test_cc2(
    name: str, compiled: Compiled, chemistry: Chemistry, examples: SimpleNamespace
) -> None:
    """PySCF solves CC2 with integrals that are made of the same three-index ones."""
    from pyscf.cc import rccsd

    case = chemistry(name)
    fitted, solver = case.fitted, rccsd.RCCSD(case.reference, frozen=case.frozen or None)
    solver.cc2, solver.conv_tol, solver.conv_tol_normt, solver.max_cycle = True, 1e-11, 1e-8, 100
    eris = solver.ao2mo()
    b = {pair: fitted[f"b_{pair}"] for pair in ("oo", "ov", "vv")}
    b["vo"] = b["ov"].transpose(0, 2, 1)
    for block in ("oooo", "ovoo", "ovov", "oovv", "ovvo", "ovvv", "vvvv"):
        dense = np.einsum("Ppq,Prs->pqrs", b[block[:2]], b[block[2:]], optimize=True)
        setattr(eris, block, dense)
    expected = solver.kernel(eris=eris)[0]
    assert solver.converged

    step = compiled("cc2_df").bind(**fitted)
    found = examples.diis.iterate(step, {"t1": np.zeros_like(solver.t1)})
    assert abs(found.energy - expected) < 1e-9
    assert np.allclose(found.amplitudes["t1"], solver.t1, rtol=0, atol=1e-7)
    assert np.abs(step(**found.amplitudes)["r1"]).max() < 1e-8


@pytest.mark.parametrize("name", ["lih_sto3g", "h2o_631g"])
def test_direct_rpa(name: str, compiled: Compiled, chemistry: Chemistry) -> None:
    """E = 1/2pi integral dw [ln det(1 - Pi(iw)) + tr Pi(iw)], the Pi of all points generated."""
    from pyscf import df
    from pyscf.gw import rpa

    case = chemistry(name)
    mean_field, fitted = case.reference, case.fitted
    solver = rpa.RPA(mean_field)
    solver.with_df = df.DF(mean_field.mol, auxbasis=case.record.get("auxbasis", "cc-pvdz-ri"))
    expected = solver.kernel(nw=12)

    omega, weight = rpa._get_scaled_legendre_roots(12)
    gap = fitted["e_v"] - fitted["e_o"][:, None]
    response = 4 * gap / (omega[:, None, None] ** 2 + gap**2)
    pi = compiled("drpa")(b_ov=fitted["b_ov"], d=response)["pi"]
    _, log_det = np.linalg.slogdet(np.eye(pi.shape[1]) - pi)
    energy = weight @ (log_det + np.trace(pi, axis1=1, axis2=2)) / (2 * np.pi)
    assert energy < -1e-3
    assert abs(energy - expected) < 1e-10


@pytest.mark.parametrize("name", ["lih_sto3g", "h2o_631g", "h2o_ccpvdz_fc"])
def test_sos_mp2(name: str, compiled: Compiled, chemistry: Chemistry) -> None:
    """1/D by 40 points of the trapezoid rule in u, t = exp(u - exp(-u)): opposite-spin MP2."""
    fitted = chemistry(name).fitted
    u = np.linspace(-4.6, 4.6, 40)
    t = np.exp(u - np.exp(-u))
    c = (u[1] - u[0]) * t * (1 + np.exp(-u))
    e_o, e_v = fitted["e_o"], fitted["e_v"]
    out = compiled("sosmp2_laplace_df")(b_ov=fitted["b_ov"], e_o=e_o, e_v=e_v, t=t, c=c)

    g = dense_ovov(fitted["b_ov"])
    d1 = e_o[:, None] - e_v
    d2 = d1[:, :, None, None] + d1
    by_points = -sum(cw * np.sum(g**2 * np.exp(tw * d2)) for cw, tw in zip(c, t, strict=True))
    assert abs(float(out["e_os"]) - by_points) < 1e-11
    assert abs(float(out["e_os"]) - np.sum(g**2 / d2)) < 1e-7

"""Residuals away from the solution against PySCF's update_amps, which returns t + r/D.

At convergence every residual is zero, so a wrong equation can hide there; here it cannot.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tcgen

Compiled = Callable[[str], Any]
Chemistry = Callable[[str], Any]
Pick = Callable[[Any, dict[str, np.ndarray]], dict[str, np.ndarray]]


def perturbed(t1: np.ndarray, t2: np.ndarray, antisymmetric: bool) -> dict[str, np.ndarray]:
    """Amplitudes moved by about 0.01 an element, with the symmetry that t2 must have."""
    random = np.random.default_rng(11)
    s1, s2 = random.standard_normal(t1.shape), random.standard_normal(t2.shape)
    if antisymmetric:
        s2 = s2 - s2.transpose(1, 0, 2, 3)
        s2 = s2 - s2.transpose(0, 1, 3, 2)
    else:
        s2 = s2 + s2.transpose(1, 0, 3, 2)
    return {"t1": t1 + 0.01 * s1, "t2": t2 + 0.01 * s2}


@pytest.mark.parametrize("name", ["lih_sto3g", "h2o_631g", "h2o_ccpvdz_fc"])
def test_closed_shell_updates(name: str, compiled: Compiled, chemistry: Chemistry) -> None:
    case, program = chemistry(name), compiled("ccsd_closed_shell")
    solver = case.closed_solver
    t = perturbed(solver.t1, solver.t2, antisymmetric=False)
    triangles = tcgen.pack_pairs(case.closed["v_vvvv"], (0, 1), (2, 3))
    out = program(**case.closed | {"v_vvvv": triangles}, **t)
    new1, new2 = solver.update_amps(t["t1"], t["t2"], solver.eris)
    assert np.allclose(out["t1_new"], new1, rtol=0, atol=1e-10)
    assert np.allclose(out["t2_new"], new2, rtol=0, atol=1e-10)
    assert abs(float(out["e"]) - solver.energy(t["t1"], t["t2"], solver.eris)) < 1e-10
    assert np.linalg.norm(out["r1"]) > 1e-3
    assert np.linalg.norm(out["r2"]) > 1e-3


@pytest.mark.parametrize("name", ["lih_sto3g", "h2o_631g", "ch3_rohf_631g"])
def test_spin_orbital_updates(
    name: str, compiled: Compiled, chemistry: Chemistry, pick: Pick, examples: SimpleNamespace
) -> None:
    case, program = chemistry(name), compiled("ccsd_spin_orbital")
    solver = case.spin_solver
    t = perturbed(solver.t1, solver.t2, antisymmetric=True)
    out = program(**pick(program, case.spin), **t)
    d1, d2 = examples.diis.denominators(case.spin["e_o"], case.spin["e_v"])
    new1, new2 = solver.update_amps(t["t1"], t["t2"], solver.eris)
    assert np.allclose(t["t1"] + out["r1"] / d1, new1, rtol=0, atol=1e-10)
    assert np.allclose(t["t2"] + out["r2"] / d2, new2, rtol=0, atol=1e-10)
    assert abs(float(out["e"]) - solver.energy(t["t1"], t["t2"], solver.eris)) < 1e-10
    assert np.linalg.norm(out["r1"]) > 1e-3
    assert np.linalg.norm(out["r2"]) > 1e-3


@pytest.fixture(scope="module")
def unrestricted(blocks: Any) -> Any:
    """PySCF's converged UCCSD of the CH3 radical in 6-31G on UHF, with ``eris``."""
    from pyscf import cc

    geometry = "C 0 0 0; H 1.0790 0 0; H -0.5395 0.934441411 0; H -0.5395 -0.934441411 0"
    reference = blocks.mean_field(blocks.molecule(geometry, "6-31g", spin=1), "UHF")
    solver = blocks.tight(cc.uccsd.UCCSD(reference))
    solver.eris = solver.ao2mo()
    solver.kernel(eris=solver.eris)
    assert solver.converged
    return solver


def spin_blocks(t1: tuple[np.ndarray, ...], t2: tuple[np.ndarray, ...]) -> dict[str, np.ndarray]:
    names = ("t1a", "t1b", "t2aa", "t2ab", "t2bb")
    return dict(zip(names, (*t1, *t2), strict=True))


def test_unrestricted_singles_at_convergence(
    unrestricted: Any, compiled: Compiled, blocks: Any, pick: Pick
) -> None:
    program = compiled("uccsd_energy_t1")
    arrays = pick(program, blocks.unrestricted(unrestricted, unrestricted.eris))
    out = program(**arrays, **spin_blocks(unrestricted.t1, unrestricted.t2))
    assert abs(float(out["e"]) - unrestricted.e_corr) < 1e-8
    assert np.linalg.norm(out["r1a"]) < 1e-7
    assert np.linalg.norm(out["r1b"]) < 1e-7


def test_unrestricted_singles_updates(
    unrestricted: Any, compiled: Compiled, blocks: Any, pick: Pick, examples: SimpleNamespace
) -> None:
    program = compiled("uccsd_energy_t1")
    arrays = blocks.unrestricted(unrestricted, unrestricted.eris)
    alpha = perturbed(unrestricted.t1[0], unrestricted.t2[0], antisymmetric=True)
    beta = perturbed(unrestricted.t1[1], unrestricted.t2[2], antisymmetric=True)
    random = np.random.default_rng(12).standard_normal(unrestricted.t2[1].shape)
    t1 = (alpha["t1"], beta["t1"])
    t2 = (alpha["t2"], unrestricted.t2[1] + 0.01 * random, beta["t2"])
    out = program(**pick(program, arrays), **spin_blocks(t1, t2))

    new1, _ = unrestricted.update_amps(t1, t2, unrestricted.eris)
    d1a, _ = examples.diis.denominators(arrays["e_o"], arrays["e_v"])
    d1b, _ = examples.diis.denominators(arrays["e_O"], arrays["e_V"])
    assert np.allclose(t1[0] + out["r1a"] / d1a, new1[0], rtol=0, atol=1e-10)
    assert np.allclose(t1[1] + out["r1b"] / d1b, new1[1], rtol=0, atol=1e-10)
    assert abs(float(out["e"]) - unrestricted.energy(t1, t2, unrestricted.eris)) < 1e-10
    assert np.linalg.norm(out["r1a"]) > 1e-3
    assert np.linalg.norm(out["r1b"]) > 1e-3

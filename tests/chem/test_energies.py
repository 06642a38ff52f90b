"""Energies of generated programs against PySCF's, to 1e-8 Hartree: the numbers of energies.json."""

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

CLOSED_SHELL = ["lih_sto3g", "h2o_sto3g", "h2o_631g", "h2o_ccpvdz", "h2o_ccpvdz_fc"]
SMALL = ["lih_sto3g", "h2o_sto3g", "h2o_631g"]
large = pytest.mark.slow
WITH_LARGE = [*SMALL, *(pytest.param(c, marks=large) for c in ("h2o_ccpvdz", "h2o_ccpvdz_fc"))]
TOLERANCE = 1e-8  # Hartree


def check(energy: Any, case: Any, key: str) -> None:
    assert np.shape(energy) == ()
    assert abs(float(energy) - case.energies[key]) < TOLERANCE


@pytest.mark.parametrize("name", CLOSED_SHELL)
def test_mp2_closed_shell(name: str, compiled: Compiled, chemistry: Chemistry) -> None:
    case, program = chemistry(name), compiled("mp2_closed_shell")
    out = program(g=case.closed["v_ovov"], e_o=case.closed["e_o"], e_v=case.closed["e_v"])
    check(out["e"], case, "E_MP2_corr")


@pytest.mark.parametrize("name", CLOSED_SHELL)
def test_mp2_spin_orbital(name: str, compiled: Compiled, chemistry: Chemistry, pick: Pick) -> None:
    case, program = chemistry(name), compiled("mp2_spin_orbital")
    check(program(**pick(program, case.spin))["e"], case, "E_MP2_corr")


@pytest.mark.parametrize("name", ["lih_sto3g", "h2o_ccpvdz", "h2o_ccpvdz_fc"])
def test_density_fitted_mp2(
    name: str, compiled: Compiled, chemistry: Chemistry, pick: Pick
) -> None:
    case, program = chemistry(name), compiled("mp2_df")
    check(program(**pick(program, case.fitted))["e"], case, "E_DFMP2_corr")


@pytest.mark.parametrize("name", [*SMALL, pytest.param("h2o_ccpvdz", marks=large)])
def test_ccd(
    name: str, compiled: Compiled, chemistry: Chemistry, pick: Pick, examples: SimpleNamespace
) -> None:
    case, program = chemistry(name), compiled("ccd_spin_orbital")
    d1, d2 = examples.diis.denominators(case.spin["e_o"], case.spin["e_v"])
    constants = pick(program, case.spin)
    step = examples.diis.updating(lambda t2: program(**constants, t2=t2), d1, d2)
    result = examples.diis.iterate(step, {"t2": case.spin["v_oovv"] / d2})
    check(result.energy, case, "E_CCD_corr")


@pytest.mark.parametrize("name", CLOSED_SHELL)
def test_ccsd_closed_shell(
    name: str, compiled: Compiled, chemistry: Chemistry, examples: SimpleNamespace
) -> None:
    case, program = chemistry(name), compiled("ccsd_closed_shell")
    d1, d2 = examples.diis.denominators(case.closed["e_o"], case.closed["e_v"])
    triangles = tcgen.pack_pairs(case.closed["v_vvvv"], (0, 1), (2, 3))
    step = program.bind(**case.closed | {"v_vvvv": triangles})
    start = {"t1": np.zeros(d1.shape), "t2": case.closed["v_ovov"].transpose(0, 2, 1, 3) / d2}
    result = examples.diis.iterate(step, start)
    check(result.energy, case, "E_CCSD_corr")

    out = step(**result.amplitudes)
    assert np.linalg.norm(out["r1"]) < 1e-7
    assert np.linalg.norm(out["r2"]) < 1e-7
    assert np.allclose(result.amplitudes["t2"], case.closed_solver.t2, rtol=0, atol=1e-8)


@pytest.mark.parametrize("name", [*WITH_LARGE, "ch3_rohf_631g"])
def test_ccsd_spin_orbital(
    name: str, compiled: Compiled, chemistry: Chemistry, pick: Pick, examples: SimpleNamespace
) -> None:
    case, program = chemistry(name), compiled("ccsd_spin_orbital")
    d1, d2 = examples.diis.denominators(case.spin["e_o"], case.spin["e_v"])
    constants = pick(program, case.spin)
    step = examples.diis.updating(lambda **t: program(**constants, **t), d1, d2)
    start = {"t1": case.spin["f_ov"] / d1, "t2": case.spin["v_oovv"] / d2}
    result = examples.diis.iterate(step, start)
    check(result.energy, case, "E_GCCSD_corr")

    out = program(**constants, **result.amplitudes)
    assert np.linalg.norm(out["r1"]) < 1e-7
    assert np.linalg.norm(out["r2"]) < 1e-7


def test_rohf_reference_has_all_fock_terms(chemistry: Chemistry) -> None:
    """The ROHF case is there to catch dropped Fock terms: it must have them."""
    spin = chemistry("ch3_rohf_631g").spin
    assert np.abs(spin["f_ov"]).max() > 1e-3
    for block in ("f_oo", "f_vv"):
        assert np.abs(spin[block] - np.diag(spin[block].diagonal())).max() > 1e-3


@pytest.mark.parametrize("name", CLOSED_SHELL)
def test_triples_closed_shell(
    name: str, compiled: Compiled, chemistry: Chemistry, pick: Pick
) -> None:
    case, program = chemistry(name), compiled("t_closed_shell")
    solver = case.closed_solver
    out = program(**pick(program, case.closed), t1=solver.t1, t2=solver.t2)
    check(out["e_t"], case, "E_(T)")


@pytest.mark.default_thresholds
@pytest.mark.parametrize(
    ("name", "limit"), [("h2o_631g", 100_000), pytest.param("h2o_ccpvdz", 10**6, marks=large)]
)
def test_triples_closed_shell_within_a_limit(
    name: str, limit: int, chemistry: Chemistry, pick: Pick
) -> None:
    """The limit is less than a fifth of one array over three occupied and three virtual indices."""
    case = chemistry(name)
    solver = case.closed_solver
    o, v = solver.t1.shape
    assert 5 * limit < 8 * (o * v) ** 3
    program = tcgen.compile(
        tcgen.spec_path("t_closed_shell"),
        extents={"o": o, "v": v},
        objective="time",
        memory_limit=limit,
    )
    out = program(**pick(program, case.closed), t1=solver.t1, t2=solver.t2)
    assert abs(float(out["e_t"]) - case.energies["E_(T)"]) < 1e-9
    assert program.allocated_bytes <= limit


@pytest.mark.slow
def test_triples_of_water_in_cc_pvtz_within_64_mib() -> None:
    """Five occupied and 53 virtual orbitals; the amplitudes of two CCSD iterations will do."""
    from pyscf import cc, gto, scf
    from pyscf.cc import ccsd_t

    atoms = "O 0 0 0.1173; H 0 0.7572 -0.4692; H 0 -0.7572 -0.4692"
    solver = cc.ccsd.CCSD(scf.RHF(gto.M(atom=atoms, basis="cc-pvtz", verbose=0)).run())
    solver.max_cycle, eris = 2, solver.ao2mo()
    solver.kernel(eris=eris)
    energies, fock = np.asarray(eris.mo_energy), np.asarray(eris.fock)
    limit = 64 * 2**20
    program = tcgen.compile(
        tcgen.spec_path("t_closed_shell"),
        extents={"o": 5, "v": 53},
        objective="time",
        memory_limit=limit,
    )
    found = program(
        f_ov=fock[:5, 5:].copy(),
        e_o=energies[:5].copy(),
        e_v=energies[5:].copy(),
        v_ovoo=np.asarray(eris.ovoo),
        v_ovov=np.asarray(eris.ovov),
        v_ovvv=np.asarray(eris.get_ovvv()),
        t1=solver.t1,
        t2=np.ascontiguousarray(solver.t2),
    )
    expected = ccsd_t.kernel(solver, eris, solver.t1, solver.t2, verbose=0)
    assert abs(float(found["e_t"]) - float(expected)) < 1e-9
    assert program.allocated_bytes <= limit


@pytest.mark.parametrize("name", [*SMALL, "ch3_rohf_631g"])
def test_triples_spin_orbital(
    name: str, compiled: Compiled, chemistry: Chemistry, pick: Pick
) -> None:
    case, program = chemistry(name), compiled("t_spin_orbital")
    solver = case.spin_solver
    out = program(**pick(program, case.spin), t1=solver.t1, t2=solver.t2)
    check(out["e_t"], case, "E_GCCSD_(T)")

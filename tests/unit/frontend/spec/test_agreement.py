"""Shipped specs and term lists of one method mean the same; open-shell equations against PySCF."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from support.paths import DATA, ROOT
from tcgen.frontend import read
from tcgen.interp import evaluate_system
from tcgen.interp.storage import to_caller
from tcgen.ir.system import System
from tcgen.ir.tensor import Tensor, symmetry_group

SPECS = ROOT / "specs"
GIVEN = DATA / "specs"
LISTS = DATA / "equations"
EQS = DATA / "eqs"
EXTENTS = {"o": 3, "v": 4, "x": 5, "q": 2}
RENAMED = {"e_o": "eo", "e_v": "ev"}


def random_array(tensor: Tensor, seed: int) -> np.ndarray:
    """Random values with the declared symmetry; orbital energies are kept apart."""
    rng = np.random.default_rng(seed + sum(map(ord, RENAMED.get(tensor.name, tensor.name))))
    raw = rng.standard_normal([EXTENTS[s.name] for s in tensor.spaces])
    if RENAMED.get(tensor.name, tensor.name) in ("eo", "ev"):
        return np.abs(raw) + 1 if tensor.name.endswith("v") else -np.abs(raw) - 1
    group = symmetry_group(tensor)
    return sum(s.sign * raw.transpose(np.argsort(s.perm)) for s in group) / len(group)


def inputs(*systems: System) -> dict[str, np.ndarray]:
    """One array for each input of the systems, with the most symmetry that one of them declares."""
    best: dict[str, Tensor] = {}
    for tensor in (t for s in systems for t in s.inputs):
        name = RENAMED.get(tensor.name, tensor.name)
        if name not in best or len(symmetry_group(tensor)) > len(symmetry_group(best[name])):
            best[name] = tensor
    return {name: random_array(tensor, 1) for name, tensor in best.items()}


def evaluate(system: System, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    own = {t.name: to_caller(t, arrays[RENAMED.get(t.name, t.name)]) for t in system.inputs}
    extents = {s.name: EXTENTS[s.name] for s in system.spaces}
    return evaluate_system(system, own, extents)


@pytest.mark.parametrize(
    ("spec", "listed"),
    [
        (SPECS / "mp2_closed_shell.spec", "mp2_cs_energy"),
        (SPECS / "mp2_spin_orbital.spec", "mp2_so_energy"),
        (SPECS / "mp2_df.spec", "mp2_df_energy"),
        (SPECS / "ccd_spin_orbital.spec", "ccd_so_expanded"),
        (GIVEN / "ccd_spin_orbital.spec", "ccd_so_expanded"),
        (SPECS / "ccsd_closed_shell.spec", "ccsd_cs_factorised"),
        (SPECS / "ccsd_closed_shell.spec", "ccsd_cs_expanded"),
        (GIVEN / "ccsd_closed_shell.spec", "ccsd_cs_expanded"),
        (SPECS / "ccsd_spin_orbital.spec", "ccsd_so_factorised"),
        (SPECS / "ccsd_spin_orbital.spec", "ccsd_so_expanded"),
        (SPECS / "t_closed_shell.spec", "t_cs_energy"),
        (SPECS / "t_spin_orbital.spec", "t_so_energy"),
        (SPECS / "df_ladder.spec", "df_ladder_cs"),
        (SPECS / "drpa.spec", "drpa_pi_df"),
    ],
)
def test_a_spec_and_the_term_list_of_its_method_agree(spec: Path, listed: str) -> None:
    ours, theirs = read(spec), read(LISTS / f"{listed}.json")
    ours.verify()
    theirs.verify()
    arrays = inputs(ours, theirs)
    if "g" in {t.name for t in ours.inputs}:
        arrays["v_ovov"] = arrays["g"]
    got, wanted = evaluate(ours, arrays), evaluate(theirs, arrays)
    assert set(wanted) <= set(got)
    for name, value in wanted.items():
        scale = max(1.0, float(np.abs(value).max()))
        assert np.abs(got[name] - value).max() < 1e-12 * scale, name


def test_updated_amplitudes_are_residuals_over_denominators() -> None:
    system = read(SPECS / "ccsd_closed_shell.spec")
    arrays = inputs(system)
    out = evaluate(system, arrays)
    gap = arrays["eo"][:, None] - arrays["ev"]
    both = gap[:, None, :, None] + gap[None, :, None, :]
    np.testing.assert_allclose(out["t1_new"], arrays["t1"] + out["r1"] / gap, rtol=1e-13)
    np.testing.assert_allclose(out["t2_new"], arrays["t2"] + out["r2"] / both, rtol=1e-13)


def test_laplace_quadrature_agrees_with_its_list_for_absorbed_weights() -> None:
    ours, theirs = read(SPECS / "sosmp2_laplace_df.spec"), read(LISTS / "sosmp2_laplace_df.json")
    arrays = inputs(ours, theirs)
    arrays["c"] = np.abs(arrays["c"])
    root = arrays["c"][:, None] ** 0.25
    arrays["lo"] = root * np.exp(arrays["t"][:, None] * arrays["eo"])
    arrays["lv"] = root * np.exp(-arrays["t"][:, None] * arrays["ev"])
    got, wanted = evaluate(ours, arrays)["e_os"], evaluate(theirs, arrays)["e_os"]
    np.testing.assert_allclose(got, wanted, rtol=1e-12)


def fetch(system: System, whole: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Inputs of a list whose blocks are cut from whole arrays of occupied, then virtual."""
    o = EXTENTS["o"]
    ranges = {"o": slice(0, o), "v": slice(o, None)}
    found = {}
    for tensor in system.inputs:
        array = whole[tensor.family or tensor.name]
        cut = tuple(ranges[s.name] for s in tensor.spaces)
        found[tensor.name] = array[cut] if tensor.family else array
    return found


def whole_arrays(closed_shell: bool) -> dict[str, np.ndarray]:
    """Fock matrix, integrals and amplitudes t[a,..,i,..] with the symmetry of the lists."""
    rng = np.random.default_rng(3)
    o, v = EXTENTS["o"], EXTENTS["v"]
    f = rng.standard_normal((o + v, o + v))
    g = rng.standard_normal((o + v,) * 4)
    t2 = rng.standard_normal((v, v, o, o))
    if closed_shell:
        f = f + f.T
        for axes in ((1, 0, 2, 3), (0, 1, 3, 2), (2, 3, 0, 1)):
            g = g + g.transpose(axes)
        g = g.transpose(0, 2, 1, 3)
        t2 = t2 + t2.transpose(1, 0, 3, 2)
    else:
        for axes in ((1, 0, 2, 3), (0, 1, 3, 2)):
            g = g - g.transpose(axes)
            t2 = t2 - t2.transpose(axes)
    return {"f": f, "v": g, "t1": rng.standard_normal((v, o)), "t2": t2}


@pytest.mark.parametrize("name", ["ccd_so", "ccsd_so", "rccd_sa", "rccsd_sa"])
def test_permutations_in_a_list_are_the_terms_written_out(name: str) -> None:
    plain, short = read(EQS / f"{name}.json"), read(EQS / f"{name}.sym.json")
    whole = whole_arrays(closed_shell=name.startswith("r"))
    extents = {s: EXTENTS[s] for s in "ov"}
    first = evaluate_system(plain, fetch(plain, whole), extents)
    second = evaluate_system(short, fetch(short, whole), extents)
    assert set(first) == set(second)
    for key, value in first.items():
        assert np.abs(value - second[key]).max() < 1e-12 * max(1.0, np.abs(value).max())


def test_two_derivations_of_spin_orbital_ccsd_agree() -> None:
    ours, theirs = read(SPECS / "ccsd_spin_orbital.spec"), read(EQS / "ccsd_so.json")
    whole = whole_arrays(closed_shell=False)
    whole["v"] = whole["v"] + whole["v"].transpose(2, 3, 0, 1)
    whole["f"] = whole["f"] + whole["f"].T
    extents = {s: EXTENTS[s] for s in "ov"}
    wanted = evaluate_system(theirs, fetch(theirs, whole), extents)
    o = EXTENTS["o"]
    cut = {"o": slice(0, o), "v": slice(o, None)}
    arrays = {
        f"{name}_{''.join(block)}": whole[name][tuple(cut[s] for s in block)]
        for name, rank in (("f", 2), ("v", 4))
        for block in product("ov", repeat=rank)
    }
    arrays |= {"t1": whole["t1"].T, "t2": whole["t2"].transpose(2, 3, 0, 1)}
    got = evaluate_system(ours, {t.name: arrays[t.name] for t in ours.inputs}, extents)
    np.testing.assert_allclose(got["e"], wanted["e"], rtol=1e-12)
    np.testing.assert_allclose(got["r1"], wanted["r1"].T, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(got["r2"], wanted["r2"].transpose(2, 3, 0, 1), rtol=1e-9, atol=1e-9)


def test_figure_1_is_the_sum_of_the_paper() -> None:
    system = read(SPECS / "allam_figure1.spec")
    rng = np.random.default_rng(5)
    shapes = {"A": (2, 3), "B": (3, 4, 2), "C": (4, 2)}
    arrays = {name: rng.standard_normal(shape) for name, shape in shapes.items()}
    out = evaluate_system(system, arrays, {"Ni": 2, "Nj": 3, "Nk": 4, "Nl": 2})
    np.testing.assert_allclose(out["W"], np.einsum("ij,jkl,kl->k", *arrays.values()), rtol=1e-12)
    assert [s.extent for s in system.spaces] == [10, 10, 12, 10]
    assert [t.role.name for t in system.inputs] == ["GENERATED"] * 3


def test_open_shell_energy_and_singles_residual_agree_with_pyscf() -> None:
    pyscf = pytest.importorskip("pyscf", reason="pyscf is not installed")
    from pyscf import cc, gto, scf

    mol = gto.M(
        atom="O 0 0 0; H 0 0.8 0.6; H 0 -0.7 0.6", basis="sto-3g", charge=1, spin=1, verbose=0
    )
    mean_field = scf.UHF(mol).run()
    assert mean_field.converged, pyscf.__version__
    ccsd = cc.UCCSD(mean_field)
    eris = ccsd.ao2mo()
    rng = np.random.default_rng(2)
    # Fock matrices of orbitals that are not canonical.
    for fock in (eris.focka, eris.fockb):
        change = 0.1 * rng.standard_normal(fock.shape)
        fock += change + change.T
    na, nb = ccsd.nocc
    va, vb = (n - k for n, k in zip(ccsd.nmo, ccsd.nocc, strict=True))

    def anti(x: np.ndarray) -> np.ndarray:
        x = x - x.transpose(1, 0, 2, 3)
        return x - x.transpose(0, 1, 3, 2)

    t1 = (0.3 * rng.standard_normal((na, va)), 0.3 * rng.standard_normal((nb, vb)))
    t2 = (
        0.2 * anti(rng.standard_normal((na, na, va, va))),
        0.2 * rng.standard_normal((na, nb, va, vb)),
        0.2 * anti(rng.standard_normal((nb, nb, vb, vb))),
    )
    arrays = {"t1a": t1[0], "t1b": t1[1], "t2aa": t2[0], "t2ab": t2[1], "t2bb": t2[2]}
    coefficients = {"o": mean_field.mo_coeff[0][:, :na], "v": mean_field.mo_coeff[0][:, na:]}
    coefficients |= {"O": mean_field.mo_coeff[1][:, :nb], "V": mean_field.mo_coeff[1][:, nb:]}
    ao = mol.intor("int2e")
    system = read(SPECS / "uccsd_energy_t1.spec")
    for tensor in system.inputs:
        block = tensor.name.partition("_")[2]
        if tensor.name.startswith("v_"):
            c = [coefficients[x] for x in block]
            arrays[tensor.name] = np.einsum("pqrs,pi,qj,rk,sl->ijkl", ao, *c, optimize=True)
        elif tensor.name.startswith("f_"):
            n, whole = (nb, eris.fockb) if block.isupper() else (na, eris.focka)
            cut = {"o": slice(0, n), "v": slice(n, None)}
            arrays[tensor.name] = np.asarray(whole)[cut[block[0].lower()], cut[block[1].lower()]]
    extents = {"o": na, "v": va, "O": nb, "V": vb}
    out = evaluate_system(system, arrays, extents)
    assert abs(float(out["e"]) - ccsd.energy(t1, t2, eris)) < 1e-11
    new = ccsd.update_amps(t1, t2, eris)[0]
    for spin, n in ((0, na), (1, nb)):
        energies = eris.mo_energy[spin]
        gap = energies[:n, None] - energies[None, n:]
        residual = (new[spin] - t1[spin]) * gap
        got = out["r1a" if spin == 0 else "r1b"]
        assert np.abs(got - residual).max() < 1e-10 * max(1.0, np.abs(residual).max())

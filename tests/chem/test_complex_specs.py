"""The shipped equations for complex orbitals, against integrals over all orbitals and PySCF."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from chem.test_complex_orbitals import CCSD

import tcgen
from tcgen.frontend import read_spec
from tcgen.interp import evaluate_system
from tcgen.ir.system import System

O, V = 3, 4
EXTENTS = {"o": O, "v": V}
PARTS = {"o": slice(0, O), "v": slice(O, O + V)}
solve = partial(tcgen.chem.solve, target="numpy", optimize=False, show=False, dtype="complex128")


def shipped(method: str) -> System:
    return tcgen.read_spec_file(tcgen.spec_path(f"{method}_complex_spin_orbital"))


def draw(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.random(shape) + 1j * rng.random(shape) - (0.5 + 0.5j)


def antisymmetric(x: np.ndarray) -> np.ndarray:
    x = x - x.swapaxes(0, 1)
    return x - x.swapaxes(2, 3)


@pytest.fixture(scope="module")
def arrays() -> dict[str, np.ndarray]:
    """f, g = <pq||rs>, amplitudes and multipliers, and all blocks of f and g."""
    rng = np.random.default_rng(8)
    n = O + V
    f, g = draw(rng, n, n), antisymmetric(draw(rng, n, n, n, n))
    f, g = f + f.conj().T, g + g.conj().transpose(2, 3, 0, 1)
    made = {"f": f, "g": g}
    for name in ("t", "l"):
        made[f"{name}1"] = draw(rng, O, V)
        made[f"{name}2"] = antisymmetric(draw(rng, O, O, V, V))
    for p in "ov":
        for q in "ov":
            made[f"f_{p}{q}"] = f[PARTS[p], PARTS[q]]
            for r in "ov":
                for s in "ov":
                    made[f"v_{p}{q}{r}{s}"] = g[PARTS[p], PARTS[q], PARTS[r], PARTS[s]]
    return made


def values(system: System, arrays: dict[str, np.ndarray], **others: Any) -> dict[str, Any]:
    given = arrays | others
    inputs = {t.name: given[t.name] for t in system.inputs}
    extents = EXTENTS | {s.name: 2 for s in system.spaces if s.name == "roots"}
    return evaluate_system(system, inputs, extents)


def same(found: dict[str, Any], wanted: dict[str, Any]) -> None:
    for name, value in found.items():
        np.testing.assert_allclose(value, wanted[name], rtol=0, atol=1e-11, err_msg=name)


def scaled(arrays: dict[str, np.ndarray], factor: float) -> dict[str, Any]:
    """Residuals and energy of CCSD with integrals over all orbitals, at scaled amplitudes."""
    more = {n: factor * arrays[n] for n in ("t1", "t2")}
    return values(read_spec(CCSD), arrays, **more)


def test_ccsd(arrays: dict[str, np.ndarray]) -> None:
    same(values(shipped("ccsd"), arrays), scaled(arrays, 1))


def test_doubles(arrays: dict[str, np.ndarray]) -> None:
    singles = np.zeros((O, V))
    same(
        values(shipped("ccd"), arrays),
        values(read_spec(CCSD), arrays, t1=singles),
    )


def linear(arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """The part that is at most linear in amplitudes: residuals have the degree 4."""
    at = {x: scaled(arrays, x) for x in (0, 1, -1, 2, -2)}
    odd = {x: {n: (at[x][n] - at[-x][n]) / 2 for n in at[0]} for x in (1, 2)}
    return {n: at[0][n] + (8 * odd[1][n] - odd[2][n]) / 6 for n in at[0]}


def test_linearised_methods(arrays: dict[str, np.ndarray]) -> None:
    same(values(shipped("lccsd"), arrays), linear(arrays))
    doubles = arrays | {"t1": np.zeros((O, V))}
    same(values(shipped("cepa0"), doubles), linear(doubles))


def test_lambda_is_the_derivative_of_the_lagrangian(arrays: dict[str, np.ndarray]) -> None:
    text = CCSD + "\ninput l1[o,v], l2[o,o,v,v] antisymmetric (0,1) (2,3)\noutput L\n"
    text += "L = e + l1[i,a]*r1[i,a] + 1/4*l2[i,j,a,b]*r2[i,j,a,b]\n"
    lagrangian = read_spec(text)
    same({"L": values(shipped("ccsd_lagrangian"), arrays)["L"]}, values(lagrangian, arrays))
    made = values(shipped("ccsd_lambda"), arrays)
    rng = np.random.default_rng(2)
    step = {"t1": draw(rng, O, V), "t2": antisymmetric(draw(rng, O, O, V, V))}
    # The Lagrangian is a polynomial of degree 4 along a direction.
    at = {
        x: values(lagrangian, arrays, **{n: arrays[n] + x * step[n] for n in step})["L"]
        for x in (1, -1, 2, -2)
    }
    slope = (8 * (at[1] - at[-1]) - (at[2] - at[-2])) / 12
    found = np.sum(made["d_L_t1"] * step["t1"]) + np.sum(made["d_L_t2"] * step["t2"])
    assert found == pytest.approx(slope, abs=1e-10)


@pytest.mark.parametrize(("sector", "axes"), [("ip", ("o", "oov")), ("ee", ("ov", "oovv"))])
def test_eom(sector: str, axes: tuple[str, str], arrays: dict[str, np.ndarray]) -> None:
    text = tcgen.spec_path(f"eom_{sector}_ccsd_spin_orbital").read_text()
    text = text.replace("f[all,all] symmetric (0,1)", "f[all,all] hermitian (0)<->(1)")
    whole = read_spec(text.replace("symmetry (0,1)", "hermitian (0,1)"))
    rng = np.random.default_rng(3)
    r1, r2 = (draw(rng, *(EXTENTS[x] for x in names)) for names in axes)
    r2 = r2 - r2.swapaxes(0, 1)
    r2 = r2 - r2.swapaxes(2, 3) if sector == "ee" else r2
    found = values(shipped(f"eom_{sector}_ccsd"), arrays, r1=r1, r2=r2)
    wanted = values(whole, arrays, r1=np.array([r1, r1]), r2=np.array([r2, r2]))
    same(found, {name: array[0] for name, array in wanted.items()})


def test_electron_attachment_with_real_orbitals(arrays: dict[str, np.ndarray]) -> None:
    real = {n: a.real for n, a in arrays.items()}
    rng = np.random.default_rng(4)
    r2 = rng.random((O, V, V))
    vectors = {"r1": rng.random(V), "r2": r2 - r2.swapaxes(1, 2)}
    shipped_real = tcgen.read_spec_file(tcgen.spec_path("eom_ea_ccsd_spin_orbital"))
    same(values(shipped("eom_ea_ccsd"), real, **vectors), values(shipped_real, real, **vectors))


METHODS = ("ccsd", "ccd", "lccsd", "cepa0", "mp2", "t", "ccsd_lambda", "ccsd_lagrangian")
VECTORS = ("eom_ip_ccsd", "eom_ea_ccsd", "eom_ee_ccsd")


@pytest.mark.parametrize("method", [*METHODS, *VECTORS])
def test_phases_of_orbitals(method: str, arrays: dict[str, np.ndarray]) -> None:
    """Integrals, amplitudes and vectors with phases give outputs with phases, energies without."""
    system = shipped(method)
    rng = np.random.default_rng(6)
    angle = np.exp(2j * np.pi * rng.random(O + V))
    phases = {space: angle[PARTS[space]] for space in "ov"}

    def turned(name: str, array: np.ndarray) -> np.ndarray:
        spaces = [s.name for s in next(t for t in system.tensors if t.name == name).spaces]
        vector = name.startswith(("t", "r", "s"))
        for axis, space in enumerate(spaces):
            if name.startswith("e_"):
                continue
            bra = axis < len(spaces) / 2 if not vector else space == "v"
            own = phases[space].conj() if bra else phases[space]
            array = array * own.reshape([-1 if k == axis else 1 for k in range(len(spaces))])
        return array

    more = {"e_o": -1 - rng.random(O), "e_v": 1 + rng.random(V)}
    shapes = {t.name: [EXTENTS[s.name] for s in t.spaces] for t in system.inputs}
    for name in ("r1", "r2"):
        if name in shapes:
            more[name] = draw(rng, *shapes[name])
    plain = {t.name: (arrays | more)[t.name] for t in system.inputs}
    first = values(system, plain)
    second = values(system, {n: turned(n, a) for n, a in plain.items()})
    for name, value in first.items():
        wanted = turned(name, value) if np.ndim(value) else value
        np.testing.assert_allclose(second[name], wanted, rtol=0, atol=1e-11, err_msg=name)


@pytest.fixture(scope="module")
def turned_lih(blocks: Any) -> Any:
    """Lithium hydride with complex orbitals: those of GHF times phases."""
    from pyscf import scf

    field = scf.GHF(blocks.molecule("Li 0 0 0; H 0 0 1.5957", "sto-3g")).run(conv_tol=1e-12)
    other = field.copy()
    phases = np.exp(2j * np.pi * np.random.default_rng(4).random(field.mo_coeff.shape[1]))
    other.mo_coeff = field.mo_coeff * phases
    return other


@pytest.mark.slow
def test_energies_of_pyscf(turned_lih: Any) -> None:
    from pyscf import cc

    solver = cc.GCCSD(turned_lih)
    solver.conv_tol, solver.conv_tol_normt = 1e-11, 1e-9
    energy = solver.kernel()[0]
    mp2 = solver.init_amps(solver.ao2mo())[0]
    assert solve("mp2_complex_spin_orbital", turned_lih).e_corr == pytest.approx(mp2, abs=1e-9)
    result = solve("ccsd_complex_spin_orbital", turned_lih, tolerance=1e-9)
    assert result.e_corr == pytest.approx(energy, abs=1e-8)
    triples = solve("t_complex_spin_orbital", turned_lih, amplitudes=result)
    assert abs(solver.ccsd_t()) > 1e-6
    assert triples.energies["e_t"] == pytest.approx(np.real(solver.ccsd_t()), abs=1e-8)


@pytest.mark.parametrize("method", ["mp2", "ccsd", "t"])
def test_closed_shells(method: str) -> None:
    """The shipped equations are those of spin orbitals, integrated over spins."""
    integrated = tcgen.spin_integrated(shipped(method), "closed-shell")
    written = tcgen.read_spec_file(tcgen.spec_path(f"{method}_complex_closed_shell"))
    rng = np.random.default_rng(3)
    n = O + V
    factors = draw(rng, 6, n, n)
    factors = factors + factors.swapaxes(1, 2).conj()
    g = np.einsum("xpr,xqs->pqrs", factors, factors)
    t2 = draw(rng, O, O, V, V)
    arrays = {"t1": draw(rng, O, V), "t2": t2 + t2.transpose(1, 0, 3, 2)}
    arrays |= {"e_o": rng.random(O) - 3, "e_v": rng.random(V) + 1}
    for tensor in written.inputs:
        whole, blocks = {"v": g, "f": factors[0]}.get(tensor.name[0]), tensor.name[2:]
        if whole is not None:
            arrays[tensor.name] = whole[tuple(PARTS[p] for p in blocks)]
    same(values(written, arrays), values(integrated, arrays))

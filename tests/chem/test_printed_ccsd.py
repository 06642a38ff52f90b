"""CCSD energies of molecules from the equations that pdaggerq and wick&d printed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tcgen
from support.paths import DATA
from tcgen.compiler.target import default_target
from tcgen.frontend import read_printed
from tcgen.ir.system import System

Arrays = dict[str, np.ndarray]
PRINTED = {
    "strings": "pdaggerq/ccsd.txt",
    "lines": "pdaggerq/ccsd.jsonl",
    "fitted lines": "pdaggerq/ccsd_df.jsonl",
    "spin strings": "pdaggerq/ccsd_spin.txt",
    "spin lines": "pdaggerq/ccsd_spin.jsonl",
    "wicked": "wicked/ccsd.txt",
}
PLANNING = {"o": 8, "v": 14, "O": 7, "V": 15, "Q": 30}
TOLERANCE = 1e-8  # Hartree


class Orbitals:
    """Fock matrix and <pq||rs> over spin orbitals o, O, v, V of a case: upper case is beta."""

    def __init__(self, case: Any) -> None:
        from pyscf import ao2mo

        unrestricted = case.reference.to_uhf()
        mol, frozen = unrestricted.mol, case.frozen
        coefficients = [c[:, frozen:] for c in unrestricted.mo_coeff]
        occupied = [n - frozen for n in mol.nelec]
        n = coefficients[0].shape[1]
        self.places = {}
        for name, spin in (("o", 0), ("O", 1)):
            every = np.arange(n) + spin * n
            self.places[name] = every[: occupied[spin]]
            self.places["v" if name == "o" else "V"] = every[occupied[spin] :]
        atomic = mol.intor("int2e", aosym="s8")
        chemist = np.zeros((2 * n,) * 4)
        for x in (0, 1):
            for y in (0, 1):
                four = [coefficients[k] for k in (x, x, y, y)]
                block = ao2mo.incore.general(atomic, four, compact=False).reshape((n,) * 4)
                part = [slice(k * n, (k + 1) * n) for k in (x, x, y, y)]
                chemist[tuple(part)] = block
        self.chemist = chemist
        physicist = chemist.transpose(0, 2, 1, 3)
        self.v = physicist - physicist.transpose(0, 1, 3, 2)
        fock = unrestricted.get_fock()
        self.f = np.zeros((2 * n, 2 * n))
        for x in (0, 1):
            inside = slice(x * n, (x + 1) * n)
            self.f[inside, inside] = coefficients[x].T @ fock[x] @ coefficients[x]

    @cached_property
    def fitted(self) -> np.ndarray:
        """B with (pq|rs) = sum_Q B[Q,p,q] B[Q,r,s] to machine precision."""
        n = len(self.f)
        values, vectors = np.linalg.eigh(self.chemist.reshape(n * n, n * n))
        kept = values > 1e-13
        return (vectors[:, kept] * np.sqrt(values[kept])).T.reshape(-1, n, n)

    def axis(self, name: str, plain: bool) -> np.ndarray:
        if plain:
            return np.concatenate([self.places[name], self.places[name.upper()]])
        return self.places[name]

    def arrays(self, system: System, plain: bool) -> Arrays:
        """Integrals that a system reads; amplitudes are left out."""
        found = {}
        for tensor in system.inputs:
            stem = tensor.name.partition("_")[0]
            axes = [self.axis(s.name, plain) for s in tensor.spaces if s.name != "Q"]
            if stem == "B":
                every = np.arange(len(self.fitted))
                found[tensor.name] = self.fitted[np.ix_(every, *axes)]
            elif stem in ("f", "v", "eri"):
                whole = self.f if stem == "f" else self.v
                found[tensor.name] = whole[np.ix_(*axes)]
        return found

    def guess(self, system: System, plain: bool) -> tuple[Arrays, Arrays]:
        """Amplitudes of first order and their denominators, axes as the system has them."""
        start, denominators = {}, {}
        energies = self.f.diagonal()
        for tensor in system.inputs:
            if not tensor.name.startswith("t"):
                continue
            axes = [self.axis(s.name, plain) for s in tensor.spaces]
            signs = [1 if s.name in "oO" else -1 for s in tensor.spaces]
            one = np.ix_(*(sign * energies[x] for sign, x in zip(signs, axes, strict=True)))
            below = sum(one, np.array(0.0))
            whole = self.f if tensor.rank == 2 else self.v
            denominators[tensor.name] = below
            start[tensor.name] = whole[np.ix_(*axes)] / below
        return start, denominators


@pytest.fixture(scope="module")
def printed() -> Callable[..., Any]:
    """System and program of a recorded file, compiled once for all molecules."""
    made: dict[Any, Any] = {}

    def get(form: str, target: str) -> Any:
        if (form, target) not in made:
            path = DATA / PRINTED[form]
            system = read_printed(path.read_text(), str(path), real=True)
            extents = {s.name: PLANNING[s.name] for s in system.spaces}
            # what pdaggerq has factored already is kept so in the quick runs
            optimize = target == "cpu" or path.suffix == ".txt"
            program = tcgen.compile(system, extents=extents, target=target, optimize=optimize)
            made[form, target] = system, program
        return made[form, target]

    return get


def residual_of(amplitude: str) -> str:
    """r2_abab of t2_abab."""
    return "r" + amplitude[1:]


CLOSED = ["lih_sto3g", "h2o_sto3g", "h2o_631g", "h2o_ccpvdz", "h2o_ccpvdz_fc"]
CLOSED += ["n2_ccpvdz", "co_ccpvdz_fc", "nh4plus_ccpvdz"]
OPEN = ["ch3_rohf_631g", "o2_631g", "h2oplus_ccpvdz", "ch3_ccpvdz"]
QUICK = [
    ("strings", "numpy", "h2o_631g"),
    ("strings", "numpy", "ch3_rohf_631g"),
    ("lines", "numpy", "h2o_631g"),
    ("wicked", "numpy", "h2o_631g"),
]
MORE = [
    (form, "cpu", case)
    for form in PRINTED
    for case in (*CLOSED, *OPEN)
    if not (form == "fitted lines" and "ccpvdz" in case)  # B to machine precision is as long as v
]


@pytest.mark.parametrize(
    ("form", "target", "name"),
    [*QUICK, *(pytest.param(*run, marks=pytest.mark.slow) for run in MORE)],
)
def test_ccsd_energy(
    form: str,
    target: str,
    name: str,
    printed: Callable[..., Any],
    chemistry: Callable[[str], Any],
    examples: SimpleNamespace,
) -> None:
    case, plain = chemistry(name), not form.startswith("spin")
    if target == "cpu" and default_target() != "cpu":
        pytest.skip("no C compiler")
    system, program = printed(form, target)
    orbitals = Orbitals(case)
    bound = program.bind(**orbitals.arrays(system, plain))
    start, denominators = orbitals.guess(system, plain)

    def step(**amplitudes: np.ndarray) -> Arrays:
        out = bound(**amplitudes)
        new = {f"{t}_new": amplitudes[t] + out[residual_of(t)] / d for t, d in denominators.items()}
        return {"e": out["e"], **new}

    # pdaggerq's energy holds that of the reference determinant: it is left at zero amplitudes.
    zero = bound(**{t: np.zeros(d.shape) for t, d in denominators.items()})["e"]
    result = examples.diis.iterate(step, start)
    key = "E_GCCSD_corr" if "E_GCCSD_corr" in case.energies else "E_CCSD_corr"
    assert abs(result.energy - float(zero) - case.energies[key]) < TOLERANCE
    if form != "wicked" and not case.frozen:
        electronic = case.energies["E_HF"] - case.reference.energy_nuc()
        assert abs(float(zero) - electronic) < TOLERANCE

"""The first amplitudes of an iteration: those of first order, beside the interpreter and MP2."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import tcgen
from tcgen.chem.equations import at_zero
from tcgen.compiler.driver import read_system
from tcgen.interp import evaluate_system
from tcgen.ir.system import System
from tcgen.ir.tensor import Tensor
from tcgen.probes import random_arrays

Chemistry = Callable[[str], Any]
EXPONENTIALS = """
space o occupied
space v virtual
index i j : o
index a b : v
input f_ov[o,v], v_ovov[o,v,o,v], t1[o,v], t2[o,o,v,v] volatile
output r1, r2, e
w[i,a] = f_ov[i,a]*exp(t1[i,a])
u[i,a] = t1[i,a] + w[j,b]*t2[i,j,a,b]
e = w[i,a]*u[i,a]
r1[i,a] = w[i,a] + u[i,a]
r2[i,j,a,b] = v_ovov[i,a,j,b]*u[i,a]*u[j,b]
"""


@cache
def systems() -> dict[str, System]:
    shipped = {name: read_system(path) for name, path in tcgen.resources.shipped_specs().items()}
    return shipped | {"exponentials": tcgen.read_spec(EXPONENTIALS)}


def amplitudes(system: System) -> set[str]:
    return {t.name for t in system.inputs if re.fullmatch("[tlrxc][1-4]", t.name)}


@pytest.mark.parametrize("name", sorted(systems()))
def test_equations_at_zero_amplitudes(name: str) -> None:
    system = systems()[name]
    extents = {s.name: s.extent or n for n, s in enumerate(system.spaces, 2) if not s.parts}
    arrays = random_arrays(system.inputs, extents, seed=3)
    zero = amplitudes(system)
    outputs = {t.name for t in system.outputs}
    constant = at_zero(system, zero, outputs)
    assert not zero & {t.name for t in constant.inputs}
    whole = arrays | {name: np.zeros_like(arrays[name]) for name in zero}
    expected = evaluate_system(system, whole, extents)
    found = evaluate_system(constant, {t.name: arrays[t.name] for t in constant.inputs}, extents)
    assert {n for n, array in expected.items() if np.any(array)} <= set(found)
    for output, array in found.items():
        np.testing.assert_allclose(array, expected[output], atol=1e-12)


def test_outputs_that_are_not_asked_for_need_no_inputs() -> None:
    system = systems()["ccsd_closed_shell"]
    constant = at_zero(system, {"t1", "t2"}, {"r1"})
    read: list[Tensor] = [*constant.inputs, *constant.outputs]
    assert [tensor.name for tensor in read] == ["f_ov", "r1"]


@pytest.mark.parametrize(
    ("spec", "kind"),
    [
        ("ccsd_closed_shell", "RHF"),
        ("ccsd_spin_orbital", "UHF"),
        ("ccsd_spin_orbital", "ROHF"),
        ("cc2_spin_orbital", "RHF"),
        ("lccsd_spin_orbital", "UHF"),
    ],
)
@pytest.mark.parametrize("shift", [0.0, 0.4])
def test_the_first_energy_is_that_of_second_order(
    spec: str, kind: str, shift: float, blocks: Any
) -> None:
    from pyscf import cc

    atoms, spin = ("Be 0 0 0; H 0 0 1.3426", 1) if "O" in kind or kind == "UHF" else ("He", 0)
    reference = blocks.mean_field(blocks.molecule(atoms, "6-31g", spin=spin), kind)
    lines: list[str] = []
    tcgen.chem.solve(
        spec, reference, target="numpy", optimize=False, level_shift=shift, show=lines.append
    )
    eris = (solver := cc.GCCSD(reference.to_ghf())).ao2mo()
    o = solver.nocc
    energies = eris.mo_energy
    gaps = (energies[:o, None] - energies[o:]) - shift
    t1 = eris.fock[:o, o:] / gaps
    t2 = np.asarray(eris.oovv) / (gaps[:, None, :, None] + gaps[None, :, None, :])
    expected = solver.energy(t1, t2, eris)
    assert abs(float(lines[2].split()[1]) - expected) < 1e-9


def test_linear_equations_of_canonical_orbitals_take_one_evaluation(chemistry: Chemistry) -> None:
    pytest.importorskip("pyscf")
    text = """
    space o occupied
    space v virtual
    index i j k : o
    index a b c : v
    input f_oo[o,o], f_vv[v,v], v_ovov[o,v,o,v], t2[o,o,v,v] symmetry (0,2)<->(1,3)
    output e, r2
    e = (2*v_ovov[i,a,j,b] - v_ovov[i,b,j,a])*t2[i,j,a,b]
    r2[i,j,a,b] = v_ovov[i,a,j,b] + S(ia,jb) (f_vv[a,c]*t2[i,j,c,b] - f_oo[k,i]*t2[k,j,a,b])
    """
    case = chemistry("h2o_sto3g")
    found = tcgen.chem.solve(text, case.reference, target="numpy", show=False)
    assert found.iterations == 1
    assert abs(found.e_corr - tcgen.chem.solve("mp2_closed_shell", case.reference).e_corr) < 1e-8

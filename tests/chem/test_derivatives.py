"""Lambda amplitudes and an EOM root from the derivatives of the CCSD equations, against PySCF."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tcgen
from tcgen.frontend import read_spec, read_spec_file

Arrays = dict[str, np.ndarray]
Pick = Callable[[Any, Arrays], Arrays]
SPEC = tcgen.spec_path("ccsd_spin_orbital")
LAGRANGIAN = (
    'include "ccsd_spin_orbital.spec"\n'
    "input l1[o,v], l2[o,o,v,v] antisymmetric (0,1) (2,3)\noutput L\n"
    "L = e + l1[i,a]*r1[i,a] + 1/4*l2[i,j,a,b]*r2[i,j,a,b]\n"
)


def extents(case: Any) -> dict[str, int]:
    return {"o": case.spin["e_o"].size, "v": case.spin["e_v"].size}


@pytest.mark.parametrize("name", ["lih_sto3g", "h2o_sto3g"])
def test_lambda_amplitudes(
    name: str, chemistry: Callable[[str], Any], pick: Pick, examples: SimpleNamespace
) -> None:
    case = chemistry(name)
    solver = case.spin_solver
    solver.solve_lambda()
    system = tcgen.derivative(
        read_spec(LAGRANGIAN, "lambda.spec", folder=SPEC.parent), ("t1", "t2"), of="L"
    )
    program = tcgen.compile(system, extents=extents(case), target="numpy")
    amplitudes = {"t1": np.asarray(solver.t1), "t2": np.asarray(solver.t2)}
    constants = {**pick(program, case.spin), **amplitudes}
    d1, d2 = examples.diis.denominators(case.spin["e_o"], case.spin["e_v"])

    def step(l1: np.ndarray, l2: np.ndarray) -> Arrays:
        out = program(**constants, l1=l1, l2=l2)
        # the derivative holds 1/4 of each amplitude's equation in t2: the four equal elements
        new = {"l1_new": l1 + out["d_L_t1"] / d1, "l2_new": l2 + 4 * out["d_L_t2"] / d2}
        return {"e": np.zeros(()), **new}

    start = {"l1": amplitudes["t1"], "l2": amplitudes["t2"]}
    found = examples.diis.iterate(step, start, tolerance=1e-9).amplitudes
    np.testing.assert_allclose(found["l1"], solver.l1, rtol=0, atol=1e-6)
    np.testing.assert_allclose(found["l2"], solver.l2, rtol=0, atol=1e-6)
    out = program(**constants, l1=np.asarray(solver.l1), l2=np.asarray(solver.l2))
    assert max(np.abs(x).max() for x in out.values()) < 1e-6


def test_eom_root(chemistry: Callable[[str], Any], pick: Pick) -> None:
    """The lowest EE-EOM-CCSD roots of LiH/STO-3G from the whole matrix of the sigma equations."""
    from pyscf.cc import eom_gccsd

    case = chemistry("lih_sto3g")
    solver = case.spin_solver
    sigma = tcgen.jvp(
        read_spec_file(SPEC),
        {"t1": "x1", "t2": "x2"},
        of=("r1", "r2"),
        names={"r1": "s1", "r2": "s2"},
    )
    program = tcgen.compile(sigma, extents=extents(case), target="numpy")
    arrays = pick(program, {**case.spin, "t1": np.asarray(solver.t1), "t2": np.asarray(solver.t2)})
    o, v = extents(case)["o"], extents(case)["v"]
    singles = list(itertools.product(range(o), range(v)))
    pairs = [list(itertools.combinations(range(n), 2)) for n in (o, v)]
    doubles = [(*ij, *ab) for ij in pairs[0] for ab in pairs[1]]
    columns = []
    for n in range(len(singles) + len(doubles)):
        x1, x2 = np.zeros((o, v)), np.zeros((o, o, v, v))
        if n < len(singles):
            x1[singles[n]] = 1.0
        else:
            i, j, a, b = doubles[n - len(singles)]
            x2[i, j, a, b] = x2[j, i, b, a] = 1.0
            x2[j, i, a, b] = x2[i, j, b, a] = -1.0
        out = program(**arrays, x1=x1, x2=x2)
        columns.append([*out["s1"].ravel(), *(out["s2"][d] for d in doubles)])
    roots = np.sort(np.linalg.eigvals(np.array(columns).T).real)
    eom = eom_gccsd.EOMEE(solver)
    eom.conv_tol = 1e-10
    energies, _ = eom.kernel(nroots=4)
    for energy in np.atleast_1d(energies):
        assert np.abs(roots - energy).min() < 1e-6

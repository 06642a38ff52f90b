"""The programs of Kristensen et al. and of Morton et al. on lazy arrays: values and kernels."""

from __future__ import annotations

import sys
from functools import partial

import numpy as np
import pytest

import tcgen
from support.paths import ROOT
from tcgen.lazy_arrays import namespace

sys.path.insert(0, str(ROOT))

from benchmarks.array_programs import bohrium, delayrepay
from benchmarks.array_programs.counts import calls_of, kernels_counted
from benchmarks.array_programs.searches import SEARCHES, results, searched_by

SIZES: dict[str, dict[str, int]] = {
    "black_scholes": {"count": 50},
    "leibnitz_pi": {"count": 50},
    "monte_carlo_pi": {"count": 50},
    "rosenbrock": {"count": 50},
    "n_body": {"count": 7},
    "n_body_nice": {"planets": 3, "asteroids": 7},
    "lattice_boltzmann": {"side": 5},
}


# Kernels of all evaluations: one for each equation, and those that any search finds. An update
# evaluates what reads the array, and its own result, where the program says so.
KERNELS = {
    "black_scholes": (11, 2),
    "game_of_life": (2, 1),
    "heat_equation": (2, 1),
    "leibnitz_pi": (3, 2),
    "gauss_elimination": (8, 4),
    "lu_factorization": (8, 8),
    "monte_carlo_pi": (2, 1),
    "stencil_27_points": (3, 1),
    "shallow_water": (9, 9),
    "rosenbrock": (1, 1),
    "over_relaxation": (15, 7),
    "n_body": (16, 2),
    "n_body_nice": (30, 4),
    "lattice_boltzmann": (62, 19),
    "water_ice": (10, 5),
}


@pytest.mark.few(15)
@pytest.mark.parametrize("algorithm", SEARCHES)
@pytest.mark.parametrize("name", bohrium.PROGRAMS)
def test_values_and_kernels(name: str, algorithm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TCGEN_LAZY_MIN_ELEMENTS", "0")
    monkeypatch.setenv("TCGEN_EINSUM_TARGET", "numpy")
    program, size = bohrium.PROGRAMS[name], SIZES.get(name, {"side": 9})
    wanted = results(program, size, lambda a: a)
    with searched_by(algorithm), kernels_counted() as counts:
        found = results(program, size, partial(tcgen.lazy, copy=True))
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    assert sum(counts) == KERNELS[name][algorithm != "singleton"]


# Calls of NumPy, and kernels.
FUSED = {
    "arc_distance": (18, 1),
    "create_grid": (2, 0),
    "cronbach": (13, 5),
    "distance": (8, 3),
    "evolve": (20, 9),
    "grayscott": (76, 7),
    "harris": (12, 1),
    "hasting": (3, 0),
    "l1norm": (3, 1),
    "l2norm": (4, 1),
    "laplacian": (8, 2),
    "log_likelihood": (8, 2),  # the namespace makes a lazy array of sqrt(2 pi)
    "lstsqr": (10, 5),
    "nn": (68, 29),
    "pairwise": (4, 1),
    "pythagorean": (5, 1),
    "repeating": (4, 1),
    "reverse_cumsum": (3, 1),
    "rosen": (8, 1),
    "specialconvolve": (6, 1),
    "vibr_energy": (5, 1),
}


@pytest.mark.parametrize("name", delayrepay.PROGRAMS)
def test_another_import_is_enough(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TCGEN_LAZY_MIN_ELEMENTS", "0")
    monkeypatch.setenv("TCGEN_EINSUM_TARGET", "numpy")
    program = delayrepay.PROGRAMS[name]
    wanted, calls = program.run(*program.arguments("S")), calls_of(program)
    monkeypatch.setattr(delayrepay, "np", namespace)
    with kernels_counted() as counts:
        found = np.asarray(program.run(*map(namespace.array, program.arguments("S"))))
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-13)
    assert (calls, sum(counts)) == FUSED[name]

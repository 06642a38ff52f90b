"""CCSD iterations, (T) and MP2 of dense arrays and over blocks, by CPU time of one thread, in turn.

    python benchmarks/blocks.py [CASE ...] [--json FILE]

Numbers of orbitals and irreps are those of molecules; elements are random numbers. Each row is the
least CPU time of several calls of both programs, which take turns. A case's bar is the largest
share of the dense time that it should take. Crystals (lih, diamond) are compared with an iteration
of PySCF's KRCCSD in place of dense arrays. Energies (triples, mp2) are those of benzene with its
integrals, and PySCF computes them too, with the symmetry of the molecule; the bar is the largest
share of its time.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import tcgen
from tcgen.testing import random_arrays


@dataclass(frozen=True)
class Case:
    """Orbitals of each irrep, and the bar of the ratio of both times."""

    title: str
    group: tuple[int, ...]
    o: tuple[int, ...]
    v: tuple[int, ...]
    bar: float


D2H = (2, 2, 2)
CASES = {
    "benzene": Case(
        "C6H6 cc-pVDZ D2h", D2H, (4, 2, 1, 1, 0, 1, 3, 3), (18, 15, 8, 5, 6, 8, 14, 19), 1 / 22
    ),
    "water": Case("H2O cc-pVTZ C2v", (2, 2), (2, 0, 1, 1), (20, 7, 10, 16), 1 / 12),
    "n2": Case("N2 cc-pVTZ D2h", D2H, (2, 0, 0, 0, 0, 1, 1, 1), (10, 3, 7, 7, 3, 11, 6, 6), 1 / 8),
    "c2h4": Case(
        "C2H4 cc-pVTZ D2h", D2H, (2, 0, 0, 1, 0, 1, 1, 1), (20, 7, 11, 16, 7, 21, 16, 10), 1 / 10
    ),
    "cs": Case("(10, 60) Cs", (2,), (7, 3), (38, 22), 1 / 2.8),
    "none": Case("(10, 60), no symmetry", (1,), (10,), (60,), 1.05),
}


@dataclass(frozen=True)
class Crystal:
    """Atoms and lattice vectors in Angstrom, and a mesh of k-points; o and v orbitals at each."""

    title: str
    atoms: str
    edge: float
    mesh: tuple[int, int, int]
    bar: float = 1 / 20


CRYSTALS = {
    "lih": Crystal("LiH gth-szv 2x2x2", "Li 0 0 0; H 2.0417 2.0417 2.0417", 4.0834, (2, 2, 2)),
    "diamond": Crystal("C2 gth-szv 2x2x2", "C 0 0 0; C 0.8917 0.8917 0.8917", 3.5668, (2, 2, 2)),
}

ENERGIES = {"triples": "t_closed_shell", "mp2": "mp2_closed_shell"}
EVERY = (*CASES, *ENERGIES, *CRYSTALS)


def random_blocks(program: Any, name: str, rng: np.random.Generator) -> Any:
    """A random input that is as small as amplitudes and integrals are."""
    array = program.empty(name)
    array.data[...] = 0.02 * rng.standard_normal(array.data.shape)
    if name in ("e_o", "e_v"):
        array.data[...] = (-1 if name == "e_o" else 1) * (1 + rng.random(array.data.shape))
    return array


def symmetric(name: str, array: np.ndarray) -> np.ndarray:
    """An input of closed-shell CCSD with its permutational symmetry."""
    pairs = {
        "f_oo": [(1, 0)],
        "f_vv": [(1, 0)],
        "v_oooo": [(1, 0, 2, 3), (0, 1, 3, 2), (2, 3, 0, 1)],
        "v_oovv": [(1, 0, 2, 3), (0, 1, 3, 2)],
        "v_ovoo": [(0, 1, 3, 2)],
        "v_ovov": [(2, 3, 0, 1)],
        "v_ovvv": [(0, 1, 3, 2)],
        "v_vvvv": [(1, 0, 2, 3), (0, 1, 3, 2), (2, 3, 0, 1)],
        "t2": [(1, 0, 3, 2)],
    }
    for axes in pairs.get(name, []):
        array = (array + array.transpose(axes)) / 2
    return array


def least(call: Callable[[], object], times: int) -> float:
    """The least CPU seconds of some calls."""
    found = []
    for _ in range(times):
        start = time.process_time()
        call()
        found.append(time.process_time() - start)
    return min(found)


def measure(case: Case, turns: int) -> dict[str, Any]:
    """The times of one case."""
    irreps = {s: np.repeat(np.arange(len(n)), n) for s, n in (("o", case.o), ("v", case.v))}
    grading = tcgen.Grading(case.group, irreps)
    extents = {"o": sum(case.o), "v": sum(case.v)}
    dense = tcgen.compile("ccsd_closed_shell", extents=extents)
    start = time.process_time()
    blocks = tcgen.blocked(dense, grading)
    tables = time.process_time() - start
    rng = np.random.default_rng(0)
    names = [t.name for t in dense.manifest.tensors if t.is_input]
    arrays = {n: symmetric(n, random_blocks(blocks, n, rng).dense()) for n in names}
    arrays["v_vvvv"] = tcgen.pack_pairs(arrays["v_vvvv"], (0, 1), (2, 3))
    volatile = {n: arrays.pop(n) for n in ("t1", "t2")}
    one = dense.bind(**arrays)
    other = blocks.bind(**arrays)
    blocked = {n: blocks.blocked(n, a) for n, a in volatile.items()}
    expected, found = one(**volatile), other(**blocked)
    error = max(
        np.abs(x - (found[n].dense() if x.ndim else found[n])).max() / np.abs(x).max()
        for n, x in expected.items()
    )
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(turns):
        times[0].append(least(lambda: one(**volatile), 2))
        times[1].append(least(lambda: other(**blocked), 7))
    seconds = [min(t) for t in times]
    return {
        "case": case.title,
        "dense_ms": 1e3 * seconds[0],
        "blocks_ms": 1e3 * seconds[1],
        "ratio": seconds[1] / seconds[0],
        "bar": case.bar,
        "error": float(error),
        "making_ms": 1e3 * tables,
        "table_bytes": blocks.table_bytes,
        "gflop": blocks.flops / 1e9,
    }


def measure_crystal(case: Crystal, turns: int) -> dict[str, Any]:
    """The times of an iteration over blocks and of PySCF's update_amps."""
    from pyscf.pbc import cc, gto, scf

    lattice = case.edge * (1 - np.eye(3)) / 2
    cell = gto.M(atom=case.atoms, a=lattice, basis="gth-szv", pseudo="gth-pade", verbose=0)
    solver = cc.KRCCSD(scf.KRHF(cell, cell.make_kpts(case.mesh)).density_fit().run())
    eris = solver.ao2mo()
    _, *amplitudes = solver.init_amps(eris)
    nocc, nkpts = solver.nocc, solver.nkpts
    counts = {"o": [nocc] * nkpts, "v": [solver.nmo - nocc] * nkpts}
    extents = {space: sum(own) for space, own in counts.items()}
    compiled = tcgen.compile("ccsd_complex_closed_shell", extents=extents, dtype="complex128")
    start = time.process_time()
    blocks = tcgen.blocked(compiled, tcgen.Grading.from_kmesh(case.mesh, **counts))
    making = time.process_time() - start
    system = tcgen.read_spec_file(tcgen.spec_path("ccsd_complex_closed_shell"))
    arrays = {}
    for name, array in random_arrays(system, extents, "complex128").items():
        allowed = blocks.empty(name)
        allowed.data[...] = 0.02
        arrays[name] = blocks.blocked(name, array * allowed.dense())
    volatile = {n: arrays.pop(n) for n in ("t1", "t2")}
    bound = blocks.bind(**arrays)
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(turns):
        times[0].append(least(lambda: solver.update_amps(*amplitudes, eris), 1))
        times[1].append(least(lambda: bound(**volatile), 7))
    seconds = [min(t) for t in times]
    return {
        "case": case.title,
        "pyscf_ms": 1e3 * seconds[0],
        "blocks_ms": 1e3 * seconds[1],
        "ratio": seconds[1] / seconds[0],
        "bar": case.bar,
        "making_ms": 1e3 * making,
        "table_bytes": blocks.table_bytes,
        "gflop": 4 * blocks.flops / 1e9,
    }


def measure_energy(name: str, turns: int) -> dict[str, Any]:
    """The times of the energy of benzene's (T) or MP2 by all three programs."""
    from ccsd_peers import RING
    from pyscf import cc, gto, mp, scf
    from pyscf.cc import ccsd_t

    molecule = gto.M(atom=RING, basis="cc-pvdz", symmetry=True, verbose=0)
    field = scf.RHF(molecule).run(conv_tol=1e-11)
    solver = cc.CCSD(field, frozen=6)
    eris = solver.ao2mo()
    _, t1, t2 = solver.init_amps(eris)
    count = len(t1)
    fock, energies = np.asarray(eris.fock), np.asarray(eris.mo_energy)
    arrays = {
        "f_ov": fock[:count, count:].copy(),
        "e_o": energies[:count].copy(),
        "e_v": energies[count:].copy(),
        "v_ovov": np.asarray(eris.ovov),
        "t1": t1,
        "t2": np.ascontiguousarray(t2),
    }
    if name == "triples":
        arrays |= {"v_ovoo": np.asarray(eris.ovoo), "v_ovvv": np.asarray(eris.get_ovvv())}
        by_pyscf = partial(ccsd_t.kernel, solver, eris, t1, t2, verbose=0)
    else:
        arrays = {"g": arrays["v_ovov"], "e_o": arrays["e_o"], "e_v": arrays["e_v"]}
        perturbed = mp.MP2(field, frozen=6)
        own = perturbed.ao2mo()
        by_pyscf = partial(mp.mp2.kernel, perturbed, eris=own, with_t2=False)
    irreps = np.asarray(field.get_orbsym()) % 10
    grading = tcgen.Grading.from_orbsym(
        "D2h", o=irreps[6 : 6 + count].tolist(), v=irreps[6 + count :].tolist()
    )
    extents = {"o": count, "v": len(energies) - count}
    dense = tcgen.compile(ENERGIES[name], extents=extents, objective="time")
    start = time.process_time()
    blocks = tcgen.blocked(dense, grading)
    making = time.process_time() - start
    blocked = {n: blocks.blocked(n, array) for n, array in arrays.items()}
    programs = (
        lambda: float(*dense(**arrays).values()),
        lambda: float(*blocks(**blocked).values()),
        lambda: float(np.ravel(by_pyscf())[0]),
    )
    found = [program() for program in programs]
    times: list[list[float]] = [[] for _ in programs]
    for _ in range(turns):
        for seconds, program in zip(times, programs, strict=True):
            seconds.append(least(program, 1))
    one, other, peer = (1e3 * min(t) for t in times)
    return {
        "case": f"C6H6 cc-pVDZ D2h {name}",
        "dense_ms": one,
        "blocks_ms": other,
        "pyscf_ms": peer,
        "of_dense": other / one,
        "ratio": other / peer,
        "bar": 0.25,
        "error": max(abs(e - found[0]) for e in found) / abs(found[0]),
        "making_ms": 1e3 * making,
        "table_bytes": blocks.table_bytes,
        "gflop": blocks.flops / 1e9,
    }


def main() -> None:
    """Print a line for each case."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(EVERY)}")
    parser.add_argument("--turns", type=int, default=3, help="turns of both programs")
    parser.add_argument("--json", type=Path, help="file for the figures")
    chosen = parser.parse_args()
    if unknown := [c for c in chosen.cases if c not in EVERY]:
        parser.error(f"{unknown[0]} is none of {', '.join(EVERY)}")
    rows = []
    for name in chosen.cases or CASES:
        if name in CRYSTALS:
            row = measure_crystal(CRYSTALS[name], chosen.turns)
        elif name in ENERGIES:
            row = measure_energy(name, chosen.turns)
        else:
            row = measure(CASES[name], chosen.turns)
        rows.append(row)
        ratio, bar = row["ratio"], row["bar"]
        shown = f"1/{1 / ratio:.1f}" if ratio < 0.9 else f"{ratio:.2f}"
        wanted = f"1/{1 / bar:.1f}" if bar < 0.9 else f"{bar:.2f}"
        other = "dense" if name in CASES else "pyscf"
        error = f", error {row['error']:.0e}" if "error" in row else ""
        if name in ENERGIES:
            error += f"; dense {row['dense_ms']:.1f} ms: 1/{1 / row['of_dense']:.1f}"
        print(
            f"{row['case']:24} {other} {row[f'{other}_ms']:8.2f} ms, blocks "
            f"{row['blocks_ms']:7.2f} ms: {shown} (bar {wanted}); {row['gflop']:.3f} Gflop, made "
            f"in {row['making_ms']:.0f} ms, tables {row['table_bytes'] / 1e6:.1f} MB{error}",
            flush=True,
        )
    if chosen.json:
        chosen.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""Whole jobs beside PySCF: from a converged mean field to the energy, each in its own process.

    python benchmarks/jobs.py water benzene --threads 1 --rounds 3 --json out.json
    python benchmarks/jobs.py benzene --symmetry --threads 1

A job is closed-shell CCSD with equal thresholds by ``tcgen.chem.solve``, with an empty cache
("cold") and with what the first job left there ("warm"), and by PySCF's ``cc.CCSD``. They take
turns. With ``--symmetry`` the mean field of all has the irreps of its point group, and jobs over
blocks are beside the others. A row shows medians: processor seconds from the mean field on, the C
compiler included, and the peak of the resident set of the process, the mean field included. Needs
PySCF.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from ccsd_peers import RING
from peers import add_options, machine, markdown, set_environment

WATER = "O 0 0 0.1173; H 0 0.7572 -0.4692; H 0 -0.7572 -0.4692"
AMMONIA = "N 0 0 0.1; H 0 0.94 -0.27; H 0.81 -0.47 -0.27; H -0.81 -0.47 -0.27"
JOBS = {  # atoms in Angstrom, basis, core orbitals left out
    "water": (WATER, "cc-pvtz", 0),
    "ammonia": (AMMONIA, "cc-pvtz", 0),
    "benzene": (RING, "cc-pvdz", 6),
    "benzene-small": (RING, "6-31g", 6),
}
PROGRAMS = ("cold", "warm", "pyscf")
BLOCKS = ("blocks cold", "blocks warm")
NORM = 1e-6  # convergence of the amplitudes


def job(name: str, program: str, *, symmetry: bool) -> dict[str, float]:
    """Run one job in this process."""
    from pyscf import cc, gto, lib, scf

    lib.num_threads(int(os.environ["OMP_NUM_THREADS"]))
    atom, basis, frozen = JOBS[name]
    mol = gto.M(atom=atom, basis=basis, symmetry=symmetry, verbose=0)
    mean_field = scf.RHF(mol).run(conv_tol=1e-11)
    before = os.times()
    if program == "pyscf":
        solver = cc.CCSD(mean_field, frozen=frozen or None)
        solver.conv_tol, solver.conv_tol_normt = 1e-8, NORM
        solver.kernel()
        energy, iterations = solver.e_corr, solver.cycles
    else:
        import tcgen.chem

        found = tcgen.chem.solve(
            "ccsd_closed_shell", mean_field, frozen=frozen, tolerance=NORM, show=False,
            symmetry=program in BLOCKS,
        )  # fmt: skip
        assert "note" not in found.symmetry, found.symmetry
        energy, iterations = found.e_corr, found.iterations
    after = os.times()
    cpu = sum(after[:4]) - sum(before[:4])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"cpu": cpu, "peak": peak, "energy": float(energy), "iterations": iterations}


def in_process(name: str, program: str, cache: str, *, symmetry: bool) -> dict[str, float]:
    """Run one job in a process of its own."""
    command = [sys.executable, __file__, name, "--run", program, *["--symmetry"] * symmetry]
    with tempfile.TemporaryDirectory() as empty:
        folder = empty if program.endswith("cold") else cache
        done = subprocess.run(
            command, env=os.environ | {"TCGEN_CACHE_DIR": folder}, capture_output=True, check=True
        )
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Print a table of medians."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("jobs", nargs="*", default=list(JOBS), help=", ".join(JOBS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--run", help=argparse.SUPPRESS)
    parser.add_argument("--symmetry", action="store_true", help="also over blocks of irreps")
    parser.add_argument("--json", type=Path)
    add_options(parser)
    options = parser.parse_args()
    set_environment(options)
    if options.run:
        print(json.dumps(job(options.jobs[0], options.run, symmetry=options.symmetry)))
        return
    results: dict[str, Any] = {"machine": machine(options)}
    rows = []
    programs = (*PROGRAMS, *(BLOCKS if options.symmetry else ()))
    run = partial(in_process, symmetry=options.symmetry)
    with tempfile.TemporaryDirectory() as cache:
        for name in options.jobs:
            for program in programs:
                if program.endswith("warm"):
                    run(name, program, cache)  # fills the cache
            rounds = [{p: run(name, p, cache) for p in programs} for _ in range(options.rounds)]
            results[name] = rounds
            energies = [one["energy"] for turn in rounds for one in turn.values()]
            assert max(energies) - min(energies) < 1e-6, energies
            for p in programs:
                cpu, peak = (median(turn[p][key] for turn in rounds) for key in ("cpu", "peak"))
                ratio, of_dense = (
                    median(turn[p]["cpu"] / turn[other]["cpu"] for turn in rounds)
                    for other in ("pyscf", "cold" if p.endswith("cold") else "warm")
                )
                cycles = f"{rounds[0][p]['iterations']:.0f}"
                rows.append([name, p, f"{cpu:.1f}", f"{ratio:.2f}", f"{of_dense:.2f}"])
                rows[-1] += [f"{peak / 1e9:.2f}", cycles]
    titles = ("job", "program", "CPU s", "of PySCF's", "of tcgen's", "peak GB", "iterations")
    print(markdown(titles, rows))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()

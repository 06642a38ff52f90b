"""Whole jobs beside PySCF: from a converged mean field to the energy, each in its own process.

    python benchmarks/jobs.py water benzene --threads 1 --rounds 3 --json out.json

A job is closed-shell CCSD with equal thresholds by ``tcgen.chem.solve``, with an empty cache
("cold") and with what the first job left there ("warm"), and by PySCF's ``cc.CCSD``. They take
turns. A row shows medians: processor seconds from the mean field on, the C compiler included, and
the peak of the resident set of the process, the mean field included. Needs PySCF.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
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
}
PROGRAMS = ("cold", "warm", "pyscf")
NORM = 1e-6  # convergence of the amplitudes


def job(name: str, program: str) -> dict[str, float]:
    """Run one job in this process."""
    from pyscf import cc, gto, lib, scf

    lib.num_threads(int(os.environ["OMP_NUM_THREADS"]))
    atom, basis, frozen = JOBS[name]
    mean_field = scf.RHF(gto.M(atom=atom, basis=basis, verbose=0)).run(conv_tol=1e-11)
    before = os.times()
    if program == "pyscf":
        solver = cc.CCSD(mean_field, frozen=frozen or None)
        solver.conv_tol, solver.conv_tol_normt = 1e-8, NORM
        solver.kernel()
        energy, iterations = solver.e_corr, solver.cycles
    else:
        import tcgen.chem

        found = tcgen.chem.solve(
            "ccsd_closed_shell", mean_field, frozen=frozen, tolerance=NORM, show=False
        )
        energy, iterations = found.e_corr, found.iterations
    after = os.times()
    cpu = sum(after[:4]) - sum(before[:4])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"cpu": cpu, "peak": peak, "energy": float(energy), "iterations": iterations}


def in_process(name: str, program: str, cache: str) -> dict[str, float]:
    """Run one job in a process of its own."""
    command = [sys.executable, __file__, name, "--run", program]
    with tempfile.TemporaryDirectory() as empty:
        folder = empty if program == "cold" else cache
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
    parser.add_argument("--json", type=Path)
    add_options(parser)
    options = parser.parse_args()
    set_environment(options)
    if options.run:
        print(json.dumps(job(options.jobs[0], options.run)))
        return
    results: dict[str, Any] = {"machine": machine(options)}
    rows = []
    with tempfile.TemporaryDirectory() as cache:
        for name in options.jobs:
            in_process(name, "warm", cache)  # fills the cache
            rounds = [
                {p: in_process(name, p, cache) for p in PROGRAMS} for _ in range(options.rounds)
            ]
            results[name] = rounds
            energies = [run["energy"] for turn in rounds for run in turn.values()]
            assert max(energies) - min(energies) < 1e-6, energies
            for p in PROGRAMS:
                cpu, peak = (median(turn[p][key] for turn in rounds) for key in ("cpu", "peak"))
                ratio = median(turn[p]["cpu"] / turn["pyscf"]["cpu"] for turn in rounds)
                cycles = f"{rounds[0][p]['iterations']:.0f}"
                rows.append([name, p, f"{cpu:.1f}", f"{ratio:.2f}", f"{peak / 1e9:.2f}", cycles])
    print(markdown(("job", "program", "CPU s", "of PySCF's", "peak GB", "iterations"), rows))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()

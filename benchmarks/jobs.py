"""Whole jobs beside PySCF: from a converged mean field to the energy, each in its own process.

    python benchmarks/jobs.py water benzene --threads 1 --rounds 3 --json out.json

A job is coupled cluster with equal thresholds by ``tcgen.chem.solve``, with an empty cache ("cold")
and with what the first job left there ("warm"), and by PySCF. They take turns. A row shows medians:
processor seconds from the mean field on, the C compiler included, and the peak of the resident set
of the process, the mean field included. Python compiles modules beforehand, as for installed
packages. Needs PySCF.
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
METHYL = "C 0 0 0; H 0 1.079 0; H 0.9344 -0.5395 0; H -0.9344 -0.5395 0"
JOBS = {  # atoms in Angstrom, basis, core orbitals left out, unpaired electrons, method
    "water": (WATER, "cc-pvtz", 0, 0, "CCSD"),
    "ammonia": (AMMONIA, "cc-pvtz", 0, 0, "CCSD"),
    "benzene": (RING, "cc-pvdz", 6, 0, "CCSD"),
    "methyl": (METHYL, "cc-pvtz", 0, 1, "UCCSD"),
    "water-spin-orbitals": (WATER, "cc-pvdz", 0, 0, "GCCSD"),
    "benzene-fitted": (RING, "cc-pvdz", 6, 0, "DF-CCSD"),
    "ammonia-triples": (AMMONIA, "cc-pvtz", 0, 0, "CCSD(T)"),
}
SPECS = {
    "CCSD": ["ccsd_closed_shell"],
    "UCCSD": ["uccsd"],
    "GCCSD": ["ccsd_spin_orbital"],
    "DF-CCSD": ["ccsd_df"],
    "CCSD(T)": ["ccsd_closed_shell", "t_closed_shell"],
}
PROGRAMS = ("cold", "warm", "pyscf")
NORM = 1e-6  # convergence of the amplitudes


def mean_field_of(name: str) -> Any:
    """The converged mean field of a job."""
    from pyscf import gto, scf

    atom, basis, _, spin, method = JOBS[name]
    molecule = gto.M(atom=atom, basis=basis, spin=spin, verbose=0)
    mean_field = (scf.UHF if spin else scf.RHF)(molecule)
    if method == "DF-CCSD":
        mean_field = mean_field.density_fit()
    mean_field.run(conv_tol=1e-11)
    return mean_field.to_ghf() if method == "GCCSD" else mean_field


def by_pyscf(mean_field: Any, frozen: int, method: str) -> tuple[float, int]:
    """Correlation energy in Hartree, and number of iterations."""
    from pyscf import cc

    make = cc.GCCSD if method == "GCCSD" else cc.CCSD
    solver = make(mean_field, frozen=frozen or None)
    solver.conv_tol, solver.conv_tol_normt = 1e-8, NORM
    solver.kernel()
    triples = solver.ccsd_t() if method == "CCSD(T)" else 0.0
    return solver.e_corr + triples, solver.cycles


def by_tcgen(mean_field: Any, frozen: int, method: str) -> tuple[float, int]:
    """The same by one equation after the other."""
    import tcgen.chem

    found, energy, iterations = None, 0.0, 0
    for spec in SPECS[method]:
        found = tcgen.chem.solve(
            spec, mean_field, frozen=frozen, tolerance=NORM, show=False, amplitudes=found
        )
        # Corrections have no residuals, and one energy each.
        own = sum(found.energies.values()) if found.e_corr is None else found.e_corr
        energy, iterations = energy + own, iterations + found.iterations
    return energy, iterations


def job(name: str, program: str) -> dict[str, float]:
    """Run one job in this process."""
    from pyscf import lib

    lib.num_threads(int(os.environ["OMP_NUM_THREADS"]))
    mean_field = mean_field_of(name)
    _, _, frozen, _, method = JOBS[name]
    before = os.times()
    run = by_pyscf if program == "pyscf" else by_tcgen
    energy, iterations = run(mean_field, frozen, method)
    after = os.times()
    cpu = sum(after[:4]) - sum(before[:4])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"cpu": cpu, "peak": peak, "energy": float(energy), "iterations": iterations}


def in_process(name: str, program: str, cache: str) -> dict[str, float]:
    """Run one job in a process of its own."""
    command = [sys.executable, __file__, name, "--run", program]
    with tempfile.TemporaryDirectory() as empty:
        modules = {"PYTHONPYCACHEPREFIX": f"{cache}/modules", "PYTHONDONTWRITEBYTECODE": ""}
        folder = {"TCGEN_CACHE_DIR": empty if program == "cold" else cache}
        done = subprocess.run(
            command, env=os.environ | modules | folder, capture_output=True, check=True
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
            for p in ("warm", "pyscf"):
                in_process(name, p, cache)  # fills the cache
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

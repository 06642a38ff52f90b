"""Whole jobs beside PySCF: from a converged mean field to the energy, each in its own process.

    python benchmarks/jobs.py water benzene --threads 1 --rounds 3 --json out.json
    python benchmarks/jobs.py benzene --symmetry --threads 1
    python benchmarks/jobs.py water --mixed --threads 1

A job is coupled cluster with equal thresholds by ``tcgen.chem.solve``, with an empty cache ("cold")
and with what the first job left there ("warm"), and by PySCF. They take turns. With ``--symmetry``
the mean field of all has the irreps of its point group, and jobs over blocks are beside the others;
with ``--mixed`` jobs in mixed precision are. A row shows medians: processor seconds from the mean
field on, the C compiler included, those of tcgen's iterations alone, and the peak of the resident
set of the process, the mean field included. Python compiles modules beforehand, as for installed
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
from functools import partial
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
    "benzene-small": (RING, "6-31g", 6, 0, "CCSD"),
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
BLOCKS = ("blocks cold", "blocks warm")
MIXED = ("mixed warm",)
NORM = 1e-6  # convergence of the amplitudes


def mean_field_of(name: str, *, symmetry: bool) -> Any:
    """The converged mean field of a job."""
    from pyscf import gto, scf

    atom, basis, _, spin, method = JOBS[name]
    molecule = gto.M(atom=atom, basis=basis, spin=spin, symmetry=symmetry, verbose=0)
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


def by_tcgen(
    mean_field: Any, frozen: int, method: str, *, symmetry: bool = False, mixed: bool = False
) -> tuple[float, int, float]:
    """The same by one equation after the other, and the processor seconds of iterations."""
    import tcgen.chem

    marks = [0.0, 0.0]

    def show(line: str) -> None:
        """Note the time at the head of the table and at each row."""
        now = sum(os.times()[:4])
        marks[:] = [now, now] if line.startswith("cycle") else [marks[0], now]

    found, energy, iterations, seconds = None, 0.0, 0, 0.0
    folder = tempfile.TemporaryDirectory()
    # As in the command, equations of a job have one transform of integrals.
    shared = Path(folder.name) / "integrals.h5" if len(SPECS[method]) > 1 else None
    for spec in SPECS[method]:
        found = tcgen.chem.solve(
            spec, mean_field, frozen=frozen, tolerance=NORM, show=show, amplitudes=found,
            symmetry=symmetry, integral_file=shared, precision="mixed" if mixed else None,
        )  # fmt: skip
        assert "note" not in found.symmetry, found.symmetry
        # Corrections have no residuals, and one energy each.
        own = sum(found.energies.values()) if found.e_corr is None else found.e_corr
        energy, iterations = energy + own, iterations + found.iterations
        seconds += (marks[1] - marks[0]) * bool(found.iterations)
    return energy, iterations, seconds


def job(name: str, program: str, *, symmetry: bool) -> dict[str, float]:
    """Run one job in this process."""
    from pyscf import lib

    lib.num_threads(int(os.environ["OMP_NUM_THREADS"]))
    mean_field = mean_field_of(name, symmetry=symmetry)
    _, _, frozen, _, method = JOBS[name]
    before, iterating = os.times(), 0.0
    if program == "pyscf":
        energy, iterations = by_pyscf(mean_field, frozen, method)
    else:
        energy, iterations, iterating = by_tcgen(
            mean_field, frozen, method, symmetry=program in BLOCKS, mixed=program in MIXED
        )
    after = os.times()
    cpu = sum(after[:4]) - sum(before[:4])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "cpu": cpu, "iterating": iterating, "peak": peak, "energy": float(energy),
        "iterations": iterations,
    }  # fmt: skip


def in_cache(command: list[str], cache: str, plans: str | None = None) -> bytes:
    """What a process prints that keeps modules, and plans if not elsewhere, in a folder."""
    modules = {"PYTHONPYCACHEPREFIX": f"{cache}/modules", "PYTHONDONTWRITEBYTECODE": ""}
    folder = {"TCGEN_CACHE_DIR": plans or cache}
    environment = os.environ | modules | folder
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True).stdout


def in_process(name: str, program: str, cache: str, *, symmetry: bool) -> dict[str, float]:
    """Run one job in a process of its own."""
    command = [sys.executable, __file__, name, "--run", program, *["--symmetry"] * symmetry]
    with tempfile.TemporaryDirectory() as empty:
        printed = in_cache(command, cache, empty if program.endswith("cold") else None)
    found: dict[str, float] = json.loads(printed.splitlines()[-1])
    return found


def main() -> None:
    """Print a table of medians."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("jobs", nargs="*", default=list(JOBS), help=", ".join(JOBS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--run", help=argparse.SUPPRESS)
    parser.add_argument("--symmetry", action="store_true", help="also over blocks of irreps")
    parser.add_argument("--mixed", action="store_true", help="also in mixed precision")
    parser.add_argument("--json", type=Path)
    add_options(parser)
    options = parser.parse_args()
    set_environment(options)
    if options.run:
        print(json.dumps(job(options.jobs[0], options.run, symmetry=options.symmetry)))
        return
    results: dict[str, Any] = {"machine": machine(options)}
    rows = []
    programs = (*PROGRAMS, *BLOCKS * options.symmetry, *MIXED * options.mixed)
    run = partial(in_process, symmetry=options.symmetry)
    with tempfile.TemporaryDirectory() as cache:
        for name in options.jobs:
            for program in programs:
                if program.endswith("warm"):
                    run(name, program, cache)  # fills the cache
            in_cache([sys.executable, "-c", "import pyscf.cc"], cache)
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
                seconds = "" if p == "pyscf" else f"{median(t[p]['iterating'] for t in rounds):.2f}"
                rows.append([name, p, f"{cpu:.1f}", f"{ratio:.2f}", f"{of_dense:.2f}"])
                rows[-1] += [seconds, f"{peak / 1e9:.2f}", cycles]
    times = ("CPU s", "of PySCF's", "of tcgen's", "CPU s of iterations")
    print(markdown(("job", "program", *times, "peak GB", "iterations"), rows))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()

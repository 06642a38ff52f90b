"""The (T) energy of closed shells within a memory limit, against PySCF's C code.

    python benchmarks/triples.py --system benzene --basis cc-pvdz --repeat 3

Both get the same integrals and the amplitudes of a few CCSD iterations, which change no time. They
run in turn, with the best kernels of their libraries (``peers.py``). Printed are the median times,
the median ratio, what a call of ours allocates beyond its inputs, and the difference of the
energies. Core orbitals of carbon are frozen. Needs PySCF. Ends with status 1 where the energies
differ by more than 1e-9 Hartree.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from statistics import median

import numpy as np
from peers import add_options, set_environment

import tcgen

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))

RING = ((1.3970, "C"), (2.4810, "H"))  # Angstrom from the centre
SYSTEMS = {
    "water": ("O 0 0 0.1173; H 0 0.7572 -0.4692; H 0 -0.7572 -0.4692", 0),
    "benzene": (
        "; ".join(
            f"{element} {r * np.cos(n * np.pi / 3):.8f} {r * np.sin(n * np.pi / 3):.8f} 0"
            for r, element in RING
            for n in range(6)
        ),
        6,
    ),
}


def main() -> int:
    """Print one row of a table; 0 if the energies agree."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--system", choices=SYSTEMS, default="water")
    parser.add_argument("--basis", default="cc-pvtz")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--cycles", type=int, default=4, help="CCSD iterations")
    parser.add_argument("--memory-limit", default="64MiB", help='"" for none')
    parser.add_argument("--target", choices=("cpu", "numpy"))
    add_options(parser)
    options = parser.parse_args()
    set_environment(options)
    from pyscf import cc, lib  # its libraries read the environment
    from pyscf.cc import ccsd_t
    from pyscf_blocks import mean_field, molecule

    lib.num_threads(options.threads)
    tcgen.set_threads(options.threads)
    atoms, frozen = SYSTEMS[options.system]
    solver = cc.ccsd.CCSD(mean_field(molecule(atoms, options.basis)), frozen=frozen or None)
    solver.max_cycle, solver.verbose = options.cycles, 0
    eris = solver.ao2mo()
    solver.kernel(eris=eris)
    t1, t2 = solver.t1, solver.t2
    nocc, nvir = t1.shape
    energies, fock = np.asarray(eris.mo_energy), np.asarray(eris.fock)
    arrays = {
        "f_ov": fock[:nocc, nocc:].copy(),
        "e_o": energies[:nocc].copy(),
        "e_v": energies[nocc:].copy(),
        "v_ovoo": np.asarray(eris.ovoo),
        "v_ovov": np.asarray(eris.ovov),
        "v_ovvv": np.asarray(eris.get_ovvv()),
        "t1": t1,
        "t2": np.ascontiguousarray(t2),
    }
    start = time.perf_counter()
    program = tcgen.compile(
        tcgen.spec_path("t_closed_shell"),
        extents={"o": nocc, "v": nvir},
        objective="time",
        memory_limit=options.memory_limit or None,
        target=options.target,
    )
    compiled = time.perf_counter() - start
    seconds: tuple[list[float], list[float]] = ([], [])
    energy = expected = 0.0
    for _ in range(options.repeat + 1):
        start = time.perf_counter()
        energy = float(program(**arrays)["e_t"])
        middle = time.perf_counter()
        expected = float(ccsd_t.kernel(solver, eris, t1, t2))
        seconds[0].append(middle - start)
        seconds[1].append(time.perf_counter() - middle)
    ours, theirs = (s[1:] for s in seconds)  # the first call of each builds and warms up
    ratio = median(x / y for x, y in zip(ours, theirs, strict=True))
    print("| system | o, v | threads | ours | PySCF | ratio | allocated | difference |")
    print("|---|---|---|---|---|---|---|---|")
    print(
        f"| {options.system}, {options.basis} | {nocc}, {nvir} | {options.threads} "
        f"| {median(ours):.3f} s | {median(theirs):.3f} s | {ratio:.2f} "
        f"| {program.allocated_bytes:,} bytes | {energy - expected:+.1e} |"
    )
    sizes = [a["bytes"] for a in program.report["arrays"] if a["kind"] == "intermediate"]
    print(f"compiled in {compiled:.1f} s; largest intermediate {max(sizes):,} bytes")
    return 0 if abs(energy - expected) < 1e-9 else 1


if __name__ == "__main__":
    sys.exit(main())

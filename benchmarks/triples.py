"""The (T) energy within a memory limit: generated code, PySCF and libraries of einsum.

    taskset -c 0 python benchmarks/triples.py --basis cc-pvtz --repeat 7 --json out.json
    python benchmarks/triples.py --system benzene --repeat 3 --peers pyscf --threads 2

Closed shells. All programs get the same integrals and the amplitudes of a few CCSD iterations.
PySCF runs its C code, ``ccsd_t.kernel``. The others avoid an array over three occupied and three
virtual indices: they compute, for each triple i >= j >= k, the arrays over the virtual indices, by
their library's einsum (jax: compiled as a whole). The output lists missing libraries.

Each round times all programs in turn, so that they run under the same conditions; the table shows
medians, and the median ratio of ours to each. Energies must agree to 1e-9 Hartree. Peers use the
fastest kernels of their libraries (``peers.py``). Needs PySCF.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from typing import Any

import einsums
import numpy as np
from ccsd_peers import SYSTEMS, reference
from peers import HEADS, add_options, cells, machine, markdown, set_environment, take_turns

import tcgen

CLOSE = 1e-9  # Hartree


def make_arrays(options: argparse.Namespace) -> tuple[dict[str, np.ndarray], Callable[[], float]]:
    """What the spec's inputs name, and PySCF's energy of the same."""
    from pyscf import cc, lib
    from pyscf.cc import ccsd_t

    lib.num_threads(options.threads)
    field, core = reference(options)
    solver = cc.ccsd.CCSD(field.run(conv_tol=1e-12), frozen=core or None)
    solver.max_cycle, solver.verbose = options.cycles, 0
    eris = solver.ao2mo()
    solver.kernel(eris=eris)
    t1, t2 = solver.t1, solver.t2
    nocc = len(t1)
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
    return arrays, lambda: float(ccsd_t.kernel(solver, eris, t1, t2, verbose=0))


def compiled(arrays: dict[str, np.ndarray], options: argparse.Namespace) -> tcgen.Program:
    """Our program for these extents."""
    extents = {"o": arrays["e_o"].size, "v": arrays["e_v"].size}
    return tcgen.compile(
        tcgen.spec_path("t_closed_shell"),
        extents=extents,
        objective="time",
        memory_limit=options.memory_limit or None,
        target=options.target,
    )


def by_einsum(used: einsums.Library) -> Callable[..., Any]:
    """What i, j, k and their other orders add to the energy, without its factor."""
    transpose = used.functions.transpose

    def of_triple(x: dict[str, Any], *ijk: int) -> Any:
        w = y = 0.0
        for p, q, r in permutations(range(3)):
            a, b, c = ("abc"[n] for n in (p, q, r))
            i, j, k = ijk[p], ijk[q], ijk[r]
            w += used.einsum(f"{a}{b}f,{c}f->abc", x["v_ovvv"][i], x["t2"][k, j])
            w -= used.einsum(f"{a}m,m{b}{c}->abc", x["v_ovoo"][i, :, j], x["t2"][:, k])
            y += used.einsum(f"{a}{b},{c}->abc", x["v_ovov"][i, :, j], x["t1"][k])
            y += used.einsum(f"{a}{b},{c}->abc", x["t2"][i, j], x["f_ov"][k])
        y = w + 0.5 * y
        i, j, k = ijk
        e_v = x["e_v"]
        gaps = x["e_o"][i] + x["e_o"][j] + x["e_o"][k] - e_v[:, None, None] - e_v[:, None] - e_v
        left = (4 * w + transpose(w, (1, 2, 0)) + transpose(w, (2, 0, 1))) / gaps
        turned = transpose(y, (2, 1, 0)) + transpose(y, (0, 2, 1)) + transpose(y, (1, 0, 2))
        return used.einsum("abc,abc->", left, y - turned / 3)

    return of_triple


def library(name: str, arrays: dict[str, np.ndarray], threads: int) -> Callable[[], float]:
    """The energy by the einsum of a library."""
    used = einsums.load(name, threads)
    own = {n: used.own(a) for n, a in arrays.items()}
    of_triple = used.compiled(by_einsum(used))
    nocc = arrays["e_o"].size
    triples = [(i, j, k) for i in range(nocc) for j in range(i + 1) for k in range(j + 1)]
    orders = {1: 1, 2: 3, 3: 6}  # by how many of them differ

    def energy() -> float:
        return float(sum(orders[len(set(ijk))] * of_triple(own, *ijk) for ijk in triples)) / 3

    return energy


def main() -> None:
    """Measure the programs asked for and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--system", choices=tuple(SYSTEMS), default="water")
    parser.add_argument("--basis", help="another one than the system's")
    parser.add_argument(
        "--peers", default=",".join(("pyscf", *einsums.LIBRARIES)), help="names with commas"
    )
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--cycles", type=int, default=4, help="CCSD iterations")
    parser.add_argument("--memory-limit", default="64MiB", help='"" for none')
    parser.add_argument("--target", choices=("cpu", "numpy"))
    parser.add_argument("--json", type=Path)
    add_options(parser)
    options = parser.parse_args()
    set_environment(options)
    names, missing = einsums.installed(options.peers)
    arrays, pyscf_energy = make_arrays(options)
    tcgen.set_threads(options.threads)
    start = time.perf_counter()
    program = compiled(arrays, options)
    searched = time.perf_counter() - start
    programs = {"tcgen": lambda: float(program(**arrays)["e_t"])}
    for name in names:
        programs[name] = pyscf_energy if name == "pyscf" else library(name, arrays, options.threads)
    energies: dict[str, float] = {}
    seconds = take_turns(programs, options.repeat, energies.__setitem__)
    for name, energy in energies.items():
        if abs(energy - energies["tcgen"]) > CLOSE:
            raise AssertionError(f"{name} gives {energy}, tcgen {energies['tcgen']}")
    extents = {"o": arrays["e_o"].size, "v": arrays["e_v"].size}
    largest = max(a["bytes"] for a in program.report["arrays"] if a["kind"] == "intermediate")
    found = {"energy": energies["tcgen"], "allocated_bytes": program.allocated_bytes}
    found |= {"largest_intermediate_bytes": largest, "compile_seconds": searched}
    print(f"{options.system}, o={extents['o']}, v={extents['v']}, {options.threads} thread(s)")
    print(f"compiled in {searched:.1f} s; tcgen allocates {program.allocated_bytes:,} bytes")
    print(f"not installed: {', '.join(missing) or 'none'}\n")
    print(markdown(HEADS, [cells(name, seconds) for name in seconds]))
    if options.json:
        result = {"machine": machine(options), "not_installed": missing, "extents": extents}
        text = json.dumps(result | found | {"seconds": seconds}, indent=1)
        options.json.write_text(text + "\n")


if __name__ == "__main__":
    main()

"""Time of the MP2 energy from integrals in memory: generated code, PySCF and libraries of einsum.

    taskset -c 0 python benchmarks/mp2.py --system benzene --repeat 7 --json out.json
    taskset -c 0 python benchmarks/mp2.py --system water --basis cc-pvtz --cases spin-orbital

Three cases, each the spec of its name in ``specs/``: ``closed-shell`` from (ia|jb), ``fitted`` from
three-index integrals, ``spin-orbital`` from <ij||ab>. Every program gets the same integrals in
memory, in the order of axes that it asks for, and returns the energy. PySCF runs ``mp2.kernel`` and
``gmp2.kernel`` (NumPy), and for fitted integrals ``dfmp2.kernel`` (C code over pairs of occupied
orbitals), none of which keeps amplitudes. The others compute what a user would write: integrals,
amplitudes and energy one after the other, each in full. Those that are not installed are listed.

Each round times all programs, so that they meet the same machine; shown are medians, and the median
ratio of ours to each. Energies must agree to 1e-10 Hartree. Peers get the best kernels of their
libraries (``peers.py``). Needs PySCF.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from ccsd_peers import SYSTEMS, reference
from peers import CPUINFO, add_options, set_environment

if TYPE_CHECKING:
    import numpy as np

    Arrays = dict[str, np.ndarray]
    Energy = Callable[[], float]
    Einsum = Callable[..., Any]

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))
SPECS = {
    "closed-shell": "mp2_closed_shell",
    "fitted": "mp2_df",
    "spin-orbital": "mp2_spin_orbital",
}
PEERS = ("pyscf", "numpy", "opt_einsum", "pytblis", "torch", "jax")
CLOSE = 1e-10  # Hartree


def make_arrays(case: str, options: argparse.Namespace) -> Arrays:
    """Integrals and orbital energies of a converged reference, under the names of the spec."""
    import numpy as np
    from pyscf import cc, df
    from pyscf_blocks import density_fitted, general_solver

    field, core = reference(options)
    field.conv_tol = 1e-12
    field.kernel()
    if case == "fitted":
        found = density_fitted(field, df.make_auxbasis(field.mol, mp2fit=True), core)
        return {name: found[name] for name in ("b_ov", "e_o", "e_v")}
    if case == "spin-orbital":
        solver, name, block = general_solver(field, core), "v_oovv", "oovv"
    else:
        solver, name, block = cc.rccsd.RCCSD(field, frozen=core or None), "g", "ovov"
    eris = solver.ao2mo()
    energies, o = np.asarray(eris.mo_energy), eris.nocc
    integrals = np.ascontiguousarray(getattr(eris, block))
    return {name: integrals, "e_o": energies[:o].copy(), "e_v": energies[o:].copy()}


def generated(case: str, arrays: Arrays, options: argparse.Namespace) -> Energy:
    """The compiled spec."""
    import tcgen

    tcgen.set_threads(options.threads)
    extents = {"o": arrays["e_o"].size, "v": arrays["e_v"].size}
    if case == "fitted":
        extents["x"] = arrays["b_ov"].shape[0]
    program = tcgen.compile(
        tcgen.spec_path(SPECS[case]),
        extents=extents,
        objective=options.objective,
        memory_limit=options.memory_limit,
    )
    return lambda: float(program(**arrays)["e"])


def pyscf_kernel(case: str, arrays: Arrays, options: argparse.Namespace) -> Energy:
    """PySCF's energy of a case from ``arrays``; its solver is told no more than their extents."""
    import numpy as np
    from pyscf import lib, mp, scf
    from pyscf.mp import dfmp2, gmp2, mp2

    lib.num_threads(options.threads)
    o, v = arrays["e_o"].size, arrays["e_v"].size
    energies, orbitals = np.concatenate([arrays["e_o"], arrays["e_v"]]), np.eye(o + v)
    occupied = np.where(np.arange(o + v) < o, 1.0 if case == "spin-orbital" else 2.0, 0.0)
    field, _ = reference(options)
    if case == "fitted":
        fitted = dfmp2.DFMP2(field, None, orbitals, occupied, energies)
        pairs = np.ascontiguousarray(arrays["b_ov"].reshape(-1, o * v).T)
        held = dfmp2._DFINCOREERIS(None, orbitals[:, :o], orbitals[:, o:], 16000, ovL=pairs)
        return lambda: float(dfmp2.kernel(fitted, eris=held, with_t2=False)[0])
    if case == "spin-orbital":
        general = mp.gmp2.GMP2(scf.GHF(field.mol), None, orbitals, occupied)
        block = SimpleNamespace(oovv=arrays["v_oovv"], mo_energy=energies)
        return lambda: float(gmp2.kernel(general, eris=block, with_t2=False)[0])
    restricted = mp2.MP2(field, None, orbitals, occupied)
    block = SimpleNamespace(ovov=arrays["g"].reshape(o * v, o * v), mo_energy=energies)
    return lambda: float(mp2.kernel(restricted, eris=block, with_t2=False)[0])


def by_einsum(case: str, einsum: Einsum) -> Callable[[dict[str, Any]], Any]:
    """The energy from arrays of a library, whole arrays one after the other."""

    def closed_shell(g: Any, arrays: dict[str, Any]) -> Any:
        gaps = arrays["e_o"][:, None] - arrays["e_v"]
        t = g / (gaps[:, :, None, None] + gaps)
        return 2 * einsum("iajb,iajb->", t, g) - einsum("iajb,ibja->", t, g)

    def spin_orbital(arrays: dict[str, Any]) -> Any:
        g, gaps = arrays["v_oovv"], arrays["e_o"][:, None] - arrays["e_v"]
        t = g / (gaps[:, None, :, None] + gaps[:, None, :])
        return einsum("ijab,ijab->", t, g) / 4

    if case == "closed-shell":
        return lambda arrays: closed_shell(arrays["g"], arrays)
    if case == "spin-orbital":
        return spin_orbital
    return lambda x: closed_shell(einsum("Pia,Pjb->iajb", x["b_ov"], x["b_ov"]), x)


def library(name: str, case: str, arrays: Arrays, options: argparse.Namespace) -> Energy:
    """The energy by the einsum of a library."""
    if name == "torch":
        import torch

        torch.set_num_threads(options.threads)
        tensors = {n: torch.from_numpy(a) for n, a in arrays.items()}
        energy = by_einsum(case, torch.einsum)
        return lambda: float(energy(tensors))
    if name == "jax":
        import jax

        jax.config.update("jax_enable_x64", True)
        device = {n: jax.numpy.asarray(a) for n, a in arrays.items()}
        energy = jax.jit(by_einsum(case, jax.numpy.einsum))
        return lambda: float(energy(device))
    energy = by_einsum(case, _numpy_einsum(name, options))
    return lambda: float(energy(arrays))


def _numpy_einsum(name: str, options: argparse.Namespace) -> Einsum:
    """The einsum of a library that takes NumPy's arrays."""
    if name == "numpy":
        import numpy as np

        return lambda *x: np.einsum(*x, optimize=True)
    if name == "opt_einsum":
        import opt_einsum

        return opt_einsum.contract
    import pytblis

    pytblis.set_num_threads(options.threads)
    return pytblis.einsum


def measure(case: str, names: list[str], options: argparse.Namespace) -> dict[str, Any]:
    """Seconds of each program, by round; the first round warms up and compares energies."""
    arrays = make_arrays(case, options)
    programs = {"tcgen": generated(case, arrays, options)}
    for name in names:
        make = pyscf_kernel if name == "pyscf" else lambda *x, n=name: library(n, *x)
        programs[name] = make(case, arrays, options)
    seconds: dict[str, list[float]] = {name: [] for name in programs}
    energies: dict[str, float] = {}
    for _ in range(options.repeat + 1):
        for name, run in programs.items():
            start = time.perf_counter()
            energies[name] = run()
            seconds[name].append(time.perf_counter() - start)
    for name, energy in energies.items():
        if abs(energy - energies["tcgen"]) > CLOSE:
            raise AssertionError(f"{case}: {name} gives {energy}, tcgen {energies['tcgen']}")
    extents = {"o": arrays["e_o"].size, "v": arrays["e_v"].size}
    if case == "fitted":
        extents["x"] = arrays["b_ov"].shape[0]
    timed = {name: values[1:] for name, values in seconds.items()}
    return {"case": case, "extents": extents, "energy": energies["tcgen"], "seconds": timed}


def table(rows: list[dict[str, Any]]) -> str:
    """The results as Markdown."""
    lines = ["| case | extents | program | seconds (median) | least | tcgen's time in it |"]
    lines.append("|---" * 6 + "|")
    for row in rows:
        ours = row["seconds"]["tcgen"]
        extents = ", ".join(f"{space}={n}" for space, n in row["extents"].items())
        for name, values in row["seconds"].items():
            ratio = statistics.median(x / y for x, y in zip(ours, values, strict=True))
            cells = [row["case"], extents, name, f"{statistics.median(values):.5f}"]
            cells += [f"{min(values):.5f}", f"{ratio:.2f}"]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Measure the cases asked for and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--system", choices=tuple(SYSTEMS), default="benzene")
    parser.add_argument("--basis", help="another one than the system's")
    parser.add_argument("--cases", default=",".join(SPECS), help="names with commas")
    parser.add_argument("--peers", default=",".join(PEERS), help="names with commas")
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--objective", default="time", help="of tcgen compile")
    parser.add_argument("--memory-limit", help="of tcgen compile, such as 16MiB")
    parser.add_argument("--json", type=Path)
    add_options(parser)
    options = parser.parse_args()
    set_environment(options)
    wanted = [name for name in options.peers.split(",") if name]
    names = [name for name in wanted if importlib.util.find_spec(name)]
    rows = [measure(case, names, options) for case in options.cases.split(",")]
    missing = [name for name in wanted if name not in names]
    print(f"{options.system}, {options.threads} thread(s)")
    print(f"not installed: {', '.join(missing) or 'none'}\n")
    print(table(rows))
    if options.json:
        models = {x.split(":")[1].strip() for x in CPUINFO.splitlines() if "model name" in x}
        machine = {"processor": sorted(models), "threads": options.threads}
        machine |= {"coretype": options.coretype, "tblis": options.tblis}
        result = {"machine": machine, "not_installed": missing, "load": os.getloadavg()}
        options.json.write_text(json.dumps(result | {"rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()

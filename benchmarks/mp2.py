"""Time of the MP2 energy from integrals in memory: generated code, PySCF and libraries of einsum.

    taskset -c 0 python benchmarks/mp2.py --system benzene --repeat 7 --json out.json
    taskset -c 0 python benchmarks/mp2.py --system water --basis cc-pvtz --cases spin-orbital

Three cases, each the spec of its name in ``specs/``: ``closed-shell`` from (ia|jb), ``fitted`` from
three-index integrals, ``spin-orbital`` from <ij||ab>. Every program gets the same integrals in
memory, in the order of axes that it asks for, and returns the energy. PySCF runs ``mp2.kernel`` and
``gmp2.kernel`` (NumPy), and for fitted integrals ``dfmp2.kernel`` (C code over pairs of occupied
orbitals), none of which keeps amplitudes. The others compute integrals, amplitudes and energy one
after the other, each in full. The output lists missing libraries.

Each round times all programs in turn, so that they run under the same conditions; the table shows
medians, and the median ratio of ours to each. Energies must agree to 1e-10 Hartree. Peers use the
fastest kernels of their libraries (``peers.py``). Needs PySCF.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import einsums
from ccsd_peers import SYSTEMS, reference
from peers import HEADS, add_options, cells, machine, markdown, set_environment, take_turns

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
PEERS = ("pyscf", *einsums.LIBRARIES)
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
    used = einsums.load(name, options.threads)
    own = {n: used.own(a) for n, a in arrays.items()}
    energy = used.compiled(by_einsum(case, used.einsum))
    return lambda: float(energy(own))


def measure(case: str, names: list[str], options: argparse.Namespace) -> dict[str, Any]:
    """Seconds of each program, by round; the first round warms up and compares energies."""
    arrays = make_arrays(case, options)
    programs = {"tcgen": generated(case, arrays, options)}
    for name in names:
        make = pyscf_kernel if name == "pyscf" else lambda *x, n=name: library(n, *x)
        programs[name] = make(case, arrays, options)
    energies: dict[str, float] = {}
    seconds = take_turns(programs, options.repeat, energies.__setitem__)
    for name, energy in energies.items():
        if abs(energy - energies["tcgen"]) > CLOSE:
            raise AssertionError(f"{case}: {name} gives {energy}, tcgen {energies['tcgen']}")
    extents = {"o": arrays["e_o"].size, "v": arrays["e_v"].size}
    if case == "fitted":
        extents["x"] = arrays["b_ov"].shape[0]
    return {"case": case, "extents": extents, "energy": energies["tcgen"], "seconds": seconds}


def table(rows: list[dict[str, Any]]) -> str:
    """The results as Markdown."""
    lines = []
    for row in rows:
        extents = ", ".join(f"{space}={n}" for space, n in row["extents"].items())
        lines += [[row["case"], extents, *cells(n, row["seconds"])] for n in row["seconds"]]
    return markdown(("case", "extents", *HEADS), lines)


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
    names, missing = einsums.installed(options.peers)
    rows = [measure(case, names, options) for case in options.cases.split(",")]
    print(f"{options.system}, {options.threads} thread(s)")
    print(f"not installed: {', '.join(missing) or 'none'}\n")
    print(table(rows))
    if options.json:
        result = {"machine": machine(options), "not_installed": missing, "rows": rows}
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()

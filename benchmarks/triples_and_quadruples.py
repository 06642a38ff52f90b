"""Time and memory of one CCSDT or CCSDTQ iteration beside PySCF and ebcc, on the same arrays.

    OMP_NUM_THREADS=1 python benchmarks/triples_and_quadruples.py ccsdt --basis cc-pvdz
    OMP_NUM_THREADS=1 python benchmarks/triples_and_quadruples.py ccsdt --basis cc-pvtz --virtual 40
    OMP_NUM_THREADS=1 python benchmarks/triples_and_quadruples.py ccsdtq -e 4 8

CCSDT of water, closed shell, all electrons: new amplitudes from old ones by the shipped spec
``ccsdt_closed_shell``, with triples as they are and packed, and by PySCF's ``cc.rccsdt`` (triples
in triangles) and ``cc.rccsdt_highm`` (whole ones), each also with ``einsum_backend="pyscf"``. All
start from MP2 and iterate in turn; their singles and doubles must agree after two iterations.
CCSDTQ over spin orbitals: residuals of random arrays by ``ccsdtq_spin_orbital`` and by the
equations of ebcc's GCCSDTQ.

CPU times of the process, so that other jobs on the machine change them little. Memory: a process
for each program does two iterations; the table has its peak resident bytes less those it held
before it made integrals.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from peers import HEADS, add_options, cells, markdown, set_environment, take_turns

if TYPE_CHECKING:
    import numpy as np

    Step = Callable[[], dict[str, np.ndarray]]

WATER = "O 0 0 0.1173; H 0 0.7572 -0.4692; H 0 -0.7572 -0.4692"
SPECS = {"ccsdt": "ccsdt_closed_shell", "ccsdtq": "ccsdtq_spin_orbital"}
PROGRAMS = {
    "ccsdt": (
        "tcgen",
        "tcgen packed",
        "rccsdt",
        "rccsdt pyscf",
        "rccsdt_highm",
        "rccsdt_highm pyscf",
    ),
    "ccsdtq": ("tcgen", "ebcc"),
}


def mean_field(options: argparse.Namespace) -> tuple[Any, list[int] | None]:
    """Water, and the virtual orbitals that are left out."""
    from pyscf import gto, lib, scf

    lib.num_threads(options.threads)
    mol = gto.M(atom=WATER, basis=options.basis, verbose=0, max_memory=16000)
    field = scf.RHF(mol).run(conv_tol=1e-12)
    kept = 5 + options.virtual if options.virtual else len(field.mo_energy)
    return field, [*range(kept, len(field.mo_energy))] or None


def our_blocks(integrals: np.ndarray, fock: np.ndarray, o: int, names: Iterable[str]) -> Any:
    """Constants by name, from <pq|rs> or <pq||rs>, and f."""
    import numpy as np

    part = {"o": slice(0, o), "v": slice(o, None)}
    blocks = {}
    for name in names:
        whole = {"f": fock, "v": integrals}.get(name[0])
        if whole is not None:
            blocks[name] = np.ascontiguousarray(whole[tuple(part[x] for x in name[2:])])
    return blocks


def compile_program(name: str, folder: Path, options: argparse.Namespace) -> None:
    """Write our program to a folder, so that a process that runs it needs no planner."""
    import tcgen

    path = tcgen.spec_path(SPECS[options.method])
    if name.endswith("packed"):
        text = path.read_text()
        for declared in ("input  t3[o,o,o,v,v,v] antisymmetric (0,1) (3,4)", "output r3"):
            axes = f"{declared.split('[')[0]}[o,o,o,v,v,v] antisymmetric (0,1) (3,4)"
            text = text.replace(f"{declared}\n", f"{axes} packed (0,1) (3,4)\n")
        path = folder / "packed.spec"
        path.write_text(text)
    limit = {"memory_limit": options.memory_limit} if options.memory_limit else {}
    extents = dict(zip("ov", options.extents, strict=True))
    planning = {"objective": options.objective, "add_weight": options.add_weight}
    tcgen.compile(path, extents=extents, **planning, **limit).save(folder / name)


def triples_step(name: str, field: Any, frozen: list[int] | None, folder: Path) -> Step:
    """Turn MP2 into better amplitudes, one iteration at a call."""
    import numpy as np
    from pyscf import ao2mo, cc

    if not name.startswith("tcgen"):
        module, _, backend = name.partition(" ")
        solver = getattr(cc, module).RCCSDT(field, frozen=frozen)
        solver.verbose = 0
        if backend:
            solver.set_einsum_backend(backend)
        eris = solver.ao2mo()
        # Without cycles, kernel() makes the tables of the triangles alone.
        solver.max_cycle, solver.e_corr_ss, solver.e_corr_os = 0, 0.0, 0.0
        solver.kernel(eris=eris)
        amplitudes = list(solver.tamps)

        def theirs() -> dict[str, np.ndarray]:
            solver.update_amps_(amplitudes, eris)
            return {"t1": amplitudes[0], "t2": amplitudes[1]}

        return theirs
    import tcgen

    kept = [k for k in range(len(field.mo_energy)) if k not in (frozen or [])]
    c = field.mo_coeff[:, kept]
    fock = c.T @ field.get_fock() @ c
    energies = fock.diagonal()
    g = ao2mo.restore(1, ao2mo.full(field.mol, c), len(kept)).transpose(0, 2, 1, 3)
    program = tcgen.load(folder / name)
    inputs = {t.name: t for t in program.manifest.tensors if t.role == "input"}
    step = program.bind(**our_blocks(g, fock, 5, inputs))
    d1 = energies[:5, None] - energies[5:]
    d2 = d1[:, None, :, None] + d1[None, :, None, :]
    d3 = d2[:, :, None, :, :, None] + d1[None, None, :, None, None, :]
    if name.endswith("packed"):
        pairs = [np.tril_indices(n, -1) for n in d1.shape]
        d3 = d3[pairs[0]][:, :, *pairs[1]]
    t = {"t1": fock[:5, 5:] / d1, "t2": g[:5, :5, 5:, 5:] / d2, "t3": np.zeros_like(d3)}
    del g, c, fock
    out: dict[str, np.ndarray] = {}

    def ours() -> dict[str, np.ndarray]:
        step(**t, out=out)
        for n, d in enumerate((d1, d2, d3), 1):
            out[f"r{n}"] /= d
            t[f"t{n}"] += out[f"r{n}"]
        return {"t1": t["t1"], "t2": t["t2"]}

    return ours


def quadruples_step(name: str, options: argparse.Namespace, folder: Path) -> Step:
    """Residuals of random amplitudes."""
    import numpy as np

    import tcgen
    from tcgen.testing import random_arrays

    o, v = options.extents
    system = tcgen.read_spec_file(tcgen.spec_path("ccsdtq_spin_orbital"))
    arrays = random_arrays(system.inputs, {"o": o, "v": v}, seed=1)
    t = {n: 0.1 * a for n, a in arrays.items() if n[0] == "t"}
    rng = np.random.default_rng(2)
    b = rng.standard_normal((4, o + v, o + v))
    b += b.transpose(0, 2, 1)
    g = np.einsum("xpr,xqs->pqrs", b, b) / (o + v)
    g -= g.transpose(0, 1, 3, 2)
    if name == "tcgen":
        program = tcgen.load(folder / name)
        step = program.bind(**our_blocks(g, b[0], o, [t.name for t in system.inputs]))
        return lambda: dict(step(**t))
    from ebcc.codegen import GCCSDTQ
    from ebcc.util import Namespace

    part = {"o": slice(0, o), "v": slice(o, None)}

    def namespace(whole: np.ndarray) -> Any:
        names = ("".join("ov"[k] for k in x) for x in np.ndindex((2,) * whole.ndim))
        return Namespace(
            **{n: np.ascontiguousarray(whole[tuple(part[x] for x in n)]) for n in names}
        )

    blocks = {"f": namespace(b[0]), "v": namespace(g)}

    def theirs() -> dict[str, np.ndarray]:
        found = GCCSDTQ.update_amps(nocc=o, nvir=v, **blocks, **t)
        return {f"r{n}": found[f"t{n}new"] for n in (1, 2, 3, 4)}

    return theirs


def make_step(name: str, options: argparse.Namespace, folder: Path) -> Step:
    """One iteration of a program."""
    if options.method == "ccsdtq":
        return quadruples_step(name, options, folder)
    return triples_step(name, *mean_field(options), folder)


def status(key: str) -> int:
    """A number of bytes that this process held: VmHWM is the most so far, VmRSS that of now."""
    text = Path("/proc/self/status").read_text()
    return 1024 * int(text.split(f"{key}:")[1].split()[0])


def resident(name: str, folder: Path) -> int:
    """Bytes beside those of the libraries and the mean field, in a process of its own."""
    command = [sys.executable, *sys.argv, "--peak-of", name, str(folder)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return int(done.stdout.split()[-1])


def print_peak(name: str, folder: Path, options: argparse.Namespace) -> None:
    """The other side of ``resident``: the peak above what libraries and the mean field hold."""
    import numpy as np

    import tcgen

    # Libraries are loaded first.
    tcgen.einsum("ij,jk->ik", np.eye(2), np.eye(2))
    if options.method == "ccsdt":
        field, frozen = mean_field(options)
        before = status("VmRSS")
        step = triples_step(name, field, frozen, folder)
    else:
        before = status("VmRSS")
        step = quadruples_step(name, options, folder)
    step()
    step()
    print(status("VmHWM") - before)


def measure(
    names: tuple[str, ...], options: argparse.Namespace, folder: Path
) -> dict[str, list[float]]:
    """CPU seconds of each program by round; all must agree after the first one."""
    import numpy as np

    first: dict[str, np.ndarray] = {}

    def check(name: str, found: dict[str, np.ndarray]) -> None:
        first.update({} if first else {n: x.copy() for n, x in found.items() if n != "e"})
        for n, wanted in first.items():
            worst = float(np.abs(found[n] - wanted).max() / np.abs(wanted).max())
            if worst > 1e-9:
                raise AssertionError(f"{n} of {name} differs from {names[0]} by {worst:.1e}")

    steps = {name: make_step(name, options, folder) for name in names}
    # Singles and doubles of the second iteration depend on the triples of the first one.
    for step in steps.values():
        step()
    return take_turns(steps, options.repeat, check, time.process_time)


def main() -> None:
    """Measure the programs and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("method", choices=tuple(PROGRAMS))
    parser.add_argument("--basis", default="cc-pvdz")
    parser.add_argument("--virtual", type=int, help="the lowest so many virtual orbitals")
    parser.add_argument("-e", dest="extents", type=int, nargs=2, default=(4, 8), help="o v")
    parser.add_argument("--programs", help="names with commas; default all")
    parser.add_argument("--objective", default="time", help="of tcgen compile")
    parser.add_argument("--add-weight", type=float, default=1.0, help="of tcgen compile")
    parser.add_argument("--memory-limit", help="of tcgen compile")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--no-memory", action="store_true", help="leave peak memory out")
    add_options(parser)
    parser.add_argument("--peak-of", nargs=2, metavar=("NAME", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    set_environment(options)
    if options.peak_of:
        print_peak(options.peak_of[0], Path(options.peak_of[1]), options)
        return
    names = tuple(options.programs.split(",")) if options.programs else PROGRAMS[options.method]
    if options.method == "ccsdt":
        field, frozen = mean_field(options)
        options.extents = 5, len(field.mo_energy) - len(frozen or []) - 5
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        for name in names:
            if name.startswith("tcgen"):
                compile_program(name, folder, options)
        peaks = {} if options.no_memory else {name: resident(name, folder) for name in names}
        seconds = measure(names, options, folder)
    rows = [[*cells(name, seconds), f"{peaks[name] / 1e6:.0f}" if peaks else ""] for name in names]
    print(markdown((*HEADS, "peak MB"), rows))


if __name__ == "__main__":
    main()

"""Time and memory of one CCSD iteration: generated code, PySCF and ebcc on the same integrals.

    taskset -c 0 python benchmarks/ccsd_peers.py --system benzene --repeat 5 --json out.json
    taskset -c 0 python benchmarks/ccsd_peers.py --system water --basis cc-pvtz --spin-orbital

Closed shell: PySCF's ``cc.CCSD`` (C code, triangles of (ab|cd)) and ``cc.rccsd.RCCSD``, and ebcc's
RCCSD; spin-orbital: PySCF's and ebcc's GCCSD. Then ebcc's equations, which its authors factored, in
other libraries' einsum in place of its own (jax: compiled as a whole). PySCF makes the integrals
once and every program holds them in memory, in the form that it asks for; ours are bound to the
program. One iteration is new amplitudes from old ones; ebcc returns residuals, to which the
division is added. Each round times all programs in turn, so that they run under the same
conditions; the table shows medians and the ratio of ours to each. Amplitudes are those of MP2 with
small random singles, and all results must agree to 1e-9.

Memory: a process for each program loads its inputs and does two iterations; the table
has its peak resident bytes, everything included. Needs PySCF and ebcc.

Peers use the fastest kernels of their libraries (``peers.py``; ``--coretype``, ``--tblis``: other
names, or ``""`` for none).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any

import einsums
from peers import HEADS, add_options, cells, machine, markdown, set_environment, take_turns

if TYPE_CHECKING:
    import numpy as np

    Arrays = dict[str, np.ndarray]
    Step = Callable[[], tuple[np.ndarray, np.ndarray]]

CLOSED_SHELL = ("tcgen", "pyscf.ccsd", "pyscf.rccsd", "ebcc.rccsd", *einsums.LIBRARIES)
SPIN_ORBITAL = ("tcgen", "pyscf.gccsd", "ebcc.gccsd", *einsums.LIBRARIES)
BLOCKS = {
    False: ("oooo", "ovoo", "oovv", "ovov", "ovvv", "vvvv"),
    True: ("oooo", "ooov", "oovv", "ovov", "ovvv", "vvvv"),
}
H = 0.75**0.5
RING = "\n".join(
    f"{atom} {radius * x:.8f} {radius * y:.8f} 0"
    for atom, radius in (("C", 1.3970), ("H", 2.4810))
    for x, y in ((1, 0), (0.5, H), (-0.5, H), (-1, 0), (-0.5, -H), (0.5, -H))
)
SYSTEMS = {  # atoms in Angstrom, basis, core orbitals left out
    "benzene": (RING, "cc-pvdz", 6),
    "water": ("O 0 0 0.1173; H 0 0.7572 -0.4692; H 0 -0.7572 -0.4692", "6-31g", 0),
}


def reference(options: argparse.Namespace):
    """PySCF's molecule and mean field, not yet converged, and the number of core orbitals."""
    from pyscf import gto, scf

    atoms, basis, core = SYSTEMS[options.system]
    mol = gto.M(atom=atoms, basis=options.basis or basis, verbose=0, max_memory=16000)
    return scf.RHF(mol), core


def make_arrays(options: argparse.Namespace) -> Arrays:
    """Fock matrix, orbital energies, integrals and amplitudes, by name."""
    import numpy as np
    from pyscf import ao2mo, cc, scf

    field, core = reference(options)
    field.conv_tol = 1e-12
    field.kernel()
    if options.spin_orbital:
        solver = cc.GCCSD(scf.addons.convert_to_ghf(field), frozen=2 * core or None)
    else:
        solver = cc.rccsd.RCCSD(field, frozen=core or None)
    eris = solver.ao2mo()
    arrays = {f"v_{b}": np.asarray(getattr(eris, b)) for b in BLOCKS[options.spin_orbital]}
    o = eris.nocc
    fock, energies = np.array(eris.fock), np.array(eris.mo_energy)
    arrays |= {"f_oo": fock[:o, :o], "f_ov": fock[:o, o:], "f_vv": fock[o:, o:]}
    arrays |= {"e_o": energies[:o], "e_v": energies[o:]}
    if not options.spin_orbital:  # what cc.CCSD holds
        v = energies.size - o
        arrays["v_vvvv_packed"] = ao2mo.restore(4, arrays["v_vvvv"].reshape(v * v, v * v), v)
        lower = np.tril_indices(v)
        arrays["v_ovvv_packed"] = arrays["v_ovvv"][:, :, lower[0], lower[1]]
    arrays = {n: np.ascontiguousarray(a) for n, a in arrays.items()}
    random = np.random.default_rng(0)
    d1, d2 = denominators(arrays)
    doubles = arrays["v_oovv"] if options.spin_orbital else arrays["v_ovov"].transpose(0, 2, 1, 3)
    t1 = 0.05 * random.standard_normal(d1.shape)
    return arrays | {"t1": t1, "t2": np.ascontiguousarray(doubles / d2)}


def kept_arrays(folder: Path, options: argparse.Namespace) -> Arrays:
    """The arrays of a folder, made first where it has none."""
    import numpy as np

    if not (folder / "t2.npy").exists():
        folder.mkdir(parents=True, exist_ok=True)
        for name, array in make_arrays(options).items():
            np.save(folder / f"{name}.npy", array)
    return {path.stem: np.load(path) for path in folder.glob("*.npy")}


def denominators(arrays: Arrays) -> tuple[np.ndarray, np.ndarray]:
    """e_o[i] - e_v[a] and e_o[i] + e_o[j] - e_v[a] - e_v[b]."""
    d1 = arrays["e_o"][:, None] - arrays["e_v"]
    return d1, d1[:, None, :, None] + d1[None, :, None, :]


def needed(name: str, options: argparse.Namespace) -> list[str]:
    """Arrays that a program needs, by name."""
    blocks = [f"v_{b}" for b in BLOCKS[options.spin_orbital]]
    packed = {"pyscf.ccsd": ("v_ovvv", "v_vvvv"), "tcgen": ("v_vvvv",) if packs(options) else ()}
    blocks = [f"{b}_packed" if b in packed.get(name, ()) else b for b in blocks]
    return [*blocks, "f_oo", "f_ov", "f_vv", "e_o", "e_v", "t1", "t2"]


def compile_program(folder: str, arrays: Arrays, options: argparse.Namespace) -> None:
    """Write our program to a folder."""
    import tcgen

    spec = "ccsd_spin_orbital" if options.spin_orbital else "ccsd_closed_shell"
    path = tcgen.spec_path(spec)
    if options.dense:
        path = Path(folder).with_suffix(".spec")
        path.write_text(tcgen.spec_path(spec).read_text().replace("packed (0,1) (2,3) ", ""))
    limit = options.memory_limit
    planned = {"memory_limit": limit, "objective": "time"} if limit else {}
    extents = dict(zip("ov", arrays["t1"].shape, strict=True))
    weight = options.byte_weight
    tcgen.compile(path, extents=extents, byte_weight=weight, **planned).save(folder)


def packs(options: argparse.Namespace) -> bool:
    """True where our program takes the triangles of v_vvvv, as cc.CCSD does."""
    return not options.spin_orbital and not options.dense


def make_step(name: str, arrays: Arrays, folder: str, options: argparse.Namespace) -> Step:
    """One iteration of a program as a function without arguments."""
    t1, t2 = arrays["t1"], arrays["t2"]
    if name == "tcgen":
        import tcgen

        program = tcgen.load(folder)
        inputs = [t for t in program.manifest.tensors if t.role == "input"]
        stored = {t.name: f"{t.name}_packed" if t.storage.packed else t.name for t in inputs}
        bound = program.bind(**{t.name: arrays[stored[t.name]] for t in inputs if not t.volatile})
        out: dict[str, np.ndarray] = {}

        def ours() -> tuple[np.ndarray, np.ndarray]:
            bound(t1=t1, t2=t2, out=out)
            if "t1_new" in out:
                return out["t1_new"], out["t2_new"]
            return updated(out["r1"], out["r2"])

    d1, d2 = denominators(arrays)

    def updated(r1: np.ndarray, r2: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        r1, r2 = r1 / d1, r2 / d2
        r1 += t1
        r2 += t2
        return r1, r2

    if name == "tcgen":
        return ours
    if name.startswith("pyscf"):
        return pyscf_step(name, arrays, options)
    residuals = ebcc_residuals(None if name.startswith("ebcc") else name, arrays, options)
    return lambda: updated(*residuals())


def ebcc_residuals(library: str | None, arrays: Arrays, options: argparse.Namespace) -> Step:
    """The residuals by ebcc's code, as it is or with the ``einsum`` of a library in it."""
    import numpy as np
    from ebcc.codegen import GCCSD, RCCSD
    from ebcc.util import Namespace

    fock = {b: arrays[f"f_{b}"] for b in ("oo", "ov", "vv")} | {"vo": arrays["f_ov"].T}
    blocks = {b: arrays[f"v_{b}"] for b in BLOCKS[options.spin_orbital]}
    if options.spin_orbital:
        blocks["ovoo"] = np.ascontiguousarray(blocks["ooov"].transpose(2, 3, 0, 1))
        blocks["vvov"] = blocks["ovvv"].transpose(2, 3, 0, 1)
    else:
        blocks["ooov"] = np.ascontiguousarray(blocks["ovoo"].transpose(2, 3, 0, 1))
    module = GCCSD if options.spin_orbital else RCCSD
    if library is None:
        kept = {"f": Namespace(**fock), "v": Namespace(**blocks)}

        def as_it_is() -> tuple[np.ndarray, np.ndarray]:
            found = module.update_amps(t1=arrays["t1"], t2=arrays["t2"], **kept)
            return found["t1new"], found["t2new"]

        return as_it_is
    used = einsums.load(library, options.threads)

    def einsum(*operands: Any) -> Any:  # arrays and numbers of their indices in turn
        *inputs, output = ("".join(chr(97 + i) for i in x) for x in (*operands[1::2], operands[-1]))
        return used.einsum(f"{','.join(inputs)}->{output}", *operands[:-1:2])

    names = vars(module) | {"einsum": einsum, "np": used.functions}
    update = FunctionType(module.update_amps.__code__, names, argdefs=(None,) * 4)

    def both(f: dict[str, Any], v: dict[str, Any], t1: Any, t2: Any) -> tuple[Any, Any]:
        found = update(f=Namespace(**f), v=Namespace(**v), t1=t1, t2=t2)
        return found["t1new"], found["t2new"]

    compiled = used.compiled(both)
    held = [{n: used.own(a) for n, a in each.items()} for each in (fock, blocks)]
    t1, t2 = used.own(arrays["t1"]), used.own(arrays["t2"])
    return lambda: tuple(used.back(x) for x in compiled(*held, t1, t2))


def pyscf_step(name: str, arrays: Arrays, options: argparse.Namespace) -> Step:
    """One call of update_amps; the solver's integrals are made of ``arrays``."""
    import numpy as np
    from pyscf import cc, lib, scf

    field, core = reference(options)
    o, v = arrays["t1"].shape
    if name == "pyscf.gccsd":
        field = (
            scf.addons.convert_to_ghf(field) if field.mo_coeff is not None else scf.GHF(field.mol)
        )
    solver_class, integrals = {
        "pyscf.ccsd": (cc.ccsd.CCSD, cc.ccsd._ChemistsERIs),
        "pyscf.rccsd": (cc.rccsd.RCCSD, cc.rccsd._ChemistsERIs),
        "pyscf.gccsd": (cc.gccsd.GCCSD, cc.gccsd._PhysicistsERIs),
    }[name]
    width = (2 if options.spin_orbital else 1) * core
    coefficients = np.eye(o + v + width)
    occupation = np.zeros(o + v + width)
    occupation[: o + width] = 1 if options.spin_orbital else 2
    solver = solver_class(field, width or None, coefficients, occupation)
    solver.max_memory, solver.incore_complete, solver.verbose = 16000, True, 0
    eris = integrals(field.mol)
    eris.nocc = o
    eris.fock = np.block([[arrays["f_oo"], arrays["f_ov"]], [arrays["f_ov"].T, arrays["f_vv"]]])
    eris.mo_energy = np.concatenate([arrays["e_o"], arrays["e_v"]])
    for block in BLOCKS[options.spin_orbital]:
        setattr(eris, block, arrays.get(f"v_{block}"))
    if name == "pyscf.ccsd":
        eris.ovvv, eris.vvvv = arrays["v_ovvv_packed"], arrays["v_vvvv_packed"]
    if options.spin_orbital:
        eris.ovvo = -eris.ovov.transpose(0, 1, 3, 2)
    else:
        eris.ovvo = np.ascontiguousarray(eris.ovov.transpose(0, 1, 3, 2))
    lib.num_threads(options.threads)
    return lambda: solver.update_amps(arrays["t1"], arrays["t2"], eris)


def measure(
    names: list[str], arrays: Arrays, folder: str, options: argparse.Namespace
) -> dict[str, list[float]]:
    """Seconds of each program, by round; the first round warms up and compares results."""
    import numpy as np

    clock = time.process_time if options.cpu_time else time.perf_counter
    steps = {name: make_step(name, arrays, folder, options) for name in names}
    first: list[np.ndarray] = []

    def check(name: str, found: tuple[np.ndarray, np.ndarray]) -> None:
        if not first:
            first.extend(x.copy() for x in found)
        for one, other in zip(first, found, strict=True):
            worst = float(np.abs(one - other).max())
            if worst > 1e-9:
                raise AssertionError(f"{name} differs from {names[0]} by {worst:.1e}")

    return take_turns(steps, options.repeat, check, clock)


def resident(name: str, folder: str) -> int:
    """Peak resident bytes of a process that does one iteration of one program."""
    command = [sys.executable, *sys.argv, "--peak-of", name, folder]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return int(done.stdout.split()[-1])


def print_peak(name: str, folder: Path, options: argparse.Namespace) -> None:
    """The other side of ``resident``."""
    import numpy as np

    wanted = needed(name, options)
    arrays = {n: np.load(folder / f"{n}.npy") for n in wanted}
    step = make_step(name, arrays, str(folder / "program"), options)
    step()
    step()
    # Not getrusage: what that returns is no less than what the parent held when it started this.
    status = Path("/proc/self/status").read_text()
    print(1024 * int(status.split("VmHWM:")[1].split()[0]))


def table(seconds: dict[str, list[float]], bytes_: dict[str, int]) -> str:
    """The results as Markdown."""
    peaks = {name: f"{bytes_[name] / 1e9:.2f}" if name in bytes_ else "" for name in seconds}
    rows = [[*cells(name, seconds), peaks[name]] for name in seconds]
    return markdown((*HEADS, "peak resident GB"), rows)


def main() -> None:
    """Measure the programs asked for and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--system", choices=tuple(SYSTEMS), default="water")
    parser.add_argument("--basis", help="another one than the system's")
    parser.add_argument("--spin-orbital", action="store_true")
    parser.add_argument("--programs", help="names with commas; default all")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--dense", action="store_true", help="v_vvvv not in triangles, for ours")
    parser.add_argument("--cpu-time", action="store_true", help="on a shared machine")
    parser.add_argument("--byte-weight", type=float, default=1.0, help="of tcgen compile")
    add_options(parser)
    parser.add_argument("--memory-limit", help="plan for time under this limit, such as 400MB")
    parser.add_argument("--folder", help="keeps arrays for further runs of the same system")
    parser.add_argument("--no-memory", action="store_true", help="leave peak memory out")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--peak-of", nargs=2, metavar=("NAME", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    set_environment(options)
    if options.peak_of:
        print_peak(options.peak_of[0], Path(options.peak_of[1]), options)
        return
    known = SPIN_ORBITAL if options.spin_orbital else CLOSED_SHELL
    ours, *others = options.programs.split(",") if options.programs else known
    names, missing = einsums.installed(",".join(others))
    names.insert(0, ours)
    peaks: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as made:
        folder = Path(options.folder or made)
        arrays = kept_arrays(folder, options)
        program = str(folder / "program")
        compile_program(program, arrays, options)
        if not options.no_memory:
            peaks = {name: resident(name, str(folder)) for name in names}
        seconds = measure(names, arrays, program, options)
    o, v = arrays["t1"].shape
    print(f"{options.system}, {o} occupied and {v} virtual orbitals, {options.threads} thread(s)")
    print(f"not installed: {', '.join(missing) or 'none'}\n")
    print(table(seconds, peaks))
    if options.json:
        kept = machine(options) | {"clock": "CPU time" if options.cpu_time else "wall time"}
        result = {"machine": kept, "extents": {"o": o, "v": v}}
        text = json.dumps(result | {"seconds": seconds, "peak_resident": peaks}, indent=1)
        options.json.write_text(text + "\n")


if __name__ == "__main__":
    main()

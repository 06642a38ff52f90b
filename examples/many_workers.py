"""Four methods on two workers, integrals in an HDF5 file: DF-MP2, the ladder, CCSD and (T).

    python examples/many_workers.py                      two dask workers
    python examples/many_workers.py --kill               a worker dies in mid-run of each method
    mpirun -n 2 python examples/many_workers.py --mpi    two MPI ranks

Workers read the integrals that they need from the file. Ends with status 1 if an energy differs
from PySCF's, or the ladder from NumPy's, by more than 1e-10. Needs PySCF and h5py; dask or mpi4py.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import h5py
import numpy as np

import tcgen

WATER = "O 0 0 0.1173; H 0 0.7572 -0.4692; H 0 -0.7572 -0.4692"
# So small a molecule fits into one tile of each loop; less memory makes tiles, hence parts.
LIMITS = {"mp2_df": "64KiB", "df_ladder": "256KiB", "t_closed_shell": "64MiB"}
Numbers = dict[str, Any]


def write_integrals(path: Path, basis: str) -> Numbers:
    """Write all integrals to the file; energies and amplitudes of PySCF to compare with."""
    from pyscf import cc, df
    from pyscf.mp import dfmp2
    from pyscf_blocks import closed_shell, density_fitted, mean_field, molecule, tight

    reference = mean_field(molecule(WATER, basis))
    solver = tight(cc.rccsd.RCCSD(reference))
    eris = solver.ao2mo()
    solver.kernel(eris=eris)
    fitted = density_fitted(reference, "cc-pvdz-ri")
    mp2 = dfmp2.DFMP2(reference)
    mp2.with_df = df.DF(reference.mol, auxbasis="cc-pvdz-ri")
    blocks = closed_shell(solver, eris)
    # The spec stores the pairs of v_vvvv in triangles.
    blocks["v_vvvv"] = tcgen.pack_pairs(blocks["v_vvvv"], (0, 1), (2, 3))
    with h5py.File(path, "w") as file:
        for name, array in {**fitted, **blocks}.items():
            file[name] = array
        file["t1"], file["t2"] = solver.t1, solver.t2
    return {
        "mp2": float(mp2.kernel()[0]),
        "ccsd": float(solver.e_corr),
        "(T)": float(solver.ccsd_t(eris=eris)),
    }


def compiled(name: str, path: Path) -> Any:
    """A program of a shipped spec at the extents of the file."""
    with h5py.File(path, "r") as file:
        extents = {"o": file["e_o"].size, "v": file["e_v"].size, "x": file["b_ov"].shape[0]}
    used = {s.name for s in tcgen.read_spec_file(tcgen.spec_path(name)).spaces}
    chosen = {k: n for k, n in extents.items() if k in used}
    nest = {"objective": "time", "memory_limit": LIMITS[name]} if name in LIMITS else {}
    return tcgen.compile(tcgen.spec_path(name), extents=chosen, **nest)


class Runner:
    """Runs programs on workers, and where asked for kills one of them meanwhile."""

    def __init__(self, where: Any, cluster: Any, path: Path, say: Any) -> None:
        self.where, self.cluster, self.path, self.say = where, cluster, path, say

    def run(self, name: str, **given: np.ndarray) -> Any:
        """The distributed program, with all else bound to the data sets of the file."""
        program = self.program(name)
        run = tcgen.distribute(program, self.where, memory="1GiB", task_seconds=0)
        wanted = [t.name for t in program.manifest.tensors if t.role != "output"]
        stored = {n: tcgen.stored(self.path, n) for n in wanted if n not in given}
        return run.bind(**stored)

    def program(self, name: str) -> Any:
        """The program; one rank compiles it for all."""
        comm = self.where if hasattr(self.where, "bcast") else None
        if comm is None:
            return compiled(name, self.path)
        return comm.bcast(compiled(name, self.path) if comm.rank == 0 else None)

    def kill_soon(self) -> None:
        """End a worker without warning in a moment."""
        if self.cluster is not None:
            pid = next(iter(self.cluster.workers.values())).pid
            threading.Timer(0.05, os.kill, (pid, signal.SIGKILL)).start()


def compare(runner: Runner, expected: Numbers) -> float:
    """The largest deviation of all methods."""
    from diis import iterate

    deviations = []

    def note(name: str, value: float, right: float, run: Any) -> None:
        deviations.append(abs(value - right))
        report = run.report
        runner.say(
            f"{name:<9} {value:18.12f}  {value - right:+.1e}  {report.tasks} tasks on "
            f"{len(report.workers)} workers, flops x {report.repeated:.2f}, "
            f"{report.bytes_moved:,} bytes moved, {report.bytes_predicted:,} predicted"
        )

    with h5py.File(runner.path, "r") as file:
        b_ov, b_vv, e_o, e_v, t1, t2 = (
            file[n][...] for n in ("b_ov", "b_vv", "e_o", "e_v", "t1", "t2")
        )
    with runner.run("mp2_df") as run:
        runner.kill_soon()
        note("DF-MP2", float(run()["e"]), expected["mp2"], run)

    ovov = np.einsum("Pia,Pjb->iajb", b_ov, b_ov, optimize=True)
    d1 = e_o[:, None] - e_v
    tau = (ovov / (d1[:, :, None, None] + d1)).transpose(0, 2, 1, 3)
    dense = np.einsum("Pae,Pbf,ijef->ijab", b_vv, b_vv, tau, optimize=True)
    with runner.run("df_ladder", tau=tau) as run:
        runner.kill_soon()
        found = run(tau=tau)["r2"]
        note("ladder", float(np.linalg.norm(found)), float(np.linalg.norm(dense)), run)
        deviations.append(float(np.abs(found - dense).max()))

    with runner.run("t_closed_shell", t1=t1, t2=t2) as run:
        runner.kill_soon()
        note("(T)", float(run(t1=t1, t2=t2)["e_t"]), expected["(T)"], run)

    start = {"t1": np.zeros_like(t1), "t2": np.zeros_like(t2)}
    with runner.run("ccsd_closed_shell", **start) as run:
        run(**start)  # compiles the slices
        runner.kill_soon()
        solved = iterate(run, start, tolerance=1e-11)
        note("CCSD", solved.energy, expected["ccsd"], run)
    return max(deviations)


def main() -> int:
    """Run on two workers or on the ranks of mpirun; 0 if all energies are right."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--mpi", action="store_true", help="run on the ranks of mpirun")
    parser.add_argument("--kill", action="store_true", help="end a dask worker in each method")
    parser.add_argument("--basis", default="cc-pvdz")
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        path = Path(folder) / "integrals.h5"
        if options.mpi:
            from mpi4py import MPI

            comm = MPI.COMM_WORLD
            path = Path(comm.bcast(str(path)))
            expected = comm.bcast(write_integrals(path, options.basis) if comm.rank == 0 else None)
            runner = Runner(comm, None, path, print if comm.rank == 0 else lambda _: None)
        else:
            import dask
            from dask.distributed import Client, LocalCluster

            expected = write_integrals(path, options.basis)
            dask.config.set({"distributed.comm.timeouts.connect": "3s"})  # a dead worker is noticed
            cluster = stack.enter_context(
                LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0")
            )
            client = stack.enter_context(Client(cluster))
            runner = Runner(client, cluster if options.kill else None, path, print)
        deviation = compare(runner, expected)
        if options.mpi:
            comm.Barrier()  # the folder is that of rank 0
    return int(not deviation < 1e-10)


if __name__ == "__main__":
    sys.exit(main())

"""Dask workers and MPI ranks: values, lost workers, failures, submissions, the command line."""

from __future__ import annotations

import io
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcgen
from tcgen import ArgumentError, MemoryLimitError
from tcgen.distributed import dask_client
from tcgen.distributed.dask_client import _MESSAGE, _TASK
from tcgen.testing import random_arrays

pytestmark = pytest.mark.slow

h5py = pytest.importorskip("h5py")
EXTENTS = {"o": 4, "v": 20, "x": 40}
PATH = tcgen.spec_path("df_ladder")
LADDER = {"objective": "time", "memory_limit": "256KiB", "target": "numpy"}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    dask = pytest.importorskip("dask")
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "10s"}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50
        ) as made,
    ):
        yield made


@pytest.fixture
def client(cluster: Any) -> Iterator[Any]:
    import distributed

    with distributed.Client(cluster, set_as_default=False) as made:
        made.wait_for_workers(2)
        yield made


@pytest.fixture(scope="module")
def program() -> tcgen.Program:
    return tcgen.compile(PATH, extents=EXTENTS, **LADDER)


@pytest.fixture(scope="module")
def arrays() -> dict[str, np.ndarray]:
    made = random_arrays(tcgen.read_spec_file(PATH), EXTENTS, dtype="float64", seed=0)
    return {n: made[n] for n in ("b_vv", "tau")}


@pytest.fixture
def stored(arrays: dict[str, np.ndarray], tmp_path: Path) -> tcgen.Stored:
    with h5py.File(tmp_path / "ints.h5", "w") as file:
        for name, array in arrays.items():
            file[name] = array
    return tcgen.stored(tmp_path / "ints.h5", "b_vv")


@pytest.mark.parametrize("along", [None, "v"])
def test_a_dask_worker_that_dies_changes_nothing(
    cluster: Any,
    client: Any,
    program: tcgen.Program,
    arrays: dict[str, np.ndarray],
    stored: tcgen.Stored,
    along: str | None,
) -> None:
    expected = program(**arrays)["r2"]
    victim = next(iter(cluster.workers.values())).pid

    def kill(done: int, tasks: int) -> None:
        if done == 1:
            os.kill(victim, signal.SIGKILL)

    run = program.distribute(client, "1GiB", task_seconds=0, along=along, progress=kill)
    with run.bind(b_vv=stored) as held:
        for _ in range(2):
            np.testing.assert_allclose(held(tau=arrays["tau"])["r2"], expected, rtol=1e-12)
            held._progress = lambda done, tasks: None
        assert held.report.bytes_moved == held.report.bytes_predicted


class _Sent(pickle.Pickler):
    """Pickles the arguments of a task as the scheduler gets them: futures are names."""

    def persistent_id(self, value: Any) -> str | None:
        import distributed

        return value.key if isinstance(value, distributed.Future) else None


@contextmanager
def submissions(engine: Any) -> Iterator[tuple[list[list[int]], list[int]]]:
    """Bytes of the tasks that the engine submits, and of the values that it scatters.

    Tasks that are submitted without a flush between them are a list.
    """
    tasks: list[list[int]] = [[]]
    values: list[int] = []
    client = engine.client
    submit, scatter, flushed = client.submit, client.scatter, engine._flushed

    def counting_submit(function: Any, *given: Any, **options: Any) -> Any:
        buffer = io.BytesIO()
        _Sent(buffer).dump(given)
        tasks[-1].append(buffer.tell())
        return submit(function, *given, **options)

    def counting_scatter(messages: Any, **options: Any) -> Any:
        assert options["direct"], "values pass by the scheduler"
        values.extend(int(getattr(message.value, "nbytes", 0)) for message in messages)
        return scatter(messages, **options)

    async def counting_flushed() -> None:
        tasks.append([])
        await flushed()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client, "submit", counting_submit)
        patch.setattr(client, "scatter", counting_scatter)
        patch.setattr(engine, "_flushed", counting_flushed)
        yield tasks, values


ROWS = """
space o = 2
space v = 300
index i : o
index a b : v
input x[v,o] constant, f[v,v] constant, t[v,o]
output r
r[a,i] = f[a,b]*t[b,i] + x[a,i]
"""


@pytest.mark.parametrize("kind", ["numpy", "dask"])
def test_hundreds_of_tasks_are_submitted_few_at_a_time(
    client: Any, tmp_path: Path, kind: str
) -> None:
    da = pytest.importorskip("dask.array")
    program = tcgen.compile(ROWS, target="numpy")
    made = random_arrays(tcgen.read_spec(ROWS), {"o": 2, "v": 300}, dtype="float64", seed=0)
    inputs = {n: made[n] for n in ("x", "f", "t")}
    np.save(tmp_path / "f.npy", made["f"])
    given = da.from_array(made["t"], chunks=(300, 2)) if kind == "dask" else made["t"]
    with program.distribute(client, "1GiB", task_seconds=0, along="v") as run:
        run._engine.slots = 300
        held = run.bind(x=made["x"], f=tcgen.stored(tmp_path / "f.npy"))
        with submissions(run._engine) as (tasks, _):
            found = held(t=given)["r"]
        assert held.report.tasks == 300
        assert sum(map(len, tasks)) >= 300
        # A batch may follow the rest of the one before it.
        assert max(map(len, tasks)) < 2 * (_MESSAGE // _TASK)
        # The task that reduces all results takes a name of each of them.
        every = [count for batch in tasks for count in batch]
        assert sum(count > _TASK for count in every) <= len(held.report.stages)
        found = client.compute(found).result() if kind == "dask" else found
    np.testing.assert_allclose(found, program(**inputs)["r"], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("along", [None, "v"])
def test_arrays_pass_by_the_scheduler_once(
    client: Any, program: tcgen.Program, arrays: dict[str, np.ndarray], along: str | None
) -> None:
    with program.distribute(client, "1GiB", task_seconds=0, along=along) as run:
        # The first call sends the stages.
        run(**arrays)
        with submissions(run._engine) as (tasks, values):
            run(**arrays)
        report = run.report
    assert report.bytes_moved == report.bytes_predicted > 128 * 1024
    assert sum(values) == sum(array.nbytes for array in arrays.values())
    assert sum(map(len, tasks)) == report.tasks
    assert max(count for batch in tasks for count in batch) <= _TASK


def test_dask_arrays_in_give_dask_arrays_out(
    client: Any, program: tcgen.Program, arrays: dict[str, np.ndarray]
) -> None:
    da = pytest.importorskip("dask.array")
    tau = da.from_array(arrays["tau"], chunks=(2, 2, 10, 20))
    expected = program(**arrays)["r2"]
    for along in ("v", None):
        with program.distribute(client, "1GiB", task_seconds=0, along=along) as run:
            out = run(b_vv=arrays["b_vv"], tau=tau)["r2"]
            assert isinstance(out, da.Array)
            assert out.shape == expected.shape
            np.testing.assert_allclose(client.compute(out).result(), expected, rtol=1e-12)
            unknown = tau[tau.sum(axis=(1, 2, 3)) > -1e9]
            with pytest.raises(ArgumentError, match=r"tau.*compute_chunk_sizes"):
                run(b_vv=arrays["b_vv"], tau=unknown)


def test_calls_with_dask_arrays_survive_the_loss_of_all_workers(
    cluster: Any, client: Any, program: tcgen.Program, arrays: dict[str, np.ndarray]
) -> None:
    da = pytest.importorskip("dask.array")
    tau = da.from_array(arrays["tau"], chunks=(2, 2, 10, 20))
    expected = program(**arrays)["r2"]
    program = tcgen.compile(PATH, extents=EXTENTS, target="numpy")
    whole = program.distribute(client, "1GiB", task_seconds=0, along="v")
    with whole.bind(b_vv=arrays["b_vv"]) as run:
        made = client.persist(run(tau=tau)["r2"])
        for worker in list(cluster.workers.values()):
            os.kill(worker.pid, signal.SIGKILL)
        for given in (tau, arrays["tau"], tau):
            out = run(tau=given)["r2"]
            out = out if given is arrays["tau"] else client.compute(out).result()
            np.testing.assert_allclose(out, expected, rtol=1e-12)
        with pytest.raises(tcgen.UnavailableError, match="lost with the worker"):
            run(tau=made)


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Any, Any]]:
    """A cluster of two workers in threads of this process, with a client; limits are short."""
    distributed = pytest.importorskip("distributed")
    for name, seconds in {"_ANSWER": 0.3, "_START": 2, "_WAIT": 2, "_LOOK": 0.3}.items():
        monkeypatch.setattr(dask_client, name, seconds)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as made,
        distributed.Client(made, set_as_default=False) as client,
    ):
        yield made, client


@pytest.mark.parametrize("kind", ["numpy", "dask"])
@pytest.mark.parametrize("state", ["busy", "paused"])
def test_workers_that_are_busy_or_paused_are_left_out(
    threads: tuple[Any, Any], state: str, kind: str
) -> None:
    da = pytest.importorskip("dask.array")
    cluster, client = threads
    first, other = cluster.workers.values()
    program = tcgen.compile(ROWS, extents={"v": 6}, target="numpy")
    made = random_arrays(tcgen.read_spec(ROWS), {"o": 2, "v": 6}, dtype="float64", seed=0)
    inputs = {n: made[n] for n in ("x", "f", "t")}

    def pause(worker: Any) -> None:
        worker.memory_manager.memory_pause_fraction = 1e-9
        while cluster.scheduler.workers[worker.address].status.name != "paused":
            time.sleep(0.01)

    warned: Any = nullcontext()
    if state == "busy":
        task = client.submit(time.sleep, 3, workers=[first.address])
        while not first.state.executing_count:
            time.sleep(0.01)
    else:
        pause(first)
        warned = pytest.warns(RuntimeWarning, match=f"{first.address}.*paused")
    with warned:
        run = program.distribute(client, "1KiB", task_seconds=0, along="v")
    assert run._engine.slots == 1
    given = {**inputs, "t": da.from_array(made["t"])} if kind == "dask" else inputs
    out = run(**given)["r"]
    assert [worker.tasks for worker in run.report.workers] == [run.report.tasks]
    out = client.compute(out).result() if kind == "dask" else out
    np.testing.assert_allclose(out, program(**inputs)["r"], rtol=1e-12)
    if state == "busy":
        task.result()
    else:
        pause(other)
        with pytest.raises(tcgen.UnavailableError, match="2 that are paused"):
            program.distribute(client, "1GiB")


@pytest.mark.parametrize("kind", ["numpy", "dask"])
def test_calls_without_workers_or_with_a_closed_client_are_refused(
    threads: tuple[Any, Any], kind: str
) -> None:
    da = pytest.importorskip("dask.array")
    cluster, client = threads
    program = tcgen.compile(ROWS, extents={"v": 6}, target="numpy")
    inputs = random_arrays(tcgen.read_spec(ROWS), {"o": 2, "v": 6}, dtype="float64", seed=0)
    given = {n: inputs[n] for n in ("x", "f", "t")}
    if kind == "dask":
        given["t"] = da.from_array(given["t"])
    run = program.distribute(client, "1GiB", along="v")
    run(**given)
    cluster.scale(0)
    while cluster.scheduler.workers:
        time.sleep(0.01)
    with pytest.raises(tcgen.UnavailableError, match="no workers"):
        run(**given)
    client.close()
    for _ in range(2):
        for call in (lambda: run(**given), lambda: program.distribute(client, "1GiB")):
            with pytest.raises(tcgen.UnavailableError, match="client is closed"):
                call()
        cluster.close()  # with it, the loop of the client ends


def test_more_memory_than_a_dask_worker_has_is_refused(client: Any, program: tcgen.Program) -> None:
    with pytest.raises(MemoryLimitError, match=r"memory=\d+"):
        program.distribute(client, 2**60)


def test_the_command_line_runs_on_a_dask_scheduler(
    cluster: Any, program: tcgen.Program, stored: tcgen.Stored, tmp_path: Path
) -> None:
    program.save(tmp_path / "ladder")
    command = [sys.executable, "-m", "tcgen", "run", str(tmp_path / "ladder")]
    command += ["--inputs", stored.path, "--scheduler", cluster.scheduler_address, "--json"]
    found = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert found.returncode == 0, found.stderr
    report = json.loads(found.stdout)["distributed"]
    assert report["bytes_moved"] == report["bytes_predicted"] > 0


RANKS = """
import sys
import numpy as np
import tcgen
from mpi4py import MPI

folder, path = sys.argv[1:3]
comm = MPI.COMM_WORLD
program = tcgen.load(folder)
tau = tcgen.stored(path, "tau").read((slice(None),) * 4)
right = np.load(folder + "/r2.npy")
for along in (None, "v"):
    run = program.distribute(comm, "1GiB", task_seconds=0, along=along)
    with run.bind(b_vv=tcgen.stored(path, "b_vv")) as held:
        first = held(tau=tau)["r2"]
        for _ in range(4):
            again = held(tau=tau)["r2"]
            assert abs(again - right).max() < 1e-10
            assert held.report.bytes_moved == held.report.bytes_predicted
        assert held.report.tasks >= 2
        assert len(run._engine._windows) <= 4  # tau, and three results that are in use
        assert (first == again).all() and not first.flags.writeable
        # A result stands once on the node, and need not move to be an argument.
        [window] = [w for w in run._engine._windows if w.has(first)]
        comm.Barrier()
        if comm.rank == 0:
            np.frombuffer(window.window.Shared_query(0)[0])[:] = 7
        comm.Barrier()
        assert (first == 7).all()
        assert run._engine.share(tau).moves and not run._engine.share(again).moves
        held(tau=again)
        assert held.report.bytes_moved == held.report.bytes_predicted
    least = held.report.need_bytes
    tight = program.distribute(comm, least, task_seconds=0, along=along)
    with tight.bind(b_vv=tcgen.stored(path, "b_vv")) as held:
        held(tau=tau)
        assert held.report.peak_bytes <= held.report.need_bytes <= least
if sys.argv[3] == "fail":
    from tcgen.distributed import mpi

    if comm.rank == 1:
        mpi.run_task = lambda job, task: np.zeros(2)[5]
    program.distribute(comm, "1GiB", task_seconds=0)(
        b_vv=tcgen.stored(path, "b_vv"), tau=tau)
print("rank", comm.rank, "done")
"""


# Rank 1 makes another call than rank 0: all ranks raise, and the next call has its own result.
APART = """
import sys
import numpy as np
import tcgen
from mpi4py import MPI

comm = MPI.COMM_WORLD
other = comm.rank == 1
SPEC = '''
space o = 4
space v = 6
index i : o
index a b : v
input f[v,v] constant, t[o,v]
output r
r[i,a] = f[a,b]*t[i,b]
'''
program = tcgen.compile(SPEC, target="numpy")
twice = tcgen.compile(SPEC.replace("= f", "= 2*f"), target="numpy")
f, t = np.ones((6, 6)), np.ones((4, 6))
np.save(sys.argv[1], f)
options = {"along": "v", "task_seconds": 0}
run = tcgen.distribute(program, comm, "1GiB", **options)
held = run.bind(f=f)
failing = tcgen.distribute(program, comm, **options, progress=lambda *_: 1 // (not other))
cases = {
    "memory": lambda: tcgen.distribute(program, comm, "much" if other else "1GiB", **options),
    "bytes": lambda: tcgen.distribute(program, comm, 2**30 + other, **options),
    "seconds": lambda: tcgen.distribute(program, comm, along="v", task_seconds=float(other)),
    "along": lambda: tcgen.distribute(program, comm, along="o" if other else "v"),
    "equations": lambda: tcgen.distribute(twice if other else program, comm, **options),
    "closed": lambda: (other and run.close(), run(f=f, t=t)),
    "name": lambda: run(f, t=t) if other else run(f=f, t=t),
    "element type": lambda: run(f=f, t=t.astype("f4") if other else t),
    "missing": lambda: run(f=f) if other else run(f=f, t=t),
    "unknown": lambda: run.bind(g=f) if other else run.bind(f=f),
    "bound already": lambda: held(f=f, t=t) if other else held(t=t),
    "axes": lambda: run.bind(f=f[0] if other else f),
    "shape of a constant": lambda: run.bind(f=f[:5, :5] if other else f),
    "shapes": lambda: run(f=f[:5, :5], t=t[:, :5]) if other else run(f=f, t=t),
    "contradiction": lambda: run(f=f, t=t[:, :5] if other else t),
    "file": lambda: run.bind(f=f if other else tcgen.stored(sys.argv[1])),
    "operation": lambda: run.bind(f=f) if other else run(f=f, t=t),
    "program": lambda: (held(t=t) if other else run(f=f, t=t)),
    "progress": lambda: failing(f=f, t=t),
}
for name, case in cases.items():
    try:
        case()
    except (tcgen.TcgenError, ZeroDivisionError) as error:
        told = type(error).__name__
    else:
        told = "nothing"
    assert told != "nothing", name
    assert other or told != "ZeroDivisionError"
    if name == "closed" and not other:
        run.close()
    assert (run(f=2 * f, t=t)["r"] == 12).all() and (held(t=t)["r"] == 6).all(), name
print("rank", comm.rank, "done")
"""


def mpirun(*command: object) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("mpi4py")
    if shutil.which("mpirun") is None:
        pytest.skip("mpirun is missing")
    every = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", sys.executable]
    every += map(str, command)
    return subprocess.run(every, capture_output=True, text=True, timeout=600)


def test_mpi_ranks_that_differ_all_raise_and_stay_in_step(tmp_path: Path) -> None:
    (tmp_path / "apart.py").write_text(APART)
    found = mpirun(tmp_path / "apart.py", tmp_path / "f.npy")
    assert found.returncode == 0, found.stderr
    assert found.stdout.count("done") == 2


def test_a_rank_without_the_file_ends_the_command_on_all(
    program: tcgen.Program, arrays: dict[str, np.ndarray], tmp_path: Path
) -> None:
    folder = program.save(tmp_path / "ladder")
    np.savez(tmp_path / "in0.npz", **arrays)
    script = "import sys, tcgen.__main__ as m; from mpi4py import MPI\n"
    script += "sys.argv[4] = sys.argv[4].replace('0.npz', f'{MPI.COMM_WORLD.rank}.npz'); m.main()"
    (tmp_path / "rank.py").write_text(script)
    found = mpirun(tmp_path / "rank.py", "run", folder, "--inputs", tmp_path / "in0.npz", "--mpi")
    assert found.returncode == 2
    assert found.stderr.count("in1.npz: No such file") == 2


@pytest.mark.parametrize("ending", ["well", "fail"])
def test_mpi_ranks_agree_and_a_failure_ends_all(
    program: tcgen.Program,
    arrays: dict[str, np.ndarray],
    stored: tcgen.Stored,
    tmp_path: Path,
    ending: str,
) -> None:
    folder = program.save(tmp_path / "ladder")
    np.save(folder / "r2.npy", program(**arrays)["r2"])
    (tmp_path / "ranks.py").write_text(RANKS)
    found = mpirun(tmp_path / "ranks.py", folder, stored.path, ending)
    if ending == "well":
        assert found.returncode == 0, found.stderr
        assert found.stdout.count("done") == 2
    else:
        assert found.returncode != 0
        assert "IndexError" in found.stderr

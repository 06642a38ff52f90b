"""Programs on the threads and processes of an executor: values, memory, bytes, refusals."""

from __future__ import annotations

import multiprocessing
import re
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import tcgen
from tcgen import ArgumentError, DtypeError, MemoryLimitError, PlanError, UnavailableError
from tcgen.cli.run import _worker_inputs
from tcgen.distributed import worker
from tcgen.distributed.plan import Cluster, make_plan
from tcgen.testing import random_arrays

EXTENTS = {"o": 3, "v": 7}
LADDER = """
space o = 3
space v = 7
index i j : o
index a b c d : v
input v_vvvv[v,v,v,v] constant, t[o,o,v,v], f[v,v] constant
output r, e
r[i,j,a,b] = v_vvvv[a,c,b,d]*t[i,j,c,d] + f[a,c]*t[i,j,c,b]
e = f[a,b]*t[i,i,a,b]
"""


@pytest.fixture(scope="module")
def program() -> tcgen.Program:
    return tcgen.compile(LADDER, target="numpy")


@pytest.fixture(scope="module")
def arrays(program: tcgen.Program) -> dict[str, np.ndarray]:
    return random_arrays(tcgen.read_spec(LADDER), EXTENTS, dtype="float64", seed=0)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    worker.SHELF.clear()
    with ThreadPoolExecutor(2) as made:
        yield made


def bound(run: tcgen.DistributedProgram, arrays: dict[str, np.ndarray]) -> tcgen.DistributedProgram:
    return run.bind(v_vvvv=arrays["v_vvvv"], f=arrays["f"])


def test_slices_give_the_results_of_the_whole(
    program: tcgen.Program, arrays: dict[str, np.ndarray], pool: ThreadPoolExecutor
) -> None:
    inputs = {n: arrays[n] for n in ("v_vvvv", "t", "f")}
    expected = program(**inputs)
    with program.distribute(pool, task_seconds=0, along="v") as run:
        one = run(**inputs)
        for name, value in expected.items():
            np.testing.assert_allclose(one[name], value, rtol=1e-12, atol=1e-12)
        assert run.report.tasks == 2
        assert {w.tasks for w in run.report.workers} == {2}
        with bound(run, arrays) as held:
            for _ in range(2):  # constants are there the second time
                again = held(t=arrays["t"])
                assert all((again[n] == one[n]).all() for n in one)


REDUCED = """
space o = 4
space v = 6
index i : o
index a : v
input r[o,v], q[o,v]
output e, m, p, s
e = max(i,a) abs(r[i,a])
m[i] = min(a) r[i,a]
p = prod(i,a) r[i,a]
s = r[i,a]*q[i,a]
"""


@pytest.mark.parametrize("along", ["o", "v"])
def test_maxima_minima_and_products_over_the_space_that_is_cut(
    pool: ThreadPoolExecutor, along: str
) -> None:
    program = tcgen.compile(REDUCED, target="numpy")
    assert program.parts() == 1
    r, q = np.random.default_rng(0).normal(size=(2, 4, 6))
    with program.distribute(pool, task_seconds=0, along=along) as run:
        out = run(r=r, q=q)
        assert run.report.tasks == 2
    expected = {"e": np.abs(r).max(), "m": r.min(axis=1), "p": r.prod(), "s": (r * q).sum()}
    for name, value in expected.items():
        np.testing.assert_allclose(out[name], value, rtol=1e-12)


def test_equal_tasks_give_equal_bits_on_any_number_of_workers(
    program: tcgen.Program, arrays: dict[str, np.ndarray]
) -> None:
    found = []
    for workers in (1, 2, 3):
        with ThreadPoolExecutor(workers) as pool:
            run = program.distribute(pool, task_seconds=0, along="v")
            run._engine.slots = 3
            found.append(run(**{n: arrays[n] for n in ("v_vvvv", "t", "f")}))
    for other in found[1:]:
        assert all((other[n] == found[0][n]).all() for n in other)


def test_constants_in_a_file_are_read_once_as_rectangles(
    program: tcgen.Program,
    arrays: dict[str, np.ndarray],
    pool: ThreadPoolExecutor,
    tmp_path: Path,
) -> None:
    for name in ("v_vvvv", "f"):
        np.save(tmp_path / f"{name}.npy", arrays[name])
    stored = {n: tcgen.stored(tmp_path / f"{n}.npy") for n in ("v_vvvv", "f")}
    with program.distribute(pool, task_seconds=0, along="v").bind(**stored) as run:
        expected = program(**{n: arrays[n] for n in ("v_vvvv", "t", "f")})
        out = run(t=arrays["t"])
        np.testing.assert_allclose(out["r"], expected["r"], rtol=1e-12, atol=1e-12)
        assert run.report.bytes_moved == run.report.bytes_predicted
        read = 8 * (7**4 + 7**2)
        results = 8 * (3 * 3 * 7 * 7 + 2)
        assert run.report.bytes_moved == read + results
        run(t=arrays["t"])
        assert run.report.bytes_moved == run.report.bytes_predicted == results


@pytest.mark.parametrize("share", [1.0, 1.2, 2.0, 8.0])
def test_a_worker_stays_within_its_memory(
    program: tcgen.Program, arrays: dict[str, np.ndarray], tmp_path: Path, share: float
) -> None:
    worker.SHELF.clear()
    np.save(tmp_path / "v.npy", arrays["v_vvvv"])
    held = {"v_vvvv": tcgen.stored(tmp_path / "v.npy"), "f": arrays["f"]}
    with ThreadPoolExecutor(1) as pool:
        run = program.distribute(pool, 1, along="v", task_seconds=0).bind(**held)
        with pytest.raises(MemoryLimitError) as caught:
            run(t=arrays["t"])
        least = int(re.search(r"memory=(\d+)", str(caught.value))[1])
        limit = int(least * share)
        run = program.distribute(pool, limit, along="v", task_seconds=0).bind(**held)
        expected = program(**{n: arrays[n] for n in ("v_vvvv", "t", "f")})
        for _ in range(2):
            np.testing.assert_allclose(run(t=arrays["t"])["r"], expected["r"], rtol=1e-12)
            assert run.report.peak_bytes <= limit
            assert run.report.need_bytes <= limit
            assert run.report.bytes_moved == run.report.bytes_predicted
        # All of v_vvvv is there after the first call where there is room for it.
        assert (run.report.bytes_reloaded > 0) == (share < 8)


@pytest.mark.few(1)
@pytest.mark.parametrize("memory", ["1MiB", None])
def test_parts_share_the_constant_phase(tmp_path: Path, memory: str | None) -> None:
    worker.SHELF.clear()
    spec = Path(tcgen.spec_path("df_ladder")).read_text(encoding="utf-8")
    spec = spec.replace("input  b_vv", "input  f[v,v] constant, g[v,v] constant\ninput  b_vv")
    spec += "\nh[a,b] = f[a,e]*g[e,b]\nr2[i,j,a,b] += h[a,e]*tau[i,j,e,b]\n"
    extents = {"o": 3, "v": 12, "x": 20}
    program = tcgen.compile(
        spec, extents=extents, objective="time", target="numpy", memory_limit="24KiB"
    )
    arrays = random_arrays(tcgen.read_spec(spec), extents, dtype="float64", seed=0)
    inputs = {n: arrays[n] for n in ("f", "g", "b_vv", "tau")}
    for name in ("f", "g"):
        np.save(tmp_path / f"{name}.npy", inputs.pop(name))
    held = {n: tcgen.stored(tmp_path / f"{n}.npy") for n in ("f", "g")}
    expected = program(**inputs, f=arrays["f"], g=arrays["g"])["r2"]
    with ThreadPoolExecutor(2) as pool:
        run = program.distribute(pool, memory or "1GiB", task_seconds=0).bind(**held)
        for _ in range(2):
            np.testing.assert_allclose(run(**inputs)["r2"], expected, rtol=1e-12, atol=1e-12)


def test_parts_add_up_and_only_touched_elements_are_read(tmp_path: Path) -> None:
    worker.SHELF.clear()
    extents = {"o": 3, "v": 12, "x": 20}
    path = tcgen.spec_path("df_ladder")
    program = tcgen.compile(
        path, extents=extents, objective="time", target="numpy", memory_limit="20KiB"
    )
    arrays = random_arrays(tcgen.read_spec_file(path), extents, dtype="float64", seed=0)
    inputs = {n: arrays[n] for n in ("b_vv", "tau")}
    assert program.parts(extents) > 2
    np.save(tmp_path / "b.npy", inputs["b_vv"])
    with ThreadPoolExecutor(2) as pool, program.distribute(pool, task_seconds=0) as run:
        held = run.bind(b_vv=tcgen.stored(tmp_path / "b.npy"))
        out = held(tau=inputs["tau"])
        assert held.report.tasks == 16  # eight for each worker
        assert held.report.bytes_moved == held.report.bytes_predicted
    np.testing.assert_allclose(out["r2"], program(**inputs)["r2"], rtol=1e-12, atol=1e-12)


PACKED = """
space o = 3
space v = 7
index i : o
index a b c d : v
input w[o,v,v,v] antisymmetric (1,2,3) packed (1,2,3) constant
input g[v,v,v,v] symmetric (0,1) (2,3) packed (0,1) (2,3) constant stored (2,3,0,1)
input t[v,v] symmetric (0,1) packed (0,1)
output r
r[i,a] = w[i,b,a,c]*g[a,b,c,d]*t[a,d]
"""


@pytest.mark.parametrize("kept", ["file", "memory", "call"])
def test_slices_of_packed_inputs(pool: ThreadPoolExecutor, tmp_path: Path, kept: str) -> None:
    program = tcgen.compile(PACKED, target="numpy")
    arrays = random_arrays(tcgen.read_spec(PACKED), EXTENTS, dtype="float64", seed=0)
    inputs = {n: arrays[n] for n in ("w", "g", "t")}
    expected = program(**inputs)["r"]
    held = {n: inputs[n] for n in ("w", "g") if kept != "call"}
    for name in held if kept == "file" else ():
        np.save(tmp_path / f"{name}.npy", held[name])
        held[name] = tcgen.stored(tmp_path / f"{name}.npy")
    rest = {n: a for n, a in inputs.items() if n not in held}
    with program.distribute(pool, task_seconds=0, along="v").bind(**held) as run:
        for _ in range(2):
            np.testing.assert_allclose(run(**rest)["r"], expected, rtol=1e-12, atol=1e-12)
            assert run.report.bytes_moved == run.report.bytes_predicted
            assert run.report.peak_bytes <= run.report.need_bytes


@pytest.mark.slow
def test_a_shipped_spec_with_packed_integrals_needs_a_slice_of_them() -> None:
    extents = {"o": 4, "v": 60}
    path = tcgen.spec_path("ccsd_closed_shell")
    options = {"optimize": False, "objective": "none"}  # else parts of a nest are the tasks
    program = tcgen.compile(path, extents=extents, target="numpy", **options)
    held = {t.name: 0 for t in program.manifest.tensors if t.role != "output" and not t.volatile}
    whole = 8 * (60 * 61 // 2) ** 2
    plan = make_plan(program, extents, held, Cluster(20, 1, 2**40, task_seconds=0))
    assert {stage.along for stage in plan.stages} == {"v"}
    read = [
        reading.nbytes
        for stage, own in zip(plan.stages, plan.programs, strict=True)
        for task in plan.tasks
        for reading in stage.readings(own, task.first, task.last)
        if task.stage == stage.number and reading.source == "v_vvvv"
    ]
    # All slices together read each element off the diagonal twice at most.
    assert len(read) == 20
    assert whole < sum(read) < 2 * whole
    assert max(read) < whole / 9


@pytest.mark.slow
def test_processes_map_arrays_from_files(
    program: tcgen.Program, arrays: dict[str, np.ndarray], tmp_path: Path
) -> None:
    inputs = {n: arrays[n] for n in ("v_vvvv", "t", "f")}
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        with program.distribute(pool, task_seconds=0, along="v", scratch=tmp_path) as run:
            np.testing.assert_allclose(run(**inputs)["r"], program(**inputs)["r"], rtol=1e-12)
            assert run.report.bytes_moved == run.report.bytes_predicted
        assert list(tmp_path.iterdir()) == []
        for process in pool._processes.values():
            process.kill()
        with pytest.raises(UnavailableError, match="make a new one"):
            program.distribute(pool, along="v")(**inputs)


def test_refusals_say_what_to_do(
    program: tcgen.Program, arrays: dict[str, np.ndarray], pool: ThreadPoolExecutor
) -> None:
    with pytest.raises(ArgumentError, match=r"Client.*communicator.*executor"):
        program.distribute("tcp://here")
    with pytest.raises(ArgumentError, match=r"q.*o, v"):
        program.distribute(pool, along="q")(**{n: arrays[n] for n in ("v_vvvv", "t", "f")})
    run = program.distribute(pool)
    with pytest.raises(ArgumentError, match="unknown input x"):
        run.bind(x=arrays["f"])
    with pytest.raises(DtypeError, match="float32"):
        run.bind(f=arrays["f"].astype("float32"))
    with pytest.raises(ArgumentError, match="missing input"):
        run(t=arrays["t"])
    with pytest.raises(ArgumentError, match="f is bound already"):
        bound(run, arrays)(t=arrays["t"], f=arrays["f"])
    with pytest.raises(ArgumentError, match="call it first"):
        _ = run.report
    accumulating = LADDER.replace("output r, e", "output r accumulate, e")
    with pytest.raises(PlanError, match="r accumulates"):
        tcgen.compile(accumulating, target="numpy").distribute(pool)


def test_a_worker_of_another_version_is_named(
    program: tcgen.Program,
    arrays: dict[str, np.ndarray],
    pool: ThreadPoolExecutor,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker, "__version__", "0.0.1")
    with pytest.raises(UnavailableError, match=r"0\.0\.1.*same version"):
        program.distribute(pool, along="v")(**{n: arrays[n] for n in ("v_vvvv", "t", "f")})


def test_a_missing_engine_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    from tcgen.distributed import distribute

    monkeypatch.setattr(distribute, "find_spec", lambda name: None)
    with pytest.raises(UnavailableError, match=r"'\.\[dask\]'"):
        distribute.dask_client("tcp://127.0.0.1:1")
    with pytest.raises(UnavailableError, match=r"'\.\[mpi\]'"):
        distribute.mpi_world()


def test_workers_that_die_again_and_again_end_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    from tcgen.distributed.dask_client import DaskEngine
    from tcgen.distributed.handles import Handle
    from tcgen.distributed.stage import Task

    engine = object.__new__(DaskEngine)
    engine._calls = {}
    tasks = [Task(0, n, n, n + 1) for n in range(3)]
    tried = []

    def lost(*given: object) -> list:
        tried.append(len(given[-1]))
        return [(task, None) for task in given[-1]]

    monkeypatch.setattr(engine, "_attempt", lost)
    with pytest.raises(UnavailableError, match=r"4 times while 3 tasks.*memory"):
        list(engine.run(worker.Job("run", Handle(None, moves=False), {}, {}, 0), tasks))
    assert tried == [3, 3, 3, 3]


def test_a_process_drops_what_holds_what_it_drops() -> None:
    shelf = worker.Shelf()
    shelf.put("array", "x", 10, limit=30)
    shelf.put("bound", "y", 10, limit=30, needs=["array"])
    shelf.put("other", "z", 10, limit=30)
    shelf.put("more", "w", 10, limit=30)  # "array" goes first, and "bound" with it
    assert shelf.nbytes == 20
    assert shelf.load("other", lambda: ("new", 10), 30) == "z"
    assert shelf.load("bound", lambda: ("new", 10), 30) == "new"


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_task_of_the_pool_runs_a_program_on_the_pool(
    program: tcgen.Program, arrays: dict[str, np.ndarray], threads: int
) -> None:
    inputs = {n: arrays[n] for n in ("v_vvvv", "t", "f")}
    expected = program(**inputs)
    with ThreadPoolExecutor(threads) as pool:

        def task(_: int) -> dict[str, np.ndarray]:
            with program.distribute(pool, task_seconds=0, along="v") as run:
                run._engine.slots = 3
                return run(**inputs)

        # As many callers as threads, and more: none is left to help them.
        for found in [f.result(60) for f in [pool.submit(task, n) for n in range(threads + 1)]]:
            np.testing.assert_allclose(found["r"], expected["r"], rtol=1e-12, atol=1e-12)


def test_a_bound_program_that_closes_leaves_the_values_of_others(
    program: tcgen.Program, arrays: dict[str, np.ndarray], tmp_path: Path
) -> None:
    t = arrays["t"]
    with ProcessPoolExecutor(1) as pool:
        run = tcgen.distribute(program, pool, along="v", scratch=tmp_path)
        with bound(run, arrays) as first, bound(run, arrays) as second:
            expected = first(t=t)["r"]
            with bound(run, arrays) as third:
                third(t=t)
            first.close()
            assert (second(t=t)["r"] == expected).all()
            assert (first(t=t)["r"] == expected).all()
        assert not list(tmp_path.iterdir())


WITH_DEFAULTS = """
space o = 4
space v = 5
index i : o
index a : v
input x[o,v], scale = 2, shift constant = 1/2
output r, e
r[i,a] = scale*x[i,a] + shift
e = scale*x[i,a]*x[i,a]
"""


@pytest.mark.parametrize("passed", [{}, {"scale": 3}, {"shift": -1.0}, {"scale": 3, "shift": 4}])
@pytest.mark.parametrize("constants", [(), ("x",), ("shift",), ("x", "scale", "shift")])
def test_scalars_that_are_left_out_have_their_defaults(
    passed: dict[str, float], constants: tuple[str, ...], pool: ThreadPoolExecutor
) -> None:
    made = tcgen.compile(WITH_DEFAULTS, target="numpy")
    inputs = {"x": np.arange(20.0).reshape(4, 5), **passed}
    held = {name: inputs[name] for name in constants if name in inputs}
    expected = made(**inputs)
    with made.distribute(pool, task_seconds=0) as run, run.bind(**held) as program:
        for _ in range(2):
            found = program(**{n: a for n, a in inputs.items() if n not in held})
            np.testing.assert_array_equal(found["r"], expected["r"])
            assert found["e"] == pytest.approx(expected["e"], rel=1e-14)


@pytest.mark.parametrize("ending", ["npz", "h5"])
def test_workers_of_the_command_line_take_all_arrays_of_a_file(ending: str, tmp_path: Path) -> None:
    """Scalars with a default in the file replace it, and names that are no inputs are refused."""
    made = tcgen.compile(WITH_DEFAULTS, target="numpy")
    file = tmp_path / f"inputs.{ending}"
    arrays = {"x": np.ones((4, 5)), "scale": np.array(7.0)}

    def write(more: dict[str, np.ndarray]) -> None:
        if ending == "npz":
            np.savez(file, **arrays, **more)
            return
        with pytest.importorskip("h5py").File(file, "w") as opened:
            for name, array in {**arrays, **more}.items():
                opened[name] = array

    write({})
    with ThreadPoolExecutor(2) as threads, made.distribute(threads) as run:
        found = run(**_worker_inputs(made, file))
        assert (found["r"] == 7.5).all()
        assert found["e"] == 140
        write({"shfit": np.array(1.0)})
        with pytest.raises(ArgumentError, match="unknown input shfit"):
            run(**_worker_inputs(made, file))

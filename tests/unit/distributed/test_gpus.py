"""Programs on several GPUs of a process, with a stand-in for CuPy and two devices."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import tcgen
from support import cupy_stand_in
from support.cupy_stand_in import Device, Kernel, Stream
from support.marks import slow
from support.messages import mentions, says
from support.paths import ROOT
from tcgen import ArgumentError, MemoryLimitError, UnavailableError
from tcgen.cli.commands import main
from tcgen.testing import random_arrays

pytestmark = [
    pytest.mark.default_thresholds,
    pytest.mark.skipif(shutil.which("g++") is None, reason="no C compiler: needs g++"),
]
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
ENERGY = """
space o = 4
space v = 5
index i j k : o
index a b : v
input g[o,v,o,v]
output e, s
e = g[i,a,j,b]*g[i,b,j,a]
s[i,j] = g[i,a,k,b]*g[j,a,k,b]
"""


PAIRS = (ROOT / "specs" / "mp2_df.spec").read_text()


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    Stream.reset()
    monkeypatch.setitem(sys.modules, "cupy", cupy_stand_in.module)
    Device.count = 2
    yield
    Stream.reset()


@pytest.fixture(scope="module")
def program() -> tcgen.Program:
    return tcgen.compile(LADDER, target="cuda")


def inputs(spec: str, extents: dict[str, int], dtype: str = "float64") -> dict[str, Any]:
    return random_arrays(tcgen.read_spec(spec), extents, dtype=dtype, seed=2)


def launches_by_device(monkeypatch: pytest.MonkeyPatch) -> dict[int, int]:
    found: dict[int, int] = {}
    launch = Kernel.__call__

    def counted(kernel: Kernel, *args: Any, **options: Any) -> None:
        found[Device.current] = found.get(Device.current, 0) + 1
        launch(kernel, *args, **options)

    monkeypatch.setattr(Kernel, "__call__", counted)
    return found


def check(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert list(found) == list(expected)
    for name, value in expected.items():
        assert type(found[name]) is np.ndarray
        np.testing.assert_allclose(found[name], value, rtol=1e-12, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("numbers", [[0, 1], [1], (1, 0)])
@pytest.mark.usefixtures("gpus")
def test_slices_on_gpus(
    program: tcgen.Program, numbers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = inputs(LADDER, EXTENTS)
    expected = program(**given)
    launched = launches_by_device(monkeypatch)
    with program.distribute(numbers, along="v", task_seconds=0) as run:
        bound = run.bind(v_vvvv=given["v_vvvv"], f=given["f"])
        first = bound(t=given["t"])
        moved = bound.report.bytes_moved
        again = bound(t=given["t"])
        report = bound.report
    check(first, expected)
    check(again, expected)
    assert set(launched) == set(numbers)
    assert {w.worker for w in report.workers} == {f"GPU {n}" for n in numbers}
    assert report.tasks == len(numbers)
    # Constants were copied by the first call.
    assert report.bytes_moved == report.bytes_predicted < moved
    assert report.peak_bytes <= report.need_bytes


@pytest.mark.slow
@pytest.mark.usefixtures("gpus")
def test_parts_are_added_on_the_first_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """MP2 by tiles of pairs, whose loops are the host's: a GPU takes a range of the tiles."""
    extents = {"o": 4, "v": 6, "x": 8}
    program = tcgen.compile(PAIRS, extents=extents, target="cuda", memory_limit=2000)
    given = random_arrays(tcgen.read_spec(PAIRS), extents, dtype="float64", seed=2)
    assert program.parts() > 1
    launched = launches_by_device(monkeypatch)
    with program.distribute([0, 1], task_seconds=0) as run:
        found = run(**given)
        assert run.report.stages[0].startswith("parts of")
        assert run.report.bytes_moved == run.report.bytes_predicted
    assert set(launched) == {0, 1}
    check(found, tcgen.compile(PAIRS, extents=extents, target="numpy")(**given))


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("extents", [{"o": 1, "v": 1}, *slow({"o": 5, "v": 2})])
@pytest.mark.usefixtures("gpus")
def test_other_types_and_extents(dtype: str, extents: dict[str, int]) -> None:
    program = tcgen.compile(ENERGY, target="cuda", dtype=dtype)
    given = inputs(ENERGY, extents, dtype)
    given["g"] = given["g"][::-1]
    with program.distribute([0, 1], task_seconds=0, along="o") as run:
        found = run(**given)
    for name, value in program(**given).items():
        np.testing.assert_allclose(found[name], value, rtol=1e-5, err_msg=name)


@pytest.mark.usefixtures("gpus")
def test_numbers_may_be_an_array(program: tcgen.Program) -> None:
    given = inputs(LADDER, EXTENTS)
    for numbers in (np.array([0, 1]), np.arange(4, dtype=np.int32)[1::-1]):
        with program.distribute(numbers, along="v", task_seconds=0) as run:
            check(run(**given), program(**given))
            assert {w.worker for w in run.report.workers} == {"GPU 0", "GPU 1"}


@pytest.mark.usefixtures("gpus")
def test_memory_is_given_back(program: tcgen.Program) -> None:
    from tcgen.distributed.gpus import GpuEngine

    given = inputs(LADDER, EXTENTS)
    engine = GpuEngine([0, 1])
    with tcgen.distribute(program, engine, along="v", task_seconds=0) as run:
        run(**given)
        assert [gpu.place.shelf.nbytes for gpu in engine._gpus] == [0, 0]
        bound = run.bind(v_vvvv=given["v_vvvv"], f=given["f"])
        bound(t=given["t"])
        assert all(gpu.place.shelf.nbytes > 0 for gpu in engine._gpus)
        bound.close()
    assert [gpu.place.shelf.nbytes for gpu in engine._gpus] == [0, 0]


@pytest.mark.usefixtures("gpus")
def test_a_gpu_that_fails_ends_the_call_with_its_name(program: tcgen.Program) -> None:
    given = inputs(LADDER, EXTENTS)
    with program.distribute([0, 1], along="v", task_seconds=0) as run:
        expected = run(**given)
        Device.faults[1] = cupy_stand_in.CUDARuntimeError("cudaErrorIllegalAddress")
        with pytest.raises(UnavailableError, match=mentions("GPU 1: cudaErrorIllegalAddress")):
            run(**given)
        with pytest.raises(ArgumentError, match="call"):
            program.distribute([0, 1]).report  # noqa: B018
        Device.faults.clear()
        check(run(**given), expected)


@pytest.mark.usefixtures("gpus")
def test_a_gpu_without_memory_is_named(
    program: tcgen.Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = inputs(LADDER, EXTENTS)
    empty = cupy_stand_in.module.empty

    def short(shape: Any, dtype: Any = float) -> Any:
        if Device.current == 1:
            raise cupy_stand_in.OutOfMemoryError("limit")
        return empty(shape, dtype)

    with program.distribute([0, 1], along="v", task_seconds=0) as run:
        monkeypatch.setattr(cupy_stand_in.module, "empty", short)
        Device.free = 5000
        with pytest.raises(MemoryLimitError, match=mentions("GPU 1: bytes 5,000 free")):
            run(**given)


@pytest.mark.usefixtures("gpus")
def test_too_little_memory_is_refused_before_anything_is_copied(
    program: tcgen.Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = inputs(LADDER, EXTENTS)
    launched = launches_by_device(monkeypatch)
    with pytest.raises(MemoryLimitError, match=mentions("GPU bytes 3,000 along=")) as caught:
        program.distribute([0, 1], 3000, along="v", task_seconds=0)(**given)
    least = int(str(caught.value).split("memory=")[1].split(",")[0])
    assert not launched
    check(program.distribute([0, 1], least, along="v", task_seconds=0)(**given), program(**given))
    Device.free = 3000  # of each GPU, without memory=
    with pytest.raises(MemoryLimitError, match=mentions("GPU bytes 3,000")):
        program.distribute([0, 1], along="v", task_seconds=0)(**given)
    with pytest.raises(MemoryLimitError, match=mentions("memory=3000")):
        program.distribute([0, 1], "1MiB")


@pytest.mark.usefixtures("gpus")
def test_gpus_that_cannot_be_used(program: tcgen.Program) -> None:
    for numbers, words in (([], "[]"), ([0, 0], "[0, 0] [0, 1]")):
        with pytest.raises(ArgumentError, match=mentions(words)):
            program.distribute(numbers)
    for number in (2, -1):
        words = f"GPU {number} 0 CUDA_VISIBLE_DEVICES"
        with pytest.raises(UnavailableError, match=mentions(words)):
            program.distribute([0, number])
    arrays = (np.array([0.0]), np.array([[0, 1]]), np.array(0), np.array([True]))
    for other in ("01", [0, True], [0.0], 1, *arrays):
        with pytest.raises(ArgumentError, match=mentions("GPUs Client")):
            program.distribute(other)
    on_cpu = tcgen.compile(LADDER, target="numpy")
    with pytest.raises(ArgumentError, match=mentions('target="cuda" numpy')):
        on_cpu.distribute([0])


@pytest.mark.slow
@pytest.mark.usefixtures("gpus")
def test_a_dask_worker_runs_on_its_gpu(program: tcgen.Program) -> None:
    """One worker a GPU; here the worker is a thread of this process."""
    distributed = pytest.importorskip("distributed")
    given = inputs(LADDER, EXTENTS)
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
        program.distribute(client, "100MiB", along="v", task_seconds=0) as run,
    ):
        bound = run.bind(v_vvvv=given["v_vvvv"], f=given["f"])
        check(bound(t=given["t"]), program(**given))


def own_device(folder: str, dask_worker: Any) -> str:
    """Give the process of a worker a GPU, the stand-in; the name of the worker."""
    if folder not in sys.path:
        sys.path.insert(0, folder)
    from support import cupy_stand_in as stand_in

    sys.modules["cupy"] = stand_in.module
    stand_in.Device.count = 1
    return str(dask_worker.address)


@pytest.mark.slow
@pytest.mark.usefixtures("gpus")
def test_each_dask_worker_runs_on_a_gpu_of_its_own() -> None:
    """Two processes with a device each; what tasks read passes through memory of the CPU."""
    distributed = pytest.importorskip("distributed")
    program = tcgen.compile(LADDER, extents={"o": 4, "v": 12}, target="cuda")
    given = inputs(LADDER, {"o": 4, "v": 12})
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        client.wait_for_workers(2)
        assert len(set(client.run(own_device, str(ROOT / "tests")).values())) == 2
        with program.distribute(client, "100MiB", along="v", task_seconds=0) as run:
            bound = run.bind(v_vvvv=given["v_vvvv"], f=given["f"])
            for _ in range(2):
                check(bound(t=given["t"]), program(**given))
            busy = [w for w in bound.report.workers if w.tasks]
            assert len(busy) == 2


@pytest.mark.slow
@pytest.mark.usefixtures("gpus")
def test_references_are_read_once_for_each_gpu(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    given = inputs(LADDER, EXTENTS)
    with h5py.File(tmp_path / "ints.h5", "w") as file:
        file["v_vvvv"] = given["v_vvvv"]
    program = tcgen.compile(LADDER, target="cuda")
    constants = {"v_vvvv": tcgen.stored(tmp_path / "ints.h5", "v_vvvv"), "f": given["f"]}
    with program.distribute([0, 1], along="v", task_seconds=0).bind(**constants) as run:
        for _ in range(2):
            check(run(t=given["t"]), program(**given))
            assert run.report.bytes_moved == run.report.bytes_predicted
            assert run.report.bytes_reloaded == 0


@pytest.mark.usefixtures("gpus")
def test_the_command_line(program: tcgen.Program, tmp_path: Path) -> None:
    given = inputs(LADDER, EXTENTS)
    program.save(tmp_path / "ladder")
    np.savez(tmp_path / "in.npz", **given)
    command = ["run", str(tmp_path / "ladder"), "--inputs", str(tmp_path / "in.npz")]
    output = ["--output", str(tmp_path / "out.npz"), "--json"]
    found = CliRunner().invoke(main, [*command, *output, "--devices", "0,1"])
    assert found.exit_code == 0, found.output
    workers = json.loads(found.output)["distributed"]["workers"]
    assert [w["worker"] for w in workers] == ["GPU 0"]  # less work than is worth two tasks
    check(dict(np.load(tmp_path / "out.npz")), program(**given))
    for more, words in (
        (["--devices", "0;1"], "0;1 0,1"),
        (["--devices", "0", "--mpi"], "--devices --mpi"),
        (["--devices", "0,7"], "GPU 7"),
    ):
        found = CliRunner().invoke(main, [*command, *more])
        assert found.exit_code in (2, 3)
        assert says(found.output, words), found.output


def test_without_a_gpu(program: tcgen.Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(UnavailableError, match=mentions("CuPy install cuda13")):
        program.distribute([0, 1])

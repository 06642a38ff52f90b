"""Checkpoints: a killed job continues with the same numbers; files of other jobs are refused."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcgen
from support.messages import mentions
from support.paths import TESTS
from tcgen.chem.checkpoint import Checkpoint
from tcgen.chem.iterate import Diis, State, Step, iterate

JOB = """
import os, signal, sys
from functools import partial
import h5py
import tcgen
from pyscf import gto, scf
from tcgen.chem import checkpoint

path, place, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
seen = 0

def kill(*args, then=None, **keywords):
    global seen
    seen += 1
    if seen == count:
        os.kill(os.getpid(), signal.SIGKILL)
    return then and then(*args, **keywords)

mol = gto.M(atom="O 0 0 0.1; H 0 0.8 -0.5; H 0 -0.8 -0.5", basis="sto-3g", verbose=0)
mf = scf.RHF(mol).run(conv_tol=1e-13)
if place == "flush":
    checkpoint.flush = partial(kill, then=checkpoint.flush)
if place == "write":
    create = h5py.Group.create_dataset
    h5py.Group.create_dataset = lambda *args, **keywords: kill(*args, then=create, **keywords)
show = kill if place == "line" else False
tcgen.chem.solve(
    "ccsd_closed_shell", mf, target="numpy", optimize=False, checkpoint=path, show=show
)
"""


@pytest.fixture(scope="module")
def lih(blocks: Any) -> Any:
    return blocks.mean_field(blocks.molecule("Li 0 0 0; H 0 0 1.5957", "sto-3g"))


def solved(reference: Any, spec: str = "ccsd_closed_shell", **options: Any) -> Any:
    lines: list[str] = []
    found = tcgen.chem.solve(
        spec, reference, target="numpy", optimize=False, show=lines.append, **options
    )
    rows = [line.split() for line in lines if line.split()[0].isdigit()]
    return found, {int(row[0]): float(row[1]) for row in rows}


# A checkpoint has two flushes, those of file and folder, and four data sets beside vectors and
# errors; lines are a title, the names of columns, and one for each iteration.
@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("place", "count", "last"),
    [
        ("line", 6, 3),
        ("flush", 6, 3),
        ("write", 9, 1),
        ("line", 3, 0),
        ("flush", 1, 0),
        ("flush", 7, 3),
        ("write", 1, 0),
        ("line", 9, 6),
    ],
)
def test_a_killed_job_continues_with_the_same_numbers(
    place: str, count: int, last: int, tmp_path: Path
) -> None:
    path = tmp_path / "job.h5"
    pytest.importorskip("h5py")
    gto, scf = pytest.importorskip("pyscf.gto"), pytest.importorskip("pyscf.scf")
    mol = gto.M(atom="O 0 0 0.1; H 0 0.8 -0.5; H 0 -0.8 -0.5", basis="sto-3g", verbose=0)
    reference = scf.RHF(mol).run(conv_tol=1e-13)
    whole, energies = solved(reference)
    environment = os.environ | {"PYTHONPATH": str(TESTS.parent)}
    command = [sys.executable, "-c", JOB, str(path), place, str(count)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    found, rest = solved(reference, checkpoint=path)
    assert list(rest) == list(range(last + 1, whole.iterations + 1))
    for number, energy in rest.items():
        assert abs(energy - energies[number]) < 1e-10
    assert found.iterations == whole.iterations
    assert abs(found.e_corr - whole.e_corr) < 1e-10
    assert [p.name for p in tmp_path.iterdir()] == ["job.h5"]
    again, rest = solved(reference, checkpoint=path)
    assert list(rest) == [whole.iterations]
    assert abs(again.e_corr - found.e_corr) < 1e-12


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, None)])
def test_a_signal_writes_the_state(
    number: int, status: int | None, lih: Any, tmp_path: Path
) -> None:
    path, before = tmp_path / "job.h5", signal.getsignal(number)
    whole, _ = solved(lih)

    def show(line: str) -> None:
        if line.split()[0] == "4":
            os.kill(os.getpid(), number)

    with pytest.raises(KeyboardInterrupt if status is None else SystemExit) as raised:
        tcgen.chem.solve(
            "ccsd_closed_shell",
            lih,
            target="numpy",
            optimize=False,
            checkpoint=path,
            checkpoint_every=50,
            show=show,
        )
    assert status is None or raised.value.args == (status,)
    assert signal.getsignal(number) is before
    found, rest = solved(lih, checkpoint=path)
    assert list(rest) == list(range(5, whole.iterations + 1))
    assert abs(found.e_corr - whole.e_corr) < 1e-10


def test_a_signal_ends_an_evaluation(tmp_path: Path) -> None:
    state = State({"t": np.ones(2)}, [0.5])
    checkpoint = Checkpoint(tmp_path / "job.h5", 3, {"equations": "x"})

    def evaluate() -> None:
        with checkpoint:
            checkpoint.update(state)
            assert not (tmp_path / "job.h5").exists()
            with checkpoint.evaluating():
                os.kill(os.getpid(), signal.SIGINT)
            raise AssertionError("the signal came late")

    with pytest.raises(KeyboardInterrupt):
        evaluate()
    read = Checkpoint(tmp_path / "job.h5", 3, {"equations": "x"}).load()
    assert read is not None
    assert read.norms == [0.5]


def test_the_file_is_written_after_some_iterations(tmp_path: Path) -> None:
    path = tmp_path / "job.h5"
    written = []
    with Checkpoint(path, 3, {}) as checkpoint:
        for count in range(1, 8):
            checkpoint.update(State({"t": np.full(2, 1.0 * count)}, [0.1] * count))
            state = Checkpoint(path, 3, {}).load()
            written.append(0 if state is None else len(state.norms))
    assert written == [0, 0, 3, 3, 3, 6, 6]
    state = Checkpoint(path, 3, {}).load()
    assert state is not None
    np.testing.assert_array_equal(state.amplitudes["t"], [7.0, 7.0])


def test_an_error_leaves_the_last_file(tmp_path: Path) -> None:
    path = tmp_path / "job.h5"

    def fail() -> None:
        with Checkpoint(path, 2, {}) as checkpoint:
            for count in range(1, 4):
                checkpoint.update(State({"t": np.ones(1)}, [0.1] * count))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    state = Checkpoint(path, 2, {}).load()
    assert state is not None
    assert len(state.norms) == 2


@pytest.mark.parametrize(
    ("atoms", "basis", "spec", "frozen", "different"),
    [
        ("Li 0 0 0; H 0 0 1.6", "sto-3g", "ccsd_closed_shell", 0, "atoms"),
        ("Na 0 0 0; H 0 0 1.5957", "sto-3g", "ccsd_closed_shell", 4, "kinds of atoms"),
        ("Li 0 0 0; H 0 0 1.5957", "6-31g", "ccsd_closed_shell", 0, "basis"),
        ("Li 0 0 0; H 0 0 1.5957", "sto-3g", "lccsd_spin_orbital", 0, "equations"),
        ("Li 0 0 0; H 0 0 1.5957", "sto-3g", "ccsd_closed_shell", 1, "extents"),
    ],
)
def test_the_file_of_another_job_is_refused(
    atoms: str, basis: str, spec: str, frozen: int, different: str,
    lih: Any, blocks: Any, tmp_path: Path,
) -> None:  # fmt: skip
    path = tmp_path / "job.h5"
    solved(lih, checkpoint=path)
    before = path.read_bytes()
    other = blocks.mean_field(blocks.molecule(atoms, basis))
    with pytest.raises(tcgen.ArgumentError, match=mentions(f"job.h5 another {different}")):
        solved(other, spec, frozen=frozen, checkpoint=path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b"", b"not HDF5"])
def test_other_files_are_refused(content: bytes, lih: Any, tmp_path: Path) -> None:
    path = tmp_path / "job.h5"
    path.write_bytes(content)
    with pytest.raises(tcgen.ArgumentError, match=mentions("job.h5 checkpoint remove")):
        solved(lih, checkpoint=path)
    assert path.read_bytes() == content


def test_a_folder_that_does_not_exist(lih: Any, tmp_path: Path) -> None:
    with pytest.raises(tcgen.UnavailableError, match=mentions("checkpoint none/job.h5 folder")):
        solved(lih, checkpoint=tmp_path / "none" / "job.h5")


def test_roots_have_no_checkpoint(lih: Any, tmp_path: Path) -> None:
    ground, _ = solved(lih, "ccsd_spin_orbital")
    with pytest.raises(tcgen.ArgumentError, match=mentions("checkpoint eigenvalue amplitudes")):
        solved(lih, "eom_ip_ccsd_spin_orbital", amplitudes=ground, checkpoint=tmp_path / "job.h5")


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
def test_vectors_on_disk_give_the_same_numbers(dtype: str) -> None:
    rng = np.random.default_rng(1)
    held, stored = Diis(3), Diis(3, on_disk=True)
    for _ in range(7):
        vector, error = (rng.random(11).astype(dtype) for _ in range(2))
        np.testing.assert_array_equal(held(vector, error), stored(vector, error))
    assert len(stored.vectors) == 3
    for one, other in zip(held.vectors, stored.vectors, strict=True):
        np.testing.assert_array_equal(one, other)


def test_an_iteration_continues_from_vectors_on_disk() -> None:
    matrix = np.random.default_rng(2).random((5, 5)) / 6

    def step(now: dict[str, Any], _norms: Any) -> Step:
        new = 1 + matrix @ now["x"]
        return Step({"x": new}, {"r": float(np.linalg.norm(new - now["x"]))}, {})

    states = []

    class Keeper:
        def update(self, state: State) -> None:
            vectors, errors = list(state.vectors), list(state.errors)
            states.append(State(state.amplitudes, state.norms, vectors, errors, state.overlap))

        def evaluating(self) -> Any:
            return open(os.devnull)  # noqa: PTH123  (any context)

    def run(start: State, **options: Any) -> Any:
        return iterate(
            step, start, tolerance=1e-12, max_cycle=50, diis=4, damping=0.1,
            show=lambda *_: None, **options,
        )  # fmt: skip

    whole = run(State({"x": np.zeros(5)}), diis_on_disk=True, keeper=Keeper())
    assert whole.converged
    np.testing.assert_allclose(whole.amplitudes["x"], np.linalg.solve(np.eye(5) - matrix, [1] * 5))
    for state in states:
        rest = run(state)
        assert rest.iterations == whole.iterations
        np.testing.assert_array_equal(rest.amplitudes["x"], whole.amplitudes["x"])


def test_a_full_disk_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    monkeypatch.setattr("tempfile.TemporaryFile", lambda: open("/dev/full", "r+b"))  # noqa: PTH123, SIM115
    accelerate = Diis(2, on_disk=True)
    with pytest.raises(tcgen.UnavailableError, match=mentions("DIIS bytes TMPDIR diis=")):
        accelerate(np.ones(10**6), np.ones(10**6))

"""Temporary folders: removed at the end, or swept after a process was killed; never another's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.bad_folders import give_away
from support.paths import ROOT
from tcgen.runtime.cpu import private_folder

CODE = """
import sys, tcgen.runtime.cpu.private_folder as p
with p.build_folder() as folder:
    (folder / "kernels.c").write_text("int x;")
    p.objects_folder().mkdir()
    print("ready", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(private_folder, "_SWEPT_AFTER", -1)
    return tmp_path


def started(tmp: Path) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-c", CODE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp)},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def names(tmp: Path) -> list[str]:
    return sorted(p.name.rpartition("-")[0] for p in tmp.iterdir())


def test_a_process_removes_its_folders(tmp: Path) -> None:
    with started(tmp) as process:
        assert names(tmp) == ["tcgen-build", "tcgen-objects"]
        process.communicate(b"")
    assert names(tmp) == []


def test_folders_of_killed_processes_are_swept_and_others_not(tmp: Path) -> None:
    with started(tmp) as killed, started(tmp) as alive:
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        assert len(names(tmp)) == 4
        (tmp / "tcgen-builder").mkdir()
        private_folder.sweep()
        assert names(tmp) == ["tcgen", "tcgen-build", "tcgen-objects"]
        alive.communicate(b"")
    assert names(tmp) == ["tcgen"]


def test_the_first_compilation_sweeps(tmp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp / "tcgen-build-old").mkdir()
    (tmp / "tcgen-build-old" / "kernels.c").touch()
    monkeypatch.setattr(private_folder._Process, "swept", False)
    with private_folder.build_folder() as folder:
        assert list(tmp.iterdir()) == [folder]
        private_folder.sweep()
        assert folder.is_dir()
    assert names(tmp) == []


def test_young_folders_stay(tmp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Version 0.1 locks none of its folders."""
    monkeypatch.undo()
    monkeypatch.setattr("tempfile.tempdir", str(tmp))
    for name, age in (("tcgen-build-new", 0), ("tcgen-build-old", 7200)):
        (tmp / name).mkdir()
        os.utime(tmp / name, (time.time() - age,) * 2)
    private_folder.sweep()
    assert [p.name for p in tmp.iterdir()] == ["tcgen-build-new"]


def test_folders_of_other_users_and_links_are_left_alone(
    tmp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp / "mine").mkdir()
    (tmp / "mine" / "thesis.tex").touch()
    (tmp / "tcgen-build-link").symlink_to(tmp / "mine")
    (tmp / "tcgen-build-file").touch()
    (tmp / "tcgen-build-other").mkdir()
    give_away(monkeypatch, tmp / "tcgen-build-other")
    private_folder.sweep()
    left = {p.name for p in tmp.iterdir()}
    assert left == {"mine", "tcgen-build-link", "tcgen-build-file", "tcgen-build-other"}
    assert (tmp / "mine" / "thesis.tex").exists()


def test_a_fork_has_folders_of_its_own(tmp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        "import os, tcgen.runtime.cpu.private_folder as p\n"
        "first = p.objects_folder(); first.mkdir()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    other = p.objects_folder()\n"
        "    raise SystemExit(int(other == first))\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
        "assert first.is_dir()\n"
    )
    environment = {**os.environ, "TMPDIR": str(tmp)}
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, check=True)
    assert names(tmp) == []

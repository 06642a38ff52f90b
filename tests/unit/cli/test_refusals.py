"""The command line where it cannot do what is asked: exit codes, messages, nothing half-written."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from itertools import combinations
from pathlib import Path

import click
import numpy as np
import pytest

import tcgen
from support.bad_folders import FAULTS, unsearchable, unwritable
from support.command_line import FIGURE_1, LADDER, MP2, invoke
from support.messages import says
from tcgen.cache_files import write_bytes
from tcgen.cli.commands import main
from tcgen.cli.options import Written
from tcgen.compiler.target import default_target

SAYING_WHEN_A_KERNEL_STARTS = """
from tcgen.cli.commands import main
from tcgen.runtime.cpu.backend import CpuBackend

run = CpuBackend.run
def start(*arguments):
    print("started", flush=True)
    run(*arguments)
CpuBackend.run = start
main(prog_name="tcgen")
"""


def test_run_check_names_a_broken_symmetry(tmp_path: Path) -> None:
    inputs = tmp_path / "in.npz"
    assert (
        invoke("-q", "run", MP2, "-e", "o=2", "-e", "v=2", "--save-inputs", inputs).exit_code == 0
    )
    arrays = dict(np.load(inputs))
    arrays["g"][0, 1, 1, 0] += 1.0
    np.savez(inputs, **arrays)
    result = invoke("run", MP2, "--inputs", inputs, "--check")
    assert result.exit_code == 1
    assert says(result.stderr, "g symmetry")
    assert says(result.stderr, "1.000e+00")


def test_memory_limit_refuses_with_the_bytes_of_this_plan(tmp_path: Path) -> None:
    folder = tmp_path / "ladder"
    result = invoke(
        "compile",
        LADDER,
        "-e",
        "o=4",
        "-e",
        "v=40",
        "-e",
        "x=50",
        "--memory-limit",
        "0.1MiB",
        "--objective",
        "none",
        "-o",
        folder,
    )
    assert result.exit_code == 3
    assert says(result.stderr, "memory limit 104,857")
    assert says(" ".join(result.stderr.split()), "204,800 predicted time")
    assert not folder.exists()


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["compile", "missing.spec"], 2, "missing.spec"),
        (["compile", "ov,vo->"], 2, "extent o v -e o=10 v=10"),
        (["compile", MP2, "-e", "o=0", "-e", "v=2"], 2, "extent o=0 1"),
        (["compile", MP2, "-e", "o=-3", "-e", "v=2"], 2, "extent o=-3"),
        (["compile", MP2, "-e", "o=two"], 2, "'two' 'o=two'"),
        (["compile", MP2, "-e", "o"], 2, "-e o=10"),
        (["compile", MP2, "-e", "o=2", "-e", "v=2", "-e", "z=2"], 2, "space z declared"),
        (["compile", MP2, "-e", "o=2", "-e", "v=2", "--memory-limit", "lots"], 2, "'lots'"),
        (["compile", MP2, "--target", "abacus"], 2, "'abacus'"),
        (["run", MP2, "-e", "o=2", "-e", "v=2", "--inputs", "none.npz"], 2, "none.npz"),
        (["report", "nowhere_tcgen"], 2, "nowhere_tcgen"),
        (
            ["compile", MP2, "-e", "o=2", "-e", "o=3", "-e", "v=2"],
            2,
            "o twice 2 3",
        ),
        (["run", MP2, "-e", "o=2", "-e", "v=2", "--random", "-1"], 2, "-1"),
        (
            ["report", MP2, "-e", "o=2", "-e", "v=2", "--figures", f"{MP2}/figures"],
            3,
            "write",
        ),
    ],
)
def test_bad_input_gets_a_clear_error(args, code: int, message: str, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = invoke(*args)
    assert result.exit_code == code, result.output
    assert says(result.stderr, message)
    assert "Traceback" not in result.stderr
    assert not list(tmp_path.iterdir())  # nothing half-written


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (("--memory-limit", "9" * 5000), "memory 5,000 digits"),
        (("--memory-limit", f"0.{'9' * 5000}GiB"), "memory digits"),
        (("-e", f"o={'9' * 5000}"), "integer"),
        (("--effort", "9" * 5000), "--effort"),
        (("--random", "9" * 5000), "--random"),
        (("--add-weight", "nan"), "add_weight"),
        (("--byte-weight", "1e400"), "byte_weight"),
        (("--objective", "time", "--machine", f"flops={'9' * 5000}"), "flops"),
        (("--inputs", "/dev/null"), "/dev/null"),
        (("--output", ""), "write"),
    ],
    ids=str,
)
def test_numbers_and_paths_without_measure(option: tuple[str, ...], message: str) -> None:
    result = invoke("run", MP2, "-e", "o=2", "-e", "v=2", "--target", "numpy", *option)
    assert result.exit_code in (2, 3), result.exception
    assert says(result.stderr, message)


def paths_of(command: click.Command) -> list[click.Parameter]:
    """The parameters of a command that are files; the sources of some commands are several."""
    files = [p for p in command.params if isinstance(p.type, click.Path) and p.nargs == 1]
    return [p for p in files if p.type.file_okay]


@pytest.mark.parametrize("name", sorted(main.commands))
def test_no_command_writes_a_file_that_it_reads(name: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    command, written = main.commands[name], 0
    file = tmp_path / "precious.npz"
    file.write_text("# mine\n")
    for one, other in combinations(paths_of(command), 2):
        kinds = [p.type.holds for p in (one, other) if isinstance(p.type, Written)]
        if not kinds or kinds == ["solutions"] * 2:
            continue
        written += 1
        arguments = [MP2] if name in ("report", "explain", "run", "solve") else []
        # Another name of the same file.
        for param, path in ((one, file), (other, Path("precious.npz"))):
            if isinstance(param, click.Argument):
                arguments = [path]
            else:
                arguments += [param.opts[-1], path]
        result = invoke(name, *arguments)
        assert result.exit_code == 2, (arguments, result.output)
        assert says(result.stderr, "precious.npz give two files"), result.stderr
        assert file.read_text() == "# mine\n"
        assert [path.name for path in tmp_path.iterdir()] == [file.name]
    assert written or name in ("cache", "derive", "doctor", "library", "list")


def test_inputs_are_not_replaced_by_outputs(tmp_path: Path) -> None:
    inputs, link = tmp_path / "in.npz", tmp_path / "link.npz"
    command = ("-q", "run", MP2, "-e", "o=2", "-e", "v=2", "--target", "numpy")
    assert invoke(*command, "--save-inputs", inputs).exit_code == 0
    before = inputs.read_bytes()
    link.symlink_to(inputs)
    for output in (inputs, link):
        result = invoke(*command, "--inputs", inputs, "--output", output)
        assert result.exit_code == 2
        assert says(result.stderr, "--inputs --output two files")
        assert inputs.read_bytes() == before
    nowhere = ("--output", "/dev/null", "--save-inputs", "/dev/null")
    assert invoke(*command, *nowhere).exit_code == 0


def test_the_memory_of_workers_needs_workers() -> None:
    result = invoke("run", MP2, "-e", "o=2", "-e", "v=2", "--worker-memory", "1GB")
    assert result.exit_code == 2
    assert says(result.stderr, "--worker-memory --scheduler --memory-limit")


@pytest.mark.parametrize("option", ["--output", "--save-inputs"])
def test_arrays_are_written_to_what_is_no_file(option: str, tmp_path: Path) -> None:
    """A device, or a pipe, has no place to go back to."""
    args = ("-q", "run", MP2, "-e", "o=2", "-e", "v=2", "--target", "numpy", option)
    assert invoke(*args, "/dev/null").exit_code == 0
    pipe, copy = tmp_path / "pipe", tmp_path / "copy.npz"
    os.mkfifo(pipe)
    with copy.open("wb") as held, subprocess.Popen(["cat", str(pipe)], stdout=held):
        assert invoke(*args, pipe).exit_code == 0
    with np.load(copy) as written:
        assert written.files


@pytest.mark.parametrize("kept", [0, 30, 200, -1])
def test_damaged_inputs_are_refused(kept: int, tmp_path: Path) -> None:
    path = tmp_path / "in.npz"
    sizes = ("-e", "o=2", "-e", "v=2", "--target", "numpy")
    assert invoke("-q", "run", MP2, *sizes, "--save-inputs", path).exit_code == 0
    content = path.read_bytes()
    path.write_bytes(content[:kept])
    assert invoke("run", MP2, "--target", "numpy", "--inputs", path).exit_code == 2
    middle = content.index(b"NUMPY")
    for place in range(middle, middle + 40, 3):
        path.write_bytes(content[:place] + b"\xff" + content[place + 1 :])
        assert invoke("run", MP2, "--target", "numpy", "--inputs", path).exit_code == 2


def test_spec_errors_point_at_the_text(tmp_path: Path) -> None:
    spec = tmp_path / "bad.spec"
    spec.write_text("space o occupied\nindex i j : o\ninput f[o,o]\noutput e\ne = f[i,q]\n")
    result = invoke("compile", spec, "-e", "o=2")
    assert result.exit_code == 2
    assert f"{spec}:5:9: error:" in result.stderr
    assert "e = f[i,q]" in result.stderr
    assert "^" in result.stderr


def test_damaged_artifact_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "mp2"
    assert invoke("-q", "compile", MP2, "-e", "o=2", "-e", "v=2", "-o", folder).exit_code == 0
    (folder / "manifest.json").write_text("{")
    result = invoke("run", folder)
    assert result.exit_code == 2
    assert "compile" in result.stderr


def test_options_that_shape_a_plan_are_refused_beside_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "mp2"
    spec = ("compile", MP2, "-e", "o=2", "-e", "v=2", "--target", "numpy", "-o", folder)
    assert invoke("-q", *spec).exit_code == 0
    for command, *options in (
        ("run", "--target", "cpu"),
        ("report", "--memory-limit", "1MB", "--objective", "time"),
        ("explain", "--no-optimize"),
    ):
        result = invoke(command, folder, *options)
        assert result.exit_code == 2
        named = ", ".join(o for o in options if o.startswith("--"))
        assert says(result.stderr, f"compiled {named}")
    assert invoke("run", folder, "-e", "o=3", "--memory-limit", "1MB").exit_code == 0


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["none", "peak", "time"])
def test_a_limit_that_is_too_small_names_the_least_for_every_objective(objective: str) -> None:
    sizes = ("-e", "o=3", "-e", "v=4", "--target", "numpy", "--memory-limit", "10")
    result = invoke("report", tcgen.spec_path("ccd_spin_orbital"), *sizes, "--objective", objective)
    assert result.exit_code == 3
    assert says(" ".join(result.stderr.split()), "Raise limit 1,296 predicted time 1,176")


def test_a_folder_that_is_no_artifact_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.txt").write_text("precious")
    result = invoke("compile", MP2, "-e", "o=2", "-e", "v=2", "-o", tmp_path / "thesis")
    assert result.exit_code in (2, 3)
    assert (tmp_path / "thesis" / "chapter1.txt").read_text() == "precious"


def test_missing_compiler_exits_3_and_numpy_still_works(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("TCGEN_CC", str(tmp_path / "no-such-compiler"))
    args = ("-e", "o=2", "-e", "v=2", "-o", tmp_path / "mp2")
    result = invoke("compile", MP2, *args, "--target", "cpu")
    assert result.exit_code == 3
    assert "no-such-compiler" in result.stderr
    result = invoke("compile", MP2, *args, "--target", "numpy")
    assert result.exit_code == 0


def test_every_symmetry_that_does_not_follow_is_shown_in_the_text(tmp_path: Path) -> None:
    path = tmp_path / "two.spec"
    path.write_text(
        "space o = 3\nindex i j : o\ninput A[o,o]\n"
        "output q[o,o] symmetric (0,1), w[o,o] antisymmetric (0,1)\n"
        "q[i,j] = A[i,j]\nw[i,j] = A[i,j] + A[j,i]\n"
    )
    result = invoke("compile", path, "-o", tmp_path / "x")
    assert result.exit_code == 2
    assert result.stderr.startswith(f"{path}:5:1: error: ")
    assert says(result.stderr, "symmetry q write P S")
    assert "    q[i,j] = A[i,j]\n    ^\n" in result.stderr
    assert says(result.stderr, f"{path}:6:1 symmetry w w[j,i] -w[i,j]")
    assert not (tmp_path / "x").exists()


def _compiler(tmp_path: Path, monkeypatch, body: str) -> None:
    """A C compiler that answers the probe and does ``body`` for a program."""
    script = tmp_path / "strange-cc"
    script.write_text(
        '#!/bin/sh\ncase "$*" in *--version*|*probe.c*) exec cc "$@";; esac\n' + body + "\n"
    )
    script.chmod(0o755)
    monkeypatch.setenv("TCGEN_CC", str(script))
    monkeypatch.setenv("TCGEN_CACHE_DIR", str(tmp_path / "cache"))


def test_a_failing_compiler_exits_3_and_keeps_its_whole_log(tmp_path: Path, monkeypatch) -> None:
    lines = 'for n in $(seq 1 300); do echo "kernels.c:$n: error: no $n" >&2; done; exit 7'
    _compiler(tmp_path, monkeypatch, lines)
    result = invoke("compile", MP2, "-e", "o=3", "-e", "v=4", "-o", tmp_path / "x", "--json")
    assert result.exit_code == 3
    assert result.stdout == ""
    assert result.stderr.startswith("tcgen: error: the C compiler ")
    assert says(result.stderr, "exit code 7")
    (log,) = (tmp_path / "cache" / "logs").glob("*.log")
    assert says(result.stderr, f"log {log}")
    assert "kernels.c:300: error: no 300" in log.read_text()
    assert not (tmp_path / "x").exists()


@pytest.mark.few(2)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_cache_that_cannot_be_used_exits_3(fault: str, tmp_path: Path, monkeypatch) -> None:
    """In Python a temporary folder would take its place."""
    monkeypatch.setenv("TCGEN_CACHE_DIR", str(tmp_path / "cache"))
    if default_target() != "cpu":
        pytest.skip("no C compiler")
    FAULTS[fault](monkeypatch, tmp_path / "cache")
    folder = tmp_path / "x"
    for command in (["compile", MP2, "-o", folder], ["run", MP2, "--random", "1"]):
        result = invoke(*command, "-e", "o=3", "-e", "v=4")
        assert result.exit_code == 3
        assert says(result.stderr, f"tcgen: error: cache {tmp_path / 'cache'} TCGEN_CACHE_DIR")
        assert result.stderr.count("\n") == 1
    assert not folder.exists()
    printed = json.loads(invoke("doctor", "--json").stdout)["findings"]
    (finding,) = (f for f in printed if f["what"] == "cache")
    assert not finding["works"]
    assert says(finding["details"] + finding["advice"], f"{tmp_path / 'cache'} TCGEN_CACHE_DIR")


def test_a_cache_that_cannot_be_read_or_changed_exits_3(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("TCGEN_CACHE_DIR", str(tmp_path))
    write_bytes(tmp_path / "plans" / "a.json", b"{}")
    unwritable(monkeypatch, tmp_path)
    result = invoke("cache", "clear")
    assert result.exit_code == 3
    assert says(result.stderr, f"{tmp_path / 'plans'} changed TCGEN_CACHE_DIR")
    unsearchable(monkeypatch, tmp_path)
    result = invoke("cache", "info")
    assert result.exit_code == 3
    assert says(result.stderr, "read TCGEN_CACHE_DIR")


def test_a_compiler_without_openmp_gets_one_plain_warning(tmp_path: Path, monkeypatch) -> None:
    refuse = 'for a in "$@"; do [ "$a" = -fopenmp ] && exit 1; done; exec cc "$@"'
    _compiler(tmp_path, monkeypatch, refuse)
    script = tmp_path / "strange-cc"
    script.write_text(f"#!/bin/sh\n{refuse}\n")
    command = ["run", str(MP2), "-e", "o=3", "-e", "v=4", "--target", "cpu", "--check"]
    result = subprocess.run(
        [sys.executable, "-m", "tcgen.cli.commands", *command],
        capture_output=True,
        text=True,
        check=True,
    )
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"tcgen: warning: {script} has no OpenMP")


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_stops_a_kernel(tmp_path: Path) -> None:
    """Python handles the signal when a call returns, and this kernel takes minutes."""
    spec = tmp_path / "long.spec"
    term = "exp(x[a,c]*x[d,b])/(1 + x[a,d]**2*x[c,b]**2)"
    spec.write_text(
        f"space v = 700\nindex a b c d : v\ninput x[v,v]\noutput r\nr[a,b] = sum(c,d) {term}\n"
    )
    command = ["run", str(spec), "--target", "cpu", "--output", str(tmp_path / "r.npz")]
    with subprocess.Popen(
        [sys.executable, "-c", SAYING_WHEN_A_KERNEL_STARTS, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=600)
    assert process.returncode == 1
    assert errors.strip().endswith("Aborted!")
    assert not (tmp_path / "r.npz").exists()


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_stops_within_a_second_and_leaves_nothing(tmp_path: Path, monkeypatch) -> None:
    os.mkfifo(tmp_path / "open")
    still_open = os.open(tmp_path / "open", os.O_RDONLY | os.O_NONBLOCK)
    waiting = f"exec 3>{tmp_path}/open; touch {tmp_path}/started; sleep 3600"
    _compiler(tmp_path, monkeypatch, waiting)
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    # The solver of this objective has its own handler of the signal, unless told otherwise.
    command = ["compile", str(FIGURE_1), "--objective", "linear", "-o", str(tmp_path / "x")]
    with subprocess.Popen(
        [sys.executable, "-m", "tcgen.cli.commands", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        while not (tmp_path / "started").exists():
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=600)
    assert process.returncode == 1
    assert output == ""
    assert errors.strip() == "Aborted!"
    assert not (tmp_path / "x").exists()
    assert list((tmp_path / "tmp").iterdir()) == []
    assert list((tmp_path / "cache").rglob("*.so")) == []
    # The compiler and the program that it started have ended if nothing holds their pipe open.
    assert select.select([still_open], [], [], 60)[0]
    assert os.read(still_open, 1) == b""
    os.close(still_open)


@pytest.mark.parametrize("content", [b"", b"no arrays", None])
def test_inputs_that_are_no_npz_are_refused(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "inputs.npz"
    with path.open("wb") as file:
        if content is None:
            np.save(file, np.zeros(3))
        else:
            file.write(content)
    result = invoke("run", MP2, "-e", "o=3", "-e", "v=4", "--inputs", path)
    assert result.exit_code == 2
    assert says(result.stderr, f"error inputs {path} .npz numpy.savez")
    assert result.stderr.count("\n") == 1


def test_hdf5_inputs_that_are_damaged_or_empty_are_refused(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "inputs.h5"
    with h5py.File(path, "w") as file:
        file["g"] = np.ones((3, 4, 3, 4))
    path.write_bytes(path.read_bytes().replace(b"TREE", b"XXXX"))
    result = invoke("run", MP2, "-e", "o=3", "-e", "v=4", "--inputs", path)
    assert result.exit_code == 2
    assert says(result.stderr, f"error {path} is damaged")
    with h5py.File(path, "w") as file:
        file["g"] = h5py.Empty("f8")
    result = invoke("run", MP2, "-e", "o=3", "-e", "v=4", "--inputs", path)
    assert result.exit_code == 2
    assert says(result.stderr, f"error {path} g holds no elements")

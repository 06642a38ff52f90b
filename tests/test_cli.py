"""The command line: what it prints, what it writes, how it fails."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import tcgen
from tcgen.cli import main

MP2 = tcgen.spec_path("mp2_closed_shell")
LADDER = tcgen.spec_path("df_ladder")
FIGURE_1 = tcgen.spec_path("allam_figure1")


def invoke(*args: object) -> Result:
    return CliRunner().invoke(main, [str(a) for a in args], catch_exceptions=False)


def test_compile_writes_an_artifact_and_prints_tables(tmp_path: Path) -> None:
    result = invoke("compile", MP2, "-e", "o=3", "-e", "v=4", "-o", tmp_path / "mp2")
    assert result.exit_code == 0, result.output
    assert "naive" in result.stdout
    assert "peak" in result.stdout
    for name in ("manifest.json", "plan.json", "report.json", "system.json", "__init__.py"):
        assert (tmp_path / "mp2" / name).is_file()


def test_compile_json_keeps_the_contract(tmp_path: Path) -> None:
    result = invoke("compile", MP2, "-e", "o=3", "-e", "v=4", "-o", tmp_path / "x", "--json")
    report = json.loads(result.stdout)
    assert report["schema"] == 1
    assert report["extents"] == {"o": 3, "v": 4}
    assert set(report["operations"]) >= {
        "naive",
        "contractions",
        "additions",
        "maps",
        "sequence",
        "polynomial",
    }
    assert set(report["memory"]) >= {
        "inputs_bytes",
        "outputs_bytes",
        "intermediates_unfused_bytes",
        "intermediates_static_bytes",
        "peak_bytes",
        "limit_bytes",
    }
    assert set(report["fusion"]) >= {
        "objective",
        "model",
        "status",
        "value",
        "bound",
        "unit",
        "seconds",
    }
    assert {
        "name",
        "kind",
        "indices",
        "fused",
        "tile",
        "elements_unfused",
        "elements",
        "bytes",
        "consumers",
    } <= set(report["arrays"][0])
    assert set(report["steps"][0]) >= {"id", "text", "flops"}
    assert set(report["kernels"][0]) >= {"name", "steps", "loops"}
    operations = report["operations"]
    assert operations["naive"] == 2 * 3 * (3 * 4) ** 2  # two terms of three factors
    assert operations["sequence"] == sum(
        operations[k] for k in ("contractions", "additions", "maps")
    )
    assert report["memory"]["inputs_bytes"] == 8 * (144 + 3 + 4)


def test_figure_1_of_allam_et_al(tmp_path: Path) -> None:
    result = invoke("compile", FIGURE_1, "--objective", "linear", "--json", "-o", tmp_path / "f")
    report = json.loads(result.stdout)
    assert report["fusion"]["value"] == 3768
    assert report["fusion"]["unit"] == "saved_elements"
    assert report["fusion"]["model"] == "tree"
    assert report["memory"]["intermediates_static_bytes"] == 23 * 8


def test_default_folder_is_named_after_the_spec(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert invoke("-q", "compile", MP2, "-e", "o=2", "-e", "v=2").exit_code == 0
    assert (tmp_path / "mp2_closed_shell_tcgen" / "manifest.json").is_file()


@pytest.mark.parametrize("target", ["cpu", "numpy"])
def test_run_checks_against_the_interpreter(target: str) -> None:
    result = invoke(
        "run",
        LADDER,
        "-e",
        "o=3",
        "-e",
        "v=5",
        "-e",
        "x=7",
        "--random",
        1,
        "--check",
        "--repeat",
        2,
        "--json",
        "--target",
        target,
    )
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["max_rel_error"] < 1e-10
    assert report["time_seconds"] > 0
    assert report["peak_bytes_measured"] >= 0


def test_run_prints_scalars_to_12_decimals_and_norms(tmp_path: Path) -> None:
    result = invoke("run", MP2, "-e", "o=2", "-e", "v=3")
    value = next(line for line in result.stdout.splitlines() if line.startswith("e = "))
    assert len(value.rpartition(".")[2]) == 12
    result = invoke("run", LADDER, "-e", "o=2", "-e", "v=3", "-e", "x=4")
    assert "r2  2 x 2 x 3 x 3  norm " in result.stdout


def test_run_round_trips_inputs_and_outputs(tmp_path: Path) -> None:
    folder, inputs, output = tmp_path / "mp2", tmp_path / "in.npz", tmp_path / "out.npz"
    assert invoke("-q", "compile", MP2, "-e", "o=2", "-e", "v=3", "-o", folder).exit_code == 0
    first = invoke("run", folder, "--random", 5, "--save-inputs", inputs, "--output", output)
    assert first.exit_code == 0, first.output
    again = invoke("run", folder, "--inputs", inputs, "--check")
    assert again.exit_code == 0, again.output
    assert again.stdout.splitlines()[0] == first.stdout.splitlines()[0]
    assert np.load(output)["e"].shape == ()


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
    assert "input g breaks its declared symmetry" in result.stderr
    assert "deviate by 1.000e+00" in result.stderr


def test_a_compiled_folder_is_not_compiled_again(tmp_path: Path) -> None:
    folder = tmp_path / "mp2"
    assert invoke("compile", MP2, "-e", "o=2", "-e", "v=3", "-o", folder).exit_code == 0
    again = invoke("compile", folder)
    assert again.exit_code == 2
    assert "is compiled already: give the spec it was made from" in again.stderr
    report = json.loads(invoke("report", folder, "--json").stdout)
    assert report["fusion"]["seconds"] is None  # no search was made for it
    assert report["seconds"] == {}


def test_report_at_other_extents_and_on_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "ladder"
    extents = ("-e", "o=2", "-e", "v=3", "-e", "x=4")
    assert invoke("-q", "compile", LADDER, *extents, "-o", folder).exit_code == 0
    small = json.loads(invoke("report", folder, "--json").stdout)
    large = json.loads(invoke("report", folder, "-e", "v=30", "--json").stdout)
    assert large["extents"]["v"] == 30
    assert large["operations"]["sequence"] > 100 * small["operations"]["sequence"]
    assert invoke("report", folder).exit_code == 0


def test_explain_lists_every_step_and_writes_the_sequence(tmp_path: Path) -> None:
    sequence = tmp_path / "seq.json"
    result = invoke(
        "explain", LADDER, "-e", "o=2", "-e", "v=3", "-e", "x=4", "--sequence", sequence
    )
    assert result.exit_code == 0, result.output
    assert "s0:" in result.stdout
    statements = json.loads(sequence.read_text())["statements"]
    assert all(len(t["factors"]) <= 2 for s in statements for t in s["terms"])


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
        "1MiB",
        "-o",
        folder,
    )
    assert result.exit_code == 3
    assert "the memory limit is 1,048,576" in result.stderr
    assert "use the objective peak, which fuses loops and needs" in " ".join(result.stderr.split())
    assert not folder.exists()


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["compile", "missing.spec"], 2, "missing.spec"),
        (["compile", MP2], 2, "no planning extent for space o, v: give -e o=10 -e v=10"),
        (["compile", MP2, "-e", "o=0", "-e", "v=2"], 2, "planning extent o=0 must be at least 1"),
        (["compile", MP2, "-e", "o=-3", "-e", "v=2"], 2, "planning extent o=-3"),
        (["compile", MP2, "-e", "o=two"], 2, "'two' in 'o=two' is not a whole number"),
        (["compile", MP2, "-e", "o"], 2, "write for example -e o=10"),
        (["compile", MP2, "-e", "o=2", "-e", "v=2", "-e", "z=2"], 2, "space z is not declared"),
        (["compile", MP2, "-e", "o=2", "-e", "v=2", "--memory-limit", "lots"], 2, "'lots'"),
        (["compile", MP2, "--target", "abacus"], 2, "'abacus' is not one of"),
        (["run", MP2, "-e", "o=2", "-e", "v=2", "--inputs", "none.npz"], 2, "none.npz"),
        (["report", "nowhere_tcgen"], 2, "cannot read nowhere_tcgen: No such file"),
        (
            ["compile", MP2, "-e", "o=2", "-e", "o=3", "-e", "v=2"],
            2,
            "o is given twice, as 2 and 3",
        ),
        (["run", MP2, "-e", "o=2", "-e", "v=2", "--random", "-1"], 2, "-1 is not in the range"),
        (
            ["report", MP2, "-e", "o=2", "-e", "v=2", "--figures", f"{MP2}/figures"],
            3,
            "cannot write to",
        ),
    ],
)
def test_bad_input_gets_a_clear_error(args, code: int, message: str, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = invoke(*args)
    assert result.exit_code == code, result.output
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert not list(tmp_path.iterdir())  # nothing half-written


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
        assert f"is compiled already, {named} would change nothing" in result.stderr
    assert invoke("run", folder, "-e", "o=3", "--memory-limit", "1MB").exit_code == 0


@pytest.mark.parametrize(
    ("objective", "advice"),
    [
        ("none", "try the objective time, which plans for the limit, or use the objective peak"),
        ("peak", "or try the objective time, which plans for the limit and may compute parts anew"),
        ("time", "since no plan that tcgen finds needs less"),
    ],
)
def test_a_limit_that_is_too_small_says_which_objective_to_try(objective: str, advice: str) -> None:
    sizes = ("-e", "o=3", "-e", "v=4", "--target", "numpy", "--memory-limit", "10")
    result = invoke("report", tcgen.spec_path("ccd_spin_orbital"), *sizes, "--objective", objective)
    assert result.exit_code == 3
    assert advice in " ".join(result.stderr.split())


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


def test_help_version_doctor_cache(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("TCGEN_CACHE_DIR", str(tmp_path))
    assert tcgen.__version__ in invoke("--version").stdout
    for command in ("compile", "report", "explain", "run", "doctor", "cache"):
        assert command in invoke("--help").stdout
        assert invoke(command, "--help").exit_code == 0
    findings = json.loads(invoke("doctor", "--json").stdout)["findings"]
    assert any(f["what"] == "C compiler" for f in findings)
    printed = invoke("doctor")
    assert printed.exit_code == 0
    for finding in findings:  # every word of them: no [extra] is taken for a style of the table
        for word in (finding["details"] + " " + finding["advice"]).split():
            assert word in printed.stdout
    assert "0 objects" in invoke("cache", "info").stdout
    assert invoke("cache", "clear").exit_code == 0


def test_json_output_is_the_only_output_in_a_pipe(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "tcgen.cli",
            "compile",
            str(MP2),
            "-e",
            "o=2",
            "-e",
            "v=2",
            "-o",
            str(tmp_path / "m"),
            "--json",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    json.loads(done.stdout)
    assert done.stderr == ""


def test_dump_and_verify_switches(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("TCGEN_DUMP", "program,plan")
    monkeypatch.setenv("TCGEN_DUMP_DIR", str(tmp_path / "dump"))
    monkeypatch.setenv("TCGEN_VERIFY", "2")
    args = ("-e", "o=2", "-e", "v=3", "-e", "x=4", "-o", tmp_path / "l")
    assert invoke("-q", "compile", LADDER, *args).exit_code == 0
    names = sorted(p.name for p in (tmp_path / "dump").iterdir())
    assert [n.partition("-")[2] for n in names] == ["program.txt", "plan.txt"]
    monkeypatch.setenv("TCGEN_VERIFY", "7")
    result = invoke("compile", LADDER, *args)
    assert result.exit_code == 2
    assert "TCGEN_VERIFY" in result.stderr


def test_every_symmetry_that_does_not_follow_is_shown_in_the_text(tmp_path: Path) -> None:
    path = tmp_path / "two.spec"
    path.write_text(
        "space o = 3\nindex i j : o\ninput A[o,o]\n"
        "output q[o,o] symmetric (0,1), w[o,o] antisymmetric (0,1)\n"
        "q[i,j] = A[i,j]\nw[i,j] = A[i,j] + A[j,i]\n"
    )
    result = invoke("compile", path, "-o", tmp_path / "x")
    assert result.exit_code == 2
    assert result.stderr.startswith(f"{path}:5:1: error: the symmetry declared for q")
    assert "    q[i,j] = A[i,j]\n    ^\n    write the missing P or S" in result.stderr
    assert f"{path}:6:1: error: the symmetry declared for w, w[j,i] = -w[i,j]" in result.stderr
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
    assert "failed with exit code 7" in result.stderr
    (log,) = (tmp_path / "cache" / "logs").glob("*.log")
    assert f"full log and source: {log}" in result.stderr
    assert "kernels.c:300: error: no 300" in log.read_text()
    assert not (tmp_path / "x").exists()


def test_a_compiler_without_openmp_gets_one_plain_warning(tmp_path: Path, monkeypatch) -> None:
    refuse = 'for a in "$@"; do [ "$a" = -fopenmp ] && exit 1; done; exec cc "$@"'
    _compiler(tmp_path, monkeypatch, refuse)
    script = tmp_path / "strange-cc"
    script.write_text(f"#!/bin/sh\n{refuse}\n")
    command = ["run", str(MP2), "-e", "o=3", "-e", "v=4", "--target", "cpu", "--check"]
    result = subprocess.run(
        [sys.executable, "-m", "tcgen.cli", *command], capture_output=True, text=True, check=True
    )
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"tcgen: warning: {script} has no OpenMP")


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_stops_within_a_second_and_leaves_nothing(tmp_path: Path, monkeypatch) -> None:
    _compiler(tmp_path, monkeypatch, f"touch {tmp_path}/started; exec sleep 60")
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    # The solver of this objective has its own handler of the signal, unless told otherwise.
    command = ["compile", str(FIGURE_1), "--objective", "linear", "-o", str(tmp_path / "x")]
    with subprocess.Popen(
        [sys.executable, "-m", "tcgen.cli", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        while not (tmp_path / "started").exists():
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=30)  # far below the compiler's 60 s
    assert process.returncode == 1
    assert output == ""
    assert errors.strip() == "Aborted!"
    assert not (tmp_path / "x").exists()
    assert list((tmp_path / "tmp").iterdir()) == []
    assert list((tmp_path / "cache").rglob("*.so")) == []


def test_run_counts_and_times_at_the_extents_of_the_run(tmp_path: Path) -> None:
    invoke("compile", MP2, "-e", "o=3", "-e", "v=4", "--target", "numpy", "-o", tmp_path / "x")
    small, large = (
        json.loads(invoke("run", tmp_path / "x", "-e", f"o={o}", "--json").stdout) for o in (3, 6)
    )
    assert large["extents"] == {"o": 6, "v": 4}
    assert large["operations"]["naive"] == 4 * small["operations"]["naive"]
    assert large["gflops"] > 0


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
    assert result.stderr == (
        f"tcgen: error: cannot read inputs from {path}: it is no .npz file, "
        f"write it with numpy.savez\n"
    )

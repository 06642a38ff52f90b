"""The command line: what it prints and what it writes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import tcgen
from support.command_line import FIGURE_1, LADDER, MP2, invoke
from support.messages import says
from tcgen.cli import timed_run as trial
from tcgen.compiler.driver import read_system
from tcgen.ir.system import planning_extents
from tcgen.resources import shipped_specs


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
    # Two terms: 2 products, 3 additions of energies, 1 to the target; one has a coefficient.
    assert operations["naive"] == (7 + 6) * (3 * 4) ** 2
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


def test_nothing_is_said_of_a_search_where_none_was_made(tmp_path: Path) -> None:
    folder = tmp_path / "ladder"
    extents = ("-e", "o=3", "-e", "v=4", "-e", "x=5")
    result = invoke("compile", LADDER, *extents, "--objective", "none", "-o", folder)
    last = result.stdout.split("fusion: ")[1]
    assert " ".join(last.split()).startswith("objective none: nothing is fused; ")
    assert "OPTIMAL" not in repr(tcgen.load(folder).report)
    assert ">Objective none: nothing is fused.</p>" in (folder / "report.html").read_text()
    fusion = json.loads(invoke("report", folder, "--json").stdout)["fusion"]
    assert fusion["objective"] == "none"
    assert (fusion["status"], fusion["bound"]) == (None, None)
    assert fusion["value"] > 0


@pytest.fixture
def one_thread() -> Iterator[None]:
    """The report counts what one thread holds."""
    tcgen.set_threads(1)
    yield
    tcgen.set_threads(None)


@pytest.mark.usefixtures("one_thread")
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
    assert report["peak_bytes_measured"] == report["memory"]["peak_bytes"] > 0


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


def test_a_compiled_folder_is_not_compiled_again(tmp_path: Path) -> None:
    folder = tmp_path / "mp2"
    assert invoke("compile", MP2, "-e", "o=2", "-e", "v=3", "-o", folder).exit_code == 0
    again = invoke("compile", folder)
    assert again.exit_code == 2
    assert says(again.stderr, "compiled spec")
    report = json.loads(invoke("report", folder, "--json").stdout)
    assert report["fusion"]["seconds"] is None  # a saved plan
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


def test_explain_and_report_have_the_same_operations() -> None:
    given = (LADDER, "-e", "o=2", "-e", "v=3", "-e", "x=4", "--target", "numpy")
    explained, reported = (
        json.loads(invoke(c, *given, "--json").stdout) for c in ("explain", "report")
    )
    assert explained["operations"] == reported["operations"]
    assert explained["steps"] == reported["steps"]


def test_explain_lists_every_step_and_writes_the_sequence(tmp_path: Path) -> None:
    sequence = tmp_path / "seq.json"
    result = invoke(
        "explain", LADDER, "-e", "o=2", "-e", "v=3", "-e", "x=4", "--sequence", sequence
    )
    assert result.exit_code == 0, result.output
    assert "s0:" in result.stdout
    statements = json.loads(sequence.read_text())["statements"]
    assert all(len(t["factors"]) <= 2 for s in statements for t in s["terms"])


@pytest.mark.slow
def test_the_check_of_a_result_whose_terms_all_cancel() -> None:
    """(T) of one electron pair is zero: only deviations beyond rounding are errors."""
    path = tcgen.spec_path("t_closed_shell")
    done = invoke("run", path, "-e", "o=1", "-e", "v=9", "--target", "numpy", "--check", "--json")
    numbers = json.loads(done.stdout)
    assert (done.exit_code, done.stderr) == (0, "")
    assert numbers["max_abs_error"] < 1e-12
    assert numbers["max_rel_error"] < 1e-12

    system = read_system(path)
    case = trial.random_inputs(system, {"o": 1, "v": 9}, "float64", 0)
    wrong = trial._check(system, case, {"e_t": np.array(1e-3)}, {}, "float64")
    assert says(wrong, "e_t interpreter")


def test_the_check_of_a_result_that_is_not_a_number() -> None:
    """The errors that are printed are NaN, not 0."""
    text = "space o\nindex i : o\ninput a[o]\noutput x, y\nx = a[i]*a[i]\ny = a[i]*a[i]\n"
    system = tcgen.read_spec(text)
    case = trial.random_inputs(system, {"o": 3}, "float64", 0)
    expected = case.inputs["a"] @ case.inputs["a"]
    numbers: dict[str, float] = {}
    outputs = {"x": np.array(np.nan), "y": np.array(expected)}
    assert says(trial._check(system, case, outputs, numbers, "float64"), "x interpreter nan")
    assert np.isnan(numbers["max_abs_error"])
    assert np.isnan(numbers["max_rel_error"])


def test_help_version_doctor_cache(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("TCGEN_CACHE_DIR", str(tmp_path))
    assert tcgen.__version__ in invoke("--version").stdout
    for command in ("compile", "report", "explain", "run", "solve", "doctor", "cache"):
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
            "tcgen.cli.commands",
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


def test_run_counts_and_times_at_the_extents_of_the_run(tmp_path: Path) -> None:
    invoke("compile", MP2, "-e", "o=3", "-e", "v=4", "--target", "numpy", "-o", tmp_path / "x")
    small, large = (
        json.loads(invoke("run", tmp_path / "x", "-e", f"o={o}", "--json").stdout) for o in (3, 6)
    )
    assert large["extents"] == {"o": 6, "v": 4}
    assert large["operations"]["naive"] == 4 * small["operations"]["naive"]
    assert large["gflops"] > 0


@pytest.mark.parametrize("extents", [{"o": 0, "v": 4}, {"o": 3, "v": 0}, {"o": 0, "v": 0}])
def test_run_with_extents_of_zero(extents: dict[str, int], tmp_path: Path) -> None:
    spec, file = tmp_path / "small.spec", tmp_path / "in.npz"
    spec.write_text(
        "space o = 3\nspace v = 4\nindex i : o\nindex a b : v\ninput t[o,v], g[v,v]\n"
        "output r, e\nr[i,a] = t[i,b]*g[b,a]\ne = sum(i,a) t[i,a]*t[i,a] + 1\n"
    )
    o, v = extents["o"], extents["v"]
    np.savez(file, t=np.ones((o, v)), g=np.ones((v, v)))
    options = [f"-e{space}={n}" for space, n in extents.items()]
    for given in (["--inputs", file], options):
        result = invoke("run", spec, *given, "--check", "--output", tmp_path / "out.npz")
        assert result.exit_code == 0, result.output
        with np.load(tmp_path / "out.npz") as out:
            assert out["r"].shape == (o, v)
            assert out["e"] == 1.0


def test_shipped_specs_have_names(tmp_path: Path) -> None:
    listed = json.loads(invoke("list", "--json").output)["specs"]
    assert sorted(listed) == sorted(path.stem for path in MP2.parent.glob("*.spec"))
    assert all(listed.values())
    assert "mp2_closed_shell\n    Closed-shell MP2" in invoke("list").output
    extents = ("-e", "o=3", "-e", "v=4", "--target", "numpy")
    done = invoke("compile", "mp2_closed_shell", *extents, "-o", tmp_path / "out")
    assert done.exit_code == 0
    assert invoke("run", "mp2_closed_shell", *extents, "--check").exit_code == 0
    unknown = invoke("compile", "mp4_closed_shell")
    assert unknown.exit_code == 2
    assert says(unknown.stderr, "mp4_closed_shell tcgen list")


def test_a_file_goes_before_a_shipped_spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mp2_df").mkdir()
    assert says(invoke("report", "mp2_df").stderr, "mp2_df folder manifest.json")


def test_a_method_without_its_spin_is_the_closed_shell_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = invoke("compile", "mp2.spec", "--target", "numpy")
    first, second, *_, last = outcome.stdout.splitlines()
    assert first == "planned for typical extents, o=20, v=100 (for others: -e o=10 -e v=50)"
    assert second.startswith("mp2_closed_shell  o = 20, v = 100")
    assert last == "wrote mp2_tcgen/"
    outcome = invoke("explain", "mp2", "-e", "o=5", "--target", "numpy")
    assert outcome.stdout.startswith("planned for typical extents, v=100 (for others: -e v=50)\n")
    given = ("-e", "o=5", "-e", "v=8", "--target", "numpy")
    assert "typical" not in invoke("report", "mp2", *given).stdout
    assert json.loads(invoke("report", "mp2", "--target", "numpy", "--json").stdout)["schema"] == 1
    program = tcgen.compile("mp2.spec", target="numpy")
    assert dict(program.manifest.planning_extents) == {"o": 20, "v": 100}


def test_every_shipped_spec_has_planning_extents() -> None:
    for path in shipped_specs().values():
        extents = dict(planning_extents(read_system(path), {}))
        assert all(extents.values()), path.name


def test_einsum_subscripts_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    extents = ("-e", "a=3", "-e", "b=4", "-e", "c=5")
    outcome = invoke("compile", "ab,bc->ac", *extents, "--target", "numpy")
    assert outcome.stdout.splitlines()[-1] == "wrote einsum_tcgen/"
    assert "max error 0" in invoke("run", "einsum_tcgen", "--random", 1, "--check").stdout
    outcome = invoke("compile", "ab,bc->ac", *extents[:4])
    assert outcome.exit_code == 2
    assert says(outcome.stderr, "no planning extent space c -e c=10")


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("cssd", "ccsd_closed_shell"),
        ("ccd.spec", "ccd_spin_orbital"),
        ("eom", "eom_ee_ccsd_spin_orbital"),
    ],
)
def test_a_name_that_is_no_file_lists_the_nearest(name: str, near: str) -> None:
    outcome = invoke("compile", name)
    assert outcome.exit_code == 2
    assert says(outcome.stderr, f"cannot read {name} similar names {near}")


def test_spin_writes_a_spec_with_comments(tmp_path: Path) -> None:
    written = tmp_path / "mp2.spec"
    result = invoke("spin", "mp2_spin_orbital", "--closed-shell", "-o", written)
    assert result.exit_code == 0, result.output
    text = written.read_text()
    assert says(text, "from eri(physicist) <ij|ab> = (ia|jb): eri[o,v,o,v].transpose(0,2,1,3)")
    assert [t.name for t in read_system(written).inputs] == ["v_oovv", "e_o", "e_v"]
    result = invoke("spin", "mp2_spin_orbital", "--unrestricted")
    assert says(result.stdout, "v_oOvV[o,O,v,V] eri_ab[o,v,O,V].transpose(0,2,1,3)")


def test_spin_needs_a_form_and_spin_orbitals(tmp_path: Path) -> None:
    result = invoke("spin", "mp2_spin_orbital")
    assert result.exit_code == 2
    assert says(result.stderr, "--closed-shell --unrestricted")
    for command in ("spin", "derive"):
        result = invoke(command, "ccd", "--closed-shell", "--unrestricted")
        assert result.exit_code == 2
        assert says(result.stderr, "one --closed-shell --unrestricted")
    plain = tmp_path / "plain.spec"
    plain.write_text("space n\nindex i : n\ninput x[n]\noutput y\ny = x[i]*x[i]\n")
    result = invoke("spin", plain, "--closed-shell")
    assert result.exit_code == 2
    assert says(result.stderr, "plain n occupied")


@pytest.mark.filterwarnings("always:ccd is integrated:RuntimeWarning")
@pytest.mark.parametrize(("name", "again"), [("mp2_spin_orbital", False), ("ccd", True)])
def test_equations_that_were_integrated_over_spins(name: str, again: bool, tmp_path: Path) -> None:
    """tcgen writes ccd.spec itself; its integrals are spin-free."""
    if again:
        name = str(tmp_path / "ccd.spec")
        assert invoke("spin", "ccd_spin_orbital", "--closed-shell", "-o", name).stderr == ""
    plan = ("--target", "numpy", "--no-optimize", "-e", "o=2", "-e", "v=2", "-o", tmp_path / "made")
    for command in (("spin", name, "--closed-shell"),
                    ("compile", name, "--spin", "closed-shell", *plan)):  # fmt: skip
        result = invoke(*command)
        assert result.exit_code == 0
        assert says(result.stderr, "warning ccd over spins spatial conserves") == again


def test_compile_integrates_over_spins(tmp_path: Path) -> None:
    arguments = ("-e", "o=2", "-e", "v=3", "--target", "numpy", "-o", tmp_path / "mp2")
    result = invoke("compile", "mp2_spin_orbital", "--spin", "closed-shell", *arguments)
    assert result.exit_code == 0, result.output
    program = tcgen.load(tmp_path / "mp2")
    v = np.random.default_rng(0).normal(size=(2, 2, 3, 3))
    v += v.transpose(1, 0, 3, 2)
    e = {"e_o": np.array([-2.0, -1.0]), "e_v": np.array([1.0, 2.0, 3.0])}
    d = e["e_o"][:, None, None, None] + e["e_o"][:, None, None] - e["e_v"][:, None] - e["e_v"]
    expected = np.sum((2 * v - v.transpose(1, 0, 2, 3)) * v / d)
    np.testing.assert_allclose(program(v_oovv=v, **e)["e"], expected, rtol=1e-12)


def test_report_counts_blocks(tmp_path: Path) -> None:
    spec = tmp_path / "ladder.spec"
    spec.write_text(
        "space o occupied\nspace v virtual\nindex i j : o\nindex a b c d : v\n"
        "input t[o,o,v,v], w[v,v,v,v] constant\noutput r\nr[i,j,a,b] = t[i,j,c,d]*w[c,d,a,b]\n"
    )
    flags = ("--no-optimize", "--objective", "none", "--target", "numpy", "--json")
    report = json.loads(
        invoke("report", spec, "--grading", "C2v:o=1,1,0,0,v=3,0,1,0", *flags).stdout
    )
    assert report["extents"] == {"o": 2, "v": 4}
    blocks = report["blocks"]
    assert blocks["orbitals"]["v"] == {"A1": 3, "A2": 0, "B1": 1, "B2": 0}
    # Pairs of occupied orbitals of A1, A2, B1 and B2: 2, 2, 0, 0; of virtual ones 10, 0, 6, 0.
    assert blocks["products"] == 2 * (2 * 10 * 10)
    assert blocks["dense_products"] == 2 * 2**2 * 4**4
    assert blocks["inputs_bytes"] == 8 * (2 * 10 + 10**2 + 6**2)
    equal = json.loads(
        invoke("report", spec, "--grading", "4", "-e", "o=8", "-e", "v=8", *flags).stdout
    )
    assert equal["blocks"]["orbitals"]["o"] == {"0,0": 2, "0,1": 2, "1,0": 2, "1,1": 2}
    mesh = json.loads(
        invoke("report", spec, "--grading", "1x2x2", "-e", "o=8", "-e", "v=8", *flags).stdout
    )
    assert mesh["blocks"]["products"] == equal["blocks"]["products"]
    for grading, words in (
        ("C2v:o=1,2", "2 numbers"),
        ("C2v:o", "SPACE=N"),
        ("X4", "X4"),
        ("C2v:q=1,0,0,0", "q"),
    ):
        result = invoke("report", spec, "--grading", grading, *flags)
        assert result.exit_code == 2
        assert words in result.stderr

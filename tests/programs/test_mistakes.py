"""What users get wrong, by every way in: a message that says what to do, and nothing half-done."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import tcgen
from support.messages import mentions, says
from tcgen.cli.commands import main
from tcgen.errors import TcgenError
from tcgen.frontend import read_spec
from tcgen.options import parse_bytes
from tcgen.testing import random_arrays

SPEC = """space o = 3
space v = 4
index i j : o
index a : v
input f[o,v], t[o,v], c
output r
r[i,j] = c*f[i,a]*t[j,a]
"""
F, T = np.arange(12.0).reshape(3, 4), np.ones((3, 4))
SQUARE = np.arange(9.0).reshape(3, 3)
HUGE = 2**40


@pytest.fixture(scope="module")
def program() -> tcgen.Program:
    return tcgen.compile(SPEC, target="numpy")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"f": [[1.0, 2.0], [3.0]]}, "f array"),
        ({"c": 10**400}, "c float64"),
        ({"out": {"r": np.ma.masked_array(SQUARE)}}, 'out["r"] masked'),
        ({"f": F.astype(">f8")}, '>f8 f.astype("float64")'),
        (
            {"f": np.broadcast_to(1.0, (HUGE, 1)), "t": np.broadcast_to(1.0, (HUGE, 1))},
            "memory 9,671,406,556,917,033,397,649",
        ),
    ],
)
def test_calls(program: tcgen.Program, arrays: dict[str, Any], message: str) -> None:
    with pytest.raises(TcgenError, match=mentions(message)):
        program(**{"f": F, "t": T, "c": 1.0, **arrays})


@pytest.mark.parametrize("name", ["a", "b"])
@pytest.mark.parametrize(
    "view", [lambda x: x, lambda x: x.T, lambda x: x[::-1]], ids=["whole", "transposed", "reversed"]
)
def test_results_may_overwrite_an_input(name: str, view: Callable[[Any], Any]) -> None:
    product = tcgen.compile("ij,jk->ik", extents=dict.fromkeys("ijk", 3), target="numpy")
    given = {"a": SQUARE.copy(), "b": SQUARE + 1}
    wanted = given["a"] @ given["b"]
    target = view(given[name])
    found = product(x0=given["a"], x1=given["b"], out={"y": target})["y"]
    assert found is target
    np.testing.assert_allclose(found, wanted)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"extents": {"o": 3, 1: 4}}, "extents names 1"),
        ({"extents": {"o": 2**63}}, "2^63 - 1"),
        ({"memory_limit": "9" * 400}, "memory 64 bits"),
        ({"memory_limit": 2**70}, "memory 64 bits"),
        ({"memory_limit": True}, "True memory"),
        ({"tune": "no"}, "tune"),
        ({"machine": {}}, "machine {}"),
        ({"sliced": 3}, "sliced=3 name input"),
    ],
)
def test_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(TcgenError, match=mentions(message)):
        tcgen.compile(SPEC, target="numpy", **options)


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (lambda: tcgen.compile("a\0b.spec"), "cannot read"),
        (lambda: tcgen.load(None), "None path folder"),
        (lambda: tcgen.spec_path(3), "spec 3"),
        (lambda: tcgen.set_threads(10**9), "1 4096"),
        (lambda: tcgen.lazy([[1.0], [1.0, 2.0]]), "lazy array"),
        (lambda: tcgen.lazy(np.ma.masked_array(F)), "lazy mask"),
        (lambda: tcgen.lazy(F.view(np.matrix)), "lazy elements"),
        (lambda: tcgen.lazy(SQUARE) * SQUARE.view(np.matrix), "lazy elements"),
        (lambda: tcgen.einsum(None, F), "labels operand 0 integers"),
        (lambda: tcgen.einsum("ij->i", [[1.0], [1.0, 2.0]]), "operand 0 array"),
        (lambda: tcgen.einsum("ij->i", F.astype(str)), "einsum"),
        (lambda: tcgen.einsum("ij,jk->ik", F, F.T, dtype="f8,f8"), "einsum"),
        (
            lambda: tcgen.einsum("ij,jk,kl", F, F.T, F, optimize=["einsum_path", ("a", 1), (0, 1)]),
            "True False",
        ),
        (lambda: tcgen.contract("ij,jk->ik", F, F.T, np.ones(3)), "alpha number shape (3,) einsum"),
        (lambda: tcgen.contract("ij,jk->ik", F, F.T, 2.0, 1.0, [[0.0] * 3] * 3), "out"),
        (
            lambda: tcgen.contract("ij,jk", F, F.T, 2.0, 1.0, np.broadcast_to(0.0, (3, 3))),
            "out read-only",
        ),
        (lambda: tcgen.tensordot(F, F, "ab"), "number axes pair"),
        (lambda: tcgen.tensordot(F, F, 1.5), "number axes pair"),
        (lambda: tcgen.tensordot(F, F, (0, 1, 2)), "number axes pair"),
        (lambda: tcgen.transpose(F, (0, 0)), "transpose axes="),
        (lambda: read_spec(3), "int spec"),
        (lambda: tcgen.from_sympy(None), "None NoneType expression"),
        (lambda: tcgen.from_wicked(None), "NoneType equations"),
        (lambda: tcgen.from_pdaggerq(None), "NoneType terms"),
        (lambda: tcgen.from_pdaggerq({"e": None}), "NoneType terms"),
        (lambda: tcgen.from_pdaggerq([1, 2]), "term list"),
        (lambda: tcgen.from_pdaggerq([[1, 2]]), "term list"),
        (lambda: tcgen.from_pdaggerq([]), "terms"),
        (lambda: tcgen.from_pdaggerq({"e": []}), "terms"),
        (lambda: tcgen.jvp(read_spec(SPEC), ["t"]), "directions=['t']"),
        (lambda: tcgen.jvp(read_spec(SPEC), {"t": "3 x"}), "'3 x' name tensor"),
        (lambda: random_arrays(read_spec(SPEC), {"o": 2, "v": 2}, "int"), "dtype='int'"),
    ],
)
def test_functions(mistake: Callable[[], object], message: str) -> None:
    with pytest.raises(TcgenError, match=mentions(message)):
        mistake()


def test_what_looks_like_a_mistake_and_is_none() -> None:
    x = tcgen.lazy(F)
    np.testing.assert_allclose(np.mean(x, 0, None, None, True), F.mean(0, keepdims=True))
    np.testing.assert_allclose(x.sum(1, None, None, True), F.sum(1, keepdims=True))
    np.testing.assert_allclose(tcgen.lazy(F.astype(">f8")) * 2 + F, F * 3)
    np.testing.assert_allclose(x ** float("inf"), F ** float("inf"))
    assert (f"{x.sum():.1f}", 5.0 in x, 5.5 in x) == ("66.0", True, False)
    target = tcgen.lazy(np.zeros(4))
    assert np.sum(x, axis=0, out=target) is target
    np.testing.assert_allclose(target, F.sum(0))
    np.add.at(target, [0, 0], 1)
    assert target[0] == F.sum(0)[0] + 2
    whole = np.modf(x / 2, out=(np.zeros((3, 4)), None))[1]
    np.testing.assert_allclose(whole, np.modf(F / 2)[1])
    assert tcgen.tensordot(F, F, np.array([1, 1])).shape == (3, 3)
    assert isinstance(tcgen.tensordot(F, F), np.ndarray)
    given = [("einsum_path", (0, 1), (0, 1)), ["einsum_path", (0, 1), (0, 1)]]
    for path in given:
        found = tcgen.einsum("ij,jk,kl", F, F.T, F, optimize=path)
        np.testing.assert_allclose(found, F @ F.T @ F)
    assert parse_bytes("0.5KiB") == 512


def test_constants_of_a_machine_reach_the_plan() -> None:
    def seconds(**options: Any) -> float:
        report = tcgen.compile(SPEC, target="numpy", **options).report
        found = (
            report["fusion"]["value"] if "objective" in options else report.pareto()[0]["seconds"]
        )
        assert isinstance(found, float)
        return found

    slow = "flops=1e6,bandwidth=1e6,cache=0"
    assert seconds(objective="time", machine=slow) > 2 * seconds(objective="time")
    assert seconds(pareto=True, machine=slow) > 2 * seconds(pareto=True)


def run(*arguments: object) -> Any:
    return CliRunner().invoke(main, [str(a) for a in arguments])


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "p.spec"
    path.write_text(SPEC)
    return path


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("-e", "o=99999999999999"), 3, "memory"),
        (("-e", "o=100000", "-e", f"v={10**18}"), 3, "2^63 bytes"),
        (("-e", f"v={10**30}"), 3, "2^63 bytes"),
        (("--inputs", "bytes.npz"), 2, "f.txt arrays"),
        (("--inputs", "no.npz"), 2, "inputs no.npz"),
        (("--output", "x.npz", "--save-inputs", "x.npz"), 2, "two files"),
    ],
)
def test_runs(
    arguments: tuple[str, ...],
    code: int,
    message: str,
    spec: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(spec.parent)
    with zipfile.ZipFile("bytes.npz", "w") as file:
        file.writestr("f.txt", "hello")
    result = run("run", spec, "--target", "numpy", *arguments)
    assert (result.exit_code, says(result.output, message)) == (code, True), result.output
    assert not Path("x.npz").exists()


def test_runs_on_what_is_no_number(spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """NaN and infinities that the equations give are no errors of the program."""
    monkeypatch.chdir(spec.parent)
    holes = np.where(F > 5, np.nan, F)
    holes[0, 0] = np.inf
    np.savez("holes.npz", f=holes, t=T, c=1.0)
    result = run("run", spec, "--target", "numpy", "--inputs", "holes.npz", "--check", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["max_rel_error"] < 1e-10


def test_other_files_and_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path / "deep.json"
    deep.write_text("[" * 100_000)
    assert says(run("compile", deep).output, "nested")
    path = tmp_path / "p.spec"
    path.write_text(SPEC)
    monkeypatch.setenv("TCGEN_DUMP", "plan,modul")
    result = run("compile", path, "--target", "numpy")
    assert (result.exit_code, says(result.output, "TCGEN_DUMP 'modul' all")) == (
        2,
        True,
    )
    monkeypatch.setenv("TCGEN_DUMP", "")
    monkeypatch.setenv("TCGEN_CC", "'")
    result = run("compile", path, "--target", "cpu")
    assert (result.exit_code, "No closing quotation" in result.output) == (3, True)
    monkeypatch.setenv("TCGEN_CC", "no-such-cc")
    result = run("run", path)
    assert result.exit_code == 0
    asked = "C compiler TCGEN_CC CC 'no-such-cc'"
    assert says(result.output, f"{asked} target numpy")
    with pytest.warns(UserWarning, match=mentions(asked)):
        tcgen.compile(SPEC)


def test_a_compiler_that_does_not_work_is_as_good_as_none(
    spec: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as a cc without the headers of its C library: only who asks for cpu is refused."""
    broken = tmp_path / "cc"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("TCGEN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TCGEN_CC", str(broken))
    reason = f"C compiler {broken} exit code 1"
    result = run("run", spec, "--json")
    assert (result.exit_code, json.loads(result.stdout)["target"]) == (0, "numpy")
    assert says(result.stderr, f"{reason} target numpy")
    assert says(run("doctor").stdout, reason)
    with pytest.warns(UserWarning, match=mentions(reason)):
        tcgen.compile(SPEC)
    result = run("run", spec, "--target", "cpu")
    assert (result.exit_code, says(result.stderr, reason)) == (3, True)


@pytest.mark.parametrize("command", ["compile", "report", "explain", "run"])
def test_a_folder_of_anything_else(command: str, tmp_path: Path) -> None:
    result = run(command, tmp_path)
    assert result.exit_code == 2
    assert says(result.output, "folder program manifest.json")


def test_what_is_interrupted_leaves_no_half_of_a_file(
    spec: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(spec.parent)
    Path("old.npz").write_text("old")
    before = sorted(p.name for p in Path().iterdir())

    def interrupted(file: Any, **arrays: Any) -> None:
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", interrupted)
    for name in ("new.npz", "old.npz"):
        assert run("run", spec, "--target", "numpy", "--output", name).exit_code == 1
    assert Path("old.npz").read_text() == "old"
    assert sorted(p.name for p in Path().iterdir()) == before


def test_what_a_link_names_is_written(spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(spec.parent)
    Path("link.spec").symlink_to("real.spec")
    assert run("convert", spec, "-o", "link.spec").exit_code == 0
    assert Path("link.spec").is_symlink()
    assert Path("real.spec").read_text().startswith("# p")
    assert run("convert", spec, "-o", "/dev/null").exit_code == 0

"""Sequences and plans from the cache: the same bytes, found only once, never stale or damaged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from support.messages import mentions
from tcgen.compiler import plan_cache
from tcgen.compiler.driver import compile_artifact, compile_system, read_system
from tcgen.compiler.plan_cache import cached_plans
from tcgen.compiler.tracer import Tracer
from tcgen.errors import ArgumentError, VerifyError
from tcgen.options import Options
from tcgen.resources import shipped_files

SPEC = """
space o = 3
space v = 4
index i j k l : o
index a b : v
input t[o,v], f[o,o], g[o,o]
output r, s
r[i,j] = f[i,k]*g[k,l]*f[l,j] + f[i,k]*g[k,j]
s[i,a] = {factor}r[i,j]*t[j,a] + f[i,j]*t[j,a]
"""
OPTIONS = Options(target="numpy", objective="memory")


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A cache of its own that keeps searches of any length."""
    monkeypatch.setenv("TCGEN_PLAN_CACHE", "1")
    monkeypatch.setenv("TCGEN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(plan_cache, "_MIN_SECONDS", -1.0)
    return tmp_path / "cache" / "plans"


@pytest.fixture
def no_search(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Searching fails from here on."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("searched again")

    monkeypatch.setattr("tcgen.compiler.sequences.form_sequences", refuse)
    monkeypatch.setattr("tcgen.compiler.limits.plan_fusion", refuse)
    return monkeypatch


def files(
    folder: Path, options: Options = OPTIONS, factor: str = ""
) -> tuple[tuple[str, str], ...]:
    """The files of the artifact of the equations."""
    spec = folder / "sums.spec"
    spec.write_text(SPEC.format(factor=factor))
    return compile_system(read_system(spec), options).artifact.files


def test_the_second_compilation_searches_nothing(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    first = files(tmp_path)
    assert len(cached_plans()) == 2
    request.getfixturevalue("no_search")
    assert files(tmp_path) == first


@pytest.mark.parametrize(
    ("options", "factor"),
    [
        (OPTIONS, "2*"),
        (replace(OPTIONS, objective="peak"), ""),
        (replace(OPTIONS, extents=(("o", 5), ("v", 2))), ""),
        (replace(OPTIONS, effort=2), ""),
    ],
)
def test_other_equations_and_options_are_searched(
    options: Options, factor: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    files(tmp_path)
    request.getfixturevalue("no_search")
    with pytest.raises(VerifyError, match="searched again"):
        files(tmp_path, options, factor)


def test_the_sequence_serves_other_plans(tmp_path: Path) -> None:
    files(tmp_path)
    files(tmp_path, replace(OPTIONS, objective="peak", memory_limit=10**6))
    assert sorted(p.name.split("-")[0] for p in cached_plans()) == ["plan", "plan", "program"]


@pytest.mark.parametrize("damage", ["", "{", '{"schema": 2, "nodes": [], "root": 7}', "[]"])
def test_damaged_files_are_searched_again(damage: str, tmp_path: Path) -> None:
    first = files(tmp_path)
    sound = {p: p.read_text() for p in cached_plans()}
    for path in sound:
        path.write_text(damage)
    assert files(tmp_path) == first
    assert {p: p.read_text() for p in cached_plans()} == sound


def test_another_planner_searches_anew(tmp_path: Path, no_search: pytest.MonkeyPatch) -> None:
    no_search.setattr(plan_cache, "_code", lambda: "another version")
    with pytest.raises(VerifyError, match="searched again"):
        files(tmp_path)


def test_it_can_be_switched_off(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TCGEN_PLAN_CACHE", "0")
    files(tmp_path)
    assert cached_plans() == ()
    monkeypatch.setenv("TCGEN_PLAN_CACHE", "yes")
    with pytest.raises(ArgumentError, match=mentions("TCGEN_PLAN_CACHE='yes' 0 1")):
        files(tmp_path)


def test_plans_that_others_may_write_are_searched_again(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    files(tmp_path)
    for path in cached_plans():
        path.chmod(0o666)
    request.getfixturevalue("no_search")
    with pytest.raises(VerifyError, match="searched again"):
        files(tmp_path)


def test_a_folder_that_cannot_be_written_costs_time_only(cache: Path, tmp_path: Path) -> None:
    cache.parent.mkdir()
    cache.write_text("a file where the folder should be")
    assert files(tmp_path)


def programs(folder: Path) -> list[str]:
    """The sources of a program without documents, and the stages that the cache has."""
    spec = folder / "sums.spec"
    spec.write_text(SPEC.format(factor=""))
    artifact = compile_artifact(read_system(spec), OPTIONS, Tracer())
    assert not artifact.has("report.json")
    return [artifact.text("kernels.py"), *sorted(p.name.split("-")[0] for p in cached_plans())]


def test_whole_programs_are_not_lowered_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first = programs(tmp_path)
    assert first[1:] == ["artifact", "plan", "program"]
    assert first[0] == dict(files(tmp_path))["kernels.py"]

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("lowered again")

    monkeypatch.setattr("tcgen.compiler.limits.lower_within", refuse)
    assert programs(tmp_path) == first
    # The stages are made where their levels are dumped.
    monkeypatch.setenv("TCGEN_DUMP", "module")
    with pytest.raises(VerifyError, match="lowered again"):
        programs(tmp_path)


def test_shipped_specs_are_read_from_the_cache(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first = read_system(Path("ccsd"))
    assert [p.name.split("-")[0] for p in cached_plans()] == ["system"]
    monkeypatch.setattr("tcgen.frontend.read_spec", None)
    assert read_system(Path("ccsd_closed_shell.spec")) == first


def test_templates_and_specs_are_part_of_the_key() -> None:
    assert {"specs", "c"} <= {path.parent.name for path in shipped_files()}


def test_short_searches_are_not_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(plan_cache, "_MIN_SECONDS", 1e9)
    files(tmp_path)
    assert cached_plans() == ()

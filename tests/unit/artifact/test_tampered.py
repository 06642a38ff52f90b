"""Artifacts that were changed and sealed again: refused by name, or run, never a traceback."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcgen
from support import hand_modules as hand
from support.command_line import invoke
from support.messages import mentions
from tcgen.artifact.folder import Artifact, _canonical, _digest
from tcgen.compiler.documents import (
    read_artifact_system,
    read_compile_records,
    read_executed,
    read_plan,
)
from tcgen.emit import emit_artifact
from tcgen.errors import ArtifactError
from tcgen.records.loops import stored_shape
from tcgen.runtime.program import load

EXTENTS = {"o": 2, "v": 3}


def saved(name: str, folder: Path, target: str = "numpy") -> Path:
    module = hand.ALL[name]()
    planning = tuple(EXTENTS.items())
    return emit_artifact(module, target=target, planning_extents=planning).save(folder)


def reseal(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change what the manifest holds, and write its checksum anew."""
    data = json.loads((folder / "manifest.json").read_bytes())
    del data["tcgen"]
    change(data)
    (folder / "manifest.json").write_text(json.dumps({"tcgen": _digest(_canonical(data)), **data}))


def rewrite(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    reseal(folder, lambda data: data["files"].update({name: _digest(text)}))


@pytest.mark.parametrize(
    "name",
    ["../evil.py", "/tmp/evil.py", "a/../../evil", "a//b", "C:/evil", "a\\b", "./a", "", "..",
     "manifest.json", "kernels.py/inside", "a\0b", "\ud800"],
)  # fmt: skip
def test_files_outside_the_folder_are_refused(name: str, tmp_path: Path) -> None:
    folder = saved("energy", tmp_path / "deep" / "er" / "a_tcgen")
    good = Artifact.load(folder)
    inside = folder / "evil"
    inside.write_text("x")
    reseal(folder, lambda data: data["files"].update({name: _digest("x")}))
    with pytest.raises(ArtifactError, match=mentions("file relative folder compile")):
        Artifact.load(folder)
    with pytest.raises(ArtifactError, match=mentions("file relative folder")):
        good.with_files(((name, "x"),))
    assert sorted(p.name for p in tmp_path.rglob("evil*")) == ["evil"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_pipe_in_place_of_a_file_is_not_waited_for(tmp_path: Path) -> None:
    folder = saved("energy", tmp_path / "a_tcgen")
    (folder / "kernels.py").unlink()
    os.mkfifo(folder / "kernels.py")
    with pytest.raises(ArtifactError, match=mentions("kernels.py read compile")):
        Artifact.load(folder)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a":' * 100_000, '{"tcgen": ' + "9" * 5000 + "}"]
)
def test_deep_and_long_json_is_corrupted(text: str, tmp_path: Path) -> None:
    folder = saved("energy", tmp_path / "a_tcgen")
    (folder / "manifest.json").write_text(text)
    with pytest.raises(ArtifactError, match=mentions("corrupted compile")):
        Artifact.load(folder)
    with pytest.raises(ArtifactError):
        saved("energy", folder)  # nor is it taken for an artifact that may be replaced


def places(part: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value of a JSON tree."""
    if path:
        yield path
    keys = (
        part.keys()
        if isinstance(part, dict)
        else range(len(part))
        if isinstance(part, list)
        else ()
    )
    for key in keys:
        yield from places(part[key], (*path, key))


def mutate(tree: dict[str, Any], draw: random.Random) -> None:
    """One value becomes another one of the tree, or an odd one, or is left out or doubled."""
    found = list(places(tree))

    def at(path: tuple[Any, ...]) -> Any:
        part = tree
        for key in path:
            part = part[key]
        return part

    path = draw.choice(found)
    holder, key = at(path[:-1]), path[-1]
    odd = (None, True, -1, 0, 1, 2, 3, 2**70, "", "o", "x" * 50, [], {}, [[]], 1.5)
    match draw.randrange(4):
        case 0:
            holder[key] = deepcopy(at(draw.choice(found)))
        case 1 if isinstance(holder, list):
            holder.append(holder[key])
        case 2 if isinstance(holder, list):
            del holder[key]
        case _:
            holder[key] = draw.choice(odd)


def call(folder: Path) -> None:
    """Load, describe and call a program of NumPy, with arrays as its manifest asks for."""
    program = load(folder)
    repr(program)
    program.peak_bytes(EXTENTS)
    manifest = program.manifest
    extents = {base: EXTENTS.get(base, 2) for base in manifest.bases}
    shapes = {t.name: stored_shape(t, extents) for t in manifest.tensors}
    arrays = {t.name: np.ones(shapes[t.name], manifest.dtype) for t in manifest.tensors}
    results = {t.name: arrays.pop(t.name) for t in manifest.tensors if t.role == "output"}
    program(out=results, **arrays)
    program.bind(**{t.name: arrays[t.name] for t in manifest.tensors
                    if t.role != "output" and not t.volatile})  # fmt: skip


def test_sources_that_do_not_fit_are_named(tmp_path: Path) -> None:
    folder = saved("energy", tmp_path / "a_tcgen")
    for text in ("", "def f(: pass", "raise ValueError", "def nothing(): pass"):
        rewrite(folder, "kernels.py", text)
        with pytest.raises(ArtifactError, match=mentions("kernels.py manifest compile")):
            call(folder)
    folder = saved("energy", tmp_path / "c_tcgen", "cpu")
    rewrite(folder, "kernels.c", "long tcgen_threads(void) { return 1; }\n")
    with pytest.raises(
        ArtifactError, match=mentions("energy manifest tcgen_phase_volatile compile")
    ):
        call(folder)


def test_documents_that_do_not_fit_are_named(tmp_path: Path) -> None:
    program = tcgen.compile("input x[o], y[o]\nspace o = 3\nindex i : o\noutput e\ne = x[i]*y[i]\n",
                            target="numpy")  # fmt: skip
    folder = program.save(tmp_path / "a_tcgen")
    read: dict[str, Callable[[Artifact], object]] = {
        "plan.json": read_plan, "system.json": read_artifact_system,
        "report.json": read_compile_records,
        "executed.json": lambda artifact: read_executed(artifact, read_plan(artifact)),
    }  # fmt: skip
    for name, reader in read.items():
        text = (folder / name).read_text()
        for damage in ("", "[]", "3", "[" * 100_000, '{"schema":2,"nodes":[[]],"root":{"n":-1}}',
                       '{"schema":2,"nodes":[3],"root":0}', '{"schema":2}'):  # fmt: skip
            if name == "report.json" and damage.startswith("{"):
                continue
            rewrite(folder, name, damage)
            with pytest.raises(ArtifactError, match=mentions("compile")):
                reader(Artifact.load(folder))
        rewrite(folder, name, text)
    rewrite(folder, "report.json", "[]")
    with pytest.raises(ArtifactError, match=mentions("report.json JSON")):
        _ = load(folder).report


def test_documents_of_another_program_are_named(tmp_path: Path) -> None:
    spec = "input {x}[o], y[o]\nspace o = 3\nindex i : o\noutput {e}\n{e} = {x}[i]*y[i]\n"
    folder, other = (
        tcgen.compile(spec.format(x=x, e=e), target="numpy").save(tmp_path / e)
        for x, e in (("x", "e"), ("z", "f"))
    )
    for name, reader in (("plan.json", read_plan), ("system.json", read_artifact_system)):
        rewrite(folder, name, (other / name).read_text())
        with pytest.raises(ArtifactError, match=mentions(f"{name} outputs f compile")):
            reader(Artifact.load(folder))


@pytest.mark.parametrize("name", ["plan.json", "system.json", "executed.json"])
def test_random_changes_of_documents_end_in_an_error_of_tcgen(name: str, tmp_path: Path) -> None:
    spec = (
        "space o = 2\nspace v = 3\nindex i j : o\nindex a : v\n"
        "input x[o,o] symmetric (0,1), y[o,v]\n"
        "output e\ne = 1/2*x[i,j]*y[i,a]*y[j,a]\n"
    )
    folder = tcgen.compile(spec, target="numpy", objective="memory").save(tmp_path / "a_tcgen")
    text, refused = (folder / name).read_text(), 0
    for seed in range(15):
        data = json.loads(text)
        mutate(data, random.Random(seed))
        rewrite(folder, name, json.dumps(data))
        for command in (["report", "--json"], ["explain"], ["run", "--random", "1", "--check"]):
            result = invoke(command[0], folder, *command[1:])  # raises what is not TcgenError
            refused += result.exit_code != 0
    assert refused > 10

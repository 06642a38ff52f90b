"""Artifacts that were changed and sealed again: refused by name, or run, never a traceback."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator
from copy import deepcopy
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcgen
from support import hand_modules as hand
from support.command_line import invoke
from support.messages import mentions
from tcgen.artifact.folder import Artifact, _canonical, _digest
from tcgen.artifact.sizes import stored_shape
from tcgen.compiler.documents import (
    read_artifact_system,
    read_compile_records,
    read_executed,
    read_plan,
)
from tcgen.emit import emit_artifact
from tcgen.errors import ArtifactError, TcgenError
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


def nested(data: dict[str, Any]) -> None:
    items = data["manifest"]["host_volatile"]
    for n in range(400):
        items = [{"kind": "loop", "variable": f"i{n}", "space": "o", "tile": None, "below": None,
                  "body": items}]  # fmt: skip
    data["manifest"]["host_volatile"] = items


def set_at(*path: str | int, value: object) -> Callable[[dict[str, Any]], None]:
    def change(data: dict[str, Any]) -> None:
        part: Any = data["manifest"]
        for key in path[:-1]:
            part = part[key]
        part[path[-1]] = value

    return change


INCONSISTENT: list[tuple[str, Callable[[dict[str, Any]], None], str]] = [
    ("energy", nested, "corrupted"),
    ("energy", set_at("target", value="tpu"), "target 'tpu'"),
    ("energy", set_at("dtype", value="float16"), "dtype 'float16'"),
    ("energy", set_at("memory_limit", value=-1), "memory_limit"),
    ("energy", set_at("planning_extents", value=[["q", 1]]), "planning_extents 'q'"),
    ("energy", set_at("planning_extents", value=[["o", 10**30]]), "planning_extents.o"),
    ("energy", set_at("tensors", 0, "spaces", 0, value="nowhere"), "tensors[0].spaces 'nowhere'"),
    ("energy", set_at("tensors", 0, "order", 0, value=7), "tensors[0].order permutation"),
    ("energy", set_at("tensors", 0, "role", value="spy"), "tensors[0].role 'spy'"),
    ("energy", set_at("tensors", 0, "name", value="\n"), "tensors printed"),
    ("energy", set_at("buffers", 0, "lengths", value=[]), "buffers[0].lengths"),
    ("energy", set_at("buffers", 0, "place", value="moon"), "buffers[0].place 'moon'"),
    ("energy", set_at("buffers", 0, "live", value=[3, 1]), "buffers[0].live"),
    ("energy", set_at("kernels", 0, "reads", value=["nothing"]), "kernels[0] 'nothing'"),
    ("energy", set_at("kernels", 0, "host", value=["i"]), "host_volatile variable 'i'"),
    ("energy", set_at("constant_positions", value=99), "host_volatile phase"),
    ("packed",
     set_at("tensors", 0, "packed", value=[{"first": 9, "antisymmetric": True, "count": 2}]),
     "tensors[0].packed neighbouring"),
    ("joined", set_at("spaces", 2, "parts", value=["p"]), "spaces[2].parts 'p'"),
    ("joined", set_at("spaces", 2, "parts", value=["o", "v"] * 40), "spaces[2] 64"),
    ("generated", set_at("host_volatile", 1, "tile", value=0), "host_volatile[1] tile"),
    ("generated", set_at("host_volatile", 1, "below", value="z"), "host_volatile[1].below 'z'"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "change", "facts"), INCONSISTENT)
def test_parts_that_do_not_fit_are_named(
    name: str, change: Callable[[dict[str, Any]], None], facts: str, tmp_path: Path
) -> None:
    folder = saved(name, tmp_path / "a_tcgen")
    reseal(folder, change)
    with pytest.raises(ArtifactError, match=mentions(f"corrupted compile {facts}")):
        load(folder)


@pytest.mark.parametrize("default", ["1e999999999", "1/0", "x", "9" * 500, "-1/" + "7" * 399])
def test_defaults_are_numbers(default: str, tmp_path: Path) -> None:
    folder = saved("energy", tmp_path / "a_tcgen")

    def change(data: dict[str, Any]) -> None:
        tensor = data["manifest"]["tensors"][0]
        tensor.update({"spaces": [], "order": [], "packed": [], "symmetry": [], "default": default})

    reseal(folder, change)
    with pytest.raises(ArtifactError, match=mentions("corrupted")):
        load(folder)


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


def mutate(data: dict[str, Any], draw: random.Random) -> None:
    """One value becomes another one of the manifest, or an odd one, or is left out or doubled."""
    tree = data["manifest"]
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
    shapes = {t.name: stored_shape(t, manifest, extents) for t in manifest.tensors}
    arrays = {t.name: np.ones(shapes[t.name], t.dtype) for t in manifest.tensors}
    results = {t.name: arrays.pop(t.name) for t in manifest.tensors if t.role == "output"}
    program(out=results, **arrays)
    program.bind(**{t.name: arrays[t.name] for t in manifest.tensors
                    if t.role != "output" and not t.volatile})  # fmt: skip


@pytest.mark.parametrize("name", ["energy", "packed", "joined", "generated", "phases"])
def test_random_changes_end_in_an_error_of_tcgen_or_run(name: str, tmp_path: Path) -> None:
    folder = saved(name, tmp_path / "a_tcgen")
    text = (folder / "manifest.json").read_text()
    refused = 0
    for seed in range(60):
        (folder / "manifest.json").write_text(text)
        draw = random.Random(seed)
        for _ in range(draw.randint(1, 2)):
            reseal(folder, partial(mutate, draw=draw))
        try:
            call(folder)
        except TcgenError:
            refused += 1
        except Exception as error:
            raise AssertionError(f"seed {seed}") from error
    assert refused > 30


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


@pytest.mark.parametrize("text", ["1e999999999", "1/0", "1/00", "0x1", " 1", "1_0", "nan"])
def test_fractions_are_written_as_such(text: str) -> None:
    from tcgen.artifact.codec import from_tree

    with pytest.raises(TypeError, match=mentions("c Fraction")):
        from_tree(Fraction, text, "c")


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
        data = {"manifest": json.loads(text)}
        mutate(data, random.Random(seed))
        rewrite(folder, name, json.dumps(data["manifest"]))
        for command in (["report", "--json"], ["explain"], ["run", "--random", "1", "--check"]):
            result = invoke(command[0], folder, *command[1:])  # raises what is not TcgenError
            refused += result.exit_code != 0
    assert refused > 10

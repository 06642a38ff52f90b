"""The examples of the documentation are executed: docstrings, and the code blocks of the pages.

On a page, a block marked
- ``python`` runs as a doctest if it has prompts, else as a script; one namespace for the page;
- ``console`` runs its ``$`` lines in the page's folder and compares their output;
- ``tcgen`` is read by the front end. Directly followed by a ``text`` block that begins with
  ``error:`` it must be refused with that message; two blocks with ``means the same as`` between
  them must give equal values. After ``<!-- file: NAME -->`` it is also written to that file.
A page with ``<!-- needs: MODULE -->`` is skipped if that module is missing.
The first ``tcgen`` block of the language page declares what its other examples use.
"""

from __future__ import annotations

import doctest
import importlib
import os
import pkgutil
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcgen
from support.marks import slow_where
from support.paths import ROOT
from tcgen.algebra.equations.proven_symmetry import normalised
from tcgen.compiler.driver import read_system
from tcgen.interp import evaluate_system
from tcgen.ir.system import System
from tcgen.testing import random_arrays

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LONG = (
    *("README", "quickstart", "memory", "cli", "targets", "solve", "spin", "reports"),
    *("howto_methods", "derivation", "states"),
)
LANGUAGE_PAGE = ROOT / "docs" / "spec.md"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
# Dots after a word, as in [ARGS]..., are text.
WILDCARD = re.compile(r"(?<!\S)\.\.\.")
FENCE = re.compile(
    r"(?:<!-- file: (?P<file>\S+) -->\n)?^```(?P<lang>\{?[\w-]+\}?)[^\n]*\n(?P<body>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Block:
    lang: str
    body: str
    line: int
    file: str | None
    before: str  # text between the previous block and this one


def blocks(page: Path) -> list[Block]:
    text = page.read_text()
    found, end = [], 0
    for match in FENCE.finditer(text):
        line = text.count("\n", 0, match.start("body")) + 1
        before = text[end : match.start()].strip()
        found.append(Block(match["lang"], match["body"], line, match["file"], before))
        end = match.end()
    return found


def modules() -> list[str]:
    return [
        "tcgen",
        *sorted(
            m.name
            for m in pkgutil.walk_packages(tcgen.__path__, "tcgen.")
            if m.name != "tcgen.__main__"
        ),
    ]


@pytest.mark.parametrize("name", modules())
def test_docstrings(name: str) -> None:
    module = importlib.import_module(name)
    failures, _ = doctest.testmod(module, optionflags=FLAGS)
    assert failures == 0


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's folder: specs and examples beside the user's own files, ``tcgen`` on the path."""
    for name in ("specs", "examples"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("*_tcgen"))
    commands = tmp_path / ".commands"
    commands.mkdir()
    start = "-c \"from tcgen.cli.commands import main; main(prog_name='tcgen')\""
    for name, arguments in (("tcgen", start), ("python", "")):
        command = commands / name
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments} "$@"\n')
        command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{commands}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "page",
    slow_where(lambda page: page.stem in LONG, PAGES),
    ids=lambda p: p.name,
)
def test_page(page: Path, folder: Path) -> None:
    for module in re.findall(r"<!-- needs: (\w+) -->", page.read_text()):
        pytest.importorskip(module)
    names: dict[str, Any] = {}
    for block in blocks(page):
        where = f"{page.name}:{block.line}"
        if block.file:
            (folder / block.file).write_text(block.body)
        match block.lang:
            case "python" if ">>>" in block.body:
                run_doctest(block, names, where)
            case "python":
                exec(compile(block.body, where, "exec"), names)
            case "console":
                run_console(block, page)
            case "tcgen" if page != LANGUAGE_PAGE:
                assert read(block.body).equations, where
            case "tcgen" | "text" | "bash" | "c" | "cpp" | "fortran" | "cmake" | "meson" | "json":
                pass
            case "{eval-rst}" | "{toctree}" | "{literalinclude}":
                pass
            case lang:
                pytest.fail(f"{where}: blocks of {lang} cannot be checked")


def run_doctest(block: Block, names: dict[str, Any], where: str) -> None:
    test = doctest.DocTestParser().get_doctest(block.body, names, where, where, block.line)
    said: list[str] = []
    doctest.DocTestRunner(optionflags=FLAGS).run(test, out=said.append, clear_globs=False)
    names.update(test.globs)
    assert not said, "".join(said)


def run_console(block: Block, page: Path) -> None:
    """Run the commands of a block; UPDATE_GOLDEN=1 rewrites outputs without a wildcard."""
    checker = doctest.OutputChecker()
    for part in re.split(r"^\$ ", block.body, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        while command.endswith("\\"):
            more, _, expected = expected.partition("\n")
            command += "\n" + more
        result = subprocess.run(
            ["bash", "-c", command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        said = result.stdout
        where = f"{page.name}:{block.line}: $ {command}\n{said}"
        if not expected.strip():
            assert result.returncode == 0, where
        elif not checker.check_output(literal(expected), literal(said), FLAGS):
            assert os.environ.get("UPDATE_GOLDEN"), where
            assert not WILDCARD.search(expected), f"write this one by hand: {where}"
            old, new = f"$ {command}\n{expected}", f"$ {command}\n{said}"
            page.write_text(page.read_text().replace(old, new))


def literal(text: str) -> str:
    """The text with an ellipsis character for dots after a word, which are not a wildcard."""
    return re.sub(r"(?<=\S)\.\.\.", "\N{HORIZONTAL ELLIPSIS}", text)


def language_examples() -> list[Any]:
    found = blocks(LANGUAGE_PAGE)
    prelude = next(b.body for b in found if b.lang == "tcgen")
    cases = []
    for n, block in enumerate(found):
        if block.lang != "tcgen" or block.body == prelude:
            continue
        follower = found[n + 1] if n + 1 < len(found) else None
        refused = (
            follower.body
            if follower and follower.lang == "text" and follower.body.startswith("error:")
            else None
        )
        same = found[n - 1].body if block.before == "means the same as" else None
        cases.append(pytest.param(prelude, block, refused, same, id=f"line{block.line}"))
    return cases


@pytest.mark.parametrize(("prelude", "block", "refused", "same"), language_examples())
def test_language_page(
    prelude: str, block: Block, refused: str | None, same: str | None, folder: Path
) -> None:
    for other in blocks(LANGUAGE_PAGE):
        if other.file:
            (folder / other.file).write_text(other.body)
    text = complete(block.body, prelude)
    if refused is not None:
        with pytest.raises(tcgen.TcgenError) as caught:
            normalised(read(text))
        said = re.sub(r"^\S+?:\d+:\d+: ", "", str(caught.value), flags=re.MULTILINE)
        said = said if said.startswith("error:") else f"error: {said}"
        assert doctest.OutputChecker().check_output(refused, said + "\n", FLAGS), said
        return
    system = read(text)
    system.verify()
    normalised(system)
    if same is not None:
        left, right = values(text), values(complete(same, prelude))
        assert left.keys() == right.keys()
        for name in left:
            np.testing.assert_allclose(left[name], right[name], rtol=1e-12, atol=1e-12)


def complete(body: str, prelude: str) -> str:
    """An example with the page's declarations, unless it declares its own spaces."""
    return body if re.search(r"^(space|include)\b", body, re.MULTILINE) else prelude + body


def read(text: str) -> System:
    """The system of a spec's text; its file is example.spec in the current folder."""
    path = Path("example.spec")
    path.write_text(text)
    return read_system(path)


def values(text: str) -> dict[str, np.ndarray]:
    """Outputs of the equations at small extents and fixed random inputs."""
    system = read(text)
    bases = [s for s in system.spaces if not s.parts]
    extents = {s.name: 2 + n % 3 for n, s in enumerate(bases)}
    arrays = random_arrays(system, extents, dtype="float64", seed=0)
    starts = {t.name: arrays.pop(t.name) for t in system.outputs if t.name in arrays}
    return dict(evaluate_system(system, arrays, extents, out=starts))

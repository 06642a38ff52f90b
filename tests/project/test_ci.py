"""CI's blocks: each has a function and a turn, and the sum stays within the room of a run."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from types import ModuleType

import pytest

from support.paths import ROOT

RUN = (ROOT / ".ci" / "run").read_text()


@pytest.fixture(scope="module")
def blocks() -> ModuleType:
    spec = importlib.util.spec_from_file_location("ci_blocks", ROOT / ".ci" / "blocks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_every_block_is_a_function_of_the_script(blocks: ModuleType) -> None:
    functions = {f.replace("_", "-") for f in re.findall(r"^block_(\w+)\(\)", RUN, re.MULTILINE)}
    assert functions == {b.name for b in blocks.BLOCKS}
    done = subprocess.run(["bash", "-n", str(ROOT / ".ci" / "run")], check=False)
    assert done.returncode == 0


def test_every_package_asks_for_a_block(blocks: ModuleType) -> None:
    packages = [f"tcgen/{p.parent.name}/" for p in (ROOT / "tcgen").glob("*/__init__.py")]
    asked = {prefix for b in blocks.BLOCKS for prefix in b.paths}
    assert [p for p in packages if not any(a.startswith(p) for a in asked)] == []
    missing = [p for p in asked if not (ROOT / p).exists()]
    assert missing == []


def test_every_block_has_its_turn(blocks: ModuleType) -> None:
    taken = [set(blocks.choose([], number)) for number in range(len(blocks.BLOCKS))]
    assert {name for names in taken for name in names} == {b.name for b in blocks.BLOCKS}
    assert {len(names) for names in taken} == {blocks.DRAWN}


@pytest.mark.parametrize("number", range(30))
def test_a_run_has_room_for_its_blocks(blocks: ModuleType, number: int) -> None:
    everything = [p for b in blocks.BLOCKS for p in b.paths]
    minutes = {b.name: b.minutes for b in blocks.BLOCKS}
    taken = blocks.choose(everything, number)
    assert sum(minutes[name] for name in taken) <= blocks.MINUTES
    assert len(taken) > blocks.DRAWN


def test_what_changed_most_comes_first(blocks: ModuleType) -> None:
    taken = blocks.choose(["docs/index.md", *["tests/cuda/test_compile.py"] * 5], 0, minutes=1000)
    assert list(taken)[blocks.DRAWN :] == ["slow-gpu", "docs"]
    assert taken["slow-gpu"] == "5 changes"


def test_names_of_blocks_are_checked() -> None:
    command = [sys.executable, str(ROOT / ".ci" / "blocks.py")]
    done = subprocess.run([*command, "docs", "dcos"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("dcos is not a block; the blocks are oldest, newest, ")
    done = subprocess.run([*command, "docs"], capture_output=True, text=True, check=False)
    assert done.stdout == "docs\n"


def test_every_test_folder_has_a_slow_block() -> None:
    """Slow tests run by folder: each folder stands in one block."""
    folders = [
        p for p in (ROOT / "tests" / "unit").iterdir() if p.is_dir() and any(p.rglob("*.py"))
    ]
    folders += [ROOT / "tests" / name for name in ("programs", "cuda", "chem", "project")]
    lines = re.findall(r"(?:\{|^   ) slow ([^;\n]*)", RUN, re.MULTILINE)
    words = " ".join(lines)
    for group in re.findall(r"tests/unit/\{[\w,]+\}", words):
        names = group[len("tests/unit/{") : -1].split(",")
        words = words.replace(group, " ".join(f"tests/unit/{n}" for n in names))
    assert sorted(words.split()) == sorted(str(p.relative_to(ROOT)) for p in folders)


# No test may fail because the machine is busy. A limit in seconds only ends what hangs.
TIMEOUT = re.compile(
    r"(?:timeout=|\.wait\(|\.join\(|signal\.alarm\(|get\(timeout=)(\d+(?:\.\d+)?)\b"
)
CLOCK = re.compile(r"\b(?:perf_counter|process_time|monotonic|time\.time)\(")


def test_no_test_depends_on_load() -> None:
    short, clocks = [], []
    for path in sorted((ROOT / "tests").rglob("*.py")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            place = f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
            if any(float(seconds) < 300 for seconds in TIMEOUT.findall(line)):
                short.append(place)
            if CLOCK.search(line):
                clocks.append(place)
    assert short == []
    assert [c for c in clocks if "test_private_folder" not in c and "CLOCK =" not in c] == []

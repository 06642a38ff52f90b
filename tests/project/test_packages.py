"""What packages and files of tcgen have: a name, one thought, and a docstring that says which."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import tcgen
from support.paths import ROOT

PACKAGE = ROOT / "tcgen"
SOURCES = sorted(PACKAGE.rglob("*.py"))
PACKAGES = sorted(p.parent for p in SOURCES if p.name == "__init__.py" and p.parent != PACKAGE)
LONGER: dict[str, str] = {}  # files of more than 700 lines, and why each is one thought


def relative(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_file_is_finished(path: Path) -> None:
    for number, line in enumerate(path.read_text().splitlines(), 1):
        for banned in (
            r"\bTODO\b|\bFIXME\b|\bXXX\b",
            r"NotImplementedError",
            r"pragma: no cover",
            r"type: ignore(?!\[)",
        ):
            assert not re.search(banned, line), f"{path.name}:{number}: {line.strip()}"


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_file_has_a_docstring_and_a_name(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text())), f"{path} has no module docstring"
    assert not re.fullmatch(r"(utils?|helpers?|common|misc|manager)", path.stem)


def test_long_files_are_one_thought() -> None:
    long = {relative(p) for p in SOURCES if p.read_text().count("\n") > 700}
    assert long == set(LONGER), "split these by thought, or say in LONGER why they are one"


@pytest.mark.parametrize("package", PACKAGES, ids=relative)
def test_a_package_says_what_is_in_it(package: Path) -> None:
    """Its docstring names each module and each package in it, in the order in which they work."""
    said = ast.get_docstring(ast.parse((package / "__init__.py").read_text())) or ""
    modules = {p.stem for p in package.glob("*.py")} - {"__init__"}
    inner = {p.parent.name for p in package.glob("*/__init__.py")}
    missing = {n for n in modules | inner if not re.search(rf"(?<![\w.]){n}(?!\w)", said)}
    assert not missing, f"the docstring of {relative(package)} does not name {sorted(missing)}"


def test_few_modules_stand_beside_the_packages() -> None:
    beside = sorted(p.name for p in PACKAGE.glob("*.py") if p.name != "__init__.py")
    assert len(beside) <= 11, beside


def test_no_package_hides_a_public_name() -> None:
    """Importing a module of that name would put the module in the place of the function."""
    modules = {p.stem for p in PACKAGE.glob("*.py")} | {
        p.parent.name for p in PACKAGE.glob("*/__init__.py")
    }
    assert not modules & set(tcgen.__all__)

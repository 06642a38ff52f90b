"""Who imports whom: layers, no circles, lazy imports, a runtime that travels alone."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import tcgen
from support.import_graph import circles, import_graph
from support.paths import ROOT

PACKAGE = ROOT / "tcgen"
SOURCES = sorted(PACKAGE.rglob("*.py"))
PLANNERS = ("ortools", "sympy", "lark")
TOOLS = ("opt_einsum", "click", "rich")
TRAVELS = (
    "runtime",
    "artifact",
    "records",
    "thresholds",
    "cache_files.py",
    "dtypes.py",
    "environment.py",
    "errors.py",
    "hardware.py",
    "options.py",
    "simplices.py",
)


def run_python(code: str, *, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )


def test_import_contracts_hold() -> None:
    tool = (
        "from importlinter.cli import lint_imports; raise SystemExit(lint_imports(no_cache=True))"
    )
    result = run_python(tool)
    assert result.returncode == 0, result.stdout + result.stderr


def test_import_tcgen_is_light() -> None:
    result = run_python(
        f"import sys, tcgen\nprint([m for m in {PLANNERS + TOOLS} if m in sys.modules])"
    )
    assert result.stdout == "[]\n", result.stdout + result.stderr


def test_every_public_name_resolves() -> None:
    result = run_python(
        "import tcgen\nfor name in tcgen.__all__: getattr(tcgen, name)\n"
        "assert set(tcgen.__all__) <= set(dir(tcgen))\n"
        "try:\n    tcgen.no_such_name\nexcept AttributeError as error:\n    print(error)"
    )
    assert "no_such_name" in result.stdout, result.stdout + result.stderr


def test_type_checkers_see_every_public_name() -> None:
    """``mypy --strict`` takes a name of a stub as exported if it is imported as itself."""
    stub = ast.parse((PACKAGE / "__init__.pyi").read_text())
    names = [n for node in stub.body if isinstance(node, ast.ImportFrom) for n in node.names]
    assert all(n.asname == n.name for n in names)
    assert sorted(n.name for n in names) == sorted([*tcgen.__all__, "chem"])


def test_runtime_works_without_planners(tmp_path: Path) -> None:
    """The files that are copied into artifacts import where no planner is installed."""
    travelling = tmp_path / "alone"
    travelling.mkdir()
    (travelling / "__init__.py").write_text("")
    for name in TRAVELS:
        source = PACKAGE / name
        for path in sorted(source.rglob("*.py")) if source.is_dir() else [source]:
            target = travelling / path.relative_to(PACKAGE)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(path.read_text())
    blocked = (*PLANNERS, *TOOLS, "tcgen")
    result = run_python(
        "import importlib, pathlib, sys\n"
        f"for name in {blocked}: sys.modules[name] = None\n"
        "for path in sorted(pathlib.Path('alone').rglob('*.py')):\n"
        "    if path.stem == '__init__': path = path.parent\n"
        "    importlib.import_module('.'.join(path.with_suffix('').parts))\n"
        "print('all imported')",
        folder=tmp_path,
    )
    assert result.stdout == "all imported\n", result.stderr


def test_files_import_in_no_circle() -> None:
    """Imports inside functions and for type checkers count."""
    assert circles(import_graph(PACKAGE)) == []


def test_circles_are_found(tmp_path: Path) -> None:
    package = tmp_path / "house"
    (package / "room").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "room" / "__init__.py").write_text("from .door import OPEN\n")
    (package / "room" / "door.py").write_text(
        "OPEN = 1\ndef walk():\n    from ..garden import TREE\n"
    )
    (package / "garden.py").write_text("import house.room\nTREE = 2\n")
    assert circles(import_graph(package)) == [["house.garden", "house.room", "house.room.door"]]


def test_environment_is_read_in_one_place() -> None:
    readers = [p.name for p in SOURCES if re.search(r"os\.environ|os\.getenv", p.read_text())]
    assert readers == ["environment.py"]


def test_no_module_of_tcgen_is_imported_by_a_string() -> None:
    """Such an import escapes the contracts; ``tcgen/__init__.py`` loads relative names lazily."""
    absolute = re.compile(r"(?:import_module|__import__|find_spec)\(\s*f?[\"']tcgen\b")
    assert [str(p.relative_to(ROOT)) for p in SOURCES if absolute.search(p.read_text())] == []

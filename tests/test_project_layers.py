"""The shape of the house: layers, lazy imports, a runtime that travels alone, short files."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "tcgen"
SOURCES = sorted(PACKAGE.rglob("*.py"))
PLANNERS = ("ortools", "sympy", "lark")
TOOLS = ("opt_einsum", "click", "rich")
TRAVELS = (
    "runtime",
    "artifact",
    "thresholds",
    "atomic_file.py",
    "dtypes.py",
    "environment.py",
    "errors.py",
    "hardware.py",
    "options.py",
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


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_file_is_short_and_has_one_job(path: Path) -> None:
    text = path.read_text()
    assert text.count("\n") <= 450, f"{path.name} has more than 450 lines: split it by job"
    assert not re.fullmatch(r"(utils?|helpers?|common|misc|manager)", path.stem)
    assert text.lstrip().startswith(('"""', 'r"""')), f"{path.name} has no module docstring"


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_file_is_finished(path: Path) -> None:
    for number, line in enumerate(path.read_text().splitlines(), 1):
        for banned in (
            r"\bTODO\b|\bFIXME\b|\bXXX\b",
            r"NotImplementedError",
            r"pragma: no cover",
            r"type: ignore(?!\[)",
        ):
            assert not re.search(banned, line), f"{path.name}:{number}: {line.strip()}"


def test_environment_is_read_in_one_place() -> None:
    readers = [p.name for p in SOURCES if re.search(r"os\.environ|os\.getenv", p.read_text())]
    assert readers == ["environment.py"]


def test_distribution_ships_templates_and_specs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["project"]["name"] == "tcgen-chem"
    assert project["project"]["scripts"]["tcgen"] == "tcgen.__main__:main"
    shipped = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    for source, target in shipped.items():
        assert any((ROOT / source).rglob("*.*")), f"{source} is empty"
        assert target == f"tcgen/{source}"
    assert list((ROOT / "specs").glob("*.spec"))


def test_readme_has_the_two_commands() -> None:
    text = (ROOT / "README.md").read_text()
    commands = re.findall(r"<!-- ci: (\w+) -->\n```bash\n(.*?)```", text, re.DOTALL)
    assert [name for name, _ in commands] == ["run", "test"]
    run, test = (command for _, command in commands)
    assert "examples/water.py" in run
    assert "pytest" in test
    assert "pyscf" not in run + test
    assert "chem" not in run + test

"""What users get: the distribution, and the two commands of the README."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib

from support.paths import ROOT


def test_distribution_ships_templates_and_specs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["project"]["name"] == "tcgen-chem"
    assert project["project"]["scripts"]["tcgen"] == "tcgen.__main__:main"
    shipped = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    for source, target in shipped.items():
        assert any((ROOT / source).rglob("*.*")), f"{source} is empty"
        assert target == f"tcgen/{source}"
    assert list((ROOT / "specs").glob("*.spec"))
    assert project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == ["tcgen"]
    assert (ROOT / "tcgen" / "py.typed").is_file()  # type checkers read the package's annotations


def test_readme_has_the_two_commands() -> None:
    text = (ROOT / "README.md").read_text()
    commands = re.findall(r"<!-- ci: (\w+) -->\n```bash\n(.*?)```", text, re.DOTALL)
    assert [name for name, _ in commands] == ["run", "test"]
    run, test = (command for _, command in commands)
    assert "examples/water.py" in run
    assert "pytest" in test
    assert "pyscf" not in run + test
    assert "chem" not in run + test


def test_every_floor_of_a_dependency_is_tested() -> None:
    """CI installs the versions that this prints."""
    script = [sys.executable, str(ROOT / ".ci" / "oldest_versions.py")]
    printed = subprocess.run(script, capture_output=True, check=True, text=True).stdout.split()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert printed == [d.replace(">=", "==") for d in project["dependencies"]]
    assert all("==" in pin for pin in printed)
    more = subprocess.run(
        [*script, "test", "click", "h5py"], capture_output=True, check=True, text=True
    )
    assert more.stdout.split() == ["click==8.2", "h5py"]
    assert (ROOT / ".ci" / "run").read_text().count("oldest_versions.py") == 2

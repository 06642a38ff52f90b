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
    script = [sys.executable, str(ROOT / ".ci" / "requirements.py")]

    def printed(*arguments: str) -> list[str]:
        command = [*script, *arguments]
        return subprocess.run(command, capture_output=True, check=True, text=True).stdout.split()

    dependencies = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert printed() == dependencies
    floors = printed("--oldest")
    names = [re.split("[<>=!]", d)[0] for d in dependencies]
    assert [f.split("==")[0] for f in floors] == names
    assert all(
        d.startswith(f.replace("==", ">=")) for d, f in zip(dependencies, floors, strict=True)
    )
    assert printed("--oldest", "--extra", "test", "click", "h5py") == ["click==8.2", "h5py"]
    assert (ROOT / ".ci" / "run").read_text().count("requirements --oldest") == 2

"""What users get: the distribution, and the two commands of the README."""

from __future__ import annotations

import re
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


def test_readme_has_the_two_commands() -> None:
    text = (ROOT / "README.md").read_text()
    commands = re.findall(r"<!-- ci: (\w+) -->\n```bash\n(.*?)```", text, re.DOTALL)
    assert [name for name, _ in commands] == ["run", "test"]
    run, test = (command for _, command in commands)
    assert "examples/water.py" in run
    assert "pytest" in test
    assert "pyscf" not in run + test
    assert "chem" not in run + test

"""The README and the pages are short, their links resolve, and generated parts are up to date."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.paths import ROOT

README = ROOT / "README.md"
PAGES = [
    README,
    ROOT / "CHANGELOG.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
]
WIDTH = 100
README_LINES = 110
LINES_PER_VERSION = 60


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scripts of the folder docs can be imported."""
    monkeypatch.syspath_prepend(str(ROOT / "docs"))


def prose(page: Path) -> Iterator[tuple[int, str]]:
    """Numbered lines outside code blocks and tables."""
    inside = False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("```"):
            inside = not inside
        elif not inside and not line.startswith("|"):
            yield number, line


def anchors(page: Path) -> set[str]:
    """Anchors of the headings, as GitHub makes them."""
    titles = [line.lstrip("# ") for _, line in prose(page) if line.startswith("#")]
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_lines_of_prose_are_short(page: Path) -> None:
    long = [
        f"{page.name}:{number}: {line}"
        for number, line in prose(page)
        if len(line) > WIDTH and " " in line.strip()
    ]
    assert not long, "\n".join(long)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_resolve(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    text = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith("http") or "gallery/" in target:
            continue
        name, _, anchor = target.partition("#")
        path = page.parent / name if name else page
        assert path.exists(), f"{page.name}: {target}"
        if anchor:
            assert anchor in anchors(path), f"{page.name}: {target}"


def test_readme_fits_one_screen() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= README_LINES


def test_changes_of_a_version_fit_one_page() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        assert len(section.splitlines()) <= LINES_PER_VERSION, section.splitlines()[0]


@pytest.mark.usefixtures("scripts")
def test_picture_shows_the_measured_times() -> None:
    drawing = importlib.import_module("make_readme_picture")
    results = drawing.RESULTS.read_text(encoding="utf-8")
    assert drawing.PICTURE.read_text(encoding="utf-8") == drawing.picture(results), (
        "run python docs/make_readme_picture.py"
    )


@pytest.mark.usefixtures("scripts")
def test_command_line_page_has_the_options_of_the_commands() -> None:
    generator = importlib.import_module("make_cli_page")
    page = generator.PAGE.read_text(encoding="utf-8")
    assert page == generator.filled(page), "run python docs/make_cli_page.py"
    described = set(re.findall(r"^## (\S+)$", page, re.MULTILINE))
    assert set(generator.main.commands) <= described

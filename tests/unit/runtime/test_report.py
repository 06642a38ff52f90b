"""``program.report``: a dictionary, its views, and how it shows itself."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest

import tcgen
from tcgen.errors import ArtifactError, UnavailableError
from tcgen.runtime.report import Report


def report(**options: object) -> Report:
    return tcgen.compile(
        tcgen.spec_path("allam_figure1"), objective="linear", target="numpy", **options
    ).report


@pytest.mark.default_thresholds
def test_it_is_the_json_object() -> None:
    found = report()
    assert json.loads(json.dumps(found)) == found
    assert found["fusion"]["value"] == 3768


@pytest.mark.default_thresholds
def test_views() -> None:
    found = report()
    assert [a["name"] for a in found.arrays] == ["A", "B", "C", "f1", "f2", "W"]
    assert sum(a["elements"] for a in found.arrays if a["kind"] != "output") == 23
    assert "for " in found.nest
    assert "W[k] +=" in found.nest


@pytest.mark.default_thresholds
def test_text_names_totals_and_fusion() -> None:
    text = repr(report(memory_limit="1GiB"))
    assert text.startswith("allam_figure1 at Ni = 10, Nj = 10, Nk = 12, Nl = 10")
    assert "1,073,741,824 bytes" in text
    assert "objective linear, model tree, OPTIMAL, value 3,768 saved_elements" in text


@pytest.mark.default_thresholds
def test_value_of_the_objective_belongs_to_the_extents_of_the_search() -> None:
    planned = report()
    elsewhere = Report({**planned, "extents": {**planned["extents"], "Ni": 20}})
    assert "saved_elements\n" in repr(planned)
    value = "value 3,768 saved_elements at Ni = 10, Nj = 10, Nk = 12, Nl = 10"
    assert value in repr(elsewhere)


def test_html_is_well_formed_and_escaped() -> None:
    opened: list[str] = []

    class Balance(HTMLParser):
        def handle_starttag(self, tag: str, attrs: object) -> None:
            if tag != "br":
                opened.append(tag)

        def handle_endtag(self, tag: str) -> None:
            assert opened.pop() == tag

    text = report()._repr_html_()
    Balance().feed(text)
    assert opened == []
    assert "<script" not in text


def test_the_page(tmp_path: Path) -> None:
    found = report()
    assert "<!doctype html>" in found.html().lower()
    assert found.save_html(tmp_path / "a.html").read_text(encoding="utf-8") == found.html()
    with pytest.raises(UnavailableError, match="nowhere"):
        found.save_html(tmp_path / "nowhere" / "a.html")
    with pytest.raises(ArtifactError, match="compile"):
        Report(found).html()

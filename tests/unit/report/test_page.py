"""The page of a report and its drawings: numbers, figures, bytes."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from fractions import Fraction
from math import prod
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import tcgen
from support.campaigns import cases
from support.marks import slow_where
from support.messages import says
from support.paths import ROOT
from tcgen.artifact.manifest import array_bytes
from tcgen.cli.commands import main
from tcgen.compiler.driver import Compilation, compile_system, read_system
from tcgen.ir.cost import Poly
from tcgen.ir.executed import executed_by
from tcgen.ir.iteration_domain import Range, points
from tcgen.ir.plan import FusionPlan, Place
from tcgen.ir.tensor import Space
from tcgen.options import Options
from tcgen.report import figures, report_html, report_json
from tcgen.report.charts import after_fusion, before_fusion
from tcgen.report.counts import live_bytes, polynomial, product_value
from tcgen.report.fusion_graph import figure_graph, graph_note, graph_svg
from tcgen.report.nest import loop_letters, nest_text
from tcgen.runtime.memory import memory_use

CASES: dict[str, tuple[str, dict[str, int]]] = {
    "allam_figure1": ("linear", {}),
    "df_ladder": ("linear", {"o": 3, "v": 4, "x": 5}),
    "ccsd_closed_shell": ("none", {"o": 3, "v": 4}),
    "mp2_closed_shell": ("peak", {"o": 3, "v": 4}),
    "ccd_spin_orbital": ("linear", {"o": 4, "v": 5}),
}


def compiled(name: str) -> Compilation:
    objective, extents = CASES[name]
    options = Options(extents=tuple(sorted(extents.items())), target="numpy", objective=objective)
    return compile_system(read_system(tcgen.spec_path(name)), options)


@pytest.fixture(scope="module", params=slow_where(lambda name: name.startswith("ccsd"), CASES))
def case(request: pytest.FixtureRequest) -> Compilation:
    return compiled(request.param)


def page_of(case: Compilation, extents: dict[str, int] | None = None) -> str:
    executed = executed_by(case.module)
    chosen = extents or dict(case.plan.extent_of)
    report = report_json(case.plan, case.artifact.manifest, executed, chosen)
    return report_html(case.system, case.plan, case.artifact.manifest, executed, report)


def page_data(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found
    data: dict[str, Any] = json.loads(found[1])
    return data


def polynomial_value(data: list[Any], extents: dict[str, int]) -> int:
    """What the page computes from a polynomial: divided at the end, rounded towards zero."""
    denominator, terms = data
    total = sum(int(c) * prod(extents[s] ** n for s, n in powers) for c, powers in terms)
    return int(Fraction(total, int(denominator)))


def work_value(work: list[list[int]], domains: list[Any], extents: dict[str, int]) -> int:
    """What the page computes from work: the parts of a domain are domains of their own."""
    return sum(
        each
        * prod(points(tuple(Range(tuple(r[0]), *r[1:]) for r in part), extents) for part in parts)
        for each, parts in ((each, domains[place]) for each, place in work)
    )


def value(data: dict[str, Any], number: int, extents: dict[str, int]) -> int | None:
    """A number of the page from its source; None for a peak, which needs the whole program."""
    source = data["numbers"][number]
    if "work" in source:
        return work_value(source["work"], data["domains"], extents)
    if "poly" in source:
        return polynomial_value(source["poly"], extents)
    if "sum" in source:
        return sum(product_value(factors, extents) * item for factors, item in source["sum"])
    return None


def test_sources_give_the_numbers_of_another_page(case: Compilation) -> None:
    """What the script computes at other extents is what Python would have written there."""
    other = {name: n + 3 + k for k, (name, n) in enumerate(case.plan.extents)}
    data = page_data(page_of(case))
    shown = re.findall(r'data-number="(\d+)"[^>]* data-value="(\d+)"', page_of(case, other))
    assert len(shown) == len(data["numbers"]) > 20
    for number, text in shown:
        computed = value(data, int(number), other)
        assert computed is None or computed == int(text)


def test_numbers_of_the_page_are_those_of_the_json(case: Compilation) -> None:
    report = json.loads(case.artifact.text("report.json"))
    page = page_of(case)
    for count in (*report["memory"].values(), *report["operations"].values()):
        if isinstance(count, int):
            assert f'data-value="{count}"' in page
    for step in report["steps"]:
        assert f">{step['flops']:,}</span>" in page
        assert f">{step['executed']:,}</span>" in page


def test_the_page_needs_nothing_from_outside(case: Compilation) -> None:
    page = page_of(case)
    assert "://" not in page
    assert "default-src 'none'" in page
    assert not re.search(r"<(link|img|iframe|script src)\b|@import|url\(", page)


def test_text_of_the_user_cannot_become_markup(case: Compilation) -> None:
    data = re.search(r'id="data">(.*?)</script>', page_of(case), re.DOTALL)
    assert data
    assert "<" not in data[1]


def test_drawings_are_well_formed(case: Compilation) -> None:
    drawn = figures(case.plan, case.artifact.manifest, case.artifact.json("report.json"))
    assert {"memory-before-fusion.svg", "memory-after-fusion.svg"} <= set(drawn)
    for text in drawn.values():
        root = ET.fromstring(text)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        title = root.find("{http://www.w3.org/2000/svg}title")
        assert title is not None
        assert title.text


def test_fusion_graph_of_figure_1() -> None:
    """The ten potential edges of Table 1, of which 23 elements need eight."""
    plan = compiled("allam_figure1").plan
    graph = figure_graph(plan)
    letters = loop_letters(plan)
    names = {r.position: r.name for r in graph.rows}
    edges = sorted(
        (names[e.made[0]], names[e.read[0]], e.read[1].name, e.loop is not None)
        for e in graph.lines
    )
    table_1 = "A f1 i, A f1 j, B f2 j, B f2 k, B f2 l, C f2 k, C f2 l, f1 W j, f2 W j, f2 W k"
    assert [" ".join(e[:3]) for e in edges] == sorted(table_1.split(", "))
    assert [" ".join(e[:3]) for e in edges if not e[3]] == ["C f2 l", "f1 W j"]
    assert sorted(letters.values()) == ["i", "j", "j", "k", "l"]
    svg = graph_svg(plan)
    assert svg is not None
    assert svg.count('class="potential"') == 2
    assert svg.count('class="chosen c') == 8


def test_rows_of_the_graph_do_not_overlap(case: Compilation) -> None:
    svg = graph_svg(case.plan)
    if svg is None:
        assert says(graph_note(figure_graph(case.plan)), "many")
        return
    boxes = [
        tuple(float(box.attrib[k]) for k in ("x", "y", "width"))
        for box in ET.fromstring(svg).iter("rect")
    ]
    for n, (x, y, wide) in enumerate(boxes):
        for x2, y2, wide2 in boxes[:n]:
            assert y != y2 or x + wide <= x2 or x2 + wide2 <= x


def test_a_large_program_shows_what_is_fused_and_says_so() -> None:
    case = compiled("ccd_spin_orbital")
    graph = figure_graph(case.plan)
    assert len(graph.rows) + graph.left_out == len(case.plan.visits)
    if graph.left_out:
        assert graph_note(graph) in page_of(case)


def test_loop_nest_of_the_ladder() -> None:
    assert nest_text(compiled("df_ladder").plan) == (
        "# nest_0 (nest)\n"
        "r2[o,o,v,v] = 0\n"
        "for a in v:\n"
        "    for b in v:\n"
        "        for e in v:\n"
        "            for f in v:\n"
        "                s0: W = sum(P) b_vv[P,a,e] * b_vv[P,b,f]\n"
        "                s1: r2[i,j,a,b] += W * tau[i,j,e,f]\n"
    )


def test_memory_over_time_of_figure_1() -> None:
    """By hand: A (100 elements) leaves before B (1200) comes, f1 (10) is held through all of it.

    After fusion W (12) and C (10) are held all through the loop k, f2 (1) through the loop j.
    """
    plan = compiled("allam_figure1").plan
    before = before_fusion(plan.program, "float64")
    held = [count // 8 for count in before.held(plan.extent_of)]
    assert held == [100, 110, 1210, 1330, 1450, 142]
    after = after_fusion(plan, "float64")
    assert [count // 8 for count in after.held(plan.extent_of)] == [11, 11, 32, 34, 34, 33]
    larger = {**plan.extent_of, "Nj": 2**40, "Nk": 2**40}
    assert before.peak(larger) > 2**80


def test_memory_over_time_is_within_what_a_call_allocates(case: Compilation) -> None:
    extents = {name: n + 2 for name, n in case.plan.extents}
    use = memory_use(case.artifact.manifest, extents, threads=1)
    registers = 8 * sum(a.place is Place.REG for a in case.plan.arrays)
    assert after_fusion(case.plan, "float64").peak(extents) <= use.peak + registers
    unfused = sum(b.bytes(extents) for b in before_fusion(case.plan.program, "float64").bands)
    assert before_fusion(case.plan.program, "float64").peak(extents) <= unfused


def test_bound_of_the_page_is_the_arrays_live_at_one_moment(case: Compilation) -> None:
    """Recounted moment by moment; the peak of a call is never below it."""
    manifest = case.artifact.manifest
    bounds = page_data(page_of(case))["numbers"]
    (polynomials,) = {json.dumps(s["bound"]) for s in bounds if "bound" in s}
    for more in (0, 1, 50):
        extents = {name: n + more for name, n in case.plan.extents}
        constant = manifest.constant_positions
        outputs = sum(
            array_bytes(t, manifest, extents) for t in manifest.tensors if t.role == "output"
        )
        live = max(
            outputs
            + sum(
                array_bytes(b, manifest, extents)
                for b in manifest.buffers
                if b.place in ("arena", "private")
                if b.keep
                or (
                    b.live[0] <= moment <= b.live[1]
                    and (b.live[0] < constant) == (moment < constant)
                )
            )
            for moment in range(1 + max((b.live[1] for b in manifest.buffers), default=0))
        )
        assert max(poly.value(extents) for poly in live_bytes(manifest)) == live
        assert max(polynomial_value(p, extents) for p in json.loads(polynomials)) == live
        assert live <= memory_use(manifest, extents, threads=1).peak


def test_every_hand_written_plan_has_a_page(hand_plans: ModuleType) -> None:
    """Tiles, triangular loops, recomputation: drawn, written as a nest, and counted."""
    for make in hand_plans.LEGAL:
        plan: FusionPlan = make()
        text = nest_text(plan)
        for visit in plan.visits:
            assert f"s{visit.step}: " in text
        for loop, letter in loop_letters(plan).items():
            assert f"for {letter} in {loop.space.name}" in text
        svg = graph_svg(plan)
        assert svg is None or ET.fromstring(svg).tag == "svg"
        assert after_fusion(plan, "float64").peak(plan.extent_of) >= 0


@cases(50)
@given(st.lists(st.tuples(st.fractions(), st.lists(st.sampled_from("ovx"))), max_size=4), st.data())
def test_polynomials_survive_as_data(terms: list[Any], data: st.DataObject) -> None:
    poly = Poly()
    for coefficient, letters in terms:
        poly = poly + Poly.of(coefficient, tuple(Space(s) for s in letters))
    extents = {s: data.draw(st.integers(0, 10**6)) for s in "ovx"}
    assert polynomial_value(polynomial(poly), extents) == poly.value(extents)


def test_command_line_writes_page_and_drawings(tmp_path: Path) -> None:
    spec, folder = tcgen.spec_path("allam_figure1"), tmp_path / "figure1"
    planning = ("--objective", "linear", "--target", "numpy")

    def run(*arguments: object) -> str:
        result = CliRunner().invoke(main, [str(a) for a in arguments], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.stdout

    run("-q", "compile", spec, *planning, "-o", folder)
    said = run("report", folder, "--html", tmp_path / "a.html", "--figures", tmp_path / "svg")
    assert f"wrote {tmp_path / 'a.html'}" in said
    assert sorted(p.name for p in (tmp_path / "svg").iterdir()) == [
        "fusion-graph.svg",
        "memory-after-fusion.svg",
        "memory-before-fusion.svg",
    ]
    page = (tmp_path / "a.html").read_text()
    assert page == (folder / "report.html").read_text()
    printed = run("report", spec, *planning, "--json", "--html", tmp_path / "b.html")
    assert json.loads(printed)["schema"] == 1
    assert (tmp_path / "b.html").read_text() == page
    assert f"Chosen operations: {json.loads(printed)['operations']['optimality']}." in page
    run("report", folder, "-e", "Nk=99", "--html", tmp_path / "c.html")
    assert 'value="99"' in (tmp_path / "c.html").read_text()


def test_the_trade_off_is_drawn_where_it_was_asked_for(tmp_path: Path) -> None:
    arguments = ["-q", "report", "df_ladder", "-e", "o=4", "-e", "v=20", "-e", "x=30"]
    arguments += ["--objective", "time", "--pareto", "--target", "numpy", "--figures"]
    result = CliRunner().invoke(main, [*arguments, str(tmp_path)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    drawn = (tmp_path / "time-memory.svg").read_text()
    assert ET.fromstring(drawn).tag.endswith("svg")
    assert "KiB" in drawn


def test_what_a_limit_left_as_written_is_in_every_report(tmp_path: Path) -> None:
    factors = "*".join(f"x[{i},{j}]" for i, j in itertools.pairwise("ijklmnpqri"))
    spec = tmp_path / "long.spec"
    spec.write_text(
        f"space o = 2\nindex i j k l m n p q r : o\ninput x[o,o]\noutput e\ne = {factors}\n"
    )
    result = CliRunner().invoke(main, ["report", str(spec), "--target", "numpy"])
    assert says(result.stdout, "e 1 terms 8 factors")
    system = read_system(spec)
    case = compile_system(system, Options(extents=(("o", 2),), target="numpy"))
    report = json.loads(case.artifact.text("report.json"))
    assert report["notes"] == list(case.program.notes)
    assert len(report["notes"]) == 1
    assert f"<li>{report['notes'][0]}</li>" in case.artifact.text("report.html")


def test_page_that_cannot_be_written_is_an_error_with_its_name(tmp_path: Path) -> None:
    spec = tcgen.spec_path("allam_figure1")
    target = tmp_path / "missing" / "a.html"
    arguments = ["report", str(spec), "--target", "numpy", "--html", str(target)]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 3
    assert says(result.stderr, f"write {target}")


@pytest.mark.slow
def test_bytes_do_not_depend_on_the_hash_seed() -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from test_page import *\n"
        "case = compiled('ccd_spin_orbital'); sys.stdout.write(page_of(case))\n"
        "report = case.artifact.json('report.json')\n"
        "for text in figures(case.plan, case.artifact.manifest, report).values():\n"
        "    sys.stdout.write(text)\n"
    )
    printed = [
        subprocess.run(
            [sys.executable, "-c", code, str(Path(__file__).parent)],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "7")
    ]
    assert printed[0] == printed[1]
    assert "</html>" in printed[0]

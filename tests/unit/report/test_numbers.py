"""Numbers of the report, recomputed by hand or from another place that states them."""

from __future__ import annotations

import re

import pytest

import tcgen
from support.marks import slow_where
from support.messages import mentions
from support.spec_sample import SPEC_SAMPLE

EXTENTS = {"o": 3, "v": 4, "O": 2, "V": 5, "x": 6, "q": 2}
SPECS = SPEC_SAMPLE


def made(name: str) -> tcgen.Program:
    path = tcgen.spec_path(name)
    spaces = re.findall(r"^space (\w+)", path.read_text(), re.MULTILINE)
    extents = {s: EXTENTS[s] for s in spaces if s in EXTENTS}
    return tcgen.compile(path, extents=extents, target="numpy")


def value(polynomial: str, extents: dict[str, int]) -> int:
    """``2 o^2 v - 1/2 o`` at some extents."""
    words = polynomial.replace(" + ", "+").replace(" - ", "-").replace("^", "**")
    return int(eval(words.replace(" ", "*"), {}, dict(extents)))


@pytest.mark.parametrize("name", slow_where(lambda name: re.match("u?cc|t_|a3a", name), SPECS))
def test_comments_of_kernels_add_up_to_the_report(name: str) -> None:
    program = made(name)
    stated = re.findall(r"^ *# flops +(.*)$", program.source, re.MULTILINE)
    report = program.report
    assert stated
    total = sum(value(text, report["extents"]) for text in stated)
    operations = report["operations"]
    assert total == operations["executed_per_call"] + operations["executed_once"]
    for constant, key in ((False, "executed_per_call"), (True, "executed_once")):
        steps = [step for step in report["steps"] if step["constant"] == constant]
        assert sum(step["executed"] for step in steps) == operations[key]
        assert sum(step["executed_bytes"] for step in steps) == operations[f"{key}_bytes"]
    shown = program.explain()
    assert f"{operations['executed_per_call']:,} flops" in shown
    assert all(f"{step['executed']:,} executed" in shown for step in report["steps"])


def test_mp2_by_hand() -> None:
    report = made("mp2_closed_shell").report
    o, v = 3, 4
    # two products of g, g and the denominator of three additions; one has a coefficient
    assert report["operations"]["naive"] == (7 + 6) * o**2 * v**2
    assert report["memory"]["inputs_bytes"] == 8 * (o**2 * v**2 + o + v)
    assert report["memory"]["outputs_bytes"] == 8
    parts = ("contractions", "additions", "maps")
    assert report["operations"]["sequence"] == sum(report["operations"][p] for p in parts)


def test_a_chain_by_hand() -> None:
    text = """
    space o = 3
    space v = 5
    index i j : o
    index a b : v
    input A[o,v], B[v,v], C[v,o] generated, x[o]
    output r
    r[i,j] = A[i,a]*B[a,b]*C[b,j] + 2*x[i]*x[j]
    """
    report = tcgen.compile(text, target="numpy").report
    o, v = 3, 5
    operations, memory = report["operations"], report["memory"]
    assert operations["naive"] == 3 * o**2 * v**2 + 2 * o**2
    assert operations["contractions"] == 2 * (o * v * v + o * v * o + o * o)
    assert operations["additions"] == operations["maps"] == 0
    assert memory["inputs_bytes"] == 8 * (o * v + v * v + o)
    assert memory["outputs_bytes"] == 8 * o * o
    assert memory["intermediates_unfused_bytes"] == 8 * (o * v + v * o)


def test_a_generated_input_that_nothing_reads_takes_no_memory() -> None:
    text = """
    space v = 5
    index a b c : v
    input A[v,v], B[v,v] generated, C[v,v,v] generated
    output r
    r[a] = A[a,b]*B[b,a]
    """
    with pytest.warns(UserWarning, match=mentions("output")):
        program = tcgen.compile(text, target="numpy", objective="memory")
    report = program.report
    held = [a["bytes"] for a in report["arrays"] if a["kind"] in ("generated", "intermediate")]
    assert sum(held) == report["memory"]["intermediates_static_bytes"]
    unread = next(a for a in report["arrays"] if a["name"] == "C")
    assert (unread["elements_unfused"], unread["elements"], unread["bytes"]) == (125, 0, 0)

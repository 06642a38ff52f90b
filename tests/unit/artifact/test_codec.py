"""Dataclasses as JSON and back: what is written is read, what does not fit is refused."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from typing import Any, Literal

import pytest

from tcgen.artifact.codec import from_table, from_tree, to_table, to_tree
from tcgen.compiler.documents import SCHEMA, decode, encode
from tcgen.errors import ArtifactError, Span
from tcgen.frontend import read_spec
from tcgen.ir.plan import FusionPlan
from tcgen.ir.system import System


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Square:
    kind: Literal["square"]
    side: int


@dataclass(frozen=True)
class Circle:
    kind: Literal["circle"]
    radius: Fraction
    colour: Colour | None = None


@dataclass(frozen=True)
class Drawing:
    title: str
    shapes: tuple[Square | Circle, ...]
    size: tuple[int, Fraction | int]
    inner: Drawing | None = None


ROUND = Circle("circle", Fraction(1, 2), Colour.BLUE)
DRAWING = Drawing(
    "two", (ROUND, Square("square", 3)), (1, 2), Drawing("one", (ROUND,), (0, Fraction(1, 3)))
)


def test_both_forms_are_exact_and_plain_json() -> None:
    tree = json.loads(json.dumps(to_tree(DRAWING)))
    assert from_tree(Drawing, tree, "drawing") == DRAWING
    assert tree["shapes"][0] == {"kind": "circle", "radius": "1/2", "colour": "blue"}
    table = json.loads(json.dumps(to_table(DRAWING)))
    assert from_table(Drawing, table) == DRAWING
    assert [row[0] for row in table["nodes"]].count("Circle") == 1, "equal objects are one row"


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"title": 3}, "drawing.title: str"),
        ({"size": [1]}, "drawing.size: 2 items"),
        ({"size": [True, 2]}, r"drawing.size\[0\]: int"),
        ({"size": [1, "x"]}, r"drawing.size\[1\]: 'x' is not a Fraction"),
        ({"size": [1, None]}, r"drawing.size\[1\]: one of Fraction, int"),
        ({"shapes": {}}, "drawing.shapes: a list"),
        ({"shapes": [{"kind": "line"}]}, r"drawing.shapes\[0\]: one of .*'line'"),
        ({"shapes": [{"kind": "square"}]}, r"drawing.shapes\[0\]: the fields kind, side"),
        ({"extra": 1}, "drawing: the fields title, "),
    ],
)
def test_trees_that_do_not_fit_are_refused_by_place(change: dict[str, Any], place: str) -> None:
    with pytest.raises(TypeError, match=place):
        from_tree(Drawing, {**to_tree(DRAWING), **change}, "drawing")


def test_a_literal_is_checked() -> None:
    with pytest.raises(TypeError, match=r"shape.kind: one of 'square'"):
        from_tree(Square, {"kind": "circle", "side": 1}, "shape")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([["Span", "a", 1, 2]], "a Drawing holds no Span"),
        ([["Square", "square"]], r"nodes\[0\].Square: 2 fields"),
        ([["Square", "square", "3"]], r"nodes\[0\].Square.side: int"),
        ([["Square", "square", 3]], "root: Drawing is expected, not Square"),
        (
            [["Square", "square", 3], ["Drawing", "d", [], [1, 2], {"n": 0}]],
            r"nodes\[1\].Drawing.inner: one of Drawing",
        ),
    ],
)
def test_tables_that_do_not_fit_are_refused_by_place(rows: list[Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        from_table(Drawing, {"root": {"n": len(rows) - 1}, "nodes": rows})


def test_levels_are_exact_and_forget_the_folder() -> None:
    system = read_spec(
        "space o = 3\nindex i : o\ninput x[o]\noutput e\ne = 1/3*x[i]*x[i]\n", "/here/a.spec"
    )
    again = decode(encode(system), System)
    term = again.equations[0].terms[0]
    assert term.span is not None
    assert term.span.file == "a.spec"
    shorter = replace(term, span=None)
    assert shorter == replace(system.equations[0].terms[0], span=None)
    assert decode(encode(again), System) == again


def test_other_schemas_and_classes_are_refused() -> None:
    text = encode(Span("a", 1, 2))
    with pytest.raises(ArtifactError, match=f"schema 1, this tcgen reads {SCHEMA}: compile again"):
        decode(text.replace(f'"schema":{SCHEMA}', '"schema":1'), Span)
    with pytest.raises(ArtifactError, match=r"FusionPlan is damaged .*: compile again"):
        decode(encode(read_spec("input x\noutput y\ny = x\n", "a.spec")), FusionPlan)
    with pytest.raises(ArtifactError, match="damaged"):
        decode("{", System)

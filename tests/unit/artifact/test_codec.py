"""Dataclasses as JSON and back: what is written is read, what does not fit is refused."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from enum import Enum
from fractions import Fraction
from typing import Any, Literal

import pytest

from tcgen.artifact.codec import from_table, table_text, to_table
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


def written(value: Any) -> dict[str, Any]:
    table: dict[str, Any] = json.loads(f"{{{table_text(to_table(value))}}}")
    return table


def test_tables_are_exact_and_plain_json() -> None:
    table = written(DRAWING)
    assert from_table(Drawing, table) == DRAWING
    assert table["nodes"][0] == ["Circle", "circle", "1/2", "blue"]
    assert [row[0] for row in table["nodes"]].count("Circle") == 1, "equal objects are one row"


@pytest.mark.parametrize(
    ("field", "value", "place"),
    [
        ("title", 3, "title: str"),
        ("size", [1], "size: 2 items"),
        ("size", [True, 2], r"size\[0\]: int"),
        ("size", [1, "x"], r"size\[1\]: 'x' is not a Fraction"),
        ("size", [1, None], r"size\[1\]: one of Fraction, int"),
        ("shapes", {}, "shapes: a list"),
        ("shapes", [{"kind": "line"}], r"shapes\[0\]: the number of an earlier row"),
        ("shapes", [{"n": 7}], r"shapes\[0\]: the number of an earlier row"),
        ("inner", {"n": 0}, "inner: one of Drawing"),
    ],
)
def test_fields_that_do_not_fit_are_refused_by_place(field: str, value: Any, place: str) -> None:
    table = written(DRAWING)
    names = ("title", "shapes", "size", "inner")
    number = table["root"]["n"]
    table["nodes"][number][1 + names.index(field)] = value
    with pytest.raises(TypeError, match=rf"nodes\[{number}\].Drawing.{place}"):
        from_table(Drawing, table)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([["Span", "a", 1, 2]], "a Drawing holds no Span"),
        ([["Square", "square"]], r"nodes\[0\].Square: 2 fields"),
        ([["Square", "square", "3"]], r"nodes\[0\].Square.side: int"),
        ([["Square", "circle", 3]], r"nodes\[0\].Square.kind: one of 'square'"),
        ([["Square", "square", 3]], "root: Drawing is expected, not Square"),
        ([3], r"nodes\[0\]: a list"),
    ],
)
def test_rows_that_do_not_fit_are_refused_by_place(rows: list[Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        from_table(Drawing, {"root": {"n": len(rows) - 1}, "nodes": rows})


@pytest.mark.parametrize("text", ["1e999999999", "1/0", "1/00", "0x1", " 1", "1_0", "nan"])
def test_fractions_are_written_as_such(text: str) -> None:
    rows = [["Circle", "circle", text, None]]
    with pytest.raises(TypeError, match=r"nodes\[0\].Circle.radius: .* is not a Fraction"):
        from_table(Drawing, {"root": {"n": 0}, "nodes": rows})


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


@dataclass(frozen=True)
class Extended:
    name: str
    first: bool = field(default=False, metadata={"if set": True})
    last: int | None = field(default=None, metadata={"if set": True})


@pytest.mark.parametrize(
    ("value", "row"),
    [
        (Extended("x"), ["Extended", "x"]),
        (Extended("x", first=True), ["Extended", "x", True]),
        (Extended("x", last=0), ["Extended", "x", False, 0]),
    ],
)
def test_last_fields_are_written_up_to_the_last_one_that_is_set(
    value: Extended, row: list[Any]
) -> None:
    table = written(value)
    assert table["nodes"] == [row]
    assert from_table(Extended, table) == value


@pytest.mark.parametrize("row", [["Extended"], ["Extended", "x", False, 0, 1]])
def test_rows_with_too_few_or_too_many_fields_are_refused(row: list[Any]) -> None:
    with pytest.raises(TypeError, match="1 to 3 fields"):
        from_table(Extended, {"root": {"n": 0}, "nodes": [row]})

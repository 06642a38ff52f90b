"""Frozen dataclasses as JSON tables and back, exactly. Knows no class; needs no library.

A table writes equal objects once, as rows ``[class, field, ...]`` to which later rows refer: plans
hold the same tensors in every step. Last fields with the metadata ``if set`` are written up to the
last one that is set. A table is read along the annotations of the fields, and a value that does not
fit them is refused. Fractions are written as text, members of an enumeration as their values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from fractions import Fraction
from functools import cache
from types import UnionType
from typing import (
    Any,
    Literal,
    NamedTuple,
    TypeAlias,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

T = TypeVar("T")

# Text of a fraction. Fraction itself reads "1e999999999" too, and takes all memory for it.
_FRACTION = re.compile(r"-?[0-9]+(/[0-9]*[1-9][0-9]*)?")


class _Place(NamedTuple):
    """The place of a value: its name, the place of its owner, and the rows of a table."""

    name: str
    holder: _Place | None
    nodes: Sequence[object]

    def part(self, name: str) -> _Place:
        return _Place(name, self, self.nodes)

    def error(self, text: str) -> TypeError:
        return TypeError(f"{self.path}: {text}")

    @property
    def path(self) -> str:
        return ("" if self.holder is None else self.holder.path) + self.name


_PLAIN = frozenset((str, int, bool, float, type(None)))  # written as they are

Reader: TypeAlias = Callable[[Any, _Place], Any]


def to_table(value: object, change: Callable[[Any], Any] = lambda part: part) -> dict[str, Any]:
    """A dataclass as a table: ``nodes``, parts before what holds them, and ``root``.

    ``change`` is applied to every dataclass inside it before it is written; it keeps the class, and
    changes no part that is a dataclass.

    Example:
        >>> from tcgen.errors import Span
        >>> to_table(Span("a.spec", 1, 2))
        {'root': {'n': 0}, 'nodes': [['Span', 'a.spec', 1, 2, 1]]}
    """
    nodes: list[list[Any]] = []
    # Parts are equal if their rows are: a row names its class, and the rows of its parts.
    positions: dict[str, dict[str, int]] = {}
    seen: dict[int, dict[str, int]] = {}  # rows by identity of the part

    def write(part: Any) -> Any:
        kind: type = type(part)
        if kind in _PLAIN:
            return part
        if kind is tuple:
            return [write(v) for v in part]
        names = _field_names(kind)
        if names is None:
            return _scalar(part)
        place = seen.get(id(part))
        if place is None:
            changed = change(part)
            written = names[: _written(changed)]
            row = [type(changed).__name__, *[write(getattr(changed, n)) for n in written]]
            key = repr(row)
            place = positions.get(key)
            if place is None:
                place = positions[key] = {"n": len(nodes)}
                nodes.append(row)
            seen[id(part)] = place
        return place

    return {"root": write(value), "nodes": nodes}


@cache
def _optional(kind: Any) -> tuple[tuple[str, Any], ...]:
    """The last fields of a dataclass that are written only if set, each with its default."""
    return tuple((f.name, f.default) for f in fields(kind) if f.metadata.get("if set"))


def _written(part: Any) -> int:
    """The number of fields of a dataclass up to the last one that is not optional, or is set."""
    kind: type = type(part)
    count = len(_field_names(kind) or ())
    for name, default in reversed(_optional(kind)):
        if getattr(part, name) != default:
            break
        count -= 1
    return count


@cache
def _field_names(kind: type) -> tuple[str, ...] | None:
    """Names of the fields of a dataclass; None for other classes."""
    return tuple(f.name for f in fields(kind)) if is_dataclass(kind) else None


def from_table(kind: type[T], data: Mapping[str, Any]) -> T:
    """The dataclass of class ``kind`` that :func:`to_table` wrote.

    Raises:
        TypeError: a row does not fit its class, or refers to no row before it; the message names
            its place.
    """
    root_class: type = kind
    classes = _classes_of(root_class)
    nodes: list[object] = []
    rows = data.get("nodes")
    if not isinstance(rows, list) or "root" not in data:
        raise TypeError("the fields nodes and root are expected")
    for n, row_read in enumerate(rows):
        if not isinstance(row_read, list) or not row_read or not isinstance(row_read[0], str):
            raise TypeError(f"nodes[{n}]: a list that begins with a class is expected")
        name, *values = row_read
        if name not in classes:
            raise TypeError(f"nodes[{n}]: a {kind.__name__} holds no {name}")
        made, types = classes[name], _field_readers(classes[name])
        row = _Place(f"nodes[{n}].{name}", None, nodes)
        least = len(types) - len(_optional(classes[name]))
        if not least <= len(values) <= len(types):
            count = len(types) if least == len(types) else f"{least} to {len(types)}"
            raise row.error(f"{count} fields are expected")
        parts = zip(types, values, strict=False)
        nodes.append(made(*[read(value, row.part(field)) for (field, read), value in parts]))
    root: T = _reader(root_class)(data["root"], _Place("root", None, nodes))
    return root


def table_text(table: Mapping[str, Any]) -> str:
    """A table as JSON text, one row a line."""
    rows = ",\n".join(json.dumps(row, separators=(",", ":")) for row in table["nodes"])
    return f'"root":{json.dumps(table["root"])},"nodes":[\n{rows}\n]'


def _scalar(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    return str(value) if isinstance(value, Fraction) else value


@cache
def _reader(kind: Any) -> Reader:
    """The function that reads values of an annotated type."""
    origin = get_origin(kind)
    if origin is UnionType:
        return _union_reader(kind)
    if origin is tuple:
        return _tuple_reader(get_args(kind))
    if origin is Literal:
        return _literal_reader(get_args(kind))
    return _dataclass_reader(kind) if is_dataclass(kind) else _scalar_reader(kind)


def _scalar_reader(kind: Any) -> Reader:
    written = _written_as(kind)

    def read(value: Any, place: _Place) -> Any:
        if type(value) is not written:
            raise place.error(f"{kind.__name__} is expected")
        if written is kind:
            return value
        if kind is Fraction and _FRACTION.fullmatch(str(value)) is None:
            raise place.error(f"{value!r:.60} is not a Fraction")
        try:
            return kind(value)
        except ValueError:
            raise place.error(f"{value!r:.60} is not a {kind.__name__}") from None

    return read


def _literal_reader(values: tuple[Any, ...]) -> Reader:
    def read(value: Any, place: _Place) -> Any:
        if value not in values:
            raise place.error(f"one of {', '.join(map(repr, values))} is expected")
        return value

    return read


def _tuple_reader(types: tuple[Any, ...]) -> Reader:
    item = _reader(types[0]) if types[1:] == (...,) else None
    readers = () if item is not None else tuple(map(_reader, types))

    def read(value: Any, place: _Place) -> Any:
        if not isinstance(value, list):
            raise place.error("a list is expected")
        if item is not None:
            return tuple([item(v, place.part(f"[{i}]")) for i, v in enumerate(value)])
        if len(readers) != len(value):
            raise place.error(f"{len(readers)} items are expected")
        parts = enumerate(zip(readers, value, strict=True))
        return tuple([r(v, place.part(f"[{i}]")) for i, (r, v) in parts])

    return read


def _dataclass_reader(kind: Any) -> Reader:
    def read(value: Any, place: _Place) -> Any:
        node = _node(value, place)
        if not isinstance(node, kind):
            raise place.error(f"{kind.__name__} is expected, not {type(node).__name__}")
        return node

    return read


def _node(value: Any, place: _Place) -> object:
    """The row to which a value of a table refers."""
    number = value.get("n") if isinstance(value, dict) else None
    if type(number) is not int or not 0 <= number < len(place.nodes):
        raise place.error("the number of an earlier row is expected")
    return place.nodes[number]


def _union_reader(union: Any) -> Reader:
    members = [(_written_as(m), m, _reader(m)) for m in get_args(union)]

    def read(value: Any, place: _Place) -> Any:
        for written, member, reader in members:
            if type(value) is not written:
                continue
            if written is not dict or isinstance(_node(value, place), member):
                return reader(value, place)
        names = ", ".join(getattr(m, "__name__", str(m)) for _, m, _ in members)
        raise place.error(f"one of {names} is expected, not {value!r:.60}")

    return read


@cache
def _field_types(kind: type) -> Mapping[str, Any]:
    """Fields of a dataclass in order, each with its annotated type."""
    hints = get_type_hints(kind)
    return {f.name: hints[f.name] for f in fields(kind)}


@cache
def _field_readers(kind: Any) -> tuple[tuple[str, Reader], ...]:
    """Path and reader of each field of a dataclass, in order."""
    return tuple((f".{name}", _reader(t)) for name, t in _field_types(kind).items())


@cache
def _written_as(kind: Any) -> type:
    """The class of the JSON value that a value of an annotated type becomes."""
    if get_origin(kind) is tuple:
        return list
    if is_dataclass(kind):
        return dict
    if isinstance(kind, type) and issubclass(kind, Enum | Fraction):
        return str
    written: type = kind
    return written


@cache
def _classes_of(root: type) -> Mapping[str, Callable[..., Any]]:
    """All dataclasses that a dataclass may hold, itself included, by name."""
    classes: dict[str, Callable[..., Any]] = {}

    def collect(kind: Any) -> None:
        if isinstance(kind, type) and is_dataclass(kind):
            if kind.__name__ not in classes:
                classes[kind.__name__] = kind
                for part in _field_types(kind).values():
                    collect(part)
        else:
            for part in get_args(kind):
                collect(part)

    collect(root)
    return classes

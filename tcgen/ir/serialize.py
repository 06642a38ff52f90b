"""Systems and plans as JSON text and back, exactly.

Equal nodes are written once: the text is a table of nodes, each ``[class, field, field, ...]``,
children before parents. Fractions and enum members are tagged; a source span keeps only the name
of its file, so that the text does not depend on where the file lay.
"""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from fractions import Fraction
from pathlib import PurePath
from typing import Any, TypeVar

from ..errors import ArtifactError, Span
from . import cost, expr, plan, program, system, tensor

SCHEMA = 1

_MODULES = (tensor, expr, cost, system, program, plan)
_CLASSES: dict[str, type] = {
    name: value
    for module in _MODULES
    for name, value in vars(module).items()
    if isinstance(value, type)
    and value.__module__ == module.__name__
    and (is_dataclass(value) or issubclass(value, Enum))
} | {"Span": Span}

T = TypeVar("T")


def encode(root: object) -> str:
    """JSON text of a frozen dataclass of the levels.

    Example:
        >>> decode(encode(tensor.Space("o", 10)), tensor.Space)
        Space(name='o', extent=10, parts=(), kind=None)
    """
    nodes: list[Any] = []
    # Keyed by class too: dataclasses of different classes never compare equal, numbers might.
    known: dict[tuple[type, object], int] = {}

    def write(value: object) -> Any:
        match value:
            case None | bool() | int() | str():
                return value
            case Fraction():
                return {"q": str(value)}
            case Enum():
                return {"e": [type(value).__name__, value.value]}
            case tuple():
                return [write(v) for v in value]
            case Span():
                value = replace(value, file=PurePath(value.file).name)
            case _:
                pass
        key = (type(value), value)
        if key not in known:
            row = [type(value).__name__, *(write(getattr(value, f.name)) for f in fields(value))]  # type: ignore[arg-type]
            known[key] = len(nodes)
            nodes.append(row)
        return {"n": known[key]}

    top = write(root)
    rows = ",\n".join(json.dumps(n, separators=(",", ":")) for n in nodes)
    return f'{{"schema":{SCHEMA},"root":{json.dumps(top)},"nodes":[\n{rows}\n]}}\n'


def decode(text: str, kind: type[T]) -> T:
    """The object that :func:`encode` wrote.

    Raises:
        ArtifactError: the text is damaged, of another version, or holds another class.
    """
    try:
        data = json.loads(text)
        if data["schema"] != SCHEMA:
            raise ArtifactError(
                f"the plan has schema {data['schema']}, this tcgen reads {SCHEMA}: compile again"
            )
        nodes: list[object] = []

        def read(value: Any) -> Any:
            match value:
                case {"q": number}:
                    return Fraction(number)
                case {"e": [name, member]}:
                    return _CLASSES[name](member)
                case {"n": position}:
                    return nodes[position]
                case list():
                    return tuple(read(v) for v in value)
                case _:
                    return value

        for name, *values in data["nodes"]:
            nodes.append(_CLASSES[name](*(read(v) for v in values)))
        root = read(data["root"])
    except ArtifactError:
        raise
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise ArtifactError(f"the plan's text is damaged ({error!r}): compile again") from error
    if not isinstance(root, kind):
        raise ArtifactError(f"expected a {kind.__name__}, found a {type(root).__name__}")
    return root

"""Levels 1 to 3 as JSON text and back, exactly: the files of an artifact and of the plan cache.

A source span is written with the name of its file alone, so that the text does not depend on the
folder from which the file was read.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import PurePath
from typing import Any, TypeVar

from ..artifact.codec import from_table, table_text, to_table
from ..errors import ArtifactError, Span
from ..ir.level import Level

SCHEMA = 3

T = TypeVar("T")


def encode(level: object) -> str:
    """JSON text of a system, program or plan, or of a part of one.

    Example:
        >>> from tcgen.ir.tensor import Space
        >>> decode(encode(Space("o", 10)), Space)
        Space(name='o', extent=10, parts=(), kind=None)
    """
    if isinstance(level, Level):  # its text names files of the cache, and is one of an artifact
        return level.derived("text", lambda: _encoded(level))
    return _encoded(level)


def _encoded(level: object) -> str:
    return f'{{"schema":{SCHEMA},{table_text(to_table(level, _without_folder))}}}\n'


def decode(text: str, kind: type[T]) -> T:
    """The object that :func:`encode` wrote.

    Raises:
        ArtifactError: the text is damaged, was written by another version of tcgen, or holds an
            object of another class.
    """
    try:
        data = json.loads(text)
        schema = data["schema"]
        if schema == SCHEMA:
            return from_table(kind, data)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ArtifactError(
            f"the text of a {kind.__name__} is damaged ({error!r}): compile again"
        ) from error
    raise ArtifactError(
        f"the text of a {kind.__name__} has schema {schema}, this tcgen reads {SCHEMA}: "
        f"compile again"
    )


def _without_folder(part: Any) -> Any:
    return replace(part, file=PurePath(part.file).name) if isinstance(part, Span) else part

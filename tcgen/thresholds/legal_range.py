"""Legal ranges of thresholds, and the records at both ends of them."""

from __future__ import annotations

from dataclasses import field, fields, is_dataclass
from typing import Any, TypeVar

Record = TypeVar("Record")

UNBOUNDED = 2**62  # above every extent, work and number of bytes of a program


def threshold(default: Any, low: Any, high: Any) -> Any:
    """A field of a record of thresholds, legal from ``low`` to ``high``.

    Any value in the range gives right programs; the default gives fast ones.
    """
    return field(default=default, metadata={"low": low, "high": high})


def smallest(record: Record) -> Record:
    """The record with every threshold at the lower end of its range."""
    end: Record = _end(record, "low")
    return end


def largest(record: Record) -> Record:
    """The record with every threshold at the upper end of its range."""
    end: Record = _end(record, "high")
    return end


def _end(record: Any, end: str) -> Any:
    values = {}
    for each in fields(record):
        value = getattr(record, each.name)
        values[each.name] = _end(value, end) if is_dataclass(value) else each.metadata[end]
    return type(record)(**values)

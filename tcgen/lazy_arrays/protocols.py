"""Python's protocols of arrays; all but the length need the values."""

from __future__ import annotations

from collections.abc import Iterator
from operator import index
from typing import Any

from ..errors import ArgumentError, ShapeError
from .memory import Memory


class Protocols(Memory):
    """The methods behind Python's built-in functions; a class that has them knows its shape."""

    __slots__ = ()

    def __len__(self: Any) -> int:
        shape: tuple[int, ...] = self.shape
        if not shape:
            raise ShapeError("an array without axes has no length")
        return shape[0]

    def __contains__(self, value: object) -> bool:
        return value in self._values()

    def __iter__(self: Any) -> Iterator[Any]:
        if not self.shape:
            raise ArgumentError("an array without axes has no elements to iterate over")
        return (self[n] for n in range(len(self))) if self.ndim > 1 else iter(self._values())

    def __bool__(self) -> bool:
        return bool(self._values())

    def __int__(self) -> int:
        return int(self._values())

    def __index__(self) -> int:
        return index(self._values())

    def __round__(self: Any, digits: int | None = None) -> Any:
        if self.shape:
            raise ArgumentError(f"round takes a number, not shape {self.shape}: use numpy.round")
        number = self._values()[()]
        return round(number, digits)

    def __float__(self) -> float:
        return float(self._values())

    def __complex__(self) -> complex:
        return complex(self._values())

    def __format__(self, form: str) -> str:
        return format(self._values(), form)

    def __str__(self) -> str:
        return str(self._values())

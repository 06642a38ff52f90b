"""A product that a library computes, as plain data of the manifest."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class VariableEntry:
    """A variable of a product: it runs over its space, or over the tile that begins at ``start``.

    ``start`` is a variable of the host; both are None for a whole space.
    """

    name: str
    space: str
    tile: int | None
    start: str | None


@dataclass(frozen=True, slots=True)
class SubscriptEntry:
    """Position on an axis of a buffer: ``variable - base + extents of the spaces in offset``.

    A variable is one of the product or of the host, or None for position 0; ``base`` is one of the
    host or None.
    """

    variable: str | None
    base: str | None
    offset: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MatrixEntry:
    """An operand or the result of a product: a buffer, and a subscript for each logical axis."""

    buffer: str
    subscripts: tuple[SubscriptEntry, ...]


@dataclass(frozen=True, slots=True)
class ProductEntry:
    """``out[batch, m, n] (+)= coefficient * sum over k of a[batch, m, k] * b[batch, k, n]``.

    ``library`` computes it: for cuBLAS the variables of a group are adjacent axes of each operand,
    in the group's order, so that they can be counted as one; cuTENSOR takes them in any order.
    ``coefficient`` is an exact number as text.
    """

    batch: tuple[VariableEntry, ...]
    m: tuple[VariableEntry, ...]
    n: tuple[VariableEntry, ...]
    k: tuple[VariableEntry, ...]
    out: MatrixEntry
    a: MatrixEntry
    b: MatrixEntry
    coefficient: str
    accumulate: bool
    library: str

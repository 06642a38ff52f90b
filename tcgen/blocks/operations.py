"""The operations of the C loop over blocks, and a schedule of them for one grading."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from .layout import BlockLayout, Numbers
from .tables import Table


class Kind(IntEnum):
    """Operations of the C loop, in its order."""

    ZERO = 0
    ADD = 1
    COPY = 2
    PRODUCT = 3
    MAP = 4
    REAL = 5
    NEST = 6


@dataclass(frozen=True, eq=False)
class Operation:
    """One operation of the C loop: ``target (+)= coefficient * (...)``.

    Attributes:
        kind: the operation.
        arrays: names of its buffers, the target first.
        coefficient: number by which the result is multiplied.
        accumulate: add to the target.
        table: rows over which it loops, or None.
        elements: elements that are zeroed or added; for a map, whether its rows have separate
            targets.
        number: number of the function of a map; for products, whether threads share the rows.
        constant: it runs once for a bound program.
        flops: multiplications and additions of a product.
        inside: operations and buffers inside of a nest.
    """

    kind: Kind
    arrays: tuple[str, ...]
    coefficient: float = 1.0
    accumulate: bool = False
    table: Table | None = None
    elements: int = 0
    number: int = 0
    constant: bool = False
    flops: int = 0
    inside: Inside | None = None


@dataclass(frozen=True, eq=False)
class Inside:
    """The operations inside a nest, and its buffers.

    Attributes:
        schedules: operations by irreps of the orbitals of the loops.
        numbers: the number of each buffer: results, slices, then scratch.
        offsets: places of the buffers after the slices in the scratch of the nest.
    """

    schedules: tuple[Schedule, ...]
    numbers: Mapping[str, int]
    offsets: Numbers


@dataclass(eq=False)
class Schedule:
    """The operations of a sequence for one grading.

    Attributes:
        layouts: the layout of each tensor, by name.
        sizes: elements of each buffer, those of sorted copies included.
        operations: all operations in order, those of constants among them.
    """

    layouts: dict[str, BlockLayout]
    sizes: dict[str, int]
    operations: list[Operation] = field(default_factory=list)

    @property
    def flops(self) -> int:
        """Flops of all products of matrices in a call of a bound program."""
        return sum(op.flops for op in self.operations if not op.constant)

    @property
    def table_bytes(self) -> int:
        """Bytes of all tables."""
        return sum({id(t): t.nbytes for t in self.tables}.values())

    @property
    def tables(self) -> Iterator[Table]:
        """All tables, those inside of nests included."""
        for op in self.operations:
            if op.table is not None:
                yield op.table
            for schedule in () if op.inside is None else op.inside.schedules:
                yield from schedule.tables

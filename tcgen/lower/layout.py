"""Memory layout of accesses, and counts of points, under the planning extents of a module."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Generic, TypeAlias, TypeVar, assert_never

from ..ir.expr import Access
from ..ir.loop_analysis import band_of
from ..ir.loops import Assign, BandVar, Buffer, Gemm, Loop, LoopVar, Stmt, Zero
from ..thresholds import CpuThresholds, GpuThresholds

Band: TypeAlias = tuple[BandVar, ...]
Limits = TypeVar("Limits", covariant=True)


@dataclass(frozen=True)
class Context(Generic[Limits]):
    """Buffers of a module, planning extents and thresholds, on which binding depends."""

    buffers: Mapping[str, Buffer]
    extents: Mapping[str, int]
    thresholds: Limits

    def with_buffers(self, buffers: Mapping[str, Buffer]) -> Context[Limits]:
        """The same extents and thresholds with other buffers."""
        return Context(buffers, self.extents, self.thresholds)

    def buffer(self, access: Access) -> Buffer:
        """The buffer of an access."""
        return self.buffers[access.buffer]

    def memory_order(self, access: Access) -> list[str]:
        """Variables of an access from the slowest axis to the fastest, repeats included."""
        names = (access.subscripts[axis].variable for axis in self.buffer(access).order)
        return [name for name in names if name is not None]

    def ordered(self, group: Band, access: Access) -> Band:
        """A group in the memory order of an operand; variables without an axis there come first."""
        return in_order(group, self.memory_order(access))

    def unit_stride(self, access: Access) -> str | None:
        """Variable whose successive values are neighbours in memory; None if there is none.

        There is none if the fastest axis has no variable or is a packed pair, and on a diagonal,
        where the variable is on other axes too.
        """
        buffer = self.buffer(access)
        long = [axis for axis in buffer.order if buffer.axes[axis].length != 1]
        pairs = {axis for p in buffer.packed for axis in p.axes}
        if not long or long[-1] in pairs:
            return None
        name = access.subscripts[long[-1]].variable
        places = [axis for axis, s in enumerate(access.subscripts) if s.variable == name]
        return name if len(places) == 1 else None

    def fastest(self, access: Access) -> str | None:
        """Variable on the fastest axis, also where that axis is packed with others."""
        buffer = self.buffer(access)
        long = [axis for axis in buffer.order if buffer.axes[axis].length != 1]
        return access.subscripts[long[-1]].variable if long else None

    def elements(self, band: Band) -> int:
        """Points of a band."""
        count = 1
        for var in band:
            extent = var.space.extent_in(self.extents)
            count *= extent if var.tile is None else min(var.tile, extent)
        return count

    def iterations(self, var: LoopVar) -> int:
        """Iterations of a loop."""
        return -(-var.space.extent_in(self.extents) // (var.tile or 1))

    def points(self, body: tuple[Stmt, ...]) -> int:
        """Points of all statements of nests; an element that is set to zero is also a point."""
        count = 0
        for stmt in body:
            match stmt:
                case Loop():
                    count += self.iterations(stmt.var) * self.points(stmt.body)
                case Zero(name):
                    axes = self.buffers[name].axes
                    count += prod(a.length or a.space.extent_in(self.extents) for a in axes)
                case Assign() | Gemm():
                    count += self.elements(band_of(stmt))
                case _:
                    assert_never(stmt)
        return count


CpuContext: TypeAlias = Context[CpuThresholds]
GpuContext: TypeAlias = Context[GpuThresholds]


def in_order(band: Band, order: list[str]) -> Band:
    """Variables in a given order of names; variables without a name there come first."""
    return tuple(sorted(band, key=lambda v: order.index(v.name) if v.name in order else -1))


def held_by(access: Access, band: Band) -> Band:
    """The variables of a band that an access has."""
    return tuple(v for v in band if v.name in access.variables)

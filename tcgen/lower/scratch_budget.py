"""Bytes of scratch that a visit may take, so that a plan keeps the memory that it promised.

A matrix product copies operands whose layout does not suit the BLAS. If that would exceed the
budget at some moment, the visit gets the bytes that are left as its room.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..dtypes import BY_NAME
from ..ir.cost import extent_of
from ..ir.loops import Buffer, Module
from ..ir.plan import FusionPlan
from ..ir.tensor import Role
from ..options import Options


def arena_budget(plan: FusionPlan, options: Options, module: Module) -> int | None:
    """Bytes that intermediates, tiles and scratch may take under the planning extents, or None.

    The objective ``peak`` promises its value, ``memory`` the sum of its arrays; a memory limit
    promises the limit minus the outputs.
    """
    promises = []
    if plan.solve.objective == "peak" and plan.solve.value is not None:
        promises.append(int(plan.solve.value))
    if plan.solve.objective == "memory":
        promises.append(sum(a.bytes for a in plan.arrays if a.tensor.is_held))
    if options.memory_limit is not None:
        outputs = sum(
            buffer_bytes(b, plan.extent_of)
            for b in module.buffers
            if b.place == "caller" and b.tensor is not None and b.tensor.role is Role.OUTPUT
        )
        promises.append(options.memory_limit - outputs)
    return min(promises, default=None)


def crowded(
    module: Module, scratch_of: Mapping[str, int], budget: int, extents: Mapping[str, int]
) -> dict[int, int]:
    """Visits whose scratch does not fit, each with the bytes that remain for it."""
    held = {
        b.name: buffer_bytes(b, extents) for b in module.buffers if b.place in ("arena", "private")
    }
    permanent = sum(n for name, n in held.items() if module.buffer(name).keep)
    rooms: dict[int, int] = {}
    lives = {b.name: b.live for b in module.buffers if b.name in held and not b.keep}
    for moment in sorted({live[0] for live in lives.values()}):
        alive = [name for name, (first, last) in lives.items() if first <= moment <= last]
        total = permanent + sum(held[name] for name in alive)
        for visit in {scratch_of[name] for name in alive if name in scratch_of}:
            own = sum(held[name] for name in alive if scratch_of.get(name) == visit)
            if total > budget:
                room = max(0, budget - (total - own))
                rooms[visit] = min(room, rooms.get(visit, room))
    return rooms


def buffer_bytes(buffer: Buffer, extents: Mapping[str, int]) -> int:
    """Bytes of a buffer; packed axes are one axis of their distinct values."""
    count = BY_NAME[buffer.dtype].itemsize
    lengths = [extent_of(a.space, extents) if a.length is None else a.length for a in buffer.axes]
    for pair in buffer.packed:
        values = pair.values(lengths[pair.first])
        lengths[pair.first : pair.first + pair.count] = [values] + [1] * (pair.count - 1)
    for length in lengths:
        count *= length
    return count

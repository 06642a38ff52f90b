"""How much scratch a visit may have, so that a plan does not take more than it promised.

A matrix product whose operands do not lie right copies them first. Where that would lift the memory
in use above the budget, the visit is told how much is left for it.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..ir.cost import extent_of
from ..ir.loops import Buffer, Module
from ..ir.plan import FusionPlan
from ..ir.tensor import BYTES_OF, Role
from ..options import Options


def arena_budget(plan: FusionPlan, options: Options, module: Module) -> int | None:
    """Bytes that intermediates, tiles and scratch may take under the planning extents, or None.

    Objective ``peak`` promises its value, ``memory`` the sum of its arrays; a memory limit leaves
    what the outputs do not take.
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
    """Visits whose scratch does not fit, each with the bytes that are left for it."""
    held = {
        b.name: buffer_bytes(b, extents) for b in module.buffers if b.place in ("arena", "private")
    }
    kept = sum(n for name, n in held.items() if module.buffer(name).keep)
    rooms: dict[int, int] = {}
    lives = {b.name: b.live for b in module.buffers if b.name in held and not b.keep}
    for moment in sorted({live[0] for live in lives.values()}):
        alive = [name for name, (first, last) in lives.items() if first <= moment <= last]
        total = kept + sum(held[name] for name in alive)
        for visit in {scratch_of[name] for name in alive if name in scratch_of}:
            own = sum(held[name] for name in alive if scratch_of.get(name) == visit)
            if total > budget:
                room = max(0, budget - (total - own))
                rooms[visit] = min(room, rooms.get(visit, room))
    return rooms


def buffer_bytes(buffer: Buffer, extents: Mapping[str, int]) -> int:
    """Bytes of a buffer; a packed pair is one axis of its triangle."""
    count = BYTES_OF[buffer.dtype]
    lengths = [extent_of(a.space, extents) if a.length is None else a.length for a in buffer.axes]
    for pair in buffer.packed:
        n = lengths[pair.first]
        lengths[pair.first] = n * (n - 1) // 2 if pair.antisymmetric else n * (n + 1) // 2
        lengths[pair.first + 1] = 1
    for length in lengths:
        count *= length
    return count

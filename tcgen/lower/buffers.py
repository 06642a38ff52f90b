"""Buffers of the array instances of a plan, and of the scratch that lowering adds.

A matrix product copies operands whose layout does not suit the BLAS. If that would exceed the
memory that a plan promises at some moment, the visit gets the bytes that are left as its room.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace

from ..dtypes import BY_NAME
from ..ir.loops import Axis, Buffer, Module
from ..ir.plan import ArrayPlan, FusionPlan, LoopId, Place
from ..ir.tensor import Packing, Ref, Role, Tensor, element_type
from ..options import Options
from ..records.loops import buffer_bytes
from ..thresholds import CpuThresholds
from .layout import Band, Context
from .names import unique


class Memory(Context[CpuThresholds]):
    """All buffers of the module under construction, in order of creation.

    Attributes:
        homes: innermost shared loop whose body owns the buffer; None for the whole program.
        in_triangles: packed outputs are computed where they are stored, unless loops share them.
        mirrors: an unpacked copy may be read where it is written, for the other half of a pair.
        dense: other packed outputs by name, each with the dense buffer in which it is computed.
        scratch_of: scratch buffers, each with the visit that it is for.
        room: bytes that the scratch of the visit at hand may take; None: as many as it needs.
    """

    buffers: dict[str, Buffer]

    def __init__(
        self,
        plan: FusionPlan,
        dtype: str,
        thresholds: CpuThresholds,
        *,
        in_triangles: bool = False,
        mirrors: bool = False,
    ) -> None:
        super().__init__({}, plan.extent_of, thresholds)
        self.plan = plan
        self.in_triangles = in_triangles
        self.mirrors = mirrors
        self.dtype = dtype
        self.homes: dict[str, LoopId | None] = {}
        self.dense: dict[str, str] = {}
        self.scratch_of: dict[str, int] = {}
        self.room: int | None = None
        self._names: dict[ArrayPlan, str] = {}
        self._ranks = _ranks(plan)
        self._tensor_names = frozenset(t.name for t in plan.program.tensors)
        for tensor in plan.program.tensors:
            if tensor.role in (Role.INPUT, Role.OUTPUT):
                self._add(callers_buffer(tensor, self.dtype), None)
        for array in plan.arrays:
            self._add_instance(array)

    def name_of(self, tensor: Tensor, position: int) -> str:
        """Name of the buffer of a tensor for the visit at ``position``."""
        array = self.plan.instance(tensor, position)
        return tensor.name if array is None else self._names[array]

    def scratch(
        self,
        band: Band,
        dtype: str,
        home: LoopId | None,
        position: int,
        packed: tuple[Packing, ...] = (),
    ) -> Buffer:
        """A new buffer for a visit, with one axis for each variable, in this order."""
        name = self.next_scratch()
        axes = tuple(Axis(v.space, v.tile) for v in band)
        order, last = tuple(range(len(axes))), len(self._ranks)
        self.scratch_of[name] = position
        buffer = Buffer(name, axes, order, dtype, "arena", packed=packed, rank=last)
        return self._add(buffer, home)

    def carry(self, band: Band, dtype: str, home: LoopId | None, position: int) -> Buffer:
        """Scratch that passes values from one iteration of a loop to the next.

        A single element is a register.
        """
        buffer = self.scratch(band, dtype, home, position)
        return buffer if band else self._add(replace(buffer, place="register"), home)

    @property
    def spare(self) -> int | None:
        """Elements that fit into the room."""
        return None if self.room is None else self.room // BY_NAME[self.dtype].itemsize

    @property
    def largest_slice(self) -> int:
        """Elements of the largest slice of an operand that is copied; other copies take as many."""
        most = self.thresholds.largest_slice
        return most if self.spare is None else min(most, self.spare // 2)

    def next_scratch(self) -> str:
        """Name of the next scratch buffer."""
        # Scratch buffers are never removed, so that earlier numbers are taken.
        first = len(self.scratch_of) + 1
        names = (f"tmp{k}" for k in itertools.count(first))
        return next(n for n in names if n not in self.buffers and n not in self._tensor_names)

    def _add(self, buffer: Buffer, home: LoopId | None) -> Buffer:
        self.buffers[buffer.name] = buffer
        self.homes[buffer.name] = home
        return buffer

    def _add_instance(self, array: ArrayPlan) -> None:
        tensor = array.tensor
        direct = not tensor.storage.packed or (self.in_triangles and self._in_stored_order(tensor))
        if tensor.role is Role.OUTPUT and direct:
            self._names[array] = tensor.name
            return
        dense = tensor.role is Role.OUTPUT
        name = tensor.name
        if dense or name in self.buffers:
            taken = {*self.buffers, *self._tensor_names}
            name = unique(f"{name}_dense" if dense else name, taken)
        axes = tuple(
            Axis(space, (loop.tile or 1) if (loop := array.loop_of(axis)) else None)
            for axis, space in enumerate(tensor.spaces)
        )
        place = "register" if array.place is Place.REG else "arena"
        order = tensor.stored_order
        dtype = element_type(tensor, self.dtype)
        held, rank = None if dense else tensor, self._ranks.get(array, len(self._ranks))
        self._add(Buffer(name, axes, order, dtype, place, held, rank=rank), array.home)
        self._names[array] = name
        if dense:
            self.dense[tensor.name] = name

    def _in_stored_order(self, tensor: Tensor) -> bool:
        """True if steps write the stored elements of a packed tensor, outside of shared loops."""
        steps = self.plan.program.steps
        fused = (steps[visit.step] for visit in self.plan.visits if visit.loops)
        if any(tensor in (s.out.tensor, *(r.tensor for r in s.operands)) for s in fused):
            return False
        return all(
            walks_whole(step.out, packing)
            for step in self.plan.program.producers(tensor)
            for packing in tensor.storage.packed
        )


def callers_buffer(tensor: Tensor, dtype: str) -> Buffer:
    """The buffer of an array of the caller, in a program of this element type."""
    axes = tuple(Axis(space) for space in tensor.array_spaces)
    dtype, packed = element_type(tensor, dtype), tensor.storage.packed
    return Buffer(tensor.name, axes, tensor.stored_order, dtype, "caller", tensor, packed)


def walks_whole(ref: Ref, packing: Packing) -> bool:
    """True if a reference has another index on each of some packed axes, over all of the axis."""
    held = [ref.indices[axis] for axis in packing.axes]
    spaces = [ref.tensor.spaces[axis] for axis in packing.axes]
    return len(set(held)) == packing.count and [i.space for i in held] == spaces


def _ranks(plan: FusionPlan) -> dict[ArrayPlan, int]:
    """Arrays in the order of the offsets in the plan's memory layout.

    First fit in this order gives no array a higher offset than the plan does.
    """
    placed = [(a.offset, n, a) for n, a in enumerate(plan.arrays) if a.offset is not None]
    return {array: rank for rank, (_, _, array) in enumerate(sorted(placed, key=lambda p: p[:2]))}


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


def arena_bytes(module: Module, extents: Mapping[str, int]) -> int:
    """Most bytes of buffers that are live at one time, those of the caller not counted."""
    return max((sum(held.values()) for held in _live_together(module, extents)), default=0)


def _live_together(module: Module, extents: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """The bytes of all live buffers, at each moment at which one begins to live."""
    held = {
        b.name: buffer_bytes(b, extents) for b in module.buffers if b.place in ("arena", "private")
    }
    permanent = [name for name in held if module.buffer(name).keep]
    lives = {b.name: b.live for b in module.buffers if b.name in held and not b.keep}
    for moment in sorted({live[0] for live in lives.values()}):
        alive = [name for name, (first, last) in lives.items() if first <= moment <= last]
        yield {name: held[name] for name in (*alive, *permanent)}


def crowded(
    module: Module, scratch_of: Mapping[str, int], budget: int, extents: Mapping[str, int]
) -> dict[int, int]:
    """Visits whose scratch does not fit, each with the bytes that remain for it."""
    rooms: dict[int, int] = {}
    for held in _live_together(module, extents):
        alive, total = list(held), sum(held.values())
        for visit in {scratch_of[name] for name in alive if name in scratch_of}:
            own = sum(held[name] for name in alive if scratch_of.get(name) == visit)
            if total > budget:
                room = max(0, budget - (total - own))
                rooms[visit] = min(room, rooms.get(visit, room))
    return rooms

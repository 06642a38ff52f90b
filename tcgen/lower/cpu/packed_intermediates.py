"""Intermediates that are stored in their groups of symmetric axes, since everyone walks them so.

Before: ``x[i,j,a,b]`` with antisymmetric pairs, a product by groups that is scattered to all of x,
and ``r[i,j,a,b] += x[i,j,a,b]`` for a packed r. After: the product writes the distinct elements of
x, which has a quarter of the memory, and r is added from them element by element.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from ...ir.exchange_symmetry import tensor_sign
from ...ir.expr import Access, leaves
from ...ir.loops import Buffer
from ...ir.plan import FusionPlan
from ...ir.program import FormulaSequence
from ...ir.tensor import Packing, Role, Tensor
from ..buffers import Memory, walks_whole
from ..statements import Statement
from .symmetric_groups import Groupings, in_place


def pack_intermediates(
    plan: FusionPlan, groupings: Groupings, memory: Memory, statements: Sequence[Statement]
) -> None:
    """Store intermediates packed where every statement that has them walks them alike.

    Args:
        plan: of the statements.
        groupings: of its contractions.
        memory: all buffers; those of such intermediates become packed.
        statements: all statements of the plan.
    """
    touching: dict[str, list[Statement]] = {}
    for statement in statements:
        for access in {x.buffer: x for x in _accesses(statement)}.values():
            touching.setdefault(access.buffer, []).append(statement)
    packed = {
        name: replace(buffer, packed=groups)
        for name, buffer in memory.buffers.items()
        if name in touching and (groups := _groups(plan, buffer, touching[name]))
    }
    changed = True
    while changed and packed:
        buffers = ChainMap(dict(packed), memory.buffers)
        for name in tuple(packed):
            if not all(_walks_alike(s, name, groupings, buffers) for s in touching[name]):
                del packed[name]
        changed = len(packed) < len(buffers.maps[0])
    memory.buffers.update(packed)


def _accesses(statement: Statement) -> tuple[Access, ...]:
    read = tuple(x for x in leaves(statement.expr) if isinstance(x, Access))
    return (statement.out, *read)


def _groups(plan: FusionPlan, buffer: Buffer, touching: Sequence[Statement]) -> tuple[Packing, ...]:
    """The groups of neighbouring symmetric axes of a whole intermediate of unfused visits."""
    tensor = buffer.tensor
    whole = buffer.place == "arena" and all(axis.length is None for axis in buffer.axes)
    if tensor is None or tensor.role is not Role.TEMP or not whole or buffer.packed:
        return ()
    if any(plan.visits[s.position].loops for s in touching):
        return ()
    steps = [plan.program.steps[plan.visits[s.position].step] for s in touching]
    refs = [r for step in steps for r in (step.out, *step.operands) if r.tensor == tensor]
    groups = _symmetric_axes(plan.program, tensor)
    return tuple(g for g in groups if all(walks_whole(ref, g) for ref in refs))


def _symmetric_axes(program: FormulaSequence, tensor: Tensor) -> Iterator[Packing]:
    """Maximal runs of axes of which neighbours are exchanged with one sign."""
    signs = []
    for first in range(tensor.rank - 1):
        perm = list(range(tensor.rank))
        perm[first], perm[first + 1] = first + 1, first
        same = tensor.spaces[first] == tensor.spaces[first + 1]
        signs.append(tensor_sign(program, tensor, tuple(perm)) if same else None)
    start, end = 0, 0  # of a run of exchanges, and of the axes of the last group
    for sign, run in groupby(signs):
        length = len(list(run))
        if sign is not None and start >= end:
            yield Packing(start, sign < 0, length + 1)
            end = start + length + 1
        start += length


def _walks_alike(
    statement: Statement, name: str, groupings: Groupings, buffers: Mapping[str, Buffer]
) -> bool:
    """True if a statement uses all of its accesses to a packed buffer where they are stored."""
    mine = [x for x in _accesses(statement) if x.buffer == name]
    summed = any(v.name not in statement.out.variables for v in statement.band)
    if statement.factors and summed:
        grouping = groupings.of(statement, buffers)
        if grouping is None:
            return False
        out = statement.out.buffer != name or in_place(
            statement.out, grouping.groups, statement, buffers
        )
        return bool(out) and all(
            grouping.placed(n, statement, buffers)
            for n, x in enumerate(statement.factors)
            if x.buffer == name
        )
    target = buffers[statement.out.buffer]
    chains = [
        {statement.out.subscripts[axis].variable for axis in packing.axes}
        for packing in target.packed
    ]
    buffer = buffers[name]
    return not summed and all(
        any({x.subscripts[axis].variable for axis in packing.axes} <= chain for chain in chains)
        for x in mine
        for packing in buffer.packed
    )

"""Intermediates that are stored in their groups of symmetric axes if that takes less time.

Before: ``x[i,j,a,b]`` with antisymmetric pairs, a product by groups that is scattered to all of x,
and ``r[i,j,a,b] += x[i,j,a,b]`` for a packed r. After: the product writes the distinct elements of
x, which has a quarter of the memory, and r is added from them element by element. If r is not
packed, its elements are read from x with their sign. That takes longer, and pays if several
products add to x, since none of them is scattered to the whole array.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from ...ir.exchange_symmetry import tensor_sign
from ...ir.loops import Buffer
from ...ir.plan import FusionPlan
from ...ir.program import FormulaSequence
from ...ir.tensor import Packing, Role, Tensor
from ..buffers import Memory, walks_whole
from ..layout import CpuContext
from ..statements import Statement
from .symmetric_groups import Groupings, points_of, reads_of, stored_groups


def pack_intermediates(
    plan: FusionPlan, groupings: Groupings, memory: Memory, statements: Sequence[Statement]
) -> None:
    """Store intermediates packed if their statements take no longer because of it."""
    touching: dict[str, list[Statement]] = {}
    for statement in statements:
        for access in {x.buffer: x for x in statement.accesses}.values():
            touching.setdefault(access.buffer, []).append(statement)
    packed = {
        name: replace(buffer, packed=groups)
        for name, buffer in memory.buffers.items()
        if name in touching and (groups := _groups(plan, buffer, touching[name]))
    }
    kept: dict[str, Buffer] = {}
    while len(kept) != len(packed):
        kept = dict(packed)
        for name in kept:
            others = {n: b for n, b in packed.items() if n != name}
            if not _pays(touching[name], groupings, memory, packed, others):
                packed = others
    memory.buffers.update(packed)


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
    """Maximal runs of axes whose neighbours are exchanged with one sign."""
    signs = []
    for first in range(tensor.rank - 1):
        perm = list(range(tensor.rank))
        perm[first], perm[first + 1] = first + 1, first
        same = tensor.spaces[first] == tensor.spaces[first + 1]
        signs.append(tensor_sign(program, tensor, tuple(perm)) if same else None)
    # Begin of a run of exchanges, and end of the axes of the last group.
    start, end = 0, 0
    for sign, run in groupby(signs):
        length = len(list(run))
        if sign is not None and start >= end:
            yield Packing(start, sign < 0, length + 1)
            end = start + length + 1
        start += length


def _pays(
    statements: Sequence[Statement],
    groupings: Groupings,
    context: CpuContext,
    packed: Mapping[str, Buffer],
    others: Mapping[str, Buffer],
) -> bool:
    """True if statements take no longer with a packed buffer than if only the others are packed."""

    def costs(stored: Mapping[str, Buffer]) -> list[int | None]:
        held = context.with_buffers(ChainMap(dict(stored), dict(context.buffers)))
        return [_cost(s, groupings, held, frozenset(stored)) for s in statements]

    with_it, without_it = costs(packed), costs(others)
    if None in with_it:
        return False
    return sum(c or 0 for c in with_it) <= sum(c or 0 for c in without_it)


def _cost(
    statement: Statement, groupings: Groupings, context: CpuContext, packed: Container[str]
) -> int | None:
    """Flops of a contraction, and those in the time of all copies; None if it has to be whole."""
    summed = any(v.name not in statement.out.variables for v in statement.band)
    mine = [x for x in statement.accesses if x.buffer in packed]
    if statement.factors and summed:
        grouping, cost = groupings.cheapest(statement, context)
        return None if mine and grouping is None else cost
    if mine and summed:
        return None
    stored = stored_groups(statement.out, context.buffer(statement.out))
    walked = points_of(stored, statement.band, context)
    chains = [set(group.names) for group in stored]
    reads = 0
    for access in mine:
        groups = [group.names for group in stored_groups(access, context.buffer(access))]
        if not all(any(set(names) <= chain for chain in chains) for names in groups):
            reads += reads_of(groups, context)
    return context.thresholds.pair_copy_flops * walked * reads

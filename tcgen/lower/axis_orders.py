"""Physical order of the intermediates: the one in which the fewest elements are copied.

The order of an intermediate's axes is free. For each one, in the order of their first use, the
candidates are the declared order and those that its producers and consumers would like (the groups
of a matrix product as the other operands walk them; a permutation as its other side does). The
cost of a candidate is counted over all statements that touch the intermediate: 2 for each element
that a matrix product copies, 1 for each element of an element-wise statement whose target and main
operand differ in their stride-1 variable. The first of the cheapest is taken.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ..ir.expr import Access, leaves
from ..ir.loops import Buffer
from ..ir.tensor import Role
from .buffers import Memory
from .layout import as_product, elements, fastest, walked
from .statements import Statement

Order = tuple[int, ...]


def choose_orders(
    memory: Memory, statements: Sequence[Statement], extents: Mapping[str, int]
) -> None:
    """Give every stored intermediate its physical order."""
    for name in dict.fromkeys(x.buffer for s in statements for x in _accesses(s)):
        buffer = memory.buffers[name]
        free = buffer.tensor is not None and buffer.tensor.role is Role.TEMP
        if not free or sum(axis.length != 1 for axis in buffer.axes) < 2:
            continue
        touching = [s for s in statements if any(x.buffer == name for x in _accesses(s))]
        wished = (order for s in touching for order in _wishes(s, name, memory.buffers))
        best = buffer.order
        cheapest = _cost(touching, memory.buffers, extents)
        for order in dict.fromkeys(wished):
            if cheapest == 0:
                break
            trial = {**memory.buffers, name: replace(buffer, order=order)}
            cost = _cost(touching, trial, extents)
            if cost < cheapest:
                best, cheapest = order, cost
        memory.reorder(name, best)


def _accesses(statement: Statement) -> tuple[Access, ...]:
    read = tuple(x for x in leaves(statement.expr) if isinstance(x, Access))
    return (statement.out, *read)


def _cost(
    statements: Sequence[Statement], buffers: Mapping[str, Buffer], extents: Mapping[str, int]
) -> int:
    total = 0
    for statement in statements:
        product = as_product(statement, buffers, extents)
        if product is not None:
            total += 2 * product.elements
            continue
        out, *operands = _accesses(statement)
        main = max(operands, key=lambda x: len(x.variables), default=out)
        if fastest(out, buffers[out.buffer]) != fastest(main, buffers[main.buffer]):
            total += elements(statement.band, extents)
    return total


def _wishes(statement: Statement, name: str, buffers: Mapping[str, Buffer]) -> Iterator[Order]:
    """Orders of a buffer that would suit the other operands of a statement."""
    found = _accesses(statement)
    mine = next(x for x in found if x.buffer == name)
    others = [x for x in found if x.buffer != name]
    if not statement.factors:
        for other in others:
            yield _order_for(mine, walked(other, buffers[other.buffer]), buffers[name])
        return
    # The variables shared with one other operand are a group, those with both are the batch.
    shared = [[v for v in walked(x, buffers[x.buffer]) if v in mine.variables] for x in others]
    if len(shared) != 2:
        return
    one, two = ([v for v in g if v not in h] for g, h in (shared, shared[::-1]))
    batch = [v for v in shared[0] if v in shared[1]]
    for first, second in itertools.permutations((one, two)):
        yield _order_for(mine, [*batch, *first, *second], buffers[name])


def _order_for(access: Access, variables: list[str], buffer: Buffer) -> Order:
    """Axes in the order of some variables; those of other variables stand in front."""

    def place(axis: int) -> int:
        variable = access.subscripts[axis].variable
        return variables.index(variable) if variable in variables else -1

    return tuple(sorted(range(len(buffer.axes)), key=place))

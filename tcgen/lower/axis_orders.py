"""Physical order of the intermediates' axes: the least time, and the fewest copied elements.

For each intermediate, in the order of first use, the candidates are the declared order and those
that suit its producers and consumers (for a matrix product the groups in the order of the other
operands, for a permutation the order of its other side). Over all statements with the intermediate,
a candidate costs 2 for each element that a matrix product copies, and 1 for each point of an
element-wise statement whose target and main operand have different unit-stride variables. The first
of the cheapest is taken. If there is a model of time, as for a GPU, time comes first.
"""

from __future__ import annotations

import itertools
from collections import ChainMap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from ..ir.expr import Access
from ..ir.loops import Buffer
from ..ir.tensor import Role
from .buffers import Memory
from .layout import CpuContext
from .products import as_product
from .statements import Statement

Order = tuple[int, ...]
Time = Callable[[Statement, CpuContext], float]


def choose_orders(
    memory: Memory, statements: Sequence[Statement], time: Time | None = None
) -> None:
    """Give every stored intermediate its physical order."""

    def cost_of(touching: Sequence[Statement], context: CpuContext) -> tuple[float, int]:
        taken = [0.0] if time is None else [time(statement, context) for statement in touching]
        return sum(taken), _copies(touching, context)

    touching_by_name: dict[str, list[Statement]] = {}
    for statement in statements:
        for name in dict.fromkeys(x.buffer for x in statement.accesses):
            touching_by_name.setdefault(name, []).append(statement)
    for name, touching in touching_by_name.items():
        buffer = memory.buffers[name]
        free = buffer.tensor is not None and buffer.tensor.role is Role.TEMP
        if not free or buffer.packed or sum(axis.length != 1 for axis in buffer.axes) < 2:
            continue
        candidates = (order for s in touching for order in _candidates(s, name, memory))
        best = buffer.order
        cheapest = cost_of(touching, memory)
        for order in dict.fromkeys(candidates):
            if not any(cheapest):
                break
            trial = ChainMap({name: replace(buffer, order=order)}, memory.buffers)
            cost = cost_of(touching, memory.with_buffers(trial))
            if cost < cheapest:
                best, cheapest = order, cost
        memory.buffers[name] = replace(buffer, order=best)


def _copies(statements: Sequence[Statement], context: CpuContext) -> int:
    total = 0
    for statement in statements:
        product = as_product(statement, context)
        if product is not None:
            total += 2 * product.elements
            continue
        out, *operands = statement.accesses
        main = max(operands, key=lambda x: len(x.variables), default=out)
        if context.unit_stride(out) != context.unit_stride(main):
            total += context.elements(statement.band)
    return total


def _candidates(statement: Statement, name: str, context: CpuContext) -> Iterator[Order]:
    """Orders of a buffer that suit the other operands of a statement."""
    accesses = statement.accesses
    mine = next(x for x in accesses if x.buffer == name)
    others = [x for x in accesses if x.buffer != name]
    if not statement.factors:
        for other in others:
            yield _order_for(mine, context.memory_order(other), context.buffers[name])
        return
    # Variables in common with one other operand are a group, those with both are the batch.
    common = [[v for v in context.memory_order(x) if v in mine.variables] for x in others]
    if len(common) != 2:
        return
    one, two = ([v for v in g if v not in h] for g, h in (common, common[::-1]))
    batch = [v for v in common[0] if v in common[1]]
    for first, second in itertools.permutations((one, two)):
        yield _order_for(mine, [*batch, *first, *second], context.buffers[name])


def _order_for(access: Access, variables: list[str], buffer: Buffer) -> Order:
    """Axes in the order of some variables; axes of other variables come first."""

    def place(axis: int) -> int:
        variable = access.subscripts[axis].variable
        return variables.index(variable) if variable in variables else -1

    return tuple(sorted(range(len(buffer.axes)), key=place))

"""The nest: visits grouped by their common loop prefixes, with zeroes where instances begin.

Before: visits in (j, i), (j, k), (k).   After: ``for j: (for i: ...; for k: ...); for k: ...``
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from ..ir.expr import Access, Subscript
from ..ir.loops import Assign, BandVar, Buffer, Fetch, Loop, Stmt, Zero
from ..ir.plan import ArrayPlan, FusionPlan, LoopId
from ..ir.reduction import Reduction, Running
from ..ir.tensor import Role
from .buffers import Memory


@dataclass(frozen=True, slots=True)
class Leaf:
    """Statements at one place of the nest, for the visit at ``position``.

    Attributes:
        body: the statements, or one fetch.
        computes: False for the zeroes and the copies that a visit needs.
        constant: copies of constant operands, made in the constant phase.
    """

    position: int
    body: tuple[Stmt | Fetch, ...]
    computes: bool = True
    constant: bool = False


@dataclass(frozen=True, slots=True)
class Branch:
    """A shared loop and its body."""

    loop: LoopId
    items: tuple[Item, ...]


Item: TypeAlias = Leaf | Branch


@dataclass(frozen=True, slots=True)
class Start:
    """The beginning of an instance.

    Attributes:
        first: visit that first writes it.
        depth: number of loops of that visit around the instance's home body.
        zero: buffer to zero before the item of the home body with the first visit, or None.
        reduction: reduction of the producers, whose neutral element fills the buffer.
        overwrites: the first visit overwrites the instance; else it adds.
    """

    first: int
    depth: int
    zero: str | None
    reduction: Reduction
    overwrites: bool


def instance_starts(plan: FusionPlan, memory: Memory) -> tuple[Start, ...]:
    """The beginning of every computed instance.

    If the first producer writes every element once, before any other producer adds to it, it
    overwrites, and no zero is needed.
    """
    starts = []
    for array in plan.arrays:
        tensor = array.tensor
        if tensor.role is Role.GENERATED:
            continue
        makers = plan.makers(array)
        first = makers[0]
        loops = plan.visits[first].loops
        depth = 0 if array.home is None else loops.index(array.home) + 1
        given = tensor.accumulate and tensor.name not in memory.dense
        overwrites = not given and _writes_all(plan, array, makers, depth)
        zero = None if given or overwrites else memory.name_of(tensor, first)
        reduction = plan.program.steps[plan.visits[first].step].reduction
        if isinstance(reduction, Running):
            reduction = reduction.each
        starts.append(Start(first, depth, zero, reduction, overwrites))
    return tuple(starts)


def build_nest(
    plan: FusionPlan,
    leaves: Mapping[int, Leaf],
    before: Mapping[tuple[int, int], tuple[Leaf, ...]],
    after: Mapping[int, tuple[Leaf, ...]],
) -> tuple[Item, ...]:
    """Group visits by their loops.

    ``before`` has leaves to put before the item with a visit, by (visit, depth of the item);
    ``after`` has those to put after the outermost item with a visit.
    """

    def level(positions: Sequence[int], depth: int) -> Iterator[Item]:
        def loop_at(position: int) -> LoopId | int:
            loops = plan.visits[position].loops
            return loops[depth] if depth < len(loops) else position

        for key, held in itertools.groupby(positions, loop_at):
            inside = tuple(held)
            for position in inside:
                yield from before.get((position, depth), ())
            if isinstance(key, LoopId):
                yield Branch(key, tuple(level(inside, depth + 1)))
            else:
                yield leaves[key]
            if depth == 0:
                for position in inside:
                    yield from after.get(position, ())

    return tuple(level(range(len(plan.visits)), 0))


def zeroes(
    starts: tuple[Start, ...], buffers: Mapping[str, Buffer]
) -> dict[tuple[int, int], tuple[Leaf, ...]]:
    """Zeroes by (first visit, depth), as ``build_nest`` expects them."""
    found: dict[tuple[int, int], tuple[Leaf, ...]] = {}
    for start in starts:
        if start.zero is not None:
            key = (start.first, start.depth)
            leaf = Leaf(start.first, (_zero(buffers[start.zero], start.reduction),), computes=False)
            found[key] = (*found.get(key, ()), leaf)
    return found


def _zero(buffer: Buffer, reduction: Reduction) -> Stmt:
    """Set a buffer to zero, or the part of a larger array that is the tensor."""
    if buffer.tensor is None or not buffer.tensor.storage.within:
        return Zero(buffer.name, reduction=reduction)
    # An array of the whole program has no loop around it.
    spaces = buffer.tensor.spaces
    band = tuple(BandVar(f"z{axis}", spaces[axis]) for axis in buffer.order)
    place = Access(buffer.name, tuple(Subscript(f"z{axis}") for axis in range(len(spaces))))
    return Assign(place, reduction.neutral, band=band)


def of_step(leaf: Leaf, plan: FusionPlan) -> Leaf:
    """The leaf with the step of its visit in every statement, by which reports attribute work."""
    step = plan.visits[leaf.position].step

    def marked(stmt: Stmt) -> Stmt:
        if isinstance(stmt, Loop):
            return replace(stmt, body=tuple(marked(inner) for inner in stmt.body))
        return replace(stmt, step=step)

    body = tuple(s if isinstance(s, Fetch) else marked(s) for s in leaf.body)
    return replace(leaf, body=body)


def leaves_of(item: Item) -> Iterator[Leaf]:
    """Leaves of an item, in order."""
    if isinstance(item, Leaf):
        yield item
    else:
        for inner in item.items:
            yield from leaves_of(inner)


def last_producers(plan: FusionPlan) -> Iterator[tuple[ArrayPlan, int]]:
    """Every output with the last visit that writes it."""
    for array in plan.arrays:
        if array.tensor.role is Role.OUTPUT:
            yield array, plan.makers(array)[-1]


def _writes_all(plan: FusionPlan, array: ArrayPlan, makers: list[int], depth: int) -> bool:
    """True if the first producer may overwrite, because it visits every element once.

    Each loop between home and producer runs over one axis, and any other producer inside such a
    loop runs over the same axis (else it could add to elements that are overwritten later).
    """
    visit = plan.visits[makers[0]]
    out = plan.program.steps[visit.step].out
    for loop in visit.loops[depth:]:
        axis = next((k for k, i in enumerate(out.indices) if visit.loop_of(i) == loop), None)
        if axis is None:
            return False
        for other in (plan.visits[n] for n in makers if loop in plan.visits[n].loops):
            if other.loop_of(plan.program.steps[other.step].out.indices[axis]) != loop:
                return False
    return all(
        array.loop_of(axis) is not None
        or (index.space.bases == space.bases and visit.loop_of(index) not in visit.loops[:depth])
        for axis, (index, space) in enumerate(zip(out.indices, array.tensor.spaces, strict=True))
    )

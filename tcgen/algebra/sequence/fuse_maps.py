"""Element-wise arrays that a single map reads are evaluated in that map and never stored."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TypeAlias, assert_never

from ...ir.expr import (
    Access,
    Delta,
    Equal,
    Expr,
    Prod,
    Quot,
    Sum,
    depth,
    expr_indices,
    flat_product,
    map_leaves,
    operation_count,
    scaled,
)
from ...ir.program import Add, Contract, Map, Operation, Produce, Step
from ...ir.tensor import Index, Ref
from ...ir.term_rewriting import rename_expr
from .common_products import multiplied

Places: TypeAlias = dict[str, Counter[tuple[str, int]]]  # readers by array, with counts


def inline_into_maps(
    arrays: dict[str, tuple[Step, ...]], keep: frozenset[str], most_depth: int
) -> dict[str, tuple[Step, ...]]:
    """The arrays without those that a single map reads once, over the same indices.

    An array is given by its producers, the steps that make it. It can be inlined if none of them
    sums over an index, so that the map can evaluate it element by element, and if this costs no
    more flops. A product of two plain references stays a contraction unless a map reads it. Arrays
    in ``keep`` stay, and operations in a map are nested at most ``most_depth`` deep.
    """
    arrays = dict(arrays)
    places: Places = {}
    for array, steps in arrays.items():
        for position, step in enumerate(steps):
            for ref in step.operands:
                places.setdefault(ref.tensor.name, Counter())[array, position] += 1
    pending, changed = [name for name in arrays if name not in keep], True
    while changed:
        changed = False
        for name in pending:
            place = _reader(name, places)
            if place is None:
                continue
            reader, position = place
            merged = _merged(arrays[name], arrays[reader][position], most_depth)
            if merged is None:
                continue
            steps = arrays[reader]
            arrays[reader] = (*steps[:position], merged, *steps[position + 1 :])
            for number, producer in enumerate(arrays.pop(name)):
                for ref in producer.operands:
                    read = places[ref.tensor.name]
                    read[name, number] -= 1
                    read[place] += 1
            changed = True
        pending = [name for name in pending if name in arrays]
    return arrays


def _reader(name: str, places: Places) -> tuple[str, int] | None:
    """The array and position of the step that reads ``name``; None unless it is read once."""
    read = +places.get(name, Counter())
    return next(iter(read)) if read.total() == 1 else None


def _merged(producers: tuple[Step, ...], reader: Step, most_depth: int) -> Step | None:
    """The reader with the elements of the array in its expression; None if that is not possible."""
    if not isinstance(reader.op, Map) or any(p.sums for p in producers):
        return None
    tensor = producers[0].out.tensor
    ref = next(r for r in reader.operands if r.tensor.name == tensor.name)
    loops = set(reader.out.indices + reader.sums)
    if len(set(ref.indices)) != len(ref.indices) or set(ref.indices) != loops:
        return None
    constant = not any(r.tensor.volatile for p in producers for r in p.operands)
    if constant and any(r.tensor.volatile for r in reader.operands):
        return None
    parts = []
    for producer in producers:
        part = _element(producer, ref)
        if part is None:
            return None
        parts.append(part)
    value: Expr = parts[0] if len(parts) == 1 else Sum(tuple(parts))

    def leaf(node: Ref | Access | Delta | Equal) -> Expr:
        return value if node == ref else node

    expr = _flat(map_leaves(reader.op.expr, leaf))
    if not set(reader.sums) <= set(expr_indices(expr)):  # the array is constant along a summed axis
        return None
    if depth(expr) > most_depth:
        return None
    before = operation_count(reader.op.expr)
    for n, producer in enumerate(producers):
        before += _element_flops(producer.op) + (abs(producer.coeff) != 1)
        before += n > 0 and not isinstance(producer.op, Contract)
    if operation_count(expr) > before:
        return None
    return replace(reader, op=Map(expr))


def _element(producer: Step, ref: Ref) -> Expr | None:
    """The term that a producer adds to the element that ``ref`` reads; None if not expressible."""
    names: dict[Index, Index] = dict(zip(producer.out.indices, ref.indices, strict=True))
    if any(old.space != new.space for old, new in names.items()):
        return None
    if producer.summand is None:
        return None
    return scaled(producer.coeff, rename_expr(producer.summand, names))


def _element_flops(op: Operation) -> int:
    """Flops of an operation for one element, without its coefficient and sum."""
    match op:
        case Contract():
            return 2
        case Map(expr):
            return operation_count(expr)
        case Add() | Produce():
            return 0
        case _:
            assert_never(op)


def _flat(expr: Expr) -> Expr:
    """The expression with flat products, the numbers of each multiplied into one in front."""
    match expr:
        case Prod(args):
            return _gathered(multiplied(tuple(_flat(a) for a in args)))
        case Quot(num, den):
            return Quot(_flat(num), den)
        case Sum(args):
            return Sum(tuple(_flat(a) for a in args))
        case _:
            return expr


def _gathered(expr: Expr) -> Expr:
    """A product with its numbers multiplied into one in front."""
    if isinstance(expr, Quot):
        return Quot(_gathered(expr.num), expr.den)
    return flat_product(expr.args) if isinstance(expr, Prod) else expr

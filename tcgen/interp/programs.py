"""Interpreter of programs: the steps one after another, on whole arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, assert_never

import numpy as np

from ..ir.cost import extent_of
from ..ir.expr import Delta, Expr, expr_indices
from ..ir.program import Add, Contract, FormulaSequence, Map, Produce, Step
from ..ir.reduction import Reduction
from ..ir.tensor import Index, Ref, Tensor
from .elements import (
    Array,
    Labelled,
    align,
    combine,
    delta,
    evaluate_expr,
    filled,
    product,
    reduced,
)
from .storage import (
    Source,
    check_extents,
    check_inputs,
    logical_shape,
    program_dtype,
    read_block,
    returned,
    starting_values,
    whole_block,
    working_type,
)


def evaluate_program(
    program: FormulaSequence,
    arrays: Mapping[str, Source],
    extents: Mapping[str, int],
    out: Mapping[str, Array] | None = None,
    dtype: str | None = None,
) -> dict[str, Array]:
    """Outputs of a program, step by step on whole arrays.

    Args:
        program: verified steps.
        arrays: inputs by name as the caller passes them; generated inputs are fetched whole.
        extents: extents of the base spaces; 0 is legal.
        out: starting arrays of outputs that accumulate; they are not written to.
        dtype: element type of the program; by default that of the arrays. The arithmetic is in
            double precision; only results are rounded to this type.

    Returns:
        Output arrays by name as the caller of a compiled program gets them.

    Raises:
        ArgumentError: an input is missing, unknown or of the wrong kind.
        ExtentError: an extent is missing or negative.
        ShapeError: an array does not fit its tensor.
    """
    check_extents(program.spaces, extents)
    sources = check_inputs(program.tensors, arrays, extents)
    dtype = dtype or program_dtype(arrays)
    values: dict[Tensor, Array] = {}
    start = starting_values(program.outputs, out, extents, dtype)
    for tensor in program.outputs:
        if tensor.name in start:
            values[tensor] = start[tensor.name]

    def fetch(tensor: Tensor) -> Array:
        block = whole_block(tensor, extents)
        tile = read_block(tensor, sources[tensor.source], block, dtype)
        return np.asarray(tile, working_type(tensor, dtype))

    with np.errstate(all="ignore"):
        for step in program.steps:
            if isinstance(step.op, Produce):
                values[step.op.tensor] = fetch(step.op.tensor)
                continue
            for ref in step.operands:
                if ref.tensor not in values:
                    values[ref.tensor] = fetch(ref.tensor)
            target = step.out.tensor
            if not step.accumulate:
                shape = logical_shape(target, extents)
                values[target] = filled(step.reduction, shape, working_type(target, dtype))
            _run_step(step, values, extents, dtype)
    return {t.name: returned(t, values[t], dtype) for t in program.outputs}


def _run_step(
    step: Step, values: Mapping[Tensor, Array], extents: Mapping[str, int], dtype: str
) -> None:
    """Add the value of a step to its output."""

    def read(ref: Ref) -> Array:
        return _view(ref, values, extents)

    operands: list[Labelled]
    match step.op:
        case Contract(a, b):
            operands = [(read(a), a.indices), (read(b), b.indices)]
        case Add(a):
            operands = [(read(a), a.indices)]
        case Map(expr):
            operands = [(_map(expr, values, extents, dtype), expr_indices(expr))]
        case Produce():
            return
        case _:
            assert_never(step.op)
    out = read(step.out)
    if step.reduction is not Reduction.SUM:
        (array, indices), order = operands[0], (*step.out.indices, *step.sums)
        axes = tuple(range(len(step.out.indices), len(order)))
        part = reduced(step.reduction, align(array, indices, order), axes)
        out[...] = combine(step.reduction, out, part if np.iscomplexobj(out) else part.real)
        return
    value = align(*product(operands, step.out.indices), step.out.indices) * float(step.coeff)
    # An array that is declared real stores no imaginary part.
    out += value if np.iscomplexobj(out) else value.real


def _map(
    expr: Expr, values: Mapping[Tensor, Array], extents: Mapping[str, int], dtype: str
) -> Array:
    """The values of an element-wise expression over its indices."""
    order: tuple[Index, ...] = expr_indices(expr)

    def leaf(node: object) -> Array:
        match node:
            case Ref(_, indices):
                return align(_view(node, values, extents), indices, order)
            case Delta(one, other):
                return align(delta(one.space, other.space, extents), (one, other), order)
            case _:
                raise TypeError(f"{node} cannot occur in a program")

    return evaluate_expr(expr, leaf, dtype)


def _view(ref: Ref, values: Mapping[Tensor, Array], extents: Mapping[str, int]) -> Array:
    """A view of the part of a tensor that the indices run over."""
    parts: list[Any] = []
    for index, space in zip(ref.indices, ref.tensor.spaces, strict=True):
        before = space.before(index.space)
        assert before is not None, f"{index} does not fit an axis of {space.name}"
        offset = sum(extents[base.name] for base in before)
        parts.append(slice(offset, offset + extent_of(index.space, extents)))
    return np.asarray(values[ref.tensor][(*parts, ...)])

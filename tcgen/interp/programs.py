"""Interpreter of programs: the steps one after another, on whole arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..ir.expr import Delta
from ..ir.program import FormulaSequence, Map, Produce, Step
from ..ir.tensor import Ref, Tensor
from .elements import (
    Array,
    Labelled,
    add_product,
    delta,
    evaluate_over,
    filled,
    first_position,
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
    """Outputs of a verified program, step by step on whole arrays.

    Arguments, results and errors are those of :func:`~tcgen.interp.evaluate_system`, but no array
    has a limit, and generated inputs are fetched whole.
    """
    check_extents(program.spaces, extents)
    sources = check_inputs(program.tensors, arrays, extents)
    expressions = (s.op.expr for s in program.steps if isinstance(s.op, Map))
    dtype = program_dtype(arrays, expressions, dtype)
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

    def kronecker(node: Delta) -> Array:
        return delta(node.left.space, node.right.space, extents)

    operands: list[Labelled]
    if isinstance(step.op, Map):
        operands = [evaluate_over(step.op.expr, read, kronecker, dtype)]
    else:
        operands = [(read(ref), ref.indices) for ref in step.operands]
    targets = [(1, read(step.out))]
    add_product(step.reduction, step.coeff, operands, step.out.indices, step.sums, targets)


def _view(ref: Ref, values: Mapping[Tensor, Array], extents: Mapping[str, int]) -> Array:
    """A view of the part of a tensor that the indices run over."""
    parts: list[Any] = []
    for index, space in zip(ref.indices, ref.tensor.spaces, strict=True):
        offset = first_position(index, space, extents)
        parts.append(slice(offset, offset + index.space.extent_in(extents)))
    return np.asarray(values[ref.tensor][(*parts, ...)])

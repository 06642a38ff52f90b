"""Exact memory of plans: static sums of elements and bytes, in integers."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from ..ir.cost import extent_of
from ..ir.plan import ArrayPlan, FusionPlan
from ..ir.program import Program
from ..ir.tensor import Role, Tensor, element_bytes


def whole_elements(tensor: Tensor, extents: Mapping[str, int]) -> int:
    """Elements of a tensor in full.

    Example:
        >>> from tcgen.ir.tensor import Space
        >>> o = Space("o")
        >>> whole_elements(Tensor("t", (o, o), Role.TEMP), {"o": 4})
        16
    """
    return prod(extent_of(space, extents) for space in tensor.spaces)


def array_elements(array: ArrayPlan, extents: Mapping[str, int]) -> int:
    """Elements of an instance: a contracted axis counts 1, or its tile.

    Source: Allam et al., Eq. (6).
    """
    total = 1
    for axis, space in enumerate(array.tensor.spaces):
        extent, loop = extent_of(space, extents), array.loop_of(axis)
        total *= extent if loop is None else min(extent, loop.tile or 1)
    return total


def array_bytes(array: ArrayPlan, extents: Mapping[str, int], dtype: str) -> int:
    """Bytes of an instance in a program of ``dtype``."""
    return array_elements(array, extents) * element_bytes(array.tensor, dtype)


def static_elements(plan: FusionPlan) -> int:
    """Sum over the intermediates and generated inputs of a plan; outputs are roots, not counted.

    Figure 1 of Allam et al. with ranges 10, 10, 12, 10 takes 23 elements.
    """
    return sum(
        array_elements(a, plan.extent_of) for a in plan.arrays if a.tensor.role is not Role.OUTPUT
    )


def unfused_elements(program: Program, extents: Mapping[str, int]) -> int:
    """Sum over the intermediates and generated inputs, each in full."""
    return sum(whole_elements(t, extents) for t in _counted(program))


def unfused_bytes(program: Program, extents: Mapping[str, int], dtype: str) -> int:
    """Bytes of the intermediates and generated inputs, each in full."""
    return sum(whole_elements(t, extents) * element_bytes(t, dtype) for t in _counted(program))


def saving(tensor: Tensor, axis: int, extents: Mapping[str, int]) -> int:
    """Elements saved where one axis alone is fused: ``size(A) - rsize(A, i)``.

    Source: Allam et al., Eq. (10).
    """
    size = whole_elements(tensor, extents)
    extent = extent_of(tensor.spaces[axis], extents)
    return size - size // extent


def _counted(program: Program) -> tuple[Tensor, ...]:
    return tuple(t for t in program.tensors if t.role in (Role.TEMP, Role.GENERATED))

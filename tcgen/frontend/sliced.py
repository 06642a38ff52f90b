"""Inputs on disk that a program reads in slices, as it fetches generated inputs in tiles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import TypeVar

from ..errors import ArgumentError
from ..ir.system import System
from ..ir.tensor import Role, Tensor

Part = TypeVar("Part")


def read_in_slices(system: System, names: tuple[str, ...]) -> System:
    """The equations with these inputs as generated ones, which are never stored whole.

    Args:
        system: equations.
        names: of inputs, none of them a scalar or packed.

    Raises:
        ArgumentError: a name is not an input, or its array cannot be sliced.
    """
    inputs = {t.name: t for t in system.inputs}
    sliced: dict[Tensor, Tensor] = {}
    for name in names:
        tensor = inputs.get(name)
        if tensor is None:
            raise ArgumentError(
                f"sliced input {name}: there is no input of that name (inputs: {', '.join(inputs)})"
            )
        if not tensor.rank or tensor.storage.packed:
            what = "has packed axes" if tensor.rank else "is a scalar"
            raise ArgumentError(f"sliced input {name} {what}: only a full array can be sliced")
        sliced[tensor] = replace(tensor, role=Role.GENERATED)
    return _swapped(system, sliced) if sliced else system


def _swapped(part: Part, tensors: Mapping[Tensor, Tensor]) -> Part:
    """A part of a system with tensors replaced by others."""
    swapped: object = part
    if isinstance(part, Tensor):
        swapped = tensors.get(part, part)
    elif isinstance(part, tuple):
        swapped = tuple(_swapped(p, tensors) for p in part)
    elif is_dataclass(part) and not isinstance(part, type):
        changes = {f.name: _swapped(getattr(part, f.name), tensors) for f in fields(part)}
        if any(changes[f.name] is not getattr(part, f.name) for f in fields(part)):
            swapped = replace(part, **changes)
    return swapped  # type: ignore[return-value]

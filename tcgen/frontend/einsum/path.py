"""Contraction paths of einsum calls, as NumPy's ``optimize`` gives them."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any, SupportsIndex

import numpy as np

from ...errors import ArgumentError, ContractionPathError, PathNameError

ContractionPath = tuple[tuple[int, ...], ...]


def contraction_path(optimize: Any, count: int) -> ContractionPath | None:
    """The path that ``optimize`` asks for; None for the cheapest one.

    Args:
        optimize: as for ``numpy.einsum``.
        count: number of operands.

    Raises:
        ArgumentError: a type that NumPy does not accept (a TypeError).
        PathNameError: a name that NumPy does not know (a KeyError).
        ContractionPathError: the path does not fit the operands.
    """
    if optimize is None or isinstance(optimize, bool | np.bool_):
        if optimize or count < 2:
            return None
        return ((0, 1), *((0, k) for k in range(count - 2, 0, -1)))
    if isinstance(optimize, tuple | list) and optimize and optimize[0] == "einsum_path":
        steps = optimize[1:]
        if all(
            isinstance(s, Sequence) and all(isinstance(p, SupportsIndex) for p in s) for s in steps
        ):
            path = tuple(tuple(index(p) for p in step) for step in steps)
            check_path(path, count)
            return path
    elif (
        isinstance(optimize, tuple | list)
        and len(optimize) == 2
        and isinstance(optimize[1], int | float)
    ):
        optimize = optimize[0]  # (name, elements of the largest intermediate)
    if isinstance(optimize, str):
        check_order_name(optimize, count)
        return None
    raise ArgumentError(
        f"optimize={optimize!r} is not valid: use True, False, 'greedy', 'optimal' or a path such "
        f"as ['einsum_path', (0, 1), (0, 1)]"
    )


def check_order_name(name: str, count: int) -> None:
    """Check the name of an order of contraction; the planner takes the cheapest for any of them.

    Raises:
        PathNameError: NumPy does not know the name. It ignores the names for two operands.
    """
    if name not in ("greedy", "optimal") and count > 2:
        raise PathNameError(
            f"optimize={name!r} is not an order of contraction: use 'greedy' or 'optimal', or True "
            "for the order with the fewest flops"
        )


def check_path(path: ContractionPath, count: int) -> None:
    """Check a path in NumPy's form: operands leave the list, their product is appended to it.

    Args:
        path: positions in the list of the operands of each step.
        count: number of operands.

    Raises:
        ContractionPathError: a step has a position outside the list, or more than one array is
            left.

    Example:
        >>> check_path(((0, 1), (0, 1)), 3)
    """
    left = count
    for step in path:
        if not step or not all(0 <= p < left for p in step):
            raise ContractionPathError(
                f"step {step} of the path does not fit: there are {left} arrays at this step"
            )
        left += 1 - len(set(step))
    if left != 1 or not path:
        raise ContractionPathError(
            f"the path {list(path)} leaves {left} arrays of {count}: it must leave 1"
        )

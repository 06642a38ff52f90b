"""Contraction paths as users give them."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any, SupportsIndex

import numpy as np

from ...errors import ArgumentError, PathError, PathNameError

Path = tuple[tuple[int, ...], ...]


def _path(optimize: Any, count: int) -> Path | None:
    """The order asked for: None for the cheapest.

    Raises:
        ArgumentError: it is of a kind that NumPy does not know (a TypeError).
        PathNameError: a name that NumPy does not know (a KeyError).
        PathError: a path that does not fit.
    """
    if optimize is None or isinstance(optimize, bool | np.bool_):
        if optimize or count < 3:
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
        if optimize in ("greedy", "optimal") or count < 3:  # NumPy asks for no order of two
            return None
        raise PathNameError(
            f"optimize={optimize!r} names no order of contraction: the names are 'greedy' and "
            "'optimal'; True takes the order with the fewest flops"
        )
    raise ArgumentError(
        f"optimize={optimize!r} is none of True, False, 'greedy', 'optimal' or a path such as "
        f"['einsum_path', (0, 1), (0, 1)]"
    )


def check_path(path: Path, count: int) -> None:
    """Check positions that each step takes, NumPy's way: they leave the list, the product ends it.

    Args:
        path: positions by step.
        count: number of operands.

    Raises:
        PathError: a step names what is not there, or more than one array is left.

    Example:
        >>> check_path(((0, 1), (0, 1)), 3)
    """
    left = count
    for step in path:
        if not step or not all(0 <= p < left for p in step):
            raise PathError(f"step {step} of the path does not fit: there are {left} arrays then")
        left += 1 - len(set(step))
    if left != 1 or not path:
        raise PathError(f"the path {list(path)} leaves {left} arrays of {count}: it must end at 1")

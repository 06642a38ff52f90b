"""How many threads programs on the CPU use."""

from __future__ import annotations

from operator import index
from typing import SupportsIndex

from ...errors import ArgumentError

MOST = 4096  # OpenMP ends the process where the system cannot start as many threads


class _Wish:
    """What this process asked for."""

    count: int | None = None


def set_threads(count: SupportsIndex | None) -> None:
    """Threads of all CPU programs and of ``tcgen.einsum`` from now on.

    While a program runs, the BLAS that it calls uses one thread for each of these, so that no
    processor has to do the work of two.

    Args:
        count: 1 to 4096; None for what OpenMP offers (OMP_NUM_THREADS, else all processors).

    Raises:
        ArgumentError: it is neither.

    Example:
        >>> set_threads(1)
        >>> set_threads(None)
    """
    whole = isinstance(count, SupportsIndex) and not isinstance(count, bool)
    if count is not None and (not whole or not 1 <= index(count) <= MOST):
        raise ArgumentError(f"set_threads({count!r}): give a whole number of 1 to {MOST}, or None")
    _Wish.count = None if count is None else index(count)


def wanted_threads() -> int | None:
    """What :func:`set_threads` asked for."""
    return _Wish.count


def used_threads(offered: int) -> int:
    """What :func:`set_threads` asked for, else what OpenMP offers.

    Raises:
        ArgumentError: OpenMP offers more threads than a system can be sure to start.
    """
    if _Wish.count is None and offered > MOST:
        raise ArgumentError(
            f"OMP_NUM_THREADS asks for {offered} threads: give at most {MOST}, one for each core"
        )
    return _Wish.count or offered

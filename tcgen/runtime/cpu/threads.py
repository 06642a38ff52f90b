"""The number of threads of programs on the CPU."""

from __future__ import annotations

from operator import index
from typing import SupportsIndex

from ...errors import ArgumentError

MAX_THREADS = 4096  # threads; OpenMP ends the process if the system cannot start all of them


class _Chosen:
    """The choice of this process."""

    count: int | None = None


def set_threads(count: SupportsIndex | None) -> None:
    """Set the number of threads of all CPU programs and of ``tcgen.einsum`` from now on.

    While a program runs, the BLAS that it calls uses no threads of its own, so that no processor
    has to do the work of two.

    Args:
        count: 1 to 4096; None for as many as OpenMP offers (OMP_NUM_THREADS, else all processors).

    Raises:
        ArgumentError: ``count`` is none of these.

    Example:
        >>> set_threads(1)
        >>> set_threads(None)
    """
    whole = isinstance(count, SupportsIndex) and not isinstance(count, bool)
    if count is not None and (not whole or not 1 <= index(count) <= MAX_THREADS):
        raise ArgumentError(
            f"set_threads({count!r}): give an integer of 1 to {MAX_THREADS}, or None"
        )
    _Chosen.count = None if count is None else index(count)


def get_threads() -> int | None:
    """The number of threads that :func:`set_threads` set; None for as many as OpenMP offers.

    Example:
        >>> set_threads(2)
        >>> get_threads()
        2
        >>> set_threads(None)
    """
    return _Chosen.count


def used_threads(offered: int) -> int:
    """The number that was set, else that of OpenMP; ArgumentError if that exceeds MAX_THREADS."""
    if _Chosen.count is None and offered > MAX_THREADS:
        raise ArgumentError(
            f"OMP_NUM_THREADS asks for {offered} threads: give at most {MAX_THREADS}, one for each "
            f"core"
        )
    return _Chosen.count or offered

"""How many threads programs on the CPU use."""

from __future__ import annotations

from ..errors import ArgumentError


class _Wish:
    """What this process asked for."""

    count: int | None = None


def set_threads(count: int | None) -> None:
    """Threads of all CPU programs and of ``tcgen.einsum`` from now on.

    While a program runs, the BLAS that it calls uses one thread for each of these, so that no
    processor has to do the work of two.

    Args:
        count: at least 1; None for what OpenMP offers (OMP_NUM_THREADS, else all processors).

    Raises:
        ArgumentError: it is neither.

    Example:
        >>> set_threads(1)
        >>> set_threads(None)
    """
    if count is not None and (not isinstance(count, int) or isinstance(count, bool) or count < 1):
        raise ArgumentError(f"set_threads({count!r}): give a whole number of at least 1, or None")
    _Wish.count = count


def wanted_threads() -> int | None:
    """What :func:`set_threads` asked for."""
    return _Wish.count

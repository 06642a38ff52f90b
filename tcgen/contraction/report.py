"""The report of einsum calls: which of them ran generated code, and which NumPy."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TypeAlias

from ..runtime.fork_safe_lock import Lock
from .programs import PROGRAMS

Route: TypeAlias = tuple[str, str, str, str]  # expression, element type, route, reason


@dataclass(frozen=True, slots=True)
class EinsumRow:
    """Calls of one expression that took the same route.

    Attributes:
        expression: subscripts, with an ellipsis written out.
        dtype: element type of the computation.
        route: "kernel" for generated code, "numpy" or "cupy" for a delegated call.
        reason: why the call was delegated; for a kernel the target.
        calls: number of calls.
        copied: bytes of operands and results that these calls to kernels copied: arrays of another
            element type, or of a layout that no kernel was made for. Copies by NumPy are not
            counted.
    """

    expression: str
    dtype: str
    route: str
    reason: str
    calls: int
    copied: int = 0


@dataclass(frozen=True, slots=True)
class EinsumReport:
    """The einsum calls of this process.

    Attributes:
        rows: calls by expression, element type and route.
        programs: number of programs that this process has compiled for these calls.
        kept: number of these programs in the cache.
    """

    rows: tuple[EinsumRow, ...]
    programs: int
    kept: int

    @property
    def kernel_calls(self) -> int:
        """Number of calls that ran generated code."""
        return sum(row.calls for row in self.rows if row.route == "kernel")

    @property
    def numpy_calls(self) -> int:
        """Number of calls that were delegated to NumPy."""
        return sum(row.calls for row in self.rows if row.route == "numpy")

    def __str__(self) -> str:
        lines = [
            f"{self.kernel_calls} calls ran generated code, {self.numpy_calls} were delegated to "
            f"NumPy; {self.programs} programs compiled"
        ]
        for row in self.rows:
            route = f"{row.route} ({row.reason})"
            if row.copied:
                route += f", {row.copied:,} bytes copied"
            lines.append(f"{row.calls:8d}  {row.expression:32s} {row.dtype:12s} {route}")
        return "\n".join(lines)


_lock = Lock()
_calls: Counter[Route] = Counter()
_copied: Counter[Route] = Counter()  # bytes


def count_call(route: Route, copied: int = 0) -> None:
    """Count one call for the report, and the bytes that it copied."""
    with _lock:
        _calls[route] += 1
        if copied:
            _copied[route] += copied


def einsum_report(*, reset: bool = False) -> EinsumReport:
    """Which calls of einsum, contract and tensordot ran generated code, and which NumPy.

    Args:
        reset: forget the calls counted so far; programs stay compiled.

    Example:
        >>> import numpy as np, tcgen
        >>> _ = einsum_report(reset=True)
        >>> tcgen.einsum("i,i", np.arange(3), np.arange(3))
        np.int64(5)
        >>> print(einsum_report())
        0 calls ran generated code, 1 were delegated to NumPy; ... programs compiled
               1  i,i->                            int64        numpy (no kernels for int64)
    """
    with _lock:
        counted = sorted(_calls.items(), key=lambda item: item[0][2])  # kernels before NumPy
        rows = tuple(EinsumRow(*route, calls, _copied[route]) for route, calls in counted)
        if reset:
            _calls.clear()
            _copied.clear()
    return EinsumReport(rows, PROGRAMS.compiled, PROGRAMS.count())

"""Errors that a user can cause: each names the fault, its place and a remedy.

Every class derives from :class:`TcgenError`, so one ``except`` catches all of them, and from the
builtin that numpy users expect (``ValueError``, ``TypeError``). ``exit_code`` is what the command
line returns: 1 a check failed, 2 bad input, 3 cannot be done on this machine.
"""

from __future__ import annotations

from dataclasses import dataclass

from numpy.exceptions import AxisError as NumpyAxisError

_WIDEST = 120  # characters of a source line that a message shows
_MOST_SHOWN = 100  # diagnostics that the text of an error shows


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A stretch of one source line: 1-based ``line`` and ``column``, ``length`` characters."""

    file: str
    line: int
    column: int
    length: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One message about the user's text, printed as ``file:line:col: error: ...`` with a caret."""

    span: Span
    message: str
    source_line: str = ""
    advice: str = ""

    def __str__(self) -> str:
        lines = [f"{self.span}: error: {self.message}"]
        if self.source_line:
            text, before, length = self._excerpt()
            lines.append("    " + text)
            lines.append("    " + " " * before + "^" * length)
        if self.advice:
            lines.append(f"    {self.advice}")
        return "\n".join(lines)

    def _excerpt(self) -> tuple[str, int, int]:
        """The line, cut around the place if it is long; characters before and under ^."""
        text, before, length = self.source_line.rstrip(), self.span.column - 1, self.span.length
        length = max(1, min(length, _WIDEST))
        first = max(0, before - _WIDEST // 2) if len(text) > _WIDEST else 0
        shown = text[first : first + _WIDEST]
        shown = "".join(c if c.isprintable() else " " for c in shown)  # tabs and worse
        if first + _WIDEST < len(text):
            shown += " ..."
        if first:
            shown, before = "... " + shown, before + 4
        return shown, before - first, min(length, max(1, len(shown) - (before - first)))


class TcgenError(Exception):
    """The base class of all errors that tcgen raises on purpose."""

    exit_code = 2

    def __reduce__(self) -> str | tuple[object, ...]:
        """As usual; a class without this method loses its attributes in tblib, which dask loads."""
        return super().__reduce__()


class SpecError(TcgenError, ValueError):
    """The equations as written cannot be understood.

    Attributes:
        diagnostics: all of the input; the text of the error shows the first hundred.
    """

    def __init__(self, diagnostics: tuple[Diagnostic, ...]) -> None:
        super().__init__(diagnostics)  # pickle makes the error from its arguments
        self.diagnostics = diagnostics

    def __str__(self) -> str:
        lines = [str(d) for d in self.diagnostics[:_MOST_SHOWN]]
        if len(self.diagnostics) > _MOST_SHOWN:
            lines.append(f"and {len(self.diagnostics) - _MOST_SHOWN:,} more errors")
        return "\n".join(lines)


class ExtentError(TcgenError, ValueError):
    """An extent is missing, zero, negative or contradicts another one."""


class ShapeError(TcgenError, ValueError):
    """An array's shape does not fit its tensor."""


class AxisError(ShapeError, NumpyAxisError):
    """An array does not have the axis; this is also an IndexError, as in NumPy.

    Attributes:
        axis: axis of the call.
        ndim: number of axes of the array.
    """

    def __init__(self, message: str, axis: int | None = None, ndim: int | None = None) -> None:
        NumpyAxisError.__init__(self, message)
        self.args = (message, axis, ndim)  # pickle makes the error from its arguments
        self.axis, self.ndim = axis, ndim

    def __str__(self) -> str:
        return str(self.args[0])  # NumPy would show its own text where it knows the axis


class DtypeError(TcgenError, TypeError):
    """An array's element type does not fit the program."""


class ArgumentError(TcgenError, TypeError):
    """A keyword argument is missing or unknown, or is of a kind that cannot be used."""


class ReadOnlyError(ArgumentError, ValueError):
    """An array for results cannot be written to; this is also a ValueError, as in NumPy."""


class EinsumError(TcgenError, ValueError):
    """Subscripts or options of an einsum call cannot be understood, or do not fit."""


class ContractionPathError(EinsumError, RuntimeError, IndexError):
    """A contraction path does not fit the operands."""


class PathNameError(EinsumError, KeyError):
    """``optimize`` names no known order of contraction; this is also a KeyError, as in NumPy."""

    def __str__(self) -> str:
        return str(self.args[0])  # KeyError would show it in quotes


class CheckError(TcgenError):
    """A result or a promised symmetry does not hold."""

    exit_code = 1


class ConvergenceError(TcgenError, ArithmeticError):
    """A mean field is not converged, or amplitudes diverge."""

    exit_code = 1


class VerifyError(TcgenError):
    """A level of the compiler is inconsistent: a fault in tcgen or in a hand-written plan."""

    exit_code = 1


class PlanError(TcgenError):
    """No plan can be made, for instance because the memory limit is too small."""

    exit_code = 3


class MemoryLimitError(PlanError, MemoryError):
    """The program needs more bytes than the limit allows, or than the machine has."""


class BuildError(TcgenError):
    """The C compiler is missing or failed; the message holds its full log."""

    exit_code = 3


class ArtifactError(TcgenError, ValueError):
    """A saved program is missing, corrupted, or of another version."""


class UnavailableError(TcgenError):
    """This machine lacks something: a GPU, a driver, a package, a writable folder."""

    exit_code = 3


class CacheWarning(UnavailableError, RuntimeWarning):  # noqa: N818  (it is seldom an error)
    """The cache folder cannot be used, and a temporary one takes its place.

    Where this warning is turned into an error, as the command line does, it is an UnavailableError.
    """


def pip_install(extra: str) -> str:
    """The advice to install an optional dependency, from a clone since PyPI does not have tcgen."""
    return f"pip install '.[{extra}]' in a clone of tcgen"

"""The base class of the four levels: every level can be verified and printed.

Checkers and printers read the levels, so the levels cannot import them. They register themselves
here instead, and the package ``tcgen.ir`` imports both: whoever has a level can check and print it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

T = TypeVar("T")


class Level:
    """A level: :class:`~tcgen.ir.system.System`, ``FormulaSequence``, ``FusionPlan`` or ``Module``.

    A level keeps what was derived from it, such as an index of its parts: this is made when it is
    first asked for. It follows from the fields and is none of them: it is neither compared nor
    written to files.

    Attributes:
        checker: checks a level (:func:`tcgen.ir.verify.verify`).
        printer: prints a level (:func:`tcgen.ir.pretty.pretty`).
    """

    __slots__ = ("_derived",)

    checker: ClassVar[Callable[[Any], None]]
    printer: ClassVar[Callable[[Any], str]]

    def derived(self, name: str, make: Callable[[], T]) -> T:
        """What ``make`` derives from this level, made once and kept under a name."""
        try:
            kept: dict[str, Any] = object.__getattribute__(self, "_derived")
        except AttributeError:
            kept = {}
            object.__setattr__(self, "_derived", kept)  # levels are frozen
        if name not in kept:
            kept[name] = make()
        found: T = kept[name]
        return found

    def verify(self) -> None:
        """Check the rules of this level.

        Raises:
            VerifyError: naming the place, such as the equation, step, visit or statement, and the
                rule that it breaks.
        """
        type(self).checker(self)

    def pretty(self) -> str:
        """This level as text: equations, steps, a loop nest, or pseudo-code."""
        return type(self).printer(self)

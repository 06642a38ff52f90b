"""The base class of the four levels: every level can be verified and printed.

Checkers and printers read the levels, so the levels cannot import them. They register themselves
here, and the package ``tcgen.ir`` imports both, so that every level can be checked and printed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

T = TypeVar("T")


class Level:
    """A level: :class:`~tcgen.ir.system.System`, ``FormulaSequence``, ``FusionPlan`` or ``Module``.

    A level caches values that follow from its fields, such as an index of its parts. They are
    computed on first use, and neither compared nor written to files.

    Attributes:
        checker: checks a level (:func:`tcgen.ir.verify.verify`).
        printer: prints a level (:func:`tcgen.ir.pretty.pretty`).
    """

    __slots__ = ("_derived",)

    checker: ClassVar[Callable[[Any], None]]
    printer: ClassVar[Callable[[Any], str]]

    def derived(self, name: str, make: Callable[[], T]) -> T:
        """The value that ``make`` derives from this level, computed once and cached by name."""
        try:
            cache: dict[str, Any] = object.__getattribute__(self, "_derived")
        except AttributeError:
            cache = {}
            object.__setattr__(self, "_derived", cache)
        if name not in cache:
            cache[name] = make()
        found: T = cache[name]
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

"""Subscripts of an einsum call: NumPy's text ``"ij,jk->ik"`` and its interleaved integer lists.

Labels are letters of any alphabet. Text is read once; how many axes an ellipsis stands for is
known when the ranks of the operands are.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any

from ...errors import ArgumentError, EinsumError

# NumPy numbers labels in this order, and sorts the labels of an implicit output by it.
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True)
class Axes:
    """Labels of one operand; with ``dots``, an ellipsis stands between ``left`` and ``right``."""

    left: str
    dots: bool = False
    right: str = ""


@dataclass(frozen=True, slots=True)
class Expression:
    """A product and sum over labels, which are numbered as they first occur on the operands.

    Attributes:
        inputs: labels of each operand.
        output: labels of the result.
        names: of the labels, for messages; axes under an ellipsis are ``...[-1]``, ``...[-2]``.

    Example:
        >>> express("ij,jk->ik", (2, 2))
        Expression(inputs=((0, 1), (1, 2)), output=(0, 2), names=('i', 'j', 'k'))
    """

    inputs: tuple[tuple[int, ...], ...]
    output: tuple[int, ...]
    names: tuple[str, ...]


@lru_cache(maxsize=4096)
def express(text: str, ranks: tuple[int, ...]) -> Expression:
    """The expression of subscripts for operands of these ranks.

    Args:
        text: NumPy's subscripts, explicit or implicit, with or without an ellipsis.
        ranks: number of axes of each operand.

    Raises:
        EinsumError: the text is wrong, or does not fit the operands.

    Example:
        >>> express("...i", (3,)).output
        (0, 1, 2)
    """
    before, arrow, after = text.partition("->")
    terms = [_axes(text, part, f"operand {n}") for n, part in enumerate(before.split(","))]
    if len(terms) != len(ranks):
        raise _error(text, f"subscripts for {len(terms)} operands, but {len(ranks)} were given")
    numbers: dict[str, int] = {}
    inputs = []
    for n, (term, rank) in enumerate(zip(terms, ranks, strict=True)):
        labels = _spread(text, term, rank, n)
        inputs.append(tuple(numbers.setdefault(label, len(numbers)) for label in labels))
    under = sorted(int(name[4:-1]) for name in numbers if len(name) > 1)
    dots = [f"...[{n}]" for n in under]
    if arrow:
        output = _explicit_output(text, after, numbers, dots)
    else:
        uses = list(chain.from_iterable(inputs))
        once = [name for name, n in numbers.items() if len(name) == 1 and uses.count(n) == 1]
        output = [*dots, *sorted(once)]
    return Expression(tuple(inputs), tuple(numbers[name] for name in output), tuple(numbers))


def interleaved(operands: Sequence[Any]) -> tuple[str, tuple[Any, ...]]:
    """Text and operands of a call ``einsum(a, [0, 1], b, [1, 2], [0, 2])``.

    Raises:
        ArgumentError: a list of labels is something else.
        EinsumError: a label is not in NumPy's range, or an ellipsis repeats.

    Example:
        >>> interleaved(("a", [0, 1], "b", [1, 2], [0, 2]))
        ('AB,BC->AC', ('a', 'b'))
    """
    if len(operands) < 2:
        raise EinsumError(
            'einsum needs subscripts and at least one operand: einsum("ij,jk->ik", a, b), '
            "or operands and lists of labels: einsum(a, [0, 1], b, [1, 2], [0, 2])"
        )
    pairs = len(operands) // 2
    text = ",".join(_from_list(operands[2 * n + 1], f"operand {n}") for n in range(pairs))
    if len(operands) % 2:
        text += "->" + _from_list(operands[-1], "the output")
    return text, tuple(operands[0 : 2 * pairs : 2])


def _axes(text: str, part: str, where: str) -> Axes:
    """Labels of one operand or of the output."""
    left, *rest = part.split("...")
    right = "".join(rest)
    if "." in left + right or len(rest) > 1:
        raise _error(text, f"{where} has a '.' that is not part of one ellipsis ('...')")
    for letter in left + right:
        if letter in "->":
            raise _error(text, "the output follows one '->', written without a space inside")
        if not (letter.isalpha() or letter == " "):
            raise _error(text, f"{letter!r} in {where} is no label: labels are letters")
    return Axes(left.replace(" ", ""), bool(rest), right.replace(" ", ""))


def _spread(text: str, term: Axes, rank: int, number: int) -> list[str]:
    """A label for each axis of an operand; ellipsis axes count from the right, to broadcast."""
    extra = rank - len(term.left) - len(term.right)
    if extra < 0:
        raise _error(
            text,
            f"operand {number} has {rank} axes, but too many labels: "
            f"{term.left + term.right!r} are {len(term.left + term.right)}",
        )
    if extra and not term.dots:
        raise _error(
            text,
            f"operand {number} has {rank} axes, but only the labels {term.left!r}: name each "
            f"axis, or write '...' for those that broadcast",
        )
    return [*term.left, *(f"...[{n}]" for n in range(-extra, 0)), *term.right]


def _explicit_output(text: str, part: str, numbers: dict[str, int], dots: list[str]) -> list[str]:
    if "," in part:
        raise _error(text, "the output has a comma: there is one output")
    term = _axes(text, part, "the output")
    if dots and not term.dots:
        raise _error(
            text,
            f"an ellipsis stands for {len(dots)} axes, which the output leaves out: write '...'",
        )
    labels = term.left + term.right
    for label in labels:
        if label not in numbers:
            known = ", ".join(name for name in numbers if len(name) == 1) or "none"
            raise _error(text, f"output label {label!r} is on no operand (labels: {known})")
        if labels.count(label) > 1:
            raise _error(text, f"output label {label!r} stands there more than once")
    return [*term.left, *dots, *term.right]


def _from_list(labels: Any, where: str) -> str:
    """Subscripts of one operand from its list of integers."""
    if isinstance(labels, str | bytes) or not isinstance(labels, Iterable):
        raise ArgumentError(
            f"the labels of {where} must be a list of integers, found {type(labels).__name__}"
        )
    parts = []
    for label in labels:
        if label is Ellipsis:
            if "..." in parts:
                raise EinsumError(f"the labels of {where} have more than one Ellipsis")
            parts.append("...")
            continue
        try:
            number = operator.index(label)
        except TypeError:
            number = None
        if number is None or isinstance(label, bool):
            raise ArgumentError(
                f"the labels of {where} must be integers or Ellipsis, found {label!r}"
            )
        if not 0 <= number < len(LETTERS):
            raise EinsumError(
                f"label {number} of {where} is not in 0 to {len(LETTERS) - 1}, NumPy's range: "
                f"renumber, or use subscripts, where any letter of any alphabet is a label"
            )
        parts.append(LETTERS[number])
    return "".join(parts)


def _error(text: str, message: str) -> EinsumError:
    return EinsumError(f'einsum("{text}"): {message}')

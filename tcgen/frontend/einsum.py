"""Einsum calls: subscripts and contraction paths in NumPy's forms, and the System they mean.

Subscripts are a text such as ``"ij,jk->ik"`` or interleaved lists of integers. Labels are letters
of any alphabet, and symbols of opt_einsum. The number of axes of an ellipsis follows from the ranks
of the operands. Each label becomes a space of its own, so that its extent is a run-time argument.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import chain
from operator import index
from typing import Any, SupportsIndex

import numpy as np

from ..errors import ArgumentError, ContractionPathError, EinsumError, PathNameError, ShapeError
from ..ir.system import Equation, System, Term
from ..ir.tensor import Index, Ref, Role, Space, Storage, Tensor
from ..options import space_name

# NumPy numbers labels in this order, and sorts the labels of an implicit output by it.
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
ContractionPath = tuple[tuple[int, ...], ...]
Update = tuple[int, int, bool]  # numerator and denominator of a factor; True to add
Shapes = tuple[tuple[int, ...], ...]
# First of the characters that opt_einsum takes for labels after the letters of ASCII. Some, such as
# U+00D7, belong to no alphabet.
_SYMBOL = "\u00c0"
_NAMES = "ijklmnabcdefghopqrstuvwxyz"


@dataclass(frozen=True, slots=True)
class Axes:
    """Labels of one operand; with ``dots``, an ellipsis is between ``left`` and ``right``."""

    left: str
    dots: bool = False
    right: str = ""


@dataclass(frozen=True, slots=True)
class Expression:
    """A product and sum over labels, which are numbered as they first occur on the operands.

    ``names`` of the labels are for messages; axes of an ellipsis are ``...[-1]``, ``...[-2]``.

    Example:
        >>> express("ij,jk->ik", (2, 2))
        Expression(inputs=((0, 1), (1, 2)), output=(0, 2), names=('i', 'j', 'k'))
    """

    inputs: tuple[tuple[int, ...], ...]
    output: tuple[int, ...]
    names: tuple[str, ...]


@lru_cache(maxsize=4096)
def express(text: str, ranks: tuple[int, ...]) -> Expression:
    """The expression of NumPy's subscripts, of any form, for operands with these numbers of axes.

    An EinsumError refuses text that is wrong, or does not fit the operands.

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

    An ArgumentError refuses labels that are not lists of integers; an EinsumError those beyond
    NumPy's range, and a repeated ellipsis.

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
            raise _error(text, "write the output after one '->', without a space inside it")
        if not (letter.isalpha() or letter == " " or letter >= _SYMBOL):
            raise _error(text, f"{letter!r} in {where} is not a label: labels are letters")
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
            f"the output leaves out the {len(dots)} axes of an ellipsis: write '...' in it",
        )
    labels = term.left + term.right
    for label in labels:
        if label not in numbers:
            known = ", ".join(name for name in numbers if len(name) == 1) or "none"
            raise _error(text, f"output label {label!r} is not on any operand (labels: {known})")
        if labels.count(label) > 1:
            raise _error(text, f"output label {label!r} occurs more than once")
    return [*term.left, *dots, *term.right]


def _from_list(labels: Any, where: str) -> str:
    """Subscripts of one operand from its list of integers."""
    if isinstance(labels, str | bytes) or not isinstance(labels, Iterable):
        raise ArgumentError(
            f"the labels of {where} must be a list of integers, not {type(labels).__name__}"
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
                f"the labels of {where} must be integers or Ellipsis, not {label!r}"
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


def contraction_path(optimize: Any, count: int) -> ContractionPath | None:
    """The path that NumPy's argument ``optimize`` requests; None for the cheapest one.

    Raises:
        ArgumentError: a type that NumPy does not accept (a TypeError).
        PathNameError: a name that NumPy does not know (a KeyError).
        ContractionPathError: the path does not fit the ``count`` operands.
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
    """Check the name of an order of contraction, which NumPy ignores for two operands.

    The planner takes the cheapest for any of them; a PathNameError refuses an unknown one.
    """
    if name not in ("greedy", "optimal") and count > 2:
        raise PathNameError(
            f"optimize={name!r} is not an order of contraction: use 'greedy' or 'optimal', or True "
            "for the order with the fewest flops"
        )


def check_path(path: ContractionPath, count: int) -> None:
    """Check a path in NumPy's form: positions in a list of operands, to which products are added.

    A ContractionPathError refuses positions outside the list, and paths that leave several arrays.
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


def extents_of(expression: Expression, shapes: Shapes) -> tuple[int, ...]:
    """Extent of each label; an axis of extent 1 broadcasts against other operands, as in NumPy.

    A ShapeError names the label and the two axes that disagree.

    Example:
        >>> extents_of(express("ij,jk", (2, 2)), ((2, 3), (1, 4)))
        (2, 3, 4)
    """
    known: dict[int, tuple[int, int, int]] = {}
    for number, (labels, shape) in enumerate(zip(expression.inputs, shapes, strict=True)):
        here: dict[int, tuple[int, int]] = {}
        for axis, (label, extent) in enumerate(zip(labels, shape, strict=True)):
            seen, first = here.setdefault(label, (extent, axis))
            if seen != extent:
                raise ShapeError(
                    f"label {expression.names[label]!r} repeats on operand {number} of shape "
                    f"{shape}, whose axes {first} and {axis} have extents {seen} and {extent}"
                )
            old = known.get(label)
            if old is None or old[0] == 1:
                known[label] = (extent, number, axis)
            elif extent not in (old[0], 1):
                raise ShapeError(
                    f"label {expression.names[label]!r} has extent {extent} on axis {axis} of "
                    f"operand {number} (shape {shape}), but extent {old[0]} on axis {old[2]} of "
                    f"operand {old[1]} (shape {shapes[old[1]]})"
                )
    return tuple(known[label][0] for label in range(len(expression.names)))


@dataclass(frozen=True, slots=True)
class LabelPattern:
    """The labels on which a kernel depends, as they first occur, without axes that broadcast.

    ``gaps`` are the axes of each operand, and of the result, that are slices of longer axes of its
    array; () if there are none. ``update`` is a factor of the product, and whether the product is
    added to the result's array.
    """

    inputs: tuple[tuple[int, ...], ...]
    output: tuple[int, ...]
    gaps: tuple[tuple[int, ...], ...] = ()
    update: Update | None = None

    def __str__(self) -> str:
        text = ",".join("".join(label_names(labels)) for labels in self.inputs)
        return f"{text}->{''.join(label_names(self.output))}"


def label_names(labels: Sequence[int]) -> tuple[str, ...]:
    """Index names of numbered labels: ``i``, ``j``, ...; after 26 letters ``x26``, ``x27``, ..."""
    return tuple(_NAMES[n] if n < len(_NAMES) else f"x{n}" for n in labels)


def einsum_system(kernel: LabelPattern, path: ContractionPath | None = None) -> System:
    """The equation ``y[..] = x0[..]*x1[..]``; with a path, an intermediate for each of its steps.

    The first spaces are those of the labels. A path has to be one that :func:`check_path` accepts.

    Example:
        >>> print(einsum_system(LabelPattern(((0, 1), (1, 2)), (0, 2))).pretty(), end="")
        y[i,k] = sum(j) x0[i,j]*x1[j,k]
    """
    count = 1 + max((n for labels in kernel.inputs for n in labels), default=-1)
    return _system(kernel, label_names(range(count)), path)


def subscripts_system(text: str) -> System:
    """The system of subscripts: each letter is a space, the inputs are x0, x1, ..., the output y.

    An EinsumError refuses wrong text, and an ellipsis, whose number of axes is unknown here.

    Example:
        >>> print(subscripts_system("pq,qr").pretty(), end="")
        y[p,r] = sum(q) x0[p,q]*x1[q,r]
    """
    if "." in text:
        raise EinsumError(
            f'"{text}": without arrays the number of axes of an ellipsis is unknown: write '
            f"a letter for each axis, or call tcgen.einsum with the arrays"
        )
    parts = text.partition("->")[0].replace(" ", "").split(",")
    expression = express(text, tuple(len(part) for part in parts))
    names = tuple(map(space_name, expression.names))
    return _system(LabelPattern(expression.inputs, expression.output), names, None)


def is_subscripts(text: str) -> bool:
    """True for text that can only be subscripts: one line with ``->`` or a comma, no file name."""
    plain = text.replace("...", "")
    return ("->" in text or "," in text) and not any(c in plain for c in "./\\\n=[")


def _system(kernel: LabelPattern, names: tuple[str, ...], path: ContractionPath | None) -> System:
    spaces = tuple(Space(n) for n in names)
    indices = tuple(Index(n, s) for n, s in zip(names, spaces, strict=True))
    more: list[Space] = []

    def tensor(name: str, labels: tuple[int, ...], role: Role, gaps: tuple[int, ...]) -> Tensor:
        own = tuple(spaces[n] for n in labels)
        within = list(own)
        for axis in gaps:
            gap = Space(f"{name}_gap{axis}")
            within[axis] = Space(f"{name}_axis{axis}", parts=(own[axis], gap))
            more.extend((gap, within[axis]))
        return Tensor(name, own, role, storage=Storage(within=tuple(within) if gaps else ()))

    *factor, accumulate = kernel.update or (1, 1, False)
    gaps = kernel.gaps or ((),) * (len(kernel.inputs) + 1)
    tensors = [
        tensor(f"x{n}", labels, Role.INPUT, gaps[n]) for n, labels in enumerate(kernel.inputs)
    ]
    pending = list(zip(tensors, kernel.inputs, strict=True))
    equations = []
    steps = (tuple(range(len(kernel.inputs))),) if path is None else path
    for number, step in enumerate(steps):
        taken = [pending[p] for p in sorted(set(step))]
        pending = [w for p, w in enumerate(pending) if p not in step]
        left = list(dict.fromkeys(n for _, labels in taken for n in labels))
        last = number == len(steps) - 1
        needed = {*kernel.output, *(n for _, labels in pending for n in labels)}
        free = kernel.output if last else tuple(n for n in left if n in needed)
        if last:
            made = tensor("y", free, Role.OUTPUT, gaps[-1])
            made = replace(made, accumulate=accumulate)
        else:
            made = tensor(f"t{number}", free, Role.TEMP, ())
        factors = tuple(Ref(t, tuple(indices[n] for n in labels)) for t, labels in taken)
        sums = tuple(indices[n] for n in left if n not in free)
        term = Term(Fraction(*factor) if last else Fraction(1), factors, sums)
        equations.append(Equation(Ref(made, tuple(indices[n] for n in free)), (term,)))
        tensors.append(made)
        pending.append((made, free))
    return System("einsum", (*spaces, *more), tuple(tensors), tuple(equations))

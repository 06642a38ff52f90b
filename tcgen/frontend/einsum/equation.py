"""Makes a System of an einsum expression.

Each label becomes a space of its own, so its extent is a run-time argument.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from ...errors import EinsumError, ShapeError
from ...ir.system import Equation, System, Term
from ...ir.tensor import Index, Ref, Role, Space, Storage, Tensor
from .path import ContractionPath
from .subscripts import Expression, express

Update = tuple[int, int, bool]  # numerator and denominator of a factor; True to add
Shapes = tuple[tuple[int, ...], ...]
_NAMES = "ijklmnabcdefghopqrstuvwxyz"


def extents_of(expression: Expression, shapes: Shapes) -> tuple[int, ...]:
    """Extent of each label; an axis of extent 1 broadcasts against other operands, as in NumPy.

    Raises:
        ShapeError: naming the label and the two axes that disagree.

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
    """The labels on which a kernel depends, without axes that broadcast.

    Attributes:
        inputs: labels of each operand, numbered as they first occur.
        output: labels of the result.
        gaps: for each operand, and for the result, the axes that are slices of longer axes of its
            array; () if there are none.
        update: a factor of the product, and whether the product is added to the result's array.
    """

    inputs: tuple[tuple[int, ...], ...]
    output: tuple[int, ...]
    gaps: tuple[tuple[int, ...], ...] = ()
    update: Update | None = None

    def __str__(self) -> str:
        text = ",".join("".join(label_names(labels)) for labels in self.inputs)
        return f"{text}->{''.join(label_names(self.output))}"


def label_names(labels: Sequence[int]) -> tuple[str, ...]:
    """Index names of numbered labels.

    Example:
        >>> label_names((0, 1, 27))
        ('i', 'j', 'x27')
    """
    return tuple(_NAMES[n] if n < len(_NAMES) else f"x{n}" for n in labels)


def einsum_system(kernel: LabelPattern, path: ContractionPath | None = None) -> System:
    """The equation ``y[..] = x0[..]*x1[..]``; with a path, an intermediate for each of its steps.

    The first spaces are those of the labels.

    Args:
        kernel: labels of operands and result.
        path: a path that :func:`check_path` accepts.

    Example:
        >>> print(einsum_system(LabelPattern(((0, 1), (1, 2)), (0, 2))).pretty(), end="")
        y[i,k] = sum(j) x0[i,j]*x1[j,k]
    """
    count = 1 + max((n for labels in kernel.inputs for n in labels), default=-1)
    return _system(kernel, label_names(range(count)), path)


def subscripts_system(text: str) -> System:
    """The system of subscripts: each letter is a space, the inputs are x0, x1, ..., the output y.

    Raises:
        EinsumError: the text is wrong, or has an ellipsis, whose number of axes is unknown here.

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
    names = tuple(n if n.isascii() else f"u{ord(n):x}" for n in expression.names)
    return _system(LabelPattern(expression.inputs, expression.output), names, None)


def is_subscripts(text: str) -> bool:
    """True for text that can only be subscripts: one line with ``->`` or a comma, no file name.

    Example:
        >>> [is_subscripts(t) for t in ("ij,jk->ik", "ccsd.spec", "ij")]
        [True, False, False]
    """
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
    waiting = list(zip(tensors, kernel.inputs, strict=True))
    equations = []
    steps = (tuple(range(len(kernel.inputs))),) if path is None else path
    for number, step in enumerate(steps):
        taken = [waiting[p] for p in sorted(set(step))]
        waiting = [w for p, w in enumerate(waiting) if p not in step]
        left = list(dict.fromkeys(n for _, labels in taken for n in labels))
        last = number == len(steps) - 1
        needed = {*kernel.output, *(n for _, labels in waiting for n in labels)}
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
        waiting.append((made, free))
    return System("einsum", (*spaces, *more), tuple(tensors), tuple(equations))

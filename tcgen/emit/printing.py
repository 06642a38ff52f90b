"""Text that is equal in all targets: numbers, lengths, precedences, indentation, kernel comments.

Reads level 4. It decides nothing. The comment of a kernel has its equations, inputs, outputs,
executed flops and bytes in all launches of a call, as in reports (:mod:`tcgen.ir.executed`): as
polynomials in the extents, so the source is the same for all extents.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import assert_never

from ..errors import VerifyError
from ..ir.executed import StatementWork, as_polynomial
from ..ir.expr import (
    COMPLEX_BELOW_ZERO,
    Access,
    Call,
    Calls,
    Const,
    Delta,
    Equal,
    Expr,
    Infinity,
    Pow,
    Prod,
    Quot,
    Sum,
)
from ..ir.loops import Buffer, Kernel
from ..ir.tensor import Ref, Space
from .scope import Scope

SUM, PROD, ATOM = 1, 2, 3  # precedences of expressions, the loosest first
INDENT = "    "


def indented(lines: Sequence[str]) -> list[str]:
    """Lines one level deeper, pragmas included."""
    return [f"{INDENT}{line}" if line else line for line in lines]


def nest(head: str, lines: Sequence[str]) -> list[str]:
    """Lines in the braces of a loop or a condition in C and CUDA."""
    return [f"{head} {{", *indented(lines), "}"]


def symbol(kernel: Kernel) -> str:
    """Name of the function of a kernel."""
    return f"tcgen_{kernel.name}"


def literal(value: Fraction, dtype: str) -> str:
    """The nearest floating-point number, exactly as it will be read back.

    Example:
        >>> literal(Fraction(1, 3), "float64"), literal(Fraction(2), "float32")
        ('0.3333333333333333', '2.0f')
    """
    try:
        text = repr(float(value))
    except OverflowError as error:
        raise VerifyError(f"the coefficient {value} does not fit a {dtype}") from error
    return f"{text}f" if dtype == "float32" else text


def extent(space: Space) -> str:
    """Extent of a space: ``N_o``, or ``(N_o + N_v)`` of a joined one."""
    names = [f"N_{base.name}" for base in space.bases]
    return names[0] if len(names) == 1 else f"({' + '.join(names)})"


def axis_length(buffer: Buffer, axis: int) -> str:
    """Length of one logical axis."""
    length = buffer.axes[axis].length
    return extent(buffer.axes[axis].space) if length is None else str(length)


def stored_lengths(buffer: Buffer) -> list[str]:
    """Lengths of the physical axes, slowest first."""
    lengths = []
    for axis, pair in buffer.stored():
        n = axis_length(buffer, axis)
        if pair is None:
            lengths.append(n)
        else:
            lengths.append(f"({simplex(n, pair.count, pair.antisymmetric)})")
    return lengths


def simplex(value: str, count: int, strict: bool) -> str:
    """The number of stored values of ``count`` packed axes of an extent.

    Example:
        >>> simplex("N_o", 2, strict=False), simplex("i", 3, strict=True)
        ('N_o*(N_o + 1)/2', 'i*(i - 1)/2*(i - 2)/3')
    """
    sign = "-" if strict else "+"
    atom = value if value.isidentifier() or value.startswith("(") else f"({value})"
    return atom + "".join(f"*({value} {sign} {k})/{k + 1}" for k in range(1, count))


def elements(buffer: Buffer) -> str:
    """Number of elements of a buffer."""
    return product(stored_lengths(buffer))


def product(factors: list[str]) -> str:
    """``a*b*c`` without factors of 1."""
    return "*".join(f for f in factors if f != "1") or "1"


def is_complex(expr: Expr, scope: Scope) -> bool:
    """True if the value of an expression is a complex number."""
    match expr:
        case Access(buffer):
            return scope.buffers[buffer].dtype == "complex128"
        case Calls("where", args):
            return any(is_complex(a, scope) for a in args[1:])
        case Const() | Infinity() | Equal() | Calls():
            return False
        case Sum(args) | Prod(args):
            return any(is_complex(a, scope) for a in args)
        case Quot(num, den):
            return is_complex(num, scope) or is_complex(den, scope)
        case Pow(base, _):
            return is_complex(base, scope)
        case Call(function, arg):
            if function in COMPLEX_BELOW_ZERO:
                return scope.dtype == "complex128"
            return function not in ("abs", "real", "imag") and is_complex(arg, scope)
        case Ref() | Delta():
            raise VerifyError(f"{expr} is a leaf of an earlier level")
        case _:
            assert_never(expr)


def kernel_comment(
    scope: Scope, work: Sequence[StatementWork], first: str, other: str, end: str
) -> list[str]:
    """Lines of the comment, marked with ``first`` and ``other``, and ``end`` unless it is empty."""
    kernel = scope.kernel
    written, read = scope.written(), scope.read()
    lines = [f"kernel {kernel.name}", *(f"  {line}" for line in kernel.comment)]
    for title, names in (("inputs ", read), ("outputs", written)):
        shown = [_shape(scope.buffers[n]) for n in scope.outside() if n in names]
        lines.append(f"{title} {', '.join(shown) or '(none)'}")
    own = ("private", "register", "tile")
    local = [_shape(b) for b in scope.buffers.values() if b.place in own]
    if local:
        lines.append(f"private {', '.join(local)}")
    flops = as_polynomial(w.flops for w in work if w.flops is not None)
    loaded = as_polynomial(amount for w in work for amount in w.read)
    stored = as_polynomial(amount for w in work for amount in w.written)
    lines.append(f"flops   {flops}")
    lines.append(f"bytes   {loaded} read, {stored} written")
    safe = [line.replace("*/", "* /").replace("\n", " ") for line in lines]
    text = [f"{first}{safe[0]}", *(f"{other}{line}".rstrip() for line in safe[1:])]
    return [*text, end] if end else text


def _shape(buffer: Buffer) -> str:
    """``t2[o,o,v,v]``; a contracted axis has its length."""
    axes = [a.space.name if a.length is None else str(a.length) for a in buffer.axes]
    return f"{buffer.name}[{','.join(axes)}]" if axes else buffer.name

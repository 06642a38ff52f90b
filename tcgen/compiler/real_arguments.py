"""Functions and reductions of a complex program whose arguments must be real.

Complex numbers have no order: maxima, minima and comparisons are refused unless their arguments
are real. Reads level 1, so that an error names the line of the user's text.
"""

from __future__ import annotations

from ..errors import Diagnostic, Span, SpecError
from ..ir.expr import (
    COMPLEX_BELOW_ZERO,
    REAL_ALONE,
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
    format_expr,
    nodes,
)
from ..ir.system import Apply, System
from ..ir.tensor import Ref


def check_real_arguments(system: System) -> None:
    """Check the arguments of a complex program.

    Raises:
        SpecError: naming each maximum, minimum or function whose argument may be complex.
    """
    problems: list[Diagnostic] = []
    advice = "take abs(..) or real(..) of it, or declare the inputs real"
    for equation in system.equations:
        for term in equation.terms:
            span = term.span or equation.span or Span(equation.lhs.tensor.name, 1, 1)
            for factor in term.factors:
                if not isinstance(factor, Apply):
                    continue
                if term.reduction.orders and not _is_real(factor.expr):
                    message = f"{term.reduction.value} of {format_expr(factor.expr)}"
                    problems.append(Diagnostic(span, f"{message}, which may be complex", advice))
                for node in nodes(factor.expr):
                    wrong = next((a for a in _real_arguments(node) if not _is_real(a)), None)
                    if wrong is not None:
                        message = f"{format_expr(node)}: {format_expr(wrong)} may be complex"
                        problems.append(Diagnostic(span, message, advice))
    if problems:
        raise SpecError(tuple(dict.fromkeys(problems)))


def _real_arguments(node: Expr) -> tuple[Expr, ...]:
    """The arguments that must be real."""
    match node:
        case Call(function, arg) if function in REAL_ALONE:
            return (arg,)
        case Calls("where", args):
            return args[:1]
        case Calls(_, args):
            return args
        case _:
            return ()


def _is_real(expr: Expr) -> bool:
    """True where a value is real in a complex program whatever its inputs are."""
    match expr:
        case Calls("where", args):
            return all(map(_is_real, args[1:]))
        case Const() | Infinity() | Delta() | Equal() | Calls():
            return True
        case Ref(tensor):
            return tensor.real
        case Access():
            return False
        case Sum(args) | Prod(args):
            return all(map(_is_real, args))
        case Quot(num, den):
            return _is_real(num) and _is_real(den)
        case Pow(base):
            return _is_real(base)
        case Call(function, arg):
            if function in ("abs", "real", "imag") or function in REAL_ALONE:
                return True
            return function not in COMPLEX_BELOW_ZERO and _is_real(arg)

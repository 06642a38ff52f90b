"""Level 1 as text, in the notation of .spec files."""

from __future__ import annotations

from ..expr import Delta, format_expr
from ..system import Apply, Equation, System, Term
from ..tensor import Ref


def pretty_system(system: System) -> str:
    """The equations of a system, one term a line."""
    return "\n".join(pretty_equation(e) for e in system.equations) + "\n"


def pretty_term(term: Term, lhs: Ref) -> str:
    """A term in the .spec notation; several permutations print as a list of signed left sides."""
    parts = []
    for factor in term.factors:
        match factor:
            case Ref():
                parts.append(str(factor))
            case Delta():
                parts.append(format_expr(factor))
            case Apply(expr):
                parts.append(f"({format_expr(expr)})")
    product = "*".join(parts)
    if not product:
        text = str(term.coeff)
    elif abs(term.coeff) == 1:
        text = f"-{product}" if term.coeff < 0 else product
    else:
        text = f"{term.coeff}*{product}"
    if term.perms:
        images = " ".join(
            ("+" if p.sign > 0 else "-") + "".join(lhs.indices[k].name for k in p.images)
            for p in term.perms
        )
        text = f"perm({images}) {text}"
    if term.sums:
        text = f"{term.reduction.value}({','.join(i.name for i in term.sums)}) {text}"
    return text


def pretty_equation(equation: Equation) -> str:
    """An equation, one term a line."""
    terms = [pretty_term(t, equation.lhs) for t in equation.terms] or ["0"]
    pad = " " * len(str(equation.lhs))
    return "\n".join(
        f"{equation.lhs if n == 0 else pad} {'=' if n == 0 else '+'} {text}"
        for n, text in enumerate(terms)
    )

"""Level 1 as LaTeX, for notebooks and papers."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import assert_never

from ..expr import Access, Call, Calls, Const, Delta, Equal, Expr, Infinity, Pow, Prod, Quot, Sum
from ..reduction import AnyReduction, Reduction, Running
from ..system import Apply, Equation, Permutation, System, Term
from ..tensor import Index, Ref

_GREEK = re.compile(
    "alpha|beta|gamma|delta|epsilon|zeta|eta|theta|kappa|lambda|mu|nu|xi|pi|rho|sigma|tau|phi|chi|psi"
    "|omega|Gamma|Delta|Theta|Lambda|Xi|Pi|Sigma|Phi|Psi|Omega"
)
_NAME = re.compile(r"([A-Za-z]+)(\d*)(?:_(\w+))?")
_SUM, _PRODUCT, _ATOM = 1, 2, 3

_REDUCED: dict[AnyReduction, str] = {
    Reduction.SUM: "\\sum",
    Reduction.MAX: "\\max",
    Reduction.MIN: "\\min",
    Reduction.PROD: "\\prod",
    **{running: f"\\operatorname{{{running.value}}}" for running in Running},
}


def latex_system(system: System) -> str:
    r"""The equations as the body of an ``aligned`` environment, one term a line.

    Example:
        >>> from ..tensor import Role, Space, Tensor
        >>> o = Space("o")
        >>> i, j = Index("i", o), Index("j", o)
        >>> x = Ref(Tensor("x_oo", (o, o), Role.INPUT), (i, j))
        >>> e = Ref(Tensor("e", (), Role.OUTPUT))
        >>> half = Equation(e, (Term(Fraction(1, 2), (x, x), (i, j)),))
        >>> print(latex_system(System("half", (o,), (), (half,))))
        e &= \tfrac{1}{2} \sum_{ij} x^{\mathrm{oo}}_{ij} x^{\mathrm{oo}}_{ij}
    """
    return " \\\\\n".join(_equation(equation) for equation in system.equations)


def _equation(equation: Equation) -> str:
    terms = [_term(term, equation.lhs) for term in equation.terms] or ["0"]
    lines = [f"{_ref(equation.lhs)} &= {terms[0]}"]
    for term in terms[1:]:
        sign, text = ("-", term[1:].lstrip()) if term.startswith("-") else ("+", term)
        lines.append(f"&\\quad {sign} {text}")
    return " \\\\\n".join(lines)


def _term(term: Term, lhs: Ref) -> str:
    parts = [_number(abs(term.coeff))] if abs(term.coeff) != 1 or not term.factors else []
    if term.perms:
        parts.append(_permutations(term.perms, lhs.indices))
    if term.sums:
        parts.append(f"{_REDUCED[term.reduction]}_{{{_letters(term.sums)}}}")
    for factor in term.factors:
        match factor:
            case Ref() | Delta():
                parts.append(_format(factor, _ATOM))
            case Apply(expr):
                parts.append(_format(expr, _PRODUCT))
            case _:
                assert_never(factor)
    return ("-" if term.coeff < 0 else "") + " ".join(parts)


def _permutations(perms: tuple[Permutation, ...], indices: tuple[Index, ...]) -> str:
    """``(1 - P_{ij})``: each permutation as a product of cycles."""
    texts = []
    for perm in perms:
        cycles = _cycles(perm.images)
        product = " ".join(f"P_{{{_letters(tuple(indices[k] for k in c))}}}" for c in cycles)
        sign = "-" if perm.sign < 0 else "+"
        number = f"{abs(perm.sign)} " if abs(perm.sign) != 1 and product else ""
        texts.append(f"{sign} {number}{product or abs(perm.sign)}")
    return f"\\left({' '.join(texts).removeprefix('+ ')}\\right)"


def _cycles(images: tuple[int, ...]) -> list[list[int]]:
    """The cycles of a permutation that move something."""
    seen: set[int] = set()
    found = []
    for start in range(len(images)):
        cycle = []
        place = start
        while place not in seen:
            seen.add(place)
            cycle.append(place)
            place = images[place]
        if len(cycle) > 1:
            found.append(cycle)
    return found


def _ref(ref: Ref) -> str:
    text = _name(ref.tensor.name)
    if not ref.indices:
        # A power may follow a scalar, so its block is a subscript.
        return text.replace("^", "_")
    return f"{text}_{{{_letters(ref.indices)}}}"


def _name(name: str) -> str:
    """``v_oovv`` has its block above; a name of several letters or with a number is upright."""
    match = _NAME.fullmatch(name)
    if match is None:
        return f"\\mathrm{{{_escaped(name)}}}"
    stem, number, block = match.groups()
    if _GREEK.fullmatch(stem) and not number:
        text = f"\\{stem}"
    else:
        text = stem if len(stem) == 1 and not number else f"\\mathrm{{{stem}{number}}}"
    return f"{text}^{{\\mathrm{{{_escaped(block)}}}}}" if block else text


def _letters(indices: tuple[Index, ...]) -> str:
    return "".join(map(_letter, (index.name for index in indices)))


def _letter(name: str) -> str:
    """``i1`` and ``i_1`` have their number as a subscript."""
    match = re.fullmatch(r"([A-Za-z])_?(\w+)", name)
    if match:
        return f"{match[1]}_{{{_escaped(match[2])}}}"
    return name if name.isalnum() else f"{{{_escaped(name)}}}"


def _escaped(text: str) -> str:
    return text.replace("_", "\\_")


def _number(value: Fraction) -> str:
    sign, value = ("-" if value < 0 else ""), abs(value)
    if value.denominator == 1:
        return f"{sign}{value.numerator}"
    return f"{sign}\\tfrac{{{value.numerator}}}{{{value.denominator}}}"


def _format(expr: Expr, outer: int) -> str:
    """An expression, in brackets if it binds weaker than the one around it."""
    level = _ATOM
    match expr:
        case Const(value):
            text, level = _number(value), _ATOM if value >= 0 else _SUM
        case Ref():
            text = _ref(expr)
        case Delta(left, right):
            text = f"\\delta_{{{_letters((left, right))}}}"
        case Sum(args):
            parts = [_format(arg, _SUM) for arg in args]
            signed = [f"- {p[1:]}" if p.startswith("-") else f"+ {p}" for p in parts[1:]]
            text, level = " ".join([parts[0], *signed]), _SUM
        case Prod(args):
            minus = args[0] == Const(Fraction(-1)) and len(args) > 1
            text = " ".join(_format(arg, _PRODUCT) for arg in args[minus:])
            text, level = (f"-{text}", _SUM) if minus else (text, _PRODUCT)
        case Quot(num, den):
            text = f"\\frac{{{_format(num, 0)}}}{{{_format(den, 0)}}}"
        case Pow(base, exponent):
            inner = _format(base, _ATOM)
            # A second superscript needs brackets.
            raised = isinstance(base, Ref) and "^" in inner
            inner = f"\\left({inner}\\right)" if raised else inner
            text = f"{inner}^{{{exponent}}}"
        case Call("sqrt", arg):
            text = f"\\sqrt{{{_format(arg, 0)}}}"
        case Call(function, arg):
            text = f"\\operatorname{{{function}}}\\left({_format(arg, 0)}\\right)"
        case Calls(function, args):
            inside = ", ".join(_format(arg, 0) for arg in args)
            word = function.replace("_", "\\_")
            text = f"\\operatorname{{{word}}}\\left({inside}\\right)"
        case Infinity(sign):
            text, level = ("\\infty", _ATOM) if sign > 0 else ("-\\infty", _SUM)
        case Access() | Equal():
            text = str(expr)
        case _:
            assert_never(expr)
    return f"\\left({text}\\right)" if level < outer else text

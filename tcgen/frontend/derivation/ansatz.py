"""Reads the text of an ansatz: definitions of operators, and projections.

T = t1 + t2                          t2 is short for t2{v+ v+ o o}
e = <0| exp(-T) H exp(T) |0>         r = <T| ... |0> makes r1, r2
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeAlias

from ...errors import Diagnostic, Span, SpecError

if TYPE_CHECKING:
    from lark import Tree

    Node: TypeAlias = Tree[Any]

# H = F + V is the Hamiltonian without the energy of the reference, F its one-body part.
_GRAMMAR = r"""
?statement: NAME "=" sum                            -> definition
    | NAME "=" "<" sum "|" sum "|" sum ">"          -> projection
sum: product (SIGN product)* | SIGN product (SIGN product)*
product: factor+
?factor: NAME OPERATORS?          -> operator
    | NUMBER                      -> number
    | "(" sum ")"
    | "[" sum "," sum "]"         -> commutator
    | "exp" "(" sum ")"           -> exp
    | "bch" "(" sum "," sum "," WHOLE ")" -> bch
    | "adj" "(" sum ")"           -> adj
OPERATORS: /\{\s*[ov]\+?(\s+[ov]\+?)*\s*\}/
SIGN: "+" | "-"
NUMBER: WHOLE ("/" /[1-9][0-9]*/)?
WHOLE: /[0-9]+/
NAME: /[A-Za-z][A-Za-z0-9_]*/
%ignore /[ \t]+/
"""
_ADVICE = (
    "write definitions such as T = t1 + t2 and projections such as r = <T| exp(-T) H exp(T) |0>"
)
# Brackets within brackets; no method has as many, and each takes some of Python's stack.
_DEEPEST = 50


@dataclass(frozen=True, slots=True)
class Projection:
    """``name = <bra| value |ket>`` with its place and text; a side is None for the reference."""

    name: str
    bra: Node | None
    value: Node
    ket: Node | None
    where: tuple[int, str]


@dataclass(frozen=True, slots=True)
class Ansatz:
    """Definitions by name, and projections in their order."""

    definitions: dict[str, Node]
    projections: tuple[Projection, ...]


def read_ansatz(text: str) -> Ansatz:
    """The ansatz of a text, whose statements stand on lines or end with a semicolon.

    A SpecError names a line that cannot be read, and refuses an ansatz without a projection.

    Example:
        >>> [p.name for p in read_ansatz("T = t2; e = <0| [H, T] |0>").projections]
        ['e']
    """
    definitions: dict[str, Any] = {}
    projections: list[Projection] = []
    lines = [x.strip() for x in re.split(r"[\n;]", re.sub(r"#.*", "", text))]
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        tree = _parsed(number, line)
        name, *parts = tree.children
        if str(name) in definitions or str(name) in {p.name for p in projections}:
            raise refuse(number, line, f"{name} is defined twice", "use another name")
        if tree.data == "definition":
            definitions[str(name)] = parts[0]
        else:
            bra, value, ket = parts
            sides = (None if _is_reference(x) else x for x in (bra, ket))
            projections.append(
                Projection(str(name), next(sides), value, next(sides), (number, line))
            )
    if not projections:
        line = lines[-1] if lines else ""
        advice = _ADVICE if "=" in line else f"{_ADVICE}; <0| {line or 'H'} |0> is an energy"
        raise refuse(len(lines), line, "the ansatz names no projection", advice)
    return Ansatz(definitions, tuple(projections))


def refuse(number: int, line: str, message: str, advice: str) -> SpecError:
    """The error of one line of an ansatz."""
    return SpecError((Diagnostic(Span("<ansatz>", number, 1), message, line, advice),))


@cache
def _parser() -> Any:
    from lark import Lark  # noqa: PLC0415  (loaded when it is first used)

    return Lark(_GRAMMAR, start="statement", parser="lalr")


def _parsed(number: int, line: str) -> Any:
    from lark.exceptions import UnexpectedInput  # noqa: PLC0415

    if _depth(line) > _DEEPEST:
        message = f"brackets are nested more than {_DEEPEST} deep"
        raise refuse(number, line[:80], message, "define operators of their own for inner parts")
    try:
        return _parser().parse(line)
    except UnexpectedInput as error:
        column = getattr(error, "column", 1)
        ended = getattr(getattr(error, "token", None), "type", "") == "$END"
        place = "the end of the line" if ended else line[max(0, column - 1) :]
        message, advice = f"cannot read {place!r:.60}", _ADVICE
        if "=" not in line:
            message = "the ansatz names no projection"
            advice = f"r = <T| {line} |0> is one; {_ADVICE}"
        raise refuse(number, line, message, advice) from None


def _depth(line: str) -> int:
    """The largest number of brackets that are open at once."""
    steps = ((x in "([") - (x in ")]") for x in line)
    return max(accumulate(steps), default=0)


def _is_reference(side: Node) -> bool:
    """True for the 0 of <0| and |0>."""
    return [str(token) for token in side.scan_values(lambda _: True)] == ["0"]

"""Explains syntax errors: what is wrong in a statement, where, and what to write instead.

The text of the statement and the parser's error are enough; nothing is parsed here.
"""

from __future__ import annotations

import re
from typing import Any

from ...ir.expr import FUNCTIONS, REAL_FUNCTIONS, SEVERAL
from ...ir.reduction import REDUCED_BY
from ..source import Problems, Statement

_SHAPES = {
    "space": "space o occupied    space o = 10    space p = o + v",
    "index": "index i j k : o",
    "input": "input t2[o,o,v,v] antisymmetric (0,1) (2,3), e_o[o]",
    "output": "output e, r2[o,o,v,v]",
    "include": 'include "other.spec"',
    None: "r2[i,j,a,b] += 1/2*x[i,k]*y[k,j,a,b]",
}
_ATTRIBUTES = (
    "symmetric, antisymmetric, symmetry, hermitian, conserves, packed, stored, blocks, from, real, "
    "constant, volatile, generated, accumulate"
)
_FUNCTIONS = " ".join((*FUNCTIONS, *REAL_FUNCTIONS, *SEVERAL))
# Notation of papers and of other languages, by characters that occur only there.
_FOREIGN = {
    "^": "write ** for a power",
    "\u2212\u2010\u2011\u2012\u2013\u2014": "this is not the minus sign of the keyboard: write -",
    "\u00b7\u2022\u22c5\u2219\u00d7": "write * for a product",
    "\u00f7\u2215\u2044": "write / for a division",
    "\u2211": "write sum(i,a), or nothing: repeated indices are summed",
    "\u221a": "write sqrt(..)",
    "{}": "write ( ) for brackets and [ ] for indices",
    "'\u2019\u2032": "names are letters, digits and _: write i1, say",
    ";": "remove it: a statement ends with its line",
    "\\": "remove it: a line continues in an open bracket, or if the next one starts with + - * /",
}
_OPERATORS = ("P", "S", *REDUCED_BY)
_NAMES_ARE_ASCII = "names are made of the letters a to z, A to Z, digits and _"
_OPERATOR_BEFORE = re.compile(r"\b(?:P|S|sum|max|min|prod)\s*\((?:[^()]|\([^()]*\))*\)$")


def explain_syntax_error(statement: Statement, error: Any, problems: Problems) -> None:
    """Add a message for a statement that does not parse.

    Args:
        statement: as written.
        error: lark's ``UnexpectedInput``.
        problems: receives the message.
    """
    shape = f"for example: {_SHAPES[statement.keyword]}"
    lines = statement.text.split("\n")
    token = getattr(error, "token", None)
    if token is not None and token.type == "$END":
        last = lines[-1].rstrip()
        span = statement.span(len(lines), len(last) + 1, 1)
        if statement.keyword is None and last.endswith(("+", "-", "*", "/")):
            shape = f"to continue on the next line, start that line with {last[-1]}"
        problems.add(span, "the statement ends too early", shape)
        return
    rest = lines[error.line - 1][error.column - 1 :]
    word = re.match(r"[A-Za-z_]\w*|[0-9.]+|\*\*|[+\-]=|.", rest)
    text = word[0] if word else rest
    span = statement.span(error.line, error.column, len(text))
    if text[0] not in '_.+-*/=()[],:<>"' and not (text[0].isascii() and text[0].isalnum()):
        problems.add(span, f"{text!r} is not allowed here", _instead_of(text[0]))
        return
    expected = set(getattr(error, "accepts", None) or getattr(error, "expected", None) or ())
    before = lines[error.line - 1][: error.column - 1].rstrip()
    message, advice = f"unexpected {text!r}", shape
    operator = _OPERATOR_BEFORE.search(before)
    if statement.keyword is not None:
        if statement.keyword in ("input", "output") and "FLAG" in expected and text == "(":
            message = "write axes in square brackets"
        elif statement.keyword in ("input", "output") and "FLAG" in expected and _operand(text):
            message, advice = f"{text!r} is not an attribute", f"attributes: {_ATTRIBUTES}"
    elif _operand(text) and "TIMES" in expected:
        message, advice = _between_factors(text, before)
    elif text == "=" and "EQUALS" not in expected:
        message, advice = "a second = in one statement", "write one equation per line"
    elif "ASSIGN" in expected:
        message = f"expected = += or -= before {text!r}"
    elif before.endswith("**"):
        message, advice = (
            f"the exponent {text!r} is not an integer",
            "write sqrt(..), exp(..) or x**2",
        )
    elif operator and text in ("*", "/", ")"):
        message = (
            f"{operator[0]} must directly precede the term it acts on, without {text!r} between"
        )
        advice = "P(i,j) x[i,k]*y[k,j] is x[i,k]*y[k,j] - x[j,k]*y[k,i]; S adds, sum(k) sums"
    problems.add(span, message, advice)


def _instead_of(character: str) -> str:
    """What to write for a character that the language does not have."""
    for characters, advice in _FOREIGN.items():
        if character in characters:
            return advice
    if character.isalpha():
        return _NAMES_ARE_ASCII
    if character.isspace():
        return "this is not a plain space: write one"
    return "write names, numbers and + - * / ** ( ) [ ]"


def _operand(text: str) -> bool:
    return text[0].isalnum() or text[0] in "_("


def _between_factors(text: str, before: str) -> tuple[str, str]:
    """Message and advice for an operand that follows another one directly."""
    name = re.search(r"[A-Za-z_]\w*$", before)
    if text == "(" and name and name[0] in _OPERATORS:
        message = f"{name[0]} occurs inside a product or denominator"
        return message, f"write {name[0]} at the start of a term, after sign and number"
    if text == "(" and name:
        return (
            f"{name[0]} is neither a function nor an operator",
            f"write indices in square brackets, {name[0]}[..]; functions: {_FUNCTIONS}; "
            f"operators: {' '.join(_OPERATORS)}; a product needs *",
        )
    return f"an operator is missing before {text!r}", "write * between factors"

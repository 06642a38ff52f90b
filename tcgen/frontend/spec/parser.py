"""Parses statements into syntax trees; imports lark late, so that importing tcgen is fast."""

from __future__ import annotations

import importlib
import re
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import Span
from ...ir.expr import ARGUMENT_COUNTS, FUNCTIONS, REAL_FUNCTIONS
from ...ir.reduction import REDUCTION_WORDS
from ..exact_numbers import OUTSIDE, literal, rejection_reason
from ..source import TOO_DEEP, Problems, Statement
from .syntax import (
    Attribute,
    Bracket,
    Declaration,
    Element,
    EquationLine,
    Function,
    IndexLine,
    Line,
    Negative,
    Node,
    Number,
    Operated,
    Operator,
    Power,
    Product,
    SignedSum,
    SpaceLine,
    Word,
)

if TYPE_CHECKING:
    from lark import Token, Tree

_STARTS = {
    "space": "space_line",
    "index": "index_line",
    "input": "input_line",
    "output": "output_line",
    "include": "include_line",
    None: "equation",
}
# Largest exponent of **; the message for larger ones advises exp(n*log(x)).
_LARGEST_EXPONENT = 1000
_SHAPES = {
    "space": "space o occupied    space o = 10    space p = o + v",
    "index": "index i j k : o",
    "input": "input t2[o,o,v,v] antisymmetric (0,1) (2,3), e_o[o]",
    "output": "output e, r2[o,o,v,v]",
    "include": 'include "other.spec"',
    None: "r2[i,j,a,b] += 1/2*x[i,k]*y[k,j,a,b]",
}
_ATTRIBUTES = (
    "symmetric, antisymmetric, symmetry, antisymmetry, hermitian, conserves, charge, label, "
    "packed, stored, blocks, from, real, constant, volatile, generated, accumulate"
)
_FUNCTIONS = " ".join((*FUNCTIONS, *REAL_FUNCTIONS, *ARGUMENT_COUNTS))
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
_OPERATORS = ("P", "S", *REDUCTION_WORDS)
_NAMES_ARE_ASCII = "names are made of the letters a to z, A to Z, digits and _"
_OPERATOR_BEFORE = re.compile(r"\b(?:P|S|sum|max|min|prod)\s*\((?:[^()]|\([^()]*\))*\)$")


def parse_statement(statement: Statement, problems: Problems) -> tuple[Line, ...]:
    """Lines of a statement other than ``include``; inputs and outputs give one line each.

    After a syntax error the result is empty, and the names in the statement become doubtful.
    """
    tree = _parse(statement, problems)
    if tree is None:
        return ()
    try:
        return _Builder(statement, problems).lines(tree)
    except RecursionError:
        _doubt(statement, problems)
        problems.add(
            statement.span(1, 1, 1), TOO_DEEP, "name parts of it in equations of their own"
        )
        return ()


def parse_include(statement: Statement, problems: Problems) -> Word | None:
    """File name of an ``include`` statement, with the place of its quotes."""
    tree = _parse(statement, problems)
    if tree is None:
        return None
    word = _Builder(statement, problems).word(tree.children[1])
    return Word(word.text[1:-1], word.span)


@cache
def _grammar() -> Any:
    lark = importlib.import_module("lark")
    text = (Path(__file__).parent / "spec.lark").read_text("utf-8")
    return lark.Lark(
        text,
        parser="lalr",
        lexer="contextual",
        propagate_positions=True,
        maybe_placeholders=True,
        start=sorted(_STARTS.values()),
    )


def _parse(statement: Statement, problems: Problems) -> Tree[Token] | None:
    lark = importlib.import_module("lark")
    try:
        tree: Tree[Token] = _grammar().parse(statement.text, start=_STARTS[statement.keyword])
    except lark.UnexpectedInput as error:
        explain_syntax_error(statement, error, problems)
        _doubt(statement, problems)
        return None
    return tree


def _doubt(statement: Statement, problems: Problems) -> None:
    """Suppress further messages on the names that the statement declares or defines."""
    names = re.findall(r"[A-Za-z_]\w*", statement.text)
    problems.doubtful.update(names if statement.keyword else names[:1])


class _Builder:
    """Converts lark's trees of one statement to syntax nodes."""

    def __init__(self, statement: Statement, problems: Problems) -> None:
        self._statement = statement
        self._lines = statement.text.split("\n")
        self._problems = problems

    def lines(self, tree: Any) -> tuple[Line, ...]:
        children = tree.children
        match str(tree.data):
            case "space_line":
                _, name, kind, *marks, value = children
                is_sum = getattr(value, "data", None) == "parts"
                parts = self._words(value.children) if is_sum else ()
                extent = None if value is None or parts else self.word(value)
                word = None if kind is None else self.word(kind)
                graded, strict = (None if w is None else self.word(w) for w in marks)
                return (SpaceLine(self.word(name), word, extent, parts, graded, strict),)
            case "index_line":
                *names, space = self._words(children[1:])
                return (IndexLine(tuple(names), space),)
            case "equation":
                name, axes, assign, body = children
                indices = self._words(axes.children) if axes is not None else ()
                return (EquationLine(self.word(name), indices, self.word(assign), self.node(body)),)
            case _:
                output = str(tree.data) == "output_line"
                return tuple(self._declaration(output, child) for child in children[1:])

    def word(self, token: Any) -> Word:
        span = self._statement.span(token.line, token.column, len(token))
        return Word(str(token), span)

    def node(self, tree: Any) -> Node:
        span, children = self._span(tree), tree.children
        match str(tree.data):
            case "number":
                return Number(self._value(children[0]), span)
            case "imaginary":
                unit = Function("sqrt", (Number(Fraction(-1), span),), span)
                number = Number(self._value(children[0][:-1], children[0]), span)
                return unit if number.value == 1 else Product(number, unit, False, span)
            case "element":
                name, axes = children
                indices = self._words(axes.children) if axes is not None else ()
                return Element(str(name), indices, span)
            case "function":
                return self._function(str(children[0]), children[1:], span)
            case "bracket":
                return Bracket(self.node(children[0]), span)
            case "power":
                base, exponent = children
                return Power(self.node(base), self._exponent(exponent), span)
            case "negative" | "signed_operated":
                sign, arg = children
                return Negative(self.node(arg), span) if sign == "-" else self.node(arg)
            case "product":
                left, sign, right = children
                return Product(self.node(left), self.node(right), sign == "/", span)
            case "total":
                signs = (1, *(-1 if sign == "-" else 1 for sign in children[1::2]))
                nodes = (self.node(child) for child in children[::2])
                return SignedSum(tuple(zip(signs, nodes, strict=True)), span)
            case "scaled":
                left, right = children
                return Product(self.node(left), self.node(right), False, span)
            case _:
                operator, body = children
                return Operated(self._operator(operator), self.node(body), span)

    def _function(self, name: str, children: list[Any], span: Span) -> Node:
        args = tuple(map(self.node, children))
        count = ARGUMENT_COUNTS.get(name, 1)
        if len(args) != count:
            takes = "one argument" if count == 1 else f"{count} arguments"
            example = f"{name}({', '.join('xyz'[:count])})"
            self._problems.add(span, f"{name} takes {takes}, not {len(args)}", f"write {example}")
            return Number(Fraction(1), span)
        return Function(name, args, span)

    def _operator(self, tree: Any) -> Operator:
        kind, *groups = tree.children
        return Operator(
            str(kind),
            tuple(tuple(self._words(i.children) for i in g.children) for g in groups),
            self._span(tree),
        )

    def _exponent(self, tree: Any) -> int:
        *sign, number = tree.children
        value = self._value(number)
        if value > _LARGEST_EXPONENT:
            message = f"the exponent {number} is above {_LARGEST_EXPONENT}"
            self._problems.add(self._span(tree), message, "write exp(n*log(x))")
            value = Fraction(1)
        if value.denominator != 1:
            self._problems.add(
                self._span(tree),
                f"the exponent {number} is not an integer",
                "write sqrt(..), exp(..) or x**2",
            )
        return -int(value) if sign and sign[0] == "-" else int(value)

    def _value(self, text: Any, token: Any = None) -> Fraction:
        """The exact value of a number that a program can hold, which stands in a token."""
        try:
            return literal(str(text))
        except ValueError as error:
            self._problems.add(self._span_of(text if token is None else token), str(error), OUTSIDE)
            return Fraction(1)

    def _declaration(self, output: bool, tree: Any) -> Declaration:
        name, axes, *attributes = tree.children
        words = self._words(axes.children) if axes is not None else None
        return Declaration(
            output, self.word(name), words, tuple(self._attribute(a) for a in attributes)
        )

    def _attribute(self, tree: Any) -> Attribute:
        match str(tree.data):
            case "grouped" | "conserved":
                word, *groups = tree.children
                lists = tuple(self._words(g.children) for g in groups)
                return Attribute(str(word), self._span_of(word), lists)
            case "exchanged":
                word, *pairs = tree.children
                lists = tuple(self._words(g.children) for p in pairs for g in p.children)
                return Attribute(str(word), self._span_of(word), lists)
            case "blocks":
                word, *names, others = tree.children
                return Attribute(
                    str(word),
                    self._span_of(word),
                    names=self._words(names),
                    others_zero=others is not None,
                )
            case "quantity" | "charge":
                word, *names = tree.children
                return Attribute(str(word), self._span_of(word), names=self._words(names))
            case "flag":
                return Attribute(str(tree.children[0]), self._span(tree))
            case _:
                *signed, denominator = tree.children
                value = self._value(signed[-1])
                if denominator is not None and self._value(denominator) == 0:
                    self._problems.add(
                        self._span_of(denominator), "division by 0", "write a number"
                    )
                elif denominator is not None:
                    value /= self._value(denominator)
                    if rejection_reason(value):
                        message = f"this number {rejection_reason(value)}"
                        self._problems.add(self._span(tree), message, OUTSIDE)
                if len(signed) == 2 and signed[0] == "-":
                    value = -value
                return Attribute("=", self._span(tree), value=value)

    def _words(self, tokens: list[Any]) -> tuple[Word, ...]:
        return tuple(self.word(t) for t in tokens if t is not None)

    def _span_of(self, token: Any) -> Span:
        return self.word(token).span

    def _span(self, tree: Any) -> Span:
        meta = tree.meta
        line = self._lines[meta.line - 1]
        end = meta.end_column - 1 if meta.end_line == meta.line else len(line.rstrip())
        return self._statement.span(meta.line, meta.column, end - meta.column + 1)


def explain_syntax_error(statement: Statement, error: Any, problems: Problems) -> None:
    """Add a message for a statement that lark refused with an ``UnexpectedInput``."""
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
    """Advice for a character that the language does not have."""
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

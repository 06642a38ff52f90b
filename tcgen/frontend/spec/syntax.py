"""Syntax tree of a spec: the text with its places, before names are looked up.

It is not the tree of ``ir/expr``: its leaves are words that may name no tensor and no index, its
nodes have the places that messages quote, and brackets and operators (sum, P, S) have no
counterpart there. ``products`` turns it into sums of products and expressions.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from ...errors import Span


@dataclass(frozen=True, slots=True)
class Word:
    """A name or a number of a list, with its place."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class Number:
    """An exact number."""

    value: Fraction
    span: Span


@dataclass(frozen=True, slots=True)
class Element:
    """``name[i,j]`` or a scalar."""

    name: str
    indices: tuple[Word, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Function:
    """``exp(..)``, or a function of several arguments."""

    name: str
    args: tuple[Node, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Power:
    """``base**exponent``."""

    base: Node
    exponent: int
    span: Span


@dataclass(frozen=True, slots=True)
class Bracket:
    """``(..)``."""

    inner: Node
    span: Span


@dataclass(frozen=True, slots=True)
class Negative:
    """Unary minus."""

    arg: Node
    span: Span


@dataclass(frozen=True, slots=True)
class Product:
    """``left*right``, or ``left/right`` if ``divided``."""

    left: Node
    right: Node
    divided: bool
    span: Span


@dataclass(frozen=True, slots=True)
class SignedSum:
    """Sum of two terms or more, each with its sign."""

    terms: tuple[tuple[int, Node], ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Operator:
    """``P(..)``, ``S(..)``, ``sum(..)``, ``max(..)``, ``min(..)`` or ``prod(..)``.

    ``groups`` are the parts between slashes, each a tuple of items; an item is the words of a
    tuple, or one word. ``span`` ends with the closing bracket.
    """

    kind: str
    groups: tuple[tuple[tuple[Word, ...], ...], ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Operated:
    """An operator and the rest of its term."""

    operator: Operator
    body: Node
    span: Span


Node: TypeAlias = (
    Number | Element | Function | Power | Bracket | Negative | Product | SignedSum | Operated
)


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute of a declaration, such as ``symmetric``; the word of a default is ``=``.

    ``groups`` are of positions or letters, in pairs for an exchange. ``names`` are those of blocks,
    the words of a quantity, or the name of a charge; with ``others_zero`` blocks that it does not
    list are zero.
    """

    word: str
    span: Span
    groups: tuple[tuple[Word, ...], ...] = ()
    names: tuple[Word, ...] = ()
    value: Fraction = Fraction(0)
    others_zero: bool = False


@dataclass(frozen=True, slots=True)
class SpaceLine:
    """``space name kind graded strict = extent`` or ``space name = part + part``."""

    name: Word
    kind: Word | None
    extent: Word | None
    parts: tuple[Word, ...]
    graded: Word | None = None
    strict: Word | None = None


@dataclass(frozen=True, slots=True)
class IndexLine:
    """``index names : space``."""

    names: tuple[Word, ...]
    space: Word


@dataclass(frozen=True, slots=True)
class Declaration:
    """One tensor of an ``input`` or ``output`` list; ``axes`` is None if none are given."""

    output: bool
    name: Word
    axes: tuple[Word, ...] | None
    attributes: tuple[Attribute, ...]


@dataclass(frozen=True, slots=True)
class EquationLine:
    """``name[indices] = body``; ``assign`` is ``=``, ``+=`` or ``-=``."""

    name: Word
    indices: tuple[Word, ...]
    assign: Word
    body: Node


Line: TypeAlias = SpaceLine | IndexLine | Declaration | EquationLine

"""Right sides as sums of products of tensors, brackets and atoms, every name looked up.

A bracket remains a factor here; :mod:`tcgen.frontend.spec.expand` makes it an intermediate. Atoms
(denominators other than numbers, arguments of functions, bases of powers) become Apply.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import assert_never

from ...errors import Span
from ...ir.expr import ARGUMENT_COUNTS, Call, Calls, Const, Delta, Expr, Pow, Prod, Quot, Sum
from ...ir.reduction import REDUCTION_WORDS, Reduction
from ...ir.system import Apply, fits_axis
from ...ir.tensor import Index, Ref
from ..exact_numbers import OUTSIDE, rejection_reason
from ..source import Problems
from .names import Names
from .operators import OperatorReader, Place, Signed
from .syntax import (
    Bracket,
    Element,
    Function,
    Negative,
    Node,
    Number,
    Operated,
    Operator,
    Power,
    Product,
    SignedSum,
)


@dataclass(frozen=True, slots=True)
class Group:
    """A bracket in a product."""

    products: tuple[Flat, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Reduced:
    """The maximum, minimum or product of the values of an expression over the ``bound`` indices."""

    reduction: Reduction
    expr: Expr
    bound: tuple[Place, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Piece:
    """A factor; ``places`` are its indices: each as often as written, once for an atom."""

    factor: Ref | Delta | Apply | Group | Reduced
    places: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True)
class Flat:
    """``coeff * operator * sum over sums of the product of pieces``, in the order of the text.

    ``operator`` is the composed P and S, or (); ``moved`` are the indices that it renames.
    """

    coeff: Fraction
    pieces: tuple[Piece, ...]
    span: Span
    operator: Signed = ()
    moved: tuple[Place, ...] = ()
    sums: tuple[Place, ...] = ()

    @property
    def plain(self) -> bool:
        """True without P, S and sum."""
        return not self.operator and not self.sums


class ProductReader:
    """Reads the right sides of one spec."""

    def __init__(self, names: Names, problems: Problems) -> None:
        self._names, self._problems = names, problems
        self._operators = OperatorReader(names, problems)

    def read(self, node: Node) -> tuple[Flat, ...]:
        """The products of a sum; a bracket that is a whole term is expanded."""
        if isinstance(node, SignedSum):
            return tuple(_scaled(p, Fraction(s)) for s, term in node.terms for p in self.read(term))
        flat = self._flat(node)
        group = flat.pieces[0].factor if len(flat.pieces) == 1 else None
        if not isinstance(group, Group):
            return (flat,)
        if flat.plain:
            return tuple(_scaled(p, flat.coeff) for p in group.products)
        if len(group.products) == 1:
            return (self._under(flat, group.products[0]),)
        return (flat,)

    def _under(self, outer: Flat, inner: Flat) -> Flat:
        """One product under the operators of the bracket that holds it alone."""
        repeated = {p.index for p in outer.sums} & {p.index for p in inner.sums}
        for place in inner.sums:
            if place.index in repeated:
                self._shadowed(place)
        nothing: Signed = ((1, ()),)
        both = self._operators.product(
            outer.operator or nothing, inner.operator or nothing, outer.span
        )
        return Flat(
            outer.coeff * inner.coeff,
            inner.pieces,
            outer.span,
            both if outer.operator or inner.operator else (),
            outer.moved + inner.moved,
            outer.sums + inner.sums,
        )

    def _flat(self, node: Node) -> Flat:
        match node:
            case Operated(operator, body, span):
                if operator.kind in REDUCTION_WORDS and operator.kind != "sum":
                    return Flat(Fraction(1), (self._reduced(operator, body),), span)
                return self._operated(operator, self._flat(body), span)
            case Negative(arg, span):
                return replace(_scaled(self._flat(arg), Fraction(-1)), span=span)
            case Product(left, right, divided, span):
                first = self._flat(left)
                second = self._inverse(right) if divided else self._flat(right)
                if not first.plain or (not second.plain and first.pieces):
                    at = right.span if first.plain else left.span
                    self._problems.add(
                        at,
                        "an operator occurs inside a product",
                        "write P, S and sum at the start of a term, after sign and number",
                    )
                coeff = first.coeff * second.coeff
                return replace(second, coeff=coeff, pieces=first.pieces + second.pieces, span=span)
            case Bracket(inner, span):
                return self._bracket(inner, span)
            case Number(value, span):
                return Flat(value, (), span)
            case Element(_, _, span):
                factor, places = self._element(node)
                return Flat(Fraction(1), (Piece(factor, places),), span)
            case Function() | Power():
                number = self._number(node)
                if number is not None:
                    return Flat(number, (), node.span)
                return Flat(Fraction(1), (self._atom(node, self._expr(node)),), node.span)
            case SignedSum(_, span):
                return self._bracket(node, span)
            case _:
                assert_never(node)

    def _bracket(self, inner: Node, span: Span) -> Flat:
        value = self._number(inner)
        if value is not None:
            return Flat(value, (), span)
        products = self.read(inner)
        if len(products) == 1 and products[0].plain and _is_single(products[0]):
            return replace(products[0], span=span)
        return Flat(Fraction(1), (Piece(Group(products, span)),), span)

    def _inverse(self, node: Node) -> Flat:
        value = self._number(node)
        if value is None:
            expr = Quot(Const(Fraction(1)), self._expr(node))
            return Flat(Fraction(1), (self._atom(node, expr),), node.span)
        if value == 0:
            self._problems.add(node.span, "division by the number 0", "remove the term")
            value = Fraction(1)
        return Flat(1 / value, (), node.span)

    def _operated(self, operator: Operator, body: Flat, span: Span) -> Flat:
        if operator.kind == "sum":
            sums = self._operators.bound(operator)
            for place in body.sums:
                if place.index in {p.index for p in sums}:
                    self._shadowed(place)
            return replace(body, sums=sums + body.sums, span=span)
        signed, moved = self._operators.permutations(operator)
        both = self._operators.product(signed, body.operator, span) if body.operator else signed
        return replace(body, operator=both, moved=moved + body.moved, span=span)

    def _reduced(self, operator: Operator, body: Node) -> Piece:
        """A maximum, minimum or product over indices; its own indices have no places outside."""
        bound = self._operators.bound(operator)
        piece = self._atom(body, self._expr(body))
        held = {place.index for place in piece.places}
        for place in bound:
            if place.index not in held:
                message = (
                    f"{place.index} of {operator.kind}({place.index}) does not occur in its term"
                )
                self._problems.add(place.span, message, "remove it, or use it")
        inside = {place.index for place in bound}
        assert isinstance(piece.factor, Apply)
        factor = Reduced(Reduction(operator.kind), piece.factor.expr, bound, operator.span)
        return Piece(factor, tuple(p for p in piece.places if p.index not in inside))

    def _element(self, node: Element) -> tuple[Ref | Delta | Apply, tuple[Place, ...]]:
        """The factor of a name, and the places of its indices; 0 after an error."""
        nothing = Apply(Const(Fraction(0)))
        looked_up = [self._names.index(word) for word in node.indices]
        places = tuple(
            Place(i, w.span) for i, w in zip(looked_up, node.indices, strict=True) if i is not None
        )
        indices = tuple(p.index for p in places)
        if node.name == "delta":
            if len(node.indices) != 2:
                self._problems.add(node.span, "delta takes two indices", "write delta[p,q]")
            elif len(indices) == 2:
                self._compare(node, *indices)
                return Delta(*indices), places
            return nothing, places
        tensor = self._names.tensor(node.name, node.span)
        if tensor is None or None in looked_up:
            return nothing, places
        axes = ",".join(s.name for s in tensor.spaces)
        shape = f"{node.name} is {node.name}[{axes}]" if axes else f"{node.name} is a scalar"
        if len(indices) != tensor.rank:
            message = f"{node.name} has {tensor.rank} axes, not {len(indices)}"
            self._problems.add(node.span, message, shape)
            return nothing, places
        for axis, (place, space) in enumerate(zip(places, tensor.spaces, strict=True)):
            if not fits_axis(place.index, space):
                message = (
                    f"index {place.index} of space {place.index.space.name} is on axis {axis} "
                    f"of {node.name}, which is {space.name}"
                )
                self._problems.add(place.span, message, shape)
        return Ref(tensor, indices), places

    def _compare(self, node: Element, left: Index, right: Index) -> None:
        """Refuse a delta of spaces that no joined space contains."""
        related = set(left.space.bases) & set(right.space.bases)
        if not related and not self._names.joined(left.space, right.space):
            message = (
                f"delta compares {left.space.name} and {right.space.name}, which are unrelated"
            )
            self._problems.add(node.span, message, "use indices of parts of one joined space")

    def _atom(self, node: Node, expr: Expr) -> Piece:
        """An Apply; each index counts once, however often it occurs in the atom."""
        places: dict[Index, Place] = {}
        for element in _elements(node):
            for word in element.indices:
                if self._names.is_index(word.text):
                    index = self._names.index(word)
                    if index is not None:
                        places.setdefault(index, Place(index, word.span))
        return Piece(Apply(expr), tuple(places.values()))

    def _expr(self, node: Node) -> Expr:
        value = self._number(node)
        if value is not None:
            return Const(value)
        match node:
            case Number(number, _):
                return Const(number)
            case Element():
                factor, _ = self._element(node)
                return factor.expr if isinstance(factor, Apply) else factor
            case Function(name, args, _):
                read = tuple(map(self._expr, args))
                return Calls(name, read) if name in ARGUMENT_COUNTS else Call(name, read[0])
            case Power(base, exponent, _):
                return Pow(self._expr(base), exponent)
            case Bracket(inner, _):
                return self._expr(inner)
            case Negative(arg, _):
                return Prod((Const(Fraction(-1)), self._expr(arg)))
            case Product(left, right, divided, _):
                first, second = self._expr(left), self._expr(right)
                if divided:
                    return Quot(first, second)
                heads = first.args if isinstance(first, Prod) else (first,)
                return Prod((*heads, second))
            case SignedSum(terms, _):
                return Sum(tuple(_signed(sign, self._expr(term)) for sign, term in terms))
            case Operated(operator, body, _):
                self._problems.add(
                    operator.span,
                    f"{operator.kind} occurs inside a denominator, function or power",
                    "name that part first: x[..] = .., then use x",
                )
                return self._expr(body)
            case _:
                assert_never(node)

    def _number(self, node: Node) -> Fraction | None:
        """The value of an expression of numbers; None for other expressions."""
        value = self._computed(node)
        reason = "" if value is None else rejection_reason(value)
        if reason:
            self._problems.add(node.span, f"this number {reason}", OUTSIDE)
            return Fraction(1)
        return value

    def _computed(self, node: Node) -> Fraction | None:
        match node:
            case Number(value, _):
                return value
            case Bracket(inner, _):
                return self._number(inner)
            case Negative(arg, _):
                number = self._number(arg)
                return None if number is None else -number
            case Power(base, exponent, span):
                number = self._number(base)
                if number == 0 and exponent < 0:
                    self._problems.add(span, "division by the number 0", "remove the term")
                    return Fraction(1)
                return None if number is None else number**exponent
            case Product(left, right, divided, _):
                first, second = self._number(left), self._number(right)
                if first is None or second is None:
                    return None
                if divided and second == 0:
                    self._problems.add(right.span, "division by the number 0", "remove the term")
                    return first
                return first / second if divided else first * second
            case SignedSum(terms, _):
                values = [self._number(term) for _, term in terms]
                known = [v for v in values if v is not None]
                if len(known) < len(values):
                    return None
                return sum(
                    (sign * v for (sign, _), v in zip(terms, known, strict=True)), Fraction()
                )
            case Element() | Function() | Operated():
                return None
            case _:
                assert_never(node)

    def _shadowed(self, place: Place) -> None:
        self._problems.add(
            place.span, f"{place.index} is already bound by another sum(..)", "rename one of them"
        )


def _is_single(flat: Flat) -> bool:
    """True for a number or one factor with distinct indices: a bracket around it has no effect."""
    places = [p.index for piece in flat.pieces for p in piece.places]
    return len(flat.pieces) < 2 and len(places) == len(set(places))


def _scaled(flat: Flat, factor: Fraction) -> Flat:
    return replace(flat, coeff=flat.coeff * factor)


def _signed(sign: int, expr: Expr) -> Expr:
    if sign > 0:
        return expr
    return Prod((Const(Fraction(-1)), *(expr.args if isinstance(expr, Prod) else (expr,))))


def _elements(node: Node) -> Iterator[Element]:
    parts: tuple[Node, ...]
    match node:
        case Element():
            yield node
            return
        case Number():
            return
        case Function(_, parts):
            pass
        case Negative(part) | Power(part) | Bracket(part) | Operated(_, part):
            parts = (part,)
        case Product(left, right):
            parts = (left, right)
        case SignedSum(terms):
            parts = tuple(term for _, term in terms)
        case _:
            assert_never(node)
    for part in parts:
        yield from _elements(part)

"""Products as nodes: equal products, up to names and symmetry, are one array.

A :class:`Workspace` holds every product formed so far under its canonical key. The factors of a
term are combined pairwise in the cheapest order; each inner pair is a node, and so is the
whole product, which is stored only where more than one term needs it.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import assert_never

from ...errors import Span
from ...ir.expr import Const, Delta, Expr, Prod, Quot, operation_count, refs
from ...ir.program import Add, Contract, Map, Operation, Produce
from ...ir.system import Apply, Equation, Factor, Term, factor_indices, factor_refs
from ...ir.tensor import Index, Ref, Role, Tensor, distinct
from ...ir.term_rewriting import resolve_deltas
from ...thresholds import AlgebraThresholds
from ..equations.atoms import atom_of
from ..equations.canonical_product import FREE, canonical_product, free_group
from ..equations.proven_symmetry import generators
from .contraction_order import Tree, best_order

ONE = Const(Fraction(1))


@dataclass(frozen=True, slots=True)
class Draft:
    """A step before its place in the program is known."""

    out: Ref
    op: Operation
    coeff: Fraction
    sums: tuple[Index, ...] = ()
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Node:
    """A product that may be stored: its defining step, its flops and the nodes it reads."""

    draft: Draft
    flops: int
    children: tuple[str, ...]

    @property
    def tensor(self) -> Tensor:
        """The array that would hold it."""
        return self.draft.out.tensor


@dataclass(frozen=True, slots=True)
class Product:
    """One term of an array: computed directly, or added from the stored node.

    Attributes:
        direct: writes the product into the array.
        stored: the same value read from the node, or None where there is no node.
        flops: of the direct step.
    """

    direct: Draft
    stored: Draft | None
    flops: int
    children: tuple[str, ...]

    @property
    def node(self) -> str | None:
        """Name of the node that holds the whole product."""
        if self.stored is None or not isinstance(self.stored.op, Add):
            return None
        return self.stored.op.a.tensor.name


@dataclass(frozen=True, slots=True)
class Recipe:
    """The products that an array is the sum of."""

    lhs: Ref
    products: tuple[Product, ...]


@dataclass(slots=True)
class Workspace:
    """All nodes under their canonical keys.

    Attributes:
        extents: planning extents of the base spaces.
        complex_values: whether hermitian symmetries must be left alone.
        share: False gives every product a node of its own.
        thresholds: of the orders of products, and of the intermediates to inline.
    """

    extents: Mapping[str, int]
    complex_values: bool
    share: bool
    thresholds: AlgebraThresholds
    keys: dict[Hashable, str] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)

    def points(self, indices: tuple[Index, ...]) -> int:
        """Number of points of a loop nest."""
        total = 1
        for index in distinct(indices):
            total *= sum(self.extents[b.name] for b in index.space.bases)
        return total

    def recipe(self, equation: Equation) -> Recipe:
        """The products of an equation without perms; vanishing ones are left out."""
        found = (self.product(t, equation.lhs) for t in equation.terms)
        return Recipe(equation.lhs, tuple(p for p in found if p is not None))

    def product(self, term: Term, lhs: Ref) -> Product | None:
        """A term split into binary steps; None if it is zero."""
        resolved = resolve_deltas(term)
        if resolved is None:
            return None
        coeff, factors = _plain_factors(resolved)
        if coeff == 0:
            return None
        held = {i for f in factors for i in factor_indices(f)}
        outer = tuple(i for i in lhs.indices if i in held)
        if len(factors) <= 1:
            costly = resolved.sums or any(isinstance(f, Apply) for f in factors)
            if costly and len(outer) < len(lhs.indices):
                return self._broadcast(self.node(factors, outer), coeff, lhs, term.span)
            direct = Draft(lhs, operation(factors), coeff, resolved.sums, term.span)
            return Product(direct, None, self._flops(direct), self._children(direct))
        reduced = self._presummed(factors, lhs.indices)
        if reduced is None:
            return None
        coeff, factors = coeff * reduced[0], reduced[1]
        tree = self._order(factors, lhs.indices)
        assert not isinstance(tree, int)
        every = tuple(range(len(factors)))
        one = self._value(tree[0], factors, _kept(tree[0], every, factors, outer))
        two = self._value(tree[1], factors, _kept(tree[1], every, factors, outer))
        if one is None or two is None:
            return None
        coeff *= one[0] * two[0]
        pair = self._materialised((one[1], two[1]))
        found = self.node(pair, outer, term.span)
        if found is None or len(outer) < len(lhs.indices):
            return self._broadcast(found, coeff, lhs, term.span)
        inner = distinct(tuple(i for f in pair for i in factor_indices(f)))
        sums = tuple(i for i in inner if i not in outer)
        direct = Draft(lhs, operation(pair), coeff, sums, term.span)
        sign, ref = found
        stored = Draft(lhs, Add(ref), coeff * sign, (), term.span)
        return Product(direct, stored, self._flops(direct), self._children(direct))

    def _broadcast(
        self, found: tuple[int, Ref] | None, coeff: Fraction, lhs: Ref, span: Span | None
    ) -> Product | None:
        """A product that lacks left indices: computed without them, then added along them."""
        if found is None:
            return None
        sign, ref = found
        direct = Draft(lhs, Add(ref), coeff * sign, (), span)
        return Product(direct, None, self._flops(direct), self._children(direct))

    def node(
        self, factors: tuple[Factor, ...], outer: tuple[Index, ...], span: Span | None = None
    ) -> tuple[int, Ref] | None:
        """The array of one or two factors as (sign, reference), new or known; None if zero."""
        colours = dict.fromkeys(outer, FREE)
        atoms = tuple(atom_of(f, self.complex_values) for f in factors)
        form = canonical_product(atoms, colours)
        if form.sign == 0:
            return None
        order = tuple(i for i in form.order if i in colours)
        key: Hashable = form.key if self.share else (form.key, len(self.nodes))
        name = self.keys.get(key)
        if name is None:
            name = f"#{len(self.nodes) + 1}"
            held = distinct(tuple(i for f in factors for i in factor_indices(f)))
            bare = Tensor(
                name,
                tuple(i.space for i in order),
                Role.TEMP,
                volatile=any(r.tensor.volatile for f in factors for r in factor_refs(f)),
            )
            tensor = replace(bare, symmetry=generators(bare, free_group(form, colours)))
            sums = tuple(i for i in held if i not in colours)
            draft = Draft(Ref(tensor, order), operation(factors), Fraction(form.sign), sums, span)
            self.keys[key] = name
            self.nodes[name] = Node(draft, self._flops(draft), self._children(draft))
        return form.sign, Ref(self.nodes[name].tensor, order)

    def _order(self, factors: tuple[Factor, ...], left: tuple[Index, ...]) -> Tree:
        operands = [
            (factor_indices(f), operation_count(f.expr) if isinstance(f, Apply) else 0)
            for f in factors
        ]
        every = distinct(tuple(i for indices, _ in operands for i in indices))
        extents = {i: self.points((i,)) for i in every}
        return best_order(operands, left, extents, self.thresholds.exact_factors)

    def _value(
        self, tree: Tree, factors: tuple[Factor, ...], kept: tuple[Index, ...]
    ) -> tuple[int, Factor] | None:
        """The array of a subtree as a function of ``kept``, with its sign; None if zero."""
        if isinstance(tree, int):
            return 1, factors[tree]
        around = _positions(tree)
        one = self._value(tree[0], factors, _kept(tree[0], around, factors, kept))
        two = self._value(tree[1], factors, _kept(tree[1], around, factors, kept))
        if one is None or two is None:
            return None
        found = self.node(self._materialised((one[1], two[1])), kept)
        if found is None:
            return None
        return one[0] * two[0] * found[0], found[1]

    def _presummed(
        self, factors: tuple[Factor, ...], left: tuple[Index, ...]
    ) -> tuple[int, tuple[Factor, ...]] | None:
        """Factors with the summed indices that no other factor holds already summed."""
        result: list[Factor] = []
        total = 1
        for position, factor in enumerate(factors):
            others = {i for p, f in enumerate(factors) if p != position for i in factor_indices(f)}
            kept = tuple(i for i in factor_indices(factor) if i in others or i in left)
            if len(kept) == len(factor_indices(factor)):
                result.append(factor)
                continue
            found = self.node((factor,), kept)
            if found is None:
                return None
            total *= found[0]
            result.append(found[1])
        return total, tuple(result)

    def _materialised(self, pair: tuple[Factor, ...]) -> tuple[Factor, ...]:
        """The pair, an expression evaluated once on its own where the pair runs over more."""
        space = self.points(tuple(i for f in pair for i in factor_indices(f)))
        result: list[Factor] = []
        for factor in pair:
            if isinstance(factor, Apply) and operation_count(factor.expr) > 0:
                indices = factor_indices(factor)
                if self.points(indices) < space:
                    found = self.node((factor,), indices)
                    assert found is not None, "a single expression has no sign"
                    result.append(found[1])
                    continue
            result.append(factor)
        return tuple(result)

    def _flops(self, draft: Draft) -> int:
        space = self.points(draft.out.indices + draft.sums)
        match draft.op:
            case Contract():
                return 2 * space
            case Add():
                return space * (bool(draft.sums) + (abs(draft.coeff) != 1))
            case Map(expr):
                return space * (operation_count(expr) + bool(draft.sums) + (abs(draft.coeff) != 1))
            case Produce():
                return 0
            case _:
                assert_never(draft.op)

    def _children(self, draft: Draft) -> tuple[str, ...]:
        return tuple(
            dict.fromkeys(r.tensor.name for r in refs_read(draft.op) if r.tensor.name in self.nodes)
        )


def refs_read(op: Operation) -> tuple[Ref, ...]:
    """References an operation reads, repeats included."""
    match op:
        case Contract(a, b):
            return (a, b)
        case Add(a):
            return (a,)
        case Map(expr):
            return refs(expr)
        case Produce():
            return ()
        case _:
            assert_never(op)


def expression(factor: Factor) -> Expr:
    """The factor as an element-wise expression."""
    match factor:
        case Ref() | Delta():
            return factor
        case Apply(expr):
            return expr
        case _:
            assert_never(factor)


def operation(factors: tuple[Factor, ...]) -> Operation:
    """What computes the product of at most two factors."""
    match factors:
        case ():
            return Map(ONE)
        case (Ref() as a,):
            return Add(a)
        case (Ref() as a, Ref() as b):
            return Contract(a, b)
        case _:
            return Map(multiplied(tuple(expression(f) for f in factors)))


def multiplied(exprs: tuple[Expr, ...]) -> Expr:
    """Product of expressions; x * (1/d) becomes x/d, and nested products become flat.

    Example:
        >>> from tcgen.ir.expr import format_expr
        >>> x = Ref(Tensor("x", (), Role.INPUT))
        >>> format_expr(multiplied((x, Quot(ONE, x))))
        'x/x'
    """
    above: list[Expr] = []
    below: list[Expr] = []
    for expr in exprs:
        if isinstance(expr, Quot):
            below.append(expr.den)
            expr = expr.num
        above.extend(expr.args if isinstance(expr, Prod) else (expr,))
    above = [e for e in above if e != ONE]
    num = ONE if not above else above[0] if len(above) == 1 else Prod(tuple(above))
    if not below:
        return num
    return Quot(num, below[0] if len(below) == 1 else Prod(tuple(below)))


def _plain_factors(term: Term) -> tuple[Fraction, tuple[Factor, ...]]:
    """Coefficient and factors, an Apply of a lone number or reference unwrapped."""
    coeff = term.coeff
    factors: list[Factor] = []
    for factor in term.factors:
        match factor:
            case Apply(Const(value)):
                coeff *= value
            case Apply(Ref() as ref):
                factors.append(ref)
            case _:
                factors.append(factor)
    return coeff, tuple(factors)


def _positions(tree: Tree) -> tuple[int, ...]:
    if isinstance(tree, int):
        return (tree,)
    return _positions(tree[0]) + _positions(tree[1])


def _kept(
    tree: Tree, around: tuple[int, ...], factors: tuple[Factor, ...], outer: tuple[Index, ...]
) -> tuple[Index, ...]:
    """Indices of a subtree that ``outer`` or another position of ``around`` holds."""
    inside = _positions(tree)
    wanted = set(outer)
    for position in around:
        if position not in inside:
            wanted.update(factor_indices(factors[position]))
    held = distinct(tuple(i for p in inside for i in factor_indices(factors[p])))
    return tuple(i for i in held if i in wanted)

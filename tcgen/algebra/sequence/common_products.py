"""Binary products as nodes: products that are equal up to names and symmetry are one node.

A :class:`Workspace` holds every product formed so far under its canonical key. The factors of a
term are combined pairwise in the cheapest order. Each inner pair is a node, and so is the whole
product, which becomes an array only where more than one term reads it. Steps have the number 0
until :mod:`.build` puts them into a program.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import starmap
from typing import assert_never

from ...errors import Span
from ...ir.expr import Const, Delta, Expr, Prod, Quot, operation_count
from ...ir.program import Add, Contract, Map, Operation, Produce, Step
from ...ir.reduction import Reduction
from ...ir.system import Apply, Equation, Factor, Term, factor_indices, factor_refs
from ...ir.tensor import Index, Ref, Role, Symmetry, Tensor, distinct, generators
from ...thresholds import AlgebraThresholds
from ..binary_orders import Tree, pays_in_one_loop, positions
from ..equations.canonical_product import Canonical, free_group
from ..equations.normal_form import NormalForms
from .contraction_order import best_order

_ONE = Const(Fraction(1))


@dataclass(frozen=True, slots=True)
class Node:
    """A product that may become an array.

    Attributes:
        step: the step that computes it.
        flops: flops of that step at the planning extents.
        children: names of the nodes that it reads.
    """

    step: Step
    flops: int
    children: tuple[str, ...]

    @property
    def tensor(self) -> Tensor:
        """The array that holds it, if it is stored."""
        return self.step.out.tensor


@dataclass(frozen=True, slots=True)
class TermRecipe:
    """One term of an array, as the step that computes it or adds it from a node.

    Attributes:
        direct: the step that adds the product to the array.
        stored: the step that adds the node of the product; None if it has no node.
        flops: flops of the direct step at the planning extents.
        children: names of the nodes that the direct step reads.
    """

    direct: Step
    stored: Step | None
    flops: int
    children: tuple[str, ...]

    @property
    def node(self) -> str | None:
        """Name of the node of the whole product, or None."""
        if self.stored is None or not isinstance(self.stored.op, Add):
            return None
        return self.stored.op.a.tensor.name


@dataclass(frozen=True, slots=True)
class Recipe:
    """An array as the sum of its terms."""

    lhs: Ref
    terms: tuple[TermRecipe, ...]


@dataclass(slots=True)
class Workspace:
    """All nodes under their canonical keys.

    Attributes:
        extents: planning extents of the base spaces.
        merge_equal: False gives every product a node of its own.
        sums_alone: True sums a factor over its own indices before it is multiplied.
        calls: number of calls of a bound program; products of constants are computed once.
        split: False computes each term in one loop.
        wholes: arrays of products of three and more factors, by their canonical keys: the sign,
            the node and the places of its axes in the canonical order.
    """

    extents: Mapping[str, int]
    forms: NormalForms
    merge_equal: bool
    thresholds: AlgebraThresholds
    sums_alone: bool = True
    calls: int = 1
    split: bool = True
    keys: dict[Hashable, str] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    wholes: dict[Hashable, tuple[int, str, tuple[int, ...]]] = field(default_factory=dict)

    def iterations(self, indices: tuple[Index, ...]) -> int:
        """Number of iterations of a loop nest over some indices."""
        total = 1
        for index in distinct(indices):
            total *= sum(self.extents[b.name] for b in index.space.bases)
        return total

    def recipe(self, equation: Equation) -> Recipe:
        """The recipe of an equation without permutations; terms of zero are left out."""
        terms = (self.term(t, equation.lhs) for t in equation.terms)
        return Recipe(equation.lhs, tuple(t for t in terms if t is not None))

    def term(self, term: Term, lhs: Ref) -> TermRecipe | None:
        """The recipe of a term with resolved deltas, as binary products; None if it is zero."""
        if term.reduction is not Reduction.SUM:
            (factor,) = term.factors
            value = Map(expression(factor))
            return self._recipe(
                Step(0, lhs, value, sums=term.sums, span=term.span, reduction=term.reduction)
            )
        coeff, factors = _plain_factors(term)
        if coeff == 0:
            return None
        held = {i for f in factors for i in factor_indices(f)}
        outer = tuple(i for i in lhs.indices if i in held)
        if len(factors) <= 1:
            costly = term.sums or any(isinstance(f, Apply) for f in factors)
            if costly and len(outer) < len(lhs.indices):
                return self._broadcast(self.node(factors, outer), coeff, lhs, term.span)
            op = operation(factors)
            return self._recipe(Step(0, lhs, op, coeff, sums=term.sums, span=term.span))
        if self.sums_alone and self.split:
            presummed = self._presummed(factors, lhs.indices)
            if presummed is None:
                return None
            sign, factors = presummed
            coeff *= sign
        if not self.split or (self.merge_equal and self._in_one_loop(factors, lhs.indices)):
            held = {i for f in factors for i in factor_indices(f)}
            sums = tuple(i for i in term.sums if i in held)
            return self._recipe(Step(0, lhs, operation(factors), coeff, sums=sums, span=term.span))
        tree = self._order(factors, lhs.indices)
        assert not isinstance(tree, int)
        pair_value = self._pair(tree, tuple(range(len(factors))), factors, outer)
        if pair_value is None:
            return None
        sign, pair = pair_value
        coeff *= sign
        node = self.node(pair, outer, term.span)
        if node is None or len(outer) < len(lhs.indices):
            return self._broadcast(node, coeff, lhs, term.span)
        inner = distinct(tuple(i for f in pair for i in factor_indices(f)))
        sums = tuple(i for i in inner if i not in outer)
        direct = Step(0, lhs, operation(pair), coeff, sums=sums, span=term.span)
        sign, ref = node
        return self._recipe(direct, Step(0, lhs, Add(ref), coeff * sign, span=term.span))

    def _recipe(self, direct: Step, stored: Step | None = None) -> TermRecipe:
        return TermRecipe(direct, stored, self._flops(direct), self._children(direct))

    def _broadcast(
        self, node: tuple[int, Ref] | None, coeff: Fraction, lhs: Ref, span: Span | None
    ) -> TermRecipe | None:
        """A product without some left indices: computed without them, then added along them."""
        if node is None:
            return None
        sign, ref = node
        return self._recipe(Step(0, lhs, Add(ref), coeff * sign, span=span))

    def node(
        self, factors: tuple[Factor, ...], outer: tuple[Index, ...], span: Span | None = None
    ) -> tuple[int, Ref] | None:
        """The node of one or two factors as (sign, reference), made if needed; None if zero."""
        form = self.forms.product(factors, outer)
        if form.sign == 0:
            return None
        order = tuple(i for i in form.order if i in outer)
        key: Hashable = form.key if self.merge_equal else (form.key, len(self.nodes))
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
            tensor = replace(
                bare, symmetry=generators(bare, starmap(Symmetry, free_group(form, outer)))
            )
            sums = tuple(i for i in held if i not in outer)
            out, op = Ref(tensor, order), operation(factors)
            step = Step(0, out, op, Fraction(form.sign), sums=sums, span=span)
            self.keys[key] = name
            self.nodes[name] = Node(step, self._flops(step), self._children(step))
        return form.sign, Ref(self.nodes[name].tensor, order)

    def _order(self, factors: tuple[Factor, ...], left: tuple[Index, ...]) -> Tree:
        """The cheapest binary order of a product at the planning extents."""
        operands = [
            (factor_indices(f), operation_count(f.expr) if isinstance(f, Apply) else 0)
            for f in factors
        ]
        indices = distinct(tuple(i for held, _ in operands for i in held))
        extents = {i: self.iterations((i,)) for i in indices}
        varies = (any(r.tensor.volatile for r in factor_refs(f)) for f in factors)
        runs = [self.calls if changes else 1 for changes in varies]
        return best_order(operands, left, extents, self.thresholds.exact_factors, runs)

    def _in_one_loop(self, factors: tuple[Factor, ...], left: tuple[Index, ...]) -> bool:
        """True for tensors whose product takes fewer flops in one loop than in any order."""
        indices = distinct(tuple(i for f in factors for i in factor_indices(f)))
        few = 3 <= len(factors) <= self.thresholds.exact_factors
        if not few or not all(isinstance(f, Ref) for f in factors) or not {*left} <= {*indices}:
            return False
        number = {i: n for n, i in enumerate(indices)}
        masks = tuple(sum(1 << number[i] for i in {*factor_indices(f)}) for f in factors)
        widths = tuple(self.iterations((i,)) for i in indices)
        return pays_in_one_loop(masks, sum(1 << number[i] for i in left), widths)

    def _pair(
        self,
        tree: tuple[Tree, Tree],
        around: tuple[int, ...],
        factors: tuple[Factor, ...],
        outer: tuple[Index, ...],
    ) -> tuple[int, tuple[Factor, ...]] | None:
        """Both operands of a binary product as (sign, factors); None if one is zero.

        ``around`` holds the positions of the factors of the term that are below ``tree``, and
        ``outer`` the indices of the result.
        """
        left = self._value(tree[0], factors, _outer_indices(tree[0], around, factors, outer))
        right = self._value(tree[1], factors, _outer_indices(tree[1], around, factors, outer))
        if left is None or right is None:
            return None
        (left_sign, left_factor), (right_sign, right_factor) = left, right
        return left_sign * right_sign, self._materialised((left_factor, right_factor))

    def _value(
        self, tree: Tree, factors: tuple[Factor, ...], outer: tuple[Index, ...]
    ) -> tuple[int, Factor] | None:
        """The product of a subtree over the indices ``outer``, with its sign; None if zero."""
        if isinstance(tree, int):
            return 1, factors[tree]
        inside = positions(tree)
        whole = self._whole(tuple(factors[p] for p in inside), outer)
        if whole is not None and whole.key in self.wholes:
            known_sign, name, axes = self.wholes[whole.key]
            order = tuple(i for i in whole.order if i in outer)
            held = Ref(self.nodes[name].tensor, tuple(order[axis] for axis in axes))
            return whole.sign * known_sign, held
        pair = self._pair(tree, inside, factors, outer)
        if pair is None:
            return None
        pair_sign, operands = pair
        node = self.node(operands, outer)
        if node is None:
            return None
        sign, ref = node
        if whole is not None:
            order = tuple(i for i in whole.order if i in outer)
            axes = tuple(order.index(i) for i in ref.indices)
            self.wholes[whole.key] = (whole.sign * pair_sign * sign, ref.tensor.name, axes)
        return pair_sign * sign, ref

    def _whole(self, factors: tuple[Factor, ...], outer: tuple[Index, ...]) -> Canonical | None:
        """The canonical form of a product of three and more factors, whatever their order."""
        if len(factors) < 3 or not self.merge_equal:
            return None
        form = self.forms.product(factors, outer)
        return form if form.sign else None

    def _presummed(
        self, factors: tuple[Factor, ...], left: tuple[Index, ...]
    ) -> tuple[int, tuple[Factor, ...]] | None:
        """Factors summed over the indices that only one holds, and the sign; None if zero."""
        result: list[Factor] = []
        total_sign = 1
        for position, factor in enumerate(factors):
            others = {i for p, f in enumerate(factors) if p != position for i in factor_indices(f)}
            outer = tuple(i for i in factor_indices(factor) if i in others or i in left)
            if len(outer) == len(factor_indices(factor)):
                result.append(factor)
                continue
            node = self.node((factor,), outer)
            if node is None:
                return None
            sign, ref = node
            total_sign *= sign
            result.append(ref)
        return total_sign, tuple(result)

    def _materialised(self, pair: tuple[Factor, ...]) -> tuple[Factor, ...]:
        """The pair, with expressions as nodes where the pair has more iterations than they have."""
        pair_iterations = self.iterations(tuple(i for f in pair for i in factor_indices(f)))
        result: list[Factor] = []
        for factor in pair:
            if isinstance(factor, Apply) and operation_count(factor.expr) > 0:
                indices = factor_indices(factor)
                if self.iterations(indices) < pair_iterations:
                    node = self.node((factor,), indices)
                    assert node is not None, "a single expression has no sign"
                    result.append(node[1])
                    continue
            result.append(factor)
        return tuple(result)

    def _flops(self, step: Step) -> int:
        """Flops of a step at the planning extents."""
        iterations = self.iterations(step.out.indices + step.sums)
        extra = bool(step.sums) + (abs(step.coeff) != 1)
        match step.op:
            case Contract():
                return 2 * iterations
            case Add():
                return iterations * extra
            case Map(expr):
                return iterations * (operation_count(expr) + extra)
            case Produce():
                return 0
            case _:
                assert_never(step.op)

    def _children(self, step: Step) -> tuple[str, ...]:
        names = dict.fromkeys(r.tensor.name for r in step.operands)
        return tuple(name for name in names if name in self.nodes)


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
    """The operation that computes the product of at most two factors."""
    match factors:
        case ():
            return Map(_ONE)
        case (Ref() as a,):
            return Add(a)
        case (Ref() as a, Ref() as b):
            return Contract(a, b)
        case _:
            return Map(multiplied(tuple(expression(f) for f in factors)))


def multiplied(exprs: tuple[Expr, ...]) -> Expr:
    """The product of expressions: x * (1/d) becomes x/d, and nested products become flat.

    Example:
        >>> from tcgen.ir.expr import format_expr
        >>> x = Ref(Tensor("x", (), Role.INPUT))
        >>> format_expr(multiplied((x, Quot(_ONE, x))))
        'x/x'
    """
    above: list[Expr] = []
    below: list[Expr] = []
    for expr in exprs:
        if isinstance(expr, Quot):
            below.append(expr.den)
            expr = expr.num
        above.extend(expr.args if isinstance(expr, Prod) else (expr,))
    above = [e for e in above if e != _ONE]
    num = _ONE if not above else above[0] if len(above) == 1 else Prod(tuple(above))
    if not below:
        return num
    return Quot(num, below[0] if len(below) == 1 else Prod(tuple(below)))


def _plain_factors(term: Term) -> tuple[Fraction, tuple[Factor, ...]]:
    """Coefficient and factors of a term; an Apply of one number or reference is unwrapped."""
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


def _outer_indices(
    tree: Tree, around: tuple[int, ...], factors: tuple[Factor, ...], outer: tuple[Index, ...]
) -> tuple[Index, ...]:
    """Indices of a subtree that ``outer`` or another factor of ``around`` holds too."""
    inside = positions(tree)
    wanted = set(outer)
    for position in around:
        if position not in inside:
            wanted.update(factor_indices(factors[position]))
    held = distinct(tuple(i for p in inside for i in factor_indices(factors[p])))
    return tuple(i for i in held if i in wanted)

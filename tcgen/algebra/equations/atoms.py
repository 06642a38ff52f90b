"""Factors of a product as atoms: a label, indices and a symmetry group for each.

References, deltas and element-wise expressions all become atoms, which
:mod:`~tcgen.algebra.equations.canonical_product` compares.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from itertools import permutations, product
from typing import assert_never

from ...errors import TcgenError
from ...ir.expr import (
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
    expr_indices,
)
from ...ir.system import Apply, Factor
from ...ir.tensor import Index, Ref, Symmetry, Tensor, symmetry_group
from ..permutation_groups import Group
from .canonical_product import Atom

# Index orders of an element-wise expression up to which its symmetry is derived (6! = 720). A proof
# of a declared symmetry may need that symmetry, hence this limit is not a threshold.
_MAX_INDEX_ORDERS = 720


@lru_cache(maxsize=100_000)
def tensor_group(tensor: Tensor, complex_values: bool) -> Group:
    """All (perm, sign) with ``T[x[perm]] == sign * T[x]``, the identity first.

    A hermitian exchange counts only where conj is the identity: for a real tensor or program.

    Raises:
        TcgenError: declared symmetries contradict each other once conj is the identity.
    """
    generators = tensor.symmetry
    if not complex_values:
        generators = tuple(Symmetry(s.perm, s.sign) for s in generators)
    try:
        group = symmetry_group(replace(tensor, symmetry=generators))
    except ValueError as error:
        raise TcgenError(
            f"{error} in a real program: drop one of these symmetries, or compile for complex128"
        ) from None
    return tuple((s.perm, s.sign) for s in group if not s.conj)


def atom_of(factor: Factor, complex_values: bool) -> Atom:
    """The factor as an atom; the axes of an element-wise expression are its distinct indices."""
    match factor:
        case Ref(tensor, indices):
            return Atom(tensor.name, indices, tensor_group(tensor, complex_values))
        case Delta(left, right):
            return Atom("delta ", (left, right), (((0, 1), 1), ((1, 0), 1)))
        case Apply(expr):
            return _apply_atom(expr, complex_values)
        case _:
            assert_never(factor)


@lru_cache(maxsize=10_000)
def _apply_atom(expr: Expr, complex_values: bool) -> Atom:
    """Atom of an element-wise expression: the least of its normal texts over all index orders."""
    indices = expr_indices(expr)
    spaces = tuple(dict.fromkeys(i.space for i in indices))
    classes = [tuple(i for i in indices if i.space == s) for s in spaces]
    count = 1
    for members in classes:
        for n in range(2, len(members) + 1):
            count *= n
    choices = (
        product(*(permutations(c) for c in classes))
        if count <= _MAX_INDEX_ORDERS
        else iter([tuple(classes)])
    )
    best: str | None = None
    orders: list[tuple[Index, ...]] = []
    for choice in choices:
        order = tuple(i for members in choice for i in members)
        text = _normal_text(expr, {i: n for n, i in enumerate(order)}, complex_values)
        if best is None or text < best:
            best, orders = text, []
        if text == best:
            orders.append(order)
    first = orders[0]
    group = tuple((tuple(first.index(i) for i in order), 1) for order in orders)
    return Atom(f"apply {best}", first, group)


def _normal_text(expr: Expr, numbers: dict[Index, int], complex_values: bool) -> str:
    """The expression as text with numbers for indices and sorted arguments of sums and products."""

    def text(part: Expr) -> str:
        return _normal_text(part, numbers, complex_values)

    match expr:
        case Const(value):
            return str(value)
        case Ref(tensor, indices):
            places = [str(numbers[i]) for i in indices]
            texts = [
                ",".join(places[k] for k in perm)
                for perm, sign in tensor_group(tensor, complex_values)
                if sign == 1
            ]
            return f"{tensor.name}[{min(texts)}]"
        case Delta(left, right):
            pair = sorted((numbers[left], numbers[right]))
            return f"delta[{pair[0]},{pair[1]}]"
        case Sum(args):
            return f"+({' '.join(sorted(text(a) for a in args))})"
        case Prod(args):
            return f"*({' '.join(sorted(text(a) for a in args))})"
        case Quot(num, den):
            return f"/({text(num)} {text(den)})"
        case Pow(base, exponent):
            return f"^({text(base)} {exponent})"
        case Call(function, arg):
            return f"{function}({text(arg)})"
        case Calls(function, args):
            return f"{function}({' '.join(map(text, args))})"
        case Infinity(sign):
            return f"inf({sign})"
        case Access() | Equal():
            return str(expr)
        case _:
            assert_never(expr)

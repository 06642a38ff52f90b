"""Factors as atoms of the canonical form: labels and symmetry groups of references and Apply."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from itertools import permutations, product
from typing import assert_never

from ...errors import TcgenError
from ...ir.expr import Access, Call, Const, Delta, Equal, Expr, Pow, Prod, Quot, Sum, expr_indices
from ...ir.system import Apply, Factor
from ...ir.tensor import Index, Ref, Symmetry, Tensor, symmetry_group
from ..permutation_groups import Group
from .canonical_product import Atom

_MOST_LABELLINGS = 720  # of an Apply's indices; beyond, its symmetry is not looked for


@lru_cache(maxsize=100_000)
def tensor_group(tensor: Tensor, complex_values: bool) -> Group:
    """All (perm, sign) under which a tensor is unchanged.

    A hermitian exchange counts only where conj is the identity: the tensor or the program is real.
    """
    generators = tensor.symmetry
    if not complex_values:
        generators = tuple(Symmetry(s.perm, s.sign) for s in generators)
    try:
        group = symmetry_group(replace(tensor, symmetry=generators))
    except ValueError as error:
        raise TcgenError(
            f"{error} in a real program: drop one, or compile for complex128"
        ) from None
    return tuple((s.perm, s.sign) for s in group if not s.conj)


def atom_of(factor: Factor, complex_values: bool) -> Atom:
    """The factor as an atom; an Apply's axes are its distinct indices."""
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
    """Atom of an element-wise expression: the least of its normal forms over index labellings."""
    indices = expr_indices(expr)
    spaces = tuple(dict.fromkeys(i.space for i in indices))
    classes = [tuple(i for i in indices if i.space == s) for s in spaces]
    count = 1
    for members in classes:
        for n in range(2, len(members) + 1):
            count *= n
    choices = (
        product(*(permutations(c) for c in classes))
        if count <= _MOST_LABELLINGS
        else iter([tuple(classes)])
    )
    best: str | None = None
    orders: list[tuple[Index, ...]] = []
    for choice in choices:
        order = tuple(i for members in choice for i in members)
        text = _normal(expr, {i: n for n, i in enumerate(order)}, complex_values)
        if best is None or text < best:
            best, orders = text, []
        if text == best:
            orders.append(order)
    first = orders[0]
    group = tuple((tuple(first.index(i) for i in order), 1) for order in orders)
    return Atom(f"apply {best}", first, group)


def _normal(expr: Expr, numbers: dict[Index, int], complex_values: bool) -> str:
    """The expression as text, indices as numbers, arguments of sums and products sorted."""
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
            return "+(" + " ".join(sorted(_normal(a, numbers, complex_values) for a in args)) + ")"
        case Prod(args):
            return "*(" + " ".join(sorted(_normal(a, numbers, complex_values) for a in args)) + ")"
        case Quot(num, den):
            above = _normal(num, numbers, complex_values)
            return f"/({above} {_normal(den, numbers, complex_values)})"
        case Pow(base, exponent):
            return f"^({_normal(base, numbers, complex_values)} {exponent})"
        case Call(function, arg):
            return f"{function}({_normal(arg, numbers, complex_values)})"
        case Access() | Equal():
            return str(expr)
        case _:
            assert_never(expr)

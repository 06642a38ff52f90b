"""Renaming of indices in factors and terms, and replacement of tensors in equations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import assert_never

from .expr import Access, Delta, Equal, Expr, map_leaves
from .system import Apply, Equation, Factor, Term
from .tensor import Index, Ref


def fresh_index(index: Index, taken: set[str]) -> Index:
    """``index`` itself if its name is free, else the same letter with the first free number.

    Example:
        >>> from tcgen.ir.tensor import Space
        >>> fresh_index(Index("i", Space("o")), {"i", "i1"}).name
        'i2'
    """
    if index.name not in taken:
        return index
    letter = index.name.rstrip("0123456789")
    number = 1
    while f"{letter}{number}" in taken:
        number += 1
    return Index(f"{letter}{number}", index.space)


def rename_expr(expr: Expr, names: Mapping[Index, Index]) -> Expr:
    """The expression with indices replaced, all at once."""

    def leaf(node: Ref | Access | Delta | Equal) -> Expr:
        match node:
            case Ref(tensor, indices):
                return Ref(tensor, tuple(names.get(i, i) for i in indices))
            case Delta(left, right):
                return Delta(names.get(left, left), names.get(right, right))
            case Access() | Equal():
                return node
            case _:
                assert_never(node)

    return map_leaves(expr, leaf)


def rename_factor(factor: Factor, names: Mapping[Index, Index]) -> Factor:
    """The factor with indices replaced, all at once."""
    match factor:
        case Ref(tensor, indices):
            return Ref(tensor, tuple(names.get(i, i) for i in indices))
        case Delta(left, right):
            return Delta(names.get(left, left), names.get(right, right))
        case Apply(expr):
            return Apply(rename_expr(expr, names))
        case _:
            assert_never(factor)


def rename_factors(factors: Iterable[Factor], names: Mapping[Index, Index]) -> tuple[Factor, ...]:
    """:func:`rename_factor` for each of ``factors``."""
    return tuple(rename_factor(f, names) for f in factors)


def without_perms(term: Term, lhs: Ref) -> tuple[Term, ...]:
    """The term with its signed permutations written out, one term for each.

    Example:
        >>> from fractions import Fraction
        >>> from tcgen.ir.system import Permutation
        >>> from tcgen.ir.tensor import Role, Space, Tensor
        >>> o = Space("o")
        >>> i, j = Index("i", o), Index("j", o)
        >>> x, y = Tensor("x", (o, o), Role.INPUT), Tensor("y", (o, o), Role.OUTPUT)
        >>> perms = (Permutation(1, (0, 1)), Permutation(-1, (1, 0)))
        >>> term = Term(Fraction(1), (Ref(x, (i, j)),), perms=perms)
        >>> [(str(t.coeff), str(t.factors[0])) for t in without_perms(term, Ref(y, (i, j)))]
        [('1', 'x[i,j]'), ('-1', 'x[j,i]')]
    """
    if not term.perms:
        return (term,)
    result = []
    for perm in term.perms:
        names = {lhs.indices[k]: lhs.indices[image] for k, image in enumerate(perm.images)}
        result.append(
            replace(
                term,
                coeff=term.coeff * perm.sign,
                factors=rename_factors(term.factors, names),
                perms=(),
            )
        )
    return tuple(result)


def replace_refs(equation: Equation, change: Callable[[Ref], Ref]) -> Equation:
    """The equation with every reference replaced, the left side and those in Apply included."""

    def leaf(node: Ref | Access | Delta | Equal) -> Expr:
        return change(node) if isinstance(node, Ref) else node

    def factor(old: Factor) -> Factor:
        match old:
            case Ref():
                return change(old)
            case Delta():
                return old
            case Apply(expr):
                return Apply(map_leaves(expr, leaf))
            case _:
                assert_never(old)

    terms = tuple(replace(t, factors=tuple(factor(f) for f in t.factors)) for t in equation.terms)
    return replace(equation, lhs=change(equation.lhs), terms=terms)

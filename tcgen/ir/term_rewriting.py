"""Rewriting of flat terms: new names for indices, resolved deltas, other tensors.

Front ends, algebra and fusion all rewrite terms with these functions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import assert_never

from .expr import Access, Delta, Equal, Expr, map_leaves
from .system import Apply, Equation, Factor, Term, factor_indices
from .tensor import Index, Ref


def fresh_index(index: Index, taken: Collection[str]) -> Index:
    """``index`` itself if its name is free, else the same letter with the first free number."""
    if index.name not in taken:
        return index
    letter = index.name.rstrip("0123456789")
    number = 1
    while f"{letter}{number}" in taken:
        number += 1
    return Index(f"{letter}{number}", index.space)


def fresh_indices(indices: Iterable[Index], taken: set[str]) -> dict[Index, Index]:
    """:func:`fresh_index` for each of some indices; the new names are added to ``taken``."""
    fresh: dict[Index, Index] = {}
    for index in indices:
        fresh[index] = fresh_index(index, taken)
        taken.add(fresh[index].name)
    return fresh


def rename_expr(expr: Expr, names: Mapping[Index, Index]) -> Expr:
    """The expression with indices replaced, all at once."""

    def leaf(node: Ref | Access | Delta | Equal) -> Expr:
        return node.renamed(names) if isinstance(node, Ref | Delta) else node

    return map_leaves(expr, leaf)


def rename_factor(factor: Factor, names: Mapping[Index, Index]) -> Factor:
    """The factor with indices replaced, all at once."""
    if isinstance(factor, Apply):
        return Apply(rename_expr(factor.expr, names))
    return factor.renamed(names)


def rename_factors(factors: Iterable[Factor], names: Mapping[Index, Index]) -> tuple[Factor, ...]:
    """:func:`rename_factor` for each of ``factors``."""
    return tuple(rename_factor(f, names) for f in factors)


def rename_term(term: Term, names: Mapping[Index, Index]) -> Term:
    """The term with indices replaced, all at once, those that it sums included."""
    return replace(
        term,
        factors=rename_factors(term.factors, names),
        sums=tuple(names.get(i, i) for i in term.sums),
    )


def rename_left(term: Term, old: tuple[Index, ...], new: tuple[Index, ...]) -> Term:
    """The term with the left indices ``old`` replaced by ``new``.

    Summed indices that have a name of ``new`` are renamed: with i for j, ``sum(i) x[j,i]`` becomes
    ``sum(i1) x[i,i1]``.
    """
    if old == new:
        return term
    names = dict(zip(old, new, strict=True))
    taken = {i.name for i in (*new, *term.indices)}
    for index in term.sums:
        if index.name in {i.name for i in new}:
            names[index] = fresh_index(index, taken)
            taken.add(names[index].name)
    return rename_term(term, names)


def rename_equation(equation: Equation, names: Mapping[Index, Index]) -> Equation:
    """The equation with indices replaced, all at once, those of the left side included."""
    return replace(
        equation,
        lhs=replace(equation.lhs, indices=tuple(names.get(i, i) for i in equation.lhs.indices)),
        terms=tuple(rename_term(t, names) for t in equation.terms),
    )


def resolve_deltas(term: Term) -> Term | None:
    """The term without the deltas that renaming can replace; None if a delta makes it zero.

    A delta over a summed index renames that index: ``sum(j) delta[i,j]*x[j]`` is ``x[i]``. The
    delta of an index with itself is 1: ``sum(i) delta[i,i]*x[i]`` is ``sum(i) x[i]``. These deltas
    remain factors: between two left indices, over spaces that only partly overlap, and those whose
    sum is an extent (``sum(i) delta[i,i]``).
    """
    for position, factor in enumerate(term.factors):
        if not isinstance(factor, Delta):
            continue
        left, right = factor.left, factor.right
        if not set(left.space.bases) & set(right.space.bases):
            return None
        others = term.factors[:position] + term.factors[position + 1 :]
        used = {i for f in others for i in factor_indices(f)}
        if left == right:
            if left in used or left not in term.sums:
                return resolve_deltas(replace(term, factors=others))
            continue
        for old, new in ((left, right), (right, left)):
            # A summed ``new`` must be in a factor of the result, or its sum would be lost.
            remains = new not in term.sums or new in used or old in used
            if old in term.sums and remains and old.space.before(new.space) is not None:
                sums = tuple(i for i in term.sums if i != old)
                return resolve_deltas(
                    rename_term(replace(term, factors=others, sums=sums), {old: new})
                )
    return term


def without_perms(term: Term, lhs: Ref) -> tuple[Term, ...]:
    """The term with its signed permutations written out, one term for each.

    Before: ``y[i,j] = perm(+ij -ji) x[i,j]``. After: ``x[i,j]`` and ``-x[j,i]``.
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
    terms = tuple(replace_refs_of_term(t, change) for t in equation.terms)
    return replace(equation, lhs=change(equation.lhs), terms=terms)


def replace_refs_of_term(term: Term, change: Callable[[Ref], Ref]) -> Term:
    """The term with every reference replaced, those in Apply included."""

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

    return replace(term, factors=tuple(factor(f) for f in term.factors))

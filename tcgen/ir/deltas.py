"""Kronecker deltas carried out by renaming summed indices."""

from __future__ import annotations

from dataclasses import replace

from .expr import Delta
from .system import Term, factor_indices
from .term_rewriting import rename_factors


def resolve_deltas(term: Term) -> Term | None:
    """The term with each delta over a summed index carried out; None if a delta makes it zero.

    A delta between two left indices, or over partly overlapping spaces, stays a factor.

    Example:
        >>> from fractions import Fraction
        >>> from tcgen.ir.tensor import Index, Ref, Role, Space, Tensor
        >>> o = Space("o")
        >>> i, j = Index("i", o), Index("j", o)
        >>> x = Ref(Tensor("x", (o,), Role.INPUT), (j,))
        >>> done = resolve_deltas(Term(Fraction(1), (Delta(i, j), x), (j,)))
        >>> str(done.factors[0]), done.sums
        ('x[i]', ())
    """
    for position, factor in enumerate(term.factors):
        if not isinstance(factor, Delta):
            continue
        left, right = factor.left, factor.right
        if not set(left.space.bases) & set(right.space.bases):
            return None
        others = term.factors[:position] + term.factors[position + 1 :]
        held = {i for f in others for i in factor_indices(f)}
        if left == right:
            if left in held or left not in term.sums:
                return resolve_deltas(replace(term, factors=others))
            continue
        for old, new in ((left, right), (right, left)):
            free = old in term.sums and old.space.before(new.space) is not None
            if free and (new in held or old in held or new not in term.sums):
                return resolve_deltas(
                    replace(
                        term,
                        factors=rename_factors(others, {old: new}),
                        sums=tuple(i for i in term.sums if i != old),
                    )
                )
    return term

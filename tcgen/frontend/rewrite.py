"""Changes to flat terms that front ends share: other left indices, tensors given by blocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import assert_never

from ..errors import Span
from ..ir.expr import Access, Call, Const, Delta, Equal, Expr, Prod, map_leaves
from ..ir.system import Apply, Factor, Term
from ..ir.tensor import Index, Ref
from ..ir.term_rewriting import fresh_index, rename_term, resolve_deltas
from .blocks import Family, image
from .source import Problems


def to_letters(term: Term, old: tuple[Index, ...], new: tuple[Index, ...]) -> Term:
    """The term with left indices ``old`` written as ``new``; summed indices give way.

    Example:
        >>> from tcgen.ir.tensor import Role, Space, Tensor
        >>> o = Space("o")
        >>> i, j, x = Index("i", o), Index("j", o), Tensor("x", (o, o), Role.INPUT)
        >>> term = Term(Fraction(1), (Ref(x, (j, i)),), (i,))
        >>> [str(f) for f in to_letters(term, (j,), (i,)).factors]
        ['x[i,i1]']
    """
    if old == new:
        return term
    mapping = dict(zip(old, new, strict=True))
    taken = {i.name for i in (*new, *term.indices)}
    for index in term.sums:
        if index.name in {i.name for i in new}:
            mapping[index] = fresh_index(index, taken)
            taken.add(mapping[index].name)
    return rename_term(term, mapping)


def resolve_blocks(
    term: Term, lhs: tuple[Index, ...], families: Mapping[str, Family], problems: Problems
) -> list[Term]:
    """The term with tensors that are given by blocks read from their blocks.

    An index of a joined space on such a tensor runs over the parts one by one. A left index cannot
    do so: it is replaced by a summed index of the part and a delta of both.

    Args:
        term: a flat term.
        lhs: left indices of its equation.
        families: tensors given by blocks, by name.
        problems: receives blocks that cannot be reached.
    """
    joined = _joined_index(term, families)
    if joined is None:
        return [_read_blocks(term, families, problems)]
    result = []
    for base in joined.space.bases:
        taken = {i.name for i in (*lhs, *term.indices)}
        part = fresh_index(Index(f"{joined.name}_{base.name}", base), taken)
        narrow = rename_term(term, {joined: part})
        if joined in lhs:
            factors = (Delta(joined, part), *narrow.factors)
            narrow = replace(narrow, factors=factors, sums=(*narrow.sums, part))
        resolved = resolve_deltas(narrow)
        if resolved is not None:
            result += resolve_blocks(resolved, lhs, families, problems)
    return result


def _joined_index(term: Term, families: Mapping[str, Family]) -> Index | None:
    for ref in term.refs:
        if ref.tensor.name in families:
            for index in ref.indices:
                if index.space.parts:
                    return index
    return None


def _read_blocks(term: Term, families: Mapping[str, Family], problems: Problems) -> Term:
    """All its references are to base blocks: signs go into the coefficient."""

    def block(ref: Ref) -> tuple[int, Expr]:
        if ref.tensor.name not in families:
            return 1, ref
        return _block_read(ref, families[ref.tensor.name], term.span, problems)

    def leaf(item: Ref | Access | Delta | Equal) -> Expr:
        if not isinstance(item, Ref):
            return item
        sign, read = block(item)
        return read if sign > 0 else Prod((Const(Fraction(-1)), read))

    coeff, factors = term.coeff, list[Factor]()
    for factor in term.factors:
        match factor:
            case Ref():
                sign, read = block(factor)
                coeff *= sign
                factors.append(read if isinstance(read, Ref) else Apply(read))
            case Delta():
                factors.append(factor)
            case Apply(expr):
                factors.append(Apply(map_leaves(expr, leaf)))
            case _:
                assert_never(factor)
    return replace(term, coeff=coeff, factors=tuple(factors))


def _block_read(
    ref: Ref, family: Family, span: Span | None, problems: Problems
) -> tuple[int, Expr]:
    """Sign and place of the elements of ``ref`` in a given block."""
    spaces = tuple(i.space for i in ref.indices)
    found = image(family, spaces)
    if found is None:
        block = "".join(s.name for s in spaces)
        names = " ".join(t.name for t in family.members)
        problems.add(
            span or Span("", 1, 1),
            f"{ref} needs block {ref.tensor.name}_{block}, which the given blocks do not reach",
            f"given: {names or 'none'}; add {block} to blocks, or declare the symmetry",
        )
        return 1, ref
    tensor, symmetry = found
    read = Ref(tensor, tuple(ref.indices[k] for k in symmetry.perm))
    return symmetry.sign, Call("conj", read) if symmetry.conj else read

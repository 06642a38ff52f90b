"""Tensors on joined spaces that are given by blocks: v_oovv, v_ovov, ..."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import assert_never

from ..errors import Span
from ..ir.expr import Access, Call, Const, Delta, Equal, Expr, Prod, map_leaves
from ..ir.reduction import Reduction
from ..ir.system import Apply, Factor, Term
from ..ir.tensor import Index, Ref, Space, Symmetry, Tensor, generators, symmetry_group
from ..ir.term_rewriting import fresh_index, rename_term, resolve_deltas
from .source import Problems


@dataclass(frozen=True, slots=True)
class Family:
    """A tensor, which no program stores, and the blocks of it that are given.

    ``group`` is the tensor's symmetry group, identity first, elements without conjugation before
    the rest. A member has those symmetries that map it to itself. With ``others_zero`` blocks that
    no symmetry maps to a given one are zero.
    """

    parent: Tensor
    group: tuple[Symmetry, ...]
    members: tuple[Tensor, ...]
    others_zero: bool = False


def family_of(
    parent: Tensor, blocks: tuple[tuple[Space, ...], ...], *, others_zero: bool = False
) -> Family:
    """The family of ``parent`` with the given blocks, named ``parent_xyz`` after their spaces.

    Example:
        >>> from tcgen.ir.tensor import Role
        >>> o, v = Space("o"), Space("v")
        >>> p = Space("p", parts=(o, v))
        >>> f = Tensor("f", (p, p), Role.INPUT, symmetry=(Symmetry((1, 0)),))
        >>> [(t.name, t.symmetry) for t in family_of(f, ((o, o), (o, v))).members]
        [('f_oo', (Symmetry(perm=(1, 0), sign=1, conj=False),)), ('f_ov', ())]
    """
    group = tuple(sorted(symmetry_group(parent), key=lambda s: s.conj))
    members = []
    for block in blocks:
        name = f"{parent.name}_{''.join(s.name for s in block)}"
        bare = replace(parent, name=name, spaces=block, symmetry=(), family=parent.name)
        own = generators(bare, (s for s in group if permuted(block, s) == block))
        members.append(replace(bare, symmetry=own))
    return Family(parent, group, tuple(members), others_zero)


def permuted(block: tuple[Space, ...], symmetry: Symmetry) -> tuple[Space, ...]:
    """Spaces of the axes after a symmetry operation."""
    return tuple(block[k] for k in symmetry.perm)


def image(family: Family, spaces: tuple[Space, ...]) -> tuple[Tensor, Symmetry] | None:
    """The given block from which elements with indices of ``spaces`` are read.

    With ``(block, g)``: ``parent[x] == g.sign * block[x[g.perm[0]], x[g.perm[1]], ...]``,
    conjugated if ``g.conj``. None if no symmetry leads to a given block.
    """
    members = {t.spaces: t for t in family.members}
    for symmetry in family.group:
        member = members.get(permuted(spaces, symmetry))
        if member is not None:
            return member, symmetry
    return None


def resolve_blocks(
    term: Term, lhs: tuple[Index, ...], families: Mapping[str, Family], problems: Problems
) -> list[Term]:
    """The term as terms that read tensors given by blocks from their blocks.

    An index of a joined space on such a tensor is replaced by indices of the parts, one term for
    each part. A left index is replaced by a summed index of the part and a delta of both. A block
    that no given block determines is a problem.
    """
    joined = _joined_index(term, families)
    if joined is None:
        if any(_is_zero(factor, families) for factor in term.factors):
            return []
        return [_read_blocks(term, families, problems)]
    if term.reduction is not Reduction.SUM:
        word, space = term.reduction.value, joined.space.name
        message = (
            f"{word} reads a tensor that is given by blocks, with {joined} of the joined {space}"
        )
        advice = f"write the {word} of each block, and combine them"
        problems.add(term.span or Span("", 1, 1), message, advice)
        return []
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


def _is_zero(factor: Factor, families: Mapping[str, Family]) -> bool:
    """True for elements of a block that is declared zero."""
    if not isinstance(factor, Ref) or factor.tensor.name not in families:
        return False
    family = families[factor.tensor.name]
    return family.others_zero and image(family, tuple(i.space for i in factor.indices)) is None


def _read_blocks(term: Term, families: Mapping[str, Family], problems: Problems) -> Term:
    """The term, all of whose references are to base blocks, with signs in the coefficient."""

    def block(ref: Ref) -> tuple[int, Expr]:
        if ref.tensor.name not in families:
            return 1, ref
        return _block_read(ref, families[ref.tensor.name], term.span, problems)

    def leaf(item: Ref | Access | Delta | Equal) -> Expr:
        if not isinstance(item, Ref):
            return item
        if _is_zero(item, families):
            return Const(Fraction(0))
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
    """Sign and elements of a given block that equal those of ``ref``."""
    spaces = tuple(i.space for i in ref.indices)
    reached = image(family, spaces)
    if reached is None:
        block = "".join(s.name for s in spaces)
        names = " ".join(t.name for t in family.members)
        problems.add(
            span or Span("", 1, 1),
            f"{ref} needs block {ref.tensor.name}_{block}, which the given blocks do not determine",
            f"given: {names or 'none'}; add {block} to blocks, or declare the missing symmetry",
        )
        return 1, ref
    tensor, symmetry = reached
    read = Ref(tensor, tuple(ref.indices[k] for k in symmetry.perm))
    return symmetry.sign, Call("conj", read) if symmetry.conj else read

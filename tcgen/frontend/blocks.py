"""Tensors on joined spaces that are given by blocks: v_oovv, v_ovov, ..."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..ir.tensor import Role, Space, Symmetry, Tensor, symmetry_group


@dataclass(frozen=True, slots=True)
class Family:
    """A tensor and the blocks of it that are given.

    Attributes:
        parent: the whole tensor, which no program ever holds.
        group: its symmetry group, identity first, elements without conjugation before the rest.
        members: the given blocks, each with the symmetries of the parent that keep it.
    """

    parent: Tensor
    group: tuple[Symmetry, ...]
    members: tuple[Tensor, ...]


def family_of(parent: Tensor, blocks: tuple[tuple[Space, ...], ...]) -> Family:
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
    members = tuple(
        replace(
            parent,
            name=f"{parent.name}_{''.join(s.name for s in block)}",
            spaces=block,
            symmetry=_generators([s for s in group if permuted(block, s) == block], block),
            family=parent.name,
        )
        for block in blocks
    )
    return Family(parent, group, members)


def permuted(block: tuple[Space, ...], symmetry: Symmetry) -> tuple[Space, ...]:
    """Spaces of the axes after a symmetry operation."""
    return tuple(block[k] for k in symmetry.perm)


def image(family: Family, spaces: tuple[Space, ...]) -> tuple[Tensor, Symmetry] | None:
    """The given block from which elements with indices of ``spaces`` are read.

    With ``(block, g)``: ``parent[x] == g.sign * block[x[g.perm[0]], x[g.perm[1]], ...]``,
    conjugated where ``g.conj``. None where symmetry leads to no given block.
    """
    members = {t.spaces: t for t in family.members}
    for symmetry in family.group:
        found = members.get(permuted(spaces, symmetry))
        if found is not None:
            return found, symmetry
    return None


def _generators(elements: list[Symmetry], block: tuple[Space, ...]) -> tuple[Symmetry, ...]:
    """Few generators of a group given by all its elements, the identity first."""
    made: tuple[Symmetry, ...] = ()
    reached = {elements[0]}
    for element in elements:
        if element not in reached:
            made = (*made, element)
            probe = Tensor("block", block, Role.INPUT, symmetry=made)
            reached = set(symmetry_group(probe))
    return made

"""Tensors on joined spaces that are given by blocks: v_oovv, v_ovov, ..."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..errors import Span
from ..ir.tensor import Role, Space, Symmetry, Tensor, symmetry_group
from .source import Problems
from .spec.syntax import Word


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


def block_family(tensor: Tensor, words: tuple[Word, ...], span: Span, problems: Problems) -> Family:
    """The family that ``blocks oooo ooov ..`` declares.

    Args:
        tensor: the whole tensor, on joined spaces.
        words: names of the blocks, made of the names of base spaces.
        span: place of the tensor's name.
        problems: receives what is wrong.
    """
    if all(not space.parts for space in tensor.spaces):
        advice = "blocks are parts of a joined space: space p = o + v"
        problems.add(span, f"{tensor.name} has no axis on a joined space", advice)
    blocks: list[tuple[Space, ...]] = []
    for word in words:
        found = _spellings(word.text, tensor.spaces)
        if len(found) != 1:
            parts = " ".join("|".join(b.name for b in s.bases) for s in tensor.spaces)
            what = "names no block" if not found else "can be read in several ways as a block"
            message = f"{word.text} {what} of {tensor.name}"
            problems.add(word.span, message, f"one space for each axis: {parts}")
        elif found[0] in blocks:
            problems.add(word.span, f"block {word.text} is named twice", "name each block once")
        else:
            blocks.append(found[0])
    return family_of(tensor, tuple(blocks))


def _spellings(text: str, spaces: tuple[Space, ...]) -> list[tuple[Space, ...]]:
    """All ways to read ``text`` as a base space for each axis."""
    if not spaces:
        return [()] if not text else []
    return [
        (base, *rest)
        for base in spaces[0].bases
        if text.startswith(base.name)
        for rest in _spellings(text[len(base.name) :], spaces[1:])
    ]


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

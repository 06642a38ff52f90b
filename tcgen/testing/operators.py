"""Symmetries and permutation operators for the axes of random tensors."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.system import Permutation
from ..ir.tensor import Index, Space, Symmetry


def exchange(axes: tuple[int, ...], *pairs: tuple[int, int]) -> tuple[int, ...]:
    """The permutation of axes that exchanges each pair.

    Example:
        >>> exchange((0, 1, 2, 3), (0, 1), (2, 3))
        (1, 0, 3, 2)
    """
    image = list(axes)
    for m, n in pairs:
        image[m], image[n] = image[n], image[m]
    return tuple(image)


def symmetry_choices(spaces: tuple[Space, ...]) -> list[tuple[Symmetry, ...]]:
    """Sets of symmetry generators for a tensor with these axes; the first set is empty."""
    axes = tuple(range(len(spaces)))
    choices: list[tuple[Symmetry, ...]] = [()]
    for pair in _pairs(spaces):
        choices += [(Symmetry(exchange(axes, pair), sign),) for sign in (1, -1)]
    if len(spaces) == 4 and spaces[:2] == spaces[2:]:
        choices.append((Symmetry((2, 3, 0, 1)),))
    if len(spaces) == 4 and spaces[0] == spaces[1] and spaces[2] == spaces[3]:
        both = (Symmetry((1, 0, 2, 3), -1), Symmetry((0, 1, 3, 2), -1))
        choices += [both, (Symmetry((1, 0, 3, 2)),)]
        if spaces[0] == spaces[2]:
            choices.append((*both, Symmetry((2, 3, 0, 1))))
    return choices


def operator_choices(left: Sequence[Index]) -> list[tuple[Permutation, ...]]:
    """Operators P and S over left indices, each with the identity; the first choice is empty.

    They are exchanges of one pair with either sign, exchanges of two pairs at once (``S(ia,jb)``),
    products of two antisymmetrisers (``P(i,j) P(a,b)``), and cyclic sums over three neighbours,
    which are groups without exchanges.
    """
    axes = tuple(range(len(left)))
    identity = Permutation(1, axes)
    pairs = _pairs([i.space for i in left])
    choices: list[tuple[Permutation, ...]] = [()]
    for pair in pairs:
        choices += [(identity, Permutation(s, exchange(axes, pair))) for s in (-1, 1)]
    for k, one in enumerate(pairs):
        for two in pairs[k + 1 :]:
            if not set(one) & set(two):
                both = Permutation(1, exchange(axes, one, two))
                single = [Permutation(-1, exchange(axes, pair)) for pair in (one, two)]
                choices += [(identity, both), (identity, *single, both)]
    for k in axes[:-2]:
        if left[k].space == left[k + 1].space == left[k + 2].space:
            cycles = ((0, 1, 2), (1, 2, 0), (2, 0, 1))
            images = [axes[:k] + tuple(k + m for m in c) + axes[k + 3 :] for c in cycles]
            choices.append(tuple(Permutation(1, image) for image in images))
    return choices


def symmetry_of(perms: tuple[Permutation, ...]) -> tuple[Symmetry, ...]:
    """Symmetry of a sum under an operator of :func:`operator_choices`; empty for cyclic sums."""
    generators = []
    for p in perms:
        axes = tuple(range(len(p.images)))
        if tuple(p.images[k] for k in p.images) != axes:
            return ()
        if p.images != axes:
            generators.append(Symmetry(p.images, p.sign))
    return tuple(generators)


def _pairs(spaces: Sequence[Space]) -> list[tuple[int, int]]:
    """Pairs of axes of equal space."""
    axes = range(len(spaces))
    return [(m, n) for m in axes for n in axes[m + 1 :] if spaces[m] == spaces[n]]

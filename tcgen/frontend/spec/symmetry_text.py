"""Symmetry of a tensor in the words of the .spec language."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ...ir.tensor import Symmetry, Tensor, symmetry_group


def symmetry_text(tensor: Tensor) -> tuple[str, list[str]]:
    """Attributes that declare a tensor's symmetry, and what they cannot say.

    Returns:
        Text such as `` antisymmetric (0,1) (2,3)``, starting with a blank, and one sentence for
        each generator that the language has no word for (it is a promise; leaving it out loses
        operations, not values).

    Example:
        >>> from tcgen.ir.tensor import Role, Space
        >>> o = Space("o")
        >>> swaps = (Symmetry((1, 0, 2, 3), -1), Symmetry((0, 1, 3, 2), -1))
        >>> symmetry_text(Tensor("t", (o, o, o, o), Role.INPUT, symmetry=swaps))
        (' antisymmetric (0,1) (2,3)', [])
    """
    if not tensor.symmetry:
        return "", []
    whole = set(symmetry_group(tensor))
    chosen: list[_Phrase] = []
    reached: set[Symmetry] = set(symmetry_group(replace(tensor, symmetry=())))
    for phrase in _phrases(tensor):
        if phrase.symmetry not in whole or phrase.symmetry in reached:
            continue
        chosen.append(phrase)
        reached = set(symmetry_group(replace(tensor, symmetry=_all(chosen))))
        if reached == whole:
            break
    text = ""
    for word in ("symmetric", "antisymmetric", "symmetry", "hermitian"):
        axes = [p.axes for p in chosen if p.word == word]
        text += f" {word} {' '.join(axes)}" if axes else ""
    left_out = []
    for symmetry in tensor.symmetry:
        if symmetry not in reached and not (tensor.real and symmetry.conj):
            sign = "-" if symmetry.sign < 0 else ""
            left_out.append(
                f"{tensor.name} also equals {sign}{tensor.name} with its axes taken in the order "
                f"{symmetry.perm}, which has no word here"
            )
    return text, left_out


@dataclass(frozen=True, slots=True)
class _Phrase:
    word: str
    axes: str
    symmetry: Symmetry


def _all(phrases: list[_Phrase]) -> tuple[Symmetry, ...]:
    return tuple(p.symmetry for p in phrases)


def _phrases(tensor: Tensor) -> Iterator[_Phrase]:
    """Everything the language can say about this many axes: pairs first, then exchanges."""
    rank, spaces = tensor.rank, tensor.spaces
    for gap in range(1, rank):
        for first in range(rank - gap):
            second = first + gap
            if spaces[first] == spaces[second]:
                perm = _swapped(rank, ((first, second),))
                axes = f"({first},{second})"
                yield _Phrase("symmetric", axes, Symmetry(perm))
                yield _Phrase("antisymmetric", axes, Symmetry(perm, -1))
    involutions = [s for s in symmetry_group(tensor) if _pairs(s.perm)]
    for symmetry in sorted(involutions, key=lambda s: (s.conj, s.perm)):
        if symmetry.sign == 1:
            pairs = _pairs(symmetry.perm)
            left, right = (",".join(str(p[k]) for p in pairs) for k in (0, 1))
            word = "hermitian" if symmetry.conj else "symmetry"
            yield _Phrase(word, f"({left})<->({right})", symmetry)


def _swapped(rank: int, pairs: tuple[tuple[int, int], ...]) -> tuple[int, ...]:
    perm = list(range(rank))
    for first, second in pairs:
        perm[first], perm[second] = second, first
    return tuple(perm)


def _pairs(perm: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """Pairs that an involution exchanges; () where it is none, or the identity."""
    pairs = tuple((k, image) for k, image in enumerate(perm) if k < image)
    return pairs if _swapped(len(perm), pairs) == perm else ()

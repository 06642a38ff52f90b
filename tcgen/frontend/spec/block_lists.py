"""Families of blocks as the spec writes them."""

from __future__ import annotations

from ...errors import Span
from ...ir.tensor import Space, Tensor
from ..blocks import Family, family_of
from ..source import Problems
from .syntax import Word


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

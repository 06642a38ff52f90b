"""Lists of blocks in declarations: ``blocks oooo ooov``."""

from __future__ import annotations

from ...errors import Span
from ...ir.tensor import Space
from ..blocks import Family, family_of
from ..source import Problems
from .attributes import Declared


def block_family(declared: Declared, span: Span, problems: Problems) -> Family:
    """The family that ``blocks oooo ooov ..`` declares.

    Args:
        declared: the whole tensor, on joined spaces, and its blocks, whose names are made of the
            names of base spaces.
        span: place of the tensor's name.
        problems: receives errors.
    """
    tensor = declared.tensor
    if all(not space.parts for space in tensor.spaces):
        advice = "declare a joined space, such as p = o + v, for its axes"
        problems.add(span, f"{tensor.name} has no axis on a joined space", advice)
    blocks: list[tuple[Space, ...]] = []
    for word in declared.blocks:
        readings = _readings(word.text, tensor.spaces)
        if len(readings) != 1:
            parts = " ".join("|".join(b.name for b in s.bases) for s in tensor.spaces)
            what = "is not a block" if not readings else "is an ambiguous name for a block"
            message = f"{word.text} {what} of {tensor.name}"
            problems.add(word.span, message, f"name one space for each axis: {parts}")
        elif readings[0] in blocks:
            problems.add(word.span, f"block {word.text} is named twice", "name each block once")
        else:
            blocks.append(readings[0])
    return family_of(tensor, tuple(blocks), others_zero=declared.others_zero)


def _readings(text: str, spaces: tuple[Space, ...]) -> list[tuple[Space, ...]]:
    """All readings of ``text`` as a base space for each axis."""
    if not spaces:
        return [()] if not text else []
    return [
        (base, *rest)
        for base in spaces[0].bases
        if text.startswith(base.name)
        for rest in _readings(text[len(base.name) :], spaces[1:])
    ]

"""Contractions that do not change under an exchange of indices, so that half of them is enough.

Reads level 2. Lowering to a CPU computes one of each pair if that saves more than its copies cost,
and predicted times include it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from math import prod

from ..thresholds import CpuThresholds
from .exchange_symmetry import exchange_images
from .program import Contract, FormulaSequence, Step
from .tensor import Index, Ref


@dataclass(frozen=True, slots=True)
class Exchange:
    """A contraction is multiplied by ``sign`` (1 or -1) when ``images`` rename its variables.

    These are all exchanged variables of the target with their new names, ``first`` and ``second``
    included, which are in the same factor only. ``saved`` are the flops of the half that is not
    computed, minus the cost of the copies in flops.
    """

    first: str
    second: str
    images: tuple[tuple[str, str], ...]
    sign: int
    saved: int


def exchange_of(
    program: FormulaSequence, step: Step, extents: Mapping[str, int], thresholds: CpuThresholds
) -> Exchange | None:
    """The exchange that halves a contraction which shares no loop; None if no exchange pays."""
    if not isinstance(step.op, Contract):
        return None
    best: Exchange | None = None
    for factor in (step.op.a, step.op.b):
        other = step.op.b if factor is step.op.a else step.op.a
        alone = [i for i in step.out.indices if i in factor.indices and i not in other.indices]
        for pair in combinations(alone, 2):
            saved = _saved(step, pair, factor, other, extents, thresholds)
            if saved <= 0 or (best is not None and saved <= best.saved):
                continue
            proven = exchange_images(program, step, pair)
            if proven is not None:
                named = tuple((i.name, j.name) for i, j in proven[0].items())
                best = Exchange(pair[0].name, pair[1].name, named, proven[1], saved)
    return best


def _saved(
    step: Step,
    pair: tuple[Index, Index],
    copied: Ref,
    other: Ref,
    extents: Mapping[str, int],
    thresholds: CpuThresholds,
) -> int:
    """Flops that half of the pairs save, minus the cost of the copies; 0 if a proof cannot pay.

    Half of the factor with the pair is copied, and the result twice. The kernel reads the other
    factor in place, unless that one is packed and has to be unpacked.
    """

    def points(indices: tuple[Index, ...]) -> int:
        return prod(i.space.extent_in(extents) for i in dict.fromkeys(indices))

    flops, one = 2 * points(step.indices), points(pair[:1])
    if pair[0].space != pair[1].space or flops < thresholds.pair_flops or one < 2:
        return 0
    half = flops * (one - 1) // (2 * one)
    moved = points(copied.indices) // 2 + 2 * points(step.out.indices)
    if other.tensor.storage.packed:
        moved += points(other.indices)
    return half - thresholds.pair_copy_flops * moved

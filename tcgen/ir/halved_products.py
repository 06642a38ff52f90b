"""Contractions that do not change under an exchange of indices, so that half of them is enough.

Reads levels 2 and 3. Lowering to a CPU computes one of each pair if that saves more than its copies
cost, and predicted times include it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from math import prod

from ..thresholds import CpuThresholds
from .exchange_symmetry import exchange_images
from .plan import FusionPlan
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

    def renamed(self, names: Mapping[str, str]) -> Exchange:
        """The same exchange with other names of all its variables."""
        images = tuple((names[old], names[new]) for old, new in self.images)
        return replace(self, first=names[self.first], second=names[self.second], images=images)


def exchange_of(
    program: FormulaSequence,
    step: Step,
    extents: Mapping[str, int],
    thresholds: CpuThresholds,
    room: int | None = None,
    looped: Collection[Index] = (),
) -> Exchange | None:
    """The exchange that halves a contraction; None if no exchange pays.

    With ``room``, both copies together have at most so many elements. Shared loops walk the indices
    of ``looped``, which are not those of the pair.
    """
    if not isinstance(step.op, Contract):
        return None
    best: Exchange | None = None
    for factor in (step.op.a, step.op.b):
        other = step.op.b if factor is step.op.a else step.op.a
        alone = [i for i in step.out.indices if i in factor.indices and i not in other.indices]
        alone = [i for i in alone if i not in looped]
        for pair in combinations(alone, 2):
            saved = _saved(step, pair, factor, other, extents, thresholds, room)
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
    room: int | None,
) -> int:
    """Flops that half of the pairs save, minus the cost of the copies; 0 if a proof cannot pay.

    Half of the factor with the pair is copied, and the result twice. The kernel reads the other
    factor in place, unless that one is packed and has to be unpacked. Without an exchange, all
    packed factors are unpacked.
    """

    def points(indices: tuple[Index, ...]) -> int:
        return prod(i.space.extent_in(extents) for i in dict.fromkeys(indices))

    flops, one = 2 * points(step.indices), points(pair[:1])
    if pair[0].space != pair[1].space or flops < thresholds.pair_flops or one < 2:
        return 0
    half = flops * (one - 1) // (2 * one)
    copies = (points(copied.indices) + points(step.out.indices)) * (one + 1) // (2 * one)
    if room is not None and copies > room:
        return 0
    moved = points(copied.indices) // 2 + 2 * points(step.out.indices)
    unpacked = sum(points(r.indices) for r in (copied, other) if r.tensor.storage.packed)
    if other.tensor.storage.packed:
        moved += points(other.indices)
    return half - thresholds.pair_copy_flops * max(0, moved - unpacked)


def looped_indices(plan: FusionPlan, position: int) -> frozenset[Index] | None:
    """Indices of a visit that shared loops walk; None if it cannot be halved inside its loops.

    Half of a target that is whole is added to elements of other passes of the loops. Each pass
    therefore walks other elements of the target, which no visit inside the loops reads or zeroes.
    """
    visit = plan.visits[position]
    out = plan.program.steps[visit.step].out
    array = plan.instance(out.tensor, position)
    looped = frozenset(index for index, _ in visit.bind)
    if not visit.loops:
        return looped
    if visit.redundant or not looped <= set(out.indices) or any(o.order_after for o in visit.loops):
        return None
    if array is None or array.contracted or array.home is not None:
        return None
    inside = [n for n, v in enumerate(plan.visits) if v.loops[:1] == visit.loops[:1]]
    read = {r.tensor for n in inside for r in plan.program.steps[plan.visits[n].step].operands}
    begun = not out.tensor.accumulate and plan.makers(array)[0] in inside
    return None if begun or out.tensor in read else looped

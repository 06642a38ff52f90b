"""Statements that are repeated in loops for which they have no index, to contract more axes.

    for f: for c: (T[c] = ...;  X[c,f] = T[c] * ...)      T is recomputed for each f

Such a statement *follows* a loop use of a reader of its array into the reader's loop. Then every
producer and every reader of the array is in that loop, and each iteration computes the array anew.
"""

from __future__ import annotations

from collections.abc import Collection

from ...ir.tensor import Index, Role, Tensor
from ..sharing.candidates import FusionCandidates, build_candidates
from ..sharing.dependences import (
    IndexPairs,
    Instance,
    LoopUse,
    bare_instances,
    find_dependences,
    index_pairs_of,
)
from ..sharing.graph import FusionGraph, step_of


def candidates_with_repeats(
    graph: FusionGraph, shrinking: Collection[Tensor] | None = None, *, repeat: bool = True
) -> FusionCandidates:
    """The fusion candidates of a program if statements may be repeated.

    Args:
        graph: of the program.
        shrinking: arrays that may be contracted; None: all.
        repeat: False: statements are only in loops of their own indices.

    Source: Cociorva et al., space-time trade-off by redundant loops (PLDI 2002), here as conditions
    on loop uses.
    """
    bare = bare_instances(graph)
    index_pairs = index_pairs_of(graph, bare)
    repeats: dict[LoopUse, LoopUse] = {}
    if repeat:
        for instance in sorted(bare, key=lambda i: -min(i.producers, default=0)):
            _repeat(graph, instance, index_pairs, repeats)
    dependences = find_dependences(graph, bare, index_pairs)
    return build_candidates(graph, bare, dependences, repeats, shrinking)


def _repeat(
    graph: FusionGraph,
    instance: Instance,
    index_pairs: dict[tuple[int, int], IndexPairs],
    repeats: dict[LoopUse, LoopUse],
) -> None:
    """Let the producers of an array follow the loops of its first reader that are not its axes.

    Further readers must be in the same loop, by any loop use that is not an axis of the array.
    """
    if instance.array.role is Role.OUTPUT or instance.persistent or not instance.consumers:
        return
    first, *others = instance.consumers
    for origin in _other_uses(graph, instance, first, repeats):
        for maker in instance.producers:
            follower = (maker, Index(f"{origin[1].name}'{first}", origin[1].space))
            repeats[follower] = origin
            pairs = {(follower[1], origin[1])}
            index_pairs[maker, first] = index_pairs[maker, first] | pairs
            for other in others:
                pairs = {
                    (follower[1], index)
                    for _, index in _other_uses(graph, instance, other, repeats)
                    if index.space == origin[1].space
                }
                index_pairs[maker, other] = index_pairs[maker, other] | pairs


def _other_uses(
    graph: FusionGraph, instance: Instance, reader: int, repeats: dict[LoopUse, LoopUse]
) -> list[LoopUse]:
    """Loop uses of a reader that are not axes of the array, repeated ones included."""
    step = step_of(graph, reader)
    axes = {i for r in step.operands if r.tensor == instance.array for i in r.indices}
    own = [(reader, index) for index in step.indices if index not in axes]
    return [*own, *(use for use in repeats if use[0] == reader)]

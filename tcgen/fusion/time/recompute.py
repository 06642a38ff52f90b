"""Statements that are repeated in a loop for which they have no index, so that more may shrink.

    for f: for c: (T[c] = ...;  X[c,f] = T[c] * ...)      T is computed again for each f

A statement follows a walk of a reader of its array: it may stand in that reader's loop. Then every
producer and every reader of the array stands in that loop, where the array starts afresh.
"""

from __future__ import annotations

from collections.abc import Collection

from ...ir.tensor import Index, Role, Tensor
from ..sharing.candidates import Sharing, connected
from ..sharing.dependences import (
    Allowed,
    Instance,
    Walk,
    bare_instances,
    carried_walks,
    dependences,
)
from ..sharing.graph import FusionGraph, step_of


def sharing_with_repeats(
    graph: FusionGraph, shrinking: Collection[Tensor] | None = None, *, repeat: bool = True
) -> Sharing:
    """What a program allows where statements may be repeated.

    Args:
        graph: of the program.
        shrinking: arrays that may shrink; None: all.
        repeat: False leaves every statement in loops of its own indices only.

    Source: Cociorva et al., space-time trade-off by redundant loops (PLDI 2002), as rules on walks.
    """
    bare = bare_instances(graph)
    carried = carried_walks(graph, bare)
    repeats: dict[Walk, Walk] = {}
    if repeat:
        for instance in sorted(bare, key=lambda i: -min(i.producers, default=0)):
            _repeat(graph, instance, carried, repeats)
    needs = dependences(graph, bare, carried)
    return connected(graph, bare, needs, repeats, shrinking)


def _repeat(
    graph: FusionGraph,
    instance: Instance,
    carried: dict[tuple[int, int], Allowed],
    repeats: dict[Walk, Walk],
) -> None:
    """Let the producers of an array follow the loops of its first reader that it has no axis for.

    Further readers must be in the same loop, by any walk that the array has no axis for.
    """
    if instance.array.role is Role.OUTPUT or instance.kept or not instance.consumers:
        return
    first, *others = instance.consumers
    for origin in _beside(graph, instance, first, repeats):
        for maker in instance.producers:
            follower = (maker, Index(f"{origin[1].name}'{first}", origin[1].space))
            repeats[follower] = origin
            pairs = {(follower[1], origin[1])}
            carried[maker, first] = carried[maker, first] | pairs
            for other in others:
                pairs = {
                    (follower[1], index)
                    for _, index in _beside(graph, instance, other, repeats)
                    if index.space == origin[1].space
                }
                carried[maker, other] = carried[maker, other] | pairs


def _beside(
    graph: FusionGraph, instance: Instance, reader: int, repeats: dict[Walk, Walk]
) -> list[Walk]:
    """Walks of a reader that are no axis of the array, repeated ones included."""
    step = step_of(graph, reader)
    axes = {i for r in step.operands if r.tensor == instance.array for i in r.indices}
    own = [(reader, index) for index in step.indices if index not in axes]
    return [*own, *(walk for walk in repeats if walk[0] == reader)]

"""Predicted seconds of parts, statement by statement, from the manifest.

It is the model of the objective ``time``: a statement takes its flops at the rate of the machine,
less in a product with a short m, n or k, its bytes that pass between memory and caches, and a call.
The objective predicts the steps of a plan; here are the statements that became of them, with copies
and triangles, and with the lengths of the last tiles.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from math import prod

from ..artifact.manifest import Manifest
from ..artifact.parts import SpanEntry, StatementEntry, iterations
from ..artifact.sizes import array_bytes
from ..dtypes import BY_NAME
from .parts import runs_in

_PICOSECONDS = 10**12
# m, n and k of a matrix product at which it reaches half of the machine's flops.
_HALF_RATES = (2, 2, 4)
_Lengths = Mapping[str, int]  # elements of the tile of each variable of the chain


def predicted_seconds(
    manifest: Manifest, first: int, last: int, extents: Mapping[str, int]
) -> float:
    """Predicted time of the volatile phase's parts ``first .. last - 1`` in one call.

    Args:
        manifest: of the program.
        first: number of the first part.
        last: number after the last part.
        extents: of the base spaces.
    """
    if first >= last:
        return 0.0
    extent = partial(manifest.extent, extents=extents)
    machine = dict(manifest.machine)
    passing = {
        b.name: BY_NAME[b.dtype].itemsize
        for b in manifest.buffers
        if b.place == "caller" or 2 * array_bytes(b, manifest, extents) > machine["cache"]
    }
    runs = _runs(manifest, first, last, extent)
    total = 0
    for statement in manifest.statements:
        if not runs_in(statement.share, first):
            continue
        own = runs if statement.share == "iteration" else {(): 1}
        for lengths, times in own.items():
            one = _picoseconds(statement, dict(lengths), extent, machine, passing)
            total += times * one
    return total / _PICOSECONDS


def _runs(
    manifest: Manifest, first: int, last: int, extent: Callable[[str], int]
) -> Mapping[tuple[tuple[str, int], ...], int]:
    """How many iterations of some parts have tiles of which lengths."""
    if manifest.parts is None:
        return {}
    chain = manifest.parts.chain
    ends = {loop.variable: (extent(loop.space), loop.tile or 1) for loop in chain}
    runs: Counter[tuple[tuple[str, int], ...]] = Counter()
    for values in iterations(chain, extent, first, last):
        runs[tuple((n, min(ends[n][1], ends[n][0] - low)) for n, low in values.items())] += 1
    return runs


def _picoseconds(
    statement: StatementEntry,
    tiles: _Lengths,
    extent: Callable[[str], int],
    machine: Mapping[str, int],
    passing: Mapping[str, int],
) -> int:
    """Time of a statement in one iteration of the chain, or outside of it."""

    def length(span: SpanEntry) -> int:
        if span.variable is not None:
            return tiles[span.variable]
        whole = extent(span.space)
        return whole if span.length is None else min(span.length, whole)

    calls = prod(-(-extent(s.space) // (s.length or 1)) for s in statement.loops)
    lengths = [[length(span) for span in group] for group in statement.groups]
    flat = [n for group in lengths for n in group]
    points = calls * prod(flat) >> statement.halves
    slow, fast = 1, 1
    if len(lengths) == 1 + len(_HALF_RATES):  # the batch, m, n and k
        sizes = [prod(group) for group in lengths[1:]]
        slow = prod(n + half for n, half in zip(sizes, _HALF_RATES, strict=True))
        fast = max(1, prod(sizes))
    flops = machine["generated"] if statement.flops is None else statement.flops
    held = sum(
        passing.get(o.buffer, 0) * o.passes * prod(flat[n] for n in o.spans)
        for o in statement.operands
    )
    return (
        points * flops * slow * _PICOSECONDS // (fast * machine["flops"])
        + calls * held * _PICOSECONDS // machine["bandwidth"]
        + calls * machine["call"] * 1000
    )

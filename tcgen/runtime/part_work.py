"""Flops and predicted seconds of parts, statement by statement, from the manifest.

The prediction is that of the objective ``time``, by the same model of a machine. The objective
predicts the steps of a plan; here are the statements that became of them, with copies and
triangles, and with the lengths of the last tiles.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import prod

from ..artifact.manifest import Manifest, SpanEntry, StatementEntry, array_bytes
from ..dtypes import BY_NAME
from ..records.parts import count_iterations, iterations
from ..thresholds.time_model import (
    NEST_CACHE_RATE,
    NEST_ELEMENT_FLOPS,
    NEST_STATEMENT_PICOSECONDS,
    PICOSECONDS_PER_SECOND,
    Machine,
    ProductSize,
    launch_cycles,
)
from .parts import runs_in

_LONG_K = 2**12  # points of k beyond which a tile's time grows with those that follow
_PRODUCT = 4  # groups of the loops of a matrix product: the batch, m, n and k


def predicted_seconds(
    manifest: Manifest, first: int, last: int, extents: Mapping[str, int]
) -> float:
    """Predicted time of the volatile phase's parts ``first .. last - 1`` in one call."""
    machine = Machine(**dict(manifest.machine))
    works = _works_of_parts(manifest, first, last, extents)
    return _seconds(manifest, machine, extents, works)


def longest_seconds(manifest: Manifest, extents: Mapping[str, int]) -> float:
    """Predicted time of the volatile phase of a call, as if every tile were full.

    It does not walk the iterations, so it takes as long for large extents as for small ones.
    """
    machine = Machine(**dict(manifest.machine))
    chain = () if manifest.parts is None else manifest.parts.chain
    whole = tuple((c.name, min(c.tile or 1, c.space.extent_in(extents))) for c in chain)
    runs = {whole: count_iterations(chain, extents)} if chain else {}
    return _seconds(manifest, machine, extents, _works(manifest, 0, extents, runs))


def _seconds(
    manifest: Manifest,
    machine: Machine,
    extents: Mapping[str, int],
    works: Iterator[tuple[_Work, int]],
) -> float:
    passing = _passing(manifest, machine, extents)
    picoseconds = sum(
        work.picoseconds(machine, passing, manifest.dtype, times) for work, times in works
    )
    return picoseconds / PICOSECONDS_PER_SECOND


def executed_flops(manifest: Manifest, first: int, last: int, extents: Mapping[str, int]) -> int:
    """Flops of the volatile phase's parts ``first .. last - 1`` in one call."""
    works = _works_of_parts(manifest, first, last, extents)
    return sum(times * work.points * (work.statement.flops or 0) for work, times in works)


@dataclass(frozen=True, slots=True)
class _Work:
    """A statement at some lengths of the tiles of the chain, with the loops around it.

    It runs ``calls`` times in an iteration of the chain, or outside of it; ``lengths`` has those of
    the spans of its groups. Of the iterations of one launch, those that come first have the launch.
    """

    statement: StatementEntry
    calls: int
    lengths: tuple[tuple[int, ...], ...]
    launches: bool = True

    @property
    def points(self) -> int:
        """Points of all calls."""
        return self.calls * prod(map(prod, self.lengths)) >> self.statement.halves

    def _by_block(
        self, machine: Machine, passing: Mapping[str, int], dtype: str, times: int
    ) -> int:
        """Time of a statement that blocks compute, each with a multiprocessor for itself."""
        alone = replace(machine, multiprocessors=1)
        points, slowness = prod(map(prod, self.lengths)), (1, 1)
        flops = points * NEST_ELEMENT_FLOPS
        if len(self.lengths) == _PRODUCT:
            batch, m, n, k = (max(1, prod(group)) for group in self.lengths)
            slowness = alone.slowness(batch, m, n, k, dtype=dtype)
            flops = points * (self.statement.flops or 0)
        block = alone.picoseconds(flops, slowness, 0, 0) * machine.multiprocessors
        calls = self.calls * times
        waves = -(-calls // machine.multiprocessors)
        launches = int(self.launches and self.statement.by_block == "first")
        loaded = calls * self._held(passing) // NEST_CACHE_RATE
        busy = waves * (block + NEST_STATEMENT_PICOSECONDS)
        return busy + machine.picoseconds(0, (1, 1), loaded, launches)

    def _by_tiles(self, machine: Machine, dtype: str) -> int:
        """Time of one call of a product by tiles of a GPU; later terms only add their products."""
        assert self.statement.tile is not None
        batch, m, n, k = (prod(group) for group in self.lengths)
        element = BY_NAME[dtype]
        size = ProductSize(batch, m, n, k, element.parts**2)
        before = _LONG_K if self.statement.shares else 0
        cycles, start = (
            launch_cycles(self.statement.tile, replace(size, k=k), element, machine.multiprocessors)
            for k in (before + size.k, before)
        )
        cycles -= start if before else 0
        return int(cycles * PICOSECONDS_PER_SECOND / machine.cycles_per_second)

    def _across(self) -> int:
        """Loads of one call that take a line each."""
        points = prod(map(prod, self.lengths))
        return points * sum(o.across for o in self.statement.operands)

    def _held(self, passing: Mapping[str, int]) -> int:
        """Bytes of one call that pass between memory and caches."""
        flat = [n for group in self.lengths for n in group]
        return sum(
            passing.get(o.buffer, 0) * o.passes * prod(flat[n] for n in o.spans)
            for o in self.statement.operands
        )

    def picoseconds(
        self, machine: Machine, passing: Mapping[str, int], dtype: str, times: int
    ) -> int:
        """Time of all calls of ``times`` iterations.

        ``passing`` has the bytes of an element of each buffer that passes between memory and
        caches.
        """
        slowness, launches = (1, 1), 0 if self.statement.shares else self.calls
        if self.statement.by_block != "no" and machine.multiprocessors:
            return self._by_block(machine, passing, dtype, times)
        if self.statement.tile is not None and machine.multiprocessors:
            launched = machine.picoseconds(0, (1, 1), 0, launches)
            computed = self.calls * self._by_tiles(machine, dtype) >> self.statement.halves
            return times * (launched + computed)
        if len(self.lengths) == _PRODUCT:
            batch, m, n, k = (max(1, prod(group)) for group in self.lengths)
            slowness = machine.slowness(batch, m, n, k, dtype=dtype)
        given = self.statement.flops
        flops = machine.generated if given is None else given
        moved = self.calls * self._held(passing)
        lines = int(self.calls * self._across() * machine.picoseconds_per_line)
        return times * (lines + machine.picoseconds(self.points * flops, slowness, moved, launches))


def _passing(manifest: Manifest, machine: Machine, extents: Mapping[str, int]) -> dict[str, int]:
    """Bytes of an element of each buffer that is too large to stay in a cache."""
    return {
        b.name: BY_NAME[b.dtype].itemsize
        for b in manifest.buffers
        if b.place == "caller" or not machine.caches(array_bytes(b, manifest, extents))
    }


def _works_of_parts(
    manifest: Manifest, first: int, last: int, extents: Mapping[str, int]
) -> Iterator[tuple[_Work, int]]:
    """Statements of some parts at lengths of tiles, and the number of iterations with them."""
    if first >= last:
        return iter(())
    return _works(manifest, first, extents, _runs(manifest, first, last, extents))


def _works(
    manifest: Manifest,
    first: int,
    extents: Mapping[str, int],
    runs: Mapping[tuple[tuple[str, int], ...], int],
) -> Iterator[tuple[_Work, int]]:
    """Statements in iterations of the chain; ``runs`` counts them by the lengths of tiles."""
    for statement in manifest.statements:
        if not runs_in(statement.share, first):
            continue
        calls = prod(-(-s.space.extent_in(extents) // (s.length or 1)) for s in statement.loops)
        own = runs if statement.share == "iteration" else {(): 1}
        for number, (tiles, times) in enumerate(own.items()):
            length = partial(_length, tiles=dict(tiles), extents=extents)
            lengths = tuple(tuple(map(length, group)) for group in statement.groups)
            yield _Work(statement, calls, lengths, launches=not number), times


def _length(span: SpanEntry, tiles: Mapping[str, int], extents: Mapping[str, int]) -> int:
    """Elements of a span."""
    if span.variable is not None:
        return tiles[span.variable]
    whole = span.space.extent_in(extents)
    return whole if span.length is None else min(span.length, whole)


def _runs(
    manifest: Manifest, first: int, last: int, extents: Mapping[str, int]
) -> Mapping[tuple[tuple[str, int], ...], int]:
    """Number of iterations of some parts by the lengths of their tiles."""
    if manifest.parts is None:
        return {}
    chain = manifest.parts.chain
    ends = {v.name: (v.space.extent_in(extents), v.tile or 1) for v in chain}
    runs: Counter[tuple[tuple[str, int], ...]] = Counter()
    for values in iterations(chain, extents, first, last):
        runs[tuple((n, min(ends[n][1], ends[n][0] - low)) for n, low in values.items())] += 1
    return runs

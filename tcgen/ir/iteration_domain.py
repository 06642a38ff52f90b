"""Points of loops, counted exactly: tiles with their tails, triangles, and loops inside both.

Before: ``for t in 0, 4, .. < N: for u in 0, 4, .. <= t: for i in the tile of t``. After: the number
of points at given extents, and a polynomial in the extents that is exact if tiles divide them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import comb
from typing import TypeAlias

from .cost import ZERO, Poly
from .tensor import Space


@dataclass(frozen=True, slots=True)
class Range:
    """The values of one loop variable: start, start + ``step``, ..., below an end.

    The start is 0, or the value of ``base``, the loop over tiles in which this one runs. The end is
    the least of ``fixed`` plus the extents of the base ``spaces``, start + ``tile``, and the value
    of ``bound`` plus ``past``, where ``bound`` bounds this variable in a triangle. ``past`` is 1 if
    the values of the two may be equal, else 0; for tiles it may be larger. A loop over tiles has
    their length as its step. ``base`` and ``bound`` are positions in the domain.
    """

    spaces: tuple[str, ...] = ()
    fixed: int = 0
    step: int = 1
    base: int | None = None
    tile: int | None = None
    bound: int | None = None
    past: int = 0

    @property
    def outer(self) -> tuple[int, ...]:
        """Positions of the variables on which the values depend."""
        return tuple(p for p in (self.base, self.bound) if p is not None)


Domain: TypeAlias = tuple[Range, ...]
"""Variables from the outermost to the innermost; each depends on earlier ones only."""


def is_sound(domain: Domain, spaces: Container[str]) -> bool:
    """True if every variable depends on earlier ones only, and all spaces are known."""
    return all(
        r.step >= 1
        and (r.tile is None or r.tile >= 1)
        and all(name in spaces for name in r.spaces)
        and all(0 <= place < n for place in r.outer)
        for n, r in enumerate(domain)
    )


def points(domain: Domain, extents: Mapping[str, int]) -> int:
    """The number of points at given extents of the base spaces.

    Example:
        >>> row = Range(("o",))
        >>> points((row, Range(("o",), bound=0, past=1)), {"o": 4})
        10
        >>> tiles = Range(("o",), step=3)
        >>> points((tiles, Range(("o",), base=0, tile=3)), {"o": 4}), points((tiles,), {"o": 4})
        (4, 2)
    """
    total = 1
    for part in connected(domain):
        rows = tuple(
            (
                r.fixed + sum(extents[s] for s in r.spaces),
                r.step,
                -1 if r.base is None else r.base,
                -1 if r.tile is None else r.tile,
                -1 if r.bound is None else r.bound,
                r.past,
            )
            for r in part
        )
        if len(rows) == 1:
            total *= _single(*rows[0][:2], rows[0][3])
        elif len({r.spaces for r in part}) == 1:
            total *= _extrapolated(rows)
        else:
            total *= _count(rows)
        if not total:
            return 0
    return total


Row: TypeAlias = tuple[int, int, int, int, int, int]
"""A range at given extents: length, step, base, tile, bound, past; -1 stands for None."""


def _single(length: int, step: int, tile: int) -> int:
    """Values of a variable that depends on no other one."""
    stop = length if tile < 0 else min(length, tile)
    return max(0, -(-stop // step))


def _extrapolated(rows: tuple[Row, ...]) -> int:
    """Points of variables over one space, in little time also at large extents.

    At extents that differ by whole tiles the number is a polynomial in the number of tiles, of the
    degree of the number of variables: Newton's formula gives it from its first values.
    """
    most, tile = max(row[0] for row in rows), max(row[1] for row in rows)
    degree, first = len(rows), 4
    # Tiles beyond those of the first sample.
    far = most // tile - first
    if far <= degree + 1:
        return _count(rows)
    samples = [
        _count(tuple((row[0] - (far - n) * tile, *row[1:]) for row in rows))
        for n in range(degree + 1)
    ]
    total = 0
    for order in range(degree + 1):
        total += comb(far, order) * samples[0]
        samples = [b - a for a, b in pairwise(samples)]
    return total


@lru_cache(maxsize=10_000)
def _count(rows: tuple[Row, ...]) -> int:
    """Points of variables that depend on each other.

    The state after a variable is the number of points for all values of the variables on which
    later ones depend. A run of values is added by its two ends, so that a chain of triangular loops
    takes time in proportion to its extent.
    """
    last = {p: n for n, row in enumerate(rows) for p in (row[2], row[4]) if p >= 0}
    live: list[int] = []
    states: dict[tuple[int, ...], int] = {(): 1}
    for n, (length, step, base, tile, bound, past) in enumerate(rows):
        kept = [p for p in live if last[p] > n]
        places = [live.index(p) for p in kept]
        ended: dict[tuple[int, ...], int] = defaultdict(int)
        runs: dict[tuple[int, ...], dict[int, int]] = defaultdict(lambda: defaultdict(int))
        for state, count in states.items():
            start = state[live.index(base)] if base >= 0 else 0
            stop = length if tile < 0 else min(length, start + tile)
            if bound >= 0:
                stop = min(stop, state[live.index(bound)] + past)
            values = -(-(stop - start) // step)
            if values <= 0:
                continue
            rest = tuple(state[p] for p in places)
            if n in last:
                runs[rest][start // step] += count
                runs[rest][start // step + values] -= count
            else:
                ended[rest] += count * values
        if n not in last:
            live, states = kept, dict(ended)
            continue
        live, states = [*kept, n], {}
        for rest, changes in runs.items():
            count, at = 0, sorted(changes)
            for here, then in pairwise(at):
                count += changes[here]
                if count:
                    states |= {(*rest, value * step): count for value in range(here, then)}
    return sum(states.values())


@lru_cache(maxsize=10_000)
def polynomial(domain: Domain) -> Poly:
    """The number of points as a polynomial in the extents, exact if tiles divide them."""
    total = Poly.of(1)
    depth: dict[int, int] = {}
    for n, r in enumerate(domain):
        if r.tile is not None:
            total = total * Poly.of(r.tile)
            continue
        length = _length(r) * Poly.of(Fraction(1, r.step))
        if r.bound is not None:
            # The r-th variable of a chain multiplies N (N+1)/2 ... by (N + r - 1)/r.
            rank = depth[n] = depth.get(r.bound, 1) + 1
            more = (rank - 1) * (r.past or -1)
            length = (length + Poly.of(more)) * Poly.of(Fraction(1, rank))
        total = total * length
    return total


def _length(r: Range) -> Poly:
    return sum((Poly.of(1, (Space(name),)) for name in r.spaces), ZERO) + Poly.of(r.fixed)


def distinct(domain: Domain, wanted: Iterable[int]) -> Domain:
    """The domain of a subset of the variables: each of their values once.

    Before: ``i, j <= i, k <= j``, with i and k in ``wanted``. After: ``i, k <= i``. A loop over
    tiles stays if one of these variables runs over its elements, which determine the tile. The
    other variables are assumed to have values.
    """
    kept = set(wanted)
    kept |= {r.base for n, r in enumerate(domain) if n in kept and r.base is not None}
    ranges = list(domain)
    for n, gone in enumerate(ranges):
        if n in kept:
            continue
        for m in range(n + 1, len(ranges)):
            if ranges[m].bound == n:
                ranges[m] = _without(ranges[m], gone)
            if ranges[m].base == n:
                # Without the variable of the tiles, the elements of all tiles remain.
                ranges[m] = replace(
                    ranges[m], base=None, tile=None, bound=gone.bound, past=ranges[m].tile or 1
                )
    return _renumbered(ranges, [n for n in range(len(ranges)) if n in kept])


def _renumbered(ranges: Sequence[Range], order: Sequence[int]) -> Domain:
    """Some ranges as a domain of their own; they depend only on each other."""
    place = {n: position for position, n in enumerate(order)}
    return tuple(
        replace(
            ranges[n],
            base=None if ranges[n].base is None else place[ranges[n].base or 0],
            bound=None if ranges[n].bound is None else place[ranges[n].bound or 0],
        )
        for n in order
    )


def _without(inner: Range, gone: Range) -> Range:
    """The values of a variable if the one that bounds it takes every value."""
    if gone.bound is not None:
        return replace(inner, bound=gone.bound, past=gone.past - 1 + inner.past)
    if gone.base is not None:
        return replace(inner, bound=gone.base, past=(gone.tile or 1) - 1 + inner.past)
    return replace(inner, bound=None, past=0, fixed=inner.fixed + min(0, inner.past - 1))


@lru_cache(maxsize=10_000)
def connected(domain: Domain) -> tuple[Domain, ...]:
    """Sets of variables that depend on each other, as domains of their own."""
    part: list[int] = []
    for n, r in enumerate(domain):
        mine = {part[p] for p in r.outer}
        part.append(min(mine, default=n))
        part = [min(mine) if p in mine else p for p in part]
    return tuple(
        _renumbered(domain, [n for n in range(len(domain)) if part[n] == first])
        for first in dict.fromkeys(part)
    )

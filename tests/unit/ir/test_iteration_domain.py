"""Points of loops, counted one by one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from tcgen.ir.iteration_domain import Domain, Range, distinct, points, polynomial

O = ("o",)
TILED = Range(O, step=3)
DOMAINS: dict[str, Domain] = {
    "triangle": (Range(O), Range(O, bound=0, past=1), Range(O, bound=1, past=1)),
    "no diagonal": (Range(O), Range(O, bound=0)),
    "tile": (TILED, Range(("v",)), Range(O, base=0, tile=3)),
    "triangle of tiles": (
        TILED,
        Range(O, step=3, bound=0, past=1),
        Range(O, base=0, tile=3),
        Range(O, base=1, tile=3),
    ),
    "triangle in a tile": (TILED, Range(O, base=0, tile=3), Range(O, bound=1, past=1)),
    "tiles of tiles": (
        Range(O, step=2),
        Range(O, step=2, bound=0, past=1),
        Range(O, step=2, bound=1, past=1),
        Range(O, base=2, tile=2),
        Range(O, base=2, tile=2),
    ),
    "joined, shortened": (Range(O, fixed=-1), Range(("v", "o")), Range(fixed=4)),
}


def values(domain: Domain, extents: dict[str, int]) -> Iterator[tuple[int, ...]]:
    """All points, as nested loops visit them."""

    def inside(at: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(at) == len(domain):
            yield at
            return
        r = domain[len(at)]
        start = 0 if r.base is None else at[r.base]
        stop = r.fixed + sum(extents[s] for s in r.spaces)
        if r.tile is not None:
            stop = min(stop, start + r.tile)
        if r.bound is not None:
            stop = min(stop, at[r.bound] + r.past)
        for value in range(start, stop, r.step):
            yield from inside((*at, value))

    return inside(())


@pytest.mark.parametrize("name", DOMAINS)
def test_points_are_those_of_the_loops(name: str) -> None:
    """From empty spaces, over tails of tiles, to extents where Newton's formula takes over."""
    domain = DOMAINS[name]
    for o in (*range(14), 23, 29):
        extents = {"o": o, "v": 2}
        counted = sum(1 for _ in values(domain, extents))
        assert points(domain, extents) == counted
        if o % 6 == 0 and o:
            assert polynomial(domain).value(extents) == counted


def test_large_extents_take_no_time() -> None:
    n = 10**9
    extents = {"o": n, "v": 2}
    assert points(DOMAINS["triangle"], extents) == n * (n + 1) * (n + 2) // 6
    tiles, last = n // 3, n % 3
    whole = 9 * tiles * (tiles + 1) // 2
    assert points(DOMAINS["triangle of tiles"], extents) == whole + last * (3 * tiles + last)


@pytest.mark.parametrize("name", [n for n in DOMAINS if n not in ("no diagonal",)])
def test_distinct_values_of_some_variables(name: str) -> None:
    domain = DOMAINS[name]
    for count in range(1, len(domain) + 1):
        for wanted in itertools.combinations(range(len(domain)), count):
            for o in (2, 3, 7):
                extents = {"o": o, "v": 2}
                found = {tuple(at[n] for n in wanted) for at in values(domain, extents)}
                assert points(distinct(domain, wanted), extents) == len(found)

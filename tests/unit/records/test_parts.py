"""Numbers of iterations: those of the loops in the order in which they run."""

from __future__ import annotations

import pytest

from tcgen.records.loops import LoopVar
from tcgen.records.parts import count_iterations, iterations
from tcgen.records.tensors import Space

O, Q, V = Space("o"), Space("q"), Space("v")
PAIR = (LoopVar("i", O, 3), LoopVar("j", O, 3, "i"))
TRIPLE = (*PAIR, LoopVar("k", O, 3, "j"))
MIXED = (LoopVar("q", Q), *TRIPLE, LoopVar("a", V, 2), LoopVar("b", V, 2, "a"))


def as_they_run(chain: tuple[LoopVar, ...], extents: dict[str, int]) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = [()]
    for loop in chain:
        found = [
            (*outer, value)
            for outer in found
            for value in range(0, extents[loop.space.name], loop.tile or 1)
            if not loop.below or value <= outer[-1]
        ]
    return found


@pytest.mark.parametrize("chain", [PAIR[:1], PAIR, TRIPLE, MIXED])
@pytest.mark.parametrize("extent", [0, 1, 3, 8])
def test_iterations_from_any_number_are_those_of_the_loops(
    chain: tuple[LoopVar, ...], extent: int
) -> None:
    extents = {"o": extent, "q": 2, "v": 5}
    expected = as_they_run(chain, extents)
    count = count_iterations(chain, extents)
    assert count == len(expected)
    for first in range(count + 1):
        last = first + 4
        found = iterations(chain, extents, first, last)
        assert [tuple(values.values()) for values in found] == expected[first:last]

"""Parts of a program: ranges of the numbered iterations of nested loops.

Iterations are numbered in the order of execution. Neighbouring loops of a triangle, i >= j >= k,
have C(n+2, 3) iterations for n values of i.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import comb, prod

from .loops import LoopVar


@dataclass(frozen=True, slots=True)
class Parts:
    """Division of the volatile phase: each part runs some iterations of its outermost loops.

    A part has the numbers ``first .. last - 1``. The outputs of parts that have each number once
    add up to those of the whole phase: every output is zero before a part unless it adds to the
    caller's array. Statements outside of the chain belong to every part, except those of ``once``.

    Attributes:
        chain: variables of the outermost loops, each directly inside the one before: loops of the
            host, or of one kernel. Their iterations write elements of their own, or add.
        cleared: buffers, other than outputs, that iterations of the chain add to or write, and
            later statements read: a part sets them to zero before the chain.
        once: kernels whose results belong only to the part with iteration 0.
        kernel: kernel with the chain, which takes the first number and the end after its host
            variables; None for loops of the host.
    """

    chain: tuple[LoopVar, ...]
    cleared: tuple[str, ...] = ()
    once: tuple[str, ...] = ()
    kernel: str | None = None


def triangles(chain: Sequence[LoopVar]) -> tuple[int, ...]:
    """Numbers of neighbouring loops that make a triangle: (3, 1) for ``i >= j >= k`` and ``l``."""
    sizes: list[int] = []
    for loop in chain:
        if loop.below is not None and sizes:
            sizes[-1] += 1
        else:
            sizes.append(1)
    return tuple(sizes)


def count_iterations(chain: Sequence[LoopVar], extents: Mapping[str, int]) -> int:
    """Number of iterations of a chain at extents of the base spaces; one for each tile."""
    return prod(_sizes(chain, extents))


def iterations(
    chain: Sequence[LoopVar], extents: Mapping[str, int], first: int, last: int
) -> Iterator[Mapping[str, int]]:
    """Values of the loop variables in the iterations ``first .. last - 1``, in order.

    Example:
        >>> from tcgen.records.tensors import Space
        >>> o = Space("o")
        >>> chain = (LoopVar("i", o), LoopVar("j", o, below="i"))
        >>> [tuple(v.values()) for v in iterations(chain, {"o": 9}, 1, 4)]
        [(1, 0), (1, 1), (2, 0)]
    """
    last = min(last, count_iterations(chain, extents))
    if first >= last:
        return
    steps = _steps_of(chain, extents, first)
    ends = [_steps(loop, extents) for loop in chain]
    for _ in range(first, last):
        yield {c.name: n * (c.tile or 1) for c, n in zip(chain, steps, strict=True)}
        for place in reversed(range(len(chain))):
            steps[place] += 1
            inside = place and chain[place].below is not None
            if steps[place] < (steps[place - 1] + 1 if inside else ends[place]):
                break
            steps[place] = 0


def _steps(loop: LoopVar, extents: Mapping[str, int]) -> int:
    """Iterations of a loop that is not inside a triangle."""
    return -(-loop.space.extent_in(extents) // (loop.tile or 1))


def _sizes(chain: Sequence[LoopVar], extents: Mapping[str, int]) -> list[int]:
    """Iterations of each triangle of a chain."""
    sizes, place = [], 0
    for depth in triangles(chain):
        sizes.append(comb(_steps(chain[place], extents) + depth - 1, depth))
        place += depth
    return sizes


def _steps_of(chain: Sequence[LoopVar], extents: Mapping[str, int], number: int) -> list[int]:
    """The iteration of each loop that has a number."""
    steps: list[int] = []
    sizes = _sizes(chain, extents)
    for n, depth in enumerate(triangles(chain)):
        inner = prod(sizes[n + 1 :])
        rank, number = divmod(number, inner)
        for left in range(depth, 0, -1):
            step = rank if left == 1 else 0
            while comb(step + left, left) <= rank:
                step += 1
            steps.append(step)
            rank -= comb(step + left - 1, left)
    return steps

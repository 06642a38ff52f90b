"""Parts of a program as plain data: numbered iterations, their accesses and statements.

Iterations are numbered in the order of execution. Neighbouring loops of a triangle, i >= j >= k,
have C(n+2, 3) iterations for n values of i.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import comb, prod
from typing import Literal, TypeAlias

from ..records.loops import LoopVar

# The parts that run a statement: those with its iterations, every part, or the one with number 0.
Share: TypeAlias = Literal["iteration", "every", "first"]


@dataclass(frozen=True, slots=True)
class SpanEntry:
    """A run of elements of an axis or of a loop.

    Attributes:
        space: name of the space.
        variable: loop variable of the chain with its first element; None for element 0.
        length: maximum number of elements; None for all of the space.
        offset: base spaces of the axis before ``space``.
    """

    space: str
    variable: str | None = None
    length: int | None = None
    offset: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TouchEntry:
    """Elements of an argument or result, one span for each logical axis."""

    tensor: str
    written: bool
    share: Share
    axes: tuple[SpanEntry, ...]


@dataclass(frozen=True, slots=True)
class OperandEntry:
    """An array of a statement.

    Attributes:
        buffer: name of the buffer.
        spans: numbers of its spans among those of all groups of the statement.
        passes: number of times that each element is read or written.
    """

    buffer: str
    spans: tuple[int, ...]
    passes: int


@dataclass(frozen=True, slots=True)
class StatementEntry:
    """A statement of the volatile phase, for the prediction of time.

    Attributes:
        share: parts that run it.
        loops: loops around it, without those of the chain.
        groups: groups of its own loops: m, n, k and the batch of a matrix product; else one.
        halves: number of triangles among all loops: each leaves half of the points.
        flops: flops of a point; None for a generated input.
        operands: read and written arrays.
    """

    share: Share
    loops: tuple[SpanEntry, ...]
    groups: tuple[tuple[SpanEntry, ...], ...]
    halves: int
    flops: int | None
    operands: tuple[OperandEntry, ...]


@dataclass(frozen=True, slots=True)
class PartsEntry:
    """Division of the volatile phase, as in the level of modules.

    Attributes:
        chain: the numbered loops, outermost first.
        kernel: kernel with these loops, which takes the first and the end of the numbers after its
            host variables; None for loops of the host.
        cleared: buffers that a part sets to zero before its loops.
        once: kernels that run only in the part with number 0.
        touches: elements of arguments and results that both phases read and write.
    """

    chain: tuple[LoopVar, ...]
    kernel: str | None
    cleared: tuple[str, ...]
    once: tuple[str, ...]
    touches: tuple[TouchEntry, ...]


def triangles(below: Sequence[bool]) -> tuple[int, ...]:
    """Numbers of neighbouring loops that make a triangle, outermost first.

    Example:
        >>> triangles([False, True, True, False])
        (3, 1)
    """
    sizes: list[int] = []
    for inside in below:
        if inside and sizes:
            sizes[-1] += 1
        else:
            sizes.append(1)
    return tuple(sizes)


def count_iterations(chain: Sequence[LoopVar], extent: Callable[[str], int]) -> int:
    """Number of iterations of a chain at some extents.

    Example:
        >>> from tcgen.records.tensors import Space
        >>> chain = (LoopVar("i0", Space("o"), 3), LoopVar("j0", Space("o"), 3, "i0"))
        >>> count_iterations(chain, {"o": 10}.__getitem__)
        10
    """
    return prod(_sizes(chain, extent), start=1)


def _sizes(chain: Sequence[LoopVar], extent: Callable[[str], int]) -> list[int]:
    """Iterations of each triangle of a chain."""
    sizes, place = [], 0
    for depth in triangles([loop.below is not None for loop in chain]):
        loop = chain[place]
        steps = -(-extent(loop.space.name) // (loop.tile or 1))
        sizes.append(comb(steps + depth - 1, depth))
        place += depth
    return sizes


def iterations(
    chain: Sequence[LoopVar], extent: Callable[[str], int], first: int, last: int
) -> Iterator[Mapping[str, int]]:
    """Values of the loop variables in the iterations ``first .. last - 1``, in order.

    Example:
        >>> from tcgen.records.tensors import Space
        >>> chain = (LoopVar("i", Space("o")), LoopVar("j", Space("o"), None, "i"))
        >>> [tuple(v.values()) for v in iterations(chain, {"o": 9}.__getitem__, 1, 4)]
        [(1, 0), (1, 1), (2, 0)]
    """
    last = min(last, count_iterations(chain, extent))
    if first >= last:
        return
    steps = _steps_of(chain, extent, first)
    ends = [-(-extent(loop.space.name) // (loop.tile or 1)) for loop in chain]
    for _ in range(first, last):
        yield {c.name: n * (c.tile or 1) for c, n in zip(chain, steps, strict=True)}
        for place in reversed(range(len(chain))):
            steps[place] += 1
            bounded = chain[place].below is not None
            if steps[place] < (steps[place - 1] + 1 if bounded else ends[place]):
                break
            steps[place] = 0


def _steps_of(chain: Sequence[LoopVar], extent: Callable[[str], int], number: int) -> list[int]:
    """The iteration of each loop that has a number."""
    steps: list[int] = []
    sizes = _sizes(chain, extent)
    for n, depth in enumerate(triangles([loop.below is not None for loop in chain])):
        inner = prod(sizes[n + 1 :])
        rank, number = divmod(number, inner)
        for left in range(depth, 0, -1):
            step = rank if left == 1 else 0
            while comb(step + left, left) <= rank:
                step += 1
            steps.append(step)
            rank -= comb(step + left - 1, left)
    return steps

"""Blocks of a closed shell as combinations of those with as many alpha as beta spins.

A tensor that no rotation of the spins changes, with n axes in and n axes out, is the sum over the
permutations P of the outgoing axes of a spin-free tensor for P times the product of deltas of the
spins that P brings together. A block is therefore a vector of the permutations that match its
spins, and blocks that depend linearly on others need no array.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import permutations

from .labels import Flow, Pattern


def is_balanced(pattern: Pattern, flow: Flow) -> bool:
    """True if alpha and beta spins enter equally often, or one of them once more."""
    entering = [x for x, f in zip(pattern, flow, strict=True) if f > 0]
    return abs(2 * entering.count("a") - len(entering)) <= 1


@lru_cache(maxsize=10_000)
def balanced_blocks(pattern: Pattern, flow: Flow) -> tuple[tuple[Fraction, Pattern], ...]:
    """A conserving block as the sum of numbers times balanced blocks with the same indices.

    Example:
        >>> [(str(c), block) for c, block in balanced_blocks("aaaa", (1, 1, -1, -1))]
        [('1', 'abab'), ('1', 'abba')]
        >>> [(str(c), block) for c, block in balanced_blocks("aaaaaa", (1, 1, 1, -1, -1, -1))]
        [('1', 'aabaab'), ('1', 'aababa'), ('1', 'aabbaa')]
    """
    if is_balanced(pattern, flow):
        return ((Fraction(1), pattern),)
    entering = [k for k, f in enumerate(flow) if f > 0]
    leaving = [k for k, f in enumerate(flow) if f < 0]
    upper, lower = ("".join(pattern[k] for k in axes) for axes in (entering, leaving))
    blocks = []
    for number, *sides in _combination(upper, lower):
        spins = list(pattern)
        for axes, letters in zip((entering, leaving), sides, strict=True):
            for axis, letter in zip(axes, letters, strict=True):
                spins[axis] = letter
        blocks.append((number, "".join(spins)))
    return tuple(blocks)


@lru_cache(maxsize=1000)
def _combination(upper: str, lower: str) -> tuple[tuple[Fraction, str, str], ...]:
    """Balanced blocks whose matching permutations add up to those of a block, by elimination."""
    rows: list[tuple[int, list[Fraction], dict[int, Fraction]]] = []  # pivot, vector, combination
    blocks: list[tuple[str, str]] = []
    goal, used = _reduced(_matching(upper, lower), {}, rows)
    for block in _balanced(len(upper)):
        if not any(goal):
            break
        blocks.append(block)
        vector, made_of = _reduced(_matching(*block), {len(blocks) - 1: Fraction(1)}, rows)
        if any(vector):
            pivot = next(k for k, x in enumerate(vector) if x)
            rows.append((pivot, vector, made_of))
            goal, used = _reduced(goal, used, rows[-1:])
    assert not any(goal), "balanced blocks span all invariants"
    return tuple((-used[n], *blocks[n]) for n in sorted(used) if used[n])


def _reduced(
    vector: list[Fraction],
    made_of: dict[int, Fraction],
    rows: list[tuple[int, list[Fraction], dict[int, Fraction]]],
) -> tuple[list[Fraction], dict[int, Fraction]]:
    """A vector less multiples of the rows, so that it is 0 at their pivots, and its blocks."""
    made_of = dict(made_of)
    for pivot, row, blocks in rows:
        factor = vector[pivot] / row[pivot]
        if factor:
            vector = [x - factor * y for x, y in zip(vector, row, strict=True)]
            for n, number in blocks.items():
                made_of[n] = made_of.get(n, Fraction(0)) - factor * number
    return vector, made_of


def _balanced(pairs: int) -> Iterator[tuple[str, str]]:
    """Balanced blocks in alphabetical order; one of two that differ by a flip of all spins."""
    letters = "a" * ((pairs + 1) // 2) + "b" * (pairs // 2)
    spins = sorted({"".join(p) for p in permutations(letters)})
    flipped = pairs % 2 == 0
    return ((u, low) for u in spins if not (flipped and u[0] == "b") for low in spins)


def _matching(upper: str, lower: str) -> list[Fraction]:
    """For each permutation of the lower spins: 1 if it makes them equal to the upper ones."""
    orders = permutations(range(len(upper)))
    return [Fraction(all(u == lower[p] for u, p in zip(upper, o, strict=True))) for o in orders]

"""The cheapest binary order of the factors of a product, by a dynamic program over their subsets.

An index is summed as soon as neither another factor nor the left side holds it, so that
hyper-indices, batch indices, scalars and outer products need no special case. Sets of indices and
of factors are bit masks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any, TypeAlias, TypeVar

Tree: TypeAlias = "int | tuple[Tree, Tree]"  # position of a factor, or two subtrees

C = TypeVar("C", bound=Any)  # a cost: anything with an order


def cheapest_tree(singles: Sequence[C], joined: Callable[[int, int, C, C], C]) -> tuple[C, Tree]:
    """Cost and tree of the cheapest order; of equal orders, the first one.

    ``singles`` has the cost of each factor, and ``joined`` gives that of the product of two subsets
    from the costs of both.

    Example:
        >>> cheapest_tree((0, 0, 0), lambda first, second, one, two: one + two + second)
        (6, ((0, 1), 2))
    """
    full = (1 << len(singles)) - 1
    best: dict[int, tuple[C, Tree]] = {1 << n: (cost, n) for n, cost in enumerate(singles)}
    for subset in range(1, full + 1):
        second = rest = subset & (subset - 1)
        chosen: tuple[C, Tree] | None = None
        while second:
            first = subset ^ second
            (one, left), (two, right) = best[first], best[second]
            cost = joined(first, second, one, two)
            if chosen is None or cost < chosen[0]:
                chosen = cost, (left, right)
            second = (second - 1) & rest
        if chosen is not None:
            best[subset] = chosen
    return best[full]


def outer_indices(held: Sequence[int], left: int) -> list[int]:
    """Indices of the product of each subset: those that the left side or another factor holds."""
    full = (1 << len(held)) - 1
    union = [0] * (full + 1)
    for subset in range(1, full + 1):
        low = subset & -subset
        union[subset] = union[subset ^ low] | held[low.bit_length() - 1]
    return [union[s] & (left | union[full ^ s]) for s in range(full + 1)]


@lru_cache(maxsize=100_000)
def pays_in_one_loop(held: tuple[int, ...], left: int, widths: tuple[int, ...]) -> bool:
    """True if one loop over all indices takes fewer flops than every binary order.

    In one loop a point takes a multiplication for each further factor and an addition; a binary
    product takes a multiply-add at each of its points.

    Example:
        Three vectors, element by element: 3 flops each, and 4 in two products.

        >>> pays_in_one_loop((1, 1, 1), 1, (10,))
        True
    """
    if len(held) < 3:
        return False
    outer, volume = outer_indices(held, left), volumes(widths)

    def joined(first: int, second: int, one: int, two: int) -> int:
        return one + two + 2 * volume(outer[first] | outer[second])

    binary = cheapest_tree([0] * len(held), joined)[0]
    return bool(len(held) * volume((1 << len(widths)) - 1) < binary)


def volumes(widths: Sequence[int]) -> Callable[[int], int]:
    """The number of elements of an array over a set of indices with these extents."""

    @cache
    def volume(indices: int) -> int:
        total = 1
        for index, width in enumerate(widths):
            if indices >> index & 1:
                total *= width
        return total

    return volume


def positions(tree: Tree) -> tuple[int, ...]:
    """Positions of the factors below a node of an order."""
    return (tree,) if isinstance(tree, int) else positions(tree[0]) + positions(tree[1])

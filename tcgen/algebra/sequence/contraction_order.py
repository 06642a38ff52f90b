"""The cheapest binary order of one product, exact unless it has many factors.

A dynamic program over subsets of factors: hyper-indices, batch indices, scalars and outer
products need no special care, since an index is summed as soon as no other factor and not the
left side holds it. Longer products go to opt_einsum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

import opt_einsum as oe

from ...ir.tensor import Index

Tree: TypeAlias = "int | tuple[Tree, Tree]"


def best_order(
    operands: Sequence[tuple[tuple[Index, ...], int]],
    left: tuple[Index, ...],
    extents: Mapping[Index, int],
    exact_factors: int,
) -> Tree:
    """Binary tree over the positions of the operands with the fewest flops.

    Args:
        operands: for each factor its distinct indices and the flops of one element of it (0 for a
            reference, the operation count for an element-wise expression).
        left: indices that survive.
        extents: of every index.
        exact_factors: products of more factors get the greedy order of opt_einsum.

    Returns:
        Nested pairs of positions. Ties go to fewer temporary elements, then to expressions joined
        last, so that they end in the outermost step.

    Example:
        >>> from tcgen.ir.tensor import Space
        >>> i, j, k = (Index(x, Space(x)) for x in "ijk")
        >>> best_order((((i, j), 0), ((j, k), 0), ((k,), 0)), (i,), {i: 9, j: 9, k: 9}, 8)
        (0, (1, 2))
    """
    names: dict[Index, int] = {}
    for indices, _ in operands:
        for index in indices:
            names.setdefault(index, len(names))
    held = tuple(sum(1 << names[i] for i in indices) for indices, _ in operands)
    kept = sum(1 << names[i] for i in left if i in names)
    widths = tuple(extents[i] for i in names)
    weights = tuple(weight for _, weight in operands)
    if len(operands) > exact_factors:
        return _long_order(held, kept, widths)
    tree: Tree = _exact_order(held, kept, widths, weights)
    return tree


@lru_cache(maxsize=100_000)
def _exact_order(
    held: tuple[int, ...], kept: int, widths: tuple[int, ...], weights: tuple[int, ...]
) -> Tree:
    count = len(held)
    full = (1 << count) - 1
    union = [0] * (full + 1)
    for subset in range(1, full + 1):
        low = subset & -subset
        union[subset] = union[subset ^ low] | held[low.bit_length() - 1]
    outer = [0] * (full + 1)
    for subset in range(1, full + 1):
        outer[subset] = union[subset] & (kept | union[full ^ subset])
    points: dict[int, int] = {}

    def volume(mask: int) -> int:
        if mask not in points:
            result = 1
            for k, width in enumerate(widths):
                if mask >> k & 1:
                    result *= width
            points[mask] = result
        return points[mask]

    # subset -> (flops, temporary elements, expressions joined early), tree
    best: dict[int, tuple[tuple[int, int, int], Tree]] = {
        1 << k: ((0, 0, 0), k) for k in range(count)
    }
    for subset in range(1, full + 1):
        if subset in best:
            continue
        low = subset & -subset
        chosen: tuple[tuple[int, int, int], Tree] | None = None
        rest = (subset ^ low) & (subset ^ low)
        part = rest
        while part:
            one, two = subset ^ part, part
            (c1, m1, e1), t1 = best[one]
            (c2, m2, e2), t2 = best[two]
            space = volume(outer[one] | outer[two])
            cost, early = c1 + c2 + 2 * space, e1 + e2
            for side in (one, two):
                if side & (side - 1) == 0:
                    weight = weights[side.bit_length() - 1]
                    cost += weight * min(space, volume(held[side.bit_length() - 1]))
                    early += weight > 0 and subset != full
            memory = m1 + m2 + (volume(outer[subset]) if subset != full else 0)
            rank = (cost, memory, early)
            if chosen is None or rank < chosen[0]:
                chosen = (rank, (t1, t2))
            part = (part - 1) & rest
        assert chosen is not None
        best[subset] = chosen
    return best[full][1]


def _long_order(held: tuple[int, ...], kept: int, widths: tuple[int, ...]) -> Tree:
    """Order of a long product by opt_einsum's greedy path, which is deterministic."""
    bits = range(len(widths))
    inputs = [frozenset(str(k) for k in bits if h >> k & 1) for h in held]
    output = frozenset(str(k) for k in bits if kept >> k & 1)
    path = oe.paths.greedy(inputs, output, {str(k): widths[k] for k in bits})
    trees: list[Tree] = list(range(len(held)))
    for pair in path:
        taken = [trees[p] for p in sorted(pair)]
        trees = [t for p, t in enumerate(trees) if p not in set(pair)]
        tree: Tree = taken[0]
        for other in taken[1:]:
            tree = (tree, other)
        trees.append(tree)
    result: Tree = trees[0]
    for other in trees[1:]:
        result = (result, other)
    return result

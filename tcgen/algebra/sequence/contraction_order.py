"""The cheapest binary order of one product, exact unless it has many factors.

Products of many factors get the greedy order of opt_einsum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

from ...ir.tensor import Index
from ..binary_orders import Tree, cheapest_tree, outer_indices, volumes

_Cost: TypeAlias = tuple[int, int, int]  # flops, temporary elements, early expressions


def best_order(
    operands: Sequence[tuple[tuple[Index, ...], int]],
    left: tuple[Index, ...],
    extents: Mapping[Index, int],
    exact_factors: int,
    runs: Sequence[int] = (),
) -> Tree:
    """Binary tree over the positions of the operands, as nested pairs, with the fewest flops.

    An operand has the distinct indices of a factor, and the flops to compute one of its elements (0
    for a reference, the operation count for an element-wise expression). Products of more than
    ``exact_factors`` factors get the greedy order of opt_einsum. ``runs`` has the number of times
    that each factor changes in the calls: 1 for a constant; by default all change alike. A product
    of constants is computed once. Among orders of equal flops one with fewer temporary elements is
    taken, then one in which expressions are factors of the outermost product.

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
    left_mask = sum(1 << names[i] for i in left if i in names)
    widths = tuple(extents[i] for i in names)
    weights = tuple(weight for _, weight in operands)
    if len(operands) > exact_factors:
        return _greedy_order(held, left_mask, widths)
    tree: Tree = _exact_order(held, left_mask, widths, weights, tuple(runs) or (1,) * len(operands))
    return tree


@lru_cache(maxsize=100_000)
def _exact_order(
    held: tuple[int, ...],
    left: int,
    widths: tuple[int, ...],
    weights: tuple[int, ...],
    runs: tuple[int, ...],
) -> Tree:
    """The optimal order; sets of indices are bit masks."""
    full = (1 << len(held)) - 1
    outer, volume = outer_indices(held, left), volumes(widths)
    most_runs = [
        max((times for k, times in enumerate(runs) if subset >> k & 1), default=0)
        for subset in range(full + 1)
    ]

    def joined(first: int, second: int, one: _Cost, two: _Cost) -> _Cost:
        subset = first | second
        iterations = volume(outer[first] | outer[second])
        flops = one[0] + two[0] + most_runs[subset] * 2 * iterations
        early = one[2] + two[2]
        for side in (first, second):
            if side & (side - 1) == 0:  # a single factor
                factor = side.bit_length() - 1
                times = min(iterations, volume(held[factor]))
                flops += runs[factor] * weights[factor] * times
                early += weights[factor] > 0 and subset != full
        elements = one[1] + two[1] + (volume(outer[subset]) if subset != full else 0)
        return flops, elements, early

    return cheapest_tree([(0, 0, 0)] * len(held), joined)[1]


def _greedy_order(held: tuple[int, ...], left: int, widths: tuple[int, ...]) -> Tree:
    """The greedy order of opt_einsum, which is deterministic."""
    import opt_einsum.paths as oe  # noqa: PLC0415  (most products have few factors)

    bits = range(len(widths))
    inputs = [frozenset(str(k) for k in bits if h >> k & 1) for h in held]
    output = frozenset(str(k) for k in bits if left >> k & 1)
    path = oe.greedy(inputs, output, {str(k): widths[k] for k in bits})
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

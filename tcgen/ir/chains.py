"""Chains of triangular variables: ``i > j > k`` as one index over its distinct values.

A thread block of a GPU takes points by their numbers. The points of a chain are numbered as packed
axes store them, so that the number is the place on axes that are packed in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TypeAlias, TypeVar

from .expr import Access
from .loops import BandVar, Buffer, LoopVar
from .tensor import Packing

Var: TypeAlias = LoopVar | BandVar
V = TypeVar("V", bound=Var)


def chains(variables: Iterable[V]) -> list[tuple[V, ...]]:
    """The variables as tuples: a whole triangle of neighbours, the largest first, or one variable.

    Example:
        >>> from .tensor import Space
        >>> i, j = BandVar("i", Space("o")), BandVar("j", Space("o"), below="i", strict=True)
        >>> [len(chain) for chain in chains((i, j))], [len(chain) for chain in chains((j, i))]
        ([2], [1, 1])
    """
    found: list[tuple[V, ...]] = []
    for var in variables:
        last = found[-1] if found else ()
        follows = bool(last) and var.below == last[-1].name and _joins(last, var)
        found[len(found) - follows :] = [(*last, var) if follows else (var,)]
    return found


def _joins(chain: Sequence[Var], var: Var) -> bool:
    """True if a variable below the last of a chain continues it: whole, and as strict as others."""
    if not all(isinstance(v, BandVar) and v.base is None for v in (*chain, var)):
        return False
    alike = all(is_strict(v) == is_strict(var) for v in chain[1:])
    return alike and chain[0].below is None and var.space == chain[0].space


def is_strict(var: Var) -> bool:
    """True for a variable that is smaller than the one that it is below, and never equal."""
    return isinstance(var, BandVar) and var.strict


def packed_variables(access: Access, packing: Packing, buffer: Buffer) -> list[str | None]:
    """The variables on packed axes, the one with the largest stored value first."""
    axes = (axis for axis in buffer.order if axis in packing.axes)
    return [access.subscripts[axis].variable for axis in axes]


def numbered(group: Sequence[BandVar]) -> bool:
    """True if each variable with a bound in a group of points continues a chain."""
    free = [chain[0] for chain in chains(group)]
    return all(v.below is None for v in free)


def separable(
    access: Access, buffer: Buffer, groups: Sequence[Sequence[BandVar]], *, written: bool
) -> bool:
    """True if an address is a sum of terms, one for each group of variables.

    Then all variables of packed axes are in one group. Antisymmetric axes have no sign only if a
    chain has their variables in order; elements that are written are written once only then.
    """
    for packing in buffer.packed:
        names = packed_variables(access, packing, buffer)
        subscripts = [access.subscripts[axis] for axis in packing.axes]
        group = next((g for g in groups if {v.name for v in g} >= set(names)), None)
        if group is None or any(s.base is not None or s.offset for s in subscripts):
            return False
        if written and all(not _stores(chain, names, packing, buffer) for chain in chains(group)):
            return False
        if packing.antisymmetric and all(not _orders(chain, names) for chain in chains(group)):
            return False
    return True


def _stores(
    chain: tuple[BandVar, ...], names: list[str | None], packing: Packing, buffer: Buffer
) -> bool:
    """True if a chain has each stored value of packed axes once."""
    same = [v.name for v in chain] == names and is_strict(chain[-1]) == packing.antisymmetric
    return same and chain[0].space == buffer.axes[packing.first].space


def _orders(chain: tuple[BandVar, ...], names: list[str | None]) -> bool:
    """True if a chain says that each of these variables is larger than the next one."""
    own = [v.name for v in chain]
    if not is_strict(chain[-1]) or not set(names) <= set(own):
        return False
    places = [own.index(name) for name in names if name is not None]
    return all(p < q for p, q in pairwise(places))

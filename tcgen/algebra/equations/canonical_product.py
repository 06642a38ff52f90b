"""Canonical form of a product: the least labelling of its indices, exact under all symmetries.

Two products have equal keys exactly where they are equal up to the names of indices, the order of
factors and the symmetries of the tensors. The search labels indices factor by factor, breadth
first, and keeps every partial labelling that is least so far. Colours of the indices, refined by
the factors that hold them, leave few ties. The ties that remain at the end are the symmetries of
the product.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from ...ir.tensor import Index
from ..permutation_groups import Group, images_of, orbits

Colour: TypeAlias = tuple[str, int]  # ("left", position), ("free", 0) or ("sum", 0)

SUM: Colour = ("sum", 0)
FREE: Colour = ("free", 0)


@dataclass(frozen=True, slots=True)
class Atom:
    """A factor of a product.

    Attributes:
        label: equal for factors that are equal functions of their indices.
        indices: on its axes, in order.
        group: all (perm, sign) with ``T[x[perm]] == sign * T[x]``, the identity first.
    """

    label: str
    indices: tuple[Index, ...]
    group: Group


@dataclass(frozen=True, slots=True)
class Canonical:
    """Result of :func:`canonical_product`.

    Attributes:
        key: equal for equal products.
        sign: the product is ``sign`` times its canonical form; 0 if it vanishes by symmetry.
        order: indices in canonical order.
        ties: every (order, sign) that gives the same form, ``order`` first.
    """

    key: Hashable
    sign: int
    order: tuple[Index, ...]
    ties: tuple[tuple[tuple[Index, ...], int], ...]


def canonical_product(atoms: tuple[Atom, ...], colours: Mapping[Index, Colour]) -> Canonical:
    """Canonical form of a product of atoms.

    Args:
        atoms: the factors.
        colours: of indices that are not summed: a left index has its position as colour, and
            free indices, which may stand in any order, have a common one.

    Example:
        >>> from tcgen.ir.tensor import Space
        >>> o = Space("o")
        >>> i, j, k = (Index(x, o) for x in "ijk")
        >>> swap = (((0, 1), 1), ((1, 0), -1))
        >>> x = canonical_product((Atom("t", (i, j), swap), Atom("u", (j,), (((0,), 1),))), {})
        >>> y = canonical_product((Atom("u", (k,), (((0,), 1),)), Atom("t", (k, i), swap)), {})
        >>> x.key == y.key, x.sign * y.sign
        (True, -1)
    """
    atoms = tuple(sorted(atoms, key=lambda a: a.label))
    ranks, base = _ranks(atoms, colours)
    names = tuple(base)  # the search works on positions in this tuple
    place_of = {index: n for n, index in enumerate(names)}
    held = tuple(tuple(place_of[i] for i in a.indices) for a in atoms)
    rank = tuple(ranks[i] for i in names)
    images = tuple(images_of(a.group) for a in atoms)
    # state: (indices in the order labelled, positions of the atoms left) -> sign, 0 for both signs
    states: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {((), tuple(range(len(atoms)))): 1}
    codes = []
    for _ in atoms:
        best: tuple[tuple[int, int], ...] | None = None
        fresh: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
        for (order, left), sign in states.items():
            label = atoms[left[0]].label
            tried: set[tuple[int, ...]] = set()
            for place in left:
                if atoms[place].label != label:
                    break
                if held[place] in tried:  # an equal factor
                    continue
                tried.add(held[place])
                rest = tuple(p for p in left if p != place)
                candidates = images[place].group
                if len(set(held[place])) == len(held[place]):
                    candidates = images[place].least(_values(held[place], rank, order))
                for perm, factor in candidates:
                    code, extended = _code(held[place], perm, rank, order)
                    if best is not None and code > best:
                        continue
                    if best is None or code < best:
                        best, fresh = code, {}
                    state = (extended, rest)
                    new = sign * factor
                    fresh[state] = new if fresh.get(state, new) == new else 0
        codes.append(best)
        states = fresh
    ties = tuple((tuple(names[n] for n in order), sign) for (order, _), sign in states.items())
    merged: dict[tuple[Index, ...], int] = {}
    for labelled, sign in ties:
        outer = tuple(i for i in labelled if i in colours)
        merged[outer] = sign if merged.get(outer, sign) == sign else 0
    vanishes = any(sign == 0 for sign in merged.values())
    first, sign = ties[0]
    key = (tuple(a.label for a in atoms), tuple(codes), tuple(base[i] for i in first))
    return Canonical(key, 0 if vanishes else sign, first, ties)


def free_group(form: Canonical, colours: Mapping[Index, Colour]) -> Group:
    """The symmetry group of a product as a function of its free indices in canonical order."""
    outer = tuple(i for i in form.order if i in colours)
    group: dict[tuple[int, ...], int] = {tuple(range(len(outer))): 1}
    for order, sign in form.ties:
        names = tuple(i for i in order if i in colours)
        group.setdefault(tuple(outer.index(i) for i in names), sign * form.ties[0][1])
    return tuple(group.items())


def _values(
    held: tuple[int, ...], rank: tuple[int, ...], order: tuple[int, ...]
) -> list[tuple[int, int]]:
    """Contribution of each axis to the code of a factor with distinct indices."""
    return [(0, order.index(i)) if i in order else (1, rank[i]) for i in held]


def _code(
    held: tuple[int, ...], perm: tuple[int, ...], rank: tuple[int, ...], order: tuple[int, ...]
) -> tuple[tuple[tuple[int, int], ...], tuple[int, ...]]:
    """Code of one image of a factor, and the labelled indices with its new ones appended.

    The code has a label for an index that the search has labelled, and a rank for a new index.
    """
    code = []
    extended = list(order)
    for axis in perm:
        index = held[axis]
        if index in extended:
            code.append((0, extended.index(index)))
        else:
            code.append((1, rank[index]))
            extended.append(index)
    return tuple(code), tuple(extended)


def _ranks(
    atoms: tuple[Atom, ...], colours: Mapping[Index, Colour]
) -> tuple[dict[Index, int], dict[Index, tuple[Colour, str]]]:
    """Rank of each index by colour, refined twice by the atoms that hold it; and the colours."""
    base: dict[Index, tuple[Colour, str]] = {}
    for atom in atoms:
        for index in atom.indices:
            base[index] = (colours.get(index, SUM), index.space.name)
    level = {c: n for n, c in enumerate(sorted(set(base.values())))}
    rank = {i: level[c] for i, c in base.items()}
    held_by = [orbits(a.group) for a in atoms]
    for _ in range(2):
        around: dict[Index, list[tuple[str, int, tuple[int, ...]]]] = {i: [] for i in base}
        for atom, orbit in zip(atoms, held_by, strict=True):
            held = tuple(sorted(rank[i] for i in atom.indices))
            for axis, index in enumerate(atom.indices):
                around[index].append((atom.label, orbit[axis], held))
        detail = {i: (rank[i], tuple(sorted(around[i]))) for i in base}
        steps = {d: n for n, d in enumerate(sorted(set(detail.values())))}
        rank = {i: steps[d] for i, d in detail.items()}
    return rank, base

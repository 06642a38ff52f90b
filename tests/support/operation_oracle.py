"""The fewest flops of a small system, by brute force, and random systems to compare with.

A term is a sign and factors, a factor a name and indices; extents are by index. Every binary order
of each product, every common factor of terms (also where the cofactors hold different indices) and
every shared product, sum, and output are tried. Nothing here knows the search of tcgen. The flops
are those of the report: 2 for a point of a product, 1 for one of a sum over indices or of an
addition; an array's first addition is a copy. A term in one loop takes a flop for each factor.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import permutations, product
from math import prod
from typing import NamedTuple

from tcgen.ir.system import System
from tcgen.ir.tensor import Ref

Factor = tuple[str, tuple[str, ...]]
Signed = tuple[int, tuple[Factor, ...]]
Way = tuple[int, frozenset["Array"]]  # flops, and the arrays that must be there


class Array(NamedTuple):
    """A sum of products over left indices, in canonical form; an index has its extent."""

    left: tuple[tuple[int, int], ...]
    terms: tuple[Signed, ...]

    @property
    def size(self) -> int:
        return sum(len(factors) for _, factors in self.terms)


def least_flops(targets: Mapping[str, tuple[str, tuple[Signed, ...]]], extents: Mapping) -> int:
    """The fewest flops for all targets, each given by its left indices and its terms."""
    arrays = (_array(left, terms, extents) for left, terms in targets.values())
    return _least(frozenset(a for a in arrays if not _is_leaf(a)))


def terms_of(system: System) -> dict[str, tuple[str, tuple[Signed, ...]]]:
    """The targets of a system of plain terms whose coefficients are 1 and -1."""
    return {
        e.lhs.tensor.name: (
            "".join(i.name for i in e.lhs.indices),
            tuple(
                (
                    int(t.coeff),
                    tuple(
                        (f.tensor.name, tuple(i.name for i in f.indices))
                        for f in t.factors
                        if isinstance(f, Ref)
                    ),
                )
                for t in e.terms
            ),
        )
        for e in system.equations
    }


def _held(factors: Iterable[Factor]) -> set:
    return {i for _, held in factors for i in held}


def _array(left: Iterable, terms: Iterable[Signed], extents: Mapping | None = None) -> Array:
    """The canonical form: the least of those that number indices as they occur in some order."""
    terms = tuple(terms)
    left = tuple(left)

    def extent(index: object) -> int:
        return index[-1] if extents is None else extents[index]  # type: ignore[index]

    best = None
    for orders in product(*(_orders(factors) for _, factors in terms)):
        for places in permutations(range(len(terms))):
            outer: dict = {}
            written = []
            for place in places:
                inner: dict = {}
                factors = []
                for name, held in orders[place]:
                    axes = []
                    for i in held:
                        if i in left:
                            axes.append((0, outer.setdefault(i, len(outer)), extent(i)))
                        else:
                            axes.append((1, inner.setdefault(i, len(inner)), extent(i)))
                    factors.append((name, tuple(axes)))
                written.append((terms[place][0] * terms[places[0]][0], tuple(factors)))
            form = tuple((0, n, extent(i)) for i, n in outer.items()), tuple(written)
            if best is None or form[1] < best[1]:
                best = form
    assert best is not None
    return Array(*best)


def _orders(factors: tuple[Factor, ...]) -> Iterator[tuple[Factor, ...]]:
    """The orders of factors in which names are sorted."""
    names = sorted(name for name, _ in factors)
    return (o for o in permutations(factors) if [name for name, _ in o] == names)


def _is_leaf(array: Array) -> bool:
    if array.size > 1 or len(array.terms) > 1:
        return False
    return _held(array.terms[0][1]) == set(array.left)


def _volume(indices: Iterable) -> int:
    return prod(i[-1] for i in set(indices))


@cache
def _least(pending: frozenset[Array]) -> int:
    """The fewest flops for some arrays; those that an array reads are smaller than it."""
    if not pending:
        return 0
    largest = max(pending, key=lambda a: (a.size, a))
    rest = pending - {largest}
    return min(flops + _least(rest | needed) for flops, needed in _ways(largest))


@cache
def _ways(array: Array) -> tuple[Way, ...]:
    """All ways to compute an array from smaller ones."""
    left, terms = array
    found = [w for blocks in _partitions(terms) for w in _sums(left, terms, blocks)]
    best: dict[frozenset[Array], int] = {}
    for flops, needed in found:
        best[needed] = min(flops, best.get(needed, flops))
    return tuple((flops, needed) for needed, flops in best.items())


def _sums(left: tuple, terms: tuple[Signed, ...], blocks: list[tuple[Signed, ...]]) -> list[Way]:
    """Ways to compute each block of a sum by itself: added from an array, or as a product."""
    choices: list[list[tuple[int, int, frozenset[Array]]]] = []
    for block in blocks:
        held = {i for _, factors in block for i in _held(factors)} & set(left)
        stored = _array((i for i in left if i in held), block)
        options = []
        if len(blocks) > 1:
            needed = frozenset[Array]() if _is_leaf(stored) else frozenset({stored})
            options.append((1, 0, needed))
        if len(held) == len(left) and not _is_leaf(stored):
            options += [(0, flops, needed) for flops, needed in _products(left, block)]
            factors = block[0][1]
            if len(block) == 1 and len(factors) != 2:
                points = _volume({*left, *_held(factors)})
                options.append((0, len(factors) * points, frozenset()))
        choices.append(options)
    return [
        (
            max(0, sum(a for a, _, _ in chosen) - 1) * _volume(left) + sum(f for _, f, _ in chosen),
            frozenset(a for _, _, needed in chosen for a in needed),
        )
        for chosen in product(*choices)
    ]


def _products(left: tuple, block: tuple[Signed, ...]) -> list[Way]:
    """Ways to compute a block as one product: common factors times the sum of the others."""
    (sign, first), *others = block
    found: list[Way] = []
    for mask in range(1, (1 << len(first)) - (not others)):
        common = tuple(f for n, f in enumerate(first) if mask >> n & 1)
        rest = tuple(f for n, f in enumerate(first) if not mask >> n & 1)
        aligned = [
            list(_alignments(left, common, factors, n)) for n, (_, factors) in enumerate(others)
        ]
        for rests in product(*aligned):
            cofactors = ((sign, rest), *((s, r) for (s, _), r in zip(others, rests, strict=True)))
            in_rests = {i for _, r in cofactors for i in _held(r)}
            outer = {*left, *_held(common)}
            one = _array([i for i in _held(common) if i in in_rests or i in left], [(1, common)])
            two = _array([i for i in in_rests if i in outer], cofactors)
            points = {
                i
                for i in _held(common) | in_rests
                if i in left or (i in _held(common) and i in in_rests)
            }
            needed = frozenset(a for a in (one, two) if not _is_leaf(a))
            found.append((2 * _volume(points), needed))
    return found


def _alignments(
    left: tuple, common: tuple[Factor, ...], factors: tuple[Factor, ...], number: int
) -> Iterator[tuple[Factor, ...]]:
    """The cofactors of ``common`` in another product, for each way in which it occurs there."""
    for chosen in permutations(range(len(factors)), len(common)):
        images: dict = {}
        for (name, held), place in zip(common, chosen, strict=True):
            other, indices = factors[place]
            if other != name or any(
                images.setdefault(i, h) != h for i, h in zip(indices, held, strict=True)
            ):
                break
        else:
            if len(set(images.values())) < len(images) or any(
                ((i in left or h in left) and i != h) or i[-1] != h[-1] for i, h in images.items()
            ):
                continue
            rest = [f for n, f in enumerate(factors) if n not in chosen]
            yield tuple(
                (name, tuple(images.get(i, i if i in left else (2 + number, *i)) for i in held))
                for name, held in rest
            )


def _partitions(terms: tuple[Signed, ...]) -> Iterator[list[tuple[Signed, ...]]]:
    """All partitions of the terms into blocks."""
    if not terms:
        yield []
        return
    first, *others = terms
    for mask in range(1 << len(others)):
        block = (first, *(t for n, t in enumerate(others) if mask >> n & 1))
        rest = tuple(t for n, t in enumerate(others) if not mask >> n & 1)
        for blocks in _partitions(rest):
            yield [block, *blocks]


def random_system(seed: int) -> tuple[str, dict[str, int]]:
    """A spec of up to three terms of up to four factors, and the extents of its spaces.

    Terms have parts of earlier ones as factors, so that there is something to share. Each term
    holds the left indices; no two terms of a target are equal.
    """
    rng = random.Random(seed)
    letters = {"i": "a", "j": "a", "k": "b", "l": "b", "m": "c", "n": "d"}
    extents = {s: rng.choice((2, 3, 5, 8, 10, 20, 30, 50)) for s in "abcd"}
    tensors = {
        name: tuple(rng.choice("abcd") for _ in range(rng.choice((0, 1, 2, 2, 2, 2, 2, 3))))
        for name in "PQRST"[: rng.randint(3, 5)]
    }
    extents_of = {i: extents[s] for i, s in letters.items()}

    def factor() -> Factor:
        name = rng.choice(sorted(tensors))
        held = tuple(rng.choice([i for i in letters if letters[i] == s]) for s in tensors[name])
        return name, held

    products: list[tuple[Factor, ...]] = []
    for _ in range(rng.randint(1, 3)):
        count = rng.randint(2, 4)
        factors: list[Factor] = []
        if products and rng.random() < 0.7:
            old = rng.choice(products)
            factors += rng.sample(old, min(len(old), count, rng.randint(1, 3)))
        while len(factors) < count:
            new = factor()
            if sum(name == new[0] for name, _ in factors) < 2:
                factors.append(new)
        products.append(tuple(factors))
    terms: dict[str, tuple[tuple[str, ...], list[Signed]]] = {}
    for factors in products:
        held = sorted(_held(factors))
        fitting = [n for n, (left, _) in terms.items() if set(left) <= set(held)]
        if fitting and rng.random() < 0.6:
            terms[rng.choice(fitting)][1].append((rng.choice((1, -1)), factors))
        else:
            left = rng.sample(held, rng.randint(0, min(3, len(held))))
            terms[f"z{len(terms)}"] = (tuple(left), [(1, factors)])
    lines = [f"space {s}" for s in extents] + [f"index {i} : {s}" for i, s in letters.items()]
    lines += [f"input {name}{_subscript(spaces)}" for name, spaces in tensors.items()]
    lines.append("output " + ", ".join(terms))
    for target, (left, signed) in terms.items():
        forms = [_array(left, [t], extents_of) for t in signed]
        unique = [t for n, t in enumerate(signed) if forms[n] not in forms[:n]]
        lines.append(f"{target}{_subscript(left)} = " + _text(left, unique))
    return "\n".join(lines) + "\n", extents


def _lone(left: tuple[str, ...], factors: tuple[Factor, ...]) -> list[str]:
    """Summed indices that occur once."""
    all_held = [i for _, held in factors for i in held]
    return [i for i in all_held if all_held.count(i) == 1 and i not in left]


def _text(left: tuple[str, ...], terms: Iterable[Signed]) -> str:
    parts = (
        ("+ " if sign > 0 else "- ")
        + (f"sum({','.join(lone)}) " if (lone := _lone(left, factors)) else "")
        + "*".join(name + _subscript(held) for name, held in factors)
        for sign, factors in terms
    )
    return " ".join(parts).removeprefix("+ ")


def _subscript(held: tuple[str, ...]) -> str:
    return f"[{','.join(held)}]" if held else ""

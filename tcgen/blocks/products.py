"""Which contractions are products of matrices of blocks, and the storages that spare sorting.

Arrays of the caller are stored by halves of their axes. The storages of intermediates are chosen so
that few elements are sorted: the search changes one array at a time, the largest first. All of it
is independent of the irreps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import permutations
from math import prod
from typing import TypeAlias

from ..ir.program import Add, Contract, FormulaSequence, Step
from ..ir.tensor import Index, Ref, Role
from ..records.signature import Signature
from .layout import Storage, halves

Indices: TypeAlias = tuple[Index, ...]
_SWEEPS = 6  # most sweeps over all arrays; two or three change something
_CONSTANT = 0.001  # weight of an element that is sorted once for a bound program
_TARGET = 1.5  # weight of an element of a target, which is written to a copy, read and added


@dataclass(frozen=True, slots=True)
class Product:
    """A contraction as products of matrices ``A[m,k] B[k,n]``.

    Attributes:
        m, n, k: indices of the matrices, in the order of their storage.
        sorts: whether the first factor, the second one and the target are not stored like this.
        dot: sides of the storage of both factors, where all indices are summed.
        cost: weighted number of sorted elements.
    """

    m: Indices
    n: Indices
    k: Indices
    sorts: tuple[bool, bool, bool]
    cost: float
    dot: tuple[Indices, Indices] | None = None


def relation(one: Iterable[int], other: Iterable[int]) -> int:
    """1 if the signs of some axes are equal, -1 if they are opposite, 0 if neither."""
    pairs = list(zip(one, other, strict=True))
    if all(s == t for s, t in pairs):
        return 1
    return -1 if all(s == -t for s, t in pairs) else 0


def is_part(ref: Ref) -> bool:
    """Whether a reference reads or writes a part of an array over joined spaces."""
    pairs = zip(ref.indices, ref.tensor.spaces, strict=True)
    return any(s.parts and i.space != s for i, s in pairs)


def signs_of(ref: Ref, indices: Indices, signature: Signature) -> tuple[int, ...]:
    """The signs with which some indices of a reference enter."""
    return tuple(signature.signs[ref.indices.index(i)] for i in indices)


class Storages:
    """The storages of the arrays of a sequence; those of ``slices``, which are copies, are free.

    Attributes:
        of: the storage of each tensor by name.
    """

    def __init__(
        self,
        sequence: FormulaSequence,
        signatures: Mapping[str, Signature],
        extents: Mapping[str, int],
        constants: frozenset[str],
        slices: frozenset[str] = frozenset(),
    ) -> None:
        self._sequence = sequence
        self._signatures = signatures
        self._extents = extents
        self._elements = {
            t.name: prod(extents[space.name] for space in t.spaces) for t in sequence.tensors
        }
        self._groups: dict[int, tuple[Indices, Indices, Indices] | None] = {}
        self._copied: dict[int, bool] = {}
        self._costs: dict[tuple[object, ...], float] = {}
        self._constants = constants | slices
        self._slices = slices
        self.of: dict[str, Storage] = {t.name: halves(t.rank) for t in sequence.tensors}
        self._choose()

    def product(self, step: Step) -> Product | None:
        """The cheapest way to execute a contraction by matrices; None if it is none."""
        groups = self.groups(step)
        if groups is None or not isinstance(step.op, Contract):
            return None
        a, b, c = step.op.a, step.op.b, step.out
        stored = [self._stored(ref) for ref in (a, b, c)]
        size = [self._weight(a), self._weight(b), _TARGET * self._count(c)]
        if not groups[0] and not groups[1]:
            same, kept = stored[0] == stored[1], 0 if size[0] >= size[1] else 1
            one, other = (is_part(r) or (not same and kept != n) for n, r in enumerate((a, b)))
            cost = one * size[0] + other * size[1]
            return Product((), (), groups[2], (one, other, False), cost, dot=stored[kept])
        best: Product | None = None
        for m in _orders(groups[0], stored[0], stored[2]):
            for n in _orders(groups[1], stored[1], stored[2]):
                for k in _orders(groups[2], stored[0], stored[1]):
                    wanted = ((m, k), (k, n), (m, n))
                    one, other, target = (
                        s not in (w, w[::-1]) or is_part(r)
                        for s, w, r in zip(stored, wanted, (a, b, c), strict=True)
                    )
                    sorts = (one, other, target)
                    cost = sum(e for e, sort in zip(size, sorts, strict=True) if sort)
                    if best is None or cost < best.cost:
                        best = Product(m, n, k, sorts, cost)
        return best

    def groups(self, step: Step) -> tuple[Indices, Indices, Indices] | None:
        """The indices m, n and k of a contraction that is a product of matrices, or None.

        The signs of each group have to be the same, or all opposite, in both arrays that have it.
        """
        if step.id not in self._groups:
            self._groups[step.id] = self._find_groups(step)
        return self._groups[step.id]

    def _find_groups(self, step: Step) -> tuple[Indices, Indices, Indices] | None:
        if not isinstance(step.op, Contract) or not step.sums:
            return None
        a, b, c = step.op.a, step.op.b, step.out
        m = tuple(i for i in c.indices if i in a.indices)
        n = tuple(i for i in c.indices if i in b.indices)
        k = tuple(i for i in a.indices if i in step.sums)
        if set(m) & set(n) or any(len(set(r.indices)) < len(r.indices) for r in (a, b)):
            return None
        if set(k) != set(step.sums) or not set(k) <= set(b.indices):
            return None
        related = ((m, a, c), (n, b, c), (k, a, b))
        if all(relation(self._signs(one, g), self._signs(other, g)) for g, one, other in related):
            return m, n, k
        return None

    def copied(self, step: Step) -> bool:
        """Whether an addition copies blocks: every index of the source is one of the target."""
        if step.id not in self._copied:
            self._copied[step.id] = self._copies(step)
        return self._copied[step.id]

    def _copies(self, step: Step) -> bool:
        if not isinstance(step.op, Add) or step.sums:
            return False
        source, target = step.op.a, step.out
        indices = source.indices
        if len(set(indices)) < len(indices) or len(indices) != target.tensor.rank:
            return False
        return relation(self._signs(source, indices), self._signs(target, indices)) != 0

    def fastest(self, ref: Ref) -> Index | None:
        """The index along which elements of an array lie next to each other, or None."""
        rows, columns = self._stored(ref)
        found = (*rows, *columns)[-1:]
        return found[0] if found and ref.indices.count(found[0]) == 1 else None

    def _signs(self, ref: Ref, indices: Indices) -> tuple[int, ...]:
        return signs_of(ref, indices, self._signatures[ref.tensor.name])

    def _stored(self, ref: Ref) -> tuple[Indices, Indices]:
        rows, columns = self.of[ref.tensor.name]
        return tuple(ref.indices[a] for a in rows), tuple(ref.indices[a] for a in columns)

    def _weight(self, ref: Ref) -> float:
        weight = _CONSTANT if ref.tensor.name in self._constants else 1.0
        return weight * self._count(ref)

    def _count(self, ref: Ref) -> int:
        """The number of elements that a reference reads."""
        return prod(self._extents[i.space.name] for i in ref.indices)

    def _choose(self) -> None:
        candidates: dict[str, dict[Storage, None]] = {}
        touching: dict[str, list[Step]] = {}
        for step in self._sequence.steps:
            groups = self.groups(step)
            refs = (step.out, *step.operands)
            for name in dict.fromkeys(r.tensor.name for r in refs):
                touching.setdefault(name, []).append(step)
            if groups is None:
                continue
            m, n, k = groups
            for ref, one, other in zip(refs, (m, m, k), (n, k, n), strict=True):
                own = ref.tensor.role is Role.TEMP or ref.tensor.name in self._slices
                if own and not is_part(ref):
                    found = candidates.setdefault(ref.tensor.name, {})
                    found.update(dict.fromkeys(_storages(ref, one, other)))
        order = sorted(candidates, key=lambda name: -self._elements[name])
        for _ in range(_SWEEPS):
            changes = [self._improve(n, candidates[n], touching[n]) for n in order]
            if not any(changes):
                break

    def _improve(self, name: str, candidates: Iterable[Storage], steps: list[Step]) -> bool:
        chosen = before = self.of[name]
        least = sum(map(self._cost, steps))
        for storage in candidates:
            self.of[name] = storage
            cost = sum(map(self._cost, steps))
            if cost < least - 1e-9:
                least, chosen = cost, storage
        self.of[name] = chosen
        return chosen != before

    def _cost(self, step: Step) -> float:
        stored = (self.of[ref.tensor.name] for ref in (step.out, *step.operands))
        key = (step.id, *stored)
        if key not in self._costs:
            self._costs[key] = self._find_cost(step)
        return self._costs[key]

    def _find_cost(self, step: Step) -> float:
        weight = _CONSTANT if step.out.tensor.name in self._constants else 1.0
        if self.copied(step) and isinstance(step.op, Add):
            same = self._stored(step.op.a) == self._stored(step.out)
            return weight * self._count(step.out) * (1.0 if same else 2.0)
        product = self.product(step)
        return 0.0 if product is None else weight * product.cost


def _orders(group: Indices, *stored: tuple[Indices, Indices]) -> list[Indices]:
    """The orders in which arrays store the indices of a group; the given one if none does."""
    found = [side for sides in stored for side in sides if set(side) == set(group)]
    return list(dict.fromkeys(found)) or [group]


def _storages(ref: Ref, one: Indices, other: Indices) -> Iterable[Storage]:
    place = {index: axis for axis, index in enumerate(ref.indices)}
    first, second = ([place[i] for i in group] for group in (one, other))
    for rows in permutations(first):
        for columns in permutations(second):
            yield rows, columns
            yield columns, rows

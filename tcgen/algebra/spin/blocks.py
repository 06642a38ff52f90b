"""Blocks of tensors by spin: which of them have arrays, and how the others follow from those.

A block is a tensor at given spins of its axes. Of blocks that symmetry relates, the first in
alphabetical order has an array. In a closed shell, blocks with all spins flipped are equal, and
blocks with more spins of one kind are combinations of balanced ones (:func:`balanced_blocks`).
Tensors of triplets (Ms = 0) are odd: they change sign where all spins are flipped, and their other
blocks are independent.

A tensor that no rotation of the spins changes, with n axes in and n axes out, is the sum over the
permutations P of the outgoing axes of a spin-free tensor for P times the product of deltas of the
spins that P brings together. A block is therefore a vector of the permutations that match its
spins, and blocks that depend linearly on others need no array.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise, permutations

from ...ir.system import System
from ...ir.tensor import Packing, Space, Storage, Symmetry, Tensor, exchanged, symmetry_group
from ...records.quantity import Quantity
from ..rational_matrices import Vector, coordinates, reduced, remainder
from .invariance import Form
from .labels import (
    UNLABELLED,
    Flow,
    Pattern,
    conserves_spin,
    electrons,
    input_conserves,
    input_flow,
    patterns,
)
from .names import SpinSpaces, block_name, closed_shell_name

_FLIP = str.maketrans("ab", "ba")


@dataclass(frozen=True, slots=True)
class Block:
    """An array ``tensor``: the block of ``source`` at the spins ``pattern`` is ``sign`` times it.

    Axis k of the array is axis ``axes[k]`` of the source, a tensor over spin orbitals.
    """

    source: Tensor
    pattern: Pattern
    tensor: Tensor
    axes: tuple[int, ...]
    sign: int


@dataclass(frozen=True, slots=True)
class Part:
    """A number times an array: ``number * tensor[x[axes[0]], x[axes[1]], ...]``."""

    number: Fraction
    tensor: Tensor
    axes: tuple[int, ...]


class Blocks:
    """The blocks of all tensors of a system over spin orbitals, entered as they are found."""

    def __init__(self, system: System, closed: bool) -> None:
        self.closed = closed
        self.spaces = SpinSpaces(system, closed)
        self.forms: dict[Tensor, Form] = {}
        self.odd: set[str] = set()  # names of tensors of triplets
        self.known: dict[tuple[str, Pattern], Block | None] = {}  # None: the block is zero
        self._sources = {tensor.name for tensor in system.tensors}
        self._taken: set[str] = set()
        self._groups: dict[Tensor, tuple[Symmetry, ...]] = {}

    def parts(self, tensor: Tensor, pattern: Pattern) -> tuple[Part, ...]:
        """The block as a sum of arrays; () if it is zero."""
        form = self.forms[tensor]
        if tensor.is_input and not input_conserves(tensor, pattern):
            return ()
        if not self.closed or form.constant or form.flow is None:
            return self._one(tensor, pattern, Fraction(1))
        if not conserves_spin(pattern, form.flow):
            return ()
        if tensor.name in self.odd:
            return self._one(tensor, pattern, Fraction(1))
        return tuple(
            part
            for number, block in balanced_blocks(pattern, form.flow)
            if not tensor.is_input or input_conserves(tensor, block)
            for part in self._one(tensor, block, number)
        )

    def canonical(self, tensor: Tensor) -> Iterator[Pattern]:
        """Patterns of the blocks that need an array unless they are zero, in order."""
        form = self.forms[tensor]
        related = form.flow if self.closed and not form.constant else None
        for pattern in patterns(tensor.spaces):
            if self._image(tensor, pattern)[0] == pattern and (
                related is None
                or (
                    conserves_spin(pattern, related)
                    and (tensor.name in self.odd or is_balanced(pattern, related))
                )
            ):
                yield pattern

    def parity(self, tensor: Tensor) -> int:
        """The sign of a tensor of a closed shell where all spins are flipped."""
        return -1 if tensor.name in self.odd else 1

    def enter(self, tensor: Tensor, pattern: Pattern) -> Block:
        """Give a block an array."""
        axes, sign = self._order(tensor, pattern)
        spins = [pattern[k] for k in axes]
        spaces = tuple(
            self.spaces.space(tensor.spaces[k], x) for k, x in zip(axes, spins, strict=True)
        )
        symmetry = self._symmetry(tensor, pattern, axes)
        new = replace(
            tensor,
            name=self._name(tensor, pattern, axes, spaces),
            spaces=spaces,
            symmetry=symmetry,
            storage=Storage(tensor.storage.order, _packed(tensor, spaces, symmetry)),
            conserves=_kept_sides(tensor, axes),
            quantity=self._quantity(tensor, pattern),
        )
        block = Block(tensor, pattern, new, axes, sign)
        self.known[tensor.name, pattern] = block
        return block

    def _one(self, tensor: Tensor, pattern: Pattern, number: Fraction) -> tuple[Part, ...]:
        """The block that symmetry relates to one with an array."""
        canonical, symmetry = self._image(tensor, pattern)
        key = (tensor.name, canonical)
        if key not in self.known:
            if not tensor.is_input:
                return ()
            self.enter(tensor, canonical)
        block = self.known[key]
        if block is None:
            return ()
        axes = tuple(symmetry.perm[k] for k in block.axes)
        return (Part(number * symmetry.sign * block.sign, block.tensor, axes),)

    def _image(self, tensor: Tensor, pattern: Pattern) -> tuple[Pattern, Symmetry]:
        """The first pattern that symmetry relates to this one, and the symmetry that does."""
        if self.closed and self.forms[tensor].constant:
            first = "".join(x if x == UNLABELLED else "a" for x in pattern)
            return first, Symmetry(tuple(range(tensor.rank)))
        best: tuple[Pattern, Symmetry] | None = None
        for symmetry in self._group(tensor):
            if symmetry.conj:
                continue
            image = "".join(pattern[k] for k in symmetry.perm)
            flipped = image.translate(_FLIP)
            if self.closed and flipped < image:
                image = flipped
                symmetry = replace(symmetry, sign=symmetry.sign * self.parity(tensor))
            if best is None or image < best[0]:
                best = image, symmetry
        assert best is not None, "the identity is a symmetry"
        return best

    def _group(self, tensor: Tensor) -> tuple[Symmetry, ...]:
        if tensor not in self._groups:
            self._groups[tensor] = symmetry_group(tensor)
        return self._groups[tensor]

    def _order(self, tensor: Tensor, pattern: Pattern) -> tuple[tuple[int, ...], int]:
        """Order of the axes of an array, and its sign.

        The spins that leave an input stand in the order in which they enter, so that integrals
        are those of chemists and physicists: <ia|bj> for the block of <ij||ab> type where they are
        exchanged.
        """
        axes = list(range(tensor.rank))
        flow: Flow = input_flow(tensor) if tensor.is_input else ()
        if not flow or sum(flow) != 0 or electrons(tensor):
            return tuple(axes), 1
        entering = [k for k, f in enumerate(flow) if f > 0]
        leaving = [k for k, f in enumerate(flow) if f < 0]
        pending, sign = list(leaving), 1
        for axis, place in zip(entering, leaving, strict=True):
            position = next(n for n, k in enumerate(pending) if pattern[k] == pattern[axis])
            sign *= (-1) ** position
            axes[place] = pending.pop(position)
        return tuple(axes), sign

    def _symmetry(
        self, tensor: Tensor, pattern: Pattern, axes: tuple[int, ...]
    ) -> tuple[Symmetry, ...]:
        """Generators of the symmetries of an array: those that keep the spins of the block."""
        kept = []
        constant = self.closed and self.forms[tensor].constant
        for s in self._group(tensor):
            image = "".join(pattern[k] for k in s.perm)
            flipped = self.closed and image.translate(_FLIP) == pattern
            if image == pattern or flipped or constant:
                perm = tuple(axes.index(s.perm[k]) for k in axes)
                sign = s.sign if image == pattern else s.sign * self.parity(tensor)
                kept.append(Symmetry(perm, sign, s.conj))
        chosen: list[Symmetry] = []
        reached = {Symmetry(tuple(range(tensor.rank)))}
        for symmetry in sorted(kept, key=lambda s: (_moved(s), s.perm, s.conj)):
            if symmetry not in reached:
                chosen.append(symmetry)
                reached = set(symmetry_group(replace(tensor, symmetry=tuple(chosen))))
        return tuple(chosen)

    def _quantity(self, tensor: Tensor, pattern: Pattern) -> Quantity | None:
        """The quantity of a block; <pq||rs> is <pq|rs> where its spins differ."""
        match tensor.quantity:
            case Quantity.ANTISYMMETRISED if self.closed or len(set(pattern)) > 1:
                return Quantity.PHYSICIST
            case quantity:
                return quantity

    def _name(
        self, tensor: Tensor, pattern: Pattern, axes: tuple[int, ...], spaces: tuple[Space, ...]
    ) -> str:
        form = self.forms[tensor]
        if self.closed and form.constant:
            name = tensor.name
        elif self.closed:
            name = closed_shell_name(tensor, pattern, axes, spaces, form.flow)
        else:
            name = block_name(tensor, pattern, axes, spaces)
        unique, number = name, 1
        while unique in self._taken or (unique in self._sources and unique != tensor.name):
            number += 1
            unique = f"{name}_{number}"
        self._taken.add(unique)
        return unique


def _kept_sides(
    tensor: Tensor, axes: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """What a block conserves beside the spin, as declared, with its axes in the order ``axes``."""
    if tensor.conserves is None or not any(space.graded for space in tensor.spaces):
        return None
    sides = ((k for k, axis in enumerate(axes) if axis in side) for side in tensor.conserves)
    sources, targets = map(tuple, sides)
    return sources, targets


def _packed(
    tensor: Tensor, spaces: tuple[Space, ...], symmetry: tuple[Symmetry, ...]
) -> tuple[Packing, ...]:
    """The packed groups whose axes are symmetric in a block."""
    if not tensor.storage.packed:
        return ()
    group = symmetry_group(replace(tensor, spaces=spaces, symmetry=symmetry))
    return tuple(
        packing
        for packing in tensor.storage.packed
        if all(
            Symmetry(exchanged(tensor.rank, pair), -1 if packing.antisymmetric else 1) in group
            for pair in pairwise(packing.axes)
        )
    )


def _moved(symmetry: Symmetry) -> int:
    return sum(k != image for k, image in enumerate(symmetry.perm))


def is_balanced(pattern: Pattern, flow: Flow) -> bool:
    """True if alpha and beta spins enter equally often, or one of them once more."""
    entering = [x for x, f in zip(pattern, flow, strict=True) if f > 0]
    return abs(2 * entering.count("a") - len(entering)) <= 1


@lru_cache(maxsize=10_000)
def balanced_blocks(pattern: Pattern, flow: Flow) -> tuple[tuple[Fraction, Pattern], ...]:
    """A conserving block as the sum of numbers times balanced blocks with the same indices.

    Example:
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
    goal, blocks, basis = _matching(upper, lower), list[tuple[str, str]](), list[Vector]()
    for block in _balanced(len(upper)):
        vector = _matching(*block)
        if any(remainder(vector, basis)):
            basis = reduced([*basis, vector])
            blocks.append(block)
            if not any(remainder(goal, basis)):
                break
    numbers = coordinates(goal, [_matching(*block) for block in blocks])
    return tuple((number, *block) for number, block in zip(numbers, blocks, strict=True) if number)


def _balanced(pairs: int) -> Iterator[tuple[str, str]]:
    """Balanced blocks in alphabetical order; one of two that differ by a flip of all spins."""
    letters = "a" * ((pairs + 1) // 2) + "b" * (pairs // 2)
    spins = sorted({"".join(p) for p in permutations(letters)})
    flipped = pairs % 2 == 0
    return ((u, low) for u in spins if not (flipped and u[0] == "b") for low in spins)


def _matching(upper: str, lower: str) -> Vector:
    """For each permutation of the lower spins: 1 if it makes them equal to the upper ones."""
    orders = permutations(range(len(upper)))
    return tuple(
        Fraction(all(u == lower[p] for u, p in zip(upper, o, strict=True))) for o in orders
    )

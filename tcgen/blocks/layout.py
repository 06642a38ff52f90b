"""Places of the blocks of a tensor in memory: one matrix for each composite irrep of the row axes.

The axes are divided into rows and columns. The irreps of the row axes, with their signs, add up to
the composite irrep of a row, and those of the column axes to that of a column. Blocks with the same
composite irreps are rectangles of one dense matrix, so that a product over all columns (or rows) is
one product of matrices for each irrep.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..grading import Grading

Numbers: TypeAlias = npt.NDArray[np.int64]
Axes: TypeAlias = tuple[int, ...]
Storage: TypeAlias = tuple[Axes, Axes]  # the row axes and the column axes, each slowest first


class Group:
    """The elements of a finite abelian group by their numbers; 0 is the neutral one.

    Attributes:
        order: number of elements.
        negative: number of the inverse of each element.
        sums: number of the sum of two elements.
        own_inverse: whether each element is its own inverse, so that signs have no effect.
    """

    def __init__(self, grading: Grading) -> None:
        self.order = len(grading)
        self.negative: Numbers = grading.negation.astype(np.int64)
        self.sums: Numbers = grading.addition.astype(np.int64)
        self.own_inverse = grading.own_inverse

    def tuples(self, axes: int) -> Numbers:
        """All tuples of irreps of some axes, in lexical order, one a row."""
        places = np.indices((self.order,) * axes, dtype=np.int64)
        return places.reshape(axes, self.order**axes).T

    def signed(self, irreps: Any, sign: int) -> Any:
        """Irreps times a sign: themselves, their inverses, or the neutral one."""
        return irreps if sign > 0 else self.negative[irreps] if sign < 0 else irreps * 0

    def total(self, irreps: Numbers, signs: Sequence[int]) -> Numbers:
        """The signed sum of the columns of an array, a row at a time."""
        total = np.zeros(len(irreps), np.int64)
        for axis, sign in enumerate(signs):
            if sign:
                total = self.sums[total, self.signed(irreps[:, axis], sign)]
        return total


@dataclass(frozen=True, eq=False)
class Composite:
    """Irreps of a group of axes, in lexical order, and their places among those of equal sum.

    Attributes:
        totals: signed sum of each tuple of irreps.
        starts: place of its first element among the elements of that sum.
        counts: elements of each sum.
    """

    totals: Numbers
    starts: Numbers
    counts: Numbers

    @staticmethod
    def of(
        group: Group, dims: Sequence[Numbers], signs: Sequence[int], *, packed: bool = False
    ) -> Composite:
        """The composite irreps of axes with ``dims`` orbitals by irrep.

        If two axes are ``packed``, only pairs of orbitals are counted of which the first is not
        before the second: a triangle where both have the same irrep.
        """
        tuples = group.tuples(len(dims))
        totals = group.total(tuples, signs)
        lengths = np.ones(len(tuples), np.int64)
        for axis, dim in enumerate(dims):
            lengths *= dim[tuples[:, axis]]
        if packed:
            first, second = tuples.T
            half = np.where(first == second, dims[0][first] * (dims[0][first] + 1) // 2, lengths)
            lengths = np.where(first < second, 0, half)
        order = np.argsort(totals, kind="stable")
        counts = np.bincount(totals, lengths, group.order).astype(np.int64)
        before = np.cumsum(lengths[order]) - lengths[order]
        starts = np.empty_like(lengths)
        starts[order] = before - (np.cumsum(counts) - counts)[totals[order]]
        return Composite(totals, starts, counts)


class BlockLayout:
    """Blocks of one tensor and their places in a flat buffer.

    Attributes:
        group: the group of the irreps.
        dims: orbitals of each irrep, for each axis.
        signs: sign with which the irrep of each axis enters; 0 for axes that take no part.
        charge: signed sum of the irreps of each block.
        storage: the row and the column axes.
        pair: the two axes of one side of the storage if this is packed, else ().
        blocks: irreps of each block, those of no elements included, in lexical order of the free
            axes.
        extents: shape of each block.
        size: elements of all blocks.
    """

    def __init__(
        self,
        group: Group,
        dims: Sequence[Numbers],
        signs: Sequence[int],
        charge: int = 0,
        storage: Storage | None = None,
        pair: Axes = (),
    ) -> None:
        self.group = group
        self.pair = pair
        self.dims = tuple(dims)
        self.signs = tuple(map(abs, signs)) if group.own_inverse else tuple(signs)
        self.charge = charge
        self.rank = len(self.dims)
        self.storage = halves(self.rank) if storage is None else storage
        signed = [axis for axis, sign in enumerate(self.signs) if sign]
        self._last = signed[-1] if signed else None
        self._free = tuple(axis for axis in range(self.rank) if axis != self._last)

    def stored(self, storage: Storage, pair: Axes = ()) -> BlockLayout:
        """The layout of the same blocks in another storage, of which one side may be packed."""
        if storage == self.storage and pair == self.pair:
            return self
        made = BlockLayout(self.group, self.dims, self.signs, self.charge, storage, pair)
        for name in ("blocks", "extents"):
            if name in vars(self):
                vars(made)[name] = vars(self)[name]
        return made

    @cached_property
    def blocks(self) -> Numbers:
        """Irreps of the blocks: that of the last axis with a sign follows from the others."""
        group, free, last = self.group, self._free, self._last
        chosen = group.tuples(len(free))
        if last is None:
            # Without signs only the neutral element is a sum.
            return np.ascontiguousarray(chosen if self.charge == 0 else chosen[:0])
        blocks = np.zeros((len(chosen), self.rank), np.int64)
        blocks[:, list(free)] = chosen
        total = group.total(chosen, [self.signs[axis] for axis in free])
        rest = group.sums[self.charge, group.negative[total]]
        blocks[:, last] = group.signed(rest, self.signs[last])
        return blocks

    @cached_property
    def extents(self) -> Numbers:
        """Shapes of the blocks."""
        shape = np.ones(self.blocks.shape, np.int64)
        for axis, dim in enumerate(self.dims):
            shape[:, axis] = dim[self.blocks[:, axis]]
        return shape

    @cached_property
    def filled(self) -> npt.NDArray[np.bool_]:
        """Which blocks are stored and have elements."""
        filled = self.extents.all(axis=1)
        if self.pair:
            filled &= self.blocks[:, self.pair[0]] >= self.blocks[:, self.pair[1]]
        return np.asarray(filled)

    @cached_property
    def size(self) -> int:
        """Elements of all blocks."""
        return int((self.rows.counts * self.widths).sum())

    def find(self, irreps: Numbers) -> Numbers:
        """Numbers of blocks by their irreps, which are allowed."""
        number = np.zeros(len(irreps), np.int64)
        for axis in self._free:
            number = number * self.group.order + irreps[:, axis]
        return number

    def allowed(self, irreps: Numbers) -> npt.NDArray[np.bool_]:
        """Which tuples of irreps are those of a block."""
        return np.asarray(self.group.total(irreps, self.signs) == self.charge)

    def _side(self, axes: Axes) -> Composite:
        dims, signs = [self.dims[a] for a in axes], [self.signs[a] for a in axes]
        return Composite.of(self.group, dims, signs, packed=axes == self.pair != ())

    @cached_property
    def rows(self) -> Composite:
        """The composite irreps of the row axes."""
        return self._side(self.storage[0])

    @cached_property
    def columns(self) -> Composite:
        """The composite irreps of the column axes."""
        return self._side(self.storage[1])

    @cached_property
    def widths(self) -> Numbers:
        """Columns of the matrix of each composite irrep of rows."""
        return np.asarray(self.columns.counts[self.opposite])

    @cached_property
    def opposite(self) -> Numbers:
        """The composite irrep of columns beside that of rows, and the reverse."""
        found: Numbers = self.group.sums[self.charge, self.group.negative]
        return found

    @cached_property
    def bases(self) -> Numbers:
        """Start of the matrix of each composite irrep of rows."""
        sizes = self.rows.counts * self.widths
        found: Numbers = np.cumsum(sizes) - sizes
        return found

    @cached_property
    def places(self) -> tuple[Numbers, Numbers]:
        """Offset of each block, and the strides of its axes."""
        blocks, extents = self.blocks, self.extents
        strides = np.ones((len(blocks), self.rank), np.int64)
        row_axes, column_axes = self.storage
        row, column = self._number(row_axes), self._number(column_axes)
        total = self.rows.totals[row]
        widths = self.widths[total]
        offsets = self.bases[total] + self.rows.starts[row] * widths + self.columns.starts[column]
        for axes, run in ((column_axes, np.ones(len(blocks), np.int64)), (row_axes, widths)):
            for axis in reversed(axes):
                strides[:, axis] = run
                run = run * extents[:, axis]
        return offsets, strides

    def _number(self, axes: Axes) -> Numbers:
        number = np.zeros(len(self.blocks), np.int64)
        for axis in axes:
            number = number * self.group.order + self.blocks[:, axis]
        return number

    def side(self, axes: Axes) -> Composite:
        """The composite irreps of one of the two sides of the storage."""
        return self.rows if self.storage[0] == axes else self.columns

    def matrices(self, irreps: Numbers, rows: Axes, columns: Axes) -> tuple[Numbers, Numbers, bool]:
        """Offsets, row strides and transposition of matrices whose rows have composite irreps.

        ``rows`` and ``columns`` are the two sides of the storage, in either order.
        """
        flipped = self.storage != (rows, columns)
        stored = self.opposite[irreps] if flipped else irreps
        return self.bases[stored], np.maximum(self.widths[stored], 1), flipped


class PartLayout(BlockLayout):
    """The blocks of some orbitals on axes of joined spaces, where they lie among all orbitals.

    Attributes:
        whole: the layout of all orbitals.
        before: numbers of orbitals of each irrep before the part, for each axis.
    """

    def __init__(
        self, whole: BlockLayout, dims: Sequence[Numbers], before: Sequence[Numbers]
    ) -> None:
        super().__init__(whole.group, dims, whole.signs, whole.charge, whole.storage)
        self.whole = whole
        self.before = tuple(before)

    def stored(self, storage: Storage, pair: Axes = ()) -> BlockLayout:
        """The layout of a copy of these blocks alone."""
        return BlockLayout(self.group, self.dims, self.signs, self.charge, storage, pair)

    @cached_property
    def places(self) -> tuple[Numbers, Numbers]:
        """Offset of each block, and the strides of its axes."""
        offsets, strides = self.whole.places
        starts = np.stack([n[self.blocks[:, a]] for a, n in enumerate(self.before)], axis=1)
        return offsets + (starts * strides).sum(axis=1), strides


class SlicedLayout(BlockLayout):
    """Blocks of a tensor as slices, one for each tuple of orbitals of some axes.

    Attributes:
        axes: the axes that a slice lacks.
        kept: the axes of a slice.
        inner: the storage of a slice.
    """

    def __init__(self, whole: BlockLayout, axes: Axes, inner: Storage) -> None:
        super().__init__(whole.group, whole.dims, whole.signs, whole.charge)
        self.axes = axes
        self.kept = tuple(a for a in range(whole.rank) if a not in axes)
        self.inner = inner

    @cached_property
    def _irreps(self) -> Numbers:
        return self.group.tuples(len(self.axes))

    @cached_property
    def _charges(self) -> Numbers:
        """The charge of a slice by the irreps of the orbitals."""
        total = self.group.total(self._irreps, [self.signs[a] for a in self.axes])
        return np.asarray(self.group.sums[self.charge, self.group.negative[total]])

    @cached_property
    def _slices(self) -> dict[int, BlockLayout]:
        """The layout of a slice by its charge."""
        dims, signs = [self.dims[a] for a in self.kept], [self.signs[a] for a in self.kept]
        return {
            c: BlockLayout(self.group, dims, signs, c, self.inner)
            for c in map(int, np.unique(self._charges))
        }

    @cached_property
    def _counts(self) -> Numbers:
        """Orbitals of each irrep tuple, an axis a column."""
        counts = np.ones(self._irreps.shape, np.int64)
        for n, axis in enumerate(self.axes):
            counts[:, n] = self.dims[axis][self._irreps[:, n]]
        return counts

    @cached_property
    def _sizes(self) -> Numbers:
        return np.array([self._slices[int(c)].size for c in self._charges], np.int64)

    @cached_property
    def _bases(self) -> Numbers:
        """Start of the first slice of each tuple of irreps."""
        sizes = self._sizes * self._counts.prod(axis=1)
        return np.asarray(np.cumsum(sizes) - sizes)

    @cached_property
    def size(self) -> int:
        """Elements of all slices."""
        return int((self._sizes * self._counts.prod(axis=1)).sum())

    @cached_property
    def places(self) -> tuple[Numbers, Numbers]:
        """Offset of each block, and the strides of its axes."""
        offsets = np.zeros(len(self.blocks), np.int64)
        strides = np.ones((len(self.blocks), self.rank), np.int64)
        number = self._number(self.axes)
        charges = self._charges[number]
        for charge, layout in self._slices.items():
            rows = np.flatnonzero(charges == charge)
            at = layout.find(self.blocks[rows][:, list(self.kept)])
            own, steps = layout.places
            offsets[rows] = self._bases[number[rows]] + own[at]
            strides[rows[:, None], list(self.kept)] = steps[at]
        run = self._sizes[number]
        for n in reversed(range(len(self.axes))):
            strides[:, self.axes[n]] = run
            run = run * self._counts[number, n]
        return offsets, strides

    def starts(self, irreps: Numbers, orbitals: Numbers) -> Numbers:
        """Offsets of slices by irreps of the orbitals and their places in these, one a row."""
        number, place = np.zeros(len(irreps), np.int64), np.zeros(len(irreps), np.int64)
        for n in range(len(self.axes)):
            number = number * self.group.order + irreps[:, n]
        for n in range(len(self.axes)):
            place = place * self._counts[number, n] + orbitals[:, n]
        return np.asarray(self._bases[number] + place * self._sizes[number])


def halves(rank: int) -> Storage:
    """The storage of arrays of the caller: the first half of the axes are rows."""
    middle = (rank + 1) // 2
    return tuple(range(middle)), tuple(range(middle, rank))

"""Tables of blocks: the rows over which the generated C loops run, for one grading.

A table has ``places``, an offset for each array and row, and ``steps``: extents of loops and
strides. An offset of -1 is a block that conservation forbids, whose elements are zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..errors import PlanError
from .layout import Axes, BlockLayout, Numbers

MOST_LOOPS = 6  # loops of a copied block, after neighbouring axes are joined
_LARGEST = np.iinfo(np.int32).max


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of a loop over blocks.

    Attributes:
        places: int64 offsets, (rows, arrays).
        steps: int32 extents and strides, (rows, width).
    """

    places: npt.NDArray[np.int64]
    steps: npt.NDArray[np.int32]

    @property
    def nbytes(self) -> int:
        """Bytes of the table."""
        return self.places.nbytes + self.steps.nbytes


def make_table(places: Numbers, steps: Numbers) -> Table:
    """A table in contiguous memory; a PlanError if an extent or a stride exceeds 32 bits."""
    largest = int(steps.max(initial=0))
    if largest > _LARGEST:
        raise PlanError(
            f"a stride of {largest:,} elements exceeds the 32 bits of tables of blocks: use a "
            f"larger group, or call the program with dense arrays"
        )
    return Table(np.ascontiguousarray(places), np.ascontiguousarray(steps, dtype=np.int32))


def copies(
    target: BlockLayout,
    source: BlockLayout,
    axes: Sequence[int],
    *,
    strict: bool = False,
) -> Table:
    """The blocks of ``source`` and their places in ``target``; a row has extents and two strides.

    Args:
        target: layout that is written.
        source: layout that is read.
        axes: axis of the target for each axis of the source.
        strict: leave pairs of equal orbitals out of a source with packed pairs.
    """
    wanted = source.filled
    if target.pair:
        # The same axes of the source, since the target is a copy of it.
        wanted = wanted & (source.blocks[:, target.pair[0]] >= source.blocks[:, target.pair[1]])
    irreps = np.empty_like(source.blocks[wanted])
    irreps[:, list(axes)] = source.blocks[wanted]
    at = target.find(irreps)
    offsets, strides = target.places
    source_offsets, source_strides = source.places
    places = np.stack([offsets[at], source_offsets[wanted]], axis=1)
    e = source.extents[wanted]
    d, s = strides[at][:, list(axes)], source_strides[wanted]
    if pair := source.pair or target.pair:
        here = (1, s) if source.pair else (0, d)
        equal = source.blocks[wanted][:, pair[0]] == source.blocks[wanted][:, pair[1]]
        places, e, d, s = _triangles(places, e, d, s, pair, equal, here, strict=strict)
    # Loops go from the slowest axis of the target to the fastest.
    order = np.argsort(-d, axis=1, kind="stable")
    e, d, s = (np.take_along_axis(x, order, 1) for x in (e, d, s))
    e, d, s = _joined(e, d, s)
    if e.shape[1] > 2:
        # The source's fastest axis is beside the target's, so that both are transposed as squares.
        place = e.shape[1] - 2
        fastest = np.where(e > 1, s, _LARGEST).argmin(axis=1)
        order = np.tile(np.arange(e.shape[1]), (len(e), 1))
        row = np.flatnonzero(fastest < place)
        order[row, place], order[row, fastest[row]] = fastest[row], place
        e, d, s = (np.take_along_axis(x, order, 1) for x in (e, d, s))
    return make_table(places, np.concatenate([e, d, s], axis=1))


def _triangles(
    places: Numbers,
    e: Numbers,
    d: Numbers,
    s: Numbers,
    pair: Axes,
    equal: npt.NDArray[np.bool_],
    packed: tuple[int, Numbers],
    *,
    strict: bool,
) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Rows in which each row of a packed triangle is a row of the table.

    ``equal`` are the blocks with a triangle, and ``packed`` is the packed array: its number, and
    its strides.
    """
    slow, fast = pair
    array, steps = packed
    times = np.where(equal, e[:, slow], 1)
    again = np.repeat(np.arange(len(e)), times)
    n = np.arange(len(again)) - np.repeat(np.cumsum(times) - times, times)
    places, e, d, s, steps = (x[again].copy() for x in (places, e, d, s, steps))
    triangle = equal[again]
    whole = (s if array == 0 else d)[:, slow]
    places[:, array] += np.where(triangle, n * (n + 1) // 2 * steps[:, fast], 0)
    places[:, 1 - array] += np.where(triangle, n * whole, 0)
    e[triangle, slow] = 1
    e[triangle, fast] = n[triangle] + (0 if strict else 1)
    kept = e[:, fast] > 0
    return places[kept], e[kept], d[kept], s[kept]


def _joined(e: Numbers, d: Numbers, s: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Extents and strides with neighbouring loops joined that walk both arrays as one."""
    axis = 0
    while axis + 1 < e.shape[1]:
        single = (e[:, axis] == 1) | (e[:, axis + 1] == 1)
        runs = (d[:, axis] == d[:, axis + 1] * e[:, axis + 1]) & (
            s[:, axis] == s[:, axis + 1] * e[:, axis + 1]
        )
        if not (runs | single).all():
            axis += 1
            continue
        skipped = e[:, axis + 1] == 1
        d[:, axis + 1] = np.where(skipped, d[:, axis], d[:, axis + 1])
        s[:, axis + 1] = np.where(skipped, s[:, axis], s[:, axis + 1])
        e[:, axis + 1] *= e[:, axis]
        e, d, s = (np.delete(x, axis, axis=1) for x in (e, d, s))
        axis = max(0, axis - 1)
    return e, d, s


@dataclass(frozen=True)
class Walked:
    """An array of a map: its layout and the loop of each of its axes."""

    layout: BlockLayout
    loops: tuple[int, ...]


def walks(
    dims: Sequence[Numbers],
    arrays: Sequence[Walked],
    deltas: Sequence[tuple[int, int, Numbers]],
    required: Sequence[int | tuple[int, int]],
) -> Table:
    """The tuples of irreps that a map walks; a row has extents, strides, and shifts of deltas.

    Args:
        dims: orbitals by irrep of each loop, those of the target first.
        arrays: the target, then the arrays that are read.
        deltas: loops of Kronecker deltas, and by irrep the orbitals of the second loop before those
            of the first. A row has this shift, or -1 if the irreps differ.
        required: numbers of arrays and deltas whose zeros make a row superfluous.
    """
    conditions = [(arrays[n].loops, arrays[n].layout) for n in required if isinstance(n, int)]
    equal = [pair for pair in required if isinstance(pair, tuple)]
    tuples = np.zeros((1, 0), np.int64)
    for loops, layout in conditions:
        if not loops:
            tuples = tuples[layout.allowed(tuples)]
    for loop, dim in enumerate(dims):
        irreps = np.flatnonzero(dim)
        tuples = np.concatenate(
            [np.repeat(tuples, len(irreps), 0), np.tile(irreps, len(tuples))[:, None]], axis=1
        )
        for loops, layout in conditions:
            if loops and max(loops) == loop:
                tuples = tuples[layout.allowed(tuples[:, list(loops)])]
        for pair in equal:
            if max(pair) == loop:
                tuples = tuples[tuples[:, pair[0]] == tuples[:, pair[1]]]
    extents = np.ones(tuples.shape, np.int64)
    for loop, dim in enumerate(dims):
        extents[:, loop] = dim[tuples[:, loop]]
    places, steps = [], [extents]
    for array in arrays:
        offset, stride = _place(array, tuples, len(dims))
        places.append(offset)
        steps.append(stride)
    for one, other, before in deltas:
        same = tuples[:, one] == tuples[:, other]
        steps.append(np.where(same, before[tuples[:, one]], -1)[:, None])
    return make_table(np.stack(places, axis=1), np.concatenate(steps, axis=1))


def _place(array: Walked, tuples: Numbers, loops: int) -> tuple[Numbers, Numbers]:
    layout = array.layout
    offsets = np.full(len(tuples), -1, np.int64)
    strides = np.zeros((len(tuples), loops), np.int64)
    irreps = tuples[:, list(array.loops)]
    present = layout.allowed(irreps)
    at = layout.find(irreps[present])
    offset, stride = layout.places
    offsets[present] = offset[at]
    for axis, loop in enumerate(array.loops):
        strides[present, loop] += stride[at, axis]
    return offsets, strides


def product_table(
    a: tuple[BlockLayout, Axes, Axes],
    b: tuple[BlockLayout, Axes, Axes],
    c: tuple[BlockLayout, Axes, Axes],
    *,
    accumulate: bool,
) -> tuple[Table, int, bool]:
    """The products of matrices ``C[m,n] = A[m,k] B[k,n]``, one for each irrep of k.

    Each operand is a layout with the axes of its two groups, in the order of the product; the
    layout stores them in this order or with rows and columns exchanged. A row has m, n, k, the row
    strides of C, A and B, and whether A and B are transposed.

    Returns:
        The table, its flops, and whether it computes C^T = B^T A^T, since C is stored so.
    """
    (one, a_m, a_k), (other, b_k, b_n), (target, c_m, c_n) = a, b, c
    group = one.group

    def related(x: BlockLayout, p: Axes, y: BlockLayout, q: Axes) -> int:
        opposite = [x.signs[i] for i in p] != [y.signs[i] for i in q]
        return -1 if opposite else 1

    q = np.arange(group.order)
    q_m = one.opposite[q]
    q_b = group.signed(q, related(one, a_k, other, b_k))
    q_n = other.opposite[q_b]
    q_c = group.signed(q_m, related(one, a_m, target, c_m))
    m, k = one.side(a_m).counts[q_m], one.side(a_k).counts[q]
    n = other.side(b_n).counts[q_n]
    wanted = group.signed(q_n, related(other, b_n, target, c_n))
    used = (m > 0) & (n > 0) & (target.opposite[q_c] == wanted)
    if accumulate:
        used &= k > 0
    offset_a, stride_a, flip_a = one.matrices(q_m, a_m, a_k)
    offset_b, stride_b, flip_b = other.matrices(q_b, b_k, b_n)
    offset_c, stride_c, swapped = target.matrices(q_c, c_m, c_n)
    if swapped:
        m, n = n, m
        offset_a, stride_a, flip_a, offset_b, stride_b, flip_b = (
            *(offset_b, stride_b, not flip_b),
            *(offset_a, stride_a, not flip_a),
        )
    flips = (np.full(len(q), int(flip)) for flip in (flip_a, flip_b))
    places = np.stack([offset_c, offset_a, offset_b], axis=1)[used]
    steps = np.stack([m, n, k, stride_c, stride_a, stride_b, *flips], axis=1)[used]
    return make_table(places, steps), int(2 * steps[:, :3].prod(axis=1).sum()), swapped

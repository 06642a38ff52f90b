"""Blocked arrays: the blocks that conservation allows, and conversion from and to dense arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ..dtypes import NAMES
from ..errors import ArgumentError, CheckError, DtypeError, ShapeError
from ..grading import Grading
from ..ir.tensor import Tensor
from ..runtime.symmetry import ROUNDING
from ..runtime.symmetry import TOLERANCE as SYMMETRIC
from .layout import BlockLayout, Group, Numbers

Array = npt.NDArray[Any]
# Largest forbidden elements that are taken for rounding, relative to 1.
TOLERANCE = {"float64": 1e-8, "complex128": 1e-8, "float32": 1e-4}
_SHOWN = 6  # most blocks that repr() lists
_SAMPLES = 8  # blocks, and elements on each axis, that are compared for a symmetry


class BlockedArray:
    """An array whose forbidden blocks are not stored; :func:`tcgen.blocked` makes it.

    A block has one irrep on each axis. It is stored if the irreps, each with the sign of its axis,
    add up to the charge of the array.

    Attributes:
        data: all stored elements, a flat array. Sums, norms and products by numbers of arrays with
            the same layout act on it.
        grading: the group, and the irreps of the orbitals.
        spaces: name of the space of each axis.
    """

    __slots__ = ("_layout", "data", "grading", "spaces")

    def __init__(
        self, data: Array, grading: Grading, spaces: Sequence[str], layout: BlockLayout
    ) -> None:
        self.data = data
        self.grading = grading
        self.spaces = tuple(spaces)
        self._layout = layout

    @property
    def layout(self) -> BlockLayout:
        """Where the blocks lie in ``data``."""
        return self._layout

    @property
    def signs(self) -> tuple[int, ...]:
        """The sign with which the irrep of each axis enters; 0 where all irreps are stored."""
        return self._layout.signs

    @property
    def charge(self) -> int:
        """The number of the element to which the irreps of each block add up."""
        return self._layout.charge

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the dense array."""
        return tuple(int(dim.sum()) for dim in self._layout.dims)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self._layout.rank

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the elements."""
        return self.data.dtype

    @property
    def nbytes(self) -> int:
        """Bytes of the stored elements."""
        return self.data.nbytes

    def block(self, *irreps: str | int | Sequence[int]) -> Array:
        """One block, as a view.

        Args:
            irreps: name, number or components of the irrep on each axis.

        Returns:
            The elements of these orbitals, in the order of the dense array.

        Raises:
            ArgumentError: the block is forbidden, or an irrep does not exist.
        """
        if len(irreps) != self.ndim:
            raise ArgumentError(
                f"block(): {len(irreps)} irreps are given for an array of {self.ndim} axes: give "
                f"one for each axis"
            )
        numbers = np.array([[self.grading.element(g) for g in irreps]], np.int64)
        numbers = numbers.reshape(1, self.ndim)
        if not self._layout.allowed(numbers)[0]:
            names = self._names(numbers[0])
            raise ArgumentError(
                f"block {names} is forbidden: its irreps do not add up to "
                f"{self.grading.names[self.charge]}, so that its elements are zero"
            )
        return self._view(int(self._layout.find(numbers)[0]))

    def blocks(self) -> Iterator[tuple[tuple[int, ...], Array]]:
        """The stored blocks that have elements: numbers of the irreps, and a view."""
        for number in np.flatnonzero(self._layout.filled):
            yield tuple(map(int, self._layout.blocks[number])), self._view(int(number))

    def dense(self) -> Array:
        """The dense array, with the orbitals in the order of the grading."""
        made = np.zeros(self.shape, self.dtype)
        starts = _starts(self._layout)
        for irreps, block in self.blocks():
            made[_range(starts, irreps)] = block
        for axis, space in enumerate(self.spaces):
            order = _order(self.grading, space)
            if order is not None:
                made = np.take(made, np.argsort(order), axis=axis)
        return made

    def copy(self) -> BlockedArray:
        """A copy with its own elements."""
        return BlockedArray(self.data.copy(), self.grading, self.spaces, self._layout)

    def save(self, file: Any, name: str) -> None:
        """Write the array into an open HDF5 file or group, as a group with this name.

        Raises:
            ArgumentError: the name is taken.
        """
        if name in file:
            raise ArgumentError(f"{name} exists in the file already: delete it, or choose a name")
        group = file.create_group(name)
        group.create_dataset("data", data=self.data)
        group.attrs.update(
            spaces=list(self.spaces) if self.spaces else np.zeros(0, "S1"),
            signs=np.array(self.signs, np.int64),
            charge=self.charge,
            moduli=np.array(self.grading.moduli, np.int64),
            group=self.grading.name,
            extents=np.array(self.shape, np.int64),
        )
        # Attributes hold at most 64 KiB, and a name of HDF5 has no slash.
        group.create_dataset("names", data=list(self.grading.names))
        for number, space in enumerate(self.grading.spaces):
            irreps = np.array(self.grading.orbitals(space), np.int64)
            group.create_dataset(f"irreps/{number}", data=irreps).attrs["space"] = space

    def description(self) -> dict[str, Any]:
        """All but the elements, as plain data for JSON."""
        grading = self.grading
        return {
            "spaces": list(self.spaces),
            "signs": list(self.signs),
            "charge": self.charge,
            "extents": list(self.shape),
            "moduli": list(grading.moduli),
            "group": grading.name,
            "names": list(grading.names),
            "irreps": {space: list(grading.orbitals(space)) for space in grading.spaces},
        }

    @staticmethod
    def described(data: Array, description: Mapping[str, Any], name: str) -> BlockedArray:
        """The array of such elements that has this description.

        Raises:
            ArgumentError: the number of elements is another one.
        """
        own = description
        grading = Grading(own["moduli"], own["irreps"], own["names"], name=own["group"])
        pairs = zip(own["spaces"], own["extents"], strict=True)
        dims = [orbitals_by_irrep(grading, space, extent) for space, extent in pairs]
        layout = BlockLayout(Group(grading), dims, own["signs"], own["charge"])
        if data.shape != (layout.size,):
            raise ArgumentError(
                f"{name} has {data.size} elements, but its blocks have {layout.size}: the file is "
                f"damaged"
            )
        return BlockedArray(data, grading, own["spaces"], layout)

    @staticmethod
    def load(file: Any, name: str) -> BlockedArray:
        """Read an array that :meth:`save` wrote.

        Raises:
            ArgumentError: there is no such group, or it does not hold a blocked array.
        """
        if name not in file or "data" not in file[name] or "signs" not in file[name].attrs:
            raise ArgumentError(f"{name} is not a blocked array of the file: save() writes them")
        group = file[name]
        attributes = group.attrs
        irreps = group["irreps"].values() if "irreps" in group else ()
        description = {
            "spaces": [s if isinstance(s, str) else s.decode() for s in attributes["spaces"]],
            "signs": [int(s) for s in attributes["signs"]],
            "charge": int(attributes["charge"]),
            "extents": [int(n) for n in attributes["extents"]],
            "moduli": [int(m) for m in attributes["moduli"]],
            "group": str(attributes["group"]),
            "names": [name.decode() for name in group["names"][...]],
            "irreps": {str(one.attrs["space"]): one[...].tolist() for one in irreps},
        }
        return BlockedArray.described(group["data"][...], description, name)

    def __repr__(self) -> str:
        names = self.grading.names
        shown = []
        filled = np.flatnonzero(self._layout.filled)
        for number in filled[:_SHOWN]:
            size = "x".join(map(str, self._layout.extents[number])) or "1"
            shown.append(f"({', '.join(names[g] for g in self._layout.blocks[number])}) {size}")
        if len(filled) > _SHOWN:
            shown.append("...")
        charge = f", charge {names[self.charge]}" if self.charge else ""
        stored = f"{self.data.size:,} of {prod(self.shape):,} elements"
        head = f"<BlockedArray [{','.join(self.spaces)}] {self.dtype}{charge}"
        return f"{head}: {len(filled)} blocks, {stored}: {'; '.join(shown)}>"

    def _names(self, irreps: Numbers) -> str:
        return f"({', '.join(self.grading.names[g] for g in irreps)})"

    def _view(self, number: int) -> Array:
        if self.data.shape != (self._layout.size,):
            raise ShapeError(
                f"data has the shape {self.data.shape}, but the blocks have {self._layout.size:,} "
                f"elements: fill array.data[...], or give it an array of one axis with as many"
            )
        offsets, strides = self._layout.places
        return np.lib.stride_tricks.as_strided(
            self.data[offsets[number] :],
            self._layout.extents[number],
            strides[number] * self.data.strides[0],
        )


def blocks_of(
    array: Array,
    grading: Grading,
    spaces: Sequence[str],
    layout: BlockLayout,
    name: str = "the array",
    tolerance: float | None = None,
) -> BlockedArray:
    """The blocks of a dense array, whose other elements have to be zero.

    Raises:
        CheckError: a forbidden element exceeds the tolerance; the largest is named.
    """
    limit = TOLERANCE[str(array.dtype)] if tolerance is None else tolerance
    starts = _starts(layout)
    orders = [_order(grading, space) for space in spaces]
    ordered = array
    for axis, order in enumerate(orders):
        if order is not None and not (order[1:] > order[:-1]).all():
            ordered = np.take(ordered, order, axis=axis)
    made = BlockedArray(np.empty(layout.size, array.dtype), grading, spaces, layout)
    worst, where = 0.0, (0,) * layout.rank
    last = max((a for a, s in enumerate(layout.signs) if s), default=None)
    views = {tuple(map(int, b)): n for n, b in enumerate(layout.blocks)}
    if last is None and layout.charge:
        views = {}
        worst = float(np.abs(ordered).max(initial=0.0))
    for irreps, number in views.items():
        place = _range(starts, irreps)
        if layout.filled[number]:
            made._view(number)[...] = ordered[place]
        if last is None:
            continue
        first, end = place[last].start, place[last].stop
        for part in (slice(0, first), slice(end, None)):
            forbidden = (*place[:last], part, *place[last + 1 :])
            rest = np.abs(ordered[forbidden])
            largest = float(rest.max(initial=0.0))
            if largest > worst or largest != largest:
                at = np.unravel_index(int(rest.argmax()), rest.shape)
                worst = largest
                where = tuple(int(i) + (s.start or 0) for i, s in zip(at, forbidden, strict=True))
        if worst != worst:
            break
    if worst > limit or worst != worst:
        position = tuple(p if o is None else int(o[p]) for p, o in zip(where, orders, strict=True))
        names = [
            grading.names[grading.orbitals(s)[p]] if s in grading else "-"
            for s, p in zip(spaces, position, strict=True)
        ]
        raise CheckError(
            f"{name} is not symmetric under {grading.name}: element {list(position)} of irreps "
            f"({', '.join(names)}) should be zero, but is {worst:.3e}: check the irreps of the "
            f"orbitals and their order, symmetrise the orbitals, or use a smaller group"
        )
    return made


def check_declared(name: str, array: BlockedArray, tensor: Tensor) -> None:
    """Compare some elements of some blocks with their images under the declared symmetries.

    Raises:
        CheckError: elements deviate that should agree.
    """
    layout, kind = array.layout, str(array.dtype)
    filled = np.flatnonzero(layout.filled)
    chosen = filled[:: 1 + len(filled) // _SAMPLES]
    limit = max(ROUNDING[kind], SYMMETRIC[kind] * float(np.abs(array.data).max(initial=0.0)))
    for symmetry in tensor.symmetry:
        back = np.argsort(symmetry.perm)
        images = layout.blocks[chosen][:, list(symmetry.perm)]
        allowed, numbers = layout.allowed(images), layout.find(images)
        for n, number in enumerate(chosen):
            every = tuple(slice(None, None, 1 + m // _SAMPLES) for m in layout.extents[number])
            own: Any = symmetry.sign * array._view(int(number))[every]
            own = own.conj() if symmetry.conj else own
            other = array._view(int(numbers[n])).transpose(back)[every] if allowed[n] else 0.0
            worst = float(np.abs(own - other).max())
            if worst > limit:
                raise CheckError(
                    f"input {name} breaks its declared symmetry: elements of block "
                    f"{array._names(layout.blocks[number])} and of {array._names(images[n])} "
                    f"deviate by {worst:.3e}: correct the array or drop the symmetry from the spec"
                )


def orbitals_by_irrep(grading: Grading, space: str, extent: int) -> Numbers:
    """The orbitals of each irrep; those of a space without grading all have the neutral one."""
    if space in grading:
        return np.array(grading[space], np.int64)
    counts = np.zeros(len(grading), np.int64)
    counts[0] = extent
    return counts


def array_layout(
    shape: Sequence[int], grading: Grading, spaces: Sequence[str], signs: Sequence[int], charge: int
) -> BlockLayout:
    """The layout of an array by its shape.

    Raises:
        ShapeError: the shape contradicts the grading.
    """
    for axis, (space, extent) in enumerate(zip(spaces, shape, strict=True)):
        if space in grading and len(grading.orbitals(space)) != extent:
            raise ShapeError(
                f"axis {axis} has {extent} elements, but the grading has "
                f"{len(grading.orbitals(space))} orbitals {space}: give the irreps of the orbitals "
                f"that the array has"
            )
    dims = [orbitals_by_irrep(grading, s, n) for s, n in zip(spaces, shape, strict=True)]
    return BlockLayout(Group(grading), dims, signs, charge)


def plain_array(array: Any, where: str) -> Array:
    """A dense array as one of NumPy.

    Raises:
        ArgumentError: it is blocked already, has masked elements, or rows of different lengths.
    """
    if isinstance(array, BlockedArray):
        raise ArgumentError(
            f"{where}: the array has blocks of {array.grading.name} already: use it as it is, or "
            f"give its dense() to divide it otherwise"
        )
    if isinstance(array, np.ma.MaskedArray):
        raise ArgumentError(
            f"{where}: masks of arrays would be lost: fill the masked elements, as in "
            f"array.filled(0)"
        )
    try:
        return np.asarray(array)
    except ValueError:
        raise ArgumentError(
            f"{where}: the rows of the array have different lengths: give an array of numbers with "
            f"one length for each axis"
        ) from None


def blocked_array(
    array: Any,
    grading: Grading,
    spaces: Any,
    signs: Any = None,
    charge: Any = 0,
    tolerance: Any = None,
) -> BlockedArray:
    """See :func:`tcgen.blocked`."""
    dense = plain_array(array, "tcgen.blocked")
    if str(dense.dtype) not in NAMES:
        raise DtypeError(
            f"elements of type {dense.dtype} cannot be blocked: convert the array to one of "
            f"{', '.join(NAMES)}"
        )
    if not isinstance(spaces, str | Sequence) or not all(isinstance(s, str) for s in spaces):
        raise ArgumentError(
            f'spaces={spaces!r:.80}: give the name of the space of each axis, as "oovv" or as a '
            f"list of names"
        )
    number = int | float | np.integer | np.floating
    if tolerance is not None and not (isinstance(tolerance, number) and tolerance >= 0):
        raise ArgumentError(f"tolerance={tolerance!r:.80}: a number of 0 or more is expected")
    names = tuple(spaces)
    if len(names) != dense.ndim:
        raise ShapeError(
            f"{dense.ndim} axes, but {len(names)} spaces {''.join(names)!r}: name the space of "
            f"each axis, in a list if the names have several letters"
        )
    middle = (dense.ndim + 1) // 2
    given = [1 if axis < middle else -1 for axis in range(dense.ndim)] if signs is None else signs
    listed = isinstance(given, Sequence | np.ndarray) and len(given) == dense.ndim
    if not listed or not all(isinstance(s, number) and s in (-1, 0, 1) for s in given):
        raise ArgumentError(f"signs={signs!r:.80}: give 1, -1 or 0 for each of {dense.ndim} axes")
    used = [int(s) if n in grading else 0 for s, n in zip(given, names, strict=True)]
    if names and not any(n in grading for n in names):
        raise ArgumentError(
            f"no axis of [{','.join(names)}] has a grading: those of the grading are "
            f"{', '.join(grading.spaces)}"
        )
    layout = array_layout(dense.shape, grading, names, used, grading.element(charge))
    limit = None if tolerance is None else float(tolerance)
    return blocks_of(dense, grading, names, layout, tolerance=limit)


def _starts(layout: BlockLayout) -> list[Numbers]:
    return [np.concatenate([[0], np.cumsum(dim)]) for dim in layout.dims]


def _range(starts: Sequence[Numbers], irreps: Sequence[int]) -> tuple[slice, ...]:
    return tuple(slice(int(s[g]), int(s[g + 1])) for s, g in zip(starts, irreps, strict=True))


def _order(grading: Grading, space: str) -> Numbers | None:
    """Positions of the orbitals sorted by irrep; None where a space has no grading."""
    return grading.order(space).astype(np.int64) if space in grading else None

"""Arrays of a mean field for the inputs of a system.

Makes the array of each quantity over the orbitals of the reference, in the layout that the spec
declares. The arrays may together take half of the memory that the PySCF object allows
(``mf.max_memory``, in MB). While they take more, the program reads the largest one in tiles. These
are cut out of the integrals over all pairs of orbitals, which then are in a temporary HDF5 file;
where these are not made, the array is written to that file, block by block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from ..blocks.arrays import BlockedArray
from ..errors import ArgumentError, ShapeError
from ..ir.layouts import Array, dense_shape, pack
from ..ir.system import System, with_axes
from ..ir.tensor import Role, Space, Tensor, element_bytes, element_type
from ..records.loops import stored_shape
from ..records.quantity import Quantity
from ..resources import shipped_specs
from .auxiliary import AuxiliaryIrreps
from .crystal_integrals import CrystalIntegrals
from .frames import ALPHA, BETA, SPATIAL, SPIN_ORBITAL, Block, Frame
from .integral_file import IntegralFile
from .integrals import Irreps, TransformOptions
from .quantities import INTEGRALS, Found
from .reference import Reference, core_hamiltonian
from .spaces import ORBITAL, Kind, OrbitalSpaces

# Part of PySCF's memory for all arrays that are held whole.
IN_MEMORY = 1 / 2
# Copies of a block that exist while it is made.
_COPIES = 8


class MeanFieldInputs:
    """Blocks of orbitals for the spaces of a system, and arrays over them."""

    def __init__(
        self,
        system: System,
        spaces: OrbitalSpaces,
        reference: Reference,
        *,
        spin_orbitals: bool,
        auxbasis: str | None = None,
    ) -> None:
        self._spaces, self._reference = spaces, reference
        self._frames = _frame_names(system, spaces, reference, spin_orbitals)
        self._integrals = reference.integrals(auxbasis)
        self._auxiliary: AuxiliaryIrreps | None = None

    def auxiliary_irreps(
        self, graded: Iterable[Space], irreps_of: Callable[[Frame], Array], products: Array
    ) -> AuxiliaryIrreps:
        """Replace the auxiliary functions by sums that have irreps, and return these.

        ``irreps_of`` gives the irreps of all orbitals of a frame, ``products`` those of each two.
        """
        names = dict.fromkeys(self._block(space).frame for space in graded)
        frames = {name: self._reference.frames[name] for name in names}
        factors = [(self._fitted_pairs(n), irreps_of(frame)) for n, frame in frames.items()]
        self._auxiliary = AuxiliaryIrreps(factors, products)
        return self._auxiliary

    def bytes_of_pairs(self, graded: Iterable[Space]) -> int:
        """Bytes of three-index integrals over all pairs of orbitals."""
        frames = {self._block(space).frame: self._frame(space) for space in graded}
        return sum(8 * self._integrals.auxiliary * f.count**2 for f in frames.values())

    def extents(self, spaces: Iterable[Space]) -> dict[str, int]:
        """Extents of the base spaces of orbitals and of auxiliary functions among some spaces."""
        extents = {}
        for space in dict.fromkeys(base for whole in spaces for base in whole.bases):
            kind = self._spaces.kind(space)
            if kind in (Kind.OCCUPIED, Kind.VIRTUAL):
                extents[space.name] = len(self._block(space).places)
            elif kind is Kind.AUXILIARY:
                own = self._auxiliary
                extents[space.name] = len(own.irreps) if own else self._integrals.auxiliary
        return extents

    @property
    def orbitals(self) -> str | None:
        """The option ``orbitals`` of ``solve`` for these; None with a space for each spin."""
        return {SPATIAL: "spatial", SPIN_ORBITAL: "spin"}.get(self._frames.get("", ALPHA))

    def frame(self, space: Space) -> tuple[str, Frame, list[int]]:
        """The name of the frame of an axis, the frame, and the places of its orbitals in it."""
        block = self._block(space)
        return block.frame, self._frame(space), list(block.places)

    def energies(self, system: System) -> dict[str, Array]:
        """Orbital energies by base space, in Hartree."""
        return {
            space.name: self._frame(space).energies[list(self._block(space).places)]
            for space in system.spaces
            if self._spaces.kind(space) in (Kind.OCCUPIED, Kind.VIRTUAL)
        }

    def occupied_energy(self) -> float:
        """Energy of the occupied orbitals that are not frozen, among themselves, in Hartree.

        It is sum_i f_ii - 1/2 sum_ij <ij||ij> over spin orbitals: a part of energies that were
        derived with the reference.
        """
        frame = self._reference.frames[SPIN_ORBITAL]
        block = Block(SPIN_ORBITAL, tuple(range(frame.occupied)))
        pairs = self._integrals.antisymmetrised(block, block, block, block)
        fock = frame.energies[: frame.occupied]
        return float(fock.sum() - np.einsum("ijij->", pairs) / 2)

    def transform_for(self, inputs: Iterable[Found], options: TransformOptions) -> None:
        """Transform the two-electron integrals of some inputs, at once where that is less work."""
        blocks: list[tuple[Block, Block, Block, Block]] = []
        for found in inputs:
            if found.quantity in INTEGRALS:
                p, q, r, s = (self._block(space) for space in found.tensor.spaces)
                chemist = found.quantity is Quantity.CHEMIST
                blocks.append((p, q, r, s) if chemist else (p, r, q, s))
                if found.quantity is Quantity.ANTISYMMETRISED:
                    blocks.append((p, s, q, r))
        self._integrals.transform_for(blocks, options)

    def bytes_apart(self, found: Found) -> float:
        """Most bytes while an input is made alone."""
        tensor = found.tensor
        if found.quantity is Quantity.HCORE:
            name = self._block(tensor.spaces[0]).frame
            frame = self._reference.frames[name]
            whole, own = (Block(name, tuple(range(n))) for n in (frame.count, frame.occupied))
            return self._integrals.bytes_apart(tensor, (whole, whole, own, own))
        if found.quantity not in INTEGRALS:
            extents = {s.name: s.extent for s in tensor.spaces if s.extent is not None}
            shape = dense_shape(tensor, extents | self.extents(tensor.spaces))
            return 2.0 * prod(shape) * element_bytes(tensor, "float64")
        p, q, r, s = (self._block(space) for space in tensor.spaces)
        if found.quantity is Quantity.CHEMIST:
            return self._integrals.bytes_apart(tensor, (p, q, r, s))
        return 2 * self._integrals.bytes_apart(unpacked(tensor), (p, r, q, s))

    def array(self, found: Found, dtype: str) -> Array | Callable[..., None]:
        """The array of an input in its declared layout; a callable for a generated input."""
        tensor = found.tensor
        if found.quantity is Quantity.CHEMIST and tensor.role is not Role.GENERATED:
            p, q, r, s = (self._block(space) for space in tensor.spaces)
            stored = self._integrals.stored(tensor, (p, q, r, s))
            if stored is not None:
                return stored.astype(element_type(tensor, dtype), copy=False)
        logical = self._logical(found)
        if found.tensor.role is not Role.GENERATED:
            return in_layout(found.tensor, logical, dtype)

        def fill(out: Array, ranges: tuple[slice, ...]) -> None:
            out[...] = logical[ranges]

        return fill

    def fill_crystal(
        self, found: Found, array: BlockedArray, places: Sequence[Sequence[Array]]
    ) -> bool:
        """Fill the blocks of integrals of k-points; False for other inputs and references.

        ``places`` are those of the orbitals of each element of the grading, for each axis.
        """
        if found.quantity not in INTEGRALS or not isinstance(self._integrals, CrystalIntegrals):
            return False
        frames = [self._block(space).frame for space in found.tensor.spaces]
        self._integrals.fill(array, frames, places, found.quantity)
        return True

    def fill(self, found: Found, parts: Iterable[tuple[Sequence[Sequence[int]], Array]]) -> bool:
        """Fill parts of an input from integrals over all pairs of orbitals; False without these.

        A part has the places of the orbitals of each axis, and the array for them.
        """
        blocks = [self._block(space) for space in found.tensor.spaces]
        if found.quantity not in INTEGRALS or not self._integrals.has_pairs(blocks):
            return False
        for places, out in parts:
            p, q, r, s = (
                replace(block, places=tuple(own)) for block, own in zip(blocks, places, strict=True)
            )
            if found.quantity is Quantity.CHEMIST:
                out[...] = self._integrals.cut(p, q, r, s)
                continue
            out[...] = self._integrals.cut(p, r, q, s).transpose(0, 2, 1, 3)
            if found.quantity is Quantity.ANTISYMMETRISED:
                out -= self._integrals.cut(p, s, q, r).transpose(0, 2, 3, 1)
        return True

    def fill_fitted(
        self, found: Found, array: BlockedArray, places: Sequence[Sequence[Array]]
    ) -> bool:
        """Fill the blocks of three-index integrals; False for other inputs.

        ``places`` are those of the orbitals of each irrep, for each axis.
        """
        if found.quantity is not Quantity.THREE_INDEX or self._auxiliary is None:
            return False
        axis = found.other_axis or 0
        name = next(self._block(s).frame for k, s in enumerate(found.tensor.spaces) if k != axis)
        factors = self._fitted_pairs(name)
        for irreps, view in array.blocks():
            p, q = (places[k][g] for k, g in enumerate(irreps) if k != axis)
            own = factors[:, p[:, None], q]
            made = np.tensordot(self._auxiliary.vectors[irreps[axis]], own, axes=(0, 0))
            view[...] = np.moveaxis(made, 0, axis)
        return True

    def largest_between(self, irreps: Irreps) -> float:
        """The largest of the integrals over all pairs whose irreps differ, in Hartree.

        Of those that were left out, it is the norm.
        """
        return self._integrals.largest_between(irreps)

    def dataset(self, found: Found, dtype: str, file: IntegralFile) -> Any:
        """The same array, to be read in tiles: from integrals over all pairs, or from a file.

        For the file it is made block by block along its first axis over orbitals.
        """
        tensor = found.tensor
        axis = 1 if found.other_axis == 0 else 0
        shape = dense_shape(tensor, self.extents(tensor.spaces))
        element = element_type(tensor, dtype)
        if self.fill(found, ()):
            return CutTiles(self, found, shape, np.dtype(element))
        row = prod(shape) // max(1, shape[axis]) * np.dtype(element).itemsize

        def blocks() -> Iterator[Array]:
            for part in blocks_of(shape[axis], row, self._reference.memory):
                yield self._logical(found, part)
                self._integrals.forget()

        return file.write(tensor, shape, axis, blocks(), element)

    def forget(self, *, pairs: bool = True, release: bool = False) -> None:
        """Drop the transformed integrals, those over all pairs only if asked for.

        ``release`` also drops those over atomic orbitals, which the mean field holds.
        """
        self._integrals.forget()
        if pairs:
            self._integrals.forget_pairs()
        if release:
            self._reference.release()

    def _frame(self, space: Space) -> Frame:
        return self._reference.frames[self._frames[self._spaces.spin(space) or ""]]

    def _block(self, space: Space) -> Block:
        """Orbitals of an axis; a joined space has those of its parts, in their order."""
        frame = self._frame(space)
        places: list[int] = []
        for base in space.bases:
            occupied = self._spaces.kinds[base.name] is Kind.OCCUPIED
            part = (0, frame.occupied) if occupied else (frame.occupied, frame.count)
            places += range(*part)
        return Block(self._frames[self._spaces.spin(space) or ""], tuple(places))

    def _fitted_pairs(self, name: str) -> Array:
        """Three-index integrals over all pairs of orbitals of a frame."""
        whole = Block(name, tuple(range(self._reference.frames[name].count)))
        return self._integrals.three_index(whole, whole)

    def _logical(self, found: Found, part: slice = slice(None)) -> Array:
        """The dense array, or the part of it for some orbitals of the first axis over orbitals."""
        tensor = found.tensor
        orbital = [s for k, s in enumerate(tensor.spaces) if k != found.other_axis]
        blocks = [self._block(space) for space in orbital]
        blocks[0] = replace(blocks[0], places=blocks[0].places[part])
        frame = self._frame(orbital[0])
        places = [list(block.places) for block in blocks]
        match found.quantity:
            case Quantity.CHEMIST:
                return self._integrals.chemist(*blocks)
            case Quantity.PHYSICIST:
                return self._integrals.physicist(*blocks)
            case Quantity.ANTISYMMETRISED:
                return self._integrals.antisymmetrised(*blocks)
            case Quantity.THREE_INDEX:
                return np.moveaxis(self._integrals.three_index(*blocks), 0, found.other_axis or 0)
            case Quantity.FOCK:
                return frame.fock[np.ix_(*places)]
            case Quantity.HCORE:
                whole = core_hamiltonian(blocks[0].frame, self._reference, self._integrals)
                return whole[np.ix_(*places)]
            case Quantity.ENERGIES:
                return frame.energies[places[0]]
            case Quantity.DIPOLE:
                dipole = self._reference.dipole(frame)
                if dipole is None:
                    raise ArgumentError(
                        f"{tensor.name} are dipole integrals, which {self._reference.origin} does "
                        f"not have: pass inputs="
                    )
                whole = dipole[:, places[0]][:, :, places[1]]
                return np.moveaxis(whole, 0, found.other_axis or 0)


@dataclass(frozen=True, slots=True, eq=False)
class CutTiles:
    """An input that is not held: its tiles are cut out of integrals over all pairs of orbitals.

    ``logical`` is its dense shape. It is read like a dataset of h5py, in stored order.
    """

    inputs: MeanFieldInputs
    found: Found
    logical: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents in stored order."""
        return tuple(self.logical[axis] for axis in self.found.tensor.stored_order)

    def __getitem__(self, key: tuple[slice, ...]) -> Array:
        ranges = [range(n)[part] for n, part in zip(self.shape, key, strict=True)]
        out = np.empty([len(part) for part in ranges], self.dtype)
        self.read_direct(out, key)
        return out

    def read_direct(self, out: Array, source_sel: tuple[slice, ...]) -> None:
        """Write a tile into an array."""
        axes = np.argsort(self.found.tensor.stored_order)
        blocks = [self.inputs.frame(space)[2] for space in self.found.tensor.spaces]
        places = [own[source_sel[axis]] for own, axis in zip(blocks, axes, strict=True)]
        self.inputs.fill(self.found, [(places, out.transpose(axes))])


def _frame_names(
    system: System, spaces: OrbitalSpaces, reference: Reference, spin_orbitals: bool
) -> dict[str, str]:
    """The frame of the reference for each spin of the spaces."""
    if spaces.by_spin:
        frames, form = {"a": ALPHA, "b": BETA}, "alpha and beta orbitals"
        advice = "use an RHF, ROHF or UHF reference, or equations over spin orbitals"
    elif spin_orbitals:
        frames, form, advice = {"": SPIN_ORBITAL}, "spin orbitals", "use any reference"
    else:
        frames, form = {"": SPATIAL}, "spatial orbitals of a closed shell"
        open_shell = _for_open_shells(system.name, by_spin=reference.kind != "GHF")
        advice = (
            "use an RHF reference, or equations over spin orbitals; if these are, declare that "
            "integrals or amplitudes are antisymmetric, or which axes of an input conserve the "
            'spin, as in conserves (0,1)->(2,3), or pass orbitals="spin" (--orbitals spin)'
        )
        advice = f"use an RHF reference, or {open_shell}" if open_shell else advice
    if not set(frames.values()) <= set(reference.frames):
        raise ArgumentError(
            f"{system.name} is over {form}, which a {reference.kind} reference does not have: "
            f"{advice}"
        )
    return frames


def _for_open_shells(name: str, *, by_spin: bool) -> str:
    """Shipped specs of the same method that take an open shell."""
    method = name.removesuffix("_closed_shell")
    names = ([f"u{method}"] if by_spin else []) + [f"{method}_spin_orbital"]
    return " or ".join(name for name in names if name in shipped_specs())


def passed_extents(
    system: System, spaces: OrbitalSpaces, arrays: Mapping[str, Any]
) -> dict[str, int]:
    """Extents of spaces without orbitals, from the shapes of arrays that the caller passes."""
    lengths = _passed_axes(system, arrays)
    return {s.name: n for _, s, n in lengths if spaces.kind(s) is Kind.OTHER}


def check_passed(
    system: System, spaces: OrbitalSpaces, arrays: Mapping[str, Any], extents: Mapping[str, int]
) -> None:
    """ShapeError if an axis of an array of the caller has another number of orbitals."""
    for tensor, space, length in _passed_axes(system, arrays):
        over_orbitals = all(spaces.kind(base) in ORBITAL for base in space.bases)
        if over_orbitals and length != space.extent_in(extents):
            raise ShapeError(
                f"inputs: {with_axes(tensor)} has the shape {arrays[tensor.name].shape}, and the "
                f"reference has {space.extent_in(extents)} orbitals {space.name}: pass the array "
                f"over these"
            )


def _passed_axes(system: System, arrays: Mapping[str, Any]) -> Iterator[tuple[Tensor, Space, int]]:
    """The axes of arrays of the caller, with their lengths."""
    for tensor in system.inputs:
        shape = getattr(arrays.get(tensor.name), "shape", ())
        if not tensor.storage.packed and len(shape) == tensor.rank:
            for axis, length in zip(tensor.stored_order, shape, strict=True):
                yield tensor, tensor.spaces[axis], length


def passed_energies(
    found: Iterable[Found], arrays: Mapping[str, Any], extents: Mapping[str, int]
) -> dict[str, Array]:
    """Orbital energies by base space that the caller passes, or the diagonal of a Fock matrix."""
    energies: dict[str, Array] = {}
    for one in found:
        first, array = one.tensor.spaces[0], np.asarray(arrays[one.tensor.name])
        lengths = [extents[base.name] for base in first.bases]
        if array.shape != (sum(lengths),) * one.tensor.rank or len({*one.tensor.spaces}) > 1:
            continue
        values = array if array.ndim == 1 else array.diagonal()
        parts = np.split(values.real, np.cumsum(lengths)[:-1])
        energies |= {base.name: part for base, part in zip(first.bases, parts, strict=True)}
    return energies


def inputs_on_disk(
    tensors: Iterable[Tensor], extents: Mapping[str, int], dtype: str, memory: float
) -> tuple[str, ...]:
    """Names of the inputs that go to a file, largest first.

    Example:
        >>> from tcgen.ir.tensor import Space
        >>> v = Space("v")
        >>> inputs = [Tensor("e_v", (v,), Role.INPUT), Tensor("f_vv", (v, v), Role.INPUT)]
        >>> inputs_on_disk(inputs, {"v": 10}, "float64", memory=1000)
        ('f_vv',)
    """
    needed = {
        t.name: element_bytes(t, dtype) * prod(stored_shape(t, extents))
        for t in tensors
        if t.role is Role.INPUT
    }
    chosen = []
    for name in sorted(needed, key=lambda n: (-needed[n], n)):
        if sum(needed.values()) <= memory * IN_MEMORY:
            break
        chosen.append(name)
        del needed[name]
    return tuple(chosen)


def in_layout(tensor: Tensor, array: Array, dtype: str) -> Array:
    """A dense array in the caller's layout, with the element type of a program of ``dtype``."""
    element = element_type(tensor, dtype)
    if np.iscomplexobj(array) and not np.issubdtype(element, np.complexfloating):
        if np.any(array.imag):
            raise ArgumentError(
                f"{tensor.name} has an imaginary part, and elements of {element}: choose "
                f"dtype=complex128, and do not declare it as real"
            )
        array = array.real
    return pack(tensor, array).astype(element, copy=False)


def unpacked(tensor: Tensor) -> Tensor:
    """The tensor as it is stored in a file: whole."""
    return replace(tensor, storage=replace(tensor.storage, packed=()))


def blocks_of(count: int, row_bytes: int, memory: float) -> list[slice]:
    """Ranges of the first axis of an array whose blocks fit into memory while they are made.

    Example:
        >>> blocks_of(5, row_bytes=100, memory=1600)
        [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    rows = max(1, int(memory / _COPIES / max(1, row_bytes)))
    return [slice(start, min(start + rows, count)) for start in range(0, count, rows)]

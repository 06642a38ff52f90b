"""Arrays of a mean field for the inputs of a system.

Reads which quantity each input is and makes its array over the orbitals of the reference, in the
layout that the spec declares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import ArgumentError
from ..ir.layouts import dense_shape, pack
from ..ir.system import System
from ..ir.tensor import Role, Space, Tensor, element_type
from ..records.quantity import Quantity
from .disk import IntegralFile, blocks_of
from .integrals import Block, Integrals
from .quantities import Found
from .reference import ALPHA, BETA, SPATIAL, SPIN_ORBITAL, Frame, Reference
from .spaces import Kind, OrbitalSpaces

Array = npt.NDArray[Any]


class MeanFieldInputs:
    """Blocks of orbitals for the spaces of a system, and arrays over them.

    Args:
        system: the equations.
        spaces: of the system.
        reference: the mean field.
        spin_orbitals: the equations are over spin orbitals.
        auxbasis: for three-index integrals of a reference that is not density-fitted.

    Raises:
        ArgumentError: the reference has no orbitals of the kind that the equations are over.
    """

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
        self._integrals = Integrals(reference, auxbasis)

    def extents(self, spaces: Iterable[Space]) -> dict[str, int]:
        """Extents of the base spaces of orbitals and of auxiliary functions among some spaces."""
        extents = {}
        for space in dict.fromkeys(base for whole in spaces for base in whole.bases):
            kind = self._spaces.kind(space)
            if kind in (Kind.OCCUPIED, Kind.VIRTUAL):
                extents[space.name] = len(self._block(space).places)
            elif kind is Kind.AUXILIARY:
                extents[space.name] = self._integrals.auxiliary
        return extents

    def energies(self, system: System) -> dict[str, Array]:
        """Orbital energies by base space, in Hartree."""
        return {
            space.name: self._frame(space).energies[list(self._block(space).places)]
            for space in system.spaces
            if self._spaces.kind(space) in (Kind.OCCUPIED, Kind.VIRTUAL)
        }

    def occupied_energy(self) -> float:
        """Energy of the occupied orbitals that are not frozen, among themselves, in Hartree.

        It is sum_i f_ii - 1/2 sum_ij <ij||ij> over spin orbitals, which equations for energies
        contain that were derived without leaving the reference out.
        """
        frame = self._reference.frames[SPIN_ORBITAL]
        block = Block(SPIN_ORBITAL, tuple(range(frame.occupied)))
        pairs = self._integrals.antisymmetrised(block, block, block, block)
        fock = frame.energies[: frame.occupied]
        return float(fock.sum() - np.einsum("ijij->", pairs) / 2)

    def array(self, found: Found, dtype: str) -> Array | Callable[..., None]:
        """The array of an input in its declared layout; a callable for a generated input."""
        logical = self._logical(found)
        if found.tensor.role is Role.GENERATED:
            return _slices_of(logical)
        array = pack(found.tensor, logical)
        return array.astype(element_type(found.tensor, dtype), copy=False)

    def dataset(self, found: Found, dtype: str, file: IntegralFile) -> Any:
        """The same array in a file, made block by block along its first axis over orbitals."""
        tensor = found.tensor
        axis = 1 if found.other_axis == 0 else 0
        shape = dense_shape(tensor, self.extents(tensor.spaces))
        element = element_type(tensor, dtype)
        row = prod(shape) // max(1, shape[axis]) * np.dtype(element).itemsize

        def blocks() -> Iterator[Array]:
            for part in blocks_of(shape[axis], row, self._reference.memory):
                yield self._logical(found, part)
                self._integrals.forget()

        return file.write(tensor, shape, axis, blocks(), element)

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
                return frame.matrix(self._reference.hcore)[np.ix_(*places)]
            case Quantity.ENERGIES:
                return frame.energies[places[0]]
            case Quantity.DIPOLE:
                dipole = self._reference.mol.intor_symmetric("int1e_r", comp=3)
                whole = np.stack([frame.matrix(part)[np.ix_(*places)] for part in dipole])
                return np.moveaxis(whole, 0, found.other_axis or 0)


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
        advice = (
            "use an RHF reference, or equations over spin orbitals; if these are, declare that "
            "integrals or amplitudes are antisymmetric, or which axes of an input conserve the "
            'spin, as in conserves (0,1)->(2,3), or pass orbitals="spin" (--orbitals spin)'
        )
    if not set(frames.values()) <= set(reference.frames):
        raise ArgumentError(
            f"{system.name} is over {form}, which a {reference.kind} reference does not have: "
            f"{advice}"
        )
    return frames


def _slices_of(array: Array) -> Callable[..., None]:
    def fill(out: Array, ranges: tuple[slice, ...]) -> None:
        out[...] = array[ranges]

    return fill


def passed_extents(
    system: System, spaces: OrbitalSpaces, arrays: Mapping[str, Any]
) -> dict[str, int]:
    """Extents of spaces without orbitals, from the shapes of arrays that the caller passes."""
    extents = {}
    for tensor in system.inputs:
        shape = getattr(arrays.get(tensor.name), "shape", ())
        if tensor.storage.packed or len(shape) != tensor.rank:
            continue
        for axis, length in zip(tensor.stored_order, shape, strict=True):
            space = tensor.spaces[axis]
            if spaces.kind(space) is Kind.OTHER:
                extents[space.name] = length
    return extents


def described(tensor: Tensor) -> str:
    """A tensor with its spaces, ``t1[o,v]``."""
    axes = ",".join(space.name for space in tensor.spaces)
    return f"{tensor.name}[{axes}]" if axes else tensor.name

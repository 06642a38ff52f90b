"""A reference determinant and its integrals: what equations need of a mean field or a Hamiltonian.

``mean_field`` makes one from an object of PySCF, ``hamiltonian`` from integrals over orbitals.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ir.layouts import Array
from .frames import Frame
from .integrals import Integrals


@dataclass(frozen=True, slots=True, eq=False)
class Reference(ABC):
    """Orbitals, Fock matrices and integrals.

    ``kind`` is RHF, ROHF, UHF or GHF, ``e_hf`` the total energy of the determinant in Hartree.
    Fock matrices of the ``frames`` contain all electrons, the frozen ones included. Integrals may
    take ``memory`` bytes; ``origin`` says in words where they come from.
    """

    kind: str
    e_hf: float
    frames: Mapping[str, Frame]
    memory: float
    origin: str

    @property
    def complex_orbitals(self) -> bool:
        """True if integrals are complex numbers."""
        return any(np.iscomplexobj(frame.fock) for frame in self.frames.values())

    @property
    def cells(self) -> int:
        """The number of cells of a crystal, of one of which energies are."""
        return 1

    @abstractmethod
    def integrals(self, auxbasis: str | None = None) -> Integrals:
        """Two-electron integrals; three-index ones are over ``auxbasis`` if they must be fitted."""

    def release(self) -> None:  # noqa: B027  (most references hold nothing that can be made again)
        """Drop the integrals over atomic orbitals that the reference holds, if PySCF has others."""

    @abstractmethod
    def dipole(self, frame: Frame) -> Array | None:
        """Dipole integrals, 3 x orbitals x orbitals in atomic units; None if there are none."""

    @abstractmethod
    def by_spin(self, frame: Frame) -> list[Array]:
        """Coefficients of the orbitals of a frame over basis functions, for each part of it.

        Orbitals that have no part of a spin are zero. Without a basis set, the functions are the
        orbitals that integrals are over.
        """

    @abstractmethod
    def moments(self, order: int) -> Array | None:
        """Integrals over basis functions of 1, of x, y, z, or of their nine products; or None.

        Atomic units, about the origin of coordinates, components first.
        """

    @abstractmethod
    def density(self) -> Array:
        """The density matrix of the determinant over basis functions, frozen orbitals included."""

    @abstractmethod
    def of_nuclei(self, order: int) -> Array:
        """The sum of charges times coordinates, or times their products, in atomic units."""

    def labels(self, frame: Frame) -> list[str]:
        """The number of each orbital of a frame among all of the reference, and its spin if any.

        Orbitals of a GHF reference may have parts of both spins.
        """
        found = [""] * frame.count
        for spin, part in frame.parts.items():
            for k, place in enumerate(part.places):
                if place >= 0:
                    found[k] = f"{self.numbers(part.number)[place]}{'' if found[k] else spin}"
        return found

    @abstractmethod
    def numbers(self, number: int) -> Array:
        """The numbers of the orbitals of a set, from 0, with frozen ones counted."""

    @abstractmethod
    def irreps(self, frame: Frame) -> tuple[list[int], Callable[[int], str]] | None:
        """A number for each orbital of a frame, and the name of a number; None if not known.

        The number of a product is the exclusive or of numbers.
        """

    def molecule(self) -> dict[str, Any]:
        """The molecule as QCSchema has it, and the name of its basis; {} without atoms."""
        return {}

    @abstractmethod
    def fingerprint(self) -> dict[str, Any]:
        """What amplitudes belong to, by what an error would call it, in atomic units."""


def core_hamiltonian(frame: str, reference: Reference, integrals: Integrals) -> Array:
    """The operator of one electron whose Fock matrix is that of a frame, in Hartree.

    It contains the potential of frozen orbitals, and all that a mean field adds to its Fock matrix.
    """
    own = reference.frames[frame]
    return own.fock - integrals.potential(frame)


def core_energy(reference: Reference, hamiltonians: Mapping[str, Array]) -> float:
    """The energy without electrons in active orbitals, in Hartree: nuclei and frozen orbitals.

    ``hamiltonians`` are those of :func:`core_hamiltonian` by the names of frames that have all
    occupied orbitals once.
    """
    energy = reference.e_hf
    for name, core in hamiltonians.items():
        occupied = slice(reference.frames[name].occupied)
        both = core + reference.frames[name].fock
        energy -= float(np.trace(both[occupied, occupied]).real) / 2
    return energy

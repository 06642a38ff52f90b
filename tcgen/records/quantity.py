"""Quantities of a mean field that inputs may be: integrals, a Fock matrix, orbital energies.

Equations mean the same without them; ``tcgen.chem`` uses them to make arrays.
"""

from __future__ import annotations

from enum import Enum


class Quantity(Enum):
    """A quantity of a mean field; the value is how ``inputs=`` of ``tcgen.chem.solve`` names it."""

    CHEMIST = "(pq|rs)"
    PHYSICIST = "<pq|rs>"
    ANTISYMMETRISED = "<pq||rs>"
    THREE_INDEX = "df"
    FOCK = "fock"
    HCORE = "hcore"
    ENERGIES = "energies"
    DIPOLE = "dipole"

    @property
    def rank(self) -> int:
        """Number of axes of its array."""
        match self:
            case Quantity.CHEMIST | Quantity.PHYSICIST | Quantity.ANTISYMMETRISED:
                return 4
            case Quantity.THREE_INDEX | Quantity.DIPOLE:
                return 3
            case Quantity.FOCK | Quantity.HCORE:
                return 2
            case Quantity.ENERGIES:
                return 1

    @property
    def electrons(self) -> tuple[tuple[int, int], ...]:
        """The two axes of each electron in integrals without exchange; () of other quantities."""
        match self:
            case Quantity.CHEMIST:
                return ((0, 1), (2, 3))
            case Quantity.PHYSICIST:
                return ((0, 2), (1, 3))
            case _:
                return ()

"""Quantities of a mean field in the words of the language: ``from eri(chemist)``."""

from __future__ import annotations

from ...records.quantity import Quantity

WORDS = {
    "eri(chemist)": Quantity.CHEMIST,
    "eri(physicist)": Quantity.PHYSICIST,
    "eri(antisymmetric)": Quantity.ANTISYMMETRISED,
    "df": Quantity.THREE_INDEX,
    "fock": Quantity.FOCK,
    "hcore": Quantity.HCORE,
    "energies": Quantity.ENERGIES,
    "dipole": Quantity.DIPOLE,
}


def word_of(quantity: Quantity) -> str:
    """How the language writes a quantity.

    Example:
        >>> word_of(Quantity.THREE_INDEX)
        'df'
    """
    return next(word for word, known in WORDS.items() if known is quantity)

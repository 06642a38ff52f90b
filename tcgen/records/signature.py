"""The signature of a tensor over graded spaces, which says which of its blocks of irreps exist."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

Charge: TypeAlias = tuple[tuple[str, int], ...]
"""A sum of named charges, each with its factor, by name; () is the neutral element."""


@dataclass(frozen=True, slots=True)
class Signature:
    """The block of irreps g of a tensor exists if the sum of ``signs[k] * g[k]`` is its charge.

    A signature and its negative, with all signs and factors of charges negated, mean the same
    blocks.

    Attributes:
        signs: 1, -1 or 0 for each axis; 0 if it is not graded, or takes no part in conservation:
            then all its irreps exist.
        charge: total charge, of which calls give the values.
    """

    signs: tuple[int, ...]
    charge: Charge = ()

    @property
    def label(self) -> bool:
        """True if all blocks exist, as of orbital energies and of tensors without graded axes."""
        return not any(self.signs)

    def negative(self) -> Signature:
        """The signature of the same blocks with the opposite signs.

        Example:
            >>> Signature((1, -1), (("x", 1),)).negative()
            Signature(signs=(-1, 1), charge=(('x', -1),))
        """
        return Signature(tuple(-s for s in self.signs), tuple((n, -k) for n, k in self.charge))

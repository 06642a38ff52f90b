"""Labels of orbitals, and which labels the axes of a tensor may have together.

A label, such as a spin, adds a charge to a number that tensors conserve: what enters through some
axes leaves through the others. Charges are tuples of integers that are added, each modulo a number
of its own. Spins, irreducible representations of abelian groups and momenta are all of this kind.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import TypeAlias

from ...errors import ArgumentError
from ...ir.conservation import default_sides
from ...ir.tensor import Space, Tensor

Pattern: TypeAlias = str
"""A letter for each axis of a tensor: its label, or ``UNLABELLED``."""

Flow: TypeAlias = tuple[int, ...]
"""For each axis of a tensor: 1 where charge enters, -1 where it leaves, 0 without labels."""

UNLABELLED = "."
_KINDS = ("occupied", "virtual", "general")


@dataclass(frozen=True, slots=True)
class Labels:
    """The values of a conserved number, each with its letter; ``what`` is the number in words.

    Attributes:
        moduli: number at which each component of a charge returns to 0; 0 for none.
    """

    what: str
    charges: tuple[tuple[str, tuple[int, ...]], ...]
    moduli: tuple[int, ...]

    @property
    def letters(self) -> str:
        """The letters in order."""
        return "".join(letter for letter, _ in self.charges)

    def conserved(self, pattern: Pattern, flow: Flow) -> bool:
        """True if as much enters through the axes of a pattern as leaves.

        A flow with one more axis on one side, such as that of an ionised state, conserves up to
        the charge of one label; in general up to as many labels as the sides differ in axes.

        Example:
            >>> SPIN.conserved("abba", (1, 1, -1, -1)), SPIN.conserved("aabb", (1, 1, -1, -1))
            (True, False)
            >>> SPIN.conserved("abb", (1, 1, -1)), SPIN.conserved("bba", (1, 1, -1))
            (True, False)
        """
        excess = sum(flow)
        sign = 1 if excess >= 0 else -1
        charge_of = dict(self.charges)
        total = self._sum((sign * f, charge_of[x]) for x, f in zip(pattern, flow, strict=True) if f)
        return total in self._sums(abs(excess))

    def _sums(self, count: int) -> set[tuple[int, ...]]:
        charges = (charge for _, charge in self.charges)
        return {self._sum((1, c) for c in chosen) for chosen in product(charges, repeat=count)}

    def _sum(self, parts: Iterator[tuple[int, tuple[int, ...]]]) -> tuple[int, ...]:
        total = [0] * len(self.moduli)
        for sign, charge in parts:
            total = [t + sign * c for t, c in zip(total, charge, strict=True)]
        return tuple(t % m if m else t for t, m in zip(total, self.moduli, strict=True))


SPIN = Labels("spin", (("a", (1,)), ("b", (-1,))), (0,))


@lru_cache(maxsize=1000)
def has_labels(space: Space) -> bool:
    """True for a space over orbitals; ArgumentError if only some of its joined parts are."""
    with_labels = {base.kind in _KINDS for base in space.bases}
    if len(with_labels) > 1:
        raise ArgumentError(
            f"space {space.name} joins {', '.join(b.name for b in space.bases)}, of which only "
            f"some are over orbitals: declare each of them as {', '.join(_KINDS[:-1])} or "
            f"{_KINDS[-1]}, or none"
        )
    return with_labels.pop()


def patterns(spaces: tuple[Space, ...], letters: str) -> Iterator[Pattern]:
    """All patterns over some axes, in alphabetical order."""
    choices = (letters if has_labels(space) else UNLABELLED for space in spaces)
    return ("".join(chosen) for chosen in product(*choices))


def electrons(tensor: Tensor) -> tuple[tuple[int, int], ...]:
    """The two axes of each electron of an input that conserves the spin of each; else ()."""
    pairs = () if tensor.quantity is None else tensor.quantity.electrons
    return pairs if all(map(has_labels, tensor.spaces)) else ()


def input_conserves(tensor: Tensor, pattern: Pattern) -> bool:
    """True unless the block of an input is zero: spin is conserved, in all or by each electron."""
    return SPIN.conserved(pattern, input_flow(tensor)) and all(
        pattern[one] == pattern[other] for one, other in electrons(tensor)
    )


def input_flow(tensor: Tensor) -> Flow:
    """The flow of an input: as declared, else from the first half of labelled axes to the second.

    Integrals without exchange conserve the spin of each electron, from its first axis to its other.

    Raises:
        ArgumentError: ``conserves`` names an axis without labels, leaves one out, or has both axes
            of an electron on one side; or an odd number of axes has labels and nothing is declared.
    """
    labelled = [k for k, space in enumerate(tensor.spaces) if has_labels(space)]
    text = f"{tensor.name}[{','.join(space.name for space in tensor.spaces)}]"
    pairs = electrons(tensor)
    sides = tensor.conserves or default_sides(tensor, labelled)
    if sides is None:
        raise ArgumentError(
            f"{text} has {len(labelled)} axes over orbitals, so that no half of them is the "
            f"first: say what it conserves, such as conserves (0,1)->(2)"
        )
    sources, targets = sides
    for axis in (*sources, *targets):
        if axis not in labelled and not tensor.spaces[axis].graded:
            space = tensor.spaces[axis]
            raise ArgumentError(
                f"{text} is declared to conserve spin through axis {axis}, but orbitals of space "
                f"{space.name} have none: declare space {space.name} occupied, virtual or "
                f"general, or leave the axis out"
            )
    for axis in labelled:
        if axis not in (*sources, *targets):
            raise ArgumentError(
                f"{text} is declared to conserve spin, but axis {axis} is on neither side: name "
                f"all axes over orbitals in conserves"
            )
    for one, other in pairs:
        if (one in sources) == (other in sources):
            right = "->".join(f"({','.join(str(pair[side]) for pair in pairs)})" for side in (0, 1))
            raise ArgumentError(
                f"{text} is {_integral(tensor)}, in which axes {one} and {other} are those of one "
                f"electron, but conserves has both on one side: write conserves {right}, or leave "
                f"it out"
            )
    flow = dict.fromkeys(sources, 1) | dict.fromkeys(targets, -1)
    return tuple(flow.get(k, 0) if k in labelled else 0 for k in range(tensor.rank))


def _integral(tensor: Tensor) -> str:
    return "no integral" if tensor.quantity is None else tensor.quantity.value

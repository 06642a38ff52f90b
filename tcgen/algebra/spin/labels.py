"""Spins of orbitals, and which spins the axes of a tensor may have together.

Tensors conserve spin: what enters through some axes leaves through the others. Axes over orbitals
have a label, the letter of their spin.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import product
from typing import TypeAlias

from ...errors import ArgumentError
from ...ir.conservation import default_sides
from ...ir.tensor import Space, Tensor

Pattern: TypeAlias = str
"""A letter for each axis of a tensor: its label, or ``UNLABELLED``."""

Flow: TypeAlias = tuple[int, ...]
"""For each axis of a tensor: 1 where spin enters, -1 where it leaves, 0 without labels."""

SPINS = "ab"  # alpha, beta
UNLABELLED = "."
_KINDS = ("occupied", "virtual", "general")


def conserves_spin(pattern: Pattern, flow: Flow) -> bool:
    """True if as much spin enters through the axes of a pattern as leaves.

    A flow with more axes on one side, such as that of an ionised state, conserves up to the spins
    of as many electrons.

    Example:
        >>> conserves_spin("abba", (1, 1, -1, -1)), conserves_spin("aabb", (1, 1, -1, -1))
        (True, False)
        >>> conserves_spin("abb", (1, 1, -1)), conserves_spin("bba", (1, 1, -1))
        (True, False)
    """
    total = sum(f if x == SPINS[0] else -f for x, f in zip(pattern, flow, strict=True))
    return abs(total) <= abs(sum(flow))


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


def patterns(spaces: tuple[Space, ...]) -> Iterator[Pattern]:
    """All patterns over some axes, in alphabetical order."""
    choices = (SPINS if has_labels(space) else UNLABELLED for space in spaces)
    return ("".join(chosen) for chosen in product(*choices))


def electrons(tensor: Tensor) -> tuple[tuple[int, int], ...]:
    """The two axes of each electron of an input that conserves the spin of each; else ()."""
    pairs = () if tensor.quantity is None else tensor.quantity.electrons
    return pairs if all(map(has_labels, tensor.spaces)) else ()


def input_conserves(tensor: Tensor, pattern: Pattern) -> bool:
    """True unless the block of an input is zero: spin is conserved, in all or by each electron."""
    return conserves_spin(pattern, input_flow(tensor)) and all(
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

"""Kinds and spins of the spaces of a system: occupied, virtual, auxiliary, alpha, beta.

The kind that a spec declares decides; where it declares none, the first letter of the name does.
Two occupied spaces are those of alpha and of beta orbitals.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from ..errors import ArgumentError
from ..ir.system import System
from ..ir.tensor import Space, Tensor


class Kind(Enum):
    """Kind of the elements of a base space."""

    OCCUPIED = "o"
    VIRTUAL = "v"
    AUXILIARY = "x"
    OTHER = "?"


ORBITAL = (Kind.OCCUPIED, Kind.VIRTUAL)
_DECLARED = {"occupied": Kind.OCCUPIED, "virtual": Kind.VIRTUAL, "auxiliary": Kind.AUXILIARY}
_NAMED = (
    (re.compile(r"(?i)o(cc\w*)?(_?(a|b|alpha|beta|up|dn|down))?"), Kind.OCCUPIED),
    (re.compile(r"(?i)v(ir\w*)?(_?(a|b|alpha|beta|up|dn|down))?"), Kind.VIRTUAL),
    (re.compile(r"x|naux|aux\w*|L|P|Q"), Kind.AUXILIARY),
)
_ALPHA = re.compile(r".*(a|alpha|up)")
_BETA = re.compile(r".*(b|beta|dn|down)")


@dataclass(frozen=True, slots=True)
class OrbitalSpaces:
    """Kinds and spins of base spaces by name; a spin is "a", "b", or "" for spaces without spin."""

    kinds: Mapping[str, Kind]
    spins: Mapping[str, str]

    @property
    def by_spin(self) -> bool:
        """True if alpha and beta orbitals have spaces of their own."""
        return any(self.spins.values())

    def kind(self, space: Space) -> Kind | None:
        """Kind of a base space; None for a space that joins others."""
        return None if space.parts else self.kinds[space.name]

    def spin(self, space: Space) -> str | None:
        """Spin of an axis over orbitals, joined or not; None for any other axis."""
        if any(self.kinds[base.name] not in ORBITAL for base in space.bases):
            return None
        spins = {self.spins[base.name] for base in space.bases}
        return spins.pop() if len(spins) == 1 else None

    def letters(self, tensor: Tensor) -> str:
        """Classes of the axes: o and v, upper case for beta, x for any other; p joins orbitals.

        Example:
            >>> from tcgen.ir.tensor import Role
            >>> o, v = Space("o"), Space("v")
            >>> spaces = OrbitalSpaces({"o": Kind.OCCUPIED, "v": Kind.VIRTUAL}, {"o": "", "v": ""})
            >>> spaces.letters(Tensor("t", (o, v), Role.INPUT))
            'ov'
        """
        return "".join(self.letter(space) for space in tensor.spaces)

    def letter(self, space: Space) -> str:
        """Class of one axis, as in ``letters``."""
        spin = self.spin(space)
        if spin is None:
            return "x"
        letter = "p" if space.parts else self.kinds[space.name].value
        return letter.upper() if spin == "b" else letter


def matched_axes(given: Sequence[object], wanted: Sequence[object]) -> tuple[int, ...] | None:
    """The axes of ``given`` in the order of ``wanted``, or None if they do not correspond.

    Of several axes with one class or space, the first corresponds to the first.
    """
    left = list(range(len(given)))
    axes = []
    for one in wanted:
        axis = next((k for k in left if given[k] == one), None)
        if axis is None:
            return None
        axes.append(axis)
        left.remove(axis)
    return None if left else tuple(axes)


def classify(system: System) -> OrbitalSpaces:
    """Kinds and spins of the spaces of a system."""
    bases = [space for space in system.spaces if not space.parts]
    kinds = {space.name: _kind(space) for space in bases}
    spins: dict[str, str] = {}
    for kind, word in ((Kind.OCCUPIED, "occupied"), (Kind.VIRTUAL, "virtual")):
        spins |= _spins([name for name in kinds if kinds[name] is kind], word)
    with_spin = {name for name, spin in spins.items() if spin}
    if with_spin and len(with_spin) < len(spins):
        raise ArgumentError(
            f"{system.name}: the spaces {', '.join(sorted(with_spin))} have a spin and "
            f"{', '.join(sorted(set(spins) - with_spin))} do not: declare an occupied and a "
            f"virtual space for each spin, such as oa, va, ob and vb"
        )
    return OrbitalSpaces(kinds, spins)


def _kind(space: Space) -> Kind:
    if space.kind is not None:
        return _DECLARED.get(space.kind, Kind.OTHER)
    return next((kind for name, kind in _NAMED if name.fullmatch(space.name)), Kind.OTHER)


def _spins(names: list[str], word: str) -> dict[str, str]:
    """Spins of the spaces of one kind."""
    if len(names) < 2:
        return dict.fromkeys(names, "")
    if len(names) > 2:
        raise ArgumentError(
            f"there are {len(names)} spaces of {word} orbitals ({', '.join(names)}): a mean field "
            f"fills one space, or one for each spin; core and active spaces have no rule"
        )
    first, second = names
    for alpha, beta in ((first, second), (second, first)):
        by_suffix = _ALPHA.fullmatch(alpha) and _BETA.fullmatch(beta)
        by_case = alpha[0].islower() and beta[0].isupper()
        if by_suffix or by_case:
            return {alpha: "a", beta: "b"}
    raise ArgumentError(
        f"the names of the {word} spaces {first} and {second} do not show which of them holds "
        f"alpha orbitals: end them in a and b, or write beta in upper case"
    )

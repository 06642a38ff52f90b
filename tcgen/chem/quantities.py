"""The quantity of a mean field that each input of a system is: integrals, Fock blocks, energies.

Rules compare the spaces of an input first, then its declared symmetry, then its name. The
convention of integrals is left to ``conventions``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..errors import ArgumentError
from ..ir.system import System, with_axes
from ..ir.tensor import Tensor
from ..records.quantity import Quantity
from .spaces import Kind, OrbitalSpaces

INTEGRALS = (Quantity.CHEMIST, Quantity.PHYSICIST, Quantity.ANTISYMMETRISED)
# End of a name: a block, spins or a number.
_END = r"(_\w+|aa|ab|bb|[ab]|\d+)?"


@dataclass(frozen=True, slots=True)
class _Rule:
    """A quantity of inputs that have axes of a shape and a matching name."""

    quantities: tuple[Quantity, ...]
    shape: str
    names: str  # regular expression
    examples: str

    def text(self) -> str:
        """The rule as part of a message."""
        return f"{_WORDS[self.quantities[0]]} would have a name such as {self.examples}"


_WORDS = {
    Quantity.CHEMIST: "a block of two-electron integrals",
    Quantity.THREE_INDEX: "a block of three-index integrals",
    Quantity.FOCK: "a block of the Fock matrix",
    Quantity.HCORE: "a block of the core Hamiltonian",
    Quantity.ENERGIES: "orbital energies",
    Quantity.DIPOLE: "dipole integrals",
}
_FOUR, _TWO, _ONE = "four orbitals", "two orbitals", "one orbital"
_THREE = "an auxiliary function and two orbitals"
_XYZ = "x, y, z and two orbitals"
_RULES = (
    _Rule(INTEGRALS, _FOUR, rf"(?i)(v|g|eris?|ints?){_END}|[ov]{{4}}", "v, g, eri, v_oovv, gab"),
    _Rule((Quantity.THREE_INDEX,), _THREE, rf"(?i)(b|l|df|cderi|eri3?){_END}", "b, B, L, b_ov"),
    _Rule((Quantity.FOCK,), _TWO, rf"(?i)(f|fock){_END}", "f, F, fock, f_ov, fa"),
    _Rule((Quantity.HCORE,), _TWO, rf"(?i)(h|hcore){_END}", "h, hcore, h_ov"),
    _Rule((Quantity.ENERGIES,), _ONE, r"(?i)(e|eps|mo_energy)\w*", "e, eps, e_o, ev"),
    _Rule((Quantity.DIPOLE,), _XYZ, rf"(?i)(d|dip|dipole|mu){_END}", "dip, mu, d_ov"),
)


@dataclass(frozen=True, slots=True)
class Found:
    """An input and its quantity; ``other_axis`` is its axis that is not over orbitals, or None."""

    tensor: Tensor
    quantity: Quantity
    other_axis: int | None = None

    def __str__(self) -> str:
        return f"{self.tensor.name} = {self.quantity.value}"


def recognise(system: System, spaces: OrbitalSpaces, roles: Mapping[str, str]) -> dict[str, Found]:
    """The inputs that are quantities of a mean field, by name; others are left out.

    ``roles`` are quantities that the user named, such as ``{"w": "(pq|rs)"}``. The convention of
    other integrals is still open: see ``conventions``.
    """
    found: dict[str, Found] = {}
    for tensor in system.inputs:
        shape, other = _shape(tensor, spaces)
        rules = [rule for rule in _RULES if rule.shape == shape]
        if tensor.name in roles:
            quantity = _named(tensor, roles[tensor.name], rules)
            found[tensor.name] = Found(tensor, quantity, other)
            continue
        rule = next((r for r in rules if re.fullmatch(r.names, tensor.name)), None)
        if rule is not None:
            found[tensor.name] = Found(tensor, rule.quantities[0], other)
    return found


def rules_for(tensor: Tensor, spaces: OrbitalSpaces) -> str:
    """The rules that were tried for an input, as text."""
    shape, _ = _shape(tensor, spaces)
    rules = [rule.text() for rule in _RULES if rule.shape == shape]
    return "; ".join(rules) or "no quantity of a mean field has these axes"


def _shape(tensor: Tensor, spaces: OrbitalSpaces) -> tuple[str, int | None]:
    """The shape of a rule, and the axis that is not over orbitals."""
    others = [k for k, space in enumerate(tensor.spaces) if spaces.spin(space) is None]
    orbitals = [spaces.spin(space) for k, space in enumerate(tensor.spaces) if k not in others]
    if len(others) == 1 and len(orbitals) == 2 and len(set(orbitals)) == 1:
        space = tensor.spaces[others[0]]
        if spaces.kind(space) is Kind.AUXILIARY:
            return _THREE, others[0]
        if space.extent == 3:
            return _XYZ, others[0]
    if not others:
        if len(orbitals) == 1:
            return _ONE, None
        if len(orbitals) == 2 and len(set(orbitals)) == 1:
            return _TWO, None
        if len(orbitals) == 4 and not_zero(tensor, spaces):
            return _FOUR, None
    return "", None


def _named(tensor: Tensor, text: str, rules: Sequence[_Rule]) -> Quantity:
    known = {quantity.value: quantity for quantity in Quantity}
    if text not in known:
        raise ArgumentError(
            f"inputs: {text!r} for {tensor.name} is not known: give an array, or one of "
            f"{', '.join(known)}"
        )
    if not any(known[text] in rule.quantities for rule in rules):
        raise ArgumentError(f"{with_axes(tensor)} has other axes than {text!r}")
    return known[text]


def not_zero(tensor: Tensor, spaces: OrbitalSpaces) -> tuple[Quantity, ...]:
    """Conventions that do not make an integral of these spins zero."""
    p, q, r, s = (spaces.spin(space) for space in tensor.spaces)
    chemist, direct, exchanged = p == q and r == s, p == r and q == s, p == s and q == r
    if p == q == r == s:
        return INTEGRALS
    return (
        *([Quantity.CHEMIST] if chemist else []),
        *([Quantity.PHYSICIST] if direct else []),
        *([Quantity.ANTISYMMETRISED] if exchanged else []),
    )

"""The convention of the integrals of a system: (pq|rs), <pq|rs> or <pq||rs>.

Declared symmetry excludes conventions; then the spins of mixed blocks decide, or else the first
order of known residuals of doubles.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ..errors import ArgumentError
from ..ir.layouts import unpack
from ..ir.tensor import Role, Symmetry, Tensor, symmetry_group
from ..records.quantity import Quantity
from .equations import Amplitude, differences
from .probe import Probe
from .quantities import INTEGRALS, Found, not_zero
from .spaces import Kind, OrbitalSpaces

# Largest deviation of a residual from a multiple of integrals, in units of their norm.
_DEVIATION = 1e-9
_PAIRS_OF_CHEMIST = (((1, 0, 2, 3), 1), ((0, 1, 3, 2), 1), ((2, 3, 0, 1), 1))
_SYMMETRY = {
    Quantity.CHEMIST: _PAIRS_OF_CHEMIST,
    Quantity.PHYSICIST: (((2, 1, 0, 3), 1), ((0, 3, 2, 1), 1), ((1, 0, 3, 2), 1)),
    Quantity.ANTISYMMETRISED: (((1, 0, 2, 3), -1), ((0, 1, 3, 2), -1), ((2, 3, 0, 1), 1)),
}


def is_over_spin_orbitals(tensors: Iterable[Tensor], spaces: OrbitalSpaces) -> bool:
    """True for equations over spin orbitals: a tensor changes sign when orbitals are exchanged.

    Triples of a closed shell do so for two electrons of equal spin. Spin-free integrals and doubles
    identify spatial orbitals. Integrals without exchange are over spin orbitals if the spec
    declares others as antisymmetrised. So are all tensors if one declares which axes conserve the
    spin, since spatial orbitals have none. A charge may be one of momenta, and tells nothing.
    """
    tensors = tuple(tensors)
    if spaces.by_spin:
        return False
    conserving = any(t.conserves and t.charge is None for t in tensors)
    if conserving or any(t.quantity is Quantity.ANTISYMMETRISED for t in tensors):
        return True
    if any(map(_is_free_of_spin, tensors)):
        return False
    return any(
        symmetry.sign < 0 and any(spaces.spin(space) is not None for space in tensor.spaces)
        for tensor in tensors
        for symmetry in tensor.symmetry
    )


def with_conventions(
    probe: Probe, amplitudes: Sequence[Amplitude], roles: Mapping[str, str], *, spin_orbitals: bool
) -> dict[str, Found]:
    """The same inputs, with the convention of each block of integrals.

    A block of mixed spin has the convention that does not make it zero. All other blocks share one
    convention that has their declared symmetries: one that gives the doubles of MP2 to first order,
    else one that gives multiples of them, else the usual one. The usual one is chemists' notation
    if mixed blocks have it; antisymmetrised for spin orbitals or mixed blocks in physicists'
    notation; and for a closed shell chemists', unless only physicists' has the integrals of MP2, or
    a symmetry is declared in physicists' notation.
    """
    found, spaces = probe.found, probe.spaces
    chosen = {}
    same_spin = []
    for name, one in found.items():
        if one.quantity not in INTEGRALS or name in roles:
            continue
        possible = not_zero(one.tensor, spaces)
        if possible == INTEGRALS:
            same_spin.append(one.tensor)
        else:
            chosen[name] = possible[0]
    if Quantity.CHEMIST in chosen.values():
        order = (Quantity.CHEMIST, Quantity.ANTISYMMETRISED, Quantity.PHYSICIST)
    elif spaces.by_spin or spin_orbitals:
        order = (Quantity.ANTISYMMETRISED, Quantity.CHEMIST, Quantity.PHYSICIST)
    elif any(map(_exchanges_electrons, same_spin)) or _only_in_physicists_notation(
        _blocks_read(probe, same_spin)
    ):
        order = (Quantity.PHYSICIST, Quantity.CHEMIST, Quantity.ANTISYMMETRISED)
    else:
        order = (Quantity.CHEMIST, Quantity.PHYSICIST, Quantity.ANTISYMMETRISED)
    fitting = [c for c in order if all(_has_symmetry(c, t) for t in same_spin)]
    if not fitting:
        raise ArgumentError(
            f"no convention of real integrals, (pq|rs), <pq|rs> or <pq||rs>, has all symmetries "
            f"that are declared for {', '.join(t.name for t in same_spin)}: correct them, or name "
            f'the role of an input with inputs={{"{same_spin[0].name}": "(pq|rs)"}} '
            f'(--role "{same_spin[0].name}=(pq|rs)")'
        )
    same = {tensor.name for tensor in same_spin}

    def filled(convention: Quantity) -> dict[str, Found]:
        known = chosen | dict.fromkeys(same, convention)
        return {n: replace(f, quantity=known.get(n, f.quantity)) for n, f in found.items()}

    if not same:
        return filled(fitting[0])
    found_in = {c: _first_order(probe, amplitudes, filled(c)) for c in fitting}
    return filled(min(fitting, key=lambda c: found_in[c]))


def _first_order(probe: Probe, amplitudes: Sequence[Amplitude], found: Mapping[str, Found]) -> int:
    """0 if doubles are those of MP2 to first order, 1 if they are multiples of them, else 2.

    The residuals without amplitudes are then (ia|jb), less (ib|ja) where the amplitude is
    antisymmetric, times the number by which the residual begins with -D*t.
    """
    doubles = [a for a in amplitudes if _pairs(a.tensor, probe.spaces)]
    integrals = {n: f for n, f in found.items() if f.quantity in (*INTEGRALS, Quantity.THREE_INDEX)}
    results = probe.without_amplitudes(integrals) if doubles else {}
    worst = 0 if doubles else 2
    for amplitude in doubles:
        tensor = amplitude.tensor
        i, j, a, b = _pairs(tensor, probe.spaces)
        spaces = [tensor.spaces[k] for k in (i, a, j, b)]
        expected = probe.chemist(*spaces)
        if any(s.sign < 0 for s in tensor.symmetry):
            exchanged = [tensor.spaces[k] for k in (i, b, j, a)]
            expected = expected - probe.chemist(*exchanged).transpose(0, 3, 2, 1)
        expected = expected.transpose(np.argsort((i, a, j, b)))
        if amplitude.scale is None:  # an updated amplitude
            expected = expected / differences(tensor, probe.spaces, probe.energies)
        value = unpack(amplitude.output, results[amplitude.output.name], probe.extents)
        value = value.transpose(amplitude.axes)
        norm = float(np.linalg.norm(expected))
        factor = float(np.vdot(expected, value).real) / norm**2 if norm else 0.0
        if not np.abs(value - factor * expected).max() < _DEVIATION * abs(factor) * norm:
            return 2
        standard = 1.0 if amplitude.scale is None else -amplitude.scale
        if abs(factor - standard) > _DEVIATION * abs(standard):
            worst = max(worst, 1)
    return worst


def _blocks_read(probe: Probe, tensors: Sequence[Tensor]) -> set[str]:
    """Classes of the indices at references to some tensors, such as oovv."""
    names = {tensor.name for tensor in tensors}
    return {
        "".join(probe.spaces.letter(index.space) for index in ref.indices)
        for equation in probe.system.equations
        for term in equation.terms
        for ref in term.refs
        if ref.tensor.name in names
    }


def _is_free_of_spin(tensor: Tensor) -> bool:
    """True for integrals without exchange, and for pairs of electrons that may be exchanged."""
    declared = tensor.quantity in (Quantity.CHEMIST, Quantity.PHYSICIST)
    return declared or _exchanges_electrons(tensor)


def _exchanges_electrons(tensor: Tensor) -> bool:
    """True for a block that is declared to be <pq|rs> = <qp|sr>, and not (pq|rs) = (qp|rs).

    Chemists would declare the second, which implies the first.
    """
    if tensor.rank != 4:
        return False
    p, q, r, s = tensor.spaces
    perms = {symmetry.perm for symmetry in symmetry_group(tensor)}
    return p == q and r == s and (1, 0, 3, 2) in perms and (1, 0, 2, 3) not in perms


def _only_in_physicists_notation(blocks: set[str]) -> bool:
    """True if integrals that couple two pairs of electrons are among the blocks only as <ij|ab>.

    Nearly every method reads them. They are the block oovv then, and ovov for chemists.
    """
    return not blocks.isdisjoint({"oovv", "vvoo"}) and blocks.isdisjoint(
        {"ovov", "vovo", "ovvo", "voov"}
    )


def _pairs(tensor: Tensor, spaces: OrbitalSpaces) -> tuple[int, ...]:
    """Axes i, j, a, b of the amplitude of a double excitation, () of any other."""
    kinds = [spaces.kind(space) for space in tensor.spaces]
    occupied = [k for k, kind in enumerate(kinds) if kind is Kind.OCCUPIED]
    virtual = [k for k, kind in enumerate(kinds) if kind is Kind.VIRTUAL]
    if len(occupied) == len(virtual) == 2 and tensor.rank == 4:
        return (*occupied, *virtual)
    return ()


def _has_symmetry(convention: Quantity, tensor: Tensor) -> bool:
    """True if integrals of a convention have the symmetries declared for a block of them."""
    space = tensor.spaces[0]
    generators = tuple(Symmetry(perm, sign) for perm, sign in _SYMMETRY[convention])
    whole = Tensor(tensor.name, (space,) * 4, Role.INPUT, symmetry=generators)
    group = {(s.perm, s.sign) for s in symmetry_group(whole)}
    return all((s.perm, s.sign) in group for s in tensor.symmetry)

"""Orbitals that equations refer to: spatial orbitals, alpha or beta orbitals, spin orbitals.

A *set* of orbitals has integrals: one set serves both spins, or each spin has its own. A *frame* is
an order of the orbitals of sets: occupied ones come first, and frozen ones are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import index
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..ir.layouts import Array

# The number of core orbitals, numbers of orbitals or a mask, for both spins or for each.
Frozen = int | Sequence[Any] | Array | None
SPATIAL, ALPHA, BETA, SPIN_ORBITAL = "", "a", "b", "g"  # names of frames

# Hartree. Orbital energies that differ by less are degenerate: mean fields are converged to 1e-9 or
# less, and products of matrices of a few hundred functions round to 1e-12.
_DEGENERATE = 1e-8


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """The part of a frame's orbitals with one spin, or without spin.

    ``places`` has the place of each orbital of the frame in the set ``number``, -1 for an orbital
    that has no part of this spin.
    """

    number: int
    places: Array


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """Orbitals, occupied ones first, and their Fock matrix in Hartree; ``parts`` are by spin.

    Energies of occupied orbitals are ``lowered`` by so much below the diagonal of the matrix.
    """

    parts: Mapping[str, Part]
    occupied: int
    fock: Array
    lowered: float = 0.0

    @property
    def count(self) -> int:
        """Number of orbitals."""
        return len(self.fock)

    @property
    def energies(self) -> Array:
        """Diagonal of the Fock matrix, as in PySCF's coupled-cluster codes."""
        occupied = np.arange(self.count) < self.occupied
        energies: Array = self.fock.diagonal().real - self.lowered * occupied
        return energies

    def off_diagonal(self) -> tuple[float, float]:
        """Largest elements of the Fock matrix, in Hartree, that canonical orbitals do not have.

        They are between occupied and virtual orbitals, and among each of these.
        """
        o, own = self.occupied, np.abs(self.fock - np.diag(self.fock.diagonal()))
        largest = [float(x.max(initial=0.0)) for x in (own[:o, o:], own[:o, :o], own[o:, o:])]
        return largest[0], max(largest[1:])


@dataclass(frozen=True, slots=True, order=True)
class Block:
    """Some orbitals of a frame, by their places in it."""

    frame: str
    places: tuple[int, ...]


def frames_of(
    kind: str,
    fock: Sequence[Array],
    occupations: Array,
    frozen: Frozen,
    spins: Mapping[str, Array] | None = None,
) -> dict[str, Frame]:
    """The frames of a reference, by name; places count all orbitals.

    ``kind`` is RHF, ROHF, UHF or GHF. ``fock`` has the Fock matrices over alpha and over beta
    orbitals, one of a GHF reference; ``occupations`` are numbers of electrons, for UHF in two rows.
    Orbitals of a GHF reference have the parts ``spins``, each from a set of its own and for the
    orbitals of its mask, or one part without spin.
    """
    left_out = _left_out(frozen, occupations, kind)
    if kind == "GHF":
        occupied, virtual = _active(occupations, left_out[0])
        kept = np.array(occupied + virtual, int)
        masks = spins or {"": np.full(len(occupations), True)}
        parts = {
            name: Part(number, np.where(mask[kept], kept, -1))
            for number, (name, mask) in enumerate(masks.items())
        }
        frames = {SPIN_ORBITAL: Frame(parts, len(occupied), fock[0][np.ix_(kept, kept)])}
    else:
        by_spin = occupations
        if kind != "UHF":
            by_spin = np.stack([occupations > 0, occupations == 2]).astype(float)
        frames, numbers = {}, []
        for spin, name in enumerate((ALPHA, BETA)):
            occupied, virtual = _active(by_spin[spin], left_out[spin])
            numbers.append((occupied, virtual))
            kept = np.array(occupied + virtual, int)
            part = Part(spin if kind == "UHF" else 0, kept)
            frames[name] = Frame({name: part}, len(occupied), fock[spin][np.ix_(kept, kept)])
        frames[SPIN_ORBITAL] = _interleaved(frames[ALPHA], frames[BETA], numbers, kind == "UHF")
        if kind == "RHF":
            alpha = frames[ALPHA]
            frames[SPATIAL] = Frame({"": alpha.parts[ALPHA]}, alpha.occupied, alpha.fock)
    _refuse_empty(frames[SPIN_ORBITAL], occupations, frozen)
    return frames


def compacted(frames: Mapping[str, Frame]) -> tuple[dict[str, Frame], list[Array]]:
    """Frames whose places count the orbitals that are not frozen, and these orbitals by set."""
    used: dict[int, set[int]] = {}
    for frame in frames.values():
        for part in frame.parts.values():
            used.setdefault(part.number, set()).update(part.places[part.places >= 0].tolist())
    sets = [np.array(sorted(used[number]), int) for number in sorted(used)]

    def moved(part: Part) -> Part:
        places = np.where(part.places < 0, -1, np.searchsorted(sets[part.number], part.places))
        return replace(part, places=places)

    return {
        name: replace(frame, parts={spin: moved(part) for spin, part in frame.parts.items()})
        for name, frame in frames.items()
    }, sets


def _left_out(frozen: Frozen, occupations: Array, kind: str) -> tuple[set[int], set[int]]:
    """The orbitals of alpha and beta electrons that are not correlated."""
    count = occupations.shape[-1]
    given: Any = 0 if frozen is None else frozen
    try:
        if not np.iterable(given):
            fits = not isinstance(given, bool) and 0 <= index(given) <= count
            chosen = [list(range(index(given)))] * 2 if fits else []
        else:
            items = list(given)
            by_spin = bool(items) and all(np.ndim(item) == 1 for item in items)
            spins = (
                items if by_spin and kind in ("UHF", "ROHF") and len(items) == 2 else [items] * 2
            )
            chosen = [numbers_of(spin, count) for spin in spins]
        alpha, beta = map(set, chosen)
    except (TypeError, ValueError, IndexError):
        alpha = beta = {-1}
    if not alpha | beta <= set(range(count)):
        word = "spin orbitals" if kind == "GHF" else "orbitals"
        each = ", or two of these for alpha and beta" if kind in ("UHF", "ROHF") else ""
        raise ArgumentError(
            f"frozen={frozen!r} does not fit the {count} {word} of the {kind} reference: give the "
            f"number of core orbitals, a list of orbitals counted from 0, or a mask of {count} "
            f"booleans that are True for frozen orbitals{each}"
        )
    return alpha, beta


def numbers_of(items: Any, count: int) -> list[int]:
    """Numbers of the orbitals of a list, which may count from the end, or of a mask.

    ValueError or IndexError for one that does not fit.
    """
    items = list(items)
    booleans = [isinstance(item, bool | np.bool_) for item in items]
    if not any(booleans):
        return [range(count)[index(item)] for item in items]
    if not all(booleans) or len(items) != count:
        raise ValueError
    return [k for k, item in enumerate(items) if item]


def _active(occupations: Array, left_out: set[int]) -> tuple[list[int], list[int]]:
    """Orbitals that are not frozen: occupied and virtual ones."""
    kept = [k for k in range(len(occupations)) if k not in left_out]
    return [k for k in kept if occupations[k] > 0], [k for k in kept if occupations[k] == 0]


def _interleaved(
    alpha: Frame, beta: Frame, numbers: Sequence[tuple[list[int], list[int]]], by_energy: bool
) -> Frame:
    """Spin orbitals in PySCF's order: by energy for UHF, else alpha and beta side by side."""
    # Threads round the Fock matrix differently from call to call, which must not decide the order.
    energies = np.sort(np.concatenate([alpha.energies, beta.energies]))
    lowest = energies[np.diff(energies, prepend=-np.inf) > _DEGENERATE]
    levels = [np.searchsorted(lowest, frame.energies, "right") for frame in (alpha, beta)]
    order: list[tuple[int, int]] = []  # spin, place in the frame of that spin
    for part in range(2):
        places = [
            (levels[s][k] if by_energy else number, s, k)
            for s, frame in enumerate((alpha, beta))
            for k, number in enumerate(numbers[s][part], start=part * frame.occupied)
        ]
        order += [(s, k) for _, s, k in sorted(places)]
    fock = np.zeros((len(order),) * 2, np.result_type(alpha.fock, beta.fock))
    parts = {}
    for spin, (name, frame) in enumerate(((ALPHA, alpha), (BETA, beta))):
        columns = [n for n, (s, _) in enumerate(order) if s == spin]
        own = [k for s, k in order if s == spin]
        of_set = np.full(len(order), -1)
        of_set[columns] = frame.parts[name].places[own]
        parts[name] = Part(frame.parts[name].number, of_set)
        fock[np.ix_(columns, columns)] = frame.fock[np.ix_(own, own)]
    return Frame(parts, alpha.occupied + beta.occupied, fock)


def _refuse_empty(frame: Frame, occupations: Array, frozen: Frozen) -> None:
    """Refuse frozen orbitals that leave no occupied or no virtual ones, if there are some."""
    for name, count, all_of_them in (
        ("occupied", frame.occupied, np.any(occupations > 0)),
        ("virtual", frame.count - frame.occupied, np.any(occupations == 0)),
    ):
        if all_of_them and not count:
            raise ArgumentError(
                f"frozen={frozen!r} leaves no {name} orbitals to correlate: freeze fewer"
            )

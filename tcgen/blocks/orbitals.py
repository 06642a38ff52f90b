"""The orbitals of each space of a program over blocks by irrep, those of joined spaces included."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..errors import ArgumentError, ExtentError, PlanError
from ..grading import Grading
from ..ir.tensor import Space
from ..options import parse_extents
from .arrays import orbitals_by_irrep
from .layout import Numbers


class Orbitals:
    """The orbitals of all spaces of a program.

    Args:
        spaces: the spaces.
        given: the grading of base spaces; of joined spaces it may have the orbitals of their parts,
            one after the other.
        extents: extents of base spaces without a grading.
        program: name of the program, for messages.

    Attributes:
        grading: the grading of base and of joined spaces.
        dims: the number of orbitals of each irrep, by space.
        extents: extents of the base spaces.

    Raises:
        ArgumentError: the grading has a space that the program lacks.
        ExtentError: an extent is missing, or contradicts the grading.
        PlanError: of the parts of a joined space, some have a grading and others do not.
    """

    def __init__(self, spaces: Iterable[Space], given: Grading, extents: Any, program: str) -> None:
        every = dict.fromkeys(part for whole in spaces for part in (whole, *whole.bases))
        bases = [space.name for space in every if not space.parts]
        joined = [space for space in every if space.parts]
        _check_spaces(given, [*bases, *(s.name for s in joined)])
        known = dict(parse_extents(extents))
        _check_extents(given, known, bases, program)
        self.dims: dict[str, Numbers] = {n: _dims(given, n, known, program) for n in bases}
        self.extents = {name: int(dim.sum()) for name, dim in self.dims.items()}
        orbitals = {name: given.orbitals(name) for name in bases if name in given}
        for space in joined:
            parts = [base.name for base in space.bases]
            self.dims[space.name] = sum((self.dims[n] for n in parts[1:]), self.dims[parts[0]])
            graded = [name for name in parts if name in given]
            if graded and len(graded) < len(parts):
                rest = ", ".join(name for name in parts if name not in graded)
                raise PlanError(
                    f"{program}: {space.name} joins {', '.join(graded)} and {rest}, of which the "
                    f"grading lacks {rest}: give its irreps as well"
                )
            if not graded:
                continue
            orbitals[space.name] = tuple(g for name in parts for g in given.orbitals(name))
            if space.name in given and given.orbitals(space.name) != orbitals[space.name]:
                raise ArgumentError(
                    f"the grading has orbitals {space.name} that are not those of its parts "
                    f"{', '.join(parts)}, one after the other: leave {space.name} out"
                )
        self.grading = Grading(given.moduli, orbitals, given.names, name=given.name)


def same_orbitals(one: Grading, other: Grading, spaces: Iterable[str]) -> bool:
    """Whether two gradings have the same group, and the same orbitals of some spaces."""
    if (one.moduli, one.names) != (other.moduli, other.names):
        return False
    for space in spaces:
        found = [g.orbitals(space) if space in g else None for g in (one, other)]
        if found[0] != found[1]:
            return False
    return True


def _check_spaces(grading: Grading, bases: Iterable[str]) -> None:
    for space in grading.spaces:
        if space not in bases:
            raise ArgumentError(
                f"the grading has orbitals {space}, but the spaces of the equations are "
                f"{', '.join(bases)}"
            )


def _check_extents(
    grading: Grading, given: Mapping[str, int], bases: Iterable[str], program: str
) -> None:
    for name, extent in given.items():
        if name not in bases:
            raise ExtentError(
                f"{program}: no space {name} (extents={{{name!r}: {extent}}}): its spaces are "
                f"{', '.join(bases)}"
            )
        if extent < 0:
            raise ExtentError(f"{program}: extent {name}={extent} is negative: give 0 or more")
        if name in grading and len(grading.orbitals(name)) != extent:
            raise ExtentError(
                f"{program}: extent {name}={extent}, but the grading has "
                f"{len(grading.orbitals(name))} orbitals {name}: leave the extent out, or grade "
                f"as many orbitals"
            )


def _dims(grading: Grading, name: str, extents: Mapping[str, int], program: str) -> Numbers:
    if name not in grading and name not in extents:
        raise ExtentError(
            f"{program}: space {name} has no grading: give the irreps of its orbitals, or "
            f'extents={{"{name}": 10}} if they have none'
        )
    return orbitals_by_irrep(grading, name, int(extents.get(name, 0)))

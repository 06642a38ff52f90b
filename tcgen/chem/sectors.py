"""Roots over blocks: an eigenvalue problem for each irrep, momentum or spin of the vectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod

from ..blocks.arrays import BlockedArray
from ..blocks.program import BlockedProgram
from ..errors import ArgumentError
from ..grading import Grading
from ..ir.tensor import Tensor
from .bound_program import Later
from .eigen import lowest_roots
from .spaces import Kind, OrbitalSpaces
from .symmetry import BlockedProblem

_SHOWN = 6  # most elements of a group that a message lists
_CHARGE = "x"  # the charge of vectors that declare none


@dataclass(frozen=True, slots=True, eq=False)
class Root:
    """One root: its energy, irrep, blocks of its vector, and the norm of its residual."""

    value: float
    element: int
    amplitudes: dict[str, BlockedArray]
    norm: float


def targets(grading: Grading, irrep: object) -> list[int]:
    """The elements of the group that roots shall have; of a product also by the name of one part.

    Numbers and components are those of its first part, after which states are named.

    Raises:
        ArgumentError: there is no such element; names are listed.

    Example:
        >>> spin = Grading.spin(order=3, o=[0, 1]) * Grading.from_orbsym("C2v", o=[2, 2])
        >>> [spin.names[g] for g in targets(spin, "B1")]
        ['+0/2|B1', '+1/2|B1', '-1/2|B1']
        >>> momenta = Grading((1, 2), {"o": [0, 1]}) * Grading.spin(order=3, o=[0, 1])
        >>> targets(momenta, 1) == targets(momenta, (0, 1)) == targets(momenta, "0,1") == [3, 4, 5]
        True
    """
    if irrep is None:
        return list(range(len(grading)))
    parts = [*dict.fromkeys(name.partition("|")[0] for name in grading.names)]
    if len(parts) < len(grading) and not isinstance(irrep, str):
        moduli = grading.moduli
        while prod(moduli) > len(parts):
            moduli = moduli[:-1]
        irrep = parts[_element(Grading(moduli, {}, parts, name=grading.name), irrep)]
    named = [g for g, name in enumerate(grading.names) if irrep in (name, *name.split("|"))]
    if named:
        return named
    return [_element(grading, irrep)]


def _element(grading: Grading, irrep: object) -> int:
    try:
        return grading.element(irrep)  # type: ignore[arg-type]
    except ArgumentError as error:
        raise ArgumentError(f"irrep={irrep!r:.80}: {error}") from None


def with_charge(tensor: Tensor, spaces: OrbitalSpaces) -> Tensor:
    """A vector with a charge, if it declares none: what is attached less what is removed.

    Vectors with more occupied axes count what is removed.
    """
    if tensor.charge is not None:
        return tensor
    kinds = [spaces.kind(space) for space in tensor.spaces]
    virtual, occupied = (
        tuple(axis for axis, own in enumerate(kinds) if own is kind)
        for kind in (Kind.VIRTUAL, Kind.OCCUPIED)
    )
    sides = (virtual, occupied) if len(virtual) >= len(occupied) else (occupied, virtual)
    return replace(tensor, conserves=sides, charge=_CHARGE)


def symmetric_roots(
    problem: BlockedProblem,
    program_of: Callable[[int], BlockedProgram],
    arrays: Mapping[str, BlockedArray],
    elements: Sequence[int],
    show: Callable[[int], None],
) -> tuple[list[Root], int]:
    """The lowest roots of the vectors of some elements of the group, and the number of products.

    ``problem`` is that of the first element, and ``arrays`` are all inputs but the vectors.
    ``show`` is called with the number of products so far.

    Raises:
        ArgumentError: there are fewer vectors than roots.
    """
    count = problem.options.nroots
    roots: list[Root] = []
    products = 0
    for number, element in enumerate(elements):
        if number:
            program = program_of(element)
            run = Later(program, problem.system, dict(arrays), problem.equations)
            problem = replace(problem, program=program, run=run)
        found, more = _roots(problem, element, partial(_counted, show, products))
        roots += found
        products += more
    if len(roots) < count:
        names = [problem.program.grading.names[g] for g in elements] if problem.program else []
        of = ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
        raise ArgumentError(
            f"nroots={count}, but there are {len(roots)} vectors of {of}: ask for fewer roots, or "
            f"for another irrep"
        )
    return sorted(roots, key=lambda root: root.value)[:count], products


def _counted(show: Callable[[int], None], before: int, products: int) -> None:
    show(before + products)


def _roots(
    problem: BlockedProblem, element: int, show: Callable[[int], None]
) -> tuple[list[Root], int]:
    """The lowest roots of the vectors of one element, and the number of products."""
    options = problem.options
    multiply, parts, diagonal = problem.matrix(show)
    rows = sum(part.places.size for part in parts.values())
    if rows == 0:
        return [], 0
    found = lowest_roots(
        multiply, parts, diagonal, {}, count=min(options.nroots, rows),
        tolerance=options.tolerance, max_cycle=options.max_cycle,
    )  # fmt: skip
    roots = []
    for k, (value, norm) in enumerate(zip(found.values, found.norms, strict=True)):
        arrays = {name: problem.array(name, x[k]) for name, x in found.amplitudes.items()}
        roots.append(Root(value, element, arrays, norm))
    return roots, found.products

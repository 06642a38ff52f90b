"""Properties of a ground state: densities, dipole, quadrupole, natural orbitals, polarisability.

Densities are derivatives of the Lagrangian by the Fock matrix, without relaxation of the orbitals:
the change of the energy by a field that is switched on after the mean field.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..compiler.api import signature_with
from ..errors import ArgumentError, ConvergenceError
from ..ir.layouts import Array
from ..options import Planning
from .driver import opened
from .excited import GroundState, ground_state
from .linear import solve_linear
from .options import SolveOptions, solve_options
from .result import Solution
from .vector_pairs import silent

DEBYE = 2.541746473  # debye of an atomic unit of the dipole moment (CODATA 2022)
_OCCUPIED = 1e-8  # smallest eigenvalue of the overlap of basis functions


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Properties:
    """One-particle density and what follows from it, in atomic units.

    Attributes:
        solution: the amplitudes, with multipliers ``l1``, ``l2`` beside them.
        density: density matrix over basis functions, of all electrons and both spins. Over
            integrals without a basis set, over the orbitals that they have, without the reference
            of orbitals for each spin.
        dipole: dipole moment about the origin of coordinates; None without a basis set.
        quadrupole: sum of charges times the products of their coordinates, 3 x 3, whose trace is
            not subtracted; None without a basis set.
        occupations: natural occupations, largest first; None if overlaps are not known.
        orbitals: natural orbitals in columns, over basis functions; None like ``occupations``.
        polarizability: static polarisability, 3 x 3; None unless it was asked for.
    """

    solution: Solution
    density: Array
    dipole: Array | None
    quadrupole: Array | None
    occupations: Array | None
    orbitals: Array | None
    polarizability: Array | None = None

    def __repr__(self) -> str:
        return f"<properties of {self.solution.name} on {self.solution.reference}>"

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """The numbers as text, a line for each."""
        found = []
        if self.dipole is not None:
            size = float(np.linalg.norm(self.dipole)) * DEBYE
            found.append(f"dipole          {_row(self.dipole)}  ({size:.4f} D)")
        for name in ("quadrupole", "polarizability"):
            matrix = getattr(self, name)
            if matrix is not None:
                found += [
                    f"{name if k == 0 else '':<15} {_row(row)}" for k, row in enumerate(matrix)
                ]
        if self.occupations is not None:
            rows = [self.occupations[k : k + 8] for k in range(0, len(self.occupations), 8)]
            found += [
                f"{'occupations' if k == 0 else '':<15} {_row(row, 8, 5)}"
                for k, row in enumerate(rows)
            ]
        return found

    def as_json(self) -> dict[str, Any]:
        """Everything but density, orbitals and amplitudes."""
        names = ("dipole", "quadrupole", "polarizability", "occupations")
        return {n: None if (a := getattr(self, n)) is None else a.tolist() for n in names}


def properties(
    source: object,
    mean_field: Any,
    options: SolveOptions | None = None,
    *,
    polarizability: bool = False,
    **keywords: Any,
) -> Properties:
    """Properties of the ground state that the equations of a spec determine.

    Args:
        source: equations for amplitudes, as in :func:`solve`: with residuals and a Fock matrix.
        mean_field: a reference with real orbitals, as in :func:`solve`.
        options: a :class:`SolveOptions`.
        polarizability: solve the response of the amplitudes to a field too.
        keywords: fields of ``options`` or of its ``planning``.

    Raises:
        ArgumentError: the equations have no Lagrangian, orbitals are complex, or a polarisability
            is asked for without a basis set.
        ConvergenceError: amplitudes, multipliers or the response are not converged.

    Example (with PySCF; docs/states.md runs it):

        print(tcgen.chem.properties("ccsd_closed_shell", mf).dipole)
    """
    options = solve_options(options, keywords)
    state = ground_state(source, mean_field, options)
    made, reference = state.lagrangian, state.reference
    coordinates = reference.moments(1)
    if polarizability and coordinates is None:
        raise ArgumentError(
            f"polarizability: {reference.origin} has no integrals of coordinates: pass a mean field"
        )
    multipliers = state.multipliers()
    system = made.density(with_energy=True)
    roles = dict.fromkeys((t.name for t in system.outputs), "value")
    arrays = state.amplitudes | multipliers
    with opened(system, mean_field, state.options_for(system, arrays, roles)) as problem:
        density = state.over_basis(problem.values()) + reference.density()
    dipole, quadrupole = (_multipole(state, density, order) for order in (1, 2))
    occupations, orbitals = _natural(density, reference.moments(0))
    response = None
    if polarizability:
        assert coordinates is not None
        response = _polarizability(state, multipliers, coordinates)
    named = {f"l{n[1:]}" if n.startswith("t") else f"l_{n}": multipliers[m]
             for n, m in made.left.items()}  # fmt: skip
    solution = state.solution
    amplitudes = solution.amplitudes | named
    return Properties(
        replace(solution, amplitudes=amplitudes), density, dipole, quadrupole, occupations,
        orbitals, response,
    )  # fmt: skip


properties.__signature__ = signature_with(  # type: ignore[attr-defined]
    properties, SolveOptions, Planning
)


def _multipole(state: GroundState, density: Array, order: int) -> Array | None:
    """The moment of electrons and nuclei; None without a basis set."""
    integrals = state.reference.moments(order)
    if integrals is None:
        return None
    electrons = np.einsum("xpq,qp->x", integrals, density)
    whole: Array = state.reference.of_nuclei(order) - electrons.reshape((3,) * order)
    return whole


def _natural(density: Array, overlap: Array | None) -> tuple[Array | None, Array | None]:
    """Natural occupations and orbitals over basis functions."""
    if overlap is None:
        return None, None
    values, vectors = np.linalg.eigh(overlap[0])
    kept = values > _OCCUPIED
    root = vectors[:, kept] * np.sqrt(values[kept])
    inverse = vectors[:, kept] / np.sqrt(values[kept])
    occupations, natural = np.linalg.eigh(root.T @ density @ root)
    return occupations[::-1], (inverse @ natural)[:, ::-1]


def _polarizability(state: GroundState, multipliers: dict[str, Array], coordinates: Array) -> Array:
    """Minus the second derivative of the Lagrangian by fields; electrons have the charge -1."""
    made = state.lagrangian
    blocks = state.operators(coordinates)
    names = {n: f"x_{n}" for n in made.one_electron}
    taken = {t.name for t in made.ground.tensors}
    while taken & {*names.values()}:
        names = {n: f"x{new}" for n, new in names.items()}
    system = made.perturbed(names)
    residuals = {a.tensor.name: f"d_{a.output.name}" for a in made.equations.amplitudes}
    operators = [{names[n]: array for n, array in one.items()} for one in blocks]
    options = state.options_for(
        system, state.amplitudes, dict.fromkeys((t.name for t in system.outputs), "value")
    )
    read = {t.name for t in system.inputs}
    passed = {n: a for n, a in operators[0].items() if n in read}
    options = replace(options, inputs={**(options.inputs or {}), **passed})
    right: dict[str, list[Array]] = {made.right[n]: [] for n in made.amplitudes}
    with opened(system, state.source, options, free=names.values()) as problem:
        for one in operators:
            outputs = problem.values(**one)
            for amplitude in made.equations.amplitudes:
                own = amplitude.tensor.name
                image = outputs[residuals[own]].transpose(amplitude.axes)
                right[made.right[own]].append(image / amplitude.scale)
    product = made.right_product()
    roles = {residuals[n]: f"residual of {made.right[n]}" for n in made.amplitudes}
    options = state.options_for(product, state.amplitudes, roles)
    with opened(product, state.source, options) as problem:
        multiply, parts, diagonal = problem.matrix(silent)
        # The products have the sign of orbital energies of virtual less occupied orbitals.
        found = solve_linear(
            multiply, parts, diagonal, {n: np.array(x) for n, x in right.items()}, [0.0] * 3,
            tolerance=state.options.tolerance, max_cycle=state.options.max_cycle,
        )  # fmt: skip
    if max(found.norms) > state.options.tolerance:
        raise ConvergenceError(
            f"the response of the amplitudes of {state.solution.name} is not converged: the "
            f"largest residual norm is {max(found.norms):.1e}: raise max_cycle"
        )
    second = made.second_order()
    arrays = state.amplitudes | multipliers | state.zero(made.right)
    roles = dict.fromkeys((t.name for t in second.outputs), "value")
    options = state.options_for(second, arrays, roles)
    result = np.zeros((3, 3))
    with opened(second, state.source, options, free=made.right.values()) as problem:
        for y in range(3):
            outputs = problem.values(**{n: a[y] for n, a in found.amplitudes.items()})
            for x in range(3):
                mixed = sum(
                    np.vdot(outputs[made.of_amplitude(n)], blocks[x][n]) for n in made.one_electron
                )
                curved = sum(
                    np.vdot(outputs[made.of_amplitude(n)], found.amplitudes[made.right[n]][x])
                    for n in made.amplitudes
                )
                result[x, y] += mixed + curved / 2
                result[y, x] += mixed + curved / 2
    return -result


def _row(values: Array, width: int = 12, digits: int = 6) -> str:
    return " ".join(f"{v:{width}.{digits}f}" for v in np.round(values, digits) + 0.0)

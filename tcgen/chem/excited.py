"""Excited states of a ground state: roots of the matrix of its equations, and transition moments.

The matrix is dr/dt, which is exp(-T) H exp(T) of EOM for coupled cluster. Left vectors belong to
the transposed matrix; each pair of groups of equal roots is made biorthonormal. Transition moments
are those of linear response, which grow with the number of molecules as they should:
<0|X|k> has the derivative of dL/dt by X, times the right vector, and the response of multipliers
to it. EOM with a term of configuration interaction in place of the latter has the same ones in the
limit of exact wave functions.

Source: H. Koch, P. Jorgensen, J. Chem. Phys. 93, 3333 (1990).
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..compiler.api import signature_with
from ..errors import ArgumentError, ConvergenceError
from ..ir.layouts import Array
from ..ir.system import System
from ..ir.tensor import Tensor, symmetry_group
from ..options import Planning
from .driver import inferred, opened, solve
from .eigen import Roots
from .equations import Equations
from .inputs import MeanFieldInputs
from .lagrangian import Lagrangian, lagrangian
from .linear import solve_linear
from .options import SolveOptions, refuse_idle, solve_options
from .quantities import Found
from .reference import Reference
from .result import Solution, equal_parts
from .root_vectors import Vectors
from .spaces import ORBITAL, OrbitalSpaces, classify
from .states import State, States
from .vector_pairs import first_states, lowest, paired, silent, whole_groups, with_roots


@dataclass(frozen=True, slots=True, eq=False)
class GroundState:
    """A ground state, its Lagrangian, and what derived equations need to be evaluated.

    Attributes:
        solution: the converged amplitudes.
        lagrangian: the equations that follow.
        blocks: orbitals of the axes of inputs.
        options: those of the calculation.
    """

    source: Any
    solution: Solution
    lagrangian: Lagrangian
    roles: Mapping[str, Any]
    spaces: OrbitalSpaces
    blocks: MeanFieldInputs
    reference: Reference
    options: SolveOptions

    def options_for(
        self, system: System, arrays: Mapping[str, Array], roles: Mapping[str, str]
    ) -> SolveOptions:
        """Options of equations that follow, which read these amplitudes and vectors."""
        read = {t.name for t in system.inputs}
        return replace(
            self.options,
            amplitudes={n: a for n, a in arrays.items() if n in read},
            inputs={n: role for n, role in self.roles.items() if n in read},
            outputs=dict(roles),
            orbitals=self.blocks.orbitals,
            checkpoint=None,
            checkpoint_every=1,
            nroots=1,
            precision=None,
            show=False,
        )

    @property
    def amplitudes(self) -> dict[str, Array]:
        """The arrays of the amplitudes."""
        return {n: self.solution.amplitudes[n] for n in self.lagrangian.amplitudes}

    def tensor(self, name: str) -> Tensor:
        """An amplitude."""
        return next(a.tensor for a in self.lagrangian.equations.amplitudes if a.tensor.name == name)

    def zero(self, names: Mapping[str, str]) -> dict[str, Array]:
        """Zero vectors with the names of a dictionary by amplitude."""
        return {new: np.zeros_like(self.amplitudes[own]) for own, new in names.items()}

    def multipliers(self) -> dict[str, Array]:
        """The multipliers of the residuals, by name in the Lagrangian."""
        system = self.lagrangian.multipliers()
        roles = {
            self.lagrangian.of_amplitude(own): f"residual of {new}"
            for own, new in self.lagrangian.left.items()
        }
        options = self.options_for(system, self.amplitudes, roles)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".* is not converged: the largest residual")
            found = solve(system, self.source, options)
        if not found.converged:
            raise not_converged("the multipliers of", self.solution.name, found)
        return {new: found.amplitudes[new] for new in self.lagrangian.left.values()}

    def overlap(self, left: Mapping[str, Array], right: Mapping[str, Array]) -> Array:
        """Products of left with right vectors, which are by amplitude with roots first."""
        total: Any = 0.0
        for name in self.lagrangian.amplitudes:
            one, two = (x[name].reshape(len(x[name]), -1) for x in (left, right))
            total = total + one @ two.T / len(symmetry_group(self.tensor(name)))
        return np.asarray(total)

    def over_basis(self, blocks: Mapping[str, Array]) -> Array:
        """The density over basis functions, from derivatives by blocks of the Fock matrix."""
        whole: dict[str, Array] = {}
        frames = {}
        for name, found in self.lagrangian.one_electron.items():
            frame_name, frame, _ = self.blocks.frame(found.tensor.spaces[0])
            places = [self.blocks.frame(space)[2] for space in found.tensor.spaces]
            frames[frame_name] = frame
            matrix = whole.setdefault(frame_name, np.zeros((frame.count, frame.count)))
            matrix[np.ix_(*places)] += blocks[self.lagrangian.of_amplitude(name)]
        total: Any = 0.0
        for name, matrix in whole.items():
            matrix = (matrix + matrix.T) / 2
            for c in self.reference.by_spin(frames[name]):
                total = total + c @ matrix @ c.T
        return np.asarray(total)

    def operators(self, matrices: Array) -> list[dict[str, Array]]:
        """Blocks of one-electron operators over basis functions, by input of the Lagrangian."""
        found: list[dict[str, Array]] = [{} for _ in matrices]
        for name, one in self.lagrangian.one_electron.items():
            _, frame, _ = self.blocks.frame(one.tensor.spaces[0])
            places = [self.blocks.frame(space)[2] for space in one.tensor.spaces]
            whole = sum(c.T @ matrices @ c for c in self.reference.by_spin(frame))
            for blocks, matrix in zip(found, np.asarray(whole), strict=True):
                blocks[name] = matrix[np.ix_(*places)]
        return found


def ground_state(source: object, mean_field: Any, options: SolveOptions) -> GroundState:
    """Solve the equations of a ground state, and infer what follows from them."""
    system, equations, found, blocks, reference = inferred(source, mean_field, options)
    if reference.complex_orbitals:
        raise ArgumentError("states and properties need a reference with real orbitals")
    made = derivable(system, equations, found, options)
    passed = {n: v for n, v in (options.inputs or {}).items() if not isinstance(v, str)}
    solution = _known(options.amplitudes, system, reference)
    if solution is None:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".* is not converged: the largest residual")
            solution = solve(source, mean_field, options)
    if not solution.converged:
        raise not_converged("the amplitudes of", solution.name, solution)
    roles = {n: f.quantity.value for n, f in found.items()} | passed
    return GroundState(
        mean_field, solution, made, roles, classify(system), blocks, reference, options
    )


def derivable(
    system: System, equations: Equations, found: Mapping[str, Found], options: SolveOptions
) -> Lagrangian:
    """The Lagrangian of equations, if they and the options allow states and properties.

    Raises:
        ArgumentError: they do not.
    """
    if options.dtype != "float64":
        raise ArgumentError(
            f"dtype={options.dtype}: states and properties are for real orbitals, in float64"
        )
    made = lagrangian(system, equations, found)
    refuse_idle(options, [(system.name, equations, found)])
    return made


def _known(given: Any, system: System, reference: Reference) -> Solution | None:
    """The caller's amplitudes if they are the solution of these equations on this reference."""
    if not isinstance(given, Solution) or given.name != system.name or not given.converged:
        return None
    marks = reference.fingerprint()
    same = all(equal_parts(given.fingerprint.get(part), mark) for part, mark in marks.items())
    return given if same and given.e_corr is not None else None


def not_converged(what: str, name: str, found: Solution) -> ConvergenceError:
    """The error of equations on the way to a result."""
    worst = max(found.residual_norms.values())
    return ConvergenceError(
        f"{what} {name} are not converged: the largest residual norm is {worst:.1e} after "
        f"{found.iterations} iterations: raise max_cycle, or try damping=0.3"
    )


def excited_states(
    source: object,
    mean_field: Any,
    options: SolveOptions | None = None,
    *,
    moments: bool = True,
    **keywords: Any,
) -> Solution:
    """Excited states of the ground state that the equations of a spec determine.

    Excitation energies are the lowest ``nroots`` roots of the derivative of the residuals by the
    amplitudes: those of EOM for coupled cluster. Equations over spatial orbitals have the singlets
    of a closed shell, those over spin orbitals all spins.

    Args:
        source: equations for amplitudes, as in :func:`solve`: with residuals and a Fock matrix.
        mean_field: a reference with real orbitals, as in :func:`solve`.
        options: a :class:`SolveOptions`.
        moments: left vectors and transition moments too; without them, energies alone.
        keywords: fields of ``options`` or of its ``planning``, such as ``nroots=5``.

    Returns:
        A :class:`Solution` with ``roots``, ``states``, and in ``amplitudes`` those of the ground
        state, right vectors ``r1``, ``r2`` and left ones ``l1``, ``l2``, with roots first. Right
        vectors have the norm 1 over elements that symmetry leaves independent; the product of a
        left and a right vector, sum of l*r over all elements divided by the number of elements that
        symmetry makes equal, is 1 for a pair and 0 for others.

    Raises:
        ArgumentError: the equations have no Lagrangian, or orbitals are complex.
        ConvergenceError: amplitudes, multipliers or response are not converged, or left and right
            vectors have different roots.

    Example (with PySCF; docs/states.md runs it):

        print(tcgen.chem.excited_states("ccsd_closed_shell", mf, nroots=4).states)
    """
    clock = time.perf_counter()
    options = solve_options(options, keywords)
    state = ground_state(source, mean_field, replace(options, nroots=1))
    roots, right = _right(state, options.nroots)
    values = roots.values
    vectors = Vectors(
        tuple(state.tensor(n) for n in state.lagrangian.amplitudes),
        tuple(s for s in state.lagrangian.ground.spaces if state.spaces.kind(s) in ORBITAL),
        state.spaces, state.blocks, state.reference,
        1 if state.blocks.orbitals == "spatial" else None,
    )  # fmt: skip
    right = vectors.pure(values, right)
    arrays = {_name("r", n): a for n, a in right.items()}
    found = vectors.states(values, right)
    if moments:
        left, strengths, along = _moments(state, values, right)
        arrays |= {_name("l", n): a for n, a in left.items()}
        found = States(_with_moments(s, strengths, along) for s in found)
    count = options.nroots
    letters = {n: f"x{state.spaces.letters(state.tensor(o))}" for o, n in _pairs(state, arrays)}
    solution = with_roots(
        state.solution, f"{state.solution.name}_states", roots, first_states(found, count), options,
        amplitudes=state.solution.amplitudes | {n: a[:count] for n, a in arrays.items()},
        letters=state.solution.letters | letters,
        solved=[_name("r", n) for n in state.lagrangian.amplitudes],
        seconds=time.perf_counter() - clock,
    )  # fmt: skip
    if not solution.converged:
        warnings.warn(
            f"{solution.name}: roots are not converged: the largest residual norm is "
            f"{max(roots.norms[:count]):.1e}: raise max_cycle",
            RuntimeWarning,
            stacklevel=2,
        )
    return solution


excited_states.__signature__ = signature_with(  # type: ignore[attr-defined]
    excited_states, SolveOptions, Planning
)


def _name(letter: str, amplitude: str) -> str:
    """r1 for t1; r_c for an amplitude c."""
    known = amplitude.startswith("t") and len(amplitude) > 1
    return f"{letter}{amplitude[1:]}" if known else f"{letter}_{amplitude}"


def _pairs(state: GroundState, arrays: Mapping[str, Array]) -> list[tuple[str, str]]:
    """Amplitudes and the names of their vectors among the arrays."""
    names = [(n, _name(x, n)) for n in state.lagrangian.amplitudes for x in "rl"]
    return [(own, new) for own, new in names if new in arrays]


def _right(state: GroundState, count: int) -> tuple[Roots, dict[str, Array]]:
    """Roots in whole groups of equal ones, and right vectors by amplitude."""
    made = state.lagrangian
    system = made.right_product()
    roles = {
        f"d_{a.output.name}": f"residual of {made.right[a.tensor.name]}"
        for a in made.equations.amplitudes
    }
    options = state.options_for(system, state.amplitudes, roles)
    with opened(system, state.source, options) as problem:
        found = whole_groups(problem, count)
    return found, {own: found.amplitudes[new] for own, new in made.right.items()}


def _moments(
    state: GroundState, values: Sequence[float], right: Mapping[str, Array]
) -> tuple[dict[str, Array], Array | None, Array | None]:
    """Left vectors, and by root the strengths and the products of moments along x, y and z."""
    made = state.lagrangian
    multipliers = state.multipliers()
    known = state.amplitudes | multipliers
    second = made.second_order()
    from_right, sources = [], {n: list[Array]() for n in made.amplitudes}
    roles = dict.fromkeys((t.name for t in second.outputs), "value")
    options = state.options_for(second, known | state.zero(made.right), roles)
    with opened(second, state.source, options, free=made.right.values()) as problem:
        for k in range(len(values)):
            outputs = problem.values(**{new: right[own][k] for own, new in made.right.items()})
            from_right.append(state.over_basis(outputs))
            for own, group in sources.items():
                size = len(symmetry_group(state.tensor(own)))
                group.append(size * outputs[made.of_amplitude(own)])
    system = made.left_product()
    roles = {made.of_amplitude(own): f"residual of {new}" for own, new in made.left.items()}
    options = state.options_for(system, state.amplitudes, roles)
    with opened(system, state.source, options) as problem:
        start = {made.left[own]: array for own, array in right.items()}
        found = lowest(problem, start, len(values))
        by_name = {own: found.amplitudes[new] for own, new in made.left.items()}
        turned = paired(
            state.solution.name, values, found, state.overlap(by_name, right),
            state.options.tolerance,
        )  # fmt: skip
        left = {own: turned[new] for own, new in made.left.items()}
        multiply, parts, diagonal = problem.matrix(silent)
        response = solve_linear(
            multiply, parts, diagonal,
            {made.left[own]: -np.array(group) for own, group in sources.items()}, list(values),
            tolerance=state.options.tolerance, max_cycle=state.options.max_cycle,
        )  # fmt: skip
    if max(response.norms) > state.options.tolerance:
        raise ConvergenceError(
            f"the response of the multipliers of {state.solution.name} is not converged: the "
            f"largest residual norm is {max(response.norms):.1e}: raise max_cycle"
        )
    coordinates = state.reference.moments(1)
    if coordinates is None:
        return left, None, None
    density = made.density(with_energy=False)
    roles = dict.fromkeys((t.name for t in density.outputs), "value")
    options = state.options_for(density, state.amplitudes | state.zero(made.left), roles)
    products = []
    with opened(density, state.source, options, free=made.left.values()) as problem:

        def transition(arrays: Mapping[str, Array], k: int) -> Array:
            return state.over_basis(problem.values(**{n: a[k] for n, a in arrays.items()}))

        for k in range(len(values)):
            to_left = transition({made.left[own]: a for own, a in left.items()}, k)
            to_right = from_right[k] + transition(response.amplitudes, k)
            one, two = (np.einsum("xpq,pq->x", coordinates, d) for d in (to_left, to_right))
            products.append(one * two)
    along = np.array(products)
    return left, 2 / 3 * np.asarray(values) * along.sum(axis=1), along


def _with_moments(state: State, strengths: Array | None, along: Array | None) -> State:
    """The state with the sums over its roots."""
    if strengths is None or along is None:
        return state
    own = list(state.roots)
    x, y, z = (float(v) for v in along[own].sum(axis=0))
    return replace(state, strength=float(strengths[own].sum()), moments=(x, y, z))

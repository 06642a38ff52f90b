"""Equations on a mean field before they are compiled: roles of tensors, storage, given arrays."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import inf, log, prod
from numbers import Number, Real
from typing import Any

import numpy as np

from ..blocks.arrays import BlockedArray
from ..compiler.driver import read_system
from ..errors import ArgumentError, ExtentError
from ..grading import Grading
from ..ir.layouts import Array, dense_shape
from ..ir.system import System, with_axes, with_tensors
from ..ir.tensor import Role, Tensor, element_bytes, element_type
from ..options import parse_bytes
from ..records.loops import stored_shape
from ..records.quantity import Quantity
from ..resources import shipped_specs
from .complex_orbitals import refuse_real
from .conventions import is_over_spin_orbitals, with_conventions
from .equations import Equations, at_zero, infer_roles
from .hamiltonian import read_reference
from .inputs import (
    IN_MEMORY,
    MeanFieldInputs,
    check_passed,
    in_layout,
    inputs_on_disk,
    passed_energies,
    passed_extents,
    unpacked,
)
from .integral_file import MOST_KEPT
from .mean_field import MeanField
from .memory import BASE, OF_FILE, Budget
from .options import SolveOptions
from .probe import Probe
from .quantities import Found, recognise, rules_for
from .reference import Reference
from .result import Earlier
from .sectors import with_charge
from .spaces import ORBITAL, Kind, OrbitalSpaces, classify
from .symmetry import Labels, auxiliary_irreps, grading_of, labels_of

# Largest element of a Fock matrix that equations may leave out without a word, in Hartree. Its part
# of an energy is its square over an orbital energy.
_LEFT_OUT = 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class Setup:
    """Equations on a mean field, before they are compiled.

    The inputs of ``system`` have the storage and phase that this calculation needs. ``extents`` are
    by base space. ``given`` has dense arrays of the inputs in ``equations.given``, ``arrays`` those
    of inputs in the caller's layout; the mean field's, whose quantities are in ``found``, are made
    later. The arrays of ``on_disk`` go to a file; ``budget`` counts the others. ``passed_energies``
    are those of orbitals by base space, in Hartree, if the caller passes them or a Fock matrix.
    With a ``grading`` by the ``labels`` of orbitals, the job computes with blocks.
    """

    system: System
    spaces: OrbitalSpaces
    reference: Reference
    equations: Equations
    found: dict[str, Found]
    blocks: MeanFieldInputs
    extents: dict[str, int]
    earlier: Earlier
    given: dict[str, Array]
    arrays: dict[str, Any]
    on_disk: tuple[str, ...]
    passed_energies: dict[str, Array]
    budget: Budget
    grading: Grading | None = None
    labels: Labels | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Inferred:
    """What equations are before they meet a reference: the roles of their inputs and outputs.

    ``arrays`` are the inputs that the caller passes. Among ``found`` are passed orbital energies
    and Fock matrices. The ``system`` has no outputs without a role, such as updates beside
    residuals.
    """

    system: System
    spaces: OrbitalSpaces
    probe: Probe
    equations: Equations
    found: dict[str, Found]
    arrays: dict[str, Any]
    spin_orbitals: bool

    @property
    def integrals(self) -> dict[str, Found]:
        """The inputs that are made from the reference."""
        made = {tensor.name for tensor in self.system.inputs} - self.arrays.keys()
        return {name: one for name, one in self.found.items() if name in made}


def infer(system: System, options: SolveOptions) -> Inferred:
    """Infer the roles of inputs and outputs from the equations and the options alone."""
    spaces = classify(system)
    roles, arrays = _split_inputs(system, options.inputs or {}, options.dtype)
    declared = {t.name: t.quantity.value for t in system.inputs if t.quantity is not None}
    roles = declared | roles
    found = recognise(system, spaces, roles)
    # Passed energies and Fock matrices show what outputs are; their values are the caller's.
    of_orbitals = (Quantity.ENERGIES, Quantity.FOCK)
    shown = {n: f for n, f in found.items() if n not in arrays or f.quantity in of_orbitals}
    probe = Probe(system, spaces, shown)
    equations = infer_roles(probe, tuple(arrays), found, options.outputs or {})
    tensors = [*system.inputs, *(a.tensor for a in equations.amplitudes)]
    orbitals = options.orbitals
    over_spin = is_over_spin_orbitals(tensors, spaces) if orbitals is None else orbitals == "spin"
    found = with_conventions(probe, equations.amplitudes, roles, spin_orbitals=over_spin)
    system = _without_others(system, equations)
    return Inferred(system, spaces, probe, equations, found, arrays, over_spin)


def set_up(
    system: System, mean_field: Any, options: SolveOptions, *, in_blocks: bool = False
) -> Setup:
    """Infer the roles of inputs and outputs, and choose where arrays are stored.

    Raises:
        OneBlock: ``in_blocks`` is true, and the orbitals have no irreps.
    """
    inferred = infer(system, options)
    spaces, equations, arrays = inferred.spaces, inferred.equations, inferred.arrays
    reference = read_reference(mean_field, options.frozen)
    if reference.cells > 1 and not in_blocks:
        raise ArgumentError(
            f"{reference.origin}: tcgen.chem.solve computes with k-points, and this function does "
            f"not"
        )
    if reference.complex_orbitals and options.dtype != "complex128":
        raise ArgumentError(
            f"the orbitals of {reference.origin} are complex: pass dtype='complex128' "
            f"(--dtype complex128)"
        )
    if options.memory is not None:
        reference = replace(reference, memory=max(0, parse_bytes(options.memory) - BASE))
    if reference.complex_orbitals:
        refuse_real(inferred.probe, inferred.found, equations)
    blocks = MeanFieldInputs(
        system, spaces, reference,
        spin_orbitals=inferred.spin_orbitals, auxbasis=options.auxbasis,
    )  # fmt: skip
    system, found = inferred.system, inferred.integrals
    read = {tensor.name for tensor in system.inputs}
    _warn_of_energies(system, spaces, found, blocks, reference)
    extents = {s.name: s.extent for s in system.spaces if s.extent is not None}
    known = blocks.extents(system.spaces) | passed_extents(system, spaces, arrays)
    _refuse_other_extents(known, options.extents or {})
    extents |= known | dict(options.extents or {})
    grading = labels = None
    if in_blocks:
        graded = [space for space in system.spaces if spaces.kind(space) in ORBITAL]
        frames = {space.name: blocks.frame(space)[1:] for space in graded}
        labels = labels_of(mean_field, reference, [frame for frame, _ in frames.values()])
        system, functions = auxiliary_irreps(system, spaces, labels, blocks, found, reference)
        extents |= {name: len(irreps) for name, irreps in functions.items()}
        labels = labels.conserved(system, [*frames, *functions])
        grading = grading_of(labels, frames, functions)
    if equations.eigenvalue:
        # Over blocks, vectors are multiplied one by one.
        extents = _root_extents(equations, spaces, 1 if in_blocks else options.nroots) | extents
        if in_blocks:
            vectors = {a.tensor.name for a in equations.amplitudes}
            system = with_inputs(system, vectors, lambda t: with_charge(t, spaces))
    earlier = Earlier(
        options.amplitudes, system.name, spaces, extents, equations.given, reference.fingerprint()
    )
    _check_names(system, equations, options.amplitudes)
    check_passed(system, spaces, arrays, extents)
    given = _given(system, spaces, equations, earlier)
    passed = passed_energies([f for n, f in inferred.found.items() if n in arrays], arrays, extents)
    arrays = {name: array for name, array in arrays.items() if name in read}
    for tensor in equations.given:
        array = given[tensor.name]
        blocked = isinstance(array, BlockedArray)
        arrays[tensor.name] = array if blocked else in_layout(tensor, array, options.dtype)
    # With a limit, stored intermediates of these inputs might not fit.
    if options.memory_limit is None and options.memory is None:
        system = with_inputs(system, {*given}, lambda t: replace(t, volatile=False))
    tensors = (f.tensor for f in found.values())
    held_memory = reference.memory if grading is None else inf
    on_disk = inputs_on_disk(tensors, extents, options.dtype, held_memory)
    if on_disk and options.precision is not None:
        raise ArgumentError(
            f"precision='mixed' holds integrals in two types, and {', '.join(on_disk)} do not fit "
            f"into PySCF's memory: raise mf.max_memory, or leave precision out"
        )
    if on_disk:
        # Their tiles are whole, not in triangles.
        system = with_inputs(system, {*on_disk}, unpacked)
        found |= {n: replace(found[n], tensor=unpacked(found[n].tensor)) for n in on_disk}
    held = {
        name: element_bytes(f.tensor, options.dtype) * prod(stored_shape(f.tensor, extents))
        for name, f in found.items()
        if name not in on_disk and f.tensor.role is not Role.GENERATED
    }
    shapes = [dense_shape(a.tensor, extents) for a in equations.amplitudes]
    element = np.dtype("complex128" if options.dtype == "complex128" else "float64").itemsize
    kept = min(MOST_KEPT, reference.memory * OF_FILE)
    # Blocks are cut out of a file where dense arrays would not be in memory.
    reads = on_disk or options.integral_file is not None
    reads = reads or (grading is not None and sum(held.values()) > reference.memory * IN_MEMORY)
    budget = Budget(
        memory=reference.memory if options.memory is None else parse_bytes(options.memory),
        inputs=held | {n: getattr(a, "nbytes", 0) for n, a in arrays.items()},
        making={name: blocks.bytes_apart(found[name]) for name in held},
        amplitudes=element * sum(map(prod, shapes)),
        diis=options.diis,
        reading=kept if reads and reference.cells == 1 else 0.0,
    )
    return Setup(
        system, spaces, reference, equations, found, blocks, extents, earlier, given, arrays,
        on_disk, passed, budget, grading, labels,
    )  # fmt: skip


def _warn_of_energies(
    system: System,
    spaces: OrbitalSpaces,
    found: Mapping[str, Found],
    blocks: MeanFieldInputs,
    reference: Reference,
) -> None:
    """Warn if equations with orbital energies alone leave elements of the Fock matrix out."""
    read = {f.quantity for f in found.values()}
    if (
        Quantity.ENERGIES not in read
        or Quantity.FOCK in read
        or not isinstance(reference, MeanField)
    ):
        return
    frames = [blocks.frame(s)[1] for s in system.spaces if spaces.kind(s) in ORBITAL]
    coupling, rest = map(max, (0.0, 0.0), *(f.off_diagonal() for f in frames))
    if max(coupling, rest) > _LEFT_OUT:
        warnings.warn(
            f"{system.name} reads orbital energies, and leaves out elements of the Fock matrix of "
            f"the {reference.kind} reference: up to {coupling:.1e} Hartree between occupied and "
            f"virtual orbitals, and {rest:.1e} among each: use equations that read its blocks",
            RuntimeWarning,
            stacklevel=5,
        )


def planned_extents(
    system: System, spaces: OrbitalSpaces, extents: Mapping[str, int]
) -> dict[str, int]:
    """Extents near those of the molecule, so that other molecules meet plans in the cache.

    Those of orbitals and auxiliary functions are the nearest power of 2, or 3 times one, in ratio.
    Iterations of CCSD at (5, 53) to (11, 45) take within 3 % of the time of exact extents.
    """
    fixed = {s.name for s in system.spaces if s.extent is not None}
    kinds = (*ORBITAL, Kind.AUXILIARY)
    near = {s.name for s in system.spaces if spaces.kind(s) in kinds} - fixed
    return {
        name: _near(max(1, extent)) if name in near else max(1, extent)
        for name, extent in extents.items()
    }


def _near(extent: int) -> int:
    """The nearest power of 2, or 3 times one, in ratio.

    Example:
        >>> [_near(n) for n in (1, 5, 7, 19, 53, 93, 420)]
        [1, 6, 8, 16, 48, 96, 384]
    """
    power = 1 << (extent.bit_length() - 1)
    return min((power, power * 3 // 2 or 1, 2 * power), key=lambda n: abs(log(n / extent)))


def _refuse_other_extents(known: Mapping[str, int], given: Mapping[str, int]) -> None:
    """Refuse extents of the caller that are not those of the reference and of passed arrays."""
    for name, extent in given.items():
        if known.get(name, extent) != extent:
            raise ExtentError(
                f"extent {name}={extent}: the reference, or arrays in inputs=, have {known[name]}: "
                f"leave it out"
            )


def _split_inputs(
    system: System, inputs: Mapping[str, Any], dtype: str
) -> tuple[dict[str, str], dict[str, Any]]:
    """The roles of inputs that the caller names, and the arrays that the caller passes."""
    names = [tensor.name for tensor in system.inputs]
    unknown = [name for name in inputs if name not in names]
    if unknown:
        raise ArgumentError(
            f"inputs: {system.name} has no input {', '.join(unknown)}; it has {', '.join(names)}"
        )
    roles = {name: value for name, value in inputs.items() if isinstance(value, str)}
    tensors = {tensor.name: tensor for tensor in system.inputs}
    arrays = {
        name: value if callable(value) else _as_array(value, element_type(tensors[name], dtype))
        for name, value in inputs.items()
        if name not in roles
    }
    return roles, arrays


def _as_array(value: Any, element: str) -> Array:
    """An array of its own element type; numbers adapt to that of the program, as in its calls."""
    if isinstance(value, Real) or (isinstance(value, Number) and element == "complex128"):
        # A number that does not fit stays as it is, and the call refuses it.
        with suppress(OverflowError):
            return np.asarray(value, element)
    return np.asarray(value)


def _without_others(system: System, equations: Equations) -> System:
    """The system without outputs that have no role."""
    needed = {*equations.energies, *equations.values}
    needed |= {a.output.name for a in equations.amplitudes}
    if needed >= {tensor.name for tensor in system.outputs}:
        return system
    rest = at_zero(system, set(), needed)
    kept = {*rest.tensors, *equations.given, *(a.tensor for a in equations.amplitudes)}
    tensors = tuple(t for t in system.tensors if t in kept)
    return replace(rest, tensors=tensors)


def with_inputs(system: System, names: set[str], change: Callable[[Tensor], Tensor]) -> System:
    """The system with some of its inputs changed."""
    return with_tensors(system, {t: change(t) for t in system.inputs if t.name in names})


def _root_extents(equations: Equations, spaces: OrbitalSpaces, nroots: int) -> dict[str, int]:
    """Planning extents of the spaces that number vectors."""
    axes = [s for a in equations.amplitudes for s in a.tensor.spaces]
    return {s.name: nroots for s in axes if spaces.kind(s) is Kind.OTHER}


def _check_names(system: System, equations: Equations, amplitudes: object) -> None:
    """Refuse arrays by name if the equations read none of them."""
    read = [t.name for t in (*equations.given, *(a.tensor for a in equations.amplitudes))]
    if isinstance(amplitudes, Mapping) and amplitudes and not amplitudes.keys() & {*read}:
        raise ArgumentError(
            f"amplitudes: {system.name} reads no {' or '.join(amplitudes)}; it reads "
            f"{', '.join(read) or 'none'}"
        )


def _given(
    system: System, spaces: OrbitalSpaces, equations: Equations, earlier: Earlier
) -> dict[str, Array]:
    """Dense arrays of inputs that are neither solved for nor quantities of the mean field."""
    arrays = {}
    missing = []
    for tensor in equations.given:
        array = earlier.get(tensor)
        if array is None:
            missing.append(tensor)
        else:
            arrays[tensor.name] = array
    if missing:
        makers = _determined_by(missing) or _determined_by(equations.given)
        if makers:
            names = ", ".join(t.name for t in missing)
            first = f"{', '.join(makers[:-1])} or {makers[-1]}" if makers[1:] else makers[0]
            raise ArgumentError(
                f"{system.name} reads {names}, which other equations determine: solve {first} "
                f"first, and pass its result as amplitudes= (--amplitudes FILE in both commands)"
            )
        tried = "\n".join(f"    {with_axes(t)}: {rules_for(t, spaces)}" for t in missing)
        first = missing[0].name
        raise ArgumentError(
            f"{system.name}: no rule finds the role of these inputs, and no output is their "
            f"residual or update:\n{tried}\n"
            f"    pass the amplitudes of an earlier solve: amplitudes= (--amplitudes FILE)\n"
            f'    pass other arrays: inputs={{"{first}": array}} (--inputs FILE)\n'
            f"    or declare the quantity of an input in the spec: from fock, from eri(chemist) "
            f"and the like behind its axes\n"
            f'    or name the output that determines it: outputs={{"r": "residual of {first}"}} '
            f'(--role "r=residual of {first}")'
        )
    return arrays


def _determined_by(missing: Sequence[Tensor]) -> list[str]:
    """Shipped specs that solve for these amplitudes, over the same orbitals, and for no others."""

    def described(tensors: Iterable[Tensor]) -> set[tuple[str, bool]]:
        return {(with_axes(t), any(s.sign < 0 for s in t.symmetry)) for t in tensors}

    makers = []
    for name, path in shipped_specs().items():
        system = read_system(path)
        solved = described(t for t in system.inputs if t.volatile)
        outputs = {tuple(s.name for s in t.spaces) for t in system.outputs}
        fit = all(tuple(s.name for s in t.spaces) in outputs for t in missing)
        if fit and solved == described(missing):
            makers.append(name)
    return makers

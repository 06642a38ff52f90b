"""``solve``: from a spec and a converged mean field to energies and amplitudes."""

from __future__ import annotations

import hashlib
import os
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from math import inf, prod
from pathlib import Path
from typing import Any

import numpy as np

from ..blocks.program import BlockedProgram
from ..compiler.api import compiled, formula_sequence, signature_with
from ..compiler.documents import is_artifact, load_artifact, read_artifact_system
from ..compiler.driver import read_system
from ..compiler.progress import Progress, reported
from ..errors import ArgumentError, MemoryLimitError
from ..frontend.spec.reader import read_spec
from ..grading import Grading
from ..ir.layouts import Array, dense_shape
from ..ir.system import System, with_axes, with_tensors
from ..ir.tensor import Role, Tensor, element_bytes
from ..options import Planning, parse_bytes
from ..records.loops import stored_shape
from ..records.quantity import Quantity
from ..resources import shipped_specs
from ..runtime.host_device import release_memory
from ..runtime.program import Program
from .bound_program import Later, bound, outputs_at_zero
from .checkpoint import Checkpoint, job_of
from .complex_orbitals import refuse_real
from .conventions import is_over_spin_orbitals, with_conventions
from .equations import Equations, at_zero, infer_roles
from .hamiltonian import read_reference
from .inputs import (
    IN_MEMORY,
    IntegralFile,
    MeanFieldInputs,
    check_passed,
    in_layout,
    inputs_on_disk,
    passed_energies,
    passed_extents,
    unpacked,
)
from .iterate import Step
from .memory import BASE, Budget
from .options import SolveOptions, solve_options
from .probe import Probe
from .problem import Problem, real_number
from .quantities import Found, recognise, rules_for
from .reference import Reference
from .result import Earlier, Solution
from .spaces import Kind, OrbitalSpaces, classify
from .symmetry import (
    BlockedProblem,
    OneBlock,
    PointGroup,
    blocked_program,
    check_integrals,
    grading_of,
    in_words,
    input_in_blocks,
    point_group,
    summary,
    symmetric,
)
from .table import Show, Table, stage


def solve(
    source: object, mean_field: Any, options: SolveOptions | None = None, **keywords: Any
) -> Solution:
    """Solve the equations of a spec on a PySCF mean field or a Hamiltonian.

    Integrals, Fock blocks and orbital energies are inferred from the spaces, symmetry and name of
    each input. Inputs with a residual or an update among the outputs are amplitudes. They start
    from zero and are iterated with DIIS until the residuals vanish. Equations that are a matrix
    times the amplitudes are diagonalised by PySCF's Davidson method.

    Args:
        source: path or text of a spec, the name of a shipped one, or a System.
        mean_field: a converged RHF, ROHF, UHF or GHF object of PySCF, density-fitted or not, or
            integrals over orbitals: a result of :func:`hamiltonian`, :func:`read_fcidump` or
            :func:`read_trexio`.
        options: a :class:`SolveOptions`.
        keywords: fields of ``options`` or of its ``planning``; they replace those of the record.

    Returns:
        A :class:`Solution`. ``converged`` is False after ``max_cycle`` iterations.

    Raises:
        ArgumentError: the reference does not fit, or the role of an input or output is not known.
        ConvergenceError: the reference is not converged, or the amplitudes diverge.
        UnavailableError: PySCF is not installed.
        TcgenError: the equations cannot be read or compiled.

    Example (with PySCF; docs/solve.md runs more of them):

        water = gto.M(atom="O 0 0 0.1173; H 0 0.7572 -0.4692; H 0 -0.7572 -0.4692")
        energy = tcgen.chem.solve("ccsd_closed_shell", scf.RHF(water).run()).e_tot
    """
    clock = time.perf_counter()
    options = solve_options(options, keywords)
    system = read_equations(source)
    one_block = ""
    if options.symmetry:
        try:
            return _solved(system, mean_field, options, clock)
        except OneBlock as reason:
            one_block = str(reason)
            if reason.warn:
                warnings.warn(f"solve uses one block: {reason}", RuntimeWarning, stacklevel=2)
    return _solved(system, mean_field, options, clock, one_block)


def _solved(
    system: System,
    mean_field: Any,
    options: SolveOptions,
    clock: float,
    one_block: str = "",
) -> Solution:
    """The solution; with the option symmetry over blocks, unless ``one_block`` says why not.

    Raises:
        OneBlock: the reference or the equations have no blocks.
    """
    timings: dict[str, float] = {}
    in_blocks = options.symmetry and not one_block
    setup = _set_up(system, mean_field, options, in_blocks=in_blocks)
    if options.checkpoint is not None and setup.equations.eigenvalue:
        raise ArgumentError(
            "checkpoint= stores iterated amplitudes, and these equations are an eigenvalue "
            "problem: leave it out, and start again from a saved solution (amplitudes=)"
        )
    with _timed(timings, "planning"):
        types = [options.dtype] if options.precision is None else ["float32", options.dtype]
        over, programs = None, []
        if setup.grading is None:
            programs = [_compiled(setup, options, dtype) for dtype in types]
        else:
            over, budget = _over_blocks(setup, options)
            setup = replace(setup, budget=budget)
    target = programs[-1].manifest.target if programs else "cpu"
    with _timed(timings, "compiling"):
        if over:
            over.build()
        elif target == "cpu":
            for one in programs:
                one.build()
    equations, reference = setup.equations, setup.reference
    table = Table(
        _printer(options.show),
        equations.correlation or equations.energies[:1],
        [a.output.name for a in equations.amplitudes],
    )
    table.title(setup.system.name, reference.kind, setup.extents)
    if one_block:
        table.note(f"one block: {one_block}")
    symmetry: dict[str, Any] = {"group": "C1", "note": one_block} if one_block else {}
    with IntegralFile() as file, reported(options.progress, target) as tell:
        with _timed(timings, "integrals"):
            if over:
                problem, symmetry = _problem_in_blocks(setup, over, options, tell)
                table.note(in_words(symmetry))
            else:
                problem = _problem(setup, programs, options, file, tell)
        with _timed(timings, "iterations"):
            if equations.eigenvalue:
                results = _diagonalised(problem, setup.earlier, tell)
            else:
                with _checkpoint(setup, options) as checkpoint, symmetric():
                    results = _iterated(problem, setup, table, tell, checkpoint)
    letters = setup.earlier.letters | {t.name: setup.spaces.letters(t) for t in equations.given}
    letters |= {a.tensor.name: problem.letters(a) for a in equations.amplitudes}
    results["amplitudes"] = setup.earlier.arrays | setup.given | results["amplitudes"]
    solution = Solution(
        name=setup.system.name,
        reference=reference.kind,
        integrals=reference.origin,
        symmetry=symmetry,
        e_hf=reference.e_hf,
        letters=letters,
        fingerprint=reference.fingerprint(),
        solved=[a.tensor.name for a in equations.amplitudes],
        seconds=time.perf_counter() - clock,
        timings=timings,
        **results,
    )
    table.end(solution)
    if not solution.converged:
        worst = max(solution.residual_norms.values())
        warnings.warn(
            f"{solution.name} is not converged: the largest residual norm is {worst:.1e} after "
            f"{solution.iterations} iterations: raise max_cycle, or try damping=0.3",
            RuntimeWarning,
            stacklevel=3,
        )
    return solution


@contextmanager
def _timed(timings: dict[str, float], stage: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    timings[stage] = time.perf_counter() - start


solve.__signature__ = signature_with(solve, SolveOptions, Planning)  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True, eq=False)
class _Setup:
    """Equations on a mean field, before they are compiled.

    The inputs of ``system`` have the storage and phase that this calculation needs. ``extents`` are
    by base space. ``given`` has dense arrays of the inputs in ``equations.given``, ``arrays`` those
    of inputs in the caller's layout; the mean field's, whose quantities are in ``found``, are made
    later. The arrays of ``on_disk`` go to a file; ``budget`` counts the others. ``passed_energies``
    are those of orbitals by base space, in Hartree, if the caller passes them or a Fock matrix.
    With a ``grading`` by the irreps of a ``group``, the job computes with blocks.
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
    group: PointGroup | None = None


def _set_up(
    system: System, mean_field: Any, options: SolveOptions, *, in_blocks: bool = False
) -> _Setup:
    """Infer the roles of inputs and outputs, and choose where arrays are stored.

    Raises:
        OneBlock: ``in_blocks`` is true, and the orbitals have no irreps.
    """
    spaces = classify(system)
    roles, arrays = _split_inputs(system, options.inputs or {})
    reference = read_reference(mean_field, options.frozen)
    if reference.complex_orbitals and options.dtype != "complex128":
        raise ArgumentError(
            f"the orbitals of {reference.origin} are complex: pass dtype='complex128' "
            f"(--dtype complex128)"
        )
    if options.memory is not None:
        reference = replace(reference, memory=max(0, parse_bytes(options.memory) - BASE))
    equations, shown, blocks = _infer(system, spaces, reference, roles, tuple(arrays), options)
    system = _without_others(system, equations)
    read = {tensor.name for tensor in system.inputs}
    found = {n: one for n, one in shown.items() if n in read and n not in arrays}
    extents = {s.name: s.extent for s in system.spaces if s.extent is not None}
    extents |= blocks.extents(system.spaces) | passed_extents(system, spaces, arrays)
    extents |= dict(options.extents or {})
    grading = group = None
    if in_blocks:
        if equations.eigenvalue:
            raise OneBlock("roots have no irreps yet", warn=True)
        group = point_group(mean_field, reference)
        grading = grading_of(group, system, spaces, blocks.orbitals)
    if equations.eigenvalue:
        extents = _root_extents(equations, spaces, options.nroots) | extents
    earlier = Earlier(
        options.amplitudes, system.name, spaces, extents, equations.given, reference.fingerprint()
    )
    _check_names(system, equations, options.amplitudes)
    check_passed(system, spaces, arrays, extents)
    given = _given(system, spaces, equations, earlier)
    passed = passed_energies([f for n, f in shown.items() if n in arrays], arrays, extents)
    arrays = {name: array for name, array in arrays.items() if name in read}
    arrays |= {t.name: in_layout(t, given[t.name], options.dtype) for t in equations.given}
    # With a limit, stored intermediates of these inputs might not fit.
    if options.memory_limit is None and options.memory is None:
        system = _with_inputs(system, {*given}, lambda t: replace(t, volatile=False))
    tensors = (f.tensor for f in found.values())
    held_memory = reference.memory if grading is None else inf
    on_disk = inputs_on_disk(tensors, extents, options.dtype, held_memory)
    if on_disk and options.precision is not None:
        raise ArgumentError(
            f"precision='mixed' holds integrals in two types, and {', '.join(on_disk)} do not fit "
            f"into PySCF's memory: raise mf.max_memory, or leave precision out"
        )
    if on_disk:
        # They are written in whole slices, not in triangles.
        system = _with_inputs(system, {*on_disk}, unpacked)
        found |= {n: replace(found[n], tensor=unpacked(found[n].tensor)) for n in on_disk}
    held = {
        name: element_bytes(f.tensor, options.dtype) * prod(stored_shape(f.tensor, extents))
        for name, f in found.items()
        if name not in on_disk and f.tensor.role is not Role.GENERATED
    }
    shapes = [dense_shape(a.tensor, extents) for a in equations.amplitudes]
    element = np.dtype("complex128" if options.dtype == "complex128" else "float64").itemsize
    budget = Budget(
        memory=reference.memory + BASE,
        inputs=held | {n: getattr(a, "nbytes", 0) for n, a in arrays.items()},
        making={name: blocks.bytes_apart(found[name]) for name in held},
        amplitudes=element * sum(map(prod, shapes)),
        diis=options.diis,
    )
    return _Setup(
        system, spaces, reference, equations, found, blocks, extents, earlier, given, arrays,
        on_disk, passed, budget, grading, group,
    )  # fmt: skip


def _over_blocks(setup: _Setup, options: SolveOptions) -> tuple[BlockedProgram, Budget]:
    """The program over blocks, and the memory of a job with it.

    Raises:
        OneBlock: the equations cannot run over blocks, or integrals do not fit into memory.
        MemoryLimitError: the job takes more than the options allow.
    """
    assert setup.grading is not None
    extents = {name: max(1, extent) for name, extent in setup.extents.items()}
    planning = options.planning or Planning()
    sequence = formula_sequence(setup.system, extents, options.dtype, planning, options.progress)
    program = blocked_program(sequence, setup.spaces, setup.grading, extents, options.dtype)
    budget = replace(
        setup.budget,
        inputs={name: program.empty(name).nbytes for name in setup.budget.inputs},
        amplitudes=sum(program.empty(a.tensor.name).nbytes for a in setup.equations.amplitudes),
    )
    if sum(budget.inputs.values()) > setup.reference.memory * IN_MEMORY:
        raise OneBlock("integrals go to a file, which has no blocks: raise mf.max_memory")
    limits = [] if options.memory_limit is None else [parse_bytes(options.memory_limit)]
    limits += [] if options.memory is None else [budget.for_program()]
    if limits and program.peak_bytes() > min(limits):
        raise MemoryLimitError(
            f"the program over blocks takes {program.peak_bytes():,} bytes, and {min(limits):,} "
            f"remain for it: raise memory or memory_limit, or leave out symmetry"
        )
    return program, budget


def _compiled(setup: _Setup, options: SolveOptions, dtype: str) -> Program:
    """The program, which reads arrays on disk in slices."""
    planning = options.planning or Planning()
    limit = options.memory_limit
    if options.memory is not None:
        rounded = sum(setup.budget.inputs.values()) / 2 if dtype != options.dtype else 0.0
        remaining = setup.budget.for_program() - int(rounded)
        limit = max(1, remaining if limit is None else min(remaining, parse_bytes(limit)))
    try:
        return compiled(
            setup.system,
            {name: max(1, extent) for name, extent in setup.extents.items()},
            options.target,
            dtype,
            limit,
            constant=(),
            volatile=(),
            plan=replace(planning, sliced=(*planning.sliced, *setup.on_disk)),
            progress=options.progress,
            fallback=False,
            documents=False,
        )
    except MemoryLimitError as error:
        if options.memory is None:
            raise
        raise MemoryLimitError(
            f"memory={options.memory}: integrals, amplitudes and vectors of DIIS take "
            f"{setup.budget.beside:,.0f} bytes beside the program. {error}"
        ) from error


def _problem(
    setup: _Setup,
    programs: Sequence[Program],
    options: SolveOptions,
    file: IntegralFile,
    tell: Progress,
) -> Problem:
    """Make the arrays and bind them, in mixed precision to both programs."""
    system, equations, blocks, arrays = setup.system, setup.equations, setup.blocks, setup.arrays
    dtype = options.dtype
    tell("making integrals")
    # What earlier programs of this process released would count beside the transform.
    release_memory()
    blocks.transform_for(setup.found.values(), sum(setup.budget.inputs.values()))
    for name, found in setup.found.items():
        on_disk = name in setup.on_disk
        make = partial(blocks.dataset, file=file) if on_disk else blocks.array
        arrays[name] = make(found, dtype)
    energies = blocks.energies(system) | setup.passed_energies
    contained = equations.with_reference or any(a.with_reference for a in equations.amplitudes)
    of_reference = blocks.occupied_energy() if contained else 0.0
    blocks.forget()
    *others, program = programs
    at_zero = outputs_at_zero(
        system,
        equations,
        setup.extents,
        arrays,
        setup.on_disk,
        dtype,
        program.peak_bytes(setup.extents),
    )
    single = []
    for other in others:
        rounded = {n: a if callable(a) else a.astype(np.float32) for n, a in arrays.items()}
        single.append(bound(other, system, rounded, equations))
        rounded.clear()
    run = Later(program, system, arrays, equations)
    if not single:
        run.bind()
    return Problem(
        system, setup.spaces, equations, setup.extents, energies, dtype, run, at_zero, options,
        single, of_reference,
    )  # fmt: skip


def _problem_in_blocks(
    setup: _Setup, program: BlockedProgram, options: SolveOptions, tell: Progress
) -> tuple[Problem, dict[str, Any]]:
    """Make the blocks of the arrays and bind them; the second result describes these.

    Raises:
        OneBlock: integrals, or arrays of the caller, are not symmetric.
    """
    system, equations, blocks, arrays = setup.system, setup.equations, setup.blocks, setup.arrays
    tell("making integrals")
    blocks.transform_for(setup.found.values(), sum(setup.budget.inputs.values()))
    assert setup.group is not None
    check_integrals(blocks, setup.group, program.grading)
    with symmetric():
        for name in arrays:
            arrays[name] = program.blocked(name, arrays[name])
        for name, found in setup.found.items():
            arrays[name] = input_in_blocks(program, blocks, found, options.dtype)
    energies = blocks.energies(system) | setup.passed_energies
    contained = equations.with_reference or any(a.with_reference for a in equations.amplitudes)
    of_reference = blocks.occupied_energy() if contained else 0.0
    blocks.forget()
    described = summary(program, arrays, [a.tensor.name for a in equations.amplitudes])
    at_zero = outputs_at_zero(
        system, equations, setup.extents, arrays, (), options.dtype, program.peak_bytes()
    )
    run = Later(program, system, arrays, equations)
    run.bind()
    problem = BlockedProblem(
        system, setup.spaces, equations, setup.extents, energies, options.dtype, run, at_zero,
        options, [], of_reference, program,
    )  # fmt: skip
    return problem, described


def read_equations(source: object) -> System:
    """The System of a path, a text, or the name of a shipped spec; a System itself.

    The path may be that of a compiled folder, whose equations are compiled for the molecule.
    """
    if isinstance(source, System):
        return source
    text = os.fspath(source) if isinstance(source, str | os.PathLike) else None
    if not isinstance(text, str):
        raise ArgumentError(
            f"equations must be a path, the text of a spec, the name of a shipped spec or a "
            f"System, not {type(source).__name__}"
        )
    if "\n" in text:
        return read_spec(text)
    if is_artifact(Path(text)):
        return read_artifact_system(load_artifact(Path(text)))
    return read_system(Path(text))


def _infer(
    system: System,
    spaces: OrbitalSpaces,
    reference: Reference,
    roles: Mapping[str, str],
    passed: Sequence[str],
    options: SolveOptions,
) -> tuple[Equations, dict[str, Found], MeanFieldInputs]:
    """Infer the roles of outputs and inputs, and the orbitals of the reference that inputs need.

    Passed orbital energies and Fock matrices are among the inputs that are found.
    """
    declared = {t.name: t.quantity.value for t in system.inputs if t.quantity is not None}
    roles = declared | dict(roles)
    found = recognise(system, spaces, roles)
    # Passed energies and Fock matrices show what outputs are; their values are the caller's.
    of_orbitals = (Quantity.ENERGIES, Quantity.FOCK)
    shown = {n: f for n, f in found.items() if n not in passed or f.quantity in of_orbitals}
    probe = Probe(system, spaces, shown)
    equations = infer_roles(probe, passed, options.outputs or {})
    tensors = [*system.inputs, *(a.tensor for a in equations.amplitudes)]
    orbitals = options.orbitals
    over_spin = is_over_spin_orbitals(tensors, spaces) if orbitals is None else orbitals == "spin"
    found = with_conventions(probe, equations.amplitudes, roles, spin_orbitals=over_spin)
    if reference.complex_orbitals:
        if equations.eigenvalue:
            raise ArgumentError(
                f"{system.name} is an eigenvalue problem, and its matrix over complex orbitals is "
                f"complex: pass a reference with real orbitals"
            )
        refuse_real(probe, found, equations)
    blocks = MeanFieldInputs(
        system, spaces, reference, spin_orbitals=over_spin, auxbasis=options.auxbasis
    )
    return equations, found, blocks


def _split_inputs(
    system: System, inputs: Mapping[str, Any]
) -> tuple[dict[str, str], dict[str, Any]]:
    """The roles of inputs that the caller names, and the arrays that the caller passes."""
    names = [tensor.name for tensor in system.inputs]
    unknown = [name for name in inputs if name not in names]
    if unknown:
        raise ArgumentError(
            f"inputs: {system.name} has no input {', '.join(unknown)}; it has {', '.join(names)}"
        )
    roles = {name: value for name, value in inputs.items() if isinstance(value, str)}
    arrays = {n: v if callable(v) else np.asarray(v) for n, v in inputs.items() if n not in roles}
    return roles, arrays


def _without_others(system: System, equations: Equations) -> System:
    """The system without outputs that have no role, such as updates beside residuals."""
    needed = {*equations.energies, *equations.values}
    needed |= {a.output.name for a in equations.amplitudes}
    if needed >= {tensor.name for tensor in system.outputs}:
        return system
    rest = at_zero(system, set(), needed)
    kept = {*rest.tensors, *equations.given, *(a.tensor for a in equations.amplitudes)}
    tensors = tuple(t for t in system.tensors if t in kept)
    return replace(rest, tensors=tensors)


def _with_inputs(system: System, names: set[str], change: Callable[[Tensor], Tensor]) -> System:
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


def _printer(show: Show | bool) -> Show | None:
    if callable(show):
        return show
    return (lambda line: print(line, flush=True)) if show else None  # noqa: T201


def _checkpoint(setup: _Setup, options: SolveOptions) -> AbstractContextManager[Checkpoint | None]:
    """The checkpoint of equations whose amplitudes are iterated, if there is to be one."""
    if options.checkpoint is None or not setup.equations.amplitudes:
        return nullcontext()
    grading = "" if setup.grading is None else f"{setup.grading!r} "
    text = f"{options.dtype} {grading}{setup.system.pretty()}"
    equations = hashlib.sha256(text.encode()).hexdigest()
    job = job_of(equations, setup.extents, setup.reference.fingerprint())
    return Checkpoint(Path(options.checkpoint), options.checkpoint_every, job)


def _iterated(
    problem: Problem,
    setup: _Setup,
    table: Table,
    tell: Progress,
    checkpoint: Checkpoint | None,
) -> dict[str, Any]:
    """Fields of the solution of equations for amplitudes, or of energies without any."""
    equations = problem.equations
    if equations.amplitudes:
        table.header()
    first = 0.0

    def show(number: int, step: Step) -> None:
        nonlocal first
        table.row(number, step)
        worst = max(step.norms.values())
        first = first or worst
        tell(stage(number, worst, first, problem.options.tolerance))

    on_disk = setup.budget.diis_on_disk
    found = problem.iterate(setup.earlier, show, diis_on_disk=on_disk, checkpoint=checkpoint)
    outputs = found.last.outputs
    tolerance = problem.options.tolerance
    energies = {n: real_number(n, outputs[n], tolerance) for n in equations.energies}
    correlation = None
    if equations.correlation:
        correlation = sum(energies[name] for name in equations.correlation)
        if equations.with_reference:
            correlation -= problem.energy_of_reference()
    return {
        "converged": found.converged,
        "e_corr": correlation,
        "energies": energies,
        "amplitudes": found.amplitudes,
        "values": {name: np.asarray(outputs[name]) for name in equations.values},
        "iterations": found.iterations,
        "residual_norms": found.last.norms,
    }


def _diagonalised(problem: Problem, earlier: Earlier, tell: Progress) -> dict[str, Any]:
    """Fields of the solution of an eigenvalue problem."""
    found = problem.roots(earlier, lambda count: tell(f"diagonalising, {count} products"))
    return {
        "converged": max(found.norms) <= problem.options.tolerance,
        "e_corr": None,
        "energies": {},
        "roots": found.values,
        "amplitudes": found.amplitudes,
        "iterations": found.products,
        "residual_norms": {f"root {n}": norm for n, norm in enumerate(found.norms, 1)},
    }

"""``solve``: from a spec and a converged mean field to energies and amplitudes."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..blocks.arrays import BlockedArray
from ..blocks.program import BlockedProgram
from ..compiler.api import compiled, equations_of, formula_sequence, signature_with
from ..compiler.progress import Progress, reported
from ..errors import ArgumentError, MemoryLimitError
from ..ir.layouts import Array
from ..ir.system import System
from ..options import Planning, parse_bytes
from ..runtime.host_device import release_memory
from ..runtime.program import Program
from .bound_program import Later, bound, outputs_at_zero
from .checkpoint import Checkpoint, job_of
from .crystal import Crystal, has_kpoints
from .eigen import Roots
from .equations import Equations
from .inputs import IN_MEMORY, MeanFieldInputs
from .integral_file import IntegralFile, NamedFile
from .integrals import TransformOptions
from .iterate import Step
from .mean_field import MeanField
from .memory import Budget
from .options import SolveOptions, options_of_crystal, refuse_idle, solve_options
from .planner import Planner
from .probe import Probe
from .problem import Problem, real_number, without_axis
from .quantities import Found
from .reference import Reference
from .result import Solution
from .root_vectors import Vectors
from .sectors import symmetric_roots, targets
from .setup import Setup, planned_extents, set_up, with_inputs
from .spaces import ORBITAL
from .states import State, States
from .symmetry import (
    BlockedProblem,
    OneBlock,
    blocked_program,
    check_integrals,
    in_words,
    input_in_blocks,
    summary,
    symmetric,
)
from .table import Show, Table, stage
from .vector_spins import multiplicity_of


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
    system = equations_of(source)
    crystal = has_kpoints(mean_field)
    if crystal:
        options = options_of_crystal(options)
    if options.irrep is not None and not options.symmetry:
        raise ArgumentError(f"irrep={options.irrep!r} needs symmetry=True (--symmetry)")
    one_block = ""
    if options.symmetry:
        try:
            return _solved(system, mean_field, options, clock)
        except OneBlock as reason:
            if crystal:
                why = f"{system.name} has no blocks of k-points: {reason}"
                raise ArgumentError(why) from reason
            one_block = str(reason)
            if options.irrep is not None:
                raise ArgumentError(f"irrep={options.irrep!r} needs blocks: {reason}") from reason
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
    timings = dict.fromkeys(("planning", "integrals", "compiling", "iterations"), 0.0)
    in_blocks = options.symmetry and not one_block
    setup = set_up(system, mean_field, options, in_blocks=in_blocks)
    refuse_idle(options, [(system.name, setup.equations, setup.found)])
    checkpoint, named = _checkpoint(system, setup, options), _named_file(setup, options)
    over: _OverBlocks | None = None
    planner = Planner(partial(_programs, setup, options))
    # What a large job takes is counted before the transform begins.
    large = options.memory is not None or 2 * setup.budget.beside > setup.budget.memory
    with _timed(timings, "planning"):
        if setup.grading is not None:
            over = _over_blocks(setup, options)
            setup = replace(setup, budget=_budget(setup, over.first, options))
        elif large:
            planner.programs()
    equations, reference = setup.equations, setup.reference
    table = Table(
        _printer(options.show),
        equations.correlation or equations.energies[:1],
        [a.output.name for a in equations.amplitudes],
    )
    table.title(setup.system.name, reference.kind, setup.extents)
    if over is None and large:
        _note_excess(setup, planner.programs(), options, table)
    if one_block:
        table.note(f"one block: {one_block}")
    symmetry: dict[str, Any] = {"group": "C1", "note": one_block} if one_block else {}
    with (
        reported(options.progress, options.target or "cpu") as tell,
        IntegralFile(tell, setup.budget.reading, named) as file,
    ):
        if over:
            problem, symmetry = _problem_in_blocks(setup, over.first, options, file, tell, timings)
            table.note(in_words(symmetry))
        else:
            problem = _problem(setup, planner, options, file, tell, timings)
            if not large:
                _note_excess(setup, planner.programs(), options, table)
        with _timed(timings, "iterations"):
            if equations.eigenvalue and over:
                results = _roots_in_blocks(problem, setup, over, tell)
            elif equations.eigenvalue:
                found = problem.roots(
                    setup.earlier, lambda count: tell(f"diagonalising, {count} products")
                )
                results = _states(problem, setup, found)
            else:
                with checkpoint or nullcontext(), symmetric():
                    results = _iterated(problem, setup, table, tell, checkpoint, file)
    programs = () if over else planner.programs()
    allocated = over.first.peak_bytes() if over else programs[-1].peak_bytes(setup.extents)
    held = sum(setup.budget.inputs.values())
    work = {
        "planning": {"calls": len(programs) or len(over.elements if over else ())},
        "integrals": {"calls": len(setup.found), "bytes": int(held)},
        "iterations": {"calls": results["iterations"] or 1, "bytes": int(allocated)},
    }
    disk = {}
    if file.bytes_written or file.reads:
        work["disk"] = {"calls": file.reads, "bytes": file.bytes_read}
        timings["disk"] = file.seconds
        disk = {"written": file.bytes_written, "read": file.bytes_read, "reads": file.reads}
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
        molecule=reference.molecule(),
        solved=[a.tensor.name for a in equations.amplitudes],
        seconds=time.perf_counter() - clock,
        timings=timings,
        work=work,
        disk=disk,
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
def opened(
    system: System, mean_field: Any, options: SolveOptions, *, free: Iterable[str] = ()
) -> Iterator[Problem]:
    """Equations with all their data, to be evaluated at arrays of the caller's choice.

    These are amplitudes, and those of ``options.amplitudes`` that are named ``free``.
    """
    setup = set_up(system, mean_field, options)
    named = _named_file(setup, options)
    changing = with_inputs(setup.system, {*free}, lambda t: replace(t, volatile=True))
    setup = replace(setup, system=changing)
    program = _compiled(setup, options, options.dtype)
    target = program.manifest.target
    with (
        reported(options.progress, target) as tell,
        IntegralFile(tell, setup.budget.reading, named) as file,
    ):
        yield _problem(setup, Planner(lambda: [program]), options, file, tell, {})


def inferred(
    source: object, mean_field: Any, options: SolveOptions
) -> tuple[System, Equations, dict[str, Found], MeanFieldInputs, Reference]:
    """What equations are on a reference: roles, inputs that are its quantities, and its blocks."""
    setup = set_up(equations_of(source), mean_field, options)
    return setup.system, setup.equations, setup.found, setup.blocks, setup.reference


@contextmanager
def _timed(timings: dict[str, float], stage: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    timings[stage] = timings.get(stage, 0.0) + time.perf_counter() - start


solve.__signature__ = signature_with(solve, SolveOptions, Planning)  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class _OverBlocks:
    """The programs over blocks by the element of the group that vectors have, and these elements.

    Equations that are not an eigenvalue problem have one, the neutral element.
    """

    program_of: Callable[[int], BlockedProgram]
    elements: list[int]
    first: BlockedProgram


def _over_blocks(setup: Setup, options: SolveOptions) -> _OverBlocks:
    """The programs over blocks.

    Raises:
        OneBlock: the equations cannot run over blocks.
        ArgumentError: the group does not have the irrep of the options.
    """
    grading = setup.grading
    assert grading is not None
    extents = {name: max(1, extent) for name, extent in setup.extents.items()}
    planning = options.planning or Planning()
    planned = planned_extents(setup.system, setup.spaces, setup.extents)
    eigenvalue = setup.equations.eigenvalue
    elements = targets(grading, options.irrep) if eigenvalue else [0]
    sequence = formula_sequence(setup.system, planned, options.dtype, planning, options.progress)

    def program_of(element: int) -> BlockedProgram:
        return blocked_program(sequence, grading, extents, options.dtype, element)

    return _OverBlocks(program_of, elements, program_of(elements[0]))


def _budget(setup: Setup, program: BlockedProgram, options: SolveOptions) -> Budget:
    """The memory of a job over blocks.

    Raises:
        OneBlock: integrals do not fit into memory.
        MemoryLimitError: the job takes more than the options allow.
    """
    inputs = {name: float(program.empty(name).nbytes) for name in setup.budget.inputs}
    budget = replace(
        setup.budget,
        inputs=inputs,
        # Blocks are cut out of a file one by one.
        making=inputs if setup.budget.reading else setup.budget.making,
        amplitudes=sum(program.empty(a.tensor.name).nbytes for a in setup.equations.amplitudes),
    )
    if sum(inputs.values()) > setup.reference.memory * IN_MEMORY:
        raise OneBlock(
            f"blocks of integrals are in memory, and take {sum(inputs.values()):,.0f} bytes, more "
            f"than half of it: raise {'mf.max_memory' if options.memory is None else 'memory'}"
        )
    limits = [] if options.memory_limit is None else [parse_bytes(options.memory_limit)]
    limits += [] if options.memory is None else [budget.for_program()]
    if limits and program.peak_bytes() > min(limits):
        raise MemoryLimitError(
            f"the program over blocks takes {program.peak_bytes():,} bytes, and {min(limits):,} "
            f"remain for it: raise memory or memory_limit, or leave out symmetry"
        )
    return budget


def _programs(setup: Setup, options: SolveOptions) -> list[Program]:
    """The program, in mixed precision after that in single precision."""
    types = [options.dtype] if options.precision is None else ["float32", options.dtype]
    return [_fitting(setup, options, dtype) for dtype in types]


def _note_excess(
    setup: Setup, programs: Sequence[Program], options: SolveOptions, table: Table
) -> None:
    """A line of the table if a job takes more than the memory of its mean field."""
    needed = setup.budget.peak(max(p.peak_bytes(setup.extents) for p in programs))
    if options.memory is None and needed > setup.budget.memory:
        table.note(
            f"the job takes up to {needed:,.0f} bytes, more than mf.max_memory allows: raise that, "
            f"or give memory="
        )


def _fitting(setup: Setup, options: SolveOptions, dtype: str) -> Program:
    """The program, planned within mf.max_memory if it takes more and no memory was given."""
    program = _compiled(setup, options, dtype)
    budget = setup.budget
    remaining = int(budget.memory - budget.beside)
    if options.memory is not None or not 0 < remaining < program.peak_bytes(setup.extents):
        return program
    given = options.memory_limit
    least = remaining if given is None else min(remaining, parse_bytes(given))
    try:
        return _compiled(setup, replace(options, memory_limit=least), dtype)
    except MemoryLimitError:
        return program  # the table says so


def _compiled(setup: Setup, options: SolveOptions, dtype: str) -> Program:
    """The program, which reads arrays on disk in slices."""
    planning = options.planning or Planning()
    limit = options.memory_limit
    if options.memory is not None:
        rounded = sum(setup.budget.inputs.values()) / 2 if dtype != options.dtype else 0.0
        remaining = setup.budget.for_program() - int(rounded)
        limit = max(1, remaining if limit is None else min(remaining, parse_bytes(limit)))
    extents = {name: max(1, extent) for name, extent in setup.extents.items()}
    # Bytes within a limit, tiles on a disk, and kernels of a GPU depend on the extents.
    if limit is None and not setup.on_disk and options.target in (None, "cpu", "numpy"):
        extents = planned_extents(setup.system, setup.spaces, setup.extents)
    try:
        return compiled(
            setup.system,
            extents,
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


def _make_arrays(
    setup: Setup, options: SolveOptions, file: IntegralFile, tell: Progress
) -> tuple[dict[str, Array], float]:
    """Add the mean field's to the arrays; orbital energies, and that of occupied orbitals."""
    equations, blocks, arrays = setup.equations, setup.blocks, setup.arrays
    tell("making integrals")
    # What earlier programs of this process released would count beside the transform.
    release_memory()
    beside = sum(setup.budget.inputs.values())
    # What tiles are cut from stays: in memory it would count beside the program.
    where = TransformOptions(beside, file, on_disk=bool(setup.on_disk))
    blocks.transform_for(setup.found.values(), where)
    for name, found in setup.found.items():
        on_disk = name in setup.on_disk
        make = partial(blocks.dataset, file=file) if on_disk else blocks.array
        arrays[name] = make(found, options.dtype)
    energies = blocks.energies(setup.system) | setup.passed_energies
    contained = equations.with_reference or any(a.with_reference for a in equations.amplitudes)
    of_reference = blocks.occupied_energy() if contained else 0.0
    blocks.forget(pairs=not setup.on_disk, release=options.release_integrals)
    return energies, of_reference


def _problem(
    setup: Setup,
    planner: Planner,
    options: SolveOptions,
    file: IntegralFile,
    tell: Progress,
    timings: dict[str, float],
) -> Problem:
    """Make the arrays while programs are planned and compiled, and bind them to each program."""
    system, equations, arrays, dtype = setup.system, setup.equations, setup.arrays, options.dtype
    with planner.beside():
        with _timed(timings, "integrals"):
            energies, of_reference = _make_arrays(setup, options, file, tell)
        with _timed(timings, "planning"):
            *others, program = planner.programs()
    with _timed(timings, "compiling"):
        for one in (*others, program):
            if one.manifest.target == "cpu":
                one.build()
    with _timed(timings, "iterations"):
        at_zero = outputs_at_zero(
            system, equations, setup.extents, arrays, setup.on_disk, dtype,
            program.peak_bytes(setup.extents),
        )  # fmt: skip
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
    setup: Setup,
    program: BlockedProgram,
    options: SolveOptions,
    file: IntegralFile,
    tell: Progress,
    timings: dict[str, float],
) -> tuple[Problem, dict[str, Any]]:
    """Make the blocks of the arrays and bind them; the second result describes these.

    Raises:
        OneBlock: integrals, or arrays of the caller, are not symmetric.
    """
    system, equations, blocks, arrays = setup.system, setup.equations, setup.blocks, setup.arrays
    with _timed(timings, "compiling"):
        program.build()
    with _timed(timings, "integrals"):
        tell("making integrals")
        beside, always = sum(setup.budget.inputs.values()), setup.budget.reading > 0
        on_disk = always and file.named is None
        assert setup.labels is not None
        irreps = setup.labels.irreps
        where = TransformOptions(beside, file, on_disk=on_disk, always=always, irreps=irreps)
        blocks.transform_for(setup.found.values(), where)
        check_integrals(blocks, setup.labels.group, irreps)
        with symmetric():
            for name in arrays:
                arrays[name] = program.blocked(name, arrays[name])
            for name, found in setup.found.items():
                arrays[name] = input_in_blocks(program, blocks, found, options.dtype)
        energies = blocks.energies(system) | setup.passed_energies
        contained = equations.with_reference or any(a.with_reference for a in equations.amplitudes)
        of_reference = blocks.occupied_energy() if contained else 0.0
        blocks.forget(release=options.release_integrals)
    described = summary(program, arrays, [a.tensor.name for a in equations.amplitudes])
    with _timed(timings, "iterations"):
        cells = setup.reference.cells
        crystal = isinstance(setup.reference, Crystal)
        at_zero = {}
        if not crystal:
            at_zero = outputs_at_zero(
                system, equations, setup.extents, arrays, (), options.dtype, program.peak_bytes()
            )
        # Programs for vectors of other irreps take the same arrays.
        kept = dict(arrays) if equations.eigenvalue else arrays
        run = Later(program, system, kept, equations, cells)
        run.bind()
        # Dense arrays over all k-points are larger than blocks by their number.
        if crystal and not equations.eigenvalue:
            zero: dict[str, Any] = {
                a.tensor.name: program.empty(a.tensor.name) for a in equations.amplitudes
            }
            for array in zero.values():
                array.data[...] = 0
            at_zero = dict(run(**zero)) if zero else {}
    problem = BlockedProblem(
        system, setup.spaces, equations, setup.extents, energies, options.dtype, run, at_zero,
        options, [], of_reference, program, dense_results=not crystal,
    )  # fmt: skip
    return problem, described


def _printer(show: Show | bool) -> Show | None:
    if callable(show):
        return show
    return (lambda line: print(line, flush=True)) if show else None  # noqa: T201


def _checkpoint(system: System, setup: Setup, options: SolveOptions) -> Checkpoint | None:
    """The checkpoint of equations whose amplitudes are iterated, if there is to be one.

    The job is that of ``system``, the equations as they are passed: those of the setup depend on
    the memory that is free.

    Raises:
        ArgumentError: the file is that of another job.
    """
    if options.checkpoint is None:
        return None
    inputs = options.inputs or {}
    roles = {name: role for name, role in inputs.items() if isinstance(role, str)}
    job = job_of(
        setup.reference.fingerprint(),
        texts={
            "equations": system.pretty(),
            "roles": repr(sorted({**roles, **(options.outputs or {})}.items())),
            "blocks of irreps": "" if setup.grading is None else repr(setup.grading),
        },
        arrays={n: a for n, a in inputs.items() if n not in roles} | setup.given,
        dtype=options.dtype,
        extents=setup.extents,
    )
    checkpoint = Checkpoint(Path(options.checkpoint), options.checkpoint_every, job)
    checkpoint.check()
    return checkpoint


def _named_file(setup: Setup, options: SolveOptions) -> NamedFile | None:
    """The file of integrals of the options.

    Raises:
        ArgumentError: the reference has no integrals over atomic orbitals, or the file is that of
            another job.
    """
    if options.integral_file is None:
        return None
    reference = setup.reference
    if not isinstance(reference, MeanField):
        raise ArgumentError(
            f"integral_file= is for integrals that are transformed from those over atomic orbitals "
            f"of a molecule, and here they are of {reference.origin}: leave it out"
        )
    job = {**reference.fingerprint(), "reference": reference.kind, "integrals": reference.origin}
    file = NamedFile(Path(options.integral_file), job)
    file.check()
    return file


def _iterated(
    problem: Problem,
    setup: Setup,
    table: Table,
    tell: Progress,
    checkpoint: Checkpoint | None,
    file: IntegralFile,
) -> dict[str, Any]:
    """Fields of the solution of equations for amplitudes, or of energies without any."""
    equations = problem.equations
    if equations.amplitudes:
        table.header()
    first, clock = 0.0, time.perf_counter()
    before = file.bytes_read, file.seconds

    def show(number: int, step: Step) -> None:
        nonlocal first, before
        now = file.bytes_read, file.seconds
        table.row(number, step, *(b - a for a, b in zip(before, now, strict=True)))
        before = now
        worst = max(step.norms.values())
        first = first or worst
        seconds = (time.perf_counter() - clock) / number
        tell(stage(number, worst, first, problem.options.tolerance, seconds))

    on_disk = setup.budget.diis_on_disk
    found = problem.iterate(setup.earlier, show, diis_on_disk=on_disk, checkpoint=checkpoint)
    outputs: Mapping[str, Any] = found.last.outputs
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
        "values": {
            name: x if isinstance(x := outputs[name], BlockedArray) else np.asarray(x)
            for name in equations.values
        },
        "iterations": found.iterations,
        "residual_norms": found.last.norms,
    }


def _states(problem: Problem, setup: Setup, found: Roots) -> dict[str, Any]:
    """Fields of the solution of an eigenvalue problem."""
    axes = problem.root_axes()
    tensors = tuple(
        without_axis(a.tensor, axes[a.tensor.name]) for a in problem.equations.amplitudes
    )
    multiplicity = None
    if setup.blocks.orbitals == "spatial":
        probe = Probe(setup.system, setup.spaces, setup.found)
        multiplicity = multiplicity_of(probe, setup.equations, setup.found)
    bases = tuple(s for s in setup.system.spaces if setup.spaces.kind(s) in ORBITAL)
    vectors = Vectors(tensors, bases, setup.spaces, setup.blocks, setup.reference, multiplicity)
    first = {n: np.moveaxis(a, axes[n] or 0, 0) for n, a in found.amplitudes.items()}
    first = vectors.pure(found.values, first)
    return {
        "converged": max(found.norms) <= problem.options.tolerance,
        "e_corr": None,
        "energies": {},
        "roots": found.values,
        "states": vectors.states(found.values, first),
        "amplitudes": {n: np.moveaxis(a, 0, axes[n] or 0) for n, a in first.items()},
        "iterations": found.products,
        "residual_norms": {f"root {n}": norm for n, norm in enumerate(found.norms, 1)},
    }


def _roots_in_blocks(
    problem: Problem,
    setup: Setup,
    over: _OverBlocks,
    tell: Progress,
) -> dict[str, Any]:
    """Fields of the solution of an eigenvalue problem over blocks."""
    assert isinstance(problem, BlockedProblem)
    roots, products = symmetric_roots(
        problem,
        over.program_of,
        setup.arrays,
        over.elements,
        lambda count: tell(f"diagonalising, {count} products"),
    )
    values, norms = tuple(r.value for r in roots), tuple(r.norm for r in roots)
    names = [a.tensor.name for a in problem.equations.amplitudes]
    if problem.dense_results:
        axes = Problem.root_axes(problem)
        amplitudes = {}
        for name in names:
            arrays, axis = [root.amplitudes[name].dense() for root in roots], axes[name]
            joined = np.stack(arrays) if axis is None else np.concatenate(arrays, axis=axis)
            amplitudes[name] = joined
        return _states(problem, setup, Roots(values, amplitudes, norms, products))
    assert setup.grading is not None
    # The momentum; spins are counted modulo 3/2, and do not name states.
    irreps = [setup.grading.names[root.element].partition("|")[0] for root in roots]
    states = [State(v, (k,), irrep=x) for k, (v, x) in enumerate(zip(values, irreps, strict=True))]
    return {
        "converged": max(norms) <= problem.options.tolerance,
        "e_corr": None,
        "energies": {},
        "roots": values,
        "states": States(states),
        "amplitudes": {name: [root.amplitudes[name] for root in roots] for name in names},
        "iterations": products,
        "residual_norms": {f"root {n}": norm for n, norm in enumerate(norms, 1)},
    }

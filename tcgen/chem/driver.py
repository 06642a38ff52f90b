"""``solve``: from a spec and a converged mean field to energies and amplitudes."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..compiler.api import compile
from ..compiler.driver import read_system
from ..compiler.progress import Progress, reported
from ..errors import ArgumentError
from ..frontend.spec.reader import read_spec
from ..ir.system import System
from ..ir.tensor import Tensor
from ..ir.term_rewriting import replace_refs
from ..options import Planning
from ..resources import spec_path
from ..runtime.program import Program
from .conventions import is_over_spin_orbitals, with_conventions
from .disk import IntegralFile, kept_on_disk, unpacked
from .equations import Equations, understand
from .inputs import MeanFieldInputs, described, passed_extents
from .problem import Iteration, Problem, in_layout
from .quantities import Found, recognise, rules_for
from .reference import Frozen, Reference, read_reference
from .restart import Earlier, Source
from .result import Solution
from .spaces import Kind, OrbitalSpaces, classify
from .table import Show, Table
from .trial import Trial

Array = npt.NDArray[Any]


def solve(
    source: object,
    mean_field: Any,
    *,
    frozen: Frozen = 0,
    amplitudes: Source = None,
    inputs: Mapping[str, Any] | None = None,
    outputs: Mapping[str, str] | None = None,
    orbitals: str | None = None,
    auxbasis: str | None = None,
    tolerance: float = 1e-9,
    max_cycle: int = 100,
    diis: int = 8,
    level_shift: float = 0.0,
    damping: float = 0.0,
    nroots: int = 1,
    extents: Mapping[str, int] | None = None,
    target: str | None = None,
    dtype: str = "float64",
    memory_limit: str | int | None = None,
    planning: Planning | None = None,
    show: Show | bool = True,
    progress: Progress | bool = False,
    **shorthand: Any,
) -> Solution:
    """Solve the equations of a spec on a PySCF mean field.

    Integrals, Fock blocks and orbital energies are made for the inputs whose spaces, symmetry and
    name ask for them. Inputs with a residual or an update among the outputs are amplitudes. They
    start from zero and are iterated with DIIS until the residuals vanish. Equations that are a
    matrix times the amplitudes are diagonalised by PySCF's Davidson method.

    Args:
        source: path or text of a spec, the name of a shipped one, or a System.
        mean_field: a converged RHF, ROHF, UHF or GHF object of PySCF, density-fitted or not.
        frozen: number of core orbitals, or a list of orbitals that are not correlated, as in PySCF.
        amplitudes: a Solution, its file, or arrays by name: where iteration starts, and the values
            of amplitudes that the equations read and do not determine.
        inputs: arrays by name for inputs that are no quantity of a mean field; or what an input
            is: "(pq|rs)", "<pq|rs>", "<pq||rs>", "df", "fock", "hcore", "energies", "dipole".
        outputs: what an output is, where that is not clear: "energy", "value", "residual of t1",
            "update of t1", "sigma of r1".
        orbitals: "spatial" or "spin"; by default, equations with antisymmetric inputs are over spin
            orbitals.
        auxbasis: for three-index integrals on a reference without density fitting.
        tolerance: on the 2-norm of each residual.
        max_cycle: most iterations.
        diis: vectors that DIIS keeps; 0 switches it off.
        level_shift: is added to virtual energies in denominators, in Hartree.
        damping: part of the old amplitudes that remains after an update, below 1.
        nroots: roots of an eigenvalue problem, lowest first.
        extents: of spaces that no array shows.
        target: "cpu", "cuda" or "numpy", as for :func:`tcgen.compile`.
        dtype: element type of the program.
        memory_limit: bytes that the program may allocate.
        planning: how equations are factored and loops fused.
        show: True prints a table, False nothing; a function is called with each line.
        progress: as for :func:`tcgen.compile`: True shows a bar until iterations begin, and a
            function is called with what is being done, such as "factoring".
        shorthand: fields of ``planning`` as keywords.

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
    options = Iteration(tolerance, max_cycle, diis, level_shift, damping, nroots)
    system = read_equations(source)
    spaces = classify(system)
    asked, arrays = _split_inputs(system, inputs or {})
    reference = read_reference(mean_field, frozen)
    equations, found, made = _understood(
        system, spaces, reference, asked, tuple(arrays), outputs or {}, orbitals, auxbasis
    )
    sizes = {s.name: s.extent for s in system.spaces if s.extent is not None}
    sizes |= made.extents(system.spaces) | passed_extents(system, spaces, arrays)
    sizes |= dict(extents or {})
    if equations.eigenvalue:
        sizes = _root_extents(equations, spaces, nroots) | sizes
    earlier = Earlier(amplitudes, spaces, sizes)
    read = _given(system, spaces, equations, earlier)
    arrays |= {t.name: in_layout(t, read[t.name], dtype) for t in equations.given}
    if memory_limit is None:  # else what depends on them might be too large to be kept
        given = {t.name for t in equations.given}
        system = _with_inputs(system, given, lambda t: replace(t, volatile=False))
    on_disk = kept_on_disk((f.tensor for f in found.values()), sizes, dtype, reference.memory)
    if on_disk:
        system = _with_inputs(system, {*on_disk}, unpacked)  # triangles cannot be sliced
        found |= {n: replace(found[n], tensor=unpacked(found[n].tensor)) for n in on_disk}
        sliced = shorthand.get("sliced", planning.sliced if planning else ())
        shorthand["sliced"] = (*sliced, *on_disk)
    program = compile(
        system,
        extents={name: max(1, extent) for name, extent in sizes.items()},  # 0 needs no plan
        target=target,
        dtype=dtype,
        memory_limit=memory_limit,
        planning=planning,
        progress=progress,
        **shorthand,
    )
    table = Table(
        _printer(show),
        equations.correlation or equations.energies[:1],
        [a.output.name for a in equations.amplitudes],
    )
    table.title(system.name, reference.kind, sizes)
    with IntegralFile() as file:
        with reported(progress, program.manifest.target) as tell:
            tell("making integrals")
            for name in on_disk:
                arrays[name] = made.dataset(found[name], dtype, file)
            arrays |= {n: made.array(f, dtype) for n, f in found.items() if n not in on_disk}
            energies = made.energies(system)
            of_reference = made.occupied_energy() if equations.with_reference else 0.0
        del made  # and with it the blocks that arrays were made from
        run = _bound(program, system, arrays, equations)
        arrays.clear()  # constants may have been copied to another layout
        problem = Problem(system, spaces, equations, sizes, energies, dtype, run, options)
        if equations.eigenvalue:
            results = _diagonalised(problem, earlier)
        else:
            results = _iterated(problem, earlier, table, of_reference)
    letters = earlier.letters | {t.name: spaces.letters(t) for t in equations.given}
    letters |= {a.tensor.name: problem.letters(a) for a in equations.amplitudes}
    results["amplitudes"] = earlier.arrays | read | results["amplitudes"]
    solution = Solution(
        name=system.name,
        reference=reference.kind,
        e_hf=reference.e_hf,
        letters=letters,
        seconds=time.perf_counter() - clock,
        **results,
    )
    table.end(solution)
    return solution


def read_equations(source: object) -> System:
    """A System, or the one of a path, of text, or of the name of a shipped spec.

    Raises:
        TcgenError: there is no such file or spec, or the equations cannot be read.
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
    if re.fullmatch(r"\w+", text) and not Path(text).exists():
        return read_system(spec_path(text))
    return read_system(Path(text))


def _understood(
    system: System,
    spaces: OrbitalSpaces,
    reference: Reference,
    asked: Mapping[str, str],
    passed: Sequence[str],
    outputs: Mapping[str, str],
    orbitals: str | None,
    auxbasis: str | None,
) -> tuple[Equations, dict[str, Found], MeanFieldInputs]:
    """What outputs and inputs are, and the orbitals of the reference that inputs are over."""
    if orbitals not in (None, "spatial", "spin"):
        raise ArgumentError(f"orbitals={orbitals!r} is not known: use 'spatial' or 'spin'")
    declared = {t.name: t.quantity.value for t in system.inputs if t.quantity is not None}
    asked = declared | dict(asked)
    found = {n: f for n, f in recognise(system, spaces, asked).items() if n not in passed}
    trial = Trial(system, spaces, found)
    equations = understand(trial, passed, outputs)
    tensors = [*system.inputs, *(a.tensor for a in equations.amplitudes)]
    over_spin = is_over_spin_orbitals(tensors, spaces) if orbitals is None else orbitals == "spin"
    found = with_conventions(trial, equations.amplitudes, asked, spin_orbitals=over_spin)
    made = MeanFieldInputs(system, spaces, reference, spin_orbitals=over_spin, auxbasis=auxbasis)
    return equations, found, made


def _split_inputs(
    system: System, inputs: Mapping[str, Any]
) -> tuple[dict[str, str], dict[str, Any]]:
    """What the caller says that inputs are, and the arrays that the caller passes."""
    names = [tensor.name for tensor in system.inputs]
    unknown = [name for name in inputs if name not in names]
    if unknown:
        raise ArgumentError(
            f"inputs: {system.name} has no input {', '.join(unknown)}; it has {', '.join(names)}"
        )
    asked = {name: value for name, value in inputs.items() if isinstance(value, str)}
    arrays = {n: v if callable(v) else np.asarray(v) for n, v in inputs.items() if n not in asked}
    return asked, arrays


def _with_inputs(system: System, names: set[str], change: Callable[[Tensor], Tensor]) -> System:
    """The system with some of its inputs changed."""

    def changed(tensor: Tensor) -> Tensor:
        return change(tensor) if tensor.name in names else tensor

    return replace(
        system,
        tensors=tuple(changed(tensor) for tensor in system.tensors),
        equations=tuple(
            replace_refs(equation, lambda ref: replace(ref, tensor=changed(ref.tensor)))
            for equation in system.equations
        ),
    )


def _root_extents(equations: Equations, spaces: OrbitalSpaces, nroots: int) -> dict[str, int]:
    """Planning extents of the spaces that number vectors."""
    axes = [s for a in equations.amplitudes for s in a.tensor.spaces]
    return {s.name: nroots for s in axes if spaces.kind(s) is Kind.OTHER}


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
        tried = "\n".join(f"    {described(t)}: {rules_for(t, spaces)}" for t in missing)
        first = missing[0].name
        raise ArgumentError(
            f"{system.name}: no rule finds what these inputs are, and no output is their residual "
            f"or update:\n{tried}\n"
            f"    pass the amplitudes of an earlier solve: amplitudes= (--amplitudes FILE)\n"
            f'    pass other arrays: inputs={{"{first}": array}} (--inputs FILE)\n'
            f"    or say in the spec which quantity an input is: from fock, from eri(chemist) "
            f"and the like behind its axes\n"
            f'    or say which output determines it: outputs={{"r": "residual of {first}"}} '
            f'(--role "r=residual of {first}")'
        )
    return arrays


def _bound(
    program: Program, system: System, arrays: Mapping[str, Any], equations: Equations
) -> Callable[..., Mapping[str, Array]]:
    """The program with everything but amplitudes; constants are bound where they stay the same."""
    solved = {a.tensor.name for a in equations.amplitudes}
    constant = {t.name for t in system.inputs if not t.volatile}
    if not constant & set(arrays) or constant & solved:
        return partial(program, **arrays)
    bound = program.bind(**{n: a for n, a in arrays.items() if n in constant})
    return partial(bound, **{n: a for n, a in arrays.items() if n not in constant})


def _printer(show: Show | bool) -> Show | None:
    if callable(show):
        return show
    return (lambda line: print(line, flush=True)) if show else None  # noqa: T201


def _iterated(
    problem: Problem, earlier: Earlier, table: Table, of_reference: float
) -> dict[str, Any]:
    """Fields of the solution of equations for amplitudes, or of energies without any."""
    equations = problem.equations
    if equations.amplitudes:
        table.header()
    found = problem.iterate(earlier, table.row)
    outputs = found.last.outputs
    energies = {name: float(np.real(outputs[name])) for name in equations.energies}
    correlation = None
    if equations.correlation:
        correlation = sum(energies[name] for name in equations.correlation)
        if of_reference:
            correlation -= problem.energy_of_reference(of_reference)
    return {
        "converged": found.converged,
        "e_corr": correlation,
        "energies": energies,
        "amplitudes": found.amplitudes,
        "values": {name: np.asarray(outputs[name]) for name in equations.values},
        "iterations": found.iterations,
        "residual_norms": found.last.norms,
    }


def _diagonalised(problem: Problem, earlier: Earlier) -> dict[str, Any]:
    """Fields of the solution of an eigenvalue problem."""
    found = problem.roots(earlier)
    return {
        "converged": max(found.norms) <= problem.options.tolerance,
        "e_corr": None,
        "energies": {},
        "roots": found.values,
        "amplitudes": found.amplitudes,
        "iterations": found.products,
        "residual_norms": {f"root {n}": norm for n, norm in enumerate(found.norms, 1)},
    }

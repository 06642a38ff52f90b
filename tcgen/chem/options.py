"""The options of ``solve``: one record of its inputs, iteration and compilation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from ..compiler.api import planning_record
from ..compiler.progress import Progress
from ..errors import ArgumentError
from ..options import Planning
from ..records.quantity import Quantity
from .equations import Equations
from .frames import Frozen
from .quantities import Found
from .result import Source
from .table import Show

# Options that act on equations of one kind, with the values that ask for nothing.
_OF_FACTORS: dict[str, Any] = {"auxbasis": None}
_OF_ROOTS: dict[str, Any] = {"nroots": 1, "irrep": None}
_OF_ITERATIONS: dict[str, Any] = {
    "checkpoint": None,
    "checkpoint_every": 1,
    "level_shift": 0.0,
    "damping": 0.0,
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SolveOptions:
    """Options of :func:`tcgen.chem.solve`, which also takes each field as a keyword.

    Attributes:
        frozen: number of core orbitals, a list of orbitals that are not correlated, as in PySCF, or
            a mask that is True for these; for UHF and ROHF also one for each spin.
        amplitudes: a Solution, its file, or arrays by name: the start of the iteration, and values
            of amplitudes that the equations read and do not determine.
        symmetry: compute with blocks of the irreps of an abelian point group, which a mean field of
            a molecule with ``mol.symmetry`` has.
        inputs: arrays by name for inputs that are not quantities of a mean field; or the role of an
            input: "(pq|rs)", "<pq|rs>", "<pq||rs>", "df", "fock", "hcore", "energies", "dipole".
        outputs: roles of outputs that cannot be inferred: "energy", "value", "residual of t1",
            "update of t1", "sigma of r1".
        orbitals: "spatial" or "spin"; by default, equations with antisymmetric inputs are over spin
            orbitals.
        auxbasis: auxiliary basis of three-index integrals; that of a reference with density fitting
            is its own.
        tolerance: largest 2-norm of each residual, in Hartree.
        max_cycle: largest number of iterations.
        diis: number of vectors that DIIS stores; 0 switches it off.
        level_shift: energy added to virtual energies in denominators, in Hartree.
        damping: fraction of the old amplitudes that remains after an update, below 1.
        checkpoint: name of an HDF5 file with the state of the iteration; a job that finds it
            continues from there.
        checkpoint_every: number of iterations after which the checkpoint is written again.
        integral_file: name of an HDF5 file with the integrals over all pairs of orbitals of a
            molecule. They are transformed into it once; a job that finds it reads them.
        release_integrals: drop the integrals over atomic orbitals that the mean field holds once
            they are transformed. PySCF makes them again where it needs them.
        nroots: number of roots of an eigenvalue problem, lowest first.
        irrep: name or number of the irrep or momentum that all roots have, with ``symmetry`` or
            k-points; by default the lowest of all.
        extents: extents of spaces that cannot be inferred from arrays.
        target: "cpu", "cuda" or "numpy"; see :func:`tcgen.compile`.
        dtype: element type of the program; complex128 for complex orbitals.
        precision: "mixed" iterates in float32 until residuals are 1e-5 or stop falling, and then in
            float64 to the tolerance; by default all iterations are in ``dtype``.
        memory: bytes that the job may take beyond what the process held before, such as "6GB":
            integrals, amplitudes, vectors of DIIS, the program and PySCF's transform. Larger arrays
            go to files. By default it is ``mf.max_memory``, and where a job cannot keep that, the
            table says so; given here, it is an error.
        memory_limit: bytes that the program may allocate.
        planning: options of factoring and fusion; solve also takes its fields as keywords.
        show: True prints a table, False nothing; a function is called with each line.
        progress: True shows a bar; a function is called with each stage, also with each iteration,
            such as "factoring".

    Raises:
        ArgumentError: a value is out of range.
    """

    frozen: Frozen = 0
    amplitudes: Source = None
    symmetry: bool = False
    inputs: Mapping[str, Any] | None = None
    outputs: Mapping[str, str] | None = None
    orbitals: str | None = None
    auxbasis: str | None = None
    tolerance: float = 1e-9
    max_cycle: int = 100
    diis: int = 8
    level_shift: float = 0.0
    damping: float = 0.0
    checkpoint: str | Path | None = None
    checkpoint_every: int = 1
    integral_file: str | Path | None = None
    release_integrals: bool = False
    nroots: int = 1
    irrep: str | int | tuple[int, ...] | None = None
    extents: Mapping[str, int] | None = None
    target: str | None = None
    dtype: str = "float64"
    precision: str | None = None
    memory: str | int | None = None
    memory_limit: str | int | None = None
    planning: Planning | None = None
    show: Show | bool = True
    progress: Progress | bool = False

    def __post_init__(self) -> None:
        legal: tuple[tuple[str, type, Callable[[Any], bool], str], ...] = (
            ("tolerance", Real, lambda x: x > 0, "a number above 0"),
            ("max_cycle", Integral, lambda x: x >= 1, "an integer of at least 1"),
            ("diis", Integral, lambda x: x >= 0, "an integer of at least 0"),
            ("level_shift", Real, lambda x: x >= 0, "a number of at least 0"),
            ("damping", Real, lambda x: 0 <= x < 1, "a number of at least 0 and below 1"),
            ("checkpoint_every", Integral, lambda x: x >= 1, "an integer of at least 1"),
            ("nroots", Integral, lambda x: x >= 1, "an integer of at least 1"),
        )
        for name, kind, fits, words in legal:
            value = getattr(self, name)
            if not isinstance(value, kind) or isinstance(value, bool) or not fits(value):
                raise ArgumentError(f"{name}={value!r} must be {words}")
        if self.checkpoint_every != 1 and self.checkpoint is None:
            raise ArgumentError(
                f"checkpoint_every={self.checkpoint_every} needs checkpoint= (--checkpoint FILE)"
            )
        if self.precision not in (None, "mixed"):
            raise ArgumentError(f"precision={self.precision!r} is not known: use 'mixed'")
        if self.precision is not None and self.dtype != "float64":
            raise ArgumentError(f"precision='mixed' ends in float64: leave out dtype={self.dtype}")
        if self.symmetry and self.precision is not None:
            raise ArgumentError("symmetry=True has no mixed precision: leave precision out")
        if self.symmetry and self.target not in (None, "cpu"):
            raise ArgumentError(
                f"programs over blocks are in C: leave out target={self.target!r} or symmetry"
            )
        if self.orbitals not in (None, "spatial", "spin"):
            raise ArgumentError(f"orbitals={self.orbitals!r} is not known: use 'spatial' or 'spin'")


def acting(
    options: SolveOptions, equations: Equations, integrals: Mapping[str, Found]
) -> SolveOptions:
    """The options without those that do not act on equations of this kind."""
    roots, iterated = equations.eigenvalue, bool(equations.amplitudes) and not equations.eigenvalue
    idle = ({} if roots else _OF_ROOTS) | ({} if iterated else _OF_ITERATIONS)
    if all(one.quantity is not Quantity.THREE_INDEX for one in integrals.values()):
        idle |= _OF_FACTORS
    return replace(options, **idle)


def refuse_idle(
    options: SolveOptions, systems: Sequence[tuple[str, Equations, Mapping[str, Found]]]
) -> None:
    """Refuse options that act on none of these equations, which have names and integrals.

    Raises:
        ArgumentError: it names the option, and what that acts on.
    """
    names = f"{', '.join(name for name, *_ in systems)} {'are' if systems[1:] else 'is'}"
    for own, what in (
        (
            _OF_FACTORS,
            f"three-index integrals, and {names} without any: leave it out, or fit all integrals "
            f"(mf.density_fit(auxbasis=...), --df)",
        ),
        (
            _OF_ROOTS,
            f"roots of an eigenvalue problem, and {names} none: leave it out; excited states of a "
            f"ground state are those of tcgen.chem.excited_states (--states N)",
        ),
        (
            _OF_ITERATIONS,
            f"the iteration of amplitudes, and {names} solved without one: leave it out, and start "
            f"an eigenvalue problem again from a saved solution (amplitudes=)",
        ),
    ):
        for name, nothing in own.items():
            acts = any(getattr(acting(options, e, f), name) != nothing for _, e, f in systems)
            if getattr(options, name) != nothing and not acts:
                raise ArgumentError(f"{name}={getattr(options, name)} is about {what}")


def solve_options(given: SolveOptions | None, keywords: Mapping[str, Any]) -> SolveOptions:
    """The record with the fields that were given as keywords, those of its planning included."""
    if given is not None and not isinstance(given, SolveOptions):
        raise ArgumentError(f"options={given!r} is not a tcgen.chem.SolveOptions")
    names = [option.name for option in fields(SolveOptions)]
    options = replace(given or SolveOptions(), **{n: v for n, v in keywords.items() if n in names})
    others = {n: v for n, v in keywords.items() if n not in names}
    return replace(options, planning=planning_record(options.planning, others, "solve", names))


def options_of_crystal(options: SolveOptions) -> SolveOptions:
    """The options of a job with k-points: blocks of complex numbers."""
    if options.precision is not None or options.dtype not in ("float64", "complex128"):
        raise ArgumentError("jobs with k-points are in complex128: leave out precision and dtype")
    return replace(options, symmetry=True, dtype="complex128")

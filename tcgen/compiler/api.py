"""``tcgen.compile``: from equations to a callable program."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from difflib import get_close_matches
from functools import partial
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Any, SupportsIndex

from ..artifact.folder import Artifact
from ..errors import ArgumentError
from ..ir.program import FormulaSequence
from ..ir.system import System, planning_extents
from ..options import Options, Planning, parse_bytes, parse_extents
from ..runtime.program import Program
from .documents import is_artifact, load_artifact, read_artifact_system
from .driver import compile_artifact, compile_system, form_program, read_system
from .progress import Progress, reported
from .target import default_target, for_machine
from .tracer import Tracer


def compile(
    source: object,
    *,
    extents: Mapping[str, SupportsIndex] | None = None,
    target: str | None = None,
    dtype: str = "float64",
    memory_limit: str | SupportsIndex | None = None,
    constant: str | Sequence[str] = (),
    volatile: str | Sequence[str] = (),
    planning: Planning | None = None,
    progress: Progress | bool = False,
    fallback: bool = False,
    **shorthand: Any,
) -> Program:
    """Compile equations into a program that takes and returns NumPy arrays, or CuPy's on a GPU.

    Args:
        source: path of a .spec or .json term list, the name of a shipped spec, the text of a spec
            (it holds a line break), a System, SymPy equations (see :func:`tcgen.from_sympy`), or
            einsum subscripts such as ``"ij,jk->ik"``: its operands are then the inputs x0, x1, ...,
            its result is y, and each letter is a space.
        extents: planning extents by space; other extents may come at run time. Spaces whose extent
            is neither here nor in the spec are planned for typical ones: 20 for occupied orbitals,
            100 for virtual ones, 400 for auxiliary functions, 20 for other declared kinds.
        target: "cpu" (C with OpenMP), "cuda" (a GPU, through CuPy) or "numpy"; None takes cpu
            if a C compiler works, else numpy.
        dtype: "float64", "float32" or "complex128".
        memory_limit: bytes, or text such as "8GiB", for all that the program allocates.
        constant: names of inputs that a bound program stores (``program.bind``), in addition to
            those that the source declares.
        volatile: names of inputs that may change from call to call.
        planning: options of factoring and fusion; see :class:`tcgen.Planning`.
        progress: called with the name of each stage ("factoring", "planning memory", "writing C",
            ...); True shows a bar in terminals and notebooks. The C compiler then runs at once
            instead of in the first call.
        fallback: add kernels for NumPy. They run the program, with a warning, if it is loaded
            without a C compiler and without objects for that processor.
        shorthand: fields of ``planning`` as keywords: ``objective="time"`` is short for
            ``planning=Planning(objective="time")``.

    Returns:
        A program: ``program(**arrays) -> {name: array}``.

    Raises:
        SpecError, EinsumError: the equations cannot be read; all errors of a file at once.
        ExtentError, ArgumentError: an option is missing or cannot be used.
        MemoryLimitError: the plan needs more than ``memory_limit``.
        BuildError: the C compiler is missing or failed.

    Example:
        >>> import numpy as np
        >>> spec = '''
        ... space o = 3
        ... index i j : o
        ... input a[o,o], x[o]
        ... output y
        ... y[i] = a[i,j]*x[j]
        ... '''
        >>> program = compile(spec, target="numpy")
        >>> program(a=np.eye(3), x=np.arange(3.0))["y"]
        array([0., 1., 2.])
    """
    plan = planning_record(planning, shorthand, "compile", compile.__annotations__)
    return compiled(
        source, extents, target, dtype, memory_limit, constant, volatile, plan, progress, fallback
    )


def compiled(
    source: object,
    extents: Mapping[str, SupportsIndex] | None,
    target: str | None,
    dtype: str,
    memory_limit: str | SupportsIndex | None,
    constant: str | Sequence[str],
    volatile: str | Sequence[str],
    plan: Planning,
    progress: Progress | bool,
    fallback: bool,
    *,
    documents: bool = True,
) -> Program:
    """:func:`compile`; without ``documents`` the program has no report, and cannot be saved.

    It then comes from the cache if it is there, has no fallback, and warns of no zero output.
    """
    target = target or ("cpu" if plan.tune else default_target(_warn))
    plan = for_machine(plan, target)
    options = Options(
        extents=parse_extents(extents),
        target=target,
        dtype=dtype,
        memory_limit=None if memory_limit is None else parse_bytes(memory_limit),
        **{option.name: getattr(plan, option.name) for option in fields(Planning)},
    )
    system = read_equations(source)
    if constant or volatile:
        from ..algebra.equations.volatile import marked  # noqa: PLC0415  (loaded where it is used)

        system = marked(system, constant, volatile)
    for message in system.warnings:
        warnings.warn(message, stacklevel=3)
    with reported(progress, options.target) as tell:
        if documents:
            result = compile_system(system, options, Tracer(tell), fallback=fallback)
            artifact, messages = result.artifact, result.warnings
        else:
            artifact, messages = compile_artifact(system, options, Tracer(tell)), ()
        program = Program(artifact)
        if progress and options.target == "cpu":
            tell("build")
            program.build()
    # A program that made a System may mean an output that is zero.
    for message in () if isinstance(source, System) else messages:
        warnings.warn(message, stacklevel=3)
    return program


def formula_sequence(
    system: System,
    extents: Mapping[str, SupportsIndex],
    dtype: str,
    plan: Planning,
    progress: Progress | bool = False,
) -> FormulaSequence:
    """The sequence of steps that a program for the CPU executes, without a plan of its loops."""
    plan = for_machine(plan, "cpu")
    options = Options(
        extents=parse_extents(extents),
        target="cpu",
        dtype=dtype,
        **{option.name: getattr(plan, option.name) for option in fields(Planning)},
    )
    options = replace(options, extents=planning_extents(system, options.extent_of))
    with reported(progress, options.target) as tell:
        return form_program(system, options, Tracer(tell), use_cache=True)


# The warning names the line that calls compile.
_warn = partial(warnings.warn, stacklevel=4)


def planning_record(
    given: Planning | None, shorthand: Mapping[str, Any], caller: str, own: Iterable[str]
) -> Planning:
    """The record with the fields that were given as keywords of the function ``caller``.

    An ArgumentError refuses what is not a record, and other keywords: it names the nearest of these
    and of the function's own.
    """
    if given is not None and not isinstance(given, Planning):
        raise ArgumentError(f"planning={given!r} is not a tcgen.Planning")
    names = [option.name for option in fields(Planning)]
    unknown = [name for name in shorthand if name not in names]
    if unknown:
        near = get_close_matches(unknown[0], [*own, *names], n=1)
        advice = f"write {near[0]}" if near else f"those of planning are {', '.join(names)}"
        raise ArgumentError(f"{caller} has no keyword {unknown[0]!r}: {advice}")
    return replace(given or Planning(), **shorthand)


def signature_with(function: Callable[..., Any], *records: type[Any]) -> Signature:
    """The signature of a function with each field of some records, for help and completion."""
    written = signature(function)
    own = [p for p in written.parameters.values() if p.kind is not Parameter.VAR_KEYWORD]
    keywords = [
        Parameter(option.name, Parameter.KEYWORD_ONLY, default=option.default, annotation=Any)
        for record in records
        for option in fields(record)
    ]
    return written.replace(parameters=[*own, *keywords])


compile.__signature__ = signature_with(compile, Planning)  # type: ignore[attr-defined]


def read_program(source: object) -> Artifact | System:
    """The compiled program in a folder, or the equations of a source of :func:`compile`.

    Raises:
        TcgenError: it cannot be read.
    """
    if isinstance(source, str | os.PathLike) and "\n" not in str(source):
        folder = Path(source)
        if is_artifact(folder):
            return load_artifact(folder)
    return read_equations(source)


def equations_of(source: object) -> System:
    """The equations of a source of :func:`read_program`."""
    made = read_program(source)
    return read_artifact_system(made) if isinstance(made, Artifact) else made


def read_equations(source: object) -> System:
    """The equations of a source of :func:`compile`; a TcgenError says why they cannot be read."""
    if isinstance(source, System):
        return source
    if isinstance(source, str) and ("\n" in source or not source):
        from ..frontend.spec.reader import read_spec  # noqa: PLC0415  (loads lark)

        return read_spec(source)
    if not isinstance(source, str | os.PathLike):
        # Without SymPy in memory, source cannot be one of its expressions.
        if "sympy" in sys.modules:
            from ..frontend.importers.sympy_indexed import from_sympy, is_sympy  # noqa: PLC0415

            if is_sympy(source):
                return from_sympy(source)
        raise ArgumentError(
            f"cannot read equations from a {type(source).__name__}: give the path of a .spec or "
            f".json file, the text of a spec, SymPy equations, or a System"
        )
    return read_system(Path(source))

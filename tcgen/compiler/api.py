"""The Python way in: equations to a callable program."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import SupportsIndex

from ..errors import ArgumentError
from ..ir.system import System
from ..options import Machine, Options, parse_bytes, parse_extents, parse_machine
from ..runtime.program import Program
from .driver import Tracer, compile_system, read_system
from .target import default_target


def compile(
    source: object,
    *,
    extents: Mapping[str, SupportsIndex] | None = None,
    target: str | None = None,
    dtype: str = "float64",
    memory_limit: str | SupportsIndex | None = None,
    objective: str = "none",
    optimize: bool = True,
    effort: int = 1,
    cost: str = "dense",
    add_weight: float = 1.0,
    byte_weight: float = 0.0,
    machine: str | Machine | None = None,
    pareto: bool = False,
    sliced: str | Sequence[str] = (),
    tune: bool = False,
) -> Program:
    """Compile equations into a program that takes and returns NumPy arrays, or CuPy's on a GPU.

    Args:
        source: path of a .spec or .json term list, the text of a spec (it holds a line break), a
            System, SymPy equations (see :func:`tcgen.from_sympy`), or einsum subscripts such as
            ``"ij,jk->ik"``: its operands are then the inputs x0, x1, ..., its result is y, and
            each letter is a space.
        extents: planning extents by space; other extents may come at run time.
        target: "cpu" (C with OpenMP), "cuda" (a GPU, through CuPy) or "numpy"; None takes cpu
            where a C compiler works.
        dtype: "float64", "float32" or "complex128".
        memory_limit: bytes, or text such as "8GiB", for all that the program allocates.
        objective: fusion plan: "none", "linear" (Allam et al., Eq. 10), "memory" (fewest elements
            in all), "peak" (fewest bytes at one time), "time" (least predicted time within the
            memory limit) or "kernels" (element-wise steps share kernels so that the fewest bytes
            pass memory).
        optimize: False keeps the factoring as written.
        effort: deterministic search effort.
        cost: "dense" counts every multiply-add, "packed" those that symmetry makes equal once.
        add_weight: flops that an addition counts beside contractions.
        byte_weight: flops that a byte read or written by a step counts.
        pareto: also plan for a row of memory limits, for ``program.report.pareto()``.
        machine: constants of the predicted time, such as ``"flops=2e11,bandwidth=1e11"``; refused
            where neither the objective "time" nor ``pareto`` reads them.
        sliced: inputs that may be larger than memory, by name: a call takes an h5py dataset, a
            memory map or a callable for them and reads it slice by slice.
        tune: measure on this machine, with its threads, how each matrix product of a cpu program is
            computed best; what was measured is kept. The program is then this machine's own.

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
    names = (sliced,) if isinstance(sliced, str) else sliced
    if not isinstance(names, Sequence) or not all(isinstance(n, str) for n in names):
        raise ArgumentError(f"sliced={sliced!r}: give the name of an input, or a list of names")
    constants = Machine() if machine is None else machine
    options = Options(
        extents=parse_extents(extents),
        target=target or ("cpu" if tune else default_target(warn=True)),
        dtype=dtype,
        memory_limit=None if memory_limit is None else parse_bytes(memory_limit),
        objective=objective,
        optimize=optimize,
        effort=effort,
        cost=cost,
        add_weight=add_weight,
        byte_weight=byte_weight,
        pareto=pareto,
        machine=parse_machine(constants) if isinstance(constants, str) else constants,
        sliced=tuple(names),
        tune=tune,
    )
    system = source if isinstance(source, System) else _read(source)
    for message in system.warnings:
        warnings.warn(message, stacklevel=2)
    result = compile_system(system, options, Tracer())
    typed = not isinstance(source, System)  # a program that makes equations may mean a zero
    for message in result.warnings if typed else ():
        warnings.warn(message, stacklevel=2)
    return Program(result.artifact)


def _read(source: object) -> System:
    if isinstance(source, str) and "\n" in source:
        from ..frontend.spec.reader import read_spec  # noqa: PLC0415  (lark only where a spec is read)

        return read_spec(source)
    if not isinstance(source, str | os.PathLike):
        if "sympy" in sys.modules:  # else it cannot be an expression of SymPy
            from ..frontend.importers.sympy_indexed import from_sympy, is_sympy  # noqa: PLC0415

            if is_sympy(source):
                return from_sympy(source)
        raise ArgumentError(
            f"cannot compile a {type(source).__name__}: give the path of a .spec or .json file, "
            f"the text of a spec, SymPy equations, or a System"
        )
    if isinstance(source, str):
        from ..frontend.einsum.equation import is_subscripts, subscripts_system  # noqa: PLC0415

        if is_subscripts(source):
            return subscripts_system(source)
    return read_system(Path(source))

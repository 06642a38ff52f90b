"""Programs behind ``tcgen.einsum``: compiled once, kept, and counted.

A program depends on labels, element type, target and memory limit. Extents stay symbolic; for
three and more operands the order of contraction depends on them, so it belongs to the key too.
"""

from __future__ import annotations

import warnings
from collections import Counter, OrderedDict
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any, TypeAlias

import numpy as np

from .config import (
    DTYPES,
    Options,
    compiler_command,
    einsum_programs,
    einsum_target,
    einsum_tunes,
)
from .driver import compile_system
from .errors import MemoryLimitError
from .frontend.einsum import Kernel, Path, einsum_system
from .frontend.subscripts import Expression, express
from .ir.tensor import Index
from .runtime.build import find_compiler, no_compiler
from .runtime.locks import Lock
from .runtime.program import Program


@dataclass(frozen=True, slots=True)
class EinsumRow:
    """Calls of one expression that went the same way.

    Attributes:
        expression: subscripts, with an ellipsis written out.
        dtype: element type of the computation.
        route: "kernel" for generated code, "numpy" for a delegated call.
        reason: why the call was delegated; for a kernel the target.
        calls: how many.
    """

    expression: str
    dtype: str
    route: str
    reason: str
    calls: int


@dataclass(frozen=True, slots=True)
class EinsumReport:
    """What became of the einsum calls of this process.

    Attributes:
        rows: calls by expression, element type and route.
        programs: how many programs this process has compiled for such calls.
        kept: how many of them are kept for calls to come.
    """

    rows: tuple[EinsumRow, ...]
    programs: int
    kept: int

    @property
    def kernel_calls(self) -> int:
        """Calls that ran generated code."""
        return sum(row.calls for row in self.rows if row.route == "kernel")

    @property
    def numpy_calls(self) -> int:
        """Calls that were delegated to NumPy."""
        return sum(row.calls for row in self.rows if row.route == "numpy")

    def __str__(self) -> str:
        lines = [
            f"{self.kernel_calls} calls ran generated code, {self.numpy_calls} were delegated to "
            f"NumPy; {self.programs} programs compiled"
        ]
        for row in self.rows:
            way = f"{row.route} ({row.reason})"
            lines.append(f"{row.calls:8d}  {row.expression:32s} {row.dtype:12s} {way}")
        return "\n".join(lines)


_lock = Lock()
_programs: OrderedDict[tuple[Any, ...], Program] = OrderedDict()
_compiled = 0
_calls: Counter[tuple[Expression, str, str, str]] = Counter()
_Kinds: TypeAlias = tuple[tuple[int, np.dtype[Any]], ...]
_tiny: dict[tuple[str, _Kinds], int] = {}


def einsum_report(*, reset: bool = False) -> EinsumReport:
    """Which calls of einsum, contract and tensordot ran generated code, and which NumPy.

    Args:
        reset: forget the calls counted so far; programs stay compiled.

    Example:
        >>> import numpy as np, tcgen
        >>> _ = einsum_report(reset=True)
        >>> tcgen.einsum("i,i", np.arange(3), np.arange(3))
        np.int64(5)
        >>> print(einsum_report())
        0 calls ran generated code, 1 were delegated to NumPy; ... programs compiled
               1  i,i->                            int64        numpy (no kernels for int64)
    """
    with _lock:
        counted = Counter(_calls)
        for (text, kinds), calls in _tiny.items():
            counted[_tiny_row(text, kinds)] += calls
        compiled, kept = _compiled, len(_programs)
        if reset:
            _calls.clear()
            _tiny.clear()
    rows = tuple(EinsumRow(_text(key[0]), *key[1:], calls) for key, calls in counted.items())
    return EinsumReport(rows, compiled, kept)


def count_tiny(text: str, kinds: _Kinds) -> None:
    """Note a tiny call: its row is put together when the report is asked for."""
    key = (text, kinds)
    with _lock:
        _tiny[key] = _tiny.get(key, 0) + 1


def _tiny_row(text: str, kinds: _Kinds) -> tuple[Expression, str, str, str]:
    expression = express(text, tuple(rank for rank, _ in kinds))
    dtypes = [dtype for _, dtype in kinds]
    plain = all(d.kind in "biufc" for d in dtypes)
    name = str(np.result_type(*dtypes).newbyteorder("=") if plain else dtypes[0])
    view = len(kinds) == 1 and len(expression.output) == len(expression.names)
    reason = "a view of the operand" if view else "tiny"
    return expression, name, "numpy", reason if name in DTYPES or view else f"no kernels for {name}"


def count_call(expression: Expression, dtype: str, route: str, reason: str) -> None:
    """Note one call for the report."""
    with _lock:
        _calls[expression, dtype, route, reason] += 1


def kernel_target() -> str:
    """Target of einsum kernels: TCGEN_EINSUM_TARGET, else cpu where a C compiler works."""
    return einsum_target() or _default_target(compiler_command())


def kernel_program(
    kernel: Kernel,
    extents: tuple[int, ...],
    *,
    dtype: str,
    target: str,
    path: Path | None,
    memory_limit: int | None,
) -> Program:
    """The program of a kernel, planned for the first extents that need it.

    Args:
        kernel: labels of operands x0, x1, ... and of the result y.
        extents: of each label.
        dtype: of all arrays.
        target: "cpu" or "numpy".
        path: order of contraction, or None for the cheapest.
        memory_limit: bytes; where the plain plan needs more, the one of least predicted time that
            keeps the limit at these extents.

    Raises:
        MemoryLimitError: no plan fits the limit.
    """
    order = path if path is not None or len(kernel.inputs) < 3 else best_path(kernel, extents)
    tune = einsum_tunes() and target == "cpu"  # NumPy has one way
    # What fits, and what is fastest, depends on the extents.
    special = (memory_limit, tune, extents) if tune or memory_limit is not None else None
    key = (kernel, dtype, target, order, path is None, special)
    with _lock:
        program = _programs.get(key)
        if program is not None:
            _programs.move_to_end(key)
    if program is None:
        system = einsum_system(kernel, path)
        names = [space.name for space in system.spaces]
        # At run time an extent of 0 is legal, in planning it is not.
        planning = {name: max(1, n) for name, n in zip(names, extents, strict=True)}
        options = Options(
            extents=tuple(sorted(planning.items())),
            target=target,
            dtype=dtype,
            memory_limit=memory_limit,
            optimize=path is None and len(kernel.inputs) > 2,
            tune=tune,
        )
        try:
            made = compile_system(system, options, documents=False)
        except MemoryLimitError:
            options = replace(options, objective="time")
            made = compile_system(system, options, documents=False)
        program = Program(made.artifact)
        _keep(key, program)
    return program


def _keep(key: tuple[Any, ...], program: Program) -> None:
    """Keep a new program; the ones that were not called for longest go."""
    global _compiled
    most = einsum_programs()
    with _lock:
        _compiled += 1
        _programs[key] = program
        while len(_programs) > most:
            _programs.popitem(last=False)


@lru_cache(maxsize=4096)
def best_path(kernel: Kernel, extents: tuple[int, ...]) -> object:
    """The cheapest order at these extents, as nested pairs of operand positions."""
    from .algebra.order import best_order  # noqa: PLC0415  (opt_einsum is loaded when it is used)

    system = einsum_system(kernel)
    (equation,) = system.equations
    (term,) = equation.terms
    widths = {Index(s.name, s): max(1, n) for s, n in zip(system.spaces, extents, strict=True)}
    operands = tuple((tuple(dict.fromkeys(ref.indices)), 0) for ref in term.refs)
    return best_order(operands, equation.lhs.indices, widths)


@cache
def _default_target(asked: str | None) -> str:
    """``cpu`` where a compiler works; one that is asked for, or is there, and does not is named."""
    reason = no_compiler()
    if reason is None:
        return "cpu"
    if asked or find_compiler() is not None:
        warnings.warn(f"{reason}: NumPy computes", RuntimeWarning, stacklevel=2)
    return "numpy"


def _text(expression: Expression) -> str:
    def names(labels: tuple[int, ...]) -> str:
        return "".join(expression.names[n] for n in labels)

    return f"{','.join(map(names, expression.inputs))}->{names(expression.output)}"

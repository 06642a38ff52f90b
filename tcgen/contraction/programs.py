"""Programs behind ``tcgen.einsum``: compiled once, kept, and counted.

A program depends on labels, element type, target and memory limit. Extents stay symbolic, but what
is fastest depends on them: calls whose extents differ by a factor of four or more are planned
anew, which takes milliseconds, and share a program where their plans are alike. For three and more
operands the order of contraction depends on the extents, too.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from ..artifact.folder import Artifact
from ..compiler.driver import compile_system
from ..environment import einsum_programs, einsum_tunes
from ..errors import MemoryLimitError
from ..frontend.einsum.equation import Kernel, einsum_system
from ..frontend.einsum.path import Path
from ..frontend.einsum.subscripts import Expression
from ..ir.tensor import Index
from ..options import Options
from ..runtime.execution import Execution
from ..runtime.fork_safe_lock import Lock
from ..thresholds import AlgebraThresholds


@dataclass(frozen=True, slots=True)
class EinsumRow:
    """Calls of one expression that went the same way.

    Attributes:
        expression: subscripts, with an ellipsis written out.
        dtype: element type of the computation.
        route: "kernel" for generated code, "numpy" for a delegated call.
        reason: why the call was delegated; for a kernel the target.
        calls: how many.
        copied: bytes of operands and results that these calls to kernels copied: arrays of another
            element type, or of a layout that no kernel was made for. What NumPy copies is not
            counted.
    """

    expression: str
    dtype: str
    route: str
    reason: str
    calls: int
    copied: int = 0


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
            if row.copied:
                way += f", {row.copied:,} bytes copied"
            lines.append(f"{row.calls:8d}  {row.expression:32s} {row.dtype:12s} {way}")
        return "\n".join(lines)


_PLANS = 16  # that are kept for each program: sizes of calls that came to the same code

_lock = Lock()
_programs: OrderedDict[tuple[Any, ...], Execution] = OrderedDict()
_compiled = 0
_calls: Counter[tuple[str, str, str, str]] = Counter()
_copied: Counter[tuple[str, str, str, str]] = Counter()  # bytes


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
        counted = sorted(_calls.items(), key=lambda item: item[0][2])  # kernels before NumPy
        rows = tuple(EinsumRow(*key, calls, _copied[key]) for key, calls in counted)
        compiled, kept = _compiled, _count()
        if reset:
            _calls.clear()
            _copied.clear()
    return EinsumReport(rows, compiled, kept)


def count_call(row: tuple[str, str, str, str], copied: int = 0) -> None:
    """Note one call for the report: expression, element type, route, reason; bytes it copied."""
    with _lock:
        _calls[row] += 1
        if copied:
            _copied[row] += copied


@dataclass(frozen=True, slots=True)
class Request:
    """A program that calls ask for.

    Attributes:
        kernel: labels of operands x0, x1, ... and of the result y.
        extents: of each label.
        dtype: of all arrays.
        path: order of contraction, or None for the cheapest.
        order: that of the program: ``path``, else the cheapest one at the extents.
        memory_limit: bytes; where the plain plan needs more, the one of least predicted time that
            keeps the limit at these extents.
    """

    kernel: Kernel
    extents: tuple[int, ...]
    dtype: str
    path: Path | None
    order: object
    memory_limit: int | None


def request(
    kernel: Kernel,
    extents: tuple[int, ...],
    dtype: str,
    path: Path | None,
    memory_limit: int | None,
) -> Request:
    """The request with its order of contraction; arguments as its attributes."""
    order = path if path is not None or len(kernel.inputs) < 3 else best_path(kernel, extents)
    return Request(kernel, extents, dtype, path, order, memory_limit)


def kernel_program(wanted: Request, target: str) -> Execution:
    """The program of a request, planned for the first extents of about its size.

    Args:
        wanted: by its calls.
        target: "cpu" or "numpy".

    Raises:
        MemoryLimitError: no plan fits the limit.
    """
    tune = einsum_tunes() and target == "cpu"  # NumPy has one way
    kernel, path, limit = wanted.kernel, wanted.path, wanted.memory_limit
    # What fits, and what measurements choose, holds for these extents alone.
    sizes = wanted.extents if tune or limit is not None else _sizes(wanted.extents)
    key = (kernel, wanted.dtype, target, wanted.order, path is None, limit, tune, sizes)
    with _lock:
        program = _programs.get(key)
        if program is not None:
            _programs.move_to_end(key)
    if program is None:
        system = einsum_system(kernel, path)
        # At run time an extent of 0 is legal, in planning it is not. What lies beside parts of
        # arrays changes no plan.
        bases = [space.name for space in system.spaces if not space.parts]
        planning = dict.fromkeys(bases, 1)
        planning |= {name: max(1, n) for name, n in zip(bases, wanted.extents, strict=False)}
        options = Options(
            extents=tuple(sorted(planning.items())),
            target=target,
            dtype=wanted.dtype,
            memory_limit=limit,
            optimize=path is None and len(kernel.inputs) > 2,
            tune=tune,
        )
        try:
            made = compile_system(system, options, documents=False)
        except MemoryLimitError:
            options = replace(options, objective="time")
            made = compile_system(system, options, documents=False)
        program = _kept(key, made.artifact)
    return program


def _sizes(extents: tuple[int, ...]) -> tuple[int, ...]:
    """Extents by the power of four that they reach."""
    return tuple(n.bit_length() // 2 for n in extents)


def _kept(key: tuple[Any, ...], artifact: Artifact) -> Execution:
    """The program of an artifact, from now on kept; those that were not called for longest go."""
    global _compiled
    most = einsum_programs()
    with _lock:
        program = next((p for p in _programs.values() if _alike(p.artifact, artifact)), None)
        if program is None:
            _compiled += 1
            program = Execution(artifact)
        _programs[key] = program
        while _count() > most or len(_programs) > _PLANS * most:
            _programs.popitem(last=False)
    return program


def _count() -> int:
    """Programs that are kept."""
    return len({id(program) for program in _programs.values()})


def _alike(one: Artifact, other: Artifact) -> bool:
    """True for artifacts that compute the same at any extents."""
    if one.files != other.files:
        return False
    return replace(one.manifest, planning_extents=other.manifest.planning_extents) == other.manifest


@lru_cache(maxsize=4096)
def best_path(kernel: Kernel, extents: tuple[int, ...]) -> object:
    """The cheapest order at these extents, as nested pairs of operand positions."""
    from ..algebra.sequence.contraction_order import best_order  # noqa: PLC0415  (opt_einsum is loaded when it is used)

    system = einsum_system(replace(kernel, gaps=()))
    (equation,) = system.equations
    (term,) = equation.terms
    widths = {Index(s.name, s): max(1, n) for s, n in zip(system.spaces, extents, strict=True)}
    operands = tuple((tuple(dict.fromkeys(ref.indices)), 0) for ref in term.refs)
    exact_factors = AlgebraThresholds().exact_factors
    return best_order(operands, equation.lhs.indices, widths, exact_factors)


@lru_cache(maxsize=4096)
def written(expression: Expression) -> str:
    """An expression as text."""

    def names(labels: tuple[int, ...]) -> str:
        return "".join(expression.names[n] for n in labels)

    return f"{','.join(map(names, expression.inputs))}->{names(expression.output)}"

"""Programs behind ``tcgen.einsum``: compiled once, and cached for later calls.

A program depends on labels, element type, target and memory limit. Extents stay symbolic, but what
is fastest depends on them: calls whose extents differ by a factor of four or more are planned
anew, which takes milliseconds, and share a program if their plans are equal. For three and more
operands the order of contraction also depends on the extents.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from ..artifact.folder import Artifact
from ..compiler.driver import compile_system
from ..compiler.program_cache import ProgramCache
from ..environment import einsum_programs, einsum_tunes
from ..frontend.einsum import ContractionPath, Expression, LabelPattern, einsum_system
from ..ir.tensor import Index
from ..options import Options
from ..runtime.execution import Execution
from ..thresholds import AlgebraThresholds

PROGRAMS = ProgramCache(Execution, einsum_programs)


@dataclass(frozen=True, slots=True)
class Request:
    """A request for a program with operands x0, x1, ... and result y.

    ``path`` is an order of contraction, or None for the cheapest; ``order`` is that of the program:
    ``path``, else the cheapest one at the extents. Where the plain plan needs more bytes than
    ``memory_limit``, the plan is the one of least predicted time that keeps it at these extents.
    """

    kernel: LabelPattern
    extents: tuple[int, ...]
    dtype: str
    path: ContractionPath | None
    order: object
    memory_limit: int | None


def request(
    kernel: LabelPattern,
    extents: tuple[int, ...],
    dtype: str,
    path: ContractionPath | None,
    memory_limit: int | None,
) -> Request:
    """The request with its order of contraction; arguments as its attributes."""
    order = path if path is not None or len(kernel.inputs) < 3 else best_path(kernel, extents)
    return Request(kernel, extents, dtype, path, order, memory_limit)


def kernel_program(wanted: Request, target: str) -> Execution:
    """The program of a request, planned for the first extents of about its size.

    The target is "cpu" or "numpy". Raises MemoryLimitError if no plan fits the limit.
    """
    tune = einsum_tunes() and target == "cpu"  # NumPy's programs have no variants
    limit = wanted.memory_limit
    # Whether a plan fits, and which variant is fastest, holds for these extents only.
    sizes = wanted.extents if tune or limit is not None else _sizes(wanted.extents)
    key = (
        *(wanted.kernel, wanted.dtype, target, wanted.order),
        *(wanted.path is None, limit, tune, sizes),
    )
    return PROGRAMS.program(key, lambda: _compiled(wanted, target, tune=tune))


def _compiled(wanted: Request, target: str, *, tune: bool) -> Artifact:
    kernel, path = wanted.kernel, wanted.path
    system = einsum_system(kernel, path)
    # At run time an extent of 0 is legal, in planning it is not. The extents of what lies beside a
    # slice change no plan.
    bases = [space.name for space in system.spaces if not space.parts]
    planning = dict.fromkeys(bases, 1)
    planning |= {name: max(1, n) for name, n in zip(bases, wanted.extents, strict=False)}
    options = Options(
        extents=tuple(sorted(planning.items())),
        target=target,
        dtype=wanted.dtype,
        memory_limit=wanted.memory_limit,
        objective="none",
        optimize=path is None and len(kernel.inputs) > 2,
        sums_alone=path is None,
        byte_weight=0.0,  # equal to best_path, so that equal orders are one program
        tune=tune,
    )
    return compile_system(system, options, documents=False).artifact


def _sizes(extents: tuple[int, ...]) -> tuple[int, ...]:
    """Extents by the power of four that they reach."""
    return tuple(n.bit_length() // 2 for n in extents)


@lru_cache(maxsize=4096)
def best_path(kernel: LabelPattern, extents: tuple[int, ...]) -> object:
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

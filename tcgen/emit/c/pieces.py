"""Pieces of a large source, on which compilers work at once, and their levels of optimisation.

``#if TC_IN(n)`` surrounds the functions of piece n. Compiled as one file, the source has all of
them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle

from ...ir.executed import executed_by
from ...ir.iteration_domain import points
from ...ir.loop_analysis import statements
from ...ir.loops import Gemm, Module
from ...thresholds.cpu import CpuThresholds
from ...thresholds.time_model import Machine
from ..printing import symbol

# What all kernels share is mostly written in vectors. Loops that take little time gain nothing from
# more than -O1. With these levels the kernels of CCSD for closed shells compile in half of the time
# that -O3 takes for all (GCC 12.2, Zen 4).
_SHARED, _FAST, _SHORT = "-O2", "-O3", "-O1"


@dataclass(frozen=True, slots=True)
class Pieces:
    """Functions of kernels by piece; the first piece has what all of them share, and phases."""

    levels: tuple[str, ...]
    texts: tuple[str, ...]

    def kernels(self) -> list[str]:
        """The functions of all pieces."""
        return [within(n, text) for n, text in enumerate(self.texts, 1)]


def within(piece: int, text: str, otherwise: str = "") -> str:
    """A text for one piece; the other ones have another text."""
    rest = f"#else\n{otherwise}" if otherwise else ""
    return f"#if TC_IN({piece})\n{text}{rest}#endif\n"


def prototypes(module: Module) -> str:
    """Declarations of all kernels, for the phases."""
    return f"tc_kernel {', '.join(map(symbol, module.kernels))};\n"


def divided(
    module: Module,
    texts: Sequence[str],
    extents: Mapping[str, int],
    machine: Machine,
    thresholds: CpuThresholds,
) -> Pieces | None:
    """The pieces of a module, whose kernels have these texts; None if it is small."""
    lines = [text.count("\n") for text in texts]
    if sum(lines) <= thresholds.piece_lines:
        return None
    little = _with_little_time(module, extents, machine, thresholds.short_percent)
    found: list[tuple[str, str]] = []
    for level in (_FAST, _SHORT):
        held: list[str] = []
        count = 0
        for kernel, text, more in zip(module.kernels, texts, lines, strict=True):
            if (kernel.name in little) != (level == _SHORT):
                continue
            if held and count + more > thresholds.piece_lines:
                found.append((level, "\n".join(held)))
                held, count = [], 0
            held.append(text)
            count += more
        found += [(level, "\n".join(held))] if held else []
    levels, joined = zip(*found, strict=True)
    return Pieces((_SHARED, *levels), joined)


def _with_little_time(
    module: Module, extents: Mapping[str, int], machine: Machine, percent: int
) -> set[str]:
    """Kernels whose loops take at most ``percent`` of the predicted time, all of them together.

    Products are computed by the BLAS, or by the kernel of contractions.
    """
    if not {b.name for s in module.spaces for b in s.bases} <= extents.keys():
        return set()
    loops = dict.fromkeys((k.name for k in module.kernels), 0)
    body = {k.name: cycle([s for s, _ in statements(k.body)]) for k in module.kernels}
    total = 0
    for work in executed_by(module).statements:
        flops = 0 if work.flops is None else work.flops.each * points(work.flops.domain, extents)
        moved = sum(a.each * points(a.domain, extents) for a in (*work.read, *work.written))
        time = machine.picoseconds(flops, (1, 1), moved, 0)
        total += time
        if not isinstance(next(body[work.kernel]), Gemm):
            loops[work.kernel] += time
    little, sum_of_them = set(), 0
    for name, time in sorted(loops.items(), key=lambda item: item[1]):
        sum_of_them += time
        if 100 * sum_of_them > percent * total:
            break
        little.add(name)
    return little

"""Programs of one contraction, for tests of the generated kernel."""

from __future__ import annotations

from typing import Any

from tcgen.compiler.driver import Compilation, compile_system
from tcgen.frontend.einsum import LabelPattern, einsum_system
from tcgen.frontend.spec.reader import read_spec
from tcgen.ir.loop_analysis import statements
from tcgen.ir.loops import Gemm, Module
from tcgen.options import Options
from tcgen.runtime.program import Program
from tcgen.thresholds import Thresholds
from tcgen.thresholds.cpu import CpuThresholds


def contraction_of(module: Module) -> Gemm:
    """The only contraction of a module, inside loops over slices or not."""
    (product,) = (s for s, _ in statements(module.kernels[0].body) if isinstance(s, Gemm))
    return product


def program_for(
    labels: str, extents: dict[str, int], dtype: str, thresholds: CpuThresholds = CpuThresholds()
) -> tuple[Program, Module]:
    """A contraction of two operands as the driver compiles it; one space for each letter."""
    made, _ = _compiled(labels, extents, dtype, thresholds, documents=True)
    return Program(made.artifact), made.module


def contraction_module(
    labels: str, extents: dict[str, int], dtype: str, thresholds: CpuThresholds = CpuThresholds()
) -> tuple[Module, dict[str, int]]:
    """The module of the same program, and its planning extents."""
    made, planning = _compiled(labels, extents, dtype, thresholds, documents=False)
    return made.module, planning


def _compiled(
    labels: str, extents: dict[str, int], dtype: str, thresholds: CpuThresholds, *, documents: bool
) -> tuple[Compilation, dict[str, int]]:
    inputs, output = labels.split("->")
    letters = sorted(set(inputs) - {","})
    numbers = {c: n for n, c in enumerate(letters)}
    kernel = LabelPattern(
        tuple(tuple(numbers[c] for c in text) for text in inputs.split(",")),
        tuple(numbers[c] for c in output),
    )
    system = einsum_system(kernel, None)
    bases = [s.name for s in system.spaces]
    planning = {base: extents[c] for base, c in zip(bases, letters, strict=True)}
    record = Thresholds(cpu=thresholds)
    options = Options(extents=tuple(sorted(planning.items())), dtype=dtype, thresholds=record)
    return compile_system(system, options, documents=documents), planning


def compiled_with(
    text: str, thresholds: CpuThresholds, extents: dict[str, int] | None = None, **options: Any
) -> Program:
    """The program of a spec for the CPU with some thresholds, in the given factoring."""
    planning = tuple(sorted((extents or {}).items()))
    record = Thresholds(cpu=thresholds)
    options = {"optimize": False, **options}
    made = compile_system(read_spec(text), Options(extents=planning, thresholds=record, **options))
    return Program(made.artifact)

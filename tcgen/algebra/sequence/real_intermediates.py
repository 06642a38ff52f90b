"""Intermediates of a complex program that are real, because all that they are made of is real.

Reads a formula sequence of level 2 and makes it with these intermediates declared real. Their
products are then those of real numbers, a quarter of the work in half of the memory.

Before: ``BW[P,n,m] = B[Q,n,m]*W[P,Q]`` complex, where B and W are real. After: the same, real.
"""

from __future__ import annotations

from dataclasses import replace

from ...ir.expr import COMPLEX_BELOW_ZERO, functions
from ...ir.program import Contract, FormulaSequence, Map, Produce, Step
from ...ir.system import with_tensors
from ...ir.tensor import Tensor


def with_real_intermediates(program: FormulaSequence, *, converted: bool) -> FormulaSequence:
    """The sequence of a complex program, with intermediates real where that makes it cheaper.

    ``converted`` tells that a real factor of a complex product is converted for each product that
    reads it, as on a CPU. Then an intermediate that no product makes stays complex where such a
    product reads it.
    """
    real = {t for t in program.intermediates if not t.real}
    while True:
        complex_now = {
            step.out.tensor
            for step in program.steps
            if step.out.tensor in real and not _makes_real(step, real)
        }
        if converted:
            complex_now |= {t for t in real - complex_now if _is_converted(t, program, real)}
        if not complex_now:
            break
        real -= complex_now
    return with_tensors(program, {t: replace(t, real=True) for t in real}) if real else program


def _makes_real(step: Step, real: set[Tensor]) -> bool:
    """True if a step writes real numbers, provided that these intermediates are real."""
    if isinstance(step.op, Produce):
        return False
    called = functions(step.op.expr) if isinstance(step.op, Map) else ()
    return not any(name in COMPLEX_BELOW_ZERO for name in called) and all(
        ref.tensor.real or ref.tensor in real for ref in step.operands
    )


def _is_converted(tensor: Tensor, program: FormulaSequence, real: set[Tensor]) -> bool:
    """True if no product makes an intermediate, and a complex product reads it."""
    if any(s.out.tensor == tensor and isinstance(s.op, Contract) for s in program.steps):
        return False
    return any(
        not (other.tensor.real or other.tensor in real)
        for step in program.steps
        if isinstance(step.op, Contract)
        for ref, other in ((step.op.a, step.op.b), (step.op.b, step.op.a))
        if ref.tensor == tensor
    )

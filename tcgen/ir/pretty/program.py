"""Level 2 as text, one line a step."""

from __future__ import annotations

from typing import assert_never

from ..expr import format_expr
from ..program import Add, Contract, FormulaSequence, Map, Phase, Produce, Step


def pretty_program(program: FormulaSequence) -> str:
    """The steps of a program, one a line."""
    return "\n".join(pretty_step(s) for s in program.steps) + "\n"


def pretty_step(step: Step) -> str:
    """A step as a chemist would write it.

    Example: ``s3: r2[i,j,a,b] += 1/2 * tau[i,j,c,d] * w[a,b,c,d]``
    """
    match step.op:
        case Contract(a, b):
            text = f"{a} * {b}"
        case Add(a):
            text = str(a)
        case Map(expr):
            text = format_expr(expr)
            if step.coeff != 1:
                text = f"({text})"
        case Produce(tensor):
            text = f"generate {tensor.name}"
        case _:
            assert_never(step.op)
    if step.coeff == -1:
        text = f"-{text}"
    elif step.coeff != 1:
        text = f"{step.coeff} * {text}"
    sums = f"{step.reduction.value}({','.join(i.name for i in step.sums)}) " if step.sums else ""
    mark = "   [constant]" if step.phase is Phase.CONSTANT else ""
    return f"s{step.id}: {step.out} {'+=' if step.accumulate else '='} {sums}{text}{mark}"

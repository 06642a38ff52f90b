"""The formula sequence as a chemist would write it, with what each step costs."""

from __future__ import annotations

from collections.abc import Mapping

from ..ir.plan import FusionPlan
from ..ir.program import Add, Contract, Map, Program, pretty_step


def explain_text(plan: FusionPlan, extents: Mapping[str, int]) -> str:
    """Totals, then a line a step: text, cost polynomial, flops at the extents.

    Units: flops, multiply + add = 2.
    """
    program = plan.program
    sizes = ", ".join(f"{n} = {e}" for n, e in sorted(extents.items()))
    naive, chosen = program.naive.value(extents), program.flops().value(extents)
    lines = [
        f"{program.name} at {sizes}" if sizes else program.name,
        f"  naive        {naive:>22,} flops   {program.naive}",
        f"  sequence     {chosen:>22,} flops   {program.flops()}",
        f"    contractions {program.flops(Contract).value(extents):>20,}",
        f"    additions    {program.flops(Add).value(extents):>20,}",
        f"    maps         {program.flops(Map).value(extents):>20,}",
    ]
    if chosen:
        lines.append(f"  ratio        {naive / chosen:>22.4g}")
    lines.append("")
    width = min(100, max((len(pretty_step(s)) for s in program.steps), default=0))
    for step in program.steps:
        shared = _readers(program, step.id)
        note = f"   shared by {shared}" if shared else ""
        flops = step.flops
        lines.append(
            f"{pretty_step(step):<{width}}  {flops.value(extents):>16,} flops  ({flops}){note}"
        )
    lines += ["", "Loop nest", "", plan.pretty().rstrip()]
    return "\n".join(lines) + "\n"


def _readers(program: Program, step: int) -> str:
    """Steps that read an intermediate which several steps share, named at its first producer."""
    tensor = program.steps[step].out.tensor
    readers = program.consumers(tensor)
    if program.producers(tensor)[0].id != step or len(readers) < 2:
        return ""
    return ", ".join(f"s{r.id}" for r in readers)

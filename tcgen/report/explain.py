"""The formula sequence as a chemist would write it, with the cost of each step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..ir.plan import FusionPlan
from ..ir.pretty import pretty
from ..ir.pretty.program import pretty_step
from ..ir.program import Add, Contract, FormulaSequence, Map


def explain_text(
    plan: FusionPlan,
    extents: Mapping[str, int],
    tuning: Sequence[Mapping[str, Any]] | None = None,
) -> str:
    """Totals, then a line a step: text, cost polynomial, flops at the extents.

    Args:
        plan: of the program.
        extents: of the base spaces.
        tuning: products with the variants that measurement chose, if that was asked for.

    Units: flops, multiply + add = 2.
    """
    program = plan.program
    sizes = ", ".join(f"{n} = {e}" for n, e in sorted(extents.items()))
    lines = [f"{program.name} at {sizes}" if sizes else program.name]
    lines += _totals(program, extents)
    lines.append("")
    width = min(100, max((len(pretty_step(s)) for s in program.steps), default=0))
    for step in program.steps:
        flops, packed = step.flops, step.packed_flops
        note = f"   {packed} by symmetry" if packed != flops else ""
        if readers := _readers(program, step.id):
            note += f"   shared by {readers}"
        lines.append(
            f"{pretty_step(step):<{width}}  {flops.value(extents):>16,} flops  ({flops}){note}"
        )
    lines += ["", "Loop nest", "", pretty(plan).rstrip()]
    if tuning is not None:
        lines += ["", "Matrix products, as measured", ""]
        chosen = [line for row in tuning for line in _measured(row)]
        lines += chosen or ["no product has two variants"]
    return "\n".join(lines) + "\n"


def _measured(row: Mapping[str, Any]) -> list[str]:
    same = row["taken"] == row["model"]
    note = "as the model says" if same else f"not {row['model']}, as the model says"
    return [f"{row['product']}   in {row['kernel']}", f"  by {row['taken']}: {note}"]


def _totals(program: FormulaSequence, extents: Mapping[str, int]) -> list[str]:
    """Naive, each term alone, the sequence and its parts, and shared intermediates."""
    naive, alone = program.naive.value(extents), program.each_term.value(extents)
    contractions, packed = program.flops(Contract), program.packed_flops()
    chosen = program.flops().value(extents)
    rows = [
        ("  naive", naive, str(program.naive)),
        ("  each term alone", alone, str(program.each_term)),
        ("  sequence", chosen, str(program.flops())),
        ("    contractions", contractions.value(extents), str(contractions)),
        ("    additions", program.flops(Add).value(extents), ""),
        ("    maps", program.flops(Map).value(extents), ""),
    ]
    if packed != contractions:
        rows.insert(4, ("      by symmetry", packed.value(extents), str(packed)))
    if not alone:
        del rows[1]
    lines = [f"{name:<18}{number:>22,} flops   {poly}".rstrip() for name, number, poly in rows]
    if chosen:
        ratios = [f"naive / sequence {naive / chosen:.4g}"]
        if alone:
            ratios.append(f"each term alone / sequence {alone / chosen:.4g}")
        lines.append(f"  ratios          {', '.join(ratios)}")
    readers = [len(program.consumers(t)) for t in program.intermediates]
    if readers:
        shared = sum(n > 1 for n in readers)
        lines.append(f"  intermediates   {len(readers)}, of which several steps read {shared}")
    lines.extend(f"  left as written {note}" for note in program.notes)
    return lines


def _readers(program: FormulaSequence, step: int) -> str:
    """Steps that read an intermediate which several steps share, named at its first producer."""
    tensor = program.steps[step].out.tensor
    readers = program.consumers(tensor)
    if program.producers(tensor)[0].id != step or len(readers) < 2:
        return ""
    return ", ".join(f"s{r.id}" for r in readers)

"""The formula sequence as a chemist would write it, with the cost of each step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..ir.plan import FusionPlan
from ..ir.pretty import pretty
from ..ir.program import FormulaSequence
from .fusions import fusion_lines
from .numbers import OPERATIONS, counted_flops


def explain_text(plan: FusionPlan, report: Mapping[str, Any]) -> str:
    """Totals, a line for each step (text, flops, bytes, polynomial), fusion graph and loop nest."""
    program, extents = plan.program, report["extents"]
    sizes = ", ".join(f"{n} = {e}" for n, e in extents.items())
    lines = [f"{program.name} at {sizes}" if sizes else program.name]
    if report.get("tf32"):
        lines.append("products of float32 round their factors to TF32, with 11 significant bits")
    lines += _totals(program, report["operations"], extents)
    lines.append("")
    width = min(100, max((len(row["text"]) for row in report["steps"]), default=0))
    for step, row in zip(program.steps, report["steps"], strict=True):
        flops, packed = step.flops, step.packed_flops
        note = f"   {packed} symmetry-unique" if packed != flops else ""
        if readers := _readers(program, step.id):
            note += f"   shared by {readers}"
        lines.append(
            f"{row['text']:<{width}}  {row['flops']:>16,} flops  {row['executed']:>16,} executed"
            f"  {row['executed_bytes']:>16,} bytes  ({flops}){note}"
        )
    lines += ["", "Fusion graph", "", *fusion_lines(plan, report)]
    lines += ["", "Loop nest", "", pretty(plan).rstrip()]
    if report.get("library"):
        lines += ["", "Products by libraries", ""]
        lines += [
            f"{row['product']}   in {row['kernel']}, by {row['library']}: batch {row['batch']:,}, "
            f"m {row['m']:,}, n {row['n']:,}, k {row['k']:,}"
            for row in report["library"]
        ]
    if "tuning" in report:
        lines += ["", "Matrix products, as measured", ""]
        chosen = [line for row in report["tuning"] for line in _measured(row)]
        lines += chosen or ["no product has two variants"]
    return "\n".join(lines) + "\n"


def _measured(row: Mapping[str, Any]) -> list[str]:
    same = row["taken"] == row["model"]
    note = "as the model says" if same else f"not {row['model']}, as the model says"
    return [f"{row['product']}   in {row['kernel']}", f"  by {row['taken']}: {note}"]


def _totals(
    program: FormulaSequence, operations: Mapping[str, Any], extents: Mapping[str, int]
) -> list[str]:
    """Flops of the equations, of single terms, of the chosen steps, and of the code."""
    polys = counted_flops(program)
    unneeded = {key for key in ("each_term", "executed_once") if not operations[key]}
    if polys["contractions_packed"] == polys["contractions"]:
        unneeded.add("contractions_packed")
    lines = []
    for key, name in OPERATIONS.items():
        if key in unneeded:
            continue
        if (count := operations.get(f"{key}_bytes")) is not None:
            text = f"{count:,} bytes"
        else:
            text = "" if key in ("additions", "maps") else polys[key].leading(extents)
        lines.append(f"  {name:<20}{operations[key]:>22,} flops   {text}".rstrip())
    chosen = operations["sequence"]
    if chosen:
        ratios = [f"naive / chosen {operations['naive'] / chosen:.4g}"]
        if operations["each_term"]:
            ratios.append(f"each term alone / chosen {operations['each_term'] / chosen:.4g}")
        lines.append(f"  ratios          {', '.join(ratios)}")
    lines.append(f"  optimality      {operations['optimality']}")
    readers = [len(program.consumers(t)) for t in program.intermediates]
    if readers:
        shared = sum(n > 1 for n in readers)
        lines.append(f"  intermediates   {len(readers)} ({shared} shared by several steps)")
    lines.extend(f"  not optimised   {note}" for note in program.notes)
    return lines


def _readers(program: FormulaSequence, step: int) -> str:
    """Steps that read an intermediate which several steps share, named at its first producer."""
    tensor = program.steps[step].out.tensor
    readers = program.consumers(tensor)
    if program.producers(tensor)[0].id != step or len(readers) < 2:
        return ""
    return ", ".join(f"s{r.id}" for r in readers)

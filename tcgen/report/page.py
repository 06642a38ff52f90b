"""The report as one page of HTML that needs no network, and its figures as files.

The page holds every number as text, at the extents it was made for, and the polynomials, products
and loops behind them, so that its script can evaluate them at others. The peak is the exact one at
the extents of the page; at others the script shows a lower bound and labels it so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from html import escape
from typing import Any

from ..artifact.manifest import Manifest
from ..ir.executed import Executed, StatementWork
from ..ir.plan import ArrayPlan, FusionPlan
from ..ir.pretty import pretty
from ..ir.system import System
from ..ir.tensor import Role, element_bytes
from ..resources import fill, template_text
from ..runtime.part_work import longest_seconds
from ..runtime.report import fusion_text
from .charts import (
    NAMED,
    TIMELINE_FRAME,
    Timeline,
    after_fusion,
    before_fusion,
    colours,
    pareto_svg,
    timeline_svg,
)
from .counts import (
    DomainTable,
    array_product,
    live_bytes,
    polynomial,
    stored_product,
    whole_product,
)
from .fusion_graph import figure_graph, graph_note, graph_svg
from .mathml import mathml
from .numbers import OPERATIONS, counted_flops, never_held
from .svg import as_file
from .units import readable_bytes, readable_seconds

_EXPENSIVE_STEPS = 3  # number of steps in the summary
_SLIDER = 4  # largest value of a slider, in units of the extent at its start

# The script shows the second label at other extents than those of the page.
_PEAK = (
    '<span class="exact">peak of a call, one thread</span>'
    '<span class="bound">lower bound of the peak, only arrays</span>'
)


def figures(plan: FusionPlan, manifest: Manifest, report: Mapping[str, Any]) -> dict[str, str]:
    """Drawings by file name: fusion graph (unless empty), memory before and after, trade-off."""
    graph = graph_svg(plan)
    drawings = {} if graph is None else {"fusion-graph.svg": graph}
    before, after = _drawn(plan, _timelines(plan, manifest), report["extents"])
    drawings |= {"memory-before-fusion.svg": before, "memory-after-fusion.svg": after}
    if report.get("pareto"):
        drawings["time-memory.svg"] = pareto_svg(report["pareto"], report.get("pareto_plan"))
    return {name: as_file(svg) for name, svg in drawings.items()}


def report_html(
    system: System,
    plan: FusionPlan,
    manifest: Manifest,
    executed: Executed,
    report: Mapping[str, Any],
) -> str:
    """The page."""
    extents = report["extents"]
    numbers = _Numbers()
    graph = graph_svg(plan)
    timelines = _timelines(plan, manifest)
    peak = {
        "exact": str(report["memory"]["peak_bytes"]),
        "bound": [polynomial(poly) for poly in live_bytes(manifest)],
    }
    note = graph_note(figure_graph(plan))
    options = report.get("options", {})
    places = {
        "title": escape(system.name),
        "facts": escape(f"{manifest.dtype}, target {manifest.target}"),
        "options": escape(", ".join(f"{k} {v}" for k, v in options.items()) or "the defaults"),
        "glance": _glance(manifest, executed, report, peak, numbers),
        "extents": "".join(_control(plan, name, n) for name, n in sorted(extents.items())),
        "operations": _operations(plan, executed, report, numbers),
        "memory": _memory(plan, manifest, report, peak, numbers),
        "typeset": mathml(system.latex()),
        "equations": escape(_equations(system)),
        "steps": _steps(plan, executed, report, numbers),
        "notes": _notes(report) + _measured(report.get("tuning", [])),
        "graph": graph or "",
        "graph_note": escape(note),
        "fusion": escape(_fusion(report)),
        "nest": escape(report["nest"].rstrip()),
        "timelines": _figures(plan, timelines, extents, numbers),
        "pareto": _pareto(report),
        "pareto_link": (
            '<a href="#pareto">Time-memory trade-off</a> ' if report.get("pareto") else ""
        ),
        "arrays": _arrays(plan, manifest, report, numbers),
    }
    data = {
        "extents": dict(sorted(extents.items())),
        "numbers": numbers.sources,
        "domains": numbers.domains.parts,
        "before": timelines[0].data(),
        "after": timelines[1].data(),
        "frame": asdict(TIMELINE_FRAME),
    }
    return fill(
        "report/page.html",
        **places,
        style=template_text("report/figures.css") + template_text("report/page.css"),
        data=json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"),
        script=template_text("report/page.js"),
    )


def _equations(system: System) -> str:
    """The equations, after the names that the source spells differently."""
    names = [f"{name} is {text} in the source" for name, text in system.written]
    return "\n".join([*names, *([""] if names else []), pretty(system).rstrip()])


def _glance(
    manifest: Manifest,
    executed: Executed,
    report: Mapping[str, Any],
    peak: dict[str, Any],
    numbers: _Numbers,
) -> str:
    """Summary: time, memory, leading cost, and the steps with most of the work.

    Values that the script cannot compute are shown only at the page's own extents.
    """
    counted, memory = report["operations"], report["memory"]
    machine = dict(manifest.machine)
    seconds = longest_seconds(manifest, report["extents"])
    model = f"{machine['flops'] / 1e9:g} Gflop/s and {machine['bandwidth'] / 1e9:g} GB/s"
    phases = [
        numbers.text(
            counted[f"executed_{key}"],
            {
                "work": numbers.domains.flops(
                    [w for w in executed.statements if w.constant == (key == "once")]
                )
            },
        )
        for key in ("per_call", "once")
    ]
    tiles = (
        (
            "time of a call",
            f'<span class="exact">{readable_seconds(seconds)}</span>'
            '<span class="bound">not predicted here</span>',
            f"predicted for {model}",
        ),
        ("memory of a call", numbers.text(memory["peak_bytes"], peak, "bytes"), _PEAK),
        (
            "leading cost",
            f'<span class="cost">{_powers(counted["leading"].removesuffix(" + ..."))}</span>',
            f"{phases[0]} flops per call, {phases[1]} once",
        ),
        ("most of the work", _most_expensive(report), '<a href="#sequence">all steps</a>'),
    )
    return "".join(
        f"<div><dt>{name}</dt><dd>{value}</dd><dd class='soft'>{note}</dd></div>"
        for name, value, note in tiles
    )


def _most_expensive(report: Mapping[str, Any]) -> str:
    """The steps with most of the executed flops, and their part of all flops."""
    whole = max(1, sum(step["executed"] for step in report["steps"]))
    largest = sorted(report["steps"], key=lambda s: -s["executed"])[:_EXPENSIVE_STEPS]
    shown = "<br>".join(
        f"{100 * step['executed'] / whole:.0f} % {escape(_target(step))} "
        f'<span class="soft">s{step["id"]}</span>'
        for step in largest
        if step["executed"]
    )
    return (
        f'<span class="exact">{shown or "none"}</span><span class="bound">see the sequence</span>'
    )


def _target(step: Mapping[str, Any]) -> str:
    """Name of the array that a step makes."""
    name: str = step["text"].partition(": ")[2]
    return re.split(r"[\[ ]", name, maxsplit=1)[0]


def _figures(
    plan: FusionPlan,
    timelines: tuple[Timeline, Timeline],
    extents: Mapping[str, int],
    numbers: _Numbers,
) -> str:
    """Memory before and after fusion; one figure if fusion changes nothing."""
    places = [
        ("before", "<b>Before fusion</b>, every array whole"),
        ("after", "<b>After fusion</b>, as planned"),
    ]
    drawn = _drawn(plan, timelines, extents)
    peaks = [timeline.peak(extents) for timeline in timelines]
    rows = list(zip(places, drawn, peaks, strict=True))
    if timelines[0] == timelines[1]:
        rows = [(("after", "<b>Nothing is fused</b>"), drawn[1], peaks[1])]
    shown = "".join(
        f"<figure><figcaption>{caption}: peak {numbers.held(name, peak)}</figcaption>"
        f'<div class="drawing" id="{name}">{svg}</div></figure>'
        for (name, caption), svg, peak in rows
    )
    own = (
        '<p class="choice"><label><input type="checkbox" id="own"> each drawing on a scale of its '
        "own</label></p>"
    )
    return f'{shown}<ul class="legend">{_legend(plan, timelines)}</ul>{own * (len(rows) > 1)}'


class _Numbers:
    """Numbers of the page; its script reads their ``sources`` and the ``domains`` of these."""

    def __init__(self) -> None:
        self.sources: list[dict[str, Any]] = []
        self.domains = DomainTable()

    def cell(self, value: int, source: dict[str, Any], *, largest: bool = False) -> str:
        """A cell of a table; ``largest``: with a bar that shows its part of the column's sum."""
        text = self.text(value, source)
        bar = ' class="number share"' if largest else ' class="number"'
        return f"<td{bar}>{text}</td>"

    def text(self, value: int, source: dict[str, Any], unit: str = "") -> str:
        """The number with separated thousands, or as readable bytes if ``unit`` is "bytes"."""
        self.sources.append(source)
        shown = readable_bytes(value) if unit == "bytes" else f"{value:,}"
        kind = f' data-unit="{unit}"' if unit else ""
        return (
            f'<span data-number="{len(self.sources) - 1}"{kind} data-value="{value}">{shown}</span>'
        )

    def held(self, drawing: str, value: int) -> str:
        return self.text(value, {"held": drawing}, "bytes")


def _timelines(plan: FusionPlan, manifest: Manifest) -> tuple[Timeline, Timeline]:
    """Memory before and after fusion."""
    return before_fusion(plan.program, manifest.dtype), after_fusion(plan, manifest.dtype)


def _drawn(
    plan: FusionPlan, timelines: tuple[Timeline, Timeline], extents: Mapping[str, int]
) -> tuple[str, str]:
    """Memory before and after fusion as drawings on one scale."""
    before, after = timelines
    colour = colours(timelines, plan.extent_of)
    top = max(1, before.peak(extents), after.peak(extents))
    name = plan.program.name
    return (
        timeline_svg(
            before, extents, colour, title=f"Memory of {name} over its steps, unfused", top=top
        ),
        timeline_svg(
            after, extents, colour, title=f"Memory of {name} over its steps, fused", top=top
        ),
    )


def _control(plan: FusionPlan, name: str, extent: int) -> str:
    space = next(s for s in plan.program.spaces if s.name == name)
    kind = f' <span class="soft">{escape(space.kind)}</span>' if space.kind else ""
    safe, top = escape(name), max(20, _SLIDER * extent)
    return (
        f'<div class="extent"><label for="number-{safe}"><b>{safe}</b>{kind}</label>'
        f'<input type="range" min="1" max="{top}" value="{extent}" data-space="{safe}" '
        f'aria-label="extent of {safe}"><input type="number" id="number-{safe}" min="0" '
        f'step="1" value="{extent}" data-space="{safe}"></div>'
    )


def _row(*cells: str) -> str:
    return f"<tr>{''.join(cells)}</tr>"


def _text(text: str, kind: str = "") -> str:
    shown = escape(text)
    return f'<td class="{kind}">{shown}</td>' if kind else f"<td>{shown}</td>"


def _name(text: str) -> str:
    return f'<th scope="row">{escape(text)}</th>'


def _operations(
    plan: FusionPlan, executed: Executed, report: Mapping[str, Any], numbers: _Numbers
) -> str:
    counted = report["operations"]
    rows = []
    for key in ("executed_per_call", "executed_once"):
        mine = [w for w in executed.statements if w.constant == (key == "executed_once")]
        rows.append(
            _row(
                _name(OPERATIONS[key]),
                numbers.cell(counted[key], {"work": numbers.domains.flops(mine)}),
                numbers.cell(counted[f"{key}_bytes"], {"work": numbers.domains.bytes(mine)}),
            )
        )
    polys = counted_flops(plan.program)
    for key, name in OPERATIONS.items():
        if key in polys:
            cell = numbers.cell(counted[key], {"poly": polynomial(polys[key])})
            part = "of these " if name.startswith(" ") else ""
            rows.append(_row(_name(f"{part}{name.strip()}"), cell, _text("")))
    return "".join(rows)


def _memory(
    plan: FusionPlan,
    manifest: Manifest,
    report: Mapping[str, Any],
    peak: dict[str, Any],
    numbers: _Numbers,
) -> str:
    program, dtype, memory = plan.program, manifest.dtype, report["memory"]
    counted = (Role.TEMP, Role.GENERATED)

    def stored(role: Role) -> dict[str, Any]:
        entries = (t for t in manifest.tensors if t.role is role)
        return {"sum": [[stored_product(t), element_bytes(t, dtype)] for t in entries]}

    whole = [
        [whole_product(t), element_bytes(t, dtype)] for t in program.tensors if t.role in counted
    ]
    planned = [
        [array_product(a), element_bytes(a.tensor, dtype)]
        for a in plan.arrays
        if a.tensor.role in counted
    ]
    rows: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("inputs", "inputs_bytes", stored(Role.INPUT)),
        ("results", "outputs_bytes", stored(Role.OUTPUT)),
        ("intermediates, unfused", "intermediates_unfused_bytes", {"sum": whole}),
        ("intermediates, as planned", "intermediates_static_bytes", {"sum": planned}),
        (_PEAK, "peak_bytes", peak),
    )
    shown = [
        _row(
            f'<th scope="row">{name}</th>',
            numbers.cell(memory[key], source),
            f'<td class="number">{numbers.text(memory[key], source, "bytes")}</td>',
        )
        for name, key, source in rows
    ]
    if memory["limit_bytes"] is not None:
        limit = memory["limit_bytes"]
        shown.append(
            _row(
                _name("limit"),
                _text(f"{limit:,}", "number"),
                _text(readable_bytes(limit), "number"),
            )
        )
    return "".join(shown)


def _steps(
    plan: FusionPlan, executed: Executed, report: Mapping[str, Any], numbers: _Numbers
) -> str:
    rows: list[tuple[int, str]] = []
    work: dict[int | None, list[StatementWork]] = {}
    for statement in executed.statements:
        work.setdefault(statement.step, []).append(statement)
    kernels: dict[int, list[str]] = {}
    for group in plan.groups:
        for visit in group.visits:
            kernels.setdefault(plan.visits[visit].step, []).append(group.name)
    for step, row in zip(plan.program.steps, report["steps"], strict=True):
        text = row["text"].partition(": ")[2]
        mine = work.get(step.id, [])
        shown = _row(
            _name(f"s{step.id}"),
            f"<td><code>{escape(text)}</code></td>",
            _text("once" if row["constant"] else "per call", "soft"),
            f'<td class="cost">{_powers(step.flops.leading(report["extents"]))}</td>',
            numbers.cell(row["flops"], {"poly": polynomial(step.flops)}),
            numbers.cell(row["executed"], {"work": numbers.domains.flops(mine)}, largest=True),
            numbers.cell(row["executed_bytes"], {"work": numbers.domains.bytes(mine)}),
            _text(", ".join(dict.fromkeys(kernels[step.id])), "soft"),
        )
        rows.append((row["executed"], shown))
    return "".join(shown for _, shown in sorted(rows, key=lambda r: -r[0]))


def _notes(report: Mapping[str, Any]) -> str:
    """What is known of the chosen flops, and the terms that a limit of the optimiser excluded."""
    known = f'<p class="soft">Chosen operations: {escape(report["operations"]["optimality"])}.</p>'
    if not report["notes"]:
        return known
    items = "".join(f"<li>{escape(note)}</li>" for note in report["notes"])
    return f'{known}<p class="soft">Not optimised:</p><ul class="soft">{items}</ul>'


def _measured(tuning: list[dict[str, Any]]) -> str:
    """Variants of matrix products that were measured; empty if none was."""
    if not tuning:
        return ""
    items = "".join(
        f"<li>{escape(row['product'])}: {escape(row['taken'])}"
        + ("" if row["taken"] == row["model"] else f" (the model: {escape(row['model'])})")
        + "</li>"
        for row in tuning
    )
    title = "Variants of matrix products chosen by measurement on the machine that compiled this:"
    return f'<p class="soft">{title}</p><ul class="soft">{items}</ul>'


def _powers(text: str) -> str:
    """A polynomial with its powers raised."""
    return re.sub(r"\^(\d+)", r"<sup>\1</sup>", escape(text))


def _arrays(
    plan: FusionPlan, manifest: Manifest, report: Mapping[str, Any], numbers: _Numbers
) -> str:
    stored = {t.name: t for t in manifest.tensors}
    instances: Iterable[ArrayPlan] = (
        array
        for tensor in plan.program.tensors
        for array in plan.instances(tensor) or (ArrayPlan(tensor),)
    )
    rows = []
    for array, row in zip(instances, report["arrays"], strict=True):
        tensor = array.tensor
        item = element_bytes(tensor, manifest.dtype)
        whole = (
            stored_product(stored[tensor.name]) if tensor.name in stored else whole_product(tensor)
        )
        held = [array_product(array) if array.contracted else whole]
        if never_held(array, plan):
            held = []
        fused = ", ".join(
            i if row["tile"][i] == 1 else f"{i} by {row['tile'][i]}" for i in row["fused"]
        )
        indices = ", ".join(row["indices"])
        rows.append(
            _row(
                _name(tensor.name),
                _text(row["kind"]),
                _text(", ".join(s.name for s in tensor.spaces), "letters"),
                _text(indices, "letters"),
                _text(fused, "letters"),
                numbers.cell(row["elements_unfused"], {"sum": [[whole, 1]]}),
                numbers.cell(row["elements"], {"sum": [[part, 1] for part in held]}),
                numbers.cell(row["bytes"], {"sum": [[part, item] for part in held]}, largest=True),
                _text(" ".join(f"s{c}" for c in row["consumers"]), "soft"),
            )
        )
    return "".join(rows)


def _pareto(report: Mapping[str, Any]) -> str:
    """The section of the time-memory trade-off, at the planning extents; nothing without points."""
    points = report.get("pareto")
    if not points:
        return ""
    rows = "".join(
        _row(
            _text(f"{p['limit_bytes']:,}" if p["limit_bytes"] else "none", "number"),
            _text(f"{p['peak_bytes']:,}", "number"),
            _text(f"{p['seconds']:.4g}", "number"),
            _text(", ".join(p["loops"]) or "none"),
            _text(str(p["repeats"]), "number"),
        )
        for p in points
    )
    curve = pareto_svg(points, report.get("pareto_plan"))
    return fill("report/pareto.html", curve=curve, rows=rows)


def _fusion(report: Mapping[str, Any]) -> str:
    text = fusion_text(report, "the extents of planning").replace("_", " ")
    return f"Objective {text}."


def _legend(plan: FusionPlan, timelines: tuple[Timeline, Timeline]) -> str:
    colour = colours(timelines, plan.extent_of)
    named = [(name, kind) for name, kind in colour.items() if kind != "other"]
    if len(colour) > NAMED:
        named.append((f"{len(colour) - NAMED} smaller arrays", "other"))
    return "".join(f'<li><i class="chip {kind}"></i>{escape(n)}</li>' for n, kind in named)

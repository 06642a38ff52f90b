"""The report of a program in Python: a dictionary that prints itself, also in notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from ..cache_files import save_text
from ..errors import ArgumentError, ArtifactError

PAGE = "report.html"  # file of an artifact

# Name and key of each number of bytes.
TOTALS = (
    ("inputs", "inputs_bytes"),
    ("outputs", "outputs_bytes"),
    ("intermediates, unfused", "intermediates_unfused_bytes"),
    ("intermediates, as planned", "intermediates_static_bytes"),
    ("peak (all that a call allocates)", "peak_bytes"),
    ("limit", "limit_bytes"),
)
_LARGEST = 8  # arrays that the text lists


class Report(dict[str, Any]):
    """Costs of a program at its planning extents: the object of ``tcgen report --json``.

    Units: flops (multiply and add are 2), elements, bytes.

    Args:
        numbers: the object.
        page: the report as a page of HTML, or None where its artifact has none.

    Example: ``program.report["memory"]["peak_bytes"]``, ``print(program.report.nest)``
    """

    def __init__(self, numbers: Mapping[str, Any], page: str | None = None) -> None:
        super().__init__(numbers)
        self._page = page

    def html(self) -> str:
        """The report as one page of HTML that needs no network.

        Raises:
            ArtifactError: the program was saved without its page.
        """
        if self._page is None:
            raise ArtifactError(f"{self['spec']} has no {PAGE}: compile the program again")
        return self._page

    def save_html(self, path: str | Path) -> Path:
        """Write the page to a file.

        Raises:
            ArtifactError: the program was saved without its page.
            UnavailableError: the file cannot be written.
        """
        save_text(Path(path), self.html())
        return Path(path)

    @property
    def arrays(self) -> list[dict[str, Any]]:
        """A row for each array: name, kind, indices, fused indices, elements, bytes, readers."""
        rows: list[dict[str, Any]] = self["arrays"]
        return rows

    @property
    def nest(self) -> str:
        """The loop nest as indented text, arrays as they are stored."""
        text: str = self["nest"]
        return text

    def pareto(self) -> list[dict[str, Any]]:
        """Plans of least predicted time for a series of memory limits, most memory first.

        Each has ``limit_bytes``, ``peak_bytes``, ``seconds``, ``loops`` and ``repeats``.

        Raises:
            ArgumentError: the program was not compiled with ``pareto=True``.
        """
        if "pareto" not in self:
            raise ArgumentError(
                f"{self['spec']} was compiled without its curve of time against memory: "
                f"compile it with pareto=True, or --pareto"
            )
        points: list[dict[str, Any]] = self["pareto"]
        return points

    def __repr__(self) -> str:
        rows = [
            *((name, f"{count:,} bytes") for name, count in self._totals()),
            ("executed per call", f"{self['operations']['executed_per_call']:,} flops"),
        ]
        width = max(len(name) for name, _ in rows)
        right = max(len(value) for _, value in rows)
        lines = [self._title(), *(f"  {n:<{width}}  {v:>{right}}" for n, v in rows)]
        largest = ", ".join(f"{a['name']} {a['bytes']:,}" for a in self._largest()[:_LARGEST])
        lines += [f"  {self._fusion()}", f"  largest arrays, bytes: {largest or 'none'}"]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Tables and the loop nest for a notebook, without script and style."""
        totals = "".join(
            f"<tr><td>{escape(name)}</td><td>{count:,}</td></tr>" for name, count in self._totals()
        )
        rows = "".join(
            f"<tr><td>{escape(a['name'])}</td><td>{escape(a['kind'])}</td>"
            f"<td>{escape(','.join(a['indices']))}</td><td>{escape(_fused(a))}</td>"
            f"<td>{a['elements_unfused']:,}</td><td>{a['elements']:,}</td><td>{a['bytes']:,}</td>"
            "</tr>"
            for a in self._largest()
        )
        heads = ("name", "kind", "indices", "fused", "elements unfused", "elements", "bytes")
        head = "".join(f"<th>{h}</th>" for h in heads)
        return (
            f"<p><b>{escape(self._title())}</b><br>{escape(self._fusion())}; "
            f"{self['operations']['executed_per_call']:,} flops executed per call</p>"
            f"<table><thead><tr><th>memory</th><th>bytes</th></tr></thead>"
            f"<tbody>{totals}</tbody></table>"
            f"<details><summary>arrays</summary><table><thead><tr>{head}</tr></thead>"
            f"<tbody>{rows}</tbody></table></details>"
            f"<details><summary>loop nest</summary><pre>{escape(self.nest)}</pre></details>"
        )

    def _title(self) -> str:
        extents = ", ".join(f"{n} = {e}" for n, e in self["extents"].items())
        return f"{self['spec']} at {extents or 'no extents'}, {self['dtype']}, {self['target']}"

    def _totals(self) -> list[tuple[str, int]]:
        memory = self["memory"]
        return [(name, memory[key]) for name, key in TOTALS if memory[key] is not None]

    def _fusion(self) -> str:
        return f"fusion: objective {fusion_text(self)}"

    def _largest(self) -> list[dict[str, Any]]:
        return sorted(self.arrays, key=lambda a: -a["bytes"])


def fusion_text(report: Mapping[str, Any], at: str = "") -> str:
    """The objective and its value, in words.

    The value is that of the search; its extents are named if they differ from the report's.

    Args:
        report: the JSON object.
        at: text that names the extents of the search in any case.
    """
    fusion = report["fusion"]
    if fusion["objective"] == "none":
        return "none: nothing is fused"
    result = f"{fusion['objective']}, model {fusion['model']}, {fusion['status']}"
    if fusion["value"] is None:
        return result
    if not at and fusion["extents"] != report["extents"]:
        at = ", ".join(f"{n} = {e}" for n, e in fusion["extents"].items())
    return f"{result}, value {fusion['value']:,} {fusion['unit']}{at and f' at {at}'}"


def nest_form_text(nest: Mapping[str, Any]) -> str:
    """The form of a nest for a GPU, and its predicted times, in words."""
    names = {"kernel": "as one kernel", "host": "as launches in loops of the host"}
    form, (other,) = names[nest["form"]], (v for k, v in names.items() if k != nest["form"])
    steps = ", ".join(f"s{n}" for n in nest["steps"])
    text = f"{steps}: {nest['seconds']:.3g} s {form}"
    if nest["other_seconds"] is None:
        return f"{text}, predicted; it cannot be one kernel"
    return f"{text}, predicted; {nest['other_seconds']:.3g} s {other}"


def _fused(array: dict[str, Any]) -> str:
    """Fused indices, each with its tile where it is more than one element."""
    tile = array["tile"]
    return ",".join(i if tile[i] == 1 else f"{i}:{tile[i]}" for i in array["fused"])

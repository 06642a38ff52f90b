"""Draw docs/pictures/times.svg, the bars of the README, from the tables of benchmarks/RESULTS.md.

    python docs/make_readme_picture.py

The tests compare the committed picture with the tables.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "RESULTS.md"
PICTURE = ROOT / "docs" / "pictures" / "times.svg"

WIDTH, PANEL_WIDTH, PANEL_HEIGHT = 840, 400, 150
LEFT, TOP, ROW = 92, 52, 19
SCALE = 46.0  # pixels for the time of tcgen

STYLE = """
  .page { fill: #ffffff; }
  text { font-family: system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2328; }
  .title { font-size: 14px; font-weight: 600; }
  .note { font-size: 12px; font-weight: 400; fill: #59636e; }
  .name { font-size: 13px; text-anchor: end; }
  .value { font-size: 13px; }
  .ours { fill: #0969da; }
  .peer { fill: #afb8c1; }
  .strong { font-weight: 600; }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117; }
    text { fill: #e6edf3; }
    .note { fill: #9198a1; }
    .ours { fill: #4493f8; }
    .peer { fill: #565d67; }
  }
"""


@dataclass(frozen=True)
class Panel:
    """Bars of one measurement.

    Attributes:
        title: name of the computation.
        note: molecule or suite, and number of threads.
        bars: time of each program divided by that of tcgen.
    """

    title: str
    note: str
    bars: tuple[tuple[str, float], ...]


def table(text: str, header: str) -> dict[str, list[str]]:
    """Cells of the rows of the table whose header line begins with the given text."""
    lines = text[text.index(f"\n| {header} |") + 1 :].splitlines()
    rows: dict[str, list[str]] = {}
    for line in lines[2:]:
        if not line.startswith("|"):
            break
        name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        rows[name] = cells
    return rows


def slowdowns(
    rows: dict[str, list[str]], column: int, names: dict[str, str]
) -> list[tuple[str, float]]:
    """Times relative to tcgen, from cells such as ``1.05 s, 0.32`` that end with tcgen's ratio."""
    found = []
    for label, row in names.items():
        ratio = float(re.findall(r"\d+\.\d+", rows[row][column])[-1])
        found.append((label, 1 / ratio))
    return found


def einsum_factors(text: str, names: tuple[str, ...]) -> list[tuple[str, float]]:
    """Factors of the run of the TCCG suite that measured all libraries."""
    heading = next(
        line for line in text.splitlines() if line.startswith("| machine | command | NumPy")
    )
    columns = [cell.strip() for cell in heading.strip("|").split("|")]
    row = next(line for line in text.splitlines() if "tccg_1_thread_all_peers.json" in line)
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    return [(name, float(cells[columns.index(name)])) for name in names]


def panels(text: str) -> list[Panel]:
    """The four measurements of the picture."""
    ccsd = slowdowns(
        table(text, "benzene"),
        1,
        {
            "PySCF": "PySCF `cc.CCSD`",
            "ebcc": "ebcc RCCSD",
            "opt_einsum": "ebcc's equations, opt_einsum",
            "NumPy": "ebcc's equations, NumPy",
        },
    )
    common = {"PySCF": "PySCF", "opt_einsum": "opt_einsum", "NumPy": "NumPy"}
    triples = slowdowns(table(text, "energy by"), 2, common)
    mp2 = slowdowns(table(text, "program | closed-shell"), 0, common)
    einsum = einsum_factors(text, ("TBLIS", "opt_einsum", "NumPy"))
    return [
        Panel("CCSD, one iteration", "benzene, cc-pVDZ, 2 threads", tuple(ccsd)),
        Panel("(T) energy", "benzene, cc-pVDZ, 2 threads", tuple(triples)),
        Panel("MP2 energy", "benzene, cc-pVDZ, 1 thread", tuple(mp2)),
        Panel("einsum of two arrays", "48 cases of TCCG, mean, 1 thread", tuple(einsum)),
    ]


def drawn(panel: Panel, x: int, y: int) -> list[str]:
    """Elements of a panel whose upper left corner is at (x, y)."""
    title = f'<tspan class="title">{escape(panel.title)}</tspan>'
    note = f'<tspan class="note" dx="8">{escape(panel.note)}</tspan>'
    made = [f'<text x="{x}" y="{y + 14}">{title}{note}</text>']
    for n, (name, factor) in enumerate(
        (("tcgen", 1.0), *sorted(panel.bars, key=lambda bar: bar[1]))
    ):
        ours = n == 0
        top = y + 26 + n * ROW
        strong = " strong" if ours else ""
        length = round(factor * SCALE, 1)
        value = "1" if ours else f"{factor:.1f}"
        end = x + LEFT + length + 6
        made += [
            f'<text class="name{strong}" x="{x + LEFT - 8}" y="{top + 12}">{name}</text>',
            f'<rect class="{"ours" if ours else "peer"}" x="{x + LEFT}" y="{top}" '
            f'width="{length}" height="14" rx="2"/>',
            f'<text class="value{strong}" x="{end:g}" y="{top + 12}">{value}</text>',
        ]
    return made


def picture(text: str) -> str:
    """The SVG of the tables in the text of RESULTS.md."""
    height = TOP + 2 * PANEL_HEIGHT - 30
    made = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" role="img" aria-label="Times relative to tcgen">',
        f"<style>{STYLE}</style>",
        f'<rect class="page" width="{WIDTH}" height="{height}" rx="8"/>',
        '<text class="title" x="20" y="28">Time relative to tcgen'
        '<tspan class="note" dx="8">shorter is faster; AMD EPYC (Zen 5, AVX-512)</tspan></text>',
    ]
    for n, panel in enumerate(panels(text)):
        made += drawn(panel, 20 + (n % 2) * (PANEL_WIDTH + 10), TOP + (n // 2) * PANEL_HEIGHT)
    return "\n".join([*made, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(picture(RESULTS.read_text(encoding="utf-8")), encoding="utf-8")

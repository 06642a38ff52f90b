"""Equations as MathML, which browsers typeset without a script or a font from the network.

Reads the LaTeX that ``ir.pretty.latex`` writes, and no more of LaTeX than that.
"""

from __future__ import annotations

import re
from html import escape

_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|\d+|\s+|.")
_SYMBOLS = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "zeta": "ζ",
    "eta": "η", "theta": "θ", "kappa": "κ", "lambda": "λ", "mu": "μ", "nu": "ν", "xi": "ξ",
    "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ", "phi": "φ", "chi": "χ", "psi": "ψ",
    "omega": "ω", "Gamma": "Γ", "Delta": "Δ", "Theta": "Θ", "Lambda": "Λ", "Xi": "Ξ",
    "Pi": "Π", "Sigma": "Σ", "Phi": "Φ", "Psi": "Ψ", "Omega": "Ω",
    "infty": "∞", "_": "_",
}  # fmt: skip
_REDUCTIONS = ("\\sum", "\\prod", "\\max", "\\min")  # their indices are under them


def mathml(latex: str) -> str:
    r"""The body of an ``aligned`` environment as one table, a row for each line.

    Example:
        >>> mathml(r"e &= 2 x_{i}")[55:-22]
        '<mtd><mi>e</mi></mtd><mtd><mo>=</mo><mn>2</mn><msub><mi>x</mi><mi>i</mi></msub></mtd>'
    """
    rows = []
    for line in latex.split(" \\\\\n"):
        cells = (f"<mtd>{_Reader(cell).everything()}</mtd>" for cell in line.split("&"))
        rows.append(f"<mtr>{''.join(cells)}</mtr>")
    return f'<math display="block"><mtable displaystyle="true">{"".join(rows)}</mtable></math>'


class _Reader:
    """Reads LaTeX from left to right."""

    def __init__(self, text: str) -> None:
        self.tokens = [t for t in _TOKEN.findall(text.strip()) if not t.isspace()]
        self.place = 0

    def everything(self) -> str:
        return self._until("")

    def _next(self) -> str:
        token = self.tokens[self.place] if self.place < len(self.tokens) else ""
        self.place += 1
        return token

    def _sees(self, token: str) -> bool:
        return self.place < len(self.tokens) and self.tokens[self.place] == token

    def _until(self, end: str) -> str:
        """All up to a token, which is skipped; up to the end of the text where it is empty."""
        parts = []
        while self.place < len(self.tokens) and not (end and self._sees(end)):
            parts.append(self._scripted())
        self.place += 1
        return "".join(parts)

    def _scripted(self) -> str:
        """An atom with its superscript and subscript."""
        wide = any(map(self._sees, _REDUCTIONS))
        base, scripts = self._atom(), {}
        while self._sees("^") or self._sees("_"):
            kind = self._next()
            scripts[kind] = self._row(self._argument())
        match sorted(scripts):
            case ["_"]:
                name = "munder" if wide else "msub"
                return f"<{name}>{base}{scripts['_']}</{name}>"
            case ["^"]:
                return f"<msup>{base}{scripts['^']}</msup>"
            case ["^", "_"]:
                return f"<msubsup>{base}{scripts['_']}{scripts['^']}</msubsup>"
            case _:
                return base

    def _argument(self) -> str:
        if self._sees("{"):
            self.place += 1
            return self._until("}")
        return self._atom()

    def _row(self, inside: str) -> str:
        """One element, since scripts and fractions count them."""
        alone = re.fullmatch(r"<(m[ion])\b[^>]*>[^<]*</\1>", inside)
        return inside if alone else f"<mrow>{inside}</mrow>"

    def _words(self) -> str:
        """The text in braces, as it is."""
        self.place += 1
        start = self.place
        while not self._sees("}"):
            self.place += 1
        self.place += 1
        return escape("".join(self.tokens[start : self.place - 1]).replace("\\_", "_"))

    def _atom(self) -> str:
        token = self._next()
        match token:
            case "{":
                return self._row(self._until("}"))
            case "\\tfrac" | "\\frac":
                above, below = self._row(self._argument()), self._row(self._argument())
                return f"<mfrac>{above}{below}</mfrac>"
            case "\\sqrt":
                return f"<msqrt>{self._argument()}</msqrt>"
            case "\\mathrm":
                return f'<mi mathvariant="normal">{self._words()}</mi>'
            case "\\operatorname":
                return f"<mi>{self._words()}</mi>"
            case "\\left":
                self.place += 1
                inside = self._until("\\right")
                self.place += 1
                return f"<mrow><mo>(</mo>{inside}<mo>)</mo></mrow>"
            case "\\sum":
                return "<mo>∑</mo>"
            case "\\prod":
                return "<mo>∏</mo>"
            case "\\max" | "\\min":
                return f"<mo>{token[1:]}</mo>"
            case "\\quad":
                return '<mspace width="1em"></mspace>'
            case "-":
                return "<mo>−</mo>"  # the sign, not the hyphen
            case _:
                return self._letter(token)

    def _letter(self, token: str) -> str:
        if token.startswith("\\"):
            return f"<mi>{_SYMBOLS[token[1:]]}</mi>"
        if token.isdigit():
            return f"<mn>{token}</mn>"
        return f"<mi>{escape(token)}</mi>" if token.isalpha() else f"<mo>{escape(token)}</mo>"

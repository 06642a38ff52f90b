"""Sphinx configuration: MyST pages, the furo theme, warnings are errors (``sphinx-build -W``)."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

from pygments.lexer import RegexLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, Text
from sphinx.application import Sphinx

from tcgen.ir.expr import ARGUMENT_COUNTS, FUNCTIONS, REAL_FUNCTIONS

project = "tcgen"
author = "The tcgen developers"
copyright = "the tcgen developers"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build", "gallery", "notebooks"]
html_theme = "furo"
html_title = "tcgen"
myst_enable_extensions = ["deflist", "dollarmath"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
napoleon_google_docstring = True
napoleon_custom_sections = ["Shapes", "Units", "Cost", ("Source", "notes_style")]


_BUILTINS = ("delta", *FUNCTIONS, *REAL_FUNCTIONS, *ARGUMENT_COUNTS)


class SpecLexer(RegexLexer):
    """Colours of the .spec language."""

    name = "tcgen spec"
    aliases = ("tcgen",)
    tokens = {  # noqa: RUF012  (Pygments requires a class attribute)
        "root": [
            (r"#.*$", Comment.Single),
            (r"^(space|index|input|output|include)\b", Keyword),
            (
                r"\b(symmetric|antisymmetric|symmetry|hermitian|conserves|packed|stored|blocks|others"
                r"|charge|label|graded|strict|from|constant|volatile|generated|accumulate|real(?!\())\b",
                Keyword.Type,
            ),
            (r"\b(P|S|sum|max|min|prod)(?=\()", Keyword.Pseudo),
            (
                rf"\b({'|'.join(_BUILTINS)})(?=[(\[])",
                Name.Builtin,
            ),
            (r"\b1j\b", Number),
            (r"[A-Za-z_][A-Za-z0-9_]*", Name),
            (r"[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?", Number),
            (r"<->|\*\*|[-+*/=]", Operator),
            (r".|\n", Text),
        ]
    }


def draw_gallery(app: Sphinx) -> None:
    """Run the commands of the gallery in reports.md; the drawings go to the folder gallery."""
    docs = Path(app.srcdir)
    folder = docs / "gallery"
    folder.mkdir(exist_ok=True)
    page = (docs / "reports.md").read_text(encoding="utf-8").replace("\\\n", "")
    gallery = page[page.index("\n## Gallery\n") :]
    for arguments in re.findall(r"^\$ tcgen (.*)$", gallery, re.MULTILINE):
        command = [sys.executable, "-m", "tcgen", *shlex.split(arguments)]
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)


def setup(app: Sphinx) -> None:
    """Register the lexer of the code blocks marked ``tcgen``; the drawings are made first."""
    app.add_lexer("tcgen", SpecLexer)
    app.connect("builder-inited", draw_gallery)

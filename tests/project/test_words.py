"""Words and sentence patterns that stay away: the project writes as NumPy, LLVM and BLIS do."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.paths import ROOT

SOURCES = sorted((ROOT / "tcgen").rglob("*.py"))
PAGES = sorted(p for p in (ROOT / "docs").glob("*.md")) + [
    ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")
]
_PREPOSITIONS = "of|by|in|that|which|whose|from|with|for|as|at|on|to|where|how|what|when|such"

# pattern of a docstring's line: what to write instead
DOCSTRINGS = {
    rf"^\s{{4,}}\*{{0,2}}[a-z_]\w*: (?:{_PREPOSITIONS})\b": "a noun: 'name of the program'",
    r"^\s{4,}[a-z_]\w*: (?:\.\.\.|.*[^.]\.\.\.$)": "a sentence of its own for each attribute",
    r'^"""(?:What|Where|How)\b': "a title that begins with a noun or a verb",
}
# pattern of a trailing comment: what to write instead
TRAILING = {
    rf"  # (?:{_PREPOSITIONS}|in which|for which|is|are|said|none|no)\b(?! of\b)": (
        "a sentence above the block, which says why"
    ),
}
# pattern of any prose (comments, docstrings, messages, pages): what to write instead
PROSE = {
    r"\btruth values?\b": "boolean",
    r"\bwhole numbers?\b": "integer",
    r"\bguests?\b": "arrays of another library",
    r"\b(?:noting|is noted|are noted)\b": "recording, is recorded",
    r"\bfall-backs?\b": "fallback",
    r"\bdearest\b": "most expensive",
    r"\bfirst-level cache\b": "L1 cache",
    r"\bshort way\b": "fast path",
    r"\blong way\b": "slow path",
    r"\blower border\b": "lower bound",
    r"\bis known to \w+ alone\b": "only X imports Y",
    r"\b(?:is|are|was|were|be) no (?!longer|more|less|other|need|way|such)[a-z]+": "is not a",
    r", too\b(?! \w+ly)": "'too' without a comma, or 'also'",
    r"\bthat (?:is|are) (?:there|here)\b|\bthat there (?:is|are)\b": "name the place, or drop it",
}
# pattern of a name in code: the word of the field
NAMES = {
    r"\bkeep_bytes\b|\bkept_files\b": "write_..., list_...",
    r"\bread_asked\b|\w+_asked\b|\basked_\w+": "requested_...",
    r"\b\w*_way\b|\bways\b": "variant, layout, method",
    r"\b_ALONE\b|\b_STARTED\b|\b_HOPELESS\b|\b_WORTH\b": "a name with a meaning and a unit",
    r"\bstored_nowhere\b": "broadcast_labels",
    r"\bdef understand\b": "infer_...",
    r"\bwhy_not\b": "rejection_reason",
}


TABLES = {"docstring": DOCSTRINGS, "trailing": TRAILING, "prose": PROSE, "code": NAMES}
ANY = re.compile("|".join(p for t in TABLES.values() for p in t), re.MULTILINE)


def prose_of(path: Path) -> Iterator[tuple[str, int, str]]:
    """Yield kind (``docstring``, ``trailing``, ``prose`` or ``code``), number and text of lines."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    if path.suffix != ".py":
        yield from (("prose", n, line) for n, line in enumerate(lines, 1))
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        number = token.start[0]
        if token.type == tokenize.COMMENT:
            yield "prose", number, token.string
            if not lines[number - 1].lstrip().startswith("#"):
                yield "trailing", number, "  " + token.string
        elif token.type == tokenize.STRING:
            kind = "docstring" if token.string.startswith('"""') else "prose"
            for offset, line in enumerate(token.string.splitlines()):
                yield "prose", number + offset, line
                if kind == "docstring":
                    yield kind, number + offset, line
        elif token.type == getattr(tokenize, "FSTRING_MIDDLE", -1):
            yield "prose", number, token.string
        elif token.type == tokenize.NAME:
            yield "code", number, token.string


def offences(paths: list[Path]) -> list[str]:
    found = []
    for path in paths:
        if not ANY.search(path.read_text(encoding="utf-8")):
            continue
        for kind, number, line in prose_of(path):
            for pattern, instead in TABLES[kind].items():
                if re.search(pattern, line):
                    place = f"{path.relative_to(ROOT)}:{number}"
                    found.append(f"{place}: {line.strip()!r} ({instead})")
    return found


def test_forbidden_words_stay_away() -> None:
    assert offences(SOURCES) == []
    assert offences(PAGES) == []


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ('"""Compile.\n\nAttributes:\n    name: of the program.\n"""\n', 1),
        ('"""Compile.\n\nAttributes:\n    name: name of the program.\n"""\n', 0),
        ('"""What a program costs."""\n', 1),
        ("x = 1  # that is no input\n", 2),
        ("x = 1  # bytes\n", 0),
        ("def read_asked(): pass\n", 1),
        ('raise ValueError("whole numbers are expected")\n', 1),
        ('raise ValueError("integers are expected")\n', 0),
    ],
)
def test_each_kind_is_found(text: str, count: int, tmp_path: Path) -> None:
    path = tmp_path / "example.py"
    path.write_text(text)
    hits = [p for kind, _, line in prose_of(path) for p in TABLES[kind] if re.search(p, line)]
    assert len(hits) == count

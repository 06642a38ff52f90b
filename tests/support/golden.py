"""Golden files of generated code: what is printed for a module, without the templates before it.

``UPDATE_GOLDEN=1`` writes the files; explain each changed line in the commit.
"""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path

from support.paths import GOLDEN, ROOT

_FIRST_KERNEL = re.compile(r"^(/\* kernel |def tcgen_)", re.MULTILINE)


def head_and_kernels(text: str) -> tuple[str, str]:
    """The text before the first kernel, and the kernels with what follows."""
    first = _FIRST_KERNEL.search(text)
    assert first
    return text[: first.start()], text[first.start() :]


def check_golden(name: str, text: str) -> None:
    """The text is what the golden file holds."""
    path = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert path.is_file(), f"{path} is missing: run with UPDATE_GOLDEN=1"
    assert text == path.read_text(), f"{path} differs: after a look, run with UPDATE_GOLDEN=1"


@cache
def _template_lines(folder: Path) -> re.Pattern[str]:
    """A pattern of all lines of templates, where each placeholder stands for any text."""
    paths = (path for path in sorted(folder.rglob("*.*")) if path.parent.name != "kernels")
    lines = {line for path in paths for line in path.read_text().splitlines()}
    patterns = sorted(re.sub(r"\\\$\w+|\\\$\\\{\w+\\\}", ".*", re.escape(line)) for line in lines)
    return re.compile("|".join(patterns))


def not_of_templates(head: str, folder: str) -> list[str]:
    """Lines of a head that no template of the folder has."""
    known = _template_lines(ROOT / "templates" / folder)
    return [line for line in head.splitlines() if not known.fullmatch(line)]

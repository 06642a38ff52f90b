"""Progress of a compilation: its stages in words, and a bar in terminals and notebooks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, TypeAlias

Progress: TypeAlias = Callable[[str], None]

# The stages in order.
_WORDS = {
    "system": "reading",
    "program": "factoring",
    "plan": "planning memory",
    "module": "making loops",
    "tuned": "measuring products",
    "emit": "writing {code}",
    "report": "writing the report",
    "build": "compiling",
}
_CODE = {"cpu": "C", "cuda": "CUDA", "numpy": "NumPy code"}
_WIDTH = 24  # characters of a bar


def in_words(stage: str, target: str) -> str:
    """A stage in words; other texts, such as those of long searches, are returned unchanged."""
    return _WORDS.get(stage, stage).format(code=_CODE.get(target, target))


@contextmanager
def reported(progress: Progress | bool, target: str) -> Iterator[Progress]:
    """Reports names of stages in words: to a function, to a bar (True), or to nobody (False)."""
    if callable(progress):
        tell = progress
        yield lambda stage: tell(in_words(stage, target))
        return
    show = _display() if progress else None
    if show is None:
        yield lambda _: None
        return
    stages = list(_WORDS)
    done = 0

    def advance(stage: str) -> None:
        nonlocal done
        done = stages.index(stage) if stage in stages else done
        show(done / len(stages), in_words(stage, target))

    try:
        yield advance
    finally:
        show(1.0, "")


def _display() -> Callable[[float, str], None] | None:
    """A function that draws a bar in a notebook or on a terminal; None in a pipe."""
    if "ipykernel" in sys.modules:
        return _notebook()
    return _terminal if sys.stderr.isatty() else None


def _terminal(part: float, text: str) -> None:
    """A line on standard error that the next one replaces; at the end it is removed."""
    filled = round(part * _WIDTH)
    bar = f"[{'#' * filled}{'.' * (_WIDTH - filled)}] {text}" if text else ""
    sys.stderr.write(f"\r\x1b[K{bar}")
    sys.stderr.flush()


def _notebook() -> Callable[[float, str], None]:
    display: Any = import_module("IPython.display")
    handle = display.display(display.HTML(""), display_id=True)

    def show(part: float, text: str) -> None:
        bar = f'<progress value="{part:.3f}"></progress> {text}' if text else ""
        handle.update(display.HTML(bar))

    return show

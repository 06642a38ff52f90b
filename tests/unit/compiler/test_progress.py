"""Progress of a compilation: stages in words, callbacks and bars."""

from __future__ import annotations

import io
import sys

import pytest

import tcgen
from tcgen.compiler.progress import in_words, reported
from tcgen.compiler.target import default_target

SPEC = "space o = 3\nindex i j : o\ninput a[o,o], x[o]\noutput y\ny[i] = a[i,j]*x[j]\n"


def test_a_function_is_told_each_stage_in_words() -> None:
    told: list[str] = []
    tcgen.compile(SPEC, target="numpy", progress=told.append)
    stages = ["reading", "factoring", "planning memory", "making loops", "writing NumPy code"]
    assert [text for text in told if text in stages] == stages


@pytest.mark.skipif(default_target() != "cpu", reason="no C compiler")
def test_c_is_compiled_while_the_progress_is_shown() -> None:
    told: list[str] = []
    tcgen.compile(SPEC, target="cpu", progress=told.append)
    assert told[-1] == "compiling"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_on_a_terminal_is_removed_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    tcgen.compile(SPEC, target="numpy", progress=True)
    lines = terminal.getvalue().split("\r\x1b[K")
    assert any("factoring" in line and "#" in line for line in lines)
    assert lines[-1] == ""


def test_a_pipe_gets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    with reported(True, "cpu") as tell:
        tell("plan")
    assert pipe.getvalue() == ""


def test_texts_of_searches_are_passed_on() -> None:
    assert in_words("factoring: 12 terms", "cpu") == "factoring: 12 terms"

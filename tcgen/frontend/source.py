"""The text of a spec: statements with their places, and the list of problems in it."""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import Diagnostic, Span, SpecError, TcgenError

TOO_DEEP = "this expression is nested too deeply"
KEYWORDS = ("space", "index", "input", "output", "include", "derive")
_DECLARATION = re.compile(r"\s*(?:" + "|".join(KEYWORDS) + r")\s+[A-Za-z_\"]")
_CODE = re.compile(r'(?:[^#"]|"[^"]*"|")*')
_CLOSING = {")": "(", "]": "["}


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement as written, from column 1 of its first line, comments blanked.

    ``line`` is the number of its first line, from 1; ``folder``, for ``include``, is None for a
    text without a file. ``broken``: a bracket is never closed, which is already reported.
    """

    file: str
    line: int
    text: str
    folder: Path | None
    broken: bool = False

    @property
    def keyword(self) -> str | None:
        """The word that starts a declaration; None for an equation."""
        word = re.match(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*(.?)", self.text)
        if word is None or word[1] not in KEYWORDS or word[2] in ("=", "[", "+", "-"):
            return None
        return word[1]

    def span(self, line: int, column: int, length: int) -> Span:
        """Place in the file of a place in ``text``."""
        return Span(self.file, self.line + line - 1, column, max(1, length))


class Problems:
    """Collects diagnostics and reports them all, in the order of the text."""

    def __init__(self) -> None:
        self._lines: dict[str, list[str]] = {}
        self._order: dict[tuple[str, int], int] = {}
        self._found: dict[tuple[Span, str], Diagnostic] = {}
        # Names with a failed declaration, about which further messages are suppressed.
        self.doubtful: set[str] = set()

    @property
    def count(self) -> int:
        """Number of problems so far."""
        return len(self._found)

    def register(self, file: str, lines: list[str]) -> None:
        """Make the lines of a file known, for the source line of a message."""
        self._lines[file] = lines

    def reach(self, statement: Statement) -> None:
        """Record that ``statement`` comes next in the text."""
        for n in range(statement.text.count("\n") + 1):
            self._order.setdefault((statement.file, statement.line + n), len(self._order))

    def add(self, span: Span, message: str, advice: str) -> None:
        """Add a problem; the same message at the same place counts once."""
        lines = self._lines.get(span.file, [])
        source = lines[span.line - 1] if 0 < span.line <= len(lines) else ""
        diagnostic = Diagnostic(span, message, source, advice)
        self._found.setdefault((span, message), diagnostic)

    def raise_any(self) -> None:
        """Raise a SpecError with all problems, in order of appearance, if there are any."""
        if self._found:
            raise SpecError(tuple(sorted(self._found.values(), key=self._place)))

    def _place(self, diagnostic: Diagnostic) -> tuple[float, int, int]:
        span = diagnostic.span
        return (self._order.get((span.file, span.line), math.inf), span.line, span.column)


def split_statements(
    source: str, file: str, folder: Path | None, problems: Problems
) -> tuple[Statement, ...]:
    """Split a text into statements.

    A statement ends at the end of its line, unless a bracket is open or the next line that is
    neither blank nor a comment starts with ``+ - * /``. A bracket that is still open at the start
    of a declaration or of a line with ``=`` was never closed: this is a problem, and the next
    statement starts there.
    """
    lines = source.replace("\r\n", "\n").split("\n")
    problems.register(file, lines)
    code = [match[0] for line in lines if (match := _CODE.match(line))]  # it matches any line
    filled = [n for n, line in enumerate(code) if line.strip()]
    statements: list[Statement] = []
    at = 0
    while at < len(filled):
        start, opened = filled[at], list[tuple[str, int, int]]()
        while True:
            _follow_brackets(code[filled[at]], filled[at], opened)
            following = code[filled[at + 1]] if at + 1 < len(filled) else None
            if following is None or not _continues(following, len(opened)):
                break
            at += 1
        end = filled[at]
        at += 1
        text = "\n".join(code[start : end + 1])
        statements.append(Statement(file, start + 1, text, folder, bool(opened)))
        if opened:
            sign, line, column = opened[-1]
            problems.add(
                Span(file, line + 1, column + 1),
                f"this bracket {sign} is never closed",
                f"write {')' if sign == '(' else ']'} where it ends",
            )
            words = re.findall(r"[A-Za-z_]\w*", text)
            problems.doubtful.update(words if text.split()[0] in KEYWORDS else words[:1])
    return tuple(statements)


def _follow_brackets(line: str, number: int, opened: list[tuple[str, int, int]]) -> None:
    """Update the stack of open brackets; the parser reports a wrong closing one."""
    for column, sign in enumerate(line):
        if sign in "([":
            opened.append((sign, number, column))
        elif sign in _CLOSING and opened and opened[-1][0] == _CLOSING[sign]:
            opened.pop()


def _continues(line: str, depth: int) -> bool:
    """True if ``line`` continues a statement that has ``depth`` open brackets."""
    if depth == 0:
        return line.lstrip()[0] in "+-*/"
    for sign in line:
        depth += (sign in "([") - (sign in ")]")
        if depth == 0:
            break
        if sign == "=":
            return False
    return not _DECLARATION.match(line)


@contextmanager
def refuse_deep_nesting(file: str) -> Iterator[None]:
    """Report a nesting that exceeds Python's recursion limit as an error of the file."""
    try:
        yield
    except RecursionError:
        advice = "name parts of it in equations of their own"
        raise SpecError((Diagnostic(Span(file, 1, 1), TOO_DEEP, advice=advice),)) from None


def read_text(path: Path) -> str:
    """Text of a file; a TcgenError if it is missing, is a folder, or is not text."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"{path} is not text in UTF-8 (byte {error.start}): save it as UTF-8"
        raise TcgenError(message) from None
    except OSError as error:
        reason = error.strerror or "it cannot be opened"
        raise TcgenError(f"cannot read {path}: {reason}; check the path") from None
    except ValueError as error:
        raise TcgenError(f"cannot read {str(path)!r}: {error}; check the path") from None


def load_json(text: str) -> Any:
    """The value of a JSON text; a ValueError also refuses a key that an object repeats."""
    return json.loads(text, object_pairs_hook=_distinct_keys)


def _distinct_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"an object has the key {key!r:.40} twice: remove one of them")
        found[key] = value
    return found


class Kind(NamedTuple):
    """The types that the value of a key may have, and words for them; any type without types."""

    words: str
    types: tuple[type, ...] = ()


def faults_of_keys(
    given: Mapping[str, Any], level: str, keys: Mapping[str, Mapping[str, Kind]]
) -> Iterator[tuple[str, str]]:
    """Message and advice for each key that a level does not have, or whose value is of no kind.

    Example:
        >>> text, terms = Kind("a text", (str,)), Kind("a list", (list,))
        >>> keys = {"target": {"out": text, "terms": terms}, "term": {"perms": terms}}
        >>> list(faults_of_keys({"perm": [], "out": "e"}, "term", keys))[0]
        ("a term has no key 'perm'", "did you mean 'perms'?")
        >>> list(faults_of_keys({"out": "e"}, "term", keys))[0][1]
        "'out' is a key of a target; those of a term are perms"
        >>> list(faults_of_keys({"out": 0}, "target", keys))
        [('out is 0', 'write a text')]
    """
    known = keys[level]
    for key, value in given.items():
        if key in known:
            words, types = known[key]
            if types and type(value) not in types:
                yield f"{key} is {value!r:.40}", f"write {words}"
            continue
        close = difflib.get_close_matches(key, known, 1, 0.6)
        others = [f"'{key}' is a key of a {other}; " for other in keys if key in keys[other]]
        advice = f"{(others or [''])[0]}those of a {level} are {', '.join(known)}"
        if close and not others:
            advice = f"did you mean '{close[0]}'?"
        yield f"a {level} has no key {key!r:.40}", advice

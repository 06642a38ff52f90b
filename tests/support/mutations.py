"""Mutants of valid inputs, the same ones for the same seed, and an alarm for slow readers."""

from __future__ import annotations

import json
import random
import re
import signal
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

SECONDS = 5.0  # of processor time, for one input

# What breaks readers: numbers without measure, nesting, foreign characters, half of a bracket.
NASTY = (
    *("(", ")", "[", "]", "{", "}", "<", ">", ",", ",,", ":", ";", "=", "+=", "->", "||", "..."),
    *("+", "-", "*", "**", "/", "/0", "_", "^", "'", '"', "\\", "#", "\n", "\t", " " * 50, "\0"),
    *("é", "ξ", "−", "²", "١", "\u2028", "\ud800", "\U0001d4c1"),
    *(
        "0",
        "1/0",
        "-1",
        "0.1",
        "1e400",
        "1e-400",
        "1e999999999",
        "nan",
        "inf",
        "9" * 400,
        "9" * 5000,
    ),
    *("(" * 60, "[" * 60, "[[" * 2000, "-" * 60, "x" * 300, "P(i,j) " * 12, "true", "null"),
)


def mutant(seeds: Sequence[str], tokens: Sequence[str], seed: object) -> str:
    """A text made from one of the valid ones by one to four changes."""
    draw = random.Random(str(seed))
    text = draw.choice(seeds)
    for _ in range(draw.choice((1, 1, 2, 4))):
        text = _changed(text, draw.choice(seeds), tokens, draw)
    return text


def _changed(text: str, other: str, tokens: Sequence[str], draw: random.Random) -> str:
    first, last = sorted(draw.randint(0, len(text)) for _ in range(2))
    last = min(last, first + draw.choice((1, 1, 3, 10, 40)))
    before, part, after = text[:first], text[first:last], text[last:]
    words = list(re.finditer(r"\w+", text))
    match draw.randrange(9):
        case 7 | 8 if words:  # one word in place of another: these mutants are often valid
            old, new = draw.choice(words), draw.choice(words)[0]
            return text[: old.start()] + new + text[old.end() :]
        case 0:
            return before + after
        case 1:
            return before + part * draw.choice((2, 2, 3, 20)) + after
        case 2:
            place = draw.randint(0, len(after))
            return before + after[:place] + part + after[place:]
        case 3:
            start = draw.randint(0, len(other))
            return before + other[start : start + draw.choice((1, 5, 20))] + after
        case 4:
            return before + draw.choice(tokens) + part + after
        case 5:
            return before + draw.choice(NASTY) + after
        case _:
            return before + draw.choice(tokens) + after


def mutant_data(seeds: Sequence[Any], atoms: Sequence[Any], seed: object) -> Any:
    """Lists and dictionaries made from one of the valid ones by one to four changes."""
    draw = random.Random(str(seed))
    data = json.loads(json.dumps(draw.choice(seeds)))
    for _ in range(draw.randint(1, 4)):
        data = _changed_data(data, atoms, draw)
    return data


def _changed_data(data: Any, atoms: Sequence[Any], draw: random.Random) -> Any:
    """The data with one part replaced, removed, repeated or nested."""
    if isinstance(data, list | dict) and data and draw.random() < 0.85:
        key = draw.choice(list(data) if isinstance(data, dict) else range(len(data)))
        made = data.copy()
        match draw.randrange(8):
            case 0:
                del made[key]
            case 1 if isinstance(data, list):
                made.insert(key, data[draw.randrange(len(data))])
            case 1 | 2 if isinstance(data, dict):
                made[draw.choice([a for a in atoms if isinstance(a, str)])] = made.pop(key)
            case _:
                made[key] = _changed_data(data[key], atoms, draw)
        return made
    match draw.randrange(5):
        case 0:
            return [data]
        case 1:
            return {"x": data}
        case 2 if isinstance(data, str):
            return _changed(data, data, [a for a in atoms if isinstance(a, str)], draw)
        case _:
            return draw.choice(atoms)


def words(text: str) -> tuple[str, ...]:
    """The words of a text, as tokens."""
    return tuple(text.split())


class TooSlowError(BaseException):
    """No reader catches it."""


@contextmanager
def alarm(seconds: float = SECONDS) -> Generator[None, None, None]:
    """Stop what takes longer: processor time, since other tests run beside this one."""

    def stop(*_: object) -> None:
        raise TooSlowError(f"took more than {seconds} s")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)

"""Ranges and tensors of a term list."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias

Wrong: TypeAlias = Callable[[str, str], None]
"""Receives a problem: message and advice."""

_DEFAULT_LETTERS = {"o": "ijklmno", "v": "abcdefgh", "x": "PQRSTUVX", "q": "Ww"}


def read_declared(data: dict[str, Any], wrong: Wrong) -> dict[str, dict[str, Any]]:
    """The valid entries of "tensors"."""
    declared = data.get("tensors", {})
    if not isinstance(declared, dict):
        wrong("tensors is not an object", 'write "tensors": {"t1": {"axes": ["o", "v"]}}')
        return {}
    valid: dict[str, dict[str, Any]] = {}
    for name, entry in declared.items():
        if isinstance(entry, dict):
            valid[name] = entry
        else:
            wrong(f"tensor {name} is not an object", 'write {"axes": ["o", "v"]}')
    return valid


def read_ranges(data: dict[str, Any], wrong: Wrong) -> dict[str, str]:
    """Letters of each range: those given, then unused ones of the convention."""
    ranges: dict[str, str] = {}
    given = data.get("ranges", {})
    if not isinstance(given, dict):
        wrong("ranges is not an object", 'write "ranges": {"o": ["i", "j"], "v": ["a", "b"]}')
        given = {}
    for name, letters in given.items():
        if isinstance(letters, dict):
            letters = re.sub(r"\(.*?\)", "", str(letters.get("letters", ""))).split()
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            wrong(f"range {name!r} is not a name", 'write {"o": ["i", "j"]}')
        elif isinstance(letters, list) and all(isinstance(x, str) and x for x in letters):
            ranges[name] = "".join(x[0] for x in letters)
            for other, text in list(ranges.items())[:-1]:
                for letter in sorted(set(text) & set(ranges[name])):
                    wrong(
                        f"letter {letter} is in the ranges {other} and {name}",
                        "put it in one range only",
                    )
        else:
            wrong(f"range {name} is not a list of letters", 'write {"o": ["i", "j"]}')
    taken = set("".join(ranges.values()))
    for name, text in _DEFAULT_LETTERS.items():
        ranges[name] = ranges.get(name, "") + "".join(x for x in text if x not in taken)
    return ranges

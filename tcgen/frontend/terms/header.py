"""What a term list says before its targets: ranges and tensors; and its exact coefficients."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias

Wrong: TypeAlias = Callable[[str, str], None]
"""Receives a problem: message and advice."""

_DEFAULT_LETTERS = {"o": "ijklmno", "v": "abcdefgh", "x": "PQRSTUVX", "q": "Ww"}


def read_declared(data: dict[str, Any], wrong: Wrong) -> dict[str, dict[str, Any]]:
    """Entries of "tensors", those that are usable."""
    declared = data.get("tensors", {})
    if not isinstance(declared, dict):
        wrong("tensors is no object", '"tensors": {"t1": {"axes": ["o", "v"]}}')
        return {}
    found: dict[str, dict[str, Any]] = {}
    for name, entry in declared.items():
        if isinstance(entry, dict):
            found[name] = entry
        else:
            wrong(f"tensor {name} is no object", 'write {"axes": ["o", "v"]}')
    return found


def read_ranges(data: dict[str, Any], wrong: Wrong) -> dict[str, str]:
    """Letters of each range: those given, then those of the convention that are left."""
    ranges: dict[str, str] = {}
    given = data.get("ranges", {})
    if not isinstance(given, dict):
        wrong("ranges is no object", '"ranges": {"o": ["i", "j"], "v": ["a", "b"]}')
        given = {}
    for name, letters in given.items():
        if isinstance(letters, dict):
            letters = re.sub(r"\(.*?\)", "", str(letters.get("letters", ""))).split()
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            wrong(f"range {name!r} is no name", 'write {"o": ["i", "j"]}')
        elif isinstance(letters, list) and all(isinstance(x, str) and x for x in letters):
            ranges[name] = "".join(x[0] for x in letters)
            for other, text in list(ranges.items())[:-1]:
                for letter in sorted(set(text) & set(ranges[name])):
                    wrong(f"letter {letter} is in the ranges {other} and {name}", "name it in one")
        else:
            wrong(f"range {name} is no list of letters", 'write {"o": ["i", "j"]}')
    taken = set("".join(ranges.values()))
    for name, text in _DEFAULT_LETTERS.items():
        ranges[name] = ranges.get(name, "") + "".join(x for x in text if x not in taken)
    return ranges

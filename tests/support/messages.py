"""What a message must mention: names, numbers and advice, in any order and in any sentence.

The facts of a message stand in one text, separated by blanks; a bracket or a quotation is one fact
with what it holds. ``mentions("t[i,a] (2, 3) float64")`` is a regular expression for ``match=``
that finds texts with these three.
"""

from __future__ import annotations

import re

_FACT = re.compile(r"""(?:\[[^\]]*\]|\([^)]*\)|\{[^}]*\}|'[^']*'|"[^"]*"|[^\s\[\](){}])+|\S""")


def _pattern(fact: str) -> str:
    """A whole word where it begins or ends with one, in one line or broken across two."""
    words = r"\s+".join(re.escape(word) for word in fact.split())
    begin = r"(?<!\w)" if re.match(r"\w", fact) else ""
    end = r"(?!\w)" if re.search(r"\w\Z", fact) else ""
    return begin + words + end


def mentions(facts: str) -> str:
    """A regular expression that finds each of the facts, in any order."""
    return r"(?s)\A" + "".join(f"(?=.*{_pattern(fact)})" for fact in _FACT.findall(facts))


def says(text: str, facts: str) -> bool:
    """Whether a text mentions each of the facts."""
    return re.search(mentions(facts), text) is not None

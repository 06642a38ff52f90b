r"""Identifiers for the names of SymPy's symbols: ``N_{occ}`` is N_occ, ``\xi`` is xi.

The levels take letters, digits and _ alone, since names are printed into programs. What no
mathematician writes, such as a quotation mark or the end of a line, is refused.
"""

from __future__ import annotations

import re
import unicodedata

from ...errors import SpecError
from .conventions import refuse

_LONGEST = 100
_WORDS = {
    "'": "_prime",
    "\u2032": "_prime",
    "\u2033": "_prime_prime",
    "*": "_star",
    "+": "_plus",
    "-": "_minus",
    "\u2020": "_dagger",
    "~": "_tilde",
}
_GREEK = re.compile(r"GREEK (?:SMALL|CAPITAL) LETTER ([A-Z]+)")
_PLAIN = " _{}()^,$\\"


def identifier_of(name: str) -> str:
    r"""The identifier for a name as mathematicians write it.

    Raises:
        SpecError: it has other characters, or no letter at its start.

    Example:
        >>> [identifier_of(x) for x in ("N_{occ}", r"\xi", "x'", "t^{(1)}", "\u03b7\u2081", "x1")]
        ['N_occ', 'xi', 'x_prime', 't_1', 'eta1', 'x1']
    """
    made = "".join(map(_character, unicodedata.normalize("NFKC", name))) if name else ""
    made = re.sub("__+", "_", made).strip("_")
    if not re.fullmatch("[A-Za-z][A-Za-z0-9_]*", made) or len(made) > _LONGEST:
        raise not_a_name(name)
    return made


def not_a_name(name: object) -> SpecError:
    """The error of what cannot be the name of a tensor, an index or a range."""
    message = f"{name!r:.80} cannot be a name"
    return refuse("<sympy>", 1, "", message, "use letters, digits and _, for example N_occ")


def _character(character: str) -> str:
    """A part of an identifier; what is no part of a name is kept, and refused."""
    if character.isascii() and character.isalnum():
        return character
    if character in _PLAIN:
        return "_"
    greek = _GREEK.fullmatch(unicodedata.name(character, ""))
    if greek:
        word = greek[1].lower()
        return word if character.islower() else word.capitalize()
    return _WORDS.get(character, character)

"""Front ends: they read equations from text, term lists and other programs into a System.

``spec`` reads the .spec language, ``terms`` JSON term lists, ``importers`` the output of other
generators, ``derivation`` an ansatz, ``einsum`` subscripts; ``files`` chooses among them by the
suffix of a file. They share ``source`` (texts and problems in them), ``exact_numbers``, ``blocks``
(tensors given by blocks) and ``assemble`` (permutations of terms, equations in order of
definition). Each front end is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .files import read as read
    from .files import read_printed as read_printed
    from .spec.reader import read_spec as read_spec
    from .spec.reader import read_spec_file as read_spec_file
    from .spec.writer import spec_text as spec_text
    from .terms import read_terms as read_terms
    from .terms import read_terms_file as read_terms_file

_HOME = {
    "read": "files",
    "read_printed": "files",
    "read_spec": "spec.reader",
    "read_spec_file": "spec.reader",
    "read_terms": "terms",
    "read_terms_file": "terms",
    "spec_text": "spec.writer",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'tcgen.frontend' has no attribute {name!r}")
    return getattr(import_module(f".{_HOME[name]}", __name__), name)

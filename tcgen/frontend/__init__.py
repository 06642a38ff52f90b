"""Front ends: text, term lists and other sources of equations to a System."""

from __future__ import annotations

from pathlib import Path

from ..errors import TcgenError
from ..ir.system import System
from .spec import read_spec, read_spec_file
from .terms import read_terms, read_terms_file

__all__ = ["read", "read_spec", "read_spec_file", "read_terms", "read_terms_file"]


def read(path: Path) -> System:
    """The system of a file: a spec (.spec) or a term list (.json).

    Args:
        path: of the file; its suffix says which it is.

    Raises:
        SpecError: what is wrong in the file.
        TcgenError: the file cannot be read or has another suffix.
    """
    match path.suffix:
        case ".spec":
            return read_spec_file(path)
        case ".json":
            return read_terms_file(path)
        case suffix:
            found = f"the suffix {suffix}" if suffix else "no suffix"
            raise TcgenError(f"{path} has {found}: tcgen reads .spec files and .json term lists")

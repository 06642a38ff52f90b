"""Chooses the front end that reads a file of equations."""

from __future__ import annotations

from pathlib import Path

from ..errors import TcgenError
from ..ir.system import System
from ..resources import shipped_specs, spec_path
from .assemble import identifier
from .importers.pdaggerq import from_pdaggerq
from .importers.wicked import from_wicked
from .source import read_text
from .spec.reader import read_spec_file
from .terms import read_terms_file


def read(path: Path) -> System:
    """The system of a spec (.spec), a term list (.json), or output of pdaggerq or wick&d.

    The contents of a .txt or .jsonl file show which of the two wrote it. A name without suffix is a
    shipped spec unless it is a file.

    Raises:
        SpecError: with all errors in the file.
        TcgenError: the file cannot be read or has another suffix.
    """
    match path.suffix:
        case ".spec":
            return read_spec_file(path)
        case ".json":
            return read_terms_file(path)
        case ".txt" | ".jsonl":
            return read_printed(read_text(path), str(path))
        case "" if not path.exists() and str(path) in shipped_specs():
            return read_spec_file(spec_path(str(path)))
        case _ if not path.exists():
            raise TcgenError(
                f"cannot read {path}: No such file or directory; check the path (tcgen list shows "
                f"the names of shipped specs)"
            )
        case _ if path.is_dir():
            raise TcgenError(
                f"{path} is a folder, but holds no compiled program (no manifest.json): give the "
                "folder that tcgen compile wrote, or a .spec file"
            )
        case suffix:
            described = f"the suffix {suffix}" if suffix else "no suffix"
            raise TcgenError(
                f"{path} has {described}: tcgen reads .spec files, .json term lists and "
                ".txt or .jsonl files with the output of pdaggerq or wick&d"
            )


def read_printed(text: str, filename: str, *, real: bool = False) -> System:
    """The system of equations that pdaggerq (lists or JSON lines) or wick&d printed.

    The stem of ``filename`` names it. If orbitals are ``real``, bra and ket of f and v may be
    exchanged.
    """
    name = identifier(Path(filename).stem)
    if "^{" in text:
        return from_wicked(text, name=name, real=real, filename=filename)
    return from_pdaggerq(text, name=name, real=real, filename=filename)

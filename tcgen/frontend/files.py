"""Chooses the front end that reads a file of equations."""

from __future__ import annotations

from pathlib import Path

from ..errors import TcgenError
from ..ir.system import System
from ..resources import find_spec, similar_specs
from .assemble import identifier
from .einsum import is_subscripts, subscripts_system
from .importers.pdaggerq import from_pdaggerq
from .importers.wicked import from_wicked
from .source import read_text
from .spec.reader import read_spec_file
from .terms import read_terms_file


def read(path: Path) -> System:
    """The system of a spec (.spec), a term list (.json), or output of pdaggerq or wick&d.

    The contents of a .txt or .jsonl file show which of the two wrote it. What is not a file may be
    the name of a shipped spec, or einsum subscripts.

    Raises:
        SpecError: with all errors in the file.
        TcgenError: the file cannot be read or has another suffix.
    """
    if is_subscripts(str(path)):
        return subscripts_system(str(path))
    if not path.exists():
        return _read_shipped(str(path))
    match path.suffix:
        case ".spec":
            return read_spec_file(path)
        case ".json":
            return read_terms_file(path)
        case ".txt" | ".jsonl":
            return read_printed(read_text(path), str(path))
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


def _read_shipped(name: str) -> System:
    if shipped := find_spec(name):
        return read_spec_file(shipped)
    near = similar_specs(Path(name).name)
    meant = f"; shipped specs of similar names: {', '.join(near)}" if near else ""
    raise TcgenError(
        f"cannot read {name}: No such file or directory{meant} (tcgen list shows all shipped "
        f"specs; tcgen derive writes the spec of an ansatz)"
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

"""Files of equations: which front end reads them."""

from __future__ import annotations

from pathlib import Path

from ..errors import TcgenError
from ..ir.system import System
from .assemble import identifier
from .importers.pdaggerq import from_pdaggerq
from .importers.wicked import from_wicked
from .source import read_text
from .spec.reader import read_spec_file
from .terms.reader import read_terms_file


def read(path: Path) -> System:
    """The system of a file.

    Args:
        path: of a spec (.spec), a term list (.json), or what pdaggerq or wick&d printed (.txt,
            .jsonl; what stands in it says which of the two).

    Raises:
        SpecError: what is wrong in the file.
        TcgenError: the file cannot be read or has another suffix.
    """
    match path.suffix:
        case ".spec":
            return read_spec_file(path)
        case ".json":
            return read_terms_file(path)
        case ".txt" | ".jsonl":
            return read_printed(read_text(path), str(path))
        case _ if not path.exists():
            raise TcgenError(f"cannot read {path}: No such file or directory; check the path")
        case _ if path.is_dir():
            raise TcgenError(
                f"{path} is a folder, but holds no compiled program (no manifest.json): give the "
                "folder that tcgen compile wrote, or a .spec file"
            )
        case suffix:
            found = f"the suffix {suffix}" if suffix else "no suffix"
            raise TcgenError(
                f"{path} has {found}: tcgen reads .spec files, .json term lists and "
                ".txt or .jsonl files with the output of pdaggerq or wick&d"
            )


def read_printed(text: str, filename: str, *, real: bool = False) -> System:
    """The system of equations that pdaggerq (lists or JSON lines) or wick&d printed.

    Args:
        text: of the file.
        filename: for messages; its stem names the system.
        real: orbitals are real, so that bra and ket of f and v may be exchanged.

    Raises:
        SpecError: what cannot be understood.
    """
    name = identifier(Path(filename).stem)
    if "^{" in text:
        return from_wicked(text, name=name, real=real, filename=filename)
    return from_pdaggerq(text, name=name, real=real, filename=filename)

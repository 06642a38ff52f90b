"""``tcgen.library``: programs of some specs or artifacts as a library for C, C++ and Fortran."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any, SupportsIndex

from ..artifact.folder import Artifact
from ..artifact.whole_folder import refuse_other, write_folder
from ..compiler.api import planning_record, read_program, signature_with
from ..compiler.documents import read_artifact_system
from ..compiler.driver import Compilation, compile_system
from ..compiler.target import for_machine
from ..emit.scope import CUDA_RESERVED
from ..errors import ArgumentError, ExtentError
from ..ir.system import System
from ..options import Options, Planning, changed_options, parse_bytes, parse_extents
from .fortran_order import in_fortran_order
from .processors import read_archs
from .sources import named
from .tree import LIBRARY, library_files

_LONGEST = 20  # characters of a library's name or prefix
_WORD = re.compile(rf"[A-Za-z]\w{{0,{_LONGEST - 1}}}", re.ASCII)
# Headers of C, libraries and modules of compilers, and targets of CMake: a library that has their
# name stands in front of them.
_FOREIGN = (
    "assert ctype errno fenv inttypes iso646 limits locale math setjmp signal stdalign stdarg "
    "stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string tgmath threads time uchar "
    "wchar wctype omp pthread c m dl iso_c_binding iso_fortran_env all clean help install package "
    "test"
)


def library(
    sources: Sequence[object],
    path: str | os.PathLike[str],
    *,
    name: str | None = None,
    prefix: str | None = None,
    archs: str | Sequence[str] = "native",
    fortran_order: bool = False,
    extents: Mapping[str, SupportsIndex] | None = None,
    dtype: str = "float64",
    memory_limit: str | SupportsIndex | None = None,
    planning: Planning | None = None,
    **shorthand: Any,
) -> Path:
    """Write a source tree of C with several programs, which CMake and a C compiler build.

    Programs that call it need neither Python nor tcgen. Equal sources and options give equal files.

    Args:
        sources: specs as :func:`tcgen.compile` takes them, and folders of ``tcgen compile``.
        path: folder to write; an older library in it is replaced as a whole, other files stay.
        name: name of the library, its headers and its Fortran module; the folder's if it is None.
        prefix: beginning of all symbols in C; None for the name and ``_``.
        archs: values of -march for which kernels are built: ``native`` for the machine that builds
            the library, one of Arm, or levels such as ``x86-64-v3,x86-64-v4``, chosen at run time.
        fortran_order: store arrays so that Fortran has ``t2(i,j,a,b)`` for ``t2[i,j,a,b]``; else
            arrays are in C order, and their axes are reversed in Fortran.
        extents: planning extents by space; each spec takes those of its spaces.
        dtype: "float64", "float32" or "complex128".
        memory_limit: bytes, or text such as "8GiB", of the workspace of each program.
        planning: options of factoring and fusion; see :class:`tcgen.Planning`.
        shorthand: fields of ``planning`` as keywords.

    Returns:
        The folder.

    Raises:
        ArgumentError: a name cannot be used, a program cannot be in a library, or the folder holds
            something else.
        TcgenError: as :func:`tcgen.compile`.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     made = library(["mp2_df"], f"{folder}/mp", extents={"o": 3, "v": 5, "x": 9})
        ...     print(sorted(p.name for p in (made / "include").iterdir()))
        ['mp.h', 'mp.hpp']
    """
    plan = planning_record(planning, shorthand, "library", library.__annotations__)
    options = Options(
        extents=parse_extents(extents),
        target="cpu",
        dtype=dtype,
        memory_limit=None if memory_limit is None else parse_bytes(memory_limit),
        **{f.name: getattr(for_machine(plan, "cpu"), f.name) for f in fields(Planning)},
    )
    single = isinstance(sources, str | bytes | os.PathLike | System)
    if single or not isinstance(sources, Iterable):
        raise ArgumentError(f"sources={sources!r:.80} is not a list: write [{sources!r:.80}]")
    if not isinstance(path, str | os.PathLike):
        raise ArgumentError(f"path={path!r:.80} is not a path: give the folder to write")
    if not isinstance(fortran_order, bool):
        raise ArgumentError(f"fortran_order={fortran_order!r:.80} is neither True nor False")
    return make_library(
        sources,
        Path(path),
        options,
        _compiled,
        name=name,
        prefix=prefix,
        archs=archs,
        fortran_order=fortran_order,
        warn=_warn,
    )


_warn = partial(warnings.warn, stacklevel=4)  # the warning names the line that calls library


def _compiled(system: System, options: Options) -> Compilation:
    result = compile_system(system, options)
    for text in result.warnings:
        warnings.warn(text, stacklevel=4)
    return result


library.__signature__ = signature_with(library, Planning)  # type: ignore[attr-defined]


def make_library(
    sources: Sequence[object],
    folder: Path,
    options: Options,
    compiled: Callable[[System, Options], Compilation],
    *,
    name: str | None,
    prefix: str | None,
    archs: str | Sequence[str],
    fortran_order: bool,
    warn: Callable[[str], None],
) -> Path:
    """:func:`library` with the options of all specs, and functions that compile and that warn.

    ``compiled`` tells the warnings of a compilation, ``warn`` those of equations.
    """
    name = re.sub(r"\W", "_", folder.resolve().name) if name is None else name
    prefix = f"{name}_" if prefix is None else prefix
    for what, word in (("name", name), ("prefix", prefix)):
        if not (isinstance(word, str) and _WORD.fullmatch(word)):
            raise ArgumentError(
                f"{what}={word!r}: give at most {_LONGEST} letters, digits and underscores, a "
                f"letter first"
            )
        if word in CUDA_RESERVED:
            raise ArgumentError(f"{what}={word!r} is a word of C or C++: choose another")
    if name.lower() in _FOREIGN.split():
        raise ArgumentError(
            f"name={name!r} is that of a header, a library or a target of CMake: choose another"
        )
    kinds = read_archs(archs)
    refuse_other(folder, LIBRARY)  # before the programs are planned
    read = [read_program(source) for source in sources]
    systems = [source for source in read if isinstance(source, System)]
    if not read:
        raise ArgumentError("a library needs a program: give a spec or a compiled folder")
    if not systems and (fortran_order or changed_options(options)):
        raise ArgumentError(
            "all programs are compiled already, so that extents, the Fortran order and options of "
            "planning would change nothing: leave these out, or give the specs"
        )
    _refuse_unknown(options, systems)
    found: list[tuple[Artifact, System]] = []
    for source in read:
        if isinstance(source, Artifact):
            found.append((source, read_artifact_system(source)))
            continue
        for text in source.warnings:
            warn(text)
        system = in_fortran_order(source) if fortran_order else source
        own = tuple(e for e in options.extents if e[0] in _bases(system))
        result = compiled(system, replace(options, extents=own))
        found.append((result.artifact, result.system))
    files = library_files(name, named(found, name, prefix), prefix, kinds)
    write_folder(folder, files.items(), LIBRARY)
    return folder


def _bases(system: System) -> list[str]:
    return [space.name for space in system.spaces if not space.parts]


def _refuse_unknown(options: Options, systems: Iterable[System]) -> None:
    """Raise ExtentError for an extent of a space that no spec has."""
    known = {base: None for system in systems for base in _bases(system)}
    for space, extent in options.extents:
        if space not in known:
            raise ExtentError(
                f"extent {space}={extent}: no spec has a base space {space}; there are: "
                f"{', '.join(known)}"
            )

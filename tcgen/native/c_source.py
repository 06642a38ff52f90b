"""The C sources of a library: kernels for each kind of processor, and one source of calls."""

from __future__ import annotations

from collections.abc import Sequence

from .._version import __version__
from ..artifact.kernel_abi import CALLERS, FALLBACK, TILES, library
from ..artifact.manifest import SOURCES
from ..dtypes import ALL, BY_NAME
from ..emit.c.contraction import contraction_abi, contraction_library
from ..resources import part, template_text
from ..runtime.cpu.blas import ROUTINES
from ..runtime.host_program import on_host
from .c_header import prototypes
from .host_loops import walked_phases
from .processors import chooser, identifier
from .sources import NativeProgram
from .tables import tables

# The files of the runtime, in the order of their includes.
RUNTIME = ("runtime.h", "layout.c", "parts.c", "tiles.c", "checks.c")
_LAST = ("blas.c", "call.c")
_FILE = "native/source.c"
# Places in the table of functions behind the BLAS (templates/c/head.c).
_SERIAL = len(ROUTINES)
_STOP = _SERIAL + 1 + len(CALLERS) * len(ALL)


def products(programs: Sequence[NativeProgram]) -> dict[str, str]:
    """Sources of the contraction kernel by file; one for each part and element type."""
    found: dict[str, set[str]] = {}
    for program in programs:
        for dtype in {c[0] for k in program.manifest.kernels for c in k.contractions}:
            parts = (*CALLERS, FALLBACK, *TILES)
            held = {part for part in parts if program.artifact.has(library(part, dtype))}
            # In a library nothing is compiled later: the fallback is a part as the others.
            found.setdefault(dtype, set()).update(
                "blocks" if part == FALLBACK else part for part in held
            )
    return {
        library(name, dtype): '#include "names.h"\n'
        + contraction_library(name, dtype, __version__, linked=found[dtype])
        for dtype in sorted(found)
        for name in sorted(found[dtype])
    }


def names_header(prefix: str) -> str:
    """``names.h``: symbols of one kind of processor, ``TC_ARCH``."""
    return "\n".join([*part(_FILE, "names", prefix=prefix), ""])


def kernels_source(program: NativeProgram) -> str:
    """The kernels of a program under the library's names, and the table of them."""
    manifest = program.manifest
    phases = {
        f"tcgen_phase_{phase}": host
        for phase, host in (
            ("constant", manifest.host_constant),
            ("volatile", manifest.host_volatile),
        )
        if host and not on_host(manifest, host)
    }
    symbols = [*(k.symbol for k in manifest.kernels), "tcgen_threads", *phases]
    held = {f"{BY_NAME[c[0]].letter}": c[0] for k in manifest.kernels for c in k.contractions}

    def product(caller: str, letter: str) -> str:
        if letter not in held:
            return "NULL"
        dtype = held[letter]
        there = program.artifact.has(library(caller, dtype)) or (
            caller == "blocks" and program.artifact.has(library(FALLBACK, dtype))
        )
        return f"(void *)TC_LINKED({caller}_{letter})" if there else "NULL"

    entries = [product(caller, d.letter) for caller in CALLERS for d in ALL]
    parted = manifest.parts is not None and "tcgen_phase_volatile" in phases
    constant, volatile = (
        name if name in phases else "NULL"
        for name in ("tcgen_phase_constant", "tcgen_phase_volatile")
    )
    lines = part(
        _FILE,
        "kernels",
        renames=[
            f"#define {s} TC_LINKED({program.name}_{s.removeprefix('tcgen_')})" for s in symbols
        ],
        source=program.artifact.text(SOURCES["cpu"]).splitlines(),
        externs=[
            f"extern int {entry.removeprefix('(void *)')}();"
            for entry in entries
            if entry != "NULL"
        ],
        all=", ".join(k.symbol for k in manifest.kernels) or "NULL",
        table=f"TC_LINKED({program.name}_functions)",
        constant=constant,
        volatile="NULL" if parted else volatile,
        parted=volatile if parted else "NULL",
        products=", ".join(entries),
    )
    return "\n".join([*lines, ""])


def calls_source(
    library_name: str,
    programs: Sequence[NativeProgram],
    prefix: str,
    archs: Sequence[str],
    build: int,
) -> str:
    """The one source that is compiled once: tables, the runtime, and the interface."""
    text = part(
        _FILE,
        "calls",
        library=library_name,
        version=__version__,
        serial=_SERIAL,
        stop=_STOP,
        includes=[f'#include "runtime/{name}"' for name in RUNTIME],
        chooser=chooser(archs),
        last=[f'#include "runtime/{name}"' for name in _LAST],
        prefix=prefix,
        build=build,
    )
    for program in programs:
        suffixes = [identifier(arch) for arch in archs]
        kinds = [f"{program.symbol}_functions_{suffix}" for suffix in suffixes]
        text += ["", f"/* {program.name} */", ""]
        text += [f"extern const tcr_functions {kind};" for kind in kinds]
        listed = ", ".join(f"&{kind}" for kind in kinds)
        text += [
            f"static const tcr_functions *const {program.name}_functions[] = {{{listed}}};",
            *walked_phases(program),
            *tables(program),
            "",
        ]
        for head, call in prototypes(program).values():
            text += part(_FILE, "entry", head=head, call=call)
    return "\n".join([*text, ""])


def runtime_files() -> dict[str, str]:
    """The C runtime, by path below ``src``."""
    names = ("functions.h", *RUNTIME, *_LAST)
    files = {f"runtime/{name}": template_text(f"c/runtime/{name}") for name in names}
    return {**files, "runtime/abi.h": contraction_abi()}

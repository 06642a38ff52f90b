"""The README of a library: how to build it, what its programs cost, and how to call them."""

from __future__ import annotations

from collections.abc import Sequence

from .._version import __version__
from ..artifact.manifest import array_bytes
from ..records.tensors import Role
from ..resources import part
from ..runtime.memory import memory_use
from .sources import NativeProgram

_FILE = "native/guide.md"
_HEAD = ("program", "at", "workspace", "state", "inputs", "outputs", "flops of a call", "once")


def guide(name: str, programs: Sequence[NativeProgram], prefix: str, archs: Sequence[str]) -> str:
    """``README.md``."""
    rows = [_HEAD, ("---",) * len(_HEAD), *map(_row, programs)]
    lines = part(
        _FILE,
        "library",
        name=name,
        version=__version__,
        archs=", ".join(archs),
        table=[f"| {' | '.join(row)} |" for row in rows],
        programs=[line for p in programs for line in _program(name, p, prefix)],
    )
    return "\n".join([*lines, ""])


def _row(program: NativeProgram) -> tuple[str, ...]:
    manifest = program.manifest
    extents = dict(manifest.planning_extents)
    use = memory_use(manifest, extents, threads=1)
    held = {t.name: array_bytes(t, manifest, extents) for t in manifest.constant_outputs}
    inputs = [t for t in program.inputs if t.role is Role.INPUT]
    operations = program.artifact.json("report.json")["operations"]
    numbers = (
        use.arenas,
        use.lasting.total + sum(held.values()),
        sum(array_bytes(t, manifest, extents) for t in inputs),
        use.outputs,
        operations["executed_per_call"],
        operations["executed_once"],
    )
    at = ", ".join(f"{base}={extents[base]}" for base in manifest.bases)
    return (program.name, at, *(f"{number:,}" for number in numbers))


def _program(library: str, program: NativeProgram, prefix: str) -> list[str]:
    words, extents = program.words, dict(program.manifest.planning_extents)
    numbers = ", ".join(str(extents[base]) for base in program.manifest.bases)
    inputs = [words[t.name] for t in program.inputs]
    outputs = [words[t.name] for t in program.outputs]
    given = {"symbol": program.symbol, "extents": numbers or "0"}
    listed = {"inputs": ", ".join(inputs), "outputs": ", ".join(outputs)}
    return part(
        _FILE,
        "program",
        name=program.name,
        library=library,
        equations=program.equations,
        c=part(_FILE, "c", **given, **listed, prefix=prefix),
        cpp=part(
            _FILE, "cpp", library=library, name=program.name, extents=given["extents"], **listed
        ),
        fortran=part(
            _FILE,
            "fortran",
            name=program.name,
            extents=given["extents"],
            arguments=", ".join(f"{word}={word}" for word in (*inputs, *outputs)),
        ),
    )

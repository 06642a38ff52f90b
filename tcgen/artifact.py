"""A compiled program as plain data: the manifest (what to run on which memory) and the files.

The bridge between compiler and runtime. It knows no level of the compiler and no library, and it
travels with every artifact.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import itertools
import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeAlias, get_args, get_origin, get_type_hints

from .errors import ArtifactError, UnavailableError
from .grid import GridEntry

SCHEMA = 3
MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class SpaceEntry:
    """A space; ``parts`` names the spaces it joins, which stand before it."""

    name: str
    extent: int | None
    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SymmetryEntry:
    """``T[x[perm]] == sign * T[x]``, conjugated with ``conj``."""

    perm: tuple[int, ...]
    sign: int
    conj: bool


@dataclass(frozen=True, slots=True)
class PackingEntry:
    """Logical axes ``first`` and ``first + 1`` stored as a lower triangle."""

    first: int
    antisymmetric: bool


@dataclass(frozen=True, slots=True)
class TensorEntry:
    """An argument or a result: role is ``input``, ``generated`` or ``output``.

    ``order`` lists the logical axes as the caller's array has them; ``default`` is an exact number
    as text, for scalars that may be left out.
    """

    name: str
    role: str
    spaces: tuple[str, ...]
    order: tuple[int, ...]
    packed: tuple[PackingEntry, ...]
    dtype: str
    real: bool
    default: str | None
    accumulate: bool
    volatile: bool
    symmetry: tuple[SymmetryEntry, ...]

    def stored(self) -> tuple[tuple[int, PackingEntry | None], ...]:
        """Axes of the caller's array: a logical axis, or the row axis of a packed pair."""
        return _stored(self.order, self.packed)


@dataclass(frozen=True, slots=True)
class BufferEntry:
    """Memory; places, lives and ranks as the level of modules defines them.

    ``lengths`` has None for the whole extent of the axis, else 1 or the tile.
    """

    name: str
    spaces: tuple[str, ...]
    lengths: tuple[int | None, ...]
    order: tuple[int, ...]
    dtype: str
    place: str
    tensor: str | None
    packed: tuple[PackingEntry, ...]
    live: tuple[int, int]
    keep: bool
    rank: int

    def stored(self) -> tuple[tuple[int, PackingEntry | None], ...]:
        """Physical axes, slowest first: a logical axis, or the row axis of a packed pair."""
        return _stored(self.order, self.packed)


@cache
def _stored(
    order: tuple[int, ...], packed: tuple[PackingEntry, ...]
) -> tuple[tuple[int, PackingEntry | None], ...]:
    pairs = {p.first: p for p in packed} | {p.first + 1: p for p in packed}
    axes: list[tuple[int, PackingEntry | None]] = []
    for axis in order:
        pair = pairs.get(axis)
        if pair is None or all(p is not pair for _, p in axes):
            axes.append((axis, pair))
    return tuple(axes)


ContractionEntry: TypeAlias = tuple[str, tuple[tuple[tuple[str, int | None], ...], ...]]


@dataclass(frozen=True, slots=True)
class KernelEntry:
    """A generated function.

    Attributes:
        name: of the kernel.
        symbol: of the function in the source.
        host: host loop variables it takes, in order.
        spaces: base spaces whose extents it needs.
        reads: buffers it reads, of those that have an address outside the kernel.
        writes: buffers it writes, likewise.
        private: buffers of which there is one for each thread.
        live: first and last position of its statements.
        contractions: that pack blocks: type; space and tile of rows, columns, summed variables.
        grid: on a GPU; private buffers then belong to a block.
    """

    name: str
    symbol: str
    host: tuple[str, ...]
    spaces: tuple[str, ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    private: tuple[str, ...]
    live: tuple[int, int]
    contractions: tuple[ContractionEntry, ...]
    grid: GridEntry | None = None


@dataclass(frozen=True, slots=True)
class LoopEntry:
    """A loop on the host: over elements, or over tiles; ``below``: up to that variable."""

    kind: str
    variable: str
    space: str
    tile: int | None
    below: str | None
    body: tuple[HostEntry, ...]


@dataclass(frozen=True, slots=True)
class LaunchEntry:
    """Run a kernel."""

    kind: str
    kernel: str


@dataclass(frozen=True, slots=True)
class FetchEntry:
    """Ask for a tile of a generated input: a host variable or None for each axis."""

    kind: str
    buffer: str
    ranges: tuple[str | None, ...]


HostEntry: TypeAlias = LoopEntry | LaunchEntry | FetchEntry
_KINDS = {"loop": LoopEntry, "launch": LaunchEntry, "fetch": FetchEntry}


@dataclass(frozen=True, slots=True)
class Manifest:
    """Everything the runtime has to know.

    Attributes:
        name: of the program.
        tcgen_version: that made it.
        target: ``cpu``, ``cuda`` or ``numpy``.
        dtype: ``float64``, ``float32`` or ``complex128``.
        memory_limit: bytes the program may allocate beyond its inputs, or None.
        planning_extents: extents the plan was made for, by base space.
        spaces: parts before the spaces that join them.
        tensors: arguments, then results, in order.
        buffers: all memory.
        kernels: generated functions.
        host_constant: what runs once for a bound program.
        host_volatile: what runs at each call.
        constant_positions: number of positions, in the lives of buffers, of the constant phase.
        tight: arrays in an arena start at any element; else on cache lines.
    """

    name: str
    tcgen_version: str
    target: str
    dtype: str
    memory_limit: int | None
    planning_extents: tuple[tuple[str, int], ...]
    spaces: tuple[SpaceEntry, ...]
    tensors: tuple[TensorEntry, ...]
    buffers: tuple[BufferEntry, ...]
    kernels: tuple[KernelEntry, ...]
    host_constant: tuple[HostEntry, ...]
    host_volatile: tuple[HostEntry, ...]
    constant_positions: int
    tight: bool

    @property
    def bases(self) -> tuple[str, ...]:
        """Names of the base spaces: the order of the extents that kernels take."""
        return tuple(s.name for s in self.spaces if not s.parts)

    def bases_of(self, space: str) -> tuple[str, ...]:
        """Base spaces of a space, in order."""
        entry = next(s for s in self.spaces if s.name == space)
        if not entry.parts:
            return (space,)
        return tuple(base for part in entry.parts for base in self.bases_of(part))

    def extent(self, space: str, extents: Mapping[str, int]) -> int:
        """Extent of a base or joined space."""
        return sum(extents[base] for base in self.bases_of(space))


@dataclass(frozen=True, slots=True)
class Artifact:
    """A manifest and the texts beside it: sources, runtime, reports.

    Attributes:
        manifest: as above.
        files: (path relative to the folder with ``/``, text), sorted by path.
    """

    manifest: Manifest
    files: tuple[tuple[str, str], ...]

    def text(self, name: str) -> str:
        """Text of one file.

        Raises:
            ArtifactError: there is none of that name.
        """
        for path, text in self.files:
            if path == name:
                return text
        raise ArtifactError(f"the program {self.manifest.name} has no file {name}")

    def with_files(self, files: tuple[tuple[str, str], ...]) -> Artifact:
        """The artifact with these files added, in place of any of the same path."""
        merged = {**dict(self.files), **dict(files)}
        return Artifact(self.manifest, tuple(sorted(merged.items())))

    def with_memory_limit(self, limit: int | None) -> Artifact:
        """The artifact with another limit in bytes for what a run may allocate."""
        return Artifact(replace(self.manifest, memory_limit=limit), self.files)

    def manifest_text(self) -> str:
        """``manifest.json``: schema, checksums of all files, the manifest."""
        body = {
            "schema": SCHEMA,
            "files": {path: _digest(text) for path, text in self.files},
            "manifest": _encode(self.manifest),
        }
        return json.dumps({"tcgen": _digest(_canonical(body)), **body}, indent=1) + "\n"

    def save(self, folder: str | Path) -> Path:
        """Write the folder, complete or not at all.

        An older artifact of that name is replaced; anything else that is there is left alone.

        Raises:
            ArtifactError: the folder holds something that is not an artifact.
            UnavailableError: it cannot be written.
        """
        target = Path(folder).absolute()
        _refuse_other(target)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=target.parent, prefix=".tcgen-") as scratch:
                fresh = Path(scratch) / "new"
                for path, text in (*self.files, (MANIFEST, self.manifest_text())):
                    (fresh / path).parent.mkdir(parents=True, exist_ok=True)
                    (fresh / path).write_bytes(text.encode())
                _put(fresh, target, Path(scratch))
        except OSError as error:
            raise UnavailableError(
                f"the artifact cannot be written to {target} ({error.strerror or error}): "
                f"choose a folder you may write to"
            ) from error
        return target

    @staticmethod
    def load(folder: str | Path) -> Artifact:
        """Read a folder and verify its manifest and the checksum of each file.

        Raises:
            ArtifactError: missing, corrupted, changed, or of another version.
        """
        root = Path(folder).absolute()
        if not (root / MANIFEST).is_file():
            raise ArtifactError(
                f"{root} is not a tcgen artifact (it has no {MANIFEST}): "
                f"give the folder that tcgen compile wrote"
            )
        manifest, digests = read_manifest(root / MANIFEST)
        files = []
        for path, digest in digests:
            try:
                text = (root / path).read_bytes().decode()
            except (OSError, UnicodeDecodeError) as error:
                raise ArtifactError(
                    f"{root / path} of the artifact cannot be read ({error}): compile it again"
                ) from error
            if _digest(text) != digest:
                raise ArtifactError(
                    f"{root / path} was changed after it was compiled (its checksum differs): "
                    f"compile the program again"
                )
            files.append((path, text))
        return Artifact(manifest, tuple(files))


def read_manifest(path: Path) -> tuple[Manifest, tuple[tuple[str, str], ...]]:
    """The manifest of a file, and the checksum of each file beside it.

    Raises:
        ArtifactError: it is corrupted or of another schema.
    """
    try:
        data = json.loads(path.read_bytes())
        seal = data.pop("tcgen")
        schema = data["schema"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise _corrupted(path, str(error)) from error
    if schema != SCHEMA:
        age = "an older" if isinstance(schema, int) and schema < SCHEMA else "a newer"
        raise ArtifactError(
            f"{path} has schema {schema}, written by {age} tcgen; this one reads schema {SCHEMA}: "
            f"compile the program again with the tcgen installed here"
        )
    if seal != _digest(_canonical(data)):
        raise _corrupted(path, "its checksum differs")
    try:
        manifest = _decode(Manifest, data["manifest"], "manifest")
        digests = _decode(
            tuple[tuple[str, str], ...], list(map(list, data["files"].items())), "files"
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise _corrupted(path, str(error)) from error
    return manifest, digests


def _corrupted(path: Path, why: str) -> ArtifactError:
    return ArtifactError(f"{path} is corrupted ({why}): compile the program again")


def _put(fresh: Path, target: Path, scratch: Path) -> None:
    """Move a folder into place and what was there into scratch, while others may do the same."""
    for attempt in itertools.count():
        old = scratch / f"old{attempt}"
        try:
            with contextlib.suppress(FileNotFoundError):
                target.rename(old)
            fresh.rename(target)
            return
        except BaseException as error:
            if isinstance(error, OSError) and error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                _refuse_other(target)
                continue  # another process has put its artifact there meanwhile
            if fresh.exists() and old.exists():
                old.rename(target)
            raise


def _refuse_other(target: Path) -> None:
    """Raise ArtifactError where something other than an artifact or an empty folder is."""
    try:
        if not any(target.iterdir()):
            return
        known = "tcgen" in json.loads((target / MANIFEST).read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        # Nothing is there, or it has just been moved away; or it is a file, or has no manifest.
        known = not target.exists() or (target / MANIFEST).is_file()
    except (OSError, ValueError, TypeError):
        known = False
    if not known:
        raise ArtifactError(
            f"{target} exists and is not a tcgen artifact, so it is not replaced: "
            f"choose another folder or move it away"
        )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _canonical(data: object) -> str:
    return json.dumps(data, sort_keys=True, separators=(",", ":"))


def _encode(value: Any) -> Any:
    if is_dataclass(value):
        return {f.name: _encode(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, tuple):
        return [_encode(v) for v in value]
    return value


def _decode(kind: Any, value: Any, where: str) -> Any:
    """``value`` as the annotated type ``kind``, exactly: no missing, no extra, no other type."""
    if get_origin(kind) is UnionType:
        options = get_args(kind)
        if value is None and NoneType in options:
            return None
        if LoopEntry in options:
            chosen = _KINDS.get(value["kind"])
            if chosen is None:
                raise TypeError(f"{where}: unknown kind {value['kind']!r}")
            return _decode(chosen, value, where)
        return _decode(next(o for o in options if o is not NoneType), value, where)
    if get_origin(kind) is tuple:
        if not isinstance(value, list):
            raise TypeError(f"{where}: a list is expected")
        inner = get_args(kind)
        kinds = (inner[0],) * len(value) if inner[1:] == (...,) else inner
        if len(kinds) != len(value):
            raise TypeError(f"{where}: {len(kinds)} items are expected")
        return tuple(
            _decode(k, v, f"{where}[{i}]")
            for i, (k, v) in enumerate(zip(kinds, value, strict=True))
        )
    if isinstance(kind, type) and is_dataclass(kind):
        hints = get_type_hints(kind)
        if not isinstance(value, dict) or set(value) != set(hints):
            raise TypeError(f"{where}: the fields {', '.join(hints)} are expected")
        make: Callable[..., Any] = kind
        return make(**{n: _decode(h, value[n], f"{where}.{n}") for n, h in hints.items()})
    if type(value) is not kind:
        raise TypeError(f"{where}: {kind.__name__} is expected")
    return value

"""A compiled program as a folder: a manifest, and text files with their checksums."""

from __future__ import annotations

import errno
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath, PurePosixPath
from typing import Any

from ..errors import ArtifactError
from .codec import from_table, table_text, to_table
from .manifest import SOURCES, Manifest
from .whole_folder import Kind, write_folder

SCHEMA = 8
MANIFEST = "manifest.json"
FALLBACK = "fallback.json"  # the manifest of the same program for NumPy


@dataclass(frozen=True, slots=True)
class Artifact:
    """A manifest and text files: sources, runtime, reports.

    ``files`` has (path relative to the folder with ``/``, text), sorted by path.

    Raises:
        ArtifactError: a file would lie outside the folder, or where another one lies.
    """

    manifest: Manifest
    files: tuple[tuple[str, str], ...]

    def __post_init__(self) -> None:
        _check_paths([path for path, _ in self.files], f"the program {self.manifest.name}")

    def has(self, name: str) -> bool:
        """True if the artifact has a file with this path."""
        return any(path == name for path, _ in self.files)

    def text(self, name: str) -> str:
        """Text of one file; an ArtifactError if the artifact does not have it."""
        for path, text in self.files:
            if path == name:
                return text
        raise ArtifactError(f"the program {self.manifest.name} has no file {name}")

    def json(self, name: str) -> dict[str, Any]:
        """The JSON object in a file; an ArtifactError if it is missing or holds something else."""
        try:
            data = json.loads(self.text(name))
        except (ValueError, RecursionError):
            data = None
        if not isinstance(data, dict):
            raise ArtifactError(
                f"{name} of the program {self.manifest.name} is not a JSON object: "
                f"compile the program again"
            )
        return data

    def with_files(self, files: tuple[tuple[str, str], ...]) -> Artifact:
        """The artifact with these files, which replace files of the same path."""
        merged = {**dict(self.files), **dict(files)}
        return Artifact(self.manifest, tuple(sorted(merged.items())))

    def with_memory_limit(self, limit: int | None) -> Artifact:
        """The artifact with another limit, in bytes, of the memory that a call allocates."""
        return Artifact(replace(self.manifest, memory_limit=limit), self.files)

    def with_fallback(self, other: Artifact) -> Artifact:
        """The artifact that also carries the same program for NumPy."""
        source, manifest = SOURCES["numpy"], Artifact(other.manifest, ()).manifest_text()
        return self.with_files(((source, other.text(source)), (FALLBACK, manifest)))

    def fallback(self) -> Artifact | None:
        """The same program for NumPy, with all files and this memory limit; None without one."""
        if not self.has(FALLBACK):
            return None
        manifest, _ = _manifest_in(self.text(FALLBACK), FALLBACK)
        return Artifact(manifest, self.files).with_memory_limit(self.manifest.memory_limit)

    def manifest_text(self) -> str:
        """``manifest.json``: schema, checksums of all files, the manifest."""
        files = {path: _digest(text) for path, text in self.files}
        table = to_table(self.manifest)
        seal = _digest(_canonical({"schema": SCHEMA, "files": files, "manifest": table}))
        return (
            f'{{"tcgen":"{seal}","schema":{SCHEMA},\n"files":{json.dumps(files, indent=1)},\n'
            f'"manifest":{{{table_text(table)}}}}}\n'
        )

    def save(self, folder: str | Path) -> Path:
        """Write the folder, completely or not at all.

        It replaces an older artifact of that name, and retains other files in its folder.

        Raises:
            ArtifactError: the folder holds something that is not an artifact.
            UnavailableError: it cannot be written.
        """
        target = _absolute(folder)
        write_folder(target, (*self.files, (MANIFEST, self.manifest_text())), _ARTIFACT)
        return target

    @staticmethod
    def load(folder: str | Path) -> Artifact:
        """Read a folder and verify its manifest and the checksum of each file.

        Raises:
            ArtifactError: missing, corrupted, changed, or of another version.
        """
        root = _absolute(folder)
        if not (root / MANIFEST).is_file():
            raise ArtifactError(
                f"{root} is not a tcgen artifact (it has no {MANIFEST}): "
                f"give the folder that tcgen compile wrote"
            )
        manifest, digests = read_manifest(root / MANIFEST)
        files = []
        for path, digest in digests:
            try:
                if not (root / path).is_file():  # reading a pipe would block
                    raise FileNotFoundError(errno.ENOENT, "no such file")
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
    """The manifest in a file, and the checksum of each file of the folder by its path.

    Raises:
        ArtifactError: it is corrupted, of another schema, or names files outside the folder.
    """
    try:
        text = path.read_bytes()
    except OSError as error:
        raise _corrupted(path, str(error)) from error
    return _manifest_in(text, path)


def _manifest_in(
    text: str | bytes, path: Path | str
) -> tuple[Manifest, tuple[tuple[str, str], ...]]:
    """The manifest in a text, and checksums of files; errors name the path."""
    try:
        data = json.loads(text)
        seal = data.pop("tcgen")
        schema = data["schema"]
        sealed = seal == _digest(_canonical(data))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _corrupted(path, str(error)) from error
    if schema != SCHEMA:
        age = "an older" if isinstance(schema, int) and schema < SCHEMA else "a newer"
        raise ArtifactError(
            f"{path} has schema {schema}, written by {age} tcgen; this one reads schema {SCHEMA}: "
            f"compile the program again with the tcgen installed here"
        )
    if not sealed:
        raise _corrupted(path, "its checksum differs")
    try:
        manifest = from_table(Manifest, data["manifest"])
        digests = tuple(data["files"].items())
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _corrupted(path, str(error)) from error
    _check_paths([name for name, _ in digests], f"{path}")
    return manifest, digests


def _check_paths(paths: Sequence[str], holder: str) -> None:
    """Refuse names that are absolute, climb, or are those of the manifest or of a folder."""
    folders = {parent.as_posix() for path in paths for parent in PurePosixPath(path).parents}
    for path in paths:
        plain = path.isprintable() and not {"\\", ":"} & set(path)
        inside = not {"", ".", ".."} & set(path.split("/"))
        if not (plain and inside) or path == MANIFEST or path in folders:
            raise ArtifactError(
                f"{holder} names the file {path!r:.200}: names must be relative to its folder, "
                f"without .. or a drive, and not those of its folders: compile the program again"
            )


def _absolute(folder: str | Path) -> Path:
    try:
        return Path(folder).absolute()
    except TypeError:
        raise ArtifactError(f"{folder!r} is not a path: give the folder of an artifact") from None


def _corrupted(path: Path | str, why: str) -> ArtifactError:
    return ArtifactError(f"{path} is corrupted ({why}): compile the program again")


def _is_manifest(content: bytes) -> bool:
    try:
        return "tcgen" in json.loads(content)
    except (ValueError, TypeError, RecursionError):
        return False


def _written(target: Path) -> Callable[[PurePath], bool]:
    """Whether a path is that of a file in the manifest, or what Python compiled from one."""
    try:
        files = set(json.loads((target / MANIFEST).read_bytes())["files"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        files = set()
    return lambda name: name.as_posix() in files or "__pycache__" in name.parts


_ARTIFACT = Kind("a tcgen artifact", MANIFEST, _is_manifest, _written, ArtifactError)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _canonical(data: object) -> str:
    return json.dumps(data, sort_keys=True, separators=(",", ":"))

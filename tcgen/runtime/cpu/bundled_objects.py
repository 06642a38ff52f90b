"""Prebuilt objects bundled with an artifact, for machines without a compiler.

The objects are files of the artifact like all others, as text in base 64 with a checksum. A file
names the processor for which they were compiled; on another one they are ignored.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import ctypes
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ...artifact.folder import Artifact
from ...errors import ArtifactError, UnavailableError
from .object_cache import cached_object, key_of, load_object
from .toolchain import processor

INDEX = "objects/index.json"


@dataclass(frozen=True, slots=True)
class BundledObjects:
    """The objects of an artifact that can run here, in base 64, by the key of their source.

    They can use several threads if ``openmp``.
    """

    objects: Mapping[str, str] = field(default_factory=dict)
    openmp: bool = False

    def load(self, text: str, level: str) -> ctypes.CDLL | None:
        """The library of a source; None if it is not bundled, or cannot be loaded here."""
        encoded = self.objects.get(_name(text, level))
        if encoded is None:
            return None
        key = key_of((text, level, "bundled", processor()))
        kept = cached_object(key)
        if kept is not None:
            return kept
        try:
            content = base64.b64decode(encoded)
        except binascii.Error as error:
            raise ArtifactError(f"an object of the artifact is damaged ({error})") from error
        # An object may need a newer C library than that of the machine.
        with contextlib.suppress(UnavailableError):
            return load_object(key, content)
        return None


NO_OBJECTS = BundledObjects()


def read_objects(artifact: Artifact) -> BundledObjects:
    """The objects of an artifact, if compiled for this processor; ArtifactError for a bad index."""
    if not artifact.has(INDEX):
        return NO_OBJECTS
    index = artifact.json(INDEX)
    try:
        if index["processor"] != key_of((processor(),)):
            return NO_OBJECTS
        found = {name: artifact.text(_path(name)) for name in index["objects"]}
        return BundledObjects(found, bool(index["openmp"]))
    except (KeyError, TypeError) as error:
        raise ArtifactError(
            f"{INDEX} of the program {artifact.manifest.name} is damaged ({error!r:.80}): "
            f"save the program again"
        ) from error


def with_objects(
    artifact: Artifact, built: Iterable[tuple[str, str, ctypes.CDLL]], *, openmp: bool
) -> Artifact:
    """The artifact with libraries that were built from its sources.

    ``built`` has texts of sources, levels of optimisation, and their libraries, which can use
    several threads if ``openmp``.
    """
    texts = {
        _name(text, level): base64.b64encode(Path(library._name).read_bytes()).decode() + "\n"
        for text, level, library in built
    }
    index = {"processor": key_of((processor(),)), "openmp": openmp, "objects": sorted(texts)}
    files = {_path(name): text for name, text in texts.items()}
    files[INDEX] = json.dumps(index, indent=1) + "\n"
    return artifact.with_files(tuple(files.items()))


def _name(text: str, level: str) -> str:
    return key_of((text, level))


def _path(name: str) -> str:
    return f"objects/{name}.so.b64"

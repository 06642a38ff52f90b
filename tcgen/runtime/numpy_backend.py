"""Kernels that are NumPy code, for machines without a C compiler."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..artifact.folder import Artifact
from ..artifact.manifest import SOURCES, Manifest
from ..errors import ArtifactError
from ..records.loops import Fetch
from .call.host_loops import PhaseBuffers, walk
from .fork_safe_lock import Once
from .host_device import HostDevice
from .host_program import Values


class NumpyBackend:
    """The kernels of ``kernels.py``; NumPy makes temporary arrays of its own."""

    threads = 1

    def __init__(self, artifact: Artifact) -> None:
        self.manifest = artifact.manifest
        self.device = HostDevice(reuse=artifact.manifest.reuses_memory)
        self._functions = Once(lambda: _functions(artifact))
        self._kernels = {k.name: k for k in artifact.manifest.kernels}

    def build(self) -> None:
        """Run the source, which defines the kernels."""
        self._functions.get()

    def run(self, buffers: PhaseBuffers, fetch: Callable[[Fetch, Values], None]) -> None:
        """Run one phase of the host program."""
        functions, extents = self._functions.get(), buffers.layout.extents
        # Subclasses of arrays, which ``out`` may have, follow rules of their own.
        arrays = {name: np.asarray(array) for name, array in buffers.views().items()}

        def launch(name: str, values: Values) -> None:
            kernel = self._kernels[name]
            host = buffers.host_values(kernel, values)
            with np.errstate(all="ignore"), _fits(self.manifest):
                functions[kernel.symbol](arrays, extents, host)

        walk(buffers, launch, fetch)


def _functions(artifact: Artifact) -> dict[str, Any]:
    """The names that the source defines; ArtifactError if a kernel of the manifest is missing."""
    names: dict[str, Any] = {}
    source = artifact.text(SOURCES["numpy"])
    with _fits(artifact.manifest):
        exec(compile(source, f"<{artifact.manifest.name}: {SOURCES['numpy']}>", "exec"), names)
        for kernel in artifact.manifest.kernels:
            names[kernel.symbol]
    return names


@contextlib.contextmanager
def _fits(manifest: Manifest) -> Iterator[None]:
    """Name the artifact where its source and its manifest do not belong together.

    Generated kernels raise none of these errors on the arrays of their manifest.
    """
    try:
        yield
    except (SyntaxError, LookupError, NameError, TypeError, ValueError) as error:
        raise ArtifactError(
            f"{SOURCES['numpy']} of {manifest.name} does not fit its manifest ({error!r:.200}): "
            f"compile the program again"
        ) from error

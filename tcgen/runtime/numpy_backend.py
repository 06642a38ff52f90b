"""Running kernels that are NumPy code, where there is no C compiler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..artifact.folder import Artifact
from ..artifact.manifest import FetchEntry
from .call.buffers import Store
from .host_program import Values, walk


class NumpyBackend:
    """The kernels of ``kernels.py``."""

    threads = 1

    def __init__(self, artifact: Artifact) -> None:
        self.manifest = manifest = artifact.manifest
        names: dict[str, Any] = {}
        source = artifact.text("kernels.py")
        exec(compile(source, f"<{manifest.name}: kernels.py>", "exec"), names)
        self._kernels = {k.name: (names[k.symbol], k.host) for k in manifest.kernels}

    def run(self, store: Store, fetch: Callable[[FetchEntry, Values], None]) -> None:
        """Run one phase of the host program; NumPy makes temporary arrays of its own."""
        arrays, extents = store.views(), store.setting.extents

        def launch(name: str, values: Values) -> None:
            kernel, variables = self._kernels[name]
            with np.errstate(all="ignore"):
                kernel(arrays, extents, tuple(values[v] for v in variables))

        walk(store.phase.host, self.manifest, extents, launch, fetch)

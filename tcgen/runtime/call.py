"""One call of a program: its phases, on the memory that they need."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy.typing as npt

from ..errors import ArgumentError
from ..manifest import FetchEntry, HostEntry, Manifest
from .allocation import Ledger
from .arguments import Source
from .footprint import MemoryUse
from .host import Values, fetch_tile
from .store import Store

Array = npt.NDArray[Any]


class Backend(Protocol):
    """What runs the kernels of a program."""

    @property
    def threads(self) -> int:
        """Threads that a call uses."""

    def run(
        self,
        phase: str,
        host: tuple[HostEntry, ...],
        store: Store,
        strides: tuple[int, ...],
        threads: int,
        fetch: Callable[[FetchEntry, Values], None],
    ) -> None:
        """Run one phase of the host program."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a program: what runs, on which memory.

    Attributes:
        manifest: of the program.
        backend: runs the kernels.
        use: layout of the arenas.
        threads: that the kernels use.
        sources: inputs by name, as the caller passed them.
        extents: of the base spaces.
        callers: arrays that kernels read and write where they are.
        ledger: counts what is allocated.
    """

    manifest: Manifest
    backend: Backend
    use: MemoryUse
    threads: int
    sources: Mapping[str, Source]
    extents: Mapping[str, int]
    callers: Mapping[str, Array]
    ledger: Ledger

    def run(self, number: int, kept: Array) -> None:
        """Run the constant phase (0) or the volatile one (1); ``kept`` outlives both."""
        manifest, use = self.manifest, self.use
        host = (manifest.host_constant, manifest.host_volatile)[number]
        if not host:
            return
        layout = use.phases[number]
        with self.ledger.lent(layout) as memory:
            store = Store(
                manifest, self.extents, self.callers, ((use.kept, kept), (layout, memory))
            )

            def fetch(entry: FetchEntry, values: Values) -> None:
                _fetch(manifest, store, self.sources, entry, values)

            phase = ("constant", "volatile")[number]
            self.backend.run(phase, host, store, use.strides, self.threads, fetch)


def _fetch(
    manifest: Manifest,
    store: Store,
    sources: Mapping[str, Source],
    entry: FetchEntry,
    values: Values,
) -> None:
    buffer = next(b for b in manifest.buffers if b.name == entry.buffer)
    tensor = next(t for t in manifest.tensors if t.name == (buffer.tensor or buffer.name))
    view = store.view(buffer)
    if view is None:
        raise ArgumentError(f"buffer {buffer.name} has no memory in this phase")
    ranges = []
    for space, length, variable in zip(buffer.spaces, buffer.lengths, entry.ranges, strict=True):
        extent = manifest.extent(space, store.extents)
        if variable is None:
            ranges.append(slice(0, extent))
        else:
            low = values[variable]
            ranges.append(slice(low, min(low + (length or 1), extent)))
    fetch_tile(tensor, sources[tensor.name], tuple(ranges), view, buffer.order)

"""One phase of one call of a program, on the memory that it needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy.typing as npt

from ...artifact.manifest import FetchEntry
from ...errors import ArgumentError
from ..arguments import Source
from ..host_program import Values, fetch_tile
from ..memory.ledger import Ledger
from .buffers import Store
from .layout import Setting

Array = npt.NDArray[Any]


class Backend(Protocol):
    """What runs the kernels of a program."""

    @property
    def threads(self) -> int:
        """Threads that a call uses."""

    def run(self, store: Store, fetch: Callable[[FetchEntry, Values], None]) -> None:
        """Run the phase of the host program whose memory is given."""


def run_phase(
    backend: Backend,
    setting: Setting,
    number: int,
    sources: Mapping[str, Source],
    callers: Mapping[str, Array],
    kept: Array,
    ledger: Ledger,
) -> None:
    """Run the constant phase (0) or the volatile one (1).

    Args:
        backend: runs the kernels.
        setting: of the call.
        number: of the phase.
        sources: inputs by name, as the caller passed them.
        callers: arrays that kernels read and write where they are.
        kept: arena that outlives both phases.
        ledger: counts what is allocated.
    """
    phase = setting.phases[number]
    if not phase.host:
        return
    store = Store(setting, phase, callers, kept, ledger.arena(phase.arena))

    def fetch(entry: FetchEntry, values: Values) -> None:
        _fetch(store, sources, entry, values)

    backend.run(store, fetch)
    ledger.release(phase.arena)


def _fetch(store: Store, sources: Mapping[str, Source], entry: FetchEntry, values: Values) -> None:
    manifest, extents = store.setting.manifest, store.setting.extents
    buffer = next(b for b in manifest.buffers if b.name == entry.buffer)
    tensor = next(t for t in manifest.tensors if t.name == (buffer.tensor or buffer.name))
    view = store.view(buffer)
    if view is None:
        raise ArgumentError(f"buffer {buffer.name} has no memory in this phase")
    ranges = []
    for space, length, variable in zip(buffer.spaces, buffer.lengths, entry.ranges, strict=True):
        extent = manifest.extent(space, extents)
        if variable is None:
            ranges.append(slice(0, extent))
        else:
            low = values[variable]
            ranges.append(slice(low, min(low + (length or 1), extent)))
    fetch_tile(tensor, sources[tensor.name], tuple(ranges), view, buffer.order)

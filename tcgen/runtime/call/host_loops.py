"""The loops of the host program, and the part of them that a call runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from ...artifact.parts import iterations
from ...records.loops import Fetch, Host, HostLoop, Launch
from ..host_program import Values
from .buffers import PhaseBuffers


def walk(
    buffers: PhaseBuffers,
    launch: Callable[[str, Values], None],
    fetch: Callable[[Fetch, Values], None],
) -> None:
    """Run the host program of a phase: its loops here, kernels and tiles by the given functions.

    The values of the loop variables that these functions are given change when they have returned.
    """
    phase = buffers.phase
    if phase.launches and buffers.part is None:
        for kernel in phase.launches:
            launch(kernel, {})
    else:
        _Walk(buffers, launch, fetch).run(phase.host)


class _Walk:
    """One run of the host program.

    It is no function that refers to itself: that would hold the arrays until the next collection.
    """

    __slots__ = ("_buffers", "_extents", "_fetch", "_launch", "_values")

    def __init__(
        self,
        buffers: PhaseBuffers,
        launch: Callable[[str, Values], None],
        fetch: Callable[[Fetch, Values], None],
    ) -> None:
        self._buffers = buffers
        self._launch = launch
        self._fetch = fetch
        self._values: dict[str, int] = {}
        self._extents: dict[str, int] = {}  # of the spaces of loops

    def run(self, host: tuple[Host, ...]) -> None:
        part = self._buffers.part
        for item in host:
            if isinstance(item, Launch):
                if part is None or part.runs(item.kernel):
                    self._launch(item.kernel, self._values)
            elif isinstance(item, HostLoop):
                self._loop(item)
            else:
                self._fetch(item, self._values)

    def _loop(self, loop: HostLoop) -> None:
        part, values, var = self._buffers.part, self._values, loop.var
        if part is not None and part.entry.kernel is None and var.name == part.entry.chain[0].name:
            body, inside = self._chain(loop)
            for values_of_chain in inside:
                values.update(values_of_chain)
                self.run(body)
            return
        stop = self._extents.get(var.space.name)
        if stop is None:
            layout, name = self._buffers.layout, var.space.name
            stop = self._extents[name] = layout.manifest.extent(name, layout.extents)
        if var.below is not None:
            stop = min(stop, values[var.below] + 1)
        for n in range(0, stop, var.tile or 1):
            values[var.name] = n
            self.run(loop.body)

    def _chain(self, loop: HostLoop) -> tuple[tuple[Host, ...], Iterator[Values]]:
        """The body of the loops of a chain, and the values of their variables in the part."""
        buffers, part = self._buffers, self._buffers.part
        assert part is not None, "a chain belongs to a part"
        if not part.is_whole:
            buffers.clear(part.entry.cleared)
        body = loop.body
        for _ in part.entry.chain[1:]:
            (inner,) = body
            assert isinstance(inner, HostLoop), "the loops of a chain are inside each other"
            body = inner.body
        extent = partial(buffers.layout.manifest.extent, extents=buffers.layout.extents)
        return body, iterations(part.entry.chain, extent, part.first, part.last)

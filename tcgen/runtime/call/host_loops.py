"""The loops of the host program, and the part of them that a call runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import assert_never

from ...artifact.manifest import FetchEntry, HostEntry, LaunchEntry, LoopEntry
from ...artifact.parts import iterations
from ..host_program import Values
from .buffers import PhaseBuffers


def walk(
    buffers: PhaseBuffers,
    launch: Callable[[str, Values], None],
    fetch: Callable[[FetchEntry, Values], None],
) -> None:
    """Run the host program of a phase: its loops here, kernels and tiles by the given functions."""
    _walk(buffers.phase.host, buffers, launch, fetch, {})


def _walk(
    host: tuple[HostEntry, ...],
    buffers: PhaseBuffers,
    launch: Callable[[str, Values], None],
    fetch: Callable[[FetchEntry, Values], None],
    values: Values,
) -> None:
    """Run items of the host program; no function that refers to itself holds the arrays."""
    part = buffers.part
    for item in host:
        match item:
            case LoopEntry():
                body, inside = _iterations(item, buffers, values)
                for more in inside:
                    _walk(body, buffers, launch, fetch, {**values, **more})
            case LaunchEntry():
                if part is None or part.runs(item.kernel):
                    launch(item.kernel, values)
            case FetchEntry():
                fetch(item, values)
            case _:
                assert_never(item)


def _iterations(
    loop: LoopEntry, buffers: PhaseBuffers, values: Values
) -> tuple[tuple[HostEntry, ...], Iterator[Values]]:
    """The body of a loop, and the values of its variable; of a chain, those of the part."""
    part, manifest, extents = buffers.part, buffers.layout.manifest, buffers.layout.extents
    if (
        part is None
        or part.entry.kernel is not None
        or (loop.variable != part.entry.chain[0].variable)
    ):
        stop = manifest.extent(loop.space, extents)
        if loop.below is not None:
            stop = min(stop, values[loop.below] + 1)
        return loop.body, ({loop.variable: n} for n in range(0, stop, loop.tile or 1))
    if not part.is_whole:
        buffers.clear(part.entry.cleared)
    body = loop.body
    for _ in part.entry.chain[1:]:
        (inner,) = body
        assert isinstance(inner, LoopEntry), "the loops of a chain are directly inside each other"
        body = inner.body
    extent = partial(manifest.extent, extents=extents)
    return body, iterations(part.entry.chain, extent, part.first, part.last)

"""Liveness of buffers after launches were fused and reordered.

Before: lives in the positions of the first module. After: the same lives in those of the new one.
A buffer of a fused kernel lives over all of its statements, because its blocks run at once; a
buffer that outlived a loop still does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from ...ir.loop_analysis import Positions, positions, used_buffers
from ...ir.loops import Assign, Module
from ...ir.thread_mapping import Tiles
from ...records.loops import buffer_bytes

Key = tuple[str, int]  # a kernel, or the n-th fetch into a buffer


def with_lives(before: Module, after: Module, parts: Mapping[str, tuple[str, ...]]) -> Module:
    """The module after fusion, with the lives of its buffers; unused buffers are left out.

    ``parts`` has the kernels of ``before`` in each fused kernel.
    """
    old, new = positions(before), positions(after)
    places = _places(new, parts)
    moved: dict[int, tuple[int, int]] = {}
    for key, (first, end) in _spans(old):
        start, stop = places[key]
        for n in range(first, end):
            whole = stop - start != end - first or key[0] in parts
            moved[n] = (start, stop - 1) if whole else (start + n - first,) * 2
    buffers = []
    for buffer in after.buffers:
        if buffer.name in old.uses and buffer.name not in new.uses and buffer.place != "caller":
            continue
        uses = old.uses.get(buffer.name, ())
        alive = set(uses)
        for first, end in old.loops:
            inside = any(first <= n < end for n in uses)
            if inside and buffer.live[0] <= first and end - 1 <= buffer.live[1]:
                alive |= set(range(first, end))
        spans = [moved[n] for n in sorted(alive)]
        if spans:
            life = (min(a for a, _ in spans), max(b for _, b in spans))
            buffer = replace(buffer, live=life)
        buffers.append(buffer)
    return replace(after, buffers=tuple(buffers))


def most_held(module: Module, extents: Mapping[str, int]) -> int:
    """Largest number of bytes of arena buffers that are live at one position."""
    held = [(b.live, buffer_bytes(b, extents)) for b in module.buffers if b.place == "arena"]
    moments = {first for (first, _), _ in held}
    return max((sum(n for (a, b), n in held if a <= m <= b) for m in moments), default=0)


def _spans(found: Positions) -> Iterator[tuple[Key, tuple[int, int]]]:
    """Positions of each kernel and each fetch in the text of a module."""
    for name, span in found.kernels.items():
        yield (name, -1), span
    for name, places in found.fetches.items():
        for number, position in enumerate(places):
            yield (name, number), (position, position + 1)


def _places(found: Positions, parts: Mapping[str, tuple[str, ...]]) -> dict[Key, tuple[int, int]]:
    """Positions of each kernel and fetch of the first module in the text of the new one."""
    places: dict[Key, tuple[int, int]] = {}
    for (name, number), span in _spans(found):
        for part in parts.get(name, (name,)) if number < 0 else (name,):
            places[part, number] = span
    return places


def without_tile_targets(module: Module) -> Module:
    """The module in which a tile's target has no memory if only the tile's epilogue reads it."""
    users: Counter[str] = Counter()
    for kernel in module.kernels:
        users.update({n for s in kernel.body for n in used_buffers(s)})
    targets = {
        first.out.buffer
        for k in module.kernels
        if isinstance(k.mapping, Tiles) and len(k.body) > len(k.mapping.terms)
        for first in k.body[:1]
        if isinstance(first, Assign) and not first.accumulate
    }
    return replace(
        module,
        buffers=tuple(
            replace(b, place="tile")
            if b.place == "arena" and not b.keep and b.name in targets and users[b.name] == 1
            else b
            for b in module.buffers
        ),
    )

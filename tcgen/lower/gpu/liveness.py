"""When buffers hold memory after launches were joined and have changed places.

Before: lives in the positions of the first module. After: the same lives in those of the new one.
What a joined kernel uses lives over all of its statements, because its blocks run at once; what
outlived a loop still does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from ...ir.loop_analysis import positions, used_buffers
from ...ir.loops import Assign, Fetch, Host, HostLoop, Kernel, Launch, Loop, Module, Stmt
from ...ir.thread_mapping import Tiles
from ..scratch_budget import buffer_bytes

Key = tuple[str, int]  # a kernel, or the n-th fetch into a buffer


def with_lives(before: Module, after: Module, parts: Mapping[str, tuple[str, ...]]) -> Module:
    """The module after joining, with the lives of its buffers.

    Args:
        before: with the lives of its own text.
        after: with the same buffers; those without a use are left out.
        parts: for each joined kernel the kernels of ``before`` that it was made of.
    """
    places = _places(after, parts)
    moved: dict[int, tuple[int, int]] = {}
    loops: list[tuple[int, int]] = []
    for key, (first, end) in _spans(before):
        start, stop = places[key]
        for n in range(first, end):
            whole = stop - start != end - first or key[0] in parts
            moved[n] = (start, stop - 1) if whole else (start + n - first,) * 2
    _loops(before, loops)
    uses = positions(before).uses
    found = positions(after).uses
    buffers = []
    for buffer in after.buffers:
        if buffer.name in uses and buffer.name not in found and buffer.place != "caller":
            continue
        old = uses.get(buffer.name, ())
        alive = set(old)
        for first, end in loops:
            inside = any(first <= n < end for n in old)
            if inside and buffer.live[0] <= first and end - 1 <= buffer.live[1]:
                alive |= set(range(first, end))
        spans = [moved[n] for n in sorted(alive)]
        if spans:
            life = (min(a for a, _ in spans), max(b for _, b in spans))
            buffer = replace(buffer, live=life)
        buffers.append(buffer)
    return replace(after, buffers=tuple(buffers))


def most_held(module: Module, extents: Mapping[str, int]) -> int:
    """Bytes of the arena's buffers that live at one position, at most."""
    held = [(b.live, buffer_bytes(b, extents)) for b in module.buffers if b.place == "arena"]
    moments = {first for (first, _), _ in held}
    return max((sum(n for (a, b), n in held if a <= m <= b) for m in moments), default=0)


def _spans(module: Module) -> Iterator[tuple[Key, tuple[int, int]]]:
    """Positions of each kernel and each fetch in the text of a module."""
    kernels = positions(module).kernels
    count: Counter[str] = Counter()
    position = 0

    def walk(host: tuple[Host, ...]) -> Iterator[tuple[Key, tuple[int, int]]]:
        nonlocal position
        for item in host:
            match item:
                case HostLoop(_, body):
                    yield from walk(body)
                case Launch(name):
                    yield (name, -1), kernels[name]
                    position = kernels[name][1]
                case Fetch(name):
                    yield (name, count[name]), (position, position + 1)
                    count[name] += 1
                    position += 1

    yield from walk(module.host_constant)
    yield from walk(module.host_volatile)


def _places(after: Module, parts: Mapping[str, tuple[str, ...]]) -> dict[Key, tuple[int, int]]:
    found: dict[Key, tuple[int, int]] = {}
    for (name, number), span in _spans(after):
        for part in parts.get(name, (name,)) if number < 0 else (name,):
            found[part, number] = span
    return found


def _loops(module: Module, found: list[tuple[int, int]]) -> None:
    """Positions of every loop, of the host or in a kernel."""
    bodies: dict[str, Kernel] = {k.name: k for k in module.kernels}
    position = 0

    def walk(items: tuple[Host | Stmt, ...]) -> None:
        nonlocal position
        for item in items:
            match item:
                case HostLoop(_, body) | Loop(_, body):
                    first = position
                    walk(body)
                    found.append((first, position))
                case Launch(name):
                    walk(bodies[name].body)
                case _:
                    position += 1

    walk(module.host_constant)
    walk(module.host_volatile)


def in_tiles(module: Module) -> Module:
    """The module with the targets of tiles that nothing but their epilogue reads in no memory."""
    users: Counter[str] = Counter()
    for kernel in module.kernels:
        users.update({n for s in kernel.body for n in used_buffers(s)})
    targets = {
        first.out.buffer
        for k in module.kernels
        if isinstance(k.share, Tiles) and len(k.body) > len(k.share.terms)
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

"""Choose the loops whose iterations are divided into parts.

Reads level 4, bound to its target, and makes it with its parts. Of the outermost loops with
independent iterations, those with the most work are chosen, if they have more work than the
statements outside of them, which every part repeats.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ..ir.loops import Fetch, Host, HostLoop, Launch, LoopVar, Module, Parts, Stmt
from ..ir.parts import chains, parts_of
from ..thresholds.planner import PartsThresholds
from .layout import Context


def with_parts(module: Module, extents: Mapping[str, int], thresholds: PartsThresholds) -> Module:
    """The module, bound to its target, with its parts if its volatile phase can be divided."""
    context = Context({b.name: b for b in module.buffers}, extents, thresholds)
    total = _points(module.host_volatile, module, context)
    best, most = None, 0
    for loop, longest in chains(module):
        inside = _points((loop,), module, context)
        found = _longest_parts(module, longest, inside, context)
        if found is None:
            continue
        once = (k.body for k in module.kernels if k.name in found.once)
        repeated = total - inside - sum(_points(body, module, context) for body in once)
        if inside > max(most, repeated):
            best, most = found, inside
    return module if best is None else replace(module, parts=best)


def _longest_parts(
    module: Module, longest: tuple[LoopVar, ...], work: int, context: Context[PartsThresholds]
) -> Parts | None:
    """The parts along as many loops of a chain as can be divided, up to enough iterations.

    ``longest`` has the variables of the chain; ``work`` is the number of points of all iterations.
    """
    enough = context.thresholds
    count, depth = 1, 0
    while depth < len(longest):
        if count >= enough.iterations and work <= count * enough.points:
            break
        count *= context.iterations(longest[depth])
        depth += 1
    for end in range(depth, 0, -1):
        parts = parts_of(module, longest[:end])
        if isinstance(parts, Parts):
            return parts
    return None


def _points(items: Iterable[Stmt | Host], module: Module, context: Context[PartsThresholds]) -> int:
    bodies = {k.name: k.body for k in module.kernels}
    count = 0
    for item in items:
        match item:
            case HostLoop(var, body):
                count += context.iterations(var) * _points(body, module, context)
            case Launch(kernel):
                count += context.points(bodies[kernel])
            case Fetch():
                continue
            case _:
                count += context.points((item,))
    return count

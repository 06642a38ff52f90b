"""The parts of a program: along which loops the volatile phase is divided.

Reads level 4, bound to its target, and makes it with its parts. Of the outermost loops whose
iterations can run apart, those with the most work are chosen, if they have more work than what
stands outside of them, which every part repeats.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import prod

from ..ir.loops import Fetch, Host, HostLoop, Launch, Loop, LoopVar, Module, Parts, Stmt
from ..ir.parts import chains, find_chain, parts_of
from .layout import iterations, points

# More loops join the chain until it has this many iterations, and an iteration at most this many
# points: a finer division makes no better balance, and its numbers would take time.
_MANY_ITERATIONS = 64
_FEW_POINTS = 2**20


def with_parts(module: Module, extents: Mapping[str, int]) -> Module:
    """The module with its parts, where its volatile phase can be divided.

    Args:
        module: bound to its target.
        extents: planning extents.
    """
    total = _points(module.host_volatile, module, extents)
    best, most = None, 0
    for longest in chains(module):
        found = _longest_parts(module, longest, extents)
        if found is None:
            continue
        inside = _inside(module, found.chain, extents)
        alone = (k.body for k in module.kernels if k.name in found.once)
        repeated = total - inside - sum(_points(body, module, extents) for body in alone)
        if inside > max(most, repeated):
            best, most = found, inside
    return module if best is None else replace(module, parts=best)


def _longest_parts(
    module: Module, longest: tuple[LoopVar, ...], extents: Mapping[str, int]
) -> Parts | None:
    """The parts along as many loops of a chain as are worth a number and can be divided."""
    work, count, depth = _inside(module, longest[:1], extents), 1, 0
    while depth < len(longest) and (count < _MANY_ITERATIONS or work > count * _FEW_POINTS):
        count *= _iterations(longest[depth], extents)
        depth += 1
    for end in range(depth, 0, -1):
        parts = parts_of(module, longest[:end])
        if isinstance(parts, Parts):
            return parts
    return None


def _inside(module: Module, variables: tuple[LoopVar, ...], extents: Mapping[str, int]) -> int:
    """Points of all iterations of a chain, as if triangles were squares."""
    chain = find_chain(module, variables)
    assert chain is not None, "these loops are the outermost ones"
    return prod(_iterations(v, extents) for v in variables) * _points(chain.body, module, extents)


def _points(items: Iterable[Stmt | Host], module: Module, extents: Mapping[str, int]) -> int:
    buffers = {b.name: b for b in module.buffers}
    bodies = {k.name: k.body for k in module.kernels}
    count = 0
    for item in items:
        match item:
            case HostLoop(var, body):
                count += _iterations(var, extents) * _points(body, module, extents)
            case Launch(kernel):
                count += points(bodies[kernel], buffers, extents)
            case Fetch():
                continue
            case _:
                count += points((item,), buffers, extents)
    return count


def _iterations(var: LoopVar, extents: Mapping[str, int]) -> int:
    return iterations(Loop(var, ()), extents)

"""The number of launches against a walk through the loops of the host."""

from __future__ import annotations

import pytest

import tcgen
from tcgen.artifact.manifest import Manifest, constant_launches, launches
from tcgen.records.loops import Host, HostLoop, Launch, LoopVar
from tcgen.records.tensors import Space

CHAIN = """
space o
space v
index i j : o
index a b c : v
input x[o,v], y[o,v]
output r
r[i,j] = x[i,a]*y[j,a]
"""


def walked(items: tuple[Host, ...], manifest: Manifest, values: dict[str, int]) -> int:
    count = 0
    for item in items:
        if isinstance(item, HostLoop):
            var = item.var
            stop = manifest.extent(var.space.name, dict(manifest.planning_extents))
            if var.below is not None:
                stop = min(stop, values[var.below] + 1)
            for n in range(0, stop, var.tile or 1):
                count += walked(item.body, manifest, {**values, var.name: n})
        count += isinstance(item, Launch)
    return count


@pytest.mark.parametrize(
    "host",
    [
        "L",
        "v(L L)",
        "v3(v3<0(L v3<1(L L)) L)",
        "v2(o(L v2<0(L)) L)",
        "v4(v4<0(o(L) v4<0(L)))",
        "v2(v2<0(o(o<2(L v2<1(L)))))",
    ],
)
def test_loops_of_the_host_are_counted(host: str) -> None:
    from dataclasses import replace

    program = tcgen.compile(CHAIN, extents={"o": 5, "v": 11}, target="numpy")
    items = parsed(host)
    manifest = replace(program.manifest, host_volatile=items, host_constant=items)
    extents = dict(manifest.planning_extents)
    assert launches(manifest, extents) == walked(items, manifest, {})
    assert constant_launches(manifest, extents) == walked(items, manifest, {})


def parsed(text: str) -> tuple[Host, ...]:
    """Host statements: ``v3<0(L)`` is a loop over tiles of v, below that of depth 0."""
    rest = text.replace(" ", "")

    def items(depth: int) -> tuple[Host, ...]:
        nonlocal rest
        found: list[Host] = []
        while rest and rest[0] != ")":
            if rest[0] == "L":
                rest = rest[1:]
                found.append(Launch("k"))
                continue
            head, rest = rest.split("(", 1)
            size, _, below = head.partition("<")
            tile = int(size[1:]) if size[1:] else None
            body = items(depth + 1)
            rest = rest[1:]
            bound = f"n{below}" if below else None
            found.append(HostLoop(LoopVar(f"n{depth}", Space(size[0]), tile, bound), body))
        return tuple(found)

    return items(0)


def test_reports_have_them() -> None:
    program = tcgen.compile(CHAIN, extents={"o": 5, "v": 11}, target="cuda")
    assert program.report["launches"] == launches(program.manifest, {"o": 5, "v": 11}) == 1

"""Passes through the banks of shared memory and sectors of global memory, by instruction.

The costs follow from the addresses that the lanes of a warp access together. They are exact where
all lanes of a warp execute an instruction equally often, as they do in full tiles.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from support.cuda_emulator import EmulatedKernel


class _Row(ctypes.Structure):
    _fields_ = [
        ("line", ctypes.c_int32),
        ("shared", ctypes.c_int32),
        ("write", ctypes.c_int32),
        ("accesses", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
        ("cost", ctypes.c_uint64),
        ("least", ctypes.c_uint64),
    ]


@dataclass(frozen=True, slots=True)
class Traffic:
    """What an instruction of the PTX cost in a launch.

    Attributes:
        line: of the PTX.
        instruction: its text.
        space: ``"shared"`` or ``"global"``; a cp.async has both.
        write: True if it writes there.
        accesses: times that a warp executed it.
        bytes: of all lanes.
        cost: passes through the banks, or sectors of 32 bytes.
        least: the same if no two lanes disturbed each other.
    """

    line: int
    instruction: str
    space: str
    write: bool
    accesses: int
    bytes: int
    cost: int
    least: int


def traffic_of(
    kernel: EmulatedKernel,
    ptx: str,
    grid: Sequence[int],
    block: Sequence[int],
    args: Any,
    **more: Any,
) -> tuple[Traffic, ...]:
    """Launch a kernel of the PTX engine and count what its accesses cost."""
    library = kernel.library
    library.tcgen_count_traffic(1)
    try:
        kernel(grid, block, args, **more)
    finally:
        count = library.tcgen_count_traffic(0)
    rows = (_Row * max(1, count))()
    library.tcgen_traffic(rows)
    lines = ptx.splitlines()
    return tuple(
        Traffic(
            row.line,
            " ".join(lines[row.line - 1].split()),
            "shared" if row.shared else "global",
            bool(row.write),
            row.accesses,
            row.bytes,
            row.cost,
            row.least,
        )
        for row in rows[:count]
    )


def excess(found: Iterable[Traffic], space: str, write: bool) -> float:
    """Cost for each least cost of all accesses of a kind; 1 where there are none."""
    chosen = [t for t in found if (t.space, t.write) == (space, write)]
    least = sum(t.least for t in chosen)
    return sum(t.cost for t in chosen) / least if least else 1.0

"""Parts of programs: covers that add up to the whole, and inputs that hold only what is touched."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from tcgen.ir.plan import FusionPlan
from tcgen.ir.system import System
from tcgen.testing import random_arrays, split_starts

_MOST = 60  # parts that run one by one


def cover(count: int, pieces: int) -> list[tuple[int, int]]:
    """About equal pieces of the numbers of some parts."""
    ends = [round(n * count / pieces) for n in range(pieces + 1)]
    return list(itertools.pairwise(ends))


def check_system(program: Any, system: System, extents: Mapping[str, int], **more: Any) -> int:
    """Check the parts of the program of a system on random arrays; their number."""
    inputs, starts = split_starts(system, random_arrays(system, extents, seed=1))
    return check_parts(program, extents, inputs, starts, **more)


def check_plan(program: Any, plan: FusionPlan, extents: Mapping[str, int]) -> int:
    """Check the parts of the program of a plan on random arrays; their number."""
    random = np.random.default_rng(7)
    inputs = {
        t.name: random.random([extents[s.name] for s in t.spaces]) for t in plan.program.inputs
    }
    return check_parts(program, extents, inputs, {})


def check_parts(
    program: Any,
    extents: Mapping[str, int],
    inputs: Mapping[str, Any],
    starts: Mapping[str, Any],
    pieces: Iterable[int] = (1, 2, 7),
    rtol: float = 1e-13,
) -> int:
    """Check that parts add up, and that they touch no more than they say; their number.

    Each piece runs on inputs that are NaN wherever it says it does not read.
    """

    def run(arrays: Mapping[str, Any], **more: Any) -> dict[str, Any]:
        return program(**arrays, out={n: a.copy() for n, a in starts.items()}, **more)

    whole, count = run(inputs), program.parts(extents)
    for number in dict.fromkeys((*pieces, min(count, _MOST))):
        total = {name: np.zeros_like(array) for name, array in whole.items()}
        for name, start in starts.items():
            total[name][...] = start
        for first, last in cover(count, number):
            touched = program.touches(first, last, extents)
            found = run(only(inputs, touched), part=(first, last))
            for name, array in found.items():
                share = array - starts.get(name, 0)
                total[name] += share
                if name not in starts:
                    assert not outside(share, touched[name]).any(), f"{name} in {first}..{last}"
        for name, array in whole.items():
            scale = max(1.0, float(np.max(np.abs(array), initial=0)))
            error = float(np.max(np.abs(total[name] - array), initial=0)) / scale
            assert error < rtol, f"{number} pieces of {count}: {name} is {error} off"
    return count


def only(arrays: Mapping[str, Any], touched: Mapping[str, Any]) -> dict[str, Any]:
    """Arrays that are NaN outside of some rectangles."""
    masked = {}
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray):
            masked[name] = array
            continue
        masked[name] = np.full_like(array, np.nan)
        for rectangle in touched[name]:
            masked[name][rectangle] = array[rectangle]
    return masked


def outside(array: Any, rectangles: Iterable[tuple[slice, ...]]) -> Any:
    """An array with zero in some rectangles."""
    rest = np.array(array)
    for rectangle in rectangles:
        rest[rectangle] = 0
    return rest

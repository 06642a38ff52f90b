"""Shipped specs under every objective, at odd extents and within limits, beside the interpreter."""

from __future__ import annotations

from dataclasses import replace

import pytest

from support.campaigns import CAMPAIGN, numbers
from tcgen.compiler.driver import Compilation, compile_system, read_system
from tcgen.errors import MemoryLimitError
from tcgen.interp import evaluate_system
from tcgen.ir.system import System
from tcgen.options import Options
from tcgen.resources import shipped_specs
from tcgen.runtime.program import Program
from tcgen.testing import assert_same_values, random_arrays, split_starts

# Half a campaign and more takes all specs: a case of coupled cluster takes up to a minute.
WHOLE = CAMPAIGN.share is not None and CAMPAIGN.share >= 0.5
SPECS = shipped_specs() if WHOLE else ("a3a", "mp2_closed_shell", "mp2_df", "df_ladder")
OBJECTIVES = ("linear", "memory", "peak", "time", "kernels")
# Occupied and virtual orbitals, then other spaces.
EXTENTS = (
    *((0, 3, 2), (3, 0, 2), (0, 0, 0), (1, 1, 1), (1, 5, 3), (5, 1, 2)),
    *((2, 3, 5), (3, 2, 4), (5, 3, 7), (2, 7, 3), (3, 5, 11), (4, 10, 6)),
)
SHARES = (None, 0.7, 0.4)
"""Limits, in parts of what a call allocates without one."""
FULL = len(OBJECTIVES) * len(EXTENTS) * len(SHARES)


def extents_of(system: System, occupied: int, virtual: int, other: int) -> dict[str, int]:
    kinds = {"occupied": occupied, "virtual": virtual}
    return {s.name: kinds.get(s.kind or "", other) for s in system.spaces if not s.parts}


def compiled(system: System, options: Options, share: float | None) -> Compilation | None:
    """The program within a share of its memory; None if that is refused."""
    result = compile_system(system, options)
    if share is None:
        return result
    limit = int(share * Program(result.artifact).peak_bytes())
    try:
        return compile_system(system, replace(options, memory_limit=limit))
    except MemoryLimitError:
        return None


@pytest.mark.campaign
@pytest.mark.filterwarnings("ignore:output .* is zero")
@pytest.mark.parametrize("name", SPECS)
def test_values_under_every_objective(name: str) -> None:
    system = read_system(shipped_specs()[name])
    for number in numbers(2, FULL):
        # Neighbouring numbers differ in everything.
        rest, objective = divmod(number * 67 % FULL, len(OBJECTIVES))
        share, place = divmod(rest, len(EXTENTS))
        extents = extents_of(system, *EXTENTS[place])
        options = Options(
            extents=tuple((name, max(1, extent)) for name, extent in sorted(extents.items())),
            objective=OBJECTIVES[objective],
            target="numpy" if number % 3 else "cpu",
        )
        result = compiled(system, options, SHARES[share])
        if result is None:
            continue
        inputs, starts = split_starts(system, random_arrays(system, extents, seed=number))
        expected = evaluate_system(system, inputs, extents, out=starts)
        actual = Program(result.artifact)(**inputs, out={n: a.copy() for n, a in starts.items()})
        assert_same_values(actual, expected, rtol=1e-9, atol=1e-9)

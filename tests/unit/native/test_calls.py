"""Programs of a library beside the same programs in Python: results, bytes, parts, states."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcgen
from support.campaigns import numbers
from support.native_library import (
    SMALL,
    Called,
    compiled,
    load,
    needs_cmake,
    python_bytes,
    write_library,
)
from tcgen.compiler.driver import read_system
from tcgen.options import Options
from tcgen.resources import shipped_specs
from tcgen.testing import random_arrays, split_starts

pytestmark = needs_cmake


def check(called: Called, system: Any, extents: Mapping[str, int], threads: int = 1) -> None:
    """Compare a call, its bytes, its parts and a bound call with Python's, to the bit."""
    arrays = random_arrays(system, extents, dtype=called.manifest.dtype, seed=threads)
    inputs, starts = split_starts(system, arrays)
    tcgen.set_threads(threads)
    try:
        expected = called.python(**inputs, out={n: a.copy() for n, a in starts.items()} or None)
        assert called.workspace_bytes(extents, threads) == python_bytes(called.python, extents)
    finally:
        tcgen.set_threads(None)

    def agree(**more: Any) -> None:
        status, found = called.call(extents, inputs, starts, threads=threads, check=1, **more)
        assert status == 0, called.text()
        for name, array in expected.items():
            np.testing.assert_array_equal(found[name], array, err_msg=f"{name} {more}")

    agree()
    agree(plan=called.plan(extents, threads))
    if called.program.binds:
        agree(bound=True)
    count = called.parts(extents)
    assert count == called.python.parts(extents)
    for first, last in ((0, 0), (0, count // 3), (count // 3, count)):
        out = {n: a.copy() for n, a in starts.items()} or None
        tcgen.set_threads(threads)
        try:
            part = called.python(**inputs, out=out, part=(first, last))
        finally:
            tcgen.set_threads(None)
        for bound in {False, called.program.binds}:
            status, found = called.call(
                extents,
                inputs,
                starts,
                threads=threads,
                part=1,
                first=first,
                last=last,
                bound=bound,
            )
            assert status == 0, called.text()
            for name, array in part.items():
                np.testing.assert_array_equal(found[name], array, err_msg=f"{name} {first} {last}")


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Called, Any]]:
    """Small programs in one library, by name, with their equations."""
    folder = tmp_path_factory.mktemp("native") / "small"
    small = tcgen.read_spec(SMALL)
    mp2, ladder = (read_system(shipped_specs()[name]) for name in ("mp2_df", "df_ladder"))
    extents = (("o", 4), ("v", 6))
    found = [
        compiled(small, Options(extents=extents)),
        compiled(mp2, Options(extents=(*extents, ("x", 9)))),
        compiled(
            ladder,
            Options(extents=(("o", 3), ("v", 40), ("x", 30)), sliced=("b_vv",), objective="peak"),
        ),
    ]
    made = load(folder, write_library(folder, found))
    systems = dict(zip(made, (small, found[1][1], found[2][1]), strict=True))
    return {name: (called, systems[name]) for name, called in made.items()}


@pytest.mark.parametrize("extents", [(4, 6, 9), (0, 3, 2), (1, 1, 1), (5, 0, 3), (5, 3, 7)])
def test_calls_are_those_of_python(programs: Any, extents: tuple[int, ...]) -> None:
    for called, system in programs.values():
        for threads in (1, 2):
            here = dict(zip(("o", "v", "x"), extents, strict=True))
            check(called, system, {b: here[b] for b in called.manifest.bases}, threads)


def test_extents_beyond_addresses(programs: Any) -> None:
    for called, _ in programs.values():
        for huge in (2**31, 2**62):
            extents = dict.fromkeys(called.manifest.bases, huge)
            assert called.workspace_bytes(extents) == -2
            assert "more than 2^62 bytes" in called.text()
            assert called.parts(extents) == -2


SPECS = tuple(shipped_specs())
OBJECTIVES = ("none", "time", "peak")
DTYPES = ("float64", "float32", "complex128")
FULL = len(SPECS) * len(OBJECTIVES) * len(DTYPES)


def case(number: int) -> tuple[str, str, str]:
    """Neighbouring numbers differ in everything; each spec is among the first ones."""
    rest, name = divmod(number, len(SPECS))
    turn = (rest * 4 + name) % 9
    return SPECS[name], OBJECTIVES[turn % 3], DTYPES[turn // 3]


def compare(number: int, folder: Path) -> None:
    """Compare a shipped spec with Python at extents that include 0 and 1."""
    name, objective, dtype = case(number)
    system = read_system(shipped_specs()[name])
    kinds = {"occupied": 3, "virtual": 5}
    planned = {s.name: kinds.get(s.kind or "", 4) for s in system.spaces if not s.parts}
    options = Options(extents=tuple(planned.items()), objective=objective, dtype=dtype)
    (called,) = load(folder, write_library(folder, [compiled(system, options)])).values()
    # An axis of a joined space does not show its parts, which then have the planned extents.
    shown = {s.name for t in system.inputs for s in t.spaces}
    for threads, others in ((1, (2, 3, 4)), (2, (3, 5, 7)), (1, (0, 3, 1)), (2, (1, 1, 1))):
        extents = dict(zip(planned, (others * 4)[: len(planned)], strict=True))
        extents |= {base: n for base, n in planned.items() if base not in shown}
        check(called, system, extents, threads)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:output .* is zero")
@pytest.mark.parametrize("number", range(len(SPECS)), ids=lambda n: "-".join(case(n)))
def test_shipped_specs(number: int, tmp_path: Path) -> None:
    compare(number, tmp_path / "one")


@pytest.mark.slow
@pytest.mark.campaign
@pytest.mark.filterwarnings("ignore:output .* is zero")
def test_shipped_specs_under_every_objective_and_type(tmp_path: Path) -> None:
    for number in numbers(1, FULL):
        compare(number, tmp_path / str(number))

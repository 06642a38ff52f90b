"""Sources in pieces: each kernel is in one of them, and values are those of one file."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from support.messages import mentions
from tcgen.artifact.kernel_abi import levels_of_pieces
from tcgen.compiler.driver import compile_system, read_system
from tcgen.errors import BuildError
from tcgen.interp import evaluate_system
from tcgen.options import Options
from tcgen.runtime.cpu import build
from tcgen.runtime.program import Program
from tcgen.testing import assert_same_values, random_arrays, split_starts
from tcgen.thresholds import Thresholds

EXTENTS = {"o": 3, "v": 5}
SYSTEM = read_system(Path("ccd_spin_orbital"))
USUAL = Thresholds()


def compiled(dtype: str = "float64", lines: int = 60, percent: int = 3) -> Program:
    cpu = replace(USUAL.cpu, piece_lines=lines, short_percent=percent)
    usual = replace(USUAL, cpu=cpu)
    options = Options(extents=tuple(EXTENTS.items()), dtype=dtype, thresholds=usual, optimize=False)
    return Program(compile_system(SYSTEM, options).artifact)


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
def test_values_are_those_of_the_equations(dtype: str) -> None:
    inputs, starts = split_starts(SYSTEM, random_arrays(SYSTEM, EXTENTS, dtype=dtype, seed=1))
    wanted = evaluate_system(SYSTEM, inputs, EXTENTS, out=starts)
    tolerance = 1e-3 if dtype == "float32" else 1e-10
    assert_same_values(compiled(dtype, 250)(**inputs), wanted, rtol=tolerance, atol=tolerance)


def test_each_function_is_in_one_piece() -> None:
    source, one = (compiled(lines=n).artifact.text("kernels.c") for n in (60, 10**6))
    levels = levels_of_pieces(source)
    assert len(levels) > 3
    assert levels_of_pieces(one) == ()
    heads = [
        Counter(t for t in s.splitlines() if t.startswith("void tcgen_")) for s in (source, one)
    ]
    assert heads[0] == heads[1]
    assert set(heads[0].values()) == {1}


def test_levels_follow_the_share_of_loops() -> None:
    levels = {
        percent: levels_of_pieces(compiled(percent=percent).artifact.text("kernels.c"))[1:]
        for percent in (0, 100)
    }
    assert "-O3" in levels[0]
    assert set(levels[100]) == {"-O1"}


def test_an_error_names_the_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TCGEN_CACHE_DIR", str(tmp_path))
    source = '#define TC_PIECES "-O3 -O1"\n#if TC_PIECE == 1\n#error no second piece\n#endif\n'
    with pytest.raises(BuildError, match=mentions("second -DTC_PIECE=1 -O1")):
        build.build_libraries([build.Source(source)])

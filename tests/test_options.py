"""Options of a compilation: what Python users pass, and the messages where it cannot be used."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcgen
from tcgen.options import parse_bytes

TRACE = "space o\nindex i : o\ninput f[o,o]\noutput r\nr = f[i,i]\n"


def test_integers_of_numpy_are_extents_and_bytes() -> None:
    extents = {"o": np.int64(3)}
    program = tcgen.compile(TRACE, extents=extents, target="numpy", memory_limit=np.int64(10**6))
    assert program.report["extents"] == {"o": 3}
    assert program.manifest.memory_limit == 10**6
    assert program.peak_bytes({"o": np.int32(5)}) == program.peak_bytes({"o": 5})


@pytest.mark.parametrize(
    ("option", "error", "message"),
    [
        ({"extents": {"o": "x"}}, tcgen.TcgenError, "extent o='x' is not a whole number"),
        ({"extents": {"o": 3.0}}, ValueError, r"extent o=3\.0 is not a whole number"),
        ({"extents": [("o", 3)]}, ValueError, "extents must be a dict such as"),
        ({"extents": {"o": -1}}, ValueError, "planning extent o=-1 must be at least 1"),
        ({"memory_limit": 1e9}, TypeError, "1000000000.0 is not an amount of memory"),
        ({"memory_limit": -1}, TypeError, "-1 is not an amount of memory"),
        ({"memory_limit": "8 parsec"}, TypeError, "'8 parsec' is not an amount of memory"),
        ({"effort": 0}, TypeError, "effort 0 is not a whole number of at least 1"),
        ({"effort": "much"}, TypeError, "effort 'much' is not"),
        ({"effort": True}, TypeError, "effort True is not a whole number"),
        ({"extents": {"o": True}}, ValueError, "extent o=True is not a whole number"),
        ({"dtype": float}, TypeError, "dtype <class 'float'> is not one of float64"),
        ({"dtype": np.dtype("f4")}, TypeError, r"dtype dtype\('float32'\) is not one of float64"),
        ({"optimize": "no"}, TypeError, "optimize='no' is neither True nor False"),
        ({"pareto": 1}, TypeError, "pareto=1 is neither True nor False"),
        ({"machine": {"flops": 1}}, TypeError, "is not text such as 'flops=2e11"),
        ({"machine": "flops=2e11"}, TypeError, "change nothing for the objective none: choose"),
        ({"sliced": "ff"}, TypeError, "sliced input ff: there is no input of that name"),
    ],
)
def test_options_that_cannot_be_used(
    option: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message) as caught:
        tcgen.compile(TRACE, **{"extents": {"o": 3}, "target": "numpy", **option})
    assert isinstance(caught.value, tcgen.TcgenError)


def test_extents_of_a_peak_are_checked() -> None:
    program = tcgen.compile(TRACE, extents={"o": 3}, target="numpy")
    for extents in ({"v": 3}, {"o": -1}):
        with pytest.raises(tcgen.TcgenError, match="give extents of at least 0 for o"):
            program.peak_bytes(extents)


def test_amounts_of_memory() -> None:
    assert parse_bytes("1.5 KiB") == 1536
    assert parse_bytes("8GiB") == 8 * 2**30
    assert parse_bytes(7) == 7

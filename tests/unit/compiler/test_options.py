"""Options of a compilation: what Python users pass, and the messages where it cannot be used."""

from __future__ import annotations

from dataclasses import fields
from inspect import signature
from typing import Any

import numpy as np
import pytest

import tcgen
from support.messages import mentions
from tcgen.cli.compile import compile_command
from tcgen.options import Options, parse_bytes

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
        ({"extents": {"o": "x"}}, tcgen.TcgenError, "o='x'"),
        ({"extents": {"o": 3.0}}, ValueError, "o=3.0"),
        ({"extents": [("o", 3)]}, ValueError, "extents dict"),
        ({"extents": {"o": -1}}, ValueError, "extent o=-1 1"),
        ({"memory_limit": 1e9}, TypeError, "1000000000.0 memory"),
        ({"memory_limit": -1}, TypeError, "-1 memory"),
        ({"memory_limit": "8 parsec"}, TypeError, "'8 parsec' memory"),
        ({"effort": 0}, TypeError, "effort 0 1"),
        ({"effort": "much"}, TypeError, "effort 'much'"),
        ({"effort": True}, TypeError, "effort True"),
        ({"extents": {"o": True}}, ValueError, "o=True"),
        ({"dtype": float}, TypeError, "dtype <class 'float'> float64"),
        ({"dtype": np.dtype("f4")}, TypeError, "dtype dtype('float32') float64"),
        ({"optimize": "no"}, TypeError, "optimize='no' True False"),
        ({"pareto": 1}, TypeError, "pareto=1 True False"),
        ({"machine": {"flops": 1}}, TypeError, "flops=2e11"),
        ({"sliced": "ff"}, TypeError, "sliced input ff"),
    ],
)
def test_options_that_cannot_be_used(
    option: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=mentions(message)) as caught:
        tcgen.compile(TRACE, **{"extents": {"o": 3}, "target": "numpy", **option})
    assert isinstance(caught.value, tcgen.TcgenError)


def test_extents_of_a_peak_are_checked() -> None:
    program = tcgen.compile(TRACE, extents={"o": 3}, target="numpy")
    for extents in ({"v": 3}, {"o": -1}):
        with pytest.raises(tcgen.TcgenError, match=mentions("extents 0 o")):
            program.peak_bytes(extents)


def test_amounts_of_memory() -> None:
    assert parse_bytes("1.5 KiB") == 1536
    assert parse_bytes("8GiB") == 8 * 2**30
    assert parse_bytes(7) == 7


def test_every_field_of_planning_is_a_keyword_and_an_option() -> None:
    """The record is the one place from which signature, command line and documentation come."""
    keywords = signature(tcgen.compile).parameters
    options = {p.name: p for p in compile_command.params}
    for field in fields(tcgen.Planning):
        assert keywords[field.name].default == field.default
        assert f"{field.name}: " in str(tcgen.Planning.__doc__)
        assert options[field.name].help  # type: ignore[attr-defined]  # an argument has none


def test_planning_is_taken_as_a_record_and_as_keywords() -> None:
    given = {"extents": {"o": 3}, "target": "numpy"}
    planning = tcgen.Planning(objective="peak", machine="flops=2e11", pareto=True)
    program = tcgen.compile(TRACE, **given, planning=planning)
    assert program.report["pareto"]
    assert (
        "pareto"
        not in tcgen.compile(TRACE, **given, planning=planning, pareto=False, machine=None).report
    )
    with pytest.raises(TypeError, match=mentions("objectiv write objective")):
        tcgen.compile(TRACE, **given, objectiv="peak")
    with pytest.raises(TypeError, match=mentions("zzz planning objective effort")):
        tcgen.compile(TRACE, **given, zzz="peak")
    with pytest.raises(TypeError, match=mentions("planning 'peak' Planning")):
        tcgen.compile(TRACE, **given, planning="peak")


def test_records_of_options_are_values() -> None:
    assert tcgen.Planning(sliced="ff") == tcgen.Planning(sliced=["ff"])
    assert hash(Options((("o", 1),))) == hash(Options(extents=(("o", 1),), objective="time"))
    with pytest.raises(TypeError, match=mentions("round_each=1 True False")):
        Options(round_each=1)  # type: ignore[arg-type]

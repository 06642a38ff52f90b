"""Prices of a run on nodes that are not there."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

import tcgen
from tcgen.cli.commands import main
from tcgen.distributed.nodes import price_nodes

SPEC = """
space o = 4
space v = 12
index i j : o
index a b c d : v
input v_vvvv[v,v,v,v] constant, t[o,o,v,v]
output r
r[i,j,a,b] = v_vvvv[a,c,b,d]*t[i,j,c,d]
"""
LARGE = {"o": 40, "v": 600}
WHOLE = 8 * 600**4
AMPLITUDES = 8 * 40**2 * 600**2


@pytest.fixture(scope="module")
def program() -> tcgen.Program:
    return tcgen.compile(SPEC, target="numpy")


def test_constants_are_divided_and_amplitudes_are_not(program: tcgen.Program) -> None:
    for nodes in (10, 100):
        report = price_nodes(program, LARGE, nodes, 2**40)
        assert report.fits
        assert report.tasks == nodes
        assert report.loaded_bytes == WHOLE // nodes
        assert report.received_bytes == AMPLITUDES + AMPLITUDES // nodes
        assert report.need_bytes > report.loaded_bytes + AMPLITUDES
        assert report.repeated == pytest.approx(1.0)


def test_what_does_not_fit_says_the_least_memory(program: tcgen.Program) -> None:
    report = price_nodes(program, LARGE, 10, 10**9)
    assert not report.fits
    assert AMPLITUDES < report.need_bytes < WHOLE // 10
    assert "does not fit" in report.lines[0]
    assert price_nodes(program, LARGE, 10, report.need_bytes).fits


def test_constants_that_do_not_stay_are_read_in_each_call(program: tcgen.Program) -> None:
    ample, scarce = (price_nodes(program, LARGE, 8, n * 10**9) for n in (400, 120))
    assert scarce.tasks > ample.tasks == 8
    assert ample.received_bytes < WHOLE // 8 <= scarce.received_bytes
    assert scarce.efficiency < ample.efficiency


def test_the_command_line_prints_it(program: tcgen.Program, tmp_path: object) -> None:
    folder = str(program.save(f"{tmp_path}/ladder"))
    command = ["report", folder, "-e", "o=40", "-e", "v=600", "--nodes", "8"]
    found = CliRunner().invoke(main, [*command, "--node-memory", "400GB"])
    assert found.exit_code == 0
    assert f"{WHOLE // 8:,}" in found.output
    assert "together" in CliRunner().invoke(main, command).output

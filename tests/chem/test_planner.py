"""Programs are planned and compiled while integrals are transformed."""

from __future__ import annotations

import sys
import threading
from typing import Any

import pytest

import tcgen
from tcgen.chem.planner import Planner
from tcgen.chem.setup import planned_extents
from tcgen.chem.spaces import classify


def program() -> Any:
    return tcgen.compile("space o\nindex i : o\ninput x[o]\noutput e\ne = x[i]*x[i]\n",
                         extents={"o": 3}, target="numpy")  # fmt: skip


def test_programs_are_planned_in_another_thread() -> None:
    may, threads = threading.Event(), []

    def plan() -> list[Any]:
        threads.append(threading.current_thread())
        assert may.wait(300)
        return [program()]

    planner = Planner(plan)
    interval = sys.getswitchinterval()
    with planner.beside():
        assert sys.getswitchinterval() <= interval
        may.set()
    assert sys.getswitchinterval() == interval
    assert planner.programs() is planner.programs()
    assert threads != [threading.main_thread()]
    assert len(threads) == 1


def test_programs_that_are_there_are_not_planned_again() -> None:
    calls = []
    planner = Planner(lambda: calls.append(1) or [program()])
    (first,) = planner.programs()
    with planner.beside():
        pass
    assert planner.programs() == [first]
    assert calls == [1]


def test_errors_of_planning_and_of_what_runs_beside_it() -> None:
    def refused() -> list[Any]:
        raise tcgen.ArgumentError("no plan")

    planner = Planner(refused)
    with pytest.raises(tcgen.ArgumentError, match="no plan"), planner.beside():
        pass
    with pytest.raises(ZeroDivisionError), Planner(lambda: [program()]).beside():
        raise ZeroDivisionError


def test_near_extents_share_plans() -> None:
    system = tcgen.read_spec("""
space o occupied
space v virtual
space x auxiliary
space n
space xyz = 3
index i : o
index a : v
index q : x
index k : xyz
index m : n
input b[x,o,v], d[xyz,o,v], w[n]
output e
e = sum(q,i,a,k,m) b[q,i,a]*d[k,i,a]*w[m]
""")
    extents = {"o": 5, "v": 19, "x": 84, "n": 7, "xyz": 3}
    found = planned_extents(system, classify(system), extents)
    assert found == {"o": 6, "v": 16, "x": 96, "n": 7, "xyz": 3}
    extents |= {"o": 0, "v": 18, "x": 90}
    assert planned_extents(system, classify(system), extents) == found | {"o": 1}

"""Programs are planned and compiled while integrals are transformed."""

from __future__ import annotations

import sys
import threading
from typing import Any

import pytest

import tcgen
from tcgen.chem.planner import Planner


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

"""Pending operations are bounded, and are counted without walking the graph at each operation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tcgen
from support.campaigns import cases
from tcgen.lazy_arrays import record as recording
from tcgen.lazy_arrays import run as evaluation
from tcgen.lazy_arrays.graph import Leaf, Node, in_order


@pytest.fixture(autouse=True)
def recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small arrays are deferred, and NumPy runs pending operations."""
    monkeypatch.setenv("TCGEN_LAZY_MIN_ELEMENTS", "3")


@pytest.fixture
def walks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of nodes of each walk."""
    found: list[int] = []

    def counted(roots: Any) -> Any:
        nodes = in_order(roots)
        found.append(len(nodes))
        return nodes

    monkeypatch.setattr(recording, "in_order", counted)
    return found


def exact(node: Node) -> tuple[int, int]:
    """Operations and arrays below a node, each once."""
    nodes = in_order((node,))
    arrays = {id(n.work.array) for n in nodes if isinstance(n.work, Leaf)}
    return sum(bool(n.work.operands) for n in nodes), len(arrays)


def test_operations_walk_the_graph_seldom(walks: list[int]) -> None:
    x, y = tcgen.lazy(np.ones(9)), tcgen.lazy(np.full(9, 0.5))
    for _ in range(20):
        total = x
        for _ in range(25):
            total = total * y + x
        assert total.pending == 50
        assert float(total[0]) == pytest.approx(2)
    assert sum(walks) <= 20 * 300  # walks of up to 15 nodes, and where they are twice as many


def test_shared_operations_count_once() -> None:
    x = tcgen.lazy(np.full(9, 1.0))
    power = x * 1
    for _ in range(30):
        power = power * power
    assert power.pending == 31
    assert f"{power!r}".endswith("31 pending operations>")
    assert (power.compute() == 1).all()


def test_many_operations_and_many_arrays_are_computed_in_pieces() -> None:
    x = tcgen.lazy(np.full(9, 1.0))
    wide, total = [x * n for n in range(250)], x * 0
    while len(wide) > 1:  # a tree, whose depth is small
        wide = [a + b for a, b in zip(wide[::2], wide[1::2], strict=False)] + wide[len(wide) & ~1 :]
    assert wide[0].pending <= 200
    assert (wide[0].compute() == 250 * 249 / 2).all()
    for n in range(100):
        total = total + tcgen.lazy(np.full(9, float(n)))
        assert exact(total._node)[1] <= 65
    assert (total.compute() == 4950).all()


def test_an_update_evaluates_many_readers_in_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[int] = []
    original = evaluation._run
    monkeypatch.setattr(
        evaluation, "_run", lambda line: lines.append(len(line.works)) or original(line)
    )
    x = tcgen.lazy(np.arange(9.0), copy=True)
    readers = [(x + n) * n for n in range(400)]
    x[2:] = 0
    assert not any(reader.pending for reader in readers)
    assert len(lines) > 1
    assert max(lines) < 1200
    for n, reader in enumerate(readers):
        np.testing.assert_array_equal(reader, (np.arange(9.0) + n) * n)


@given(st.integers(0, 2**32))
@cases(40)
def test_bounds_are_never_too_small(seed: int) -> None:
    random = np.random.default_rng(seed)
    arrays = [tcgen.lazy(random.random(9)) for _ in range(40)]
    wanted = [a.compute().copy() for a in arrays]
    for _ in range(120):
        one, other = random.integers(len(arrays), size=2)
        work = [np.add, np.subtract, np.maximum, lambda a, b: a * 0.5][random.integers(4)]
        arrays.append(work(arrays[one], arrays[other]))
        wanted.append(work(wanted[one], wanted[other]))
        if random.random() < 0.1:
            arrays[random.integers(len(arrays))].compute()
        node = arrays[-1]._node
        operations, count = exact(node)
        assert operations + count <= max(node.weight, 1)
        assert operations <= 200
        assert count <= 64
        if random.random() < 0.5:  # some arrays are dropped
            drop = random.integers(len(arrays) - 1)
            del arrays[drop], wanted[drop]
    for found, right in zip(arrays, wanted, strict=True):
        np.testing.assert_array_equal(found, right)

"""Partitions of operations into kernels: the paper's example, and all partitions of small work."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

import tcgen
from support.paths import ROOT
from tcgen.fusion.kernels.cost_models import TRAFFIC, lower_bound
from tcgen.fusion.kernels.merging import Merging, greedy, unintrusive
from tcgen.fusion.kernels.partition import optimal, partition, structure
from tcgen.fusion.kernels.wsp import (
    Graph,
    Operation,
    Partition,
    View,
    is_legal,
    wsp_graph,
)

sys.path.insert(0, str(ROOT))

from benchmarks.array_programs.cost_models import ALGORITHMS, COST_MODELS, partitioned, singleton


def view(base: str, start: int, end: int) -> View:
    return View(base, ((start, end),))


def example() -> tuple[Operation, ...]:
    """The program of Fig. 3 of Kristensen et al., which ends by handing out D."""
    a, b, t = (view(n, 0, 4) for n in "ABT")
    (d, d_front, d_back), (e, e_front, e_back) = (
        (view(n, 0, 5), view(n, 0, 4), view(n, 1, 5)) for n in "DE"
    )
    return (
        Operation("COPY A, 0", (), (a,), ("A",), space=4),
        Operation("COPY B, 0", (), (b,), ("B",), space=4),
        Operation("COPY D, 0", (), (d,), ("D",), space=5),
        Operation("COPY E, 0", (), (e,), ("E",), space=5),
        Operation("ADD A, A, D[:-1]", (a, d_front), (a,), space=4),
        Operation("COPY A, D[:-1]", (d_front,), (a,), space=4),
        Operation("ADD B, B, E[:-1]", (b, e_front), (b,), space=4),
        Operation("COPY B, E[:-1]", (e_front,), (b,), space=4),
        Operation("MUL T, A, B", (a, b), (t,), ("T",), space=4),
        Operation("MAX D[1:], T, E[1:]", (t, e_back), (d_back,), space=4),
        Operation("MIN E[1:], T, D[1:]", (t, d_back), (e_back,), space=4),
        Operation("DEL A", freed=("A",)),
        Operation("DEL B", freed=("B",)),
        Operation("DEL E", freed=("E",)),
        Operation("DEL T", freed=("T",)),
        Operation("SYNC D", observed=("D",)),
        Operation("DEL D", freed=("D",)),
    )


@pytest.mark.parametrize(
    ("model", "costs"),
    [
        # The paper has 94, 58, 58, 70 and 38 in the order of ALGORITHMS; no one way of counting
        # gives all of them: linear's 58 counts what passes memory, the optimum's 38 all accesses.
        ("accesses", (94, 62, 38, 74, 38)),
        ("bytes", (94, 58, 34, 74, 34)),
        ("max-contract", (5, 5, 3, 5, 3)),
        ("max-locality", (38, 16, 4, 34, 4)),
        ("robinson", (3140, 1345, 354, 2808, 354)),
    ],
)
def test_the_example_of_kristensen_et_al(model: str, costs: tuple[int, ...]) -> None:
    graph = wsp_graph(example())
    assert len([p for p in graph.fuse_preventing if max(p) < 11]) == 22
    for algorithm, cost in zip(ALGORITHMS, costs, strict=True):
        found = partitioned(example(), algorithm, model)
        assert found.cost == cost
        assert is_legal(graph, found.blocks)
        assert (found.status == "OPTIMAL") == (found.bound == found.cost)
    assert partitioned(example(), "optimal", model).status == "OPTIMAL"


def test_fig_1_halves_the_accesses() -> None:
    a, b, t = (view(n, 0, 10) for n in "ABT")
    work = (
        Operation("T = B*A", (a, b), (t,), ("T",)),
        Operation("A += T", (a, t), (a,)),
        Operation("DEL T", freed=("T",)),
    )
    assert partitioned(work, "singleton", "bytes").cost == 60
    for algorithm in ("linear", "greedy", "unintrusive", "optimal"):
        assert partitioned(work, algorithm, "bytes").cost == 30


def test_two_convex_blocks_may_wait_for_each_other() -> None:
    """What Definition 5(2) as printed allows, and no order of the blocks can run."""
    nothing = tuple(Operation(str(n)) for n in range(4))
    graph = Graph(nothing, frozenset({(0, 3), (1, 2)}), frozenset(), frozenset())
    assert not is_legal(graph, ((0, 2), (1, 3)))
    assert is_legal(graph, ((0, 1), (2, 3)))
    merging = Merging(graph, TRAFFIC, ((0, 2), (1,), (3,)))
    assert not merging.may_merge(1, 3)


def test_a_read_of_a_shifted_view_keeps_operations_apart() -> None:
    x, front, back = view("x", 0, 5), view("x", 0, 4), view("x", 1, 5)
    write, other = Operation("x=", (), (front,)), Operation("y=x", (back,), (view("y", 0, 4),))
    assert wsp_graph((write, other)).fuse_preventing == {(0, 1)}
    assert not wsp_graph((write, replace(other, reads=(front,)))).fuse_preventing
    transposed = replace(other, reads=(View("x", ((0, 4),), (1,)),))
    # The same elements, by another loop.
    assert wsp_graph((write, transposed)).fuse_preventing == {(0, 1)}
    assert wsp_graph((Operation("x=", (), (x,), space=5), replace(other, space=4))).fuse_preventing


def random_work(seed: int, count: int) -> tuple[Operation, ...]:
    rng = random.Random(seed)
    found: list[Operation] = []
    names: list[str] = ["p", "q"]
    for n in range(count):
        reads = tuple(
            view(rng.choice(names), *rng.choice(((0, 4), (0, 3), (1, 4))))
            for _ in range(rng.randint(1, 2))
        )
        fresh = rng.random() < 0.6
        base = f"t{n}" if fresh else rng.choice(names)
        target = view(base, *((0, 4) if fresh else rng.choice(((0, 4), (1, 4)))))
        found.append(Operation(f"{n}", reads, (target,), (base,) if fresh else ()))
        if fresh:
            names.append(base)
    made = [n for n in names if n not in "pq"]
    found += [Operation(f"free {n}", freed=(n,)) for n in made[: len(made) // 2]]
    return tuple(found)


def all_partitions(count: int) -> Iterator[Partition]:
    def extend(blocks: list[tuple[int, ...]], v: int) -> Iterator[Partition]:
        if v == count:
            yield tuple(blocks)
            return
        for n, block in enumerate(blocks):
            yield from extend([*blocks[:n], (*block, v), *blocks[n + 1 :]], v + 1)
        yield from extend([*blocks, (v,)], v + 1)

    yield from extend([], 0)


@pytest.mark.few(12)
@pytest.mark.parametrize(
    "seed", [*range(25), *(pytest.param(n, marks=pytest.mark.slow) for n in range(25, 500))]
)
def test_the_optimum_is_that_of_all_partitions(seed: int) -> None:
    graph = wsp_graph(random_work(seed, 5 if seed < 25 else 4))
    legal = [p for p in all_partitions(len(graph.operations)) if is_legal(graph, p)]
    for cost in COST_MODELS.values():
        best = optimal(graph, cost, 100_000)
        assert best is not None
        assert is_legal(graph, best)
        least = min(cost.of(graph, p) for p in legal)
        assert cost.of(graph, best) == least
        assert lower_bound(graph, cost) <= least
        found = partition(graph.operations, cost)
        assert (found.status, found.cost) == ("OPTIMAL", least)
        for other in (greedy(graph, cost), unintrusive(graph, cost)):
            assert is_legal(graph, other)
            assert least <= cost.of(graph, other) <= cost.of(graph, singleton(graph))


@pytest.mark.parametrize("seed", range(25))
def test_unrelated_operations_keep_the_optimum(seed: int) -> None:
    """Theorem 3: after unintrusive merges the least cost can still be reached."""
    graph, cost = wsp_graph(random_work(100 + seed, 5)), COST_MODELS["accesses"]
    least = optimal(graph, cost, 100_000)
    assert least is not None
    fixed = unintrusive(graph, cost)
    coarser = (
        p
        for p in all_partitions(len(graph.operations))
        if all(any(set(b) <= set(c) for c in p) for b in fixed) and is_legal(graph, p)
    )
    assert min(cost.of(graph, p) for p in coarser) == cost.of(graph, least)


def test_equal_structure_is_searched_once() -> None:
    """The merge cache: names do not matter, extents and overlaps do."""
    renamed = tuple(
        replace(
            o,
            reads=tuple(replace(v, base=v.base * 2) for v in o.reads),
            writes=tuple(replace(v, base=v.base * 2) for v in o.writes),
            new=tuple(n * 2 for n in o.new),
            freed=tuple(n * 2 for n in o.freed),
            observed=tuple(n * 2 for n in o.observed),
        )
        for o in example()
    )
    assert structure(renamed) == structure(example())
    assert partition(renamed) is partition(example())


def test_work_runs_out_and_says_so() -> None:
    wide = tuple(Operation(str(n), (view("x", 0, 4),), (view(f"y{n}", 0, 4),)) for n in range(20))
    found = partition(wide, most_blocks=30_000)
    assert (found.status, found.cost, found.bound) == ("OPTIMAL", 84, 84)  # one block, the bound
    split = tuple(replace(o, space=n % 2) for n, o in enumerate(wide))
    found = partition(split, most_blocks=30_000)
    assert (found.status, found.cost) == ("OPTIMAL", 88)  # two blocks read x
    stopped = partition(split, COST_MODELS["robinson"], most_blocks=30_000)
    assert stopped.status == "FEASIBLE"
    assert stopped.bound < stopped.cost


WORK = """
space o
space v
index i j : o
index a b : v
input f[o,v], g[o,v], h[o,v]
output r, s, e
d[i,a] = exp(f[i,a]) + g[i,a]
u[i,a] = sqrt(d[i,a]*d[i,a] + 1)
r[i,a] = u[i,a]/(2 + h[i,a]**2)
r[i,a] += u[i,a]*cos(h[i,a])
s[a,i] = u[i,a] + sum(j) abs(f[j,a] - f[i,a])
e = sum(i,a) exp(r[i,a])
"""


@pytest.mark.parametrize("target", ["cpu", "numpy"])
def test_kernels_share_loops_and_give_the_values_of_the_equations(target: str) -> None:
    program = tcgen.compile(
        WORK, extents={"o": 4, "v": 5}, target=target, objective="kernels", optimize=False
    )
    plain = tcgen.compile(WORK, extents={"o": 4, "v": 5}, target=target, optimize=False)
    assert program.report["fusion"]["objective"] == "kernels"
    assert program.report["fusion"]["unit"] == "bytes"
    assert len(program.report["kernels"]) < len(plain.report["kernels"])
    arrays = {n: np.random.default_rng(k).random((3, 7)) for k, n in enumerate("fgh")}
    for name, value in program(**arrays).items():
        np.testing.assert_allclose(value, plain(**arrays)[name], rtol=1e-13)


def test_an_array_that_begins_and_ends_in_a_kernel_is_one_element() -> None:
    program = tcgen.compile(
        "space o\nindex i : o\ninput x[o]\noutput y\n"
        "t[i] = exp(x[i])\nu[i] = t[i]*t[i] + t[i]\ny[i] = sqrt(u[i] + t[i])\n",
        extents={"o": 9},
        target="numpy",
        objective="kernels",
        optimize=False,
    )
    rows = {a["name"]: a["elements"] for a in program.report.arrays}
    assert (rows["t"], rows["u"]) == (1, 1)
    assert program.report["fusion"]["value"] == 2 * 9 * 8
    x = np.linspace(0, 1, 5)
    np.testing.assert_allclose(program(x=x)["y"], np.sqrt(np.exp(2 * x) + 2 * np.exp(x)))


def test_generated_inputs_are_not_fetched_element_by_element() -> None:
    program = tcgen.compile(
        "space o\nindex i j : o\ninput g[o,o] generated\ninput x[o,o]\noutput y\n"
        "t[i,j] = exp(x[i,j])\nu[i,j] = t[i,j]*x[i,j]\ny[i,j] = sqrt(u[i,j]) + cos(g[i,j])\n",
        extents={"o": 4},
        target="numpy",
        objective="kernels",
        optimize=False,
    )
    fetched = []

    def produce(out: np.ndarray, ranges: tuple[slice, ...]) -> None:
        fetched.append(ranges)
        out[:] = 0

    x = np.ones((4, 4))
    np.testing.assert_allclose(program(g=produce, x=x)["y"], np.sqrt(np.e) + 1)
    assert len(fetched) < 16  # tiles


SUMS = """
space o
space v
index i : o
index a : v
input f[o,v]
output r, s
t[i,a] = exp(f[i,a])
r[a] = sum(i) t[i,a]**2
s[i] = max(a) t[i,a]
"""


@pytest.mark.parametrize(
    ("target", "extents", "status", "passes"),
    [
        ("cpu", {"o": 400, "v": 500}, "OPTIMAL", 1),
        ("cuda", {"o": 400, "v": 500}, "OPTIMAL", 1),
        ("cuda", {"o": 4000, "v": 5000}, "FEASIBLE", 4),
    ],
)
def test_reductions_share_loops_where_the_target_has_them(
    target: str, extents: dict[str, int], status: str, passes: int
) -> None:
    """A GPU reads and writes the tiles of a large intermediate in three kernels."""
    program = tcgen.compile(
        SUMS, extents=extents, target=target, objective="kernels", optimize=False
    )
    fusion = program.report["fusion"]
    assert fusion["status"] == status
    o, v = extents["o"], extents["v"]
    assert fusion["value"] == 8 * (passes * o * v + o + v)
    if target == "cpu":
        f = np.random.default_rng(0).standard_normal((7, 9))
        found, t = program(f=f), np.exp(f)
        np.testing.assert_allclose(found["r"], (t**2).sum(0))
        np.testing.assert_allclose(found["s"], t.max(1), rtol=1e-14)

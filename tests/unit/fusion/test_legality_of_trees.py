"""Trees: four definitions of legal fusions agree, and two algorithms find the least memory."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import random_programs as programs
from support.campaigns import cases
from support.tree_prefixes import least_by_prefixes
from tcgen.fusion import plan_fusion
from tcgen.fusion.linear import path_inequalities, variables
from tcgen.fusion.sharing.graph import FusionGraph, fusion_graph
from tcgen.ir.program import Add, Contract, FormulaSequence, Produce
from tcgen.ir.tensor import Index, Ref, Space, Tensor
from tcgen.options import Options

seeds = st.integers(0, 2**32)


def fused_on(fused, edge: int) -> frozenset[int]:
    return frozenset(loop for e, loop in fused if e == edge)


def touching(graph: FusionGraph, node: int) -> list[int]:
    return [e.id for e in graph.edges if node in (e.producer, e.consumer)]


def order_bits(graph: FusionGraph, part, fused) -> bool:
    """The compact model: a bit at each node for each pair of loops says which one is outside.

    An edge fused in one loop of the pair fixes the bits at its ends; fused in both, equates them.
    """
    loops = sorted({loop for _, loop in fused})
    nodes = {n for e in part for n in (graph.edges[e].producer, graph.edges[e].consumer)}
    for j, k in combinations(loops, 2):
        bits: dict[int, bool] = {}
        same = {n: {n} for n in nodes}
        for e in part:
            edge, on = graph.edges[e], fused_on(fused, e)
            if {j, k} <= on:
                joined = same[edge.producer] | same[edge.consumer]
                same.update(dict.fromkeys(joined, joined))
        for e in part:
            edge, on = graph.edges[e], fused_on(fused, e)
            if len({j, k} & on) == 1:
                for node in (edge.producer, edge.consumer):
                    if bits.setdefault(min(same[node]), j in on) != (j in on):
                        return False
    return True


def common_prefixes(graph: FusionGraph, part, fused) -> bool:
    """Every node has a loop order with each edge's fused loops as a prefix, equal at both ends.

    Root first: a node's order goes on from the one that its own edge to the root has.
    """
    below: dict[int, list[int]] = {}
    for e in part:
        below.setdefault(graph.edges[e].consumer, []).append(e)

    def fits(node: int, prefix: tuple[int, ...]) -> bool:
        edges = below.get(node, [])
        more = sorted({loop for e in edges for loop in fused_on(fused, e)} - set(prefix))
        return any(
            all(
                set(order[: len(fused_on(fused, e))]) == fused_on(fused, e)
                and fits(graph.edges[e].producer, order[: len(fused_on(fused, e))])
                for e in edges
            )
            for order in ((*prefix, *rest) for rest in permutations(more))
        )

    return fits(graph.edges[part[-1]].consumer, ())


@cases(30, 600)
@given(seeds, st.integers(2, 4))
def test_inequalities_order_bits_and_prefixes_agree(seed, leaves):
    graph = fusion_graph(programs.random_tree(seed, leaves))
    for part in graph.parts:
        order = variables(graph, part)
        if len(order) > 9:
            continue
        rules = path_inequalities(graph, part)
        for choice in product((0, 1), repeat=len(order)):
            fused = tuple(v for v, on in zip(order, choice, strict=True) if on)
            legal = all(rule.holds(fused) for rule in rules)
            assert legal == order_bits(graph, part, fused) == common_prefixes(graph, part, fused)


@cases(30, 600)
@given(seeds, st.integers(2, 7), st.integers(2, 3000), st.integers(2, 3000))
def test_least_memory_of_trees_is_that_of_the_dynamic_program(seed, leaves, o, v):
    program = programs.random_tree(seed, leaves, generated=0.7)
    graph = fusion_graph(program)
    plan = plan_fusion(program, Options(extents=(("o", o), ("v", v)), objective="memory"))
    assert plan.solve.status == "OPTIMAL"
    if not graph.restricted:
        extents = {"o": o, "v": v}
        assert plan.solve.model == "tree"
        # A scalar has no loops, and so no edge of the graph.
        scalars = sum(t.rank == 0 for t in program.intermediates)
        trees = sum(least_by_prefixes(graph, p, extents) for p in graph.parts)
        assert plan.solve.value == trees + scalars


def batched(program: FormulaSequence, count: int) -> FormulaSequence:
    """The program for every value of some batch indices: loops that all arrays have in common."""
    space = Space("b")
    shared = tuple(Index(f"b{n}", space) for n in range(count))

    def wider(tensor: Tensor) -> Tensor:
        return replace(tensor, spaces=(*(space,) * count, *tensor.spaces))

    def at(ref: Ref) -> Ref:
        return Ref(wider(ref.tensor), (*shared, *ref.indices))

    steps = []
    for step in program.steps:
        match step.op:
            case Contract(a, b):
                op = Contract(at(a), at(b))
            case Add(a):
                op = Add(at(a))
            case _:
                op = Produce(wider(step.out.tensor))
        steps.append(replace(step, out=at(step.out), op=op))
    return replace(
        program,
        spaces=(*program.spaces, space),
        tensors=tuple(map(wider, program.tensors)),
        steps=tuple(steps),
    )


@pytest.mark.slow
@cases(30, 600)
@given(seeds, st.integers(2, 4), st.integers(2, 3), st.integers(2, 60))
def test_batch_indices_stand_for_one_another(seed, leaves, count, b):
    tree = programs.random_tree(seed, leaves, generated=0.7, loops=programs.FIVE[:3], rank=3)
    program, extents = batched(tree, count), {"b": b, "o": 7, "v": 30}
    graph = fusion_graph(program)
    if graph.restricted:
        return
    given = tuple(sorted(extents.items()))
    plan = plan_fusion(program, Options(extents=given, objective="memory"))
    plan.verify()
    assert plan.solve.status == "OPTIMAL"
    assert plan.solve.value == sum(least_by_prefixes(graph, p, extents) for p in graph.parts)

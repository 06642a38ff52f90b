"""Cost models and searches of Kristensen et al., with those of ``tcgen.fusion.kernels``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations

from tcgen.fusion.kernels.cost_models import (
    TRAFFIC,
    CostModel,
    lower_bound,
    new_and_freed,
)
from tcgen.fusion.kernels.merging import greedy, unintrusive
from tcgen.fusion.kernels.partition import Partitioned, linear, partition
from tcgen.fusion.kernels.wsp import (
    Graph,
    Operation,
    Partition,
    View,
    in_order,
    users_of,
    wsp_graph,
)


def _accesses(graph: Graph, name: str, own: Sequence[int]) -> int:
    """Definition 13 to the letter: reads of arrays that did not begin here, and writes."""
    new, freed = new_and_freed(graph, name, own)
    operations = [graph.operations[v] for v in own]
    reads = {v for o in operations for v in o.reads if v.base == name and not new}
    writes = {v for o in operations for v in o.writes if v.base == name and not freed}
    return sum(v.amount for v in reads) + sum(v.amount for v in writes)


def _begun(graph: Graph) -> int:
    return sum(len(o.new) for o in graph.operations)


def _uncontracted(graph: Graph, name: str, own: Sequence[int]) -> int:
    """Definition 19: minus one for an array that begins and ends inside."""
    return -all(new_and_freed(graph, name, own))


def _shared(first: Operation, second: Operation, name: str) -> int:
    """Accesses to an array that two operations have in common, counted from both sides."""
    return len(_external(first, name) & _views(second, name)) + len(
        _external(second, name) & _views(first, name)
    )


def _external(operation: Operation, name: str) -> set[View]:
    reads = operation.reads if name not in operation.new else ()
    writes = operation.writes if name not in operation.freed else ()
    return {v for v in (*reads, *writes) if v.base == name}


def _views(operation: Operation, name: str) -> set[View]:
    return {v for v in (*operation.reads, *operation.writes) if v.base == name}


def _all_shared(graph: Graph) -> int:
    users = users_of(enumerate(graph.operations))
    return -sum(_apart(graph, name, own) for name, own in users.items())


def _apart(graph: Graph, name: str, own: Sequence[int]) -> int:
    operations = [graph.operations[v] for v in own]
    return -sum(_shared(one, two, name) for one, two in combinations(operations, 2))


def _weight(graph: Graph) -> int:
    return len({v for o in graph.operations for v in (*o.reads, *o.writes)})


def _robinson_fixed(graph: Graph) -> int:
    n = _weight(graph)
    return n * _begun(graph) + n * n * _all_shared(graph)


def _robinson(graph: Graph, name: str, own: Sequence[int]) -> int:
    n = _weight(graph)
    return n * _uncontracted(graph, name, own) + n * n * _apart(graph, name, own)


COST_MODELS: Mapping[str, CostModel] = {
    m.name: m
    for m in (
        TRAFFIC,
        CostModel("accesses", _accesses, counts_accesses=True, counts_own_reads=True),
        CostModel("max-contract", _uncontracted, _begun),
        CostModel("max-locality", _apart, _all_shared),
        CostModel("robinson", _robinson, _robinson_fixed, each=1),
    )
}
"""Cost models by name.

- ``bytes``: memory traffic, in the unit of the views' weight.
- ``accesses``: Definition 13 to the letter, which counts a read of a view that the block wrote.
- ``max-contract``: arrays that do not begin and end in one block (Definition 19).
- ``max-locality``: accesses that operations in different blocks have in common (Definition 20 as
  printed, which counts a pair of operations from both sides).
- ``robinson``: locality before contraction before the number of blocks (Definition 21); N is the
  number of different views.
"""


ALGORITHMS: Mapping[str, Callable[[Graph, CostModel], Partition] | None] = {
    "singleton": lambda graph, _: singleton(graph),
    "linear": lambda graph, _: linear(graph),
    "greedy": greedy,
    "unintrusive": unintrusive,
    "optimal": None,
}


def singleton(graph: Graph) -> Partition:
    """Every operation by itself."""
    return tuple((v,) for v in range(len(graph.operations)))


def partitioned(
    operations: tuple[Operation, ...], algorithm: str, model: str, most: int | None = None
) -> Partitioned:
    """The partition that an algorithm finds, and its cost by a model."""
    search, cost = ALGORITHMS[algorithm], COST_MODELS[model]
    if search is None:
        return partition(operations, cost, most)
    graph = wsp_graph(operations)
    blocks = in_order(graph, search(graph, cost))
    value = cost.of(graph, blocks)
    bound = min(value, lower_bound(graph, cost))
    return Partitioned(blocks, value, bound, "OPTIMAL" if bound == value else "FEASIBLE")

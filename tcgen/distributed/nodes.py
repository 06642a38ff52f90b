"""Predict time and memory of ``distribute`` on N nodes.

The predictions were never compared with a measured run on several nodes. Each number is that of
the node with the most of it; totals are not divided by the number of nodes. Arrays that every task
reads whole and repeated work count on every node.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..runtime.program import Program
from .plan import Cluster, Plan, Shortage, find_plan
from .stage import Stage, Task

NETWORK = 10**9  # bytes per second that a node receives or reads: 10 Gbit/s Ethernet


@dataclass(frozen=True, slots=True)
class NodesReport:
    """A call on nodes, or the memory that it lacks.

    Attributes:
        nodes: number of nodes, with one worker each.
        node_memory: bytes of a node.
        network: bytes per second that a node receives or reads.
        fits: False if the share of a node does not fit.
        need_bytes: bytes of the node that needs most; if it does not fit, the smallest memory that
            works.
        stages: lines that name the divided loops, and the arrays that each task reads whole.
        tasks: number of tasks.
        repeated: flops of all tasks over those of the program in one piece.
        loaded_bytes: bytes of constants that a node reads in the first call.
        received_bytes: bytes that a node receives and sends in each call, with the constants if
            they do not fit beside its largest task.
        compute_seconds: predicted time of the busiest node in a call.
        network_seconds: time to transfer ``received_bytes``.
        load_seconds: time to read ``loaded_bytes``.
        efficiency: seconds of the whole program on one node over nodes times those of a call.
    """

    nodes: int
    node_memory: int
    network: int
    fits: bool
    need_bytes: int
    stages: tuple[str, ...] = ()
    tasks: int = 0
    repeated: float = 0.0
    loaded_bytes: int = 0
    received_bytes: int = 0
    compute_seconds: float = 0.0
    network_seconds: float = 0.0
    load_seconds: float = 0.0
    efficiency: float = 0.0

    @property
    def lines(self) -> tuple[str, ...]:
        """Text for a terminal."""
        if not self.fits:
            return (
                f"{self.nodes} nodes of {self.node_memory:,} bytes: does not fit",
                f"the least memory of a node that works is {self.need_bytes:,} bytes",
            )
        return (
            f"{self.nodes} nodes of {self.node_memory:,} bytes: fits",
            *self.stages,
            f"{self.tasks} tasks, flops {self.repeated:.3f} times those of the whole",
            f"a node needs {self.need_bytes:,} bytes",
            f"a node reads {self.loaded_bytes:,} bytes of constants ({self.load_seconds:.3g} s)",
            f"a node receives and sends {self.received_bytes:,} bytes a call "
            f"({self.network_seconds:.3g} s)",
            f"a call computes for {self.compute_seconds:.3g} s, efficiency {self.efficiency:.1%}",
        )


def price_nodes(
    program: Program,
    extents: Mapping[str, int],
    nodes: int,
    node_memory: int,
    network: int = NETWORK,
) -> NodesReport:
    """A call of ``distribute`` on nodes with one worker each, constants in files."""
    held = {t.name: 0 for t in program.manifest.tensors if t.is_input and not t.volatile}
    plan = find_plan(program, extents, held, Cluster(nodes, 1, node_memory))
    if isinstance(plan, Shortage):
        return NodesReport(nodes, node_memory, network, False, plan.min_bytes)
    shares = _shares(plan, held, nodes)
    compute = _compute_seconds(plan, nodes)
    loaded = max(sum(share.constants.values()) for share in shares)
    received = max(sum(share.arrays.values()) + share.results for share in shares)
    # Constants that do not fit beside a node's largest task are read again in each call.
    spare = node_memory - plan.need
    again = max(
        (sum(share.constants.values()) for share in shares if share.beside > spare), default=0
    )
    seconds = compute + (received + again) / network
    whole = program.seconds(0, program.parts(extents), extents)
    return NodesReport(
        nodes,
        node_memory,
        network,
        True,
        plan.need,
        plan.text,
        len(plan.tasks),
        plan.repeated,
        loaded,
        received + again,
        compute,
        (received + again) / network,
        loaded / network,
        whole / (nodes * seconds) if seconds else 1.0,
    )


@dataclass(slots=True)
class _Share:
    """Bytes of one node in a call: constants by rectangle, received arrays by name, sent results.

    ``beside`` counts its constants besides those of the task that reads most.
    """

    constants: dict[Any, int]
    arrays: dict[str, int]
    results: int = 0
    beside: int = 0


def _nodes_of(plan: Plan, stage: Stage, nodes: int) -> list[tuple[int, Task]]:
    """The tasks of a stage and the node of each: neighbours on one node, as dask places them."""
    tasks = [t for t in plan.tasks if t.stage == stage.number]
    used = min(nodes, len(tasks))
    return [(n * used // len(tasks), task) for n, task in enumerate(tasks)]


def _compute_seconds(plan: Plan, nodes: int) -> float:
    total = 0.0
    for stage in plan.stages:
        seconds: dict[int, float] = {}
        for node, task in _nodes_of(plan, stage, nodes):
            seconds[node] = seconds.get(node, 0.0) + task.seconds
        total += max(seconds.values())
    return total


def _shares(plan: Plan, held: Mapping[str, int], nodes: int) -> list[_Share]:
    shares: dict[int, _Share] = {}
    largest: dict[int, int] = {}
    for stage, program in zip(plan.stages, plan.programs, strict=True):
        for node, task in _nodes_of(plan, stage, nodes):
            share = shares.setdefault(node, _Share({}, {}))
            own: dict[Any, int] = {}
            for reading in stage.readings(program, task.first, task.last):
                if reading.source in held:
                    for piece, count in reading.pieces:
                        own[reading.source, piece] = count
                else:
                    share.arrays[reading.source] = reading.whole_bytes
            share.constants |= own
            largest[node] = max(largest.get(node, 0), sum(own.values()))
            share.results += stage.result_bytes(program, task.first, task.last)
    for node, share in shares.items():
        share.beside = sum(share.constants.values()) - largest[node]
    return list(shares.values())

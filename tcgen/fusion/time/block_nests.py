"""Nests of a plan for a GPU that become one kernel, whose blocks walk tiles of the shared loops.

    for a, b: (W = sum(P) B[P,a] B[P,b]; r += W*t)       blocks divide the tiles A, B:
                                                         W of one tile is in shared memory

Blocks divide the outermost loops whose iterations write elements of their own, or add to small
arrays, of which each block has a copy. The tiles of all arrays of the nest fit shared memory. The
tiles have least predicted time; the caller compares it with that of loops on the host.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import takewhile
from math import prod

from ...hardware import PRIVATE_SHARED_BYTES
from ...ir.plan import ArrayPlan, FusionPlan, LoopId
from ...ir.program import Contract, Produce, Step
from ...ir.reduction import Reduction
from ...ir.tensor import Index, Ref, Tensor, element_bytes
from ...thresholds.gpu import GpuThresholds
from ...thresholds.time_model import (
    NEST_CACHE_RATE,
    NEST_ELEMENT_FLOPS,
    NEST_STATEMENT_PICOSECONDS,
    Machine,
)
from ..placement.memory import whole_elements
from ..solver.time_cost import contraction_groups
from ..solver.time_model import Request

Tiles = dict[LoopId, int]
_TILES = (1, 2, 4, 8, 16, 32, 64)


@dataclass(frozen=True, slots=True)
class BlockNest:
    """A nest as one kernel: the tiles of its loops, and its predicted time."""

    tiles: Tiles
    picoseconds: int


def block_nest(
    plan: FusionPlan, nest: tuple[int, ...], request: Request, thresholds: GpuThresholds
) -> BlockNest | None:
    """The fastest tiles of a nest in one kernel; None where no tiles fit, or blocks cannot.

    Nothing is predicted for a machine without multiprocessors, which is no GPU.
    """
    found = _Nest.of(plan, nest, request, thresholds)
    if found is None or not request.machine.multiprocessors:
        return None
    loops = found.loops
    extent = {o: o.space.extent_in(request.extents) for o in loops}
    lists = {o: sorted({min(t, extent[o]) for t in (*_TILES, extent[o])}) for o in loops}
    best: BlockNest | None = None
    for start in _TILES:
        tiles = {o: min(start, extent[o]) for o in loops}
        while (here := found.at(tiles)) is not None:
            if best is None or here < best.picoseconds:
                best = BlockNest(tiles, here)
            trials = ({**tiles, o: tile} for o in loops for tile in lists[o] if tile != tiles[o])
            timed = [(t, trial) for trial in trials if (t := found.at(trial)) is not None]
            least, tiles = min(timed, key=lambda pair: pair[0], default=(here, tiles))
            if least >= here:
                break
    return best


@dataclass(frozen=True, slots=True)
class _Nest:
    """A nest whose outermost loops blocks divide."""

    plan: FusionPlan
    positions: tuple[int, ...]
    divided: tuple[LoopId, ...]
    own: tuple[ArrayPlan, ...]
    request: Request
    thresholds: GpuThresholds

    @classmethod
    def of(
        cls,
        plan: FusionPlan,
        positions: tuple[int, ...],
        request: Request,
        thresholds: GpuThresholds,
    ) -> _Nest | None:
        steps = [plan.program.steps[plan.visits[n].step] for n in positions]
        loops = {loop for n in positions for loop in plan.visits[n].loops}
        own = tuple(a for a in plan.arrays if a.home in loops)
        fetched = any(isinstance(s.op, Produce) for s in steps)
        if fetched or len({s.phase for s in steps}) > 1 or any(o.order_after for o in loops):
            return None
        divided = tuple(_divided(plan, positions, own, request, thresholds))
        return cls(plan, positions, divided, own, request, thresholds) if divided else None

    @property
    def loops(self) -> list[LoopId]:
        """All loops of the nest, in the order of the plan."""
        inside = {loop for n in self.positions for loop in self.plan.visits[n].loops}
        return [o for o in self.plan.loops if o in inside]

    def at(self, tiles: Mapping[LoopId, int]) -> int | None:
        """Predicted picoseconds with some tiles; None where they do not fit."""
        extents, machine, dtype = self.request.extents, self.request.machine, self.request.dtype
        held = 0
        for array in self.own:
            kept = {axis: tiles[loop] for axis, loop in array.contracted}
            count = prod(
                kept.get(axis, space.extent_in(extents))
                for axis, space in enumerate(array.tensor.spaces)
            )
            held += -(-count * element_bytes(array.tensor, dtype) // 16) * 16
        if held > PRIVATE_SHARED_BYTES:
            return None

        def trips(loops: tuple[LoopId, ...]) -> int:
            return prod(-(-o.space.extent_in(extents) // tiles[o]) for o in loops)

        count, points, work, loaded = trips(self.divided), 0, 0, 0
        private = {array.tensor for array in self.own}
        outside: dict[Tensor, None] = {}
        for position in self.positions:
            visit = self.plan.visits[position]
            step = self.plan.program.steps[visit.step]
            bound = {index: tiles[o] for index, o in visit.bind}
            whole = {x: x.space.extent_in(extents) for x in step.indices}
            length = {x: min(bound.get(x, most), most) for x, most in whole.items()}
            runs = trips(visit.loops)
            own_points = prod(length.values())
            points += runs * own_points
            work += (
                runs
                // count
                * _picoseconds_of_block(step, length, machine, dtype, self.thresholds.least_mnk)
            )
            for ref in dict.fromkeys((*step.operands, step.out)):
                if ref.tensor not in private:
                    loaded += runs * _bytes(ref, length, dtype)
                    outside[ref.tensor] = None
        busy = count >= self.thresholds.nest_iterations
        if not busy and points > self.thresholds.block_points * count:
            return None
        waves = -(-count // machine.multiprocessors)
        once = sum(whole_elements(t, extents) * element_bytes(t, dtype) for t in outside)
        loaded = loaded // NEST_CACHE_RATE
        return waves * work + machine.picoseconds(0, (1, 1), once + loaded, 1)


def _bytes(ref: Ref, length: Mapping[Index, int], dtype: str) -> int:
    return element_bytes(ref.tensor, dtype) * prod(length[i] for i in dict.fromkeys(ref.indices))


def _picoseconds_of_block(
    step: Step, length: Mapping[Index, int], machine: Machine, dtype: str, least_mnk: int
) -> int:
    """Time of a statement by one block, which has a multiprocessor for itself."""
    alone, points = replace(machine, multiprocessors=1), prod(length.values())
    flops, slowness = points * NEST_ELEMENT_FLOPS, (1, 1)
    if isinstance(step.op, Contract):
        batch, m, n, k = contraction_groups(step, step.op.a, step.op.b, length)
        if min(m, n, k) >= least_mnk:
            real = sum(ref.tensor.real for ref in (step.op.a, step.op.b))
            flops, slowness = 2 * points, alone.slowness(batch, m, n, k, dtype=dtype, real=real)
    whole = alone.picoseconds(flops, slowness, 0, 0) * machine.multiprocessors
    return whole + NEST_STATEMENT_PICOSECONDS


def _divided(
    plan: FusionPlan,
    nest: tuple[int, ...],
    own: tuple[ArrayPlan, ...],
    request: Request,
    thresholds: GpuThresholds,
) -> Iterator[LoopId]:
    """The outermost loops of a nest whose iterations blocks may divide."""
    steps = {n: plan.program.steps[plan.visits[n].step] for n in nest}
    private = {n for a in own for n in plan.makers(a)}
    written = {steps[n].out.tensor for n in nest if n not in private}
    read = {ref.tensor for s in steps.values() for ref in s.operands}

    def is_copied(tensor: Tensor) -> bool:
        """Whether blocks add up copies of an array."""
        held = whole_elements(tensor, request.extents) * element_bytes(tensor, request.dtype)
        return tensor not in read and held <= thresholds.summed_bytes

    def is_summed(loop: LoopId, tensor: Tensor) -> bool:
        """Whether every visit that writes an array adds up its sum over a loop."""
        makers = [n for n in nest if steps[n].out.tensor == tensor]
        return all(
            steps[n].reduction is Reduction.SUM
            and any(plan.visits[n].loop_of(i) == loop for i in steps[n].sums)
            for n in makers
        )

    def axes(loop: LoopId, tensor: Tensor) -> set[frozenset[int]]:
        """The axes of a written array along which a loop runs, for each access."""
        return {
            frozenset(k for k, i in enumerate(ref.indices) if plan.visits[n].loop_of(i) == loop)
            for n in nest
            for ref in (steps[n].out, *steps[n].operands)
            if ref.tensor == tensor
        }

    def is_apart(loop: LoopId) -> bool:
        return all(
            (len(found := axes(loop, t)) == 1 and len(next(iter(found))) == 1)
            or (is_copied(t) and is_summed(loop, t))
            for t in written
        )

    columns = zip(*(plan.visits[n].loops for n in nest), strict=False)
    common = (column[0] for column in takewhile(lambda c: len(set(c)) == 1, columns))
    return takewhile(is_apart, common)

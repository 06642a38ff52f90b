"""Exact memory of plans, in elements and bytes: sizes, lifetimes, sums and peaks."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from ...ir.cost import extent_of
from ...ir.plan import ArrayPlan, FusionPlan
from ...ir.program import FormulaSequence
from ...ir.tensor import Role, Tensor, element_bytes


def whole_elements(tensor: Tensor, extents: Mapping[str, int]) -> int:
    """Elements of a tensor without contracted axes.

    Example:
        >>> from tcgen.ir.tensor import Space
        >>> o = Space("o")
        >>> whole_elements(Tensor("t", (o, o), Role.TEMP), {"o": 4})
        16
    """
    return prod(extent_of(space, extents) for space in tensor.spaces)


def stored_elements(tensor: Tensor, extents: Mapping[str, int]) -> int:
    """Elements of a tensor in the caller's array, in which a packed pair is a triangle.

    Example:
        >>> from tcgen.ir.tensor import Packing, Space, Storage
        >>> o, packed = Space("o"), Storage(packed=(Packing(0),))
        >>> stored_elements(Tensor("t", (o, o), Role.OUTPUT, storage=packed), {"o": 4})
        10
    """
    packed = {axis for group in tensor.storage.packed for axis in group.axes}
    single = (s for axis, s in enumerate(tensor.spaces) if axis not in packed)
    return prod(extent_of(space, extents) for space in single) * prod(
        group.values(extent_of(tensor.spaces[group.first], extents))
        for group in tensor.storage.packed
    )


def array_elements(array: ArrayPlan, extents: Mapping[str, int]) -> int:
    """Elements of an instance: a contracted axis counts 1, or its tile.

    Source: Allam et al., Eq. (6).
    """
    total = 1
    for axis, space in enumerate(array.tensor.spaces):
        extent, loop = extent_of(space, extents), array.loop_of(axis)
        total *= extent if loop is None else min(extent, loop.tile or 1)
    return total


def array_bytes(array: ArrayPlan, extents: Mapping[str, int], dtype: str) -> int:
    """Bytes of an instance in a program of ``dtype``."""
    return array_elements(array, extents) * element_bytes(array.tensor, dtype)


def static_elements(plan: FusionPlan) -> int:
    """Sum of the elements that a plan holds, without outputs (unless they are packed).

    Figure 1 of Allam et al. with ranges 10, 10, 12, 10 takes 23 elements.
    """
    return sum(array_elements(a, plan.extent_of) for a in plan.arrays if a.tensor.is_held)


def live_range(array: ArrayPlan, plan: FusionPlan) -> tuple[int, int]:
    """First and last visit during which an instance is live, inclusive.

    The body of its home loop consists of visits and inner loops. The instance is live from the
    start of the one with its first use to the end of the one with its last use.
    """
    loops = plan.visits[array.live[0]].loops
    depth = 0 if array.home is None else loops.index(array.home) + 1

    def same_item(one: int, other: int) -> bool:
        inner = plan.visits[one].loops[: depth + 1]
        return len(inner) > depth and plan.visits[other].loops[: depth + 1] == inner

    first, last = array.live
    while first > 0 and same_item(first, first - 1):
        first -= 1
    while last + 1 < len(plan.visits) and same_item(last, last + 1):
        last += 1
    return first, last


def live_ranges(plan: FusionPlan) -> tuple[tuple[ArrayPlan, tuple[int, int]], ...]:
    """The instances that a plan holds, each with its first and last visit.

    An array that the constant phase leaves to the volatile one is live throughout.
    """
    ranges = []
    for array in plan.arrays:
        if array.tensor.is_held:
            always = is_persistent(array.tensor, plan.program)
            ranges.append((array, (0, len(plan.visits) - 1) if always else live_range(array, plan)))
    return tuple(ranges)


def is_persistent(tensor: Tensor, program: FormulaSequence) -> bool:
    """Whether the constant phase makes an array that the volatile phase reads."""
    steps = (*program.producers(tensor), *program.consumers(tensor))
    made = tensor.role in (Role.TEMP, Role.OUTPUT)
    return made and len({s.phase for s in steps}) > 1


def peak_of(plan: FusionPlan, amounts: Mapping[ArrayPlan, int]) -> int:
    """Greatest sum of the amounts of instances that are live during one visit."""
    ranges = live_ranges(plan)
    return max(
        (
            sum(amounts[a] for a, (first, last) in ranges if first <= n <= last)
            for n in range(len(plan.visits))
        ),
        default=0,
    )


def largest_together(plan: FusionPlan) -> tuple[ArrayPlan, ...]:
    """The arrays that are live at the peak, and the results; the largest first."""
    ranges = live_ranges(plan)

    def alive(visit: int) -> list[ArrayPlan]:
        return [a for a, (first, last) in ranges if first <= visit <= last]

    bodies = map(alive, range(len(plan.visits)))
    held = max(bodies, key=lambda arrays: sum(a.bytes for a in arrays), default=[])
    results = [a for a in plan.arrays if not a.tensor.is_held]
    return tuple(sorted((*held, *results), key=lambda a: -a.bytes))


def once_elements(plan: FusionPlan) -> dict[ArrayPlan, int]:
    """Elements of each instance if every generated input is produced once.

    A generated input that shares no loop is fetched in tiles, several times where it must be; here
    it counts in full, as in the paper.
    """
    return {
        a: whole_elements(a.tensor, plan.extent_of)
        if plan.visits[a.live[0]].redundant or any(loop.tile for _, loop in a.contracted)
        else array_elements(a, plan.extent_of)
        for a in plan.arrays
    }


def unfused_bytes(program: FormulaSequence, extents: Mapping[str, int], dtype: str) -> int:
    """Bytes of all arrays that a plan without shared loops holds."""
    held = (t for t in program.tensors if t.is_held)
    return sum(whole_elements(t, extents) * element_bytes(t, dtype) for t in held)


def saving(tensor: Tensor, axis: int, extents: Mapping[str, int]) -> int:
    """Elements saved by contracting one axis alone: ``size(A) - rsize(A, i)``.

    Source: Allam et al., Eq. (10).
    """
    size = whole_elements(tensor, extents)
    extent = extent_of(tensor.spaces[axis], extents)
    return size - size // extent


def output_bytes(program: FormulaSequence, extents: Mapping[str, int], dtype: str) -> int:
    """Bytes of the results in the caller's layout."""
    return sum(stored_elements(t, extents) * element_bytes(t, dtype) for t in program.outputs)


def plan_peak(plan: FusionPlan) -> int:
    """Most bytes of intermediates and generated inputs that are live at one time."""
    return peak_of(plan, {a: a.bytes for a, _ in live_ranges(plan)})

"""The loop nest of a plan as indented code; a loop has the same letter everywhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ..ir.expr import Delta
from ..ir.plan import ArrayPlan, FusionPlan, LoopId, Visit, common_loops
from ..ir.pretty.equations import pretty_step
from ..ir.program import Produce, map_operation
from ..ir.tensor import Index, Ref, Role, Tensor

Letters = Mapping[LoopId, str]


def loop_letters(plan: FusionPlan) -> dict[LoopId, str]:
    """A letter for each shared loop that no other index inside the loop has.

    The letter of the last step in the loop, which is nearest to the equations, is preferred.
    """
    letters: dict[LoopId, str] = {}
    visits = visits_in_loops(plan)
    for loop in plan.loops:
        inside = [plan.visits[n] for n in visits[loop]]
        bound = [i.name for v in inside for i, o in v.bind if o == loop]
        around = dict.fromkeys(o for v in inside for o in v.loops)
        taken = {letters[o] for o in around if o in letters}
        taken |= {i.name for v in inside for i in _local(plan, v)}
        wanted = list(dict.fromkeys(reversed(bound))) or [loop.space.name.lower()]
        numbered = (f"{wanted[0]}{n}" for n in range(1, len(plan.loops) + len(taken) + 2))
        letters[loop] = next(w for w in (*wanted, *numbered) if w not in taken)
    return letters


def nest_text(plan: FusionPlan) -> str:
    """The loop nest: shared loops, statements inside them, arrays as they are stored.

    An axis that holds one element at a time is left out of its array, a sum that runs over a
    shared loop becomes ``+=``, and ``X = 0`` marks where an array is set to zero.

    Example: two steps that share the loops j and i::

        for j in o:
            f1 = 0
            for i in o:
                f1 += A[i,j]
            W += f1 * f2[j]
    """
    letters = loop_letters(plan)
    starts = _starts(plan)
    heads = {g.visits[0]: g for g in plan.groups}
    lines: list[str] = []
    open_loops: tuple[LoopId, ...] = ()
    for position, visit in enumerate(plan.visits):
        shared = common_loops(open_loops, visit.loops)
        if position in heads:
            group = heads[position]
            lines.append("    " * shared + f"# {group.name} ({group.kind.value})")
        for depth in range(shared, len(visit.loops) + 1):
            lines += ["    " * depth + text for level, text in starts[position] if level == depth]
            if depth < len(visit.loops):
                lines.append("    " * depth + _loop_line(visit.loops[depth], letters))
        lines.append("    " * len(visit.loops) + _statement(plan, position, letters))
        open_loops = visit.loops
    return "\n".join(lines) + "\n"


def _loop_line(loop: LoopId, letters: Letters) -> str:
    letter = letters[loop]
    if loop.tile is not None:
        return f"for {letter} in {loop.space.name} by {loop.tile}:"
    after = f" with {letter} <= {letters[loop.order_after]}" if loop.order_after else ""
    return f"for {letter} in {loop.space.name}{after}:"


def _local(plan: FusionPlan, visit: Visit) -> tuple[Index, ...]:
    return tuple(i for i in plan.program.steps[visit.step].indices if visit.loop_of(i) is None)


def _carried(plan: FusionPlan, visit: Visit) -> bool:
    """True if a step sums over a shared loop, so that its statement accumulates."""
    return any(visit.loop_of(i) is not None for i in plan.program.steps[visit.step].sums)


def _starts(plan: FusionPlan) -> list[list[tuple[int, str]]]:
    """For each visit, depth and text of the lines that set arrays to zero before it."""
    starts: list[list[tuple[int, str]]] = [[] for _ in plan.visits]
    for array in plan.arrays:
        first = array.live[0]  # an instance is live from its first producer on
        if array.tensor.accumulate or not _carried(plan, plan.visits[first]):
            continue
        loops = plan.visits[first].loops
        depth = loops.index(array.home) + 1 if array.home in loops else 0
        # The loop inside the array's home may have been opened by an earlier step.
        while first and common_loops(plan.visits[first - 1].loops, loops) > depth:
            first -= 1
        whole = tuple(s.name for a, s in enumerate(array.tensor.spaces) if _kept(array, a))
        name = array.tensor.name + (f"[{','.join(whole)}]" if whole else "")
        starts[first].append((depth, f"{name} = 0"))
    return starts


def _kept(array: ArrayPlan | None, axis: int) -> bool:
    """True unless the array holds one element of the axis at a time."""
    loop = array.loop_of(axis) if array else None
    return loop is None or loop.tile is not None


def _statement(plan: FusionPlan, position: int, letters: Letters) -> str:
    """A step inside its shared loops, in the letters of the loops."""
    visit = plan.visits[position]
    step = plan.program.steps[visit.step]
    names = {i: Index(letters[o], i.space) for i, o in visit.bind}

    def stored(ref: Ref) -> Ref:
        array = plan.instance(ref.tensor, position)
        axes = [a for a in range(ref.tensor.rank) if _kept(array, a)]
        return Ref(
            _bare(ref.tensor, axes), tuple(names.get(ref.indices[a], ref.indices[a]) for a in axes)
        )

    def delta(part: Delta) -> Delta:
        return Delta(names.get(part.left, part.left), names.get(part.right, part.right))

    if isinstance(step.op, Produce):
        indices = ",".join(names.get(i, i).name for i in step.out.indices)
        return f"s{step.id}: {stored(step.out)} = generate {step.op.tensor.name}({indices})"
    return pretty_step(
        replace(
            step,
            out=stored(step.out),
            op=map_operation(step.op, stored, delta),
            accumulate=step.accumulate or _carried(plan, visit),
            sums=tuple(i for i in step.sums if visit.loop_of(i) is None),
        )
    )


def _bare(tensor: Tensor, axes: list[int]) -> Tensor:
    """A name for printing: the tensor with only these axes, and no symmetry."""
    return Tensor(tensor.name, tuple(tensor.spaces[a] for a in axes), Role.TEMP)


def shared_visits(plan: FusionPlan) -> Iterator[int]:
    """Positions of the visits that share a loop with another visit."""
    visits = visits_in_loops(plan)
    for position, visit in enumerate(plan.visits):
        if visit.loops and len(visits[visit.loops[0]]) > 1:
            yield position


def visits_in_loops(plan: FusionPlan) -> dict[LoopId, list[int]]:
    """Positions of the visits inside each shared loop."""
    inside: dict[LoopId, list[int]] = {loop: [] for loop in plan.loops}
    for position, visit in enumerate(plan.visits):
        for loop in visit.loops:
            inside[loop].append(position)
    return inside

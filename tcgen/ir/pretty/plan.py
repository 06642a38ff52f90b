"""Level 3 as text: the loop nest with each array as it is stored."""

from __future__ import annotations

from ..plan import FusionPlan, LoopId
from .program import pretty_step


def pretty_plan(plan: FusionPlan) -> str:
    """The loop nest as indented text, with each contracted array as it is stored."""
    lines: list[str] = []
    open_loops: tuple[LoopId, ...] = ()
    group_at = {g.visits[0]: g for g in plan.groups if g.visits}
    for position, visit in enumerate(plan.visits):
        shared = 0
        while (
            shared < min(len(open_loops), len(visit.loops))
            and open_loops[shared] == visit.loops[shared]
        ):
            shared += 1
        if position in group_at:
            group = group_at[position]
            lines.append("  " * shared + f"# {group.name} ({group.kind.value})")
        lines.extend(
            "  " * depth + f"for {visit.loops[depth]}:" for depth in range(shared, len(visit.loops))
        )
        open_loops = visit.loops
        names = ", ".join(f"{index}@{loop.id}" for index, loop in visit.bind)
        text = pretty_step(plan.program.steps[visit.step])
        lines.append("  " * len(visit.loops) + text + (f"   ({names})" if names else ""))
    for array in plan.arrays:
        axes = ",".join(
            "1"
            if (loop := array.loop_of(axis)) and loop.tile is None
            else (str(loop.tile) if loop else space.name)
            for axis, space in enumerate(array.tensor.spaces)
        )
        home = f" in loop {array.home.id}" if array.home else ""
        lines.append(
            f"{array.tensor.name}[{axes}] {array.place.value}{home}, visits "
            f"{array.live[0]}..{array.live[1]}, {array.bytes} bytes"
        )
    return "\n".join(lines) + "\n"

"""Rules of fusion plans about phases, kernels and where arrays lie: the second half of the checker.

Which loops may be shared is checked in ``plan``, which calls these too.
"""

from __future__ import annotations

from ...errors import VerifyError
from ..plan import FusionPlan, GroupKind, Place
from ..pretty.program import pretty_step
from ..program import Contract, Phase, Produce, Step
from ..tensor import Role


def step_at(plan: FusionPlan, position: int) -> Step:
    """The step that a visit executes."""
    return plan.program.steps[plan.visits[position].step]


def named(plan: FusionPlan, position: int) -> str:
    """A visit as messages name it."""
    return f"visit {position} ({pretty_step(step_at(plan, position))})"


def _phase_of_visits(plan: FusionPlan) -> list[Phase]:
    """Phase in which each visit runs: that of the outermost loop's body, fetches aside.

    A generated input is fetched for what comes next, so that a constant one may be fetched in the
    volatile part.
    """
    phases: list[Phase] = []
    stop = len(plan.visits)
    while stop > 0:
        loops, start = plan.visits[stop - 1].loops, stop - 1
        while loops and start > 0 and plan.visits[start - 1].loops[:1] == loops[:1]:
            start -= 1
        steps = [step_at(plan, n) for n in range(start, stop)]
        found = _distinct_phases([s for s in steps if not isinstance(s.op, Produce)])
        if len(found) > 1:
            raise VerifyError(f"constant and volatile steps share loop {loops[0].id}")
        phases += (found or phases[-1:] or _distinct_phases(steps[-1:])) * (stop - start)
        stop = start
    return phases[::-1]


def _distinct_phases(steps: list[Step]) -> list[Phase]:
    """Phases of some steps, each once, in order."""
    return list(dict.fromkeys(s.phase for s in steps))


def check_phases(plan: FusionPlan) -> None:
    """Constant visits come first, and no array is written in both phases.

    Raises:
        VerifyError: where one is.
    """
    phases = _phase_of_visits(plan)
    for n in range(1, len(phases)):
        if phases[n] is Phase.CONSTANT and phases[n - 1] is Phase.VOLATILE:
            raise VerifyError(f"constant {named(plan, n)} stands after a volatile one")
    for tensor in plan.program.tensors:
        writers = [s for s in plan.program.producers(tensor) if not isinstance(s.op, Produce)]
        if len(_distinct_phases(writers)) > 1:
            raise VerifyError(
                f"{tensor.name} is written in the constant and in the volatile phase: each call "
                f"would add to what the last one left"
            )


def check_groups(plan: FusionPlan) -> None:
    """Kernels hold all visits in order, each of one phase and of the kind that it says it is.

    Raises:
        VerifyError: naming the kernel that does not.
    """
    covered = [n for group in plan.groups for n in group.visits]
    if covered != list(range(len(plan.visits))) or any(not g.visits for g in plan.groups):
        raise VerifyError("the kernels do not hold every visit once, in order")
    names = [g.name for g in plan.groups]
    if len(set(names)) != len(names) or not all(n.isidentifier() for n in names):
        raise VerifyError("the kernels' names are not distinct identifiers")
    phases = _phase_of_visits(plan)
    for group in plan.groups:
        visits = [plan.visits[n] for n in group.visits]
        steps = [step_at(plan, n) for n in group.visits]
        host = group.host_loops
        if len({phases[n] for n in group.visits}) != 1:
            raise VerifyError(f"kernel {group.name} holds constant and volatile visits")
        if any(v.loops[: len(host)] != host for v in visits):
            raise VerifyError(f"kernel {group.name}: its host loops do not enclose all its visits")
        bare = len(visits) == 1 and visits[0].loops == host
        if group.kind is GroupKind.LIBRARY and not (bare and isinstance(steps[0].op, Contract)):
            raise VerifyError(f"library kernel {group.name} is not one contraction by itself")
        if group.kind is GroupKind.MAP and not bare:
            raise VerifyError(f"map kernel {group.name} is not one step by itself")
        if any(isinstance(s.op, Produce) for s in steps) and not bare:
            raise VerifyError(
                f"kernel {group.name} produces a generated input: it must do nothing else, and "
                f"the loops around it must be host loops"
            )
    for loop in plan.loops:
        holders = [g for g in plan.groups if any(loop in plan.visits[n].loops for n in g.visits)]
        inside = [g for g in holders if loop not in g.host_loops]
        if inside and len(holders) > 1:
            raise VerifyError(
                f"loop {loop.id} spans several kernels but is no host loop of {inside[0].name}"
            )


def check_places(plan: FusionPlan) -> None:
    """Arrays lie where all visits that use them can reach them.

    Raises:
        VerifyError: naming the array that does not.
    """
    for array in plan.arrays:
        name, role = array.tensor.name, array.tensor.role
        if (role is Role.OUTPUT) != (array.place is Place.CALLER):
            raise VerifyError(f"{name}: outputs, and nothing else, live in the caller's arrays")
        if role is Role.GENERATED and array.place is not Place.ARENA:
            raise VerifyError(f"{name}: a generated tile is fetched into the arena")
        if array.place not in (Place.REG, Place.SHARED):
            continue
        if not any(
            set(range(array.live[0], array.live[1] + 1)) <= set(g.visits) for g in plan.groups
        ):
            raise VerifyError(f"{name} lives in a {array.place.value} but in several kernels")
        loops = [array.loop_of(axis) for axis in range(array.tensor.rank)]
        if array.place is Place.REG and any(o is None or o.tile is not None for o in loops):
            raise VerifyError(f"{name} lives in a register but is not contracted to one element")

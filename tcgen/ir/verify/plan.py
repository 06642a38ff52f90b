"""The independent checker of fusion plans: does executing the plan compute the program?

It has no code in common with any solver and trusts only the program. It reads a plan as an ordered
list of visits inside shared loops, with instances of arrays. Its rules are those of loop programs
with several producers and consumers of an array; Theorem 1 of Allam et al. (loops are nested or
disjoint, never overlapping) is one of them.
"""

from __future__ import annotations

from itertools import pairwise
from math import factorial

from ...errors import VerifyError
from ..exchange_symmetry import exchange_sign, tensor_sign
from ..plan import ArrayPlan, FusionPlan, GroupKind, LoopId, Place, Visit
from ..pretty.equations import pretty_step
from ..program import Add, Contract, Phase, Produce, Step
from ..tensor import Index, Role, Tensor


def check_plan(plan: FusionPlan) -> None:
    """Check every rule of level 3; an error names the visit, array or kernel, and the rule."""
    for rule in (
        _check_extents,
        _check_loops,
        _check_visits,
        _check_nesting,
        _check_instances,
        _check_triangles,
        _check_phases,
        _check_groups,
        _check_places,
    ):
        try:
            rule(plan)
        except VerifyError as error:
            raise VerifyError(f"plan of {plan.program.name}: {error}") from None


def _check_extents(plan: FusionPlan) -> None:
    given = [name for name, _ in plan.extents]
    if given != sorted(set(given)):
        raise VerifyError("the planning extents are not sorted by name, each name once")
    for space in plan.program.spaces:
        for base in space.bases:
            if base.name not in given:
                raise VerifyError(f"no planning extent for space {base.name}")
    for name, extent in plan.extents:
        if extent < 1:
            raise VerifyError(f"planning extent {name}={extent} is below 1")


def _check_loops(plan: FusionPlan) -> None:
    for position, loop in enumerate(plan.loops):
        if loop.id != position:
            raise VerifyError(f"loop {loop.id} is at position {position} of the loops")
        if loop.tile is not None and loop.tile < 1:
            raise VerifyError(f"loop {loop.id} has a tile of {loop.tile}")
        outer = loop.order_after
        if outer is None:
            continue
        if loop.tile != outer.tile:
            raise VerifyError(f"triangular loop {loop.id} and its outer loop differ in their tiles")
        if outer.space != loop.space:
            raise VerifyError(f"triangular loop {loop.id} and its outer loop differ in space")


def _check_visits(plan: FusionPlan) -> None:
    visited = {v.step for v in plan.visits}
    for step in plan.program.steps:
        if step.id not in visited:
            raise VerifyError(f"no visit executes {pretty_step(step)}")
    for position, visit in enumerate(plan.visits):
        if not 0 <= visit.step < len(plan.program.steps):
            raise VerifyError(f"visit {position} names step {visit.step}, which does not exist")
        try:
            _check_bindings(plan, visit, plan.program.steps[visit.step])
        except VerifyError as error:
            raise VerifyError(f"{named(plan, position)}: {error}") from None


def _check_bindings(plan: FusionPlan, visit: Visit, step: Step) -> None:
    bound = [loop for _, loop in visit.bind]
    for index, loop in visit.bind:
        if index not in step.indices:
            raise VerifyError(f"{index} is bound to loop {loop.id} but is not an index of the step")
        if index.space != loop.space:
            raise VerifyError(
                f"{index} runs over {index.space.name} but loop {loop.id} over {loop.space.name}"
            )
    if len({index for index, _ in visit.bind}) != len(bound) or len(set(bound)) != len(bound):
        raise VerifyError("two indices are bound to one loop, or one index to two loops")
    if len(set(visit.loops)) != len(visit.loops):
        raise VerifyError("a loop encloses the visit twice")
    if set(bound) & set(visit.redundant) or set(visit.loops) != {*bound, *visit.redundant}:
        raise VerifyError("the loops are not the bound ones and the redundant ones, each once")
    for depth, loop in enumerate(visit.loops):
        if loop not in plan.loops:
            raise VerifyError(f"loop {loop.id} is not one of the plan's loops")
        if loop.order_after is not None and loop.order_after not in visit.loops[:depth]:
            raise VerifyError(
                f"loop {loop.id} is ordered after loop {loop.order_after.id}, "
                f"which does not enclose it"
            )
    if step.running is not None:
        along = visit.loop_of(step.running)
        if along is None or along.tile or along.order_after or visit.redundant:
            raise VerifyError(f"{step.running} does not take its elements once and in order")


def _check_nesting(plan: FusionPlan) -> None:
    """Loops are nested or disjoint: visits in a loop are adjacent, with equal loops around it."""
    for loop in plan.loops:
        inside = [n for n, v in enumerate(plan.visits) if loop in v.loops]
        if not inside:
            raise VerifyError(f"loop {loop.id} encloses no visit")
        for n in range(inside[0], inside[-1] + 1):
            if n not in inside:
                raise VerifyError(
                    f"loop {loop.id} is not contiguous: visits {inside[0]} and {inside[-1]} share "
                    f"it, but {named(plan, n)} between them does not"
                )
        first = plan.visits[inside[0]].loops
        prefix = first[: first.index(loop)]
        for n in inside[1:]:
            loops = plan.visits[n].loops
            if loops[: loops.index(loop)] != prefix:
                raise VerifyError(
                    f"loop {loop.id} overlaps another loop: visits {inside[0]} and {n} share it "
                    f"inside different loops"
                )


def _uses(plan: FusionPlan) -> dict[Tensor, tuple[list[int], list[int]]]:
    """Positions of the visits that write and that read each tensor."""
    uses: dict[Tensor, tuple[list[int], list[int]]] = {t: ([], []) for t in plan.program.tensors}
    for position, visit in enumerate(plan.visits):
        step = plan.program.steps[visit.step]
        uses[step.out.tensor][0].append(position)
        for tensor in dict.fromkeys(r.tensor for r in step.operands):
            uses[tensor][1].append(position)
    return uses


def _check_instances(plan: FusionPlan) -> None:
    known = set(plan.program.tensors)
    for array in plan.arrays:
        if array.tensor.role is Role.INPUT or array.tensor not in known:
            raise VerifyError(f"{array.tensor.name} is an input or unknown: it has no instance")
    held: dict[Tensor, list[ArrayPlan]] = {}
    for array in plan.arrays:
        held.setdefault(array.tensor, []).append(array)
    for tensor, (writes, reads) in _uses(plan).items():
        if tensor.role is Role.INPUT:
            continue
        instances = held.get(tensor, [])
        for n in sorted({*writes, *reads}):
            count = sum(a.live[0] <= n <= a.live[1] for a in instances)
            if count != 1:
                raise VerifyError(
                    f"{named(plan, n)} uses {tensor.name}, with {count} instances live"
                )
        if tensor.role is Role.OUTPUT and len(instances) != 1:
            raise VerifyError(f"output {tensor.name} has {len(instances)} instances, not 1")
        for array in instances:
            made = [n for n in writes if array.live[0] <= n <= array.live[1]]
            used = [n for n in reads if array.live[0] <= n <= array.live[1]]
            try:
                _check_instance(plan, array, made, used)
            except VerifyError as error:
                first, last = array.live
                raise VerifyError(
                    f"{tensor.name}, live in visits {first}..{last}: {error}"
                ) from None


def _check_instance(plan: FusionPlan, array: ArrayPlan, made: list[int], used: list[int]) -> None:
    uses = sorted({*made, *used})
    if not uses or array.live != (uses[0], uses[-1]):
        raise VerifyError("its live range is not from its first use to its last one")
    expected = [s.id for s in plan.program.producers(array.tensor)]
    if [plan.visits[n].step for n in made] != expected:
        raise VerifyError(f"its producers are not steps {expected}, each once and in this order")
    if used and made[-1] > used[0]:
        raise VerifyError(f"{named(plan, used[0])} reads it before visit {made[-1]} has written it")
    if array.tensor.role is Role.OUTPUT and array.home is not None:
        raise VerifyError("an output is live for the whole program, not inside a loop")
    for n in uses:
        if array.home is not None and array.home not in plan.visits[n].loops:
            raise VerifyError(f"its home, loop {array.home.id}, does not enclose {named(plan, n)}")
    around = _around(plan, array)
    _check_contraction(plan, array, made, used, around)
    for n in made:
        _check_producer(plan, array, n, around)
    for m in made:
        for n in used:
            _check_carried(plan, array, m, n, around)


def _around(plan: FusionPlan, array: ArrayPlan) -> tuple[LoopId, ...]:
    """The home of an instance and the loops that enclose it."""
    if array.home is None:
        return ()
    loops = plan.visits[array.live[0]].loops
    return loops[: loops.index(array.home) + 1]


def _check_contraction(
    plan: FusionPlan,
    array: ArrayPlan,
    made: list[int],
    used: list[int],
    around: tuple[LoopId, ...],
) -> None:
    axes = [axis for axis, _ in array.contracted]
    if len(set(axes)) != len(axes) or any(not 0 <= a < array.tensor.rank for a in axes):
        raise VerifyError("an axis is contracted twice or does not exist")
    for axis, loop in array.contracted:
        if loop not in around:
            raise VerifyError(
                f"axis {axis} is contracted in loop {loop.id}, which neither is nor encloses its "
                f"home"
            )
        if loop.space != array.tensor.spaces[axis]:
            raise VerifyError(
                f"axis {axis} over {array.tensor.spaces[axis].name} is contracted in loop "
                f"{loop.id} over {loop.space.name}"
            )
        for n in (*made, *used):
            step, visit = step_at(plan, n), plan.visits[n]
            refs = (*((step.out,) if n in made else ()), *step.operands)
            for ref in refs:
                if ref.tensor == array.tensor and visit.loop_of(ref.indices[axis]) != loop:
                    raise VerifyError(
                        f"axis {axis} is contracted in loop {loop.id}, but {named(plan, n)} does "
                        f"not bind {ref.indices[axis]} to it"
                    )


def _check_producer(
    plan: FusionPlan, array: ArrayPlan, position: int, around: tuple[LoopId, ...]
) -> None:
    """In one iteration of its home, a producer computes all of the instance, exactly once."""
    step, visit = step_at(plan, position), plan.visits[position]
    for axis, index in enumerate(step.out.indices):
        if array.loop_of(axis) is None and visit.loop_of(index) in around:
            raise VerifyError(
                f"axis {axis} is whole, but {named(plan, position)} computes one part of it in "
                f"each iteration of a loop around its home"
            )
    for index in step.sums:
        if index != step.running and visit.loop_of(index) in around:
            raise VerifyError(
                f"{named(plan, position)} sums {index} in a loop around its home, where each "
                f"iteration has a new instance"
            )
    for loop in visit.redundant:
        if loop not in around:
            raise VerifyError(
                f"{named(plan, position)} repeats in loop {loop.id} inside its home and would "
                f"accumulate more than once"
            )


def _check_carried(
    plan: FusionPlan, array: ArrayPlan, maker: int, reader: int, around: tuple[LoopId, ...]
) -> None:
    """Inside the home, a shared loop must run over the same axis in producer and consumer."""
    made, read = plan.visits[maker], plan.visits[reader]
    for loop in made.loops:
        if loop in around or loop not in read.loops:
            continue
        out = step_at(plan, maker).out
        axis = next((a for a, i in enumerate(out.indices) if made.loop_of(i) == loop), None)
        operands = [r for r in step_at(plan, reader).operands if r.tensor == array.tensor]
        if axis is None or any(read.loop_of(r.indices[axis]) != loop for r in operands):
            raise VerifyError(
                f"visits {maker} and {reader} share loop {loop.id} but not on the same axis: "
                f"{named(plan, reader)} would read elements that are not finished"
            )


def _check_triangles(plan: FusionPlan) -> None:
    for position, visit in enumerate(plan.visits):
        followed = [o for o in (loop.order_after for loop in visit.loops) if o is not None]
        if len(set(followed)) != len(followed):
            raise VerifyError(f"{named(plan, position)}: two loops are ordered after the same loop")
        ends = [o for o in visit.loops if o.order_after is not None and o not in followed]
        chains = [end.chain for end in ends]
        fixed = tuple(i for i, o in visit.bind if any(o in chain for chain in chains))
        for chain in chains:
            try:
                _check_chain(plan, position, chain, fixed)
            except VerifyError as error:
                raise VerifyError(
                    f"{named(plan, position)}, triangular loops "
                    f"{', '.join(str(o.id) for o in chain)}: {error}"
                ) from None


def _check_chain(
    plan: FusionPlan, position: int, chain: tuple[LoopId, ...], fixed: tuple[Index, ...]
) -> None:
    step, visit = step_at(plan, position), plan.visits[position]
    if all(loop in visit.redundant for loop in chain):
        return
    indices = [next((i for i, o in visit.bind if o == loop), None) for loop in chain]
    bound = [i for i in indices if i is not None]
    carried = [i for i in bound if i in step.out.indices]
    if carried == bound:
        array = plan.instance(step.out.tensor, position)
        held = [array and array.loop_of(step.out.indices.index(i)) for i in carried]
        if any(loop is None for loop in held) and not (
            not any(held) and len(bound) == len(chain) and _are_images(plan, position, chain)
        ):
            raise VerifyError(
                f"{step.out.tensor.name} is written for the triangle only: it must be contracted "
                f"in the chain, or get every image of a symmetric array that is contracted there"
            )
        return
    if carried or len(bound) != len(chain):
        raise VerifyError("the step sums over a part of the chain only")
    for left, right in pairwise(bound):
        if exchange_sign(plan.program, step, {left: right, right: left}, fixed) != 1:
            raise VerifyError(f"the summand is not symmetric under exchange of {left} and {right}")


def _are_images(plan: FusionPlan, position: int, chain: tuple[LoopId, ...]) -> bool:
    """Whether a visit and others in its loops add all images of one symmetric array.

    Each point of the output then gets the same value from every image: over all tiles as often as
    the chain has orders, over the triangle as often, in total, by the weights.
    """
    step, visit = step_at(plan, position), plan.visits[position]
    if not isinstance(step.op, Add):
        return False
    first, arrangements = step.op.a, set[tuple[LoopId | None, ...]]()
    images = [
        (image, image.op.a, inside)
        for image, inside in ((step_at(plan, n), v) for n, v in enumerate(plan.visits))
        if inside.loops == visit.loops
        and image.out.tensor == step.out.tensor
        and isinstance(image.op, Add)
        and image.op.a.tensor == first.tensor
    ]
    for image, read, inside in images:
        held = [inside.loop_of(i) for i in read.indices]
        if held != [visit.loop_of(i) for i in first.indices] or not set(chain) <= set(held):
            return False
        if image.sums or set(read.indices) != set(image.out.indices):
            return False
        if [i.space for i in image.out.indices] != [i.space for i in step.out.indices]:
            return False
        # One point of the output, as axes of the array: here, and where the first image has them.
        axes = [first.indices.index(i) for i in step.out.indices]
        perm = tuple(axes[image.out.indices.index(i)] for i in read.indices)
        sign = tensor_sign(plan.program, read.tensor, perm)
        if sign is None or image.coeff != sign * step.coeff:
            return False
        arrangements.add(tuple(inside.loop_of(i) for i in image.out.indices))
    return len(arrangements) == len(images) == factorial(len(chain))


def step_at(plan: FusionPlan, position: int) -> Step:
    """The step that a visit executes."""
    return plan.program.steps[plan.visits[position].step]


def named(plan: FusionPlan, position: int) -> str:
    """A visit as messages name it."""
    return f"visit {position} ({pretty_step(step_at(plan, position))})"


def _phase_of_visits(plan: FusionPlan) -> list[Phase]:
    """Phase in which each visit runs: that of the outermost loop's body, apart from fetches.

    A generated input is fetched for the visits after it, so a constant one may be fetched in the
    volatile part.
    """
    phases: list[Phase] = []
    stop = len(plan.visits)
    while stop > 0:
        loops, start = plan.visits[stop - 1].loops, stop - 1
        while loops and start > 0 and plan.visits[start - 1].loops[:1] == loops[:1]:
            start -= 1
        steps = [step_at(plan, n) for n in range(start, stop)]
        computing = _distinct_phases([s for s in steps if not isinstance(s.op, Produce)])
        if len(computing) > 1:
            raise VerifyError(f"constant and volatile steps share loop {loops[0].id}")
        phases += (computing or phases[-1:] or _distinct_phases(steps[-1:])) * (stop - start)
        stop = start
    return phases[::-1]


def _distinct_phases(steps: list[Step]) -> list[Phase]:
    """Phases of some steps, each once, in order."""
    return list(dict.fromkeys(s.phase for s in steps))


def _check_phases(plan: FusionPlan) -> None:
    """Constant visits come first, and no array is written in both phases."""
    phases = _phase_of_visits(plan)
    for n in range(1, len(phases)):
        if phases[n] is Phase.CONSTANT and phases[n - 1] is Phase.VOLATILE:
            raise VerifyError(f"constant {named(plan, n)} is after a volatile one")
    for tensor in plan.program.tensors:
        writers = [s for s in plan.program.producers(tensor) if not isinstance(s.op, Produce)]
        if len(_distinct_phases(writers)) > 1:
            raise VerifyError(
                f"{tensor.name} is written in the constant and in the volatile phase: each call "
                f"would add to the result of the last one"
            )


def _check_groups(plan: FusionPlan) -> None:
    """Kernels have all visits in order, each of one phase, and each fits its kind."""
    covered = [n for group in plan.groups for n in group.visits]
    if covered != list(range(len(plan.visits))) or any(not g.visits for g in plan.groups):
        raise VerifyError("the kernels do not have every visit once, in order")
    names = [g.name for g in plan.groups]
    if len(set(names)) != len(names) or not all(n.isidentifier() for n in names):
        raise VerifyError("the kernels' names are not distinct identifiers")
    phases = _phase_of_visits(plan)
    for group in plan.groups:
        visits = [plan.visits[n] for n in group.visits]
        steps = [step_at(plan, n) for n in group.visits]
        host = group.host_loops
        if len({phases[n] for n in group.visits}) != 1:
            raise VerifyError(f"kernel {group.name} has constant and volatile visits")
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
                f"loop {loop.id} spans several kernels but is not a host loop of {inside[0].name}"
            )


def _check_places(plan: FusionPlan) -> None:
    """Each array is stored in memory that all visits using it can access."""
    for array in plan.arrays:
        name, role = array.tensor.name, array.tensor.role
        if (role is Role.OUTPUT) != (array.place is Place.CALLER):
            raise VerifyError(
                f"{name}: the outputs, and no other arrays, are stored in the caller's arrays"
            )
        if role is Role.GENERATED and array.place is not Place.ARENA:
            raise VerifyError(f"{name}: a generated tile is fetched into the arena")
        if array.place not in (Place.REG, Place.SHARED):
            continue
        if not any(
            set(range(array.live[0], array.live[1] + 1)) <= set(g.visits) for g in plan.groups
        ):
            raise VerifyError(
                f"{name} is stored in a {array.place.value} but used in several kernels"
            )
        loops = [array.loop_of(axis) for axis in range(array.tensor.rank)]
        if array.place is Place.REG and any(o is None or o.tile is not None for o in loops):
            raise VerifyError(
                f"{name} is stored in a register but is not contracted to one element"
            )

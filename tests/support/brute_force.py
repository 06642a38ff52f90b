"""Every loop program of a small formula sequence, and the least memory among the legal ones.

Nothing here knows the solver's rules: programs are enumerated as ordered lists of statements with
nested intervals, and the independent checker says which are legal.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import permutations, product
from math import prod

from tcgen.errors import VerifyError
from tcgen.ir.plan import (
    ArrayPlan,
    FusionPlan,
    GroupKind,
    KernelGroup,
    LoopId,
    Place,
    Visit,
)
from tcgen.ir.program import Add, Contract, FormulaSequence, Step
from tcgen.ir.tensor import Index, Ref, Role, Space, Tensor

SPACES = (Space("o"), Space("v"))
FOUR = tuple(Index(name, SPACES[n % 2]) for n, name in enumerate("ijkl"))
Bind = tuple[tuple[Index, int], ...]  # loops outermost first


def small_dag(
    seed: int,
    statements: int,
    shared: float = 0.6,
    added: float = 0.3,
    *,
    letters: tuple[Index, ...] = FOUR,
    rank: int = 2,
) -> FormulaSequence:
    """Steps over few loops: arrays read by several steps, in other orders, and written by several.

    Args:
        seed: of the random numbers.
        statements: at most this many.
        shared: how often a step reads an array that has a reader already.
        added: how often an array gets a second producer.
        letters: of all loops.
        rank: most axes of an array.
    """
    rng = random.Random(seed)
    spaces = tuple(dict.fromkeys(i.space for i in letters))
    inputs = [
        Tensor(f"A{n}", tuple(rng.choice(spaces) for _ in range(rng.randint(1, rank))), Role.INPUT)
        for n in (0, 1)
    ]
    steps: list[Step] = []
    temps: list[Tensor] = []
    read: set[Tensor] = set()

    def ref(array: Tensor) -> Ref:
        return Ref(
            array, tuple(rng.choice([i for i in letters if i.space == s]) for s in array.spaces)
        )

    while len(steps) < statements:
        last = len(steps) == statements - 1
        fresh = [t for t in temps if t not in read]
        old = [t for t in temps if t in read]
        first = rng.choice(fresh or old or inputs)
        pool = [t for t in (old if rng.random() < shared and old else fresh) if t != first]
        second = rng.choice(pool or inputs)
        refs = (ref(first), ref(second))[: rng.choice((1, 2, 2))]
        seen = tuple(dict.fromkeys(i for r in refs for i in r.indices))
        keep = tuple(rng.sample(seen, rng.randint(0, min(rank, len(seen)))))
        role = Role.OUTPUT if last or rng.random() < 0.2 else Role.TEMP
        out = Tensor(f"T{len(steps)}", tuple(i.space for i in keep), role)
        for accumulate in (False, True):
            if accumulate and (rng.random() > added or len(steps) >= statements):
                break
            if accumulate:
                refs = (ref(rng.choice(inputs)),)
                fitting = [[i for i in letters if i.space == s] for s in out.spaces]
                keep = next((k for k in product(*fitting) if len(set(k)) == len(k)), keep)
                seen = tuple(dict.fromkeys((*keep, *(i for r in refs for i in r.indices))))
            sums = tuple(i for i in seen if i not in keep)
            op = Contract(*refs) if len(refs) == 2 else Add(refs[0])
            steps.append(Step(len(steps), Ref(out, keep), op, Fraction(1), accumulate, sums))
            read.update(r.tensor for r in refs)
        if role is Role.TEMP:
            temps.append(out)
    tensors = (*inputs, *dict.fromkeys(s.out.tensor for s in steps))
    unread = [t for t in temps if t not in read]
    outs = {t: replace(t, role=Role.OUTPUT) for t in unread}
    fixed = tuple(
        replace(s, out=Ref(outs.get(s.out.tensor, s.out.tensor), s.out.indices)) for s in steps
    )
    program = FormulaSequence("small", spaces, tuple(outs.get(t, t) for t in tensors), fixed)
    program.verify()
    return program


def orders(program: FormulaSequence) -> Iterator[tuple[int, ...]]:
    """Orders in which every read follows every write, and writes keep their order."""
    steps = program.steps
    before = {
        (a.id, b.id)
        for a in steps
        for b in steps
        if a.id != b.id
        and (
            any(r.tensor == a.out.tensor for r in b.operands)
            or (a.out.tensor == b.out.tensor and a.id < b.id)
        )
    }
    for order in permutations(range(len(steps))):
        if all(order.index(a) < order.index(b) for a, b in before):
            yield order


def nests(
    nodes: tuple[int, ...], free: dict[int, tuple[Index, ...]], name: str = ""
) -> Iterator[dict[int, tuple[tuple[Index, str], ...]]]:
    """All loop structures over a row of statements, as paths of loops by statement."""
    if not nodes:
        yield {}
        return
    for rest in nests(nodes[1:], free, name + "."):
        yield {nodes[0]: (), **rest}
    for count in range(2, len(nodes) + 1):
        members = nodes[:count]
        for choice in product(*(free[n] for n in members)):
            if len({i.space for i in choice}) != 1:
                continue
            left = {
                n: tuple(i for i in free[n] if i != c) for n, c in zip(members, choice, strict=True)
            }
            for inner in nests(members, left, name + "/"):
                here = {n: ((c, name), *inner[n]) for n, c in zip(members, choice, strict=True)}
                for rest in nests(nodes[count:], free, name + "." * count):
                    yield {**here, **rest}


def as_plan(
    program: FormulaSequence,
    order: tuple[int, ...],
    nest: dict[int, tuple[tuple[Index, str], ...]],
    extents: tuple[tuple[str, int], ...],
) -> FusionPlan:
    """The plan of a loop program, with every axis contracted that all users walk in one loop."""
    loops: dict[str, LoopId] = {}
    for node in order:
        for index, name in nest[node]:
            loops.setdefault(name, LoopId(len(loops), index.space))
    visits = tuple(
        Visit(
            node,
            tuple((i, loops[name]) for i, name in nest[node]),
            tuple(loops[name] for _, name in nest[node]),
        )
        for node in order
    )
    arrays = tuple(
        _array(program, visits, t, dict(extents)) for t in program.tensors if not t.is_input
    )
    groups: list[KernelGroup] = []
    for position, visit in enumerate(visits):
        if visit.loops and groups and visits[groups[-1].visits[-1]].loops[:1] == visit.loops[:1]:
            groups[-1] = replace(groups[-1], visits=(*groups[-1].visits, position))
            continue
        kind = GroupKind.NEST if visit.loops else GroupKind.MAP
        groups.append(KernelGroup(f"kernel_{position}", kind, (position,)))
    return FusionPlan(program, extents, tuple(loops.values()), visits, arrays, tuple(groups))


def _array(
    program: FormulaSequence, visits: tuple[Visit, ...], tensor: Tensor, extents: dict[str, int]
) -> ArrayPlan:
    uses = []
    for position, visit in enumerate(visits):
        step = program.steps[visit.step]
        refs = [r for r in (step.out, *step.operands) if r.tensor == tensor]
        uses += [(position, visit, r) for r in refs]
    contracted = []
    if tensor.role is not Role.OUTPUT:
        for axis, space in enumerate(tensor.spaces):
            found = {v.loop_of(r.indices[axis]) for _, v, r in uses}
            loop = next(iter(found))
            if len(found) == 1 and loop is not None and loop.space == space:
                contracted.append((axis, loop))
    path = visits[uses[0][0]].loops
    inner = [o for o in path if any(o == c for _, c in contracted)]
    elements = 1
    for axis, space in enumerate(tensor.spaces):
        elements *= 1 if axis in dict(contracted) else space.extent_in(extents)
    place = Place.CALLER if tensor.role is Role.OUTPUT else Place.ARENA
    live = (min(u[0] for u in uses), max(u[0] for u in uses))
    return ArrayPlan(
        tensor, tuple(contracted), inner[-1] if inner else None, place, live, None, 8 * elements
    )


def static_sum(plan: FusionPlan) -> int:
    """Elements of all arrays but the outputs."""
    return sum(a.bytes // 8 for a in plan.arrays if a.tensor.role is not Role.OUTPUT)


def saved(plan: FusionPlan) -> int:
    """Equation (10) of Allam et al.: the elements that each contracted axis saves by itself."""
    total = 0
    for array in plan.arrays:
        shape = [space.extent_in(dict(plan.extents)) for space in array.tensor.spaces]
        for axis, _ in array.contracted:
            reduced = [n for a, n in enumerate(shape) if a != axis]
            total += prod(shape) - prod(reduced)
    return total


def greatest_sum(plan: FusionPlan) -> int:
    """Bytes of what lives at one time: an array local to a loop body dies with each iteration."""
    amounts = [0] * len(plan.visits)
    for array in (a for a in plan.arrays if a.tensor.role is not Role.OUTPUT):
        first, last = array.live
        outside = 0
        if array.home is not None:
            outside = plan.visits[first].loops.index(array.home) + 1
        for position, visit in enumerate(plan.visits):
            around = [
                plan.visits[use].loops[outside] in visit.loops
                for use in (first, last)
                if len(plan.visits[use].loops) > outside
            ]
            if first <= position <= last or any(around):
                amounts[position] += array.bytes
    return max(amounts, default=0)


def programs(
    program: FormulaSequence, extents: tuple[tuple[str, int], ...]
) -> Iterator[FusionPlan]:
    """All loop programs, legal or not."""
    free = {s.id: s.indices for s in program.steps}
    for order in orders(program):
        for nest in nests(order, free):
            yield as_plan(program, order, nest, extents)


def count(program: FormulaSequence, limit: int) -> int:
    """Number of loop programs, as far as the limit."""
    free = {s.id: s.indices for s in program.steps}
    found = 0
    for order in orders(program):
        for _ in nests(order, free):
            found += 1
            if found >= limit:
                return found
    return found


def legal(plan: FusionPlan) -> bool:
    """What the independent checker says."""
    try:
        plan.verify()
    except VerifyError:
        return False
    return True


def least(program: FormulaSequence, extents: tuple[tuple[str, int], ...]) -> tuple[int, int]:
    """Least static sum in elements and least peak in bytes over all legal loop programs."""
    static, peak, _ = optima(program, extents)
    return static, peak


def optima(program: FormulaSequence, extents: tuple[tuple[str, int], ...]) -> tuple[int, int, int]:
    """Least static sum, least peak, and most elements saved by Eq. (10)."""
    best: tuple[int, ...] | None = None
    for plan in programs(program, extents):
        here = (static_sum(plan), greatest_sum(plan), -saved(plan))
        if (best is None or any(a < b for a, b in zip(here, best, strict=True))) and legal(plan):
            best = here if best is None else tuple(map(min, here, best))
    assert best is not None
    return best[0], best[1], -best[2]

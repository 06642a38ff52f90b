"""No rule of the plan checker can be left out: without it, wrong programs pass.

Legal plans of small programs are spoilt in one place. Those that only one rule refuses are lowered
and run with that rule left out; some give wrong results, or cannot be lowered.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

import tcgen.ir.verify.plan as legality
from support import brute_force as brute
from tcgen.interp import evaluate_program, run_module
from tcgen.ir.plan import ArrayPlan, FusionPlan, Place, Visit
from tcgen.ir.tensor import Role
from tcgen.lower import lower_plan
from tcgen.options import Options

RULES = (
    "_check_nesting",
    "_check_instance",
    "_check_contraction",
    "_check_producer",
    "_check_carried",
)
EXTENTS = (("o", 2), ("v", 3))


def with_array(plan: FusionPlan, position: int, array: ArrayPlan) -> FusionPlan:
    whole = not all(array.loop_of(axis) for axis in range(array.tensor.rank))
    if array.tensor.role is not Role.OUTPUT:
        array = replace(array, place=Place.ARENA if whole else Place.REG)
    arrays = (*plan.arrays[:position], array, *plan.arrays[position + 1 :])
    return replace(plan, arrays=arrays)


def with_visit(plan: FusionPlan, position: int, visit: Visit) -> FusionPlan:
    return replace(plan, visits=(*plan.visits[:position], visit, *plan.visits[position + 1 :]))


def with_lives(plan: FusionPlan) -> FusionPlan:
    """Lives from the first to the last use."""
    arrays = []
    for array in plan.arrays:
        uses = [
            n
            for n, v in enumerate(plan.visits)
            for step in plan.program.steps
            if step.id == v.step
            if array.tensor in (step.out.tensor, *(r.tensor for r in step.operands))
        ]
        arrays.append(replace(array, live=(min(uses), max(uses))))
    return replace(plan, arrays=tuple(arrays))


def spoilt(plan: FusionPlan) -> Iterator[FusionPlan]:
    """The plan with an axis contracted more or less, another home, loops or visits exchanged, a
    statement repeated in the loops of its neighbour."""
    for position, array in enumerate(plan.arrays):
        for axis in range(array.tensor.rank):
            others = tuple(pair for pair in array.contracted if pair[0] != axis)
            yield with_array(plan, position, replace(array, contracted=others))
            for loop in plan.loops:
                pairs = tuple(sorted((*others, (axis, loop)), key=lambda pair: pair[0]))
                yield with_array(plan, position, replace(array, contracted=pairs))
        for home in (None, *plan.loops):
            yield with_array(plan, position, replace(array, home=home))
            yield with_array(plan, position, replace(array, home=home, contracted=()))
    for n, visit in enumerate(plan.visits):
        yield with_visit(plan, n, replace(visit, loops=visit.loops[::-1]))
        for other in plan.visits[max(0, n - 1) : n + 2]:
            more = tuple(loop for loop in other.loops if loop not in visit.loops)
            if more and set(visit.loops) < set(other.loops):
                repeated = replace(visit, loops=other.loops, redundant=(*visit.redundant, *more))
                yield with_visit(plan, n, repeated)
    for n in range(len(plan.visits) - 1):
        visits = list(plan.visits)
        visits[n : n + 2] = visits[n + 1], visits[n]
        yield with_lives(replace(plan, visits=tuple(visits)))


def is_wrong(plan: FusionPlan, seed: int) -> bool:
    rng = np.random.default_rng(seed)
    sizes = dict(EXTENTS)
    given = {t.name: rng.random([sizes[s.name] for s in t.spaces]) for t in plan.program.inputs}
    wanted = evaluate_program(plan.program, given, sizes)
    try:
        found = run_module(lower_plan(plan, Options()), given, sizes)
    except Exception:
        # Lowering cannot express the plan: a rule has to refuse it.
        return True
    return any(not np.allclose(found[name], value) for name, value in wanted.items())


@pytest.mark.parametrize("rule", RULES)
def test_without_a_rule_wrong_programs_pass(rule, monkeypatch):
    for seed in range(40):
        program = brute.small_dag(seed, 4, 0.8, 0.5)
        loop_programs = list(islice(brute.programs(program, EXTENTS), 40))
        legal = [p for p in loop_programs if brute.legal(p)]
        candidates = (*loop_programs, *(p for plan in legal[:20] for p in spoilt(plan)))
        refused = [p for p in candidates if not brute.legal(p)]
        with monkeypatch.context() as patch:
            patch.setattr(legality, rule, lambda *_: None)
            passed = [p for p in refused if brute.legal(p)]
        if any(is_wrong(plan, seed) for plan in passed):
            return
    pytest.fail(f"what {rule} refuses is right all the same, or another rule refuses it too")

"""The choice between a fused plan and the unfused one, by the flops that both execute.

Planning predicts the flops of steps from level 2. Where a step shares no loop, lowering may compute
only distinct elements of symmetric arrays, a quarter of the flops or less; a shared loop prevents
that. Only the lowered modules show it.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from ..fusion import plan_fusion
from ..fusion.solver.time_cost import plan_picoseconds
from ..ir.executed import executed_by, totals
from ..ir.loops import Module
from ..ir.plan import FusionPlan
from ..ir.program import Contract, FormulaSequence, Operation
from ..ir.tensor import Ref
from ..options import Options
from .limits import lower_within, plan_within, planned_use

# A fused plan that is predicted to take less than this many percent longer is taken: it needs less
# memory, and the error of the prediction is larger.
_CLOSE_PERCENT = 3


def faster_plan(program: FormulaSequence, options: Options) -> FusionPlan:
    """The plan of the options' objective; for ``time`` on a CPU the unfused one if it is faster."""
    plan = plan_within(program, options)
    if options.objective != "time" or options.target != "cpu" or not plan.loops or options.sliced:
        return plan
    unfused = plan_fusion(program, replace(options, objective="none", memory_limit=None))
    module = lower_within(unfused, options)
    limit = options.memory_limit
    if limit is not None and planned_use(module, options).peak > limit:
        return plan
    fused = executed_picoseconds(plan, lower_within(plan, options), options)
    whole = executed_picoseconds(unfused, module, options)
    if 100 * fused <= (100 + _CLOSE_PERCENT) * whole:
        return plan
    return replace(unfused, solve=replace(plan.solve, value=Fraction(whole, 10**12), bound=None))


def executed_picoseconds(plan: FusionPlan, module: Module, options: Options) -> int:
    """Predicted time of a plan with the flops that its module executes in each contraction."""
    done = totals(executed_by(module), plan.extent_of).steps
    steps = [plan.program.steps[visit.step] for visit in plan.visits]
    less: dict[tuple[Ref, Operation], int] = {
        (s.out, s.op): max(0, s.flops.value(plan.extent_of) - done[s.id].flops)
        for s in steps
        if isinstance(s.op, Contract) and s.id in done
    }
    return plan_picoseconds(
        plan,
        options.constants,
        options.dtype,
        lambda step, _: less.get((step.out, step.op), 0),
        options.calls,
    )

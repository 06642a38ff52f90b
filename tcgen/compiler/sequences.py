"""The choice among formula sequences: by predicted time, and by bytes within a memory limit.

One sequence is formed for the machine's weight of a byte. If a memory limit makes its plan slow, or
refuses it, sequences for larger weights, which store less, are planned as well, each also without a
constant phase, whose arrays no loop of a call can contract, and for another objective.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import log

from ..algebra import Sequences, form_sequences, without_constant_phase
from ..algebra.cost_model import CostModel
from ..errors import ExtentError
from ..fusion import plan_fusion
from ..fusion.placement.memory import output_bytes, plan_peak
from ..fusion.solver.time_cost import least_picoseconds, plan_picoseconds, saved_flops
from ..fusion.time.triangular_nests import orbit_nests
from ..ir.loops import Module
from ..ir.plan import FusionPlan
from ..ir.program import BEST_FOUND, FormulaSequence, Phase
from ..ir.system import System, planning_extents
from ..options import Options
from ..thresholds.time_model import Machine
from .limits import lower_within, planned_use, whole_sliced
from .plan_cache import cached
from .unfused import executed_picoseconds, faster_plan

# Sequences and plans whose predicted times differ by less are equally fast, and the one of less
# memory is taken: the error of the prediction is larger.
_CLOSE_PERCENT = 3

# Multiples of the weight of a byte for sequences that store less. Source: with 16, CCSD at o=30 and
# v=300 forms no array of v^4, 2026-11-29.
_HEAVIER = (4, 16, 64)

# Most steps of a sequence of which every plan is tried, which takes seconds, and for more steps the
# percents above the lower bound of its time from which a plan is slow. Source: CCSD at (10, 40)
# to (30, 300) is 1 to 16 % above it where arrays are whole, 2026-11-29.
_FEW_STEPS = 32
_SLOW_PERCENT = 25


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan that was lowered.

    Attributes:
        bytes: bytes that a call allocates at planning extents, on one thread.
        picoseconds: predicted time.
        sliced: whether no sliced input is held whole.
    """

    plan: FusionPlan
    module: Module
    bytes: int
    picoseconds: int
    sliced: bool

    def fits(self, limit: int | None) -> bool:
        """Whether the plan keeps a limit and no sliced input is whole."""
        return self.sliced and (limit is None or self.bytes <= limit)


def sequences(
    system: System,
    options: Options,
    byte_weights: tuple[float, ...],
    progress: Callable[[str], None],
    *,
    use_cache: bool,
    greedy: bool = False,
) -> tuple[FormulaSequence, ...]:
    """The sequences of :func:`tcgen.algebra.form_sequences`, from the cache if they are there.

    Unless the search is ``greedy``, a large system is searched at its typical extents, or at
    extents of similar ratios, so that most extents share that search, and factored greedily at
    those of the options. Only if this costs less, they are searched as well. At extents at which
    calls take little time, a short search is enough.
    """

    def search(wish: Options, *, greedy: bool = False) -> tuple[FormulaSequence, ...]:
        make = partial(form_sequences, system, wish, byte_weights, progress, greedy=greedy)
        if use_cache:
            given, key = (system, byte_weights, greedy), _read_by_factoring(wish)
            make = partial(cached, "program", given, key, Sequences, make)
        return make().found

    typical = _typical_extents(system, options)
    terms = sum(len(e.terms) for e in system.equations)
    few = options.thresholds.planner.algebra.direct_terms
    if greedy or not options.optimize or terms <= few or typical in (None, options.extents):
        return search(options, greedy=greedy)
    if _is_small(system, options):
        return search(_with_little_work(options))
    usual, here = search(replace(options, extents=typical)), search(options, greedy=True)
    for weight in byte_weights:
        cost = partial(CostModel.of(options, weight).cost, extents=options.extent_of)
        if min(map(cost, here)) < min(map(cost, usual)):
            return search(options)
    # Found at other extents, so that nothing is proven of it here.
    return tuple(replace(p, each_term=here[0].each_term, optimality=BEST_FOUND) for p in usual)


def _is_small(system: System, options: Options) -> bool:
    """True if all calls of the equations as written take few flops."""
    written = replace(options, optimize=False)
    (program,) = form_sequences(system, written, (0.0,)).found
    flops = CostModel(calls=options.calls).cost(program, options.extent_of) * options.calls
    return flops < options.thresholds.planner.algebra.small_flops


def _with_little_work(options: Options) -> Options:
    """The options with the effort of small systems."""
    planner = options.thresholds.planner
    algebra = replace(planner.algebra, work_per_effort=planner.algebra.small_work)
    planner = replace(planner, algebra=algebra)
    return replace(options, thresholds=replace(options.thresholds, planner=planner))


def _typical_extents(system: System, options: Options) -> tuple[tuple[str, int], ...] | None:
    """Typical extents, each times the power of 4 that brings its ratio to the first one near.

    None if the system has spaces without typical extents.
    """
    try:
        typical = planning_extents(system, {})
    except ExtentError:
        return None
    if not typical:
        return typical
    given = options.extent_of
    ratios = {name: max(1, given[name]) / n for name, n in typical}
    first = ratios[typical[0][0]]
    return tuple(
        (name, max(1, round(n * 4.0 ** round(log(ratios[name] / first, 4))))) for name, n in typical
    )


def _read_by_factoring(options: Options) -> Options:
    """The options that the search for a sequence reads; the others have their defaults."""
    return replace(
        options,
        tune=False,
        objective="none",
        memory_limit=None,
        machine=Machine(),
        byte_weight=0.0,
        pareto=False,
        library=True,
        tf32=False,
    )


def fastest_sequence(found: Sequence[FormulaSequence], options: Options) -> FormulaSequence:
    """The sequence of least predicted time; of equally fast ones, that of least memory.

    Times and bytes are those of the steps in order, without shared loops.
    """
    if len(found) == 1:
        return found[0]
    unfused = [plan_fusion(p, replace(options, objective="none")) for p in found]
    times = [_picoseconds(plan, options) for plan in unfused]
    most = min(times) * (100 + _CLOSE_PERCENT) // 100
    close = (n for n, time in enumerate(times) if time <= most)
    return found[min(close, key=lambda n: (_bytes(unfused[n], options), times[n], n))]


def plan_of(program: FormulaSequence, options: Options, *, use_cache: bool) -> FusionPlan:
    """The plan of the options' objective, from the cache if it is there."""
    make = partial(faster_plan, program, options)
    if use_cache:
        make = partial(cached, "plan", program, replace(options, tune=False), FusionPlan, make)
    return make()


def best_within(
    system: System,
    plan: FusionPlan,
    module: Module,
    options: Options,
    progress: Callable[[str], None],
    *,
    use_cache: bool,
) -> Planned:
    """The plan of least predicted time that keeps the memory limit, or that of least bytes.

    ``plan`` is that of the options' own weight of a byte and objective. If it keeps the limit, and
    the objective is not ``time``, it is the result.
    """
    limit = options.memory_limit
    assert limit is not None, "there is a limit"
    best = _planned(plan, module, options)
    if best.fits(limit) and options.objective != "time":
        return best
    enough = min(
        _unfused_picoseconds(plan.program, options) * (100 + _CLOSE_PERCENT) // 100,
        _least_picoseconds(plan.program, options) * (100 + _SLOW_PERCENT) // 100,
    )
    programs = _programs(system, plan.program, options, progress, use_cache=use_cache)

    def rank(one: Planned) -> tuple[bool, bool, int, int]:
        fits = one.fits(limit)
        return not one.sliced, not fits, one.picoseconds if fits else one.bytes, one.bytes

    def is_tried(program: FormulaSequence, wish: Options) -> bool:
        if not best.fits(limit):
            return True
        if options.objective != "time" or wish.objective != "time":
            return False
        slow = best.picoseconds > enough
        return _may_be_faster(program, best, options, slow=slow)

    def fitting(wish: Options, among: Sequence[FormulaSequence]) -> list[FormulaSequence]:
        """Offer the plans of sequences; those that fit, or were not tried."""
        nonlocal best
        left = []
        for program in among:
            fits = True
            if (program, wish) != (plan.program, options) and is_tried(program, wish):
                other = plan_of(program, wish, use_cache=use_cache)
                made = _planned(other, lower_within(other, wish), wish)
                best, fits = min(best, made, key=rank), made.fits(wish.memory_limit)
            left += [program] if fits else []
        return left

    for objective in dict.fromkeys((options.objective, "time", "peak")):
        fitting(replace(options, objective=objective), programs)
    # A search that stops at the first plans that fit can miss faster ones that need less: what a
    # smaller limit finds is a candidate, so that a larger one needs no more time.
    less, before = limit, None
    while options.objective == "time" and best.fits(limit) and best != before and best.bytes > 1:
        # The largest power of two that excludes the best plan so far.
        before, less = best, (1 << (min(less, best.bytes) - 1).bit_length()) // 2
        programs = fitting(replace(options, memory_limit=less), programs)
    if less < limit and best.fits(limit):
        # A plan for a smaller limit may make more copies within this one.
        roomy = _planned(best.plan, lower_within(best.plan, options), options)
        best = min(best, roomy, key=rank)
    return best


def _may_be_faster(
    program: FormulaSequence, best: Planned, options: Options, *, slow: bool
) -> bool:
    """False where no plan of a sequence is expected to be faster than the best one.

    If that is not slow, loops of large programs save little: their steps decide.
    """
    if not slow and len(program.steps) > _FEW_STEPS:
        return _unfused_picoseconds(program, options) < best.picoseconds
    least = _least_picoseconds(program, options)
    if least * (100 + _CLOSE_PERCENT) < best.picoseconds * 100:
        return True
    # The bound does not hold for triangular nests.
    chain_indices = options.thresholds.planner.fusion.time.chain_indices
    return next(orbit_nests(program, program.intermediates, chain_indices), None) is not None


def _least_picoseconds(program: FormulaSequence, options: Options) -> int:
    """A lower bound on the predicted time of plans without triangular loops."""
    extents = options.extent_of
    saved = saved_flops(program, extents, options)
    return least_picoseconds(
        program.steps, extents, options.constants, options.dtype, saved, options.calls
    )


def _unfused_picoseconds(program: FormulaSequence, options: Options) -> int:
    return _picoseconds(plan_fusion(program, replace(options, objective="none")), options)


def _programs(
    system: System,
    first: FormulaSequence,
    options: Options,
    progress: Callable[[str], None],
    *,
    use_cache: bool,
) -> list[FormulaSequence]:
    """The first sequence and others to plan within a limit, on which they do not depend."""
    programs = [first]
    weight = options.byte_weight or 1.0
    if options.optimize:
        weights = tuple(weight * factor for factor in _HEAVIER)
        programs += sequences(system, options, weights, progress, use_cache=use_cache, greedy=True)
    for program in list(programs):
        if any(step.phase is Phase.CONSTANT for step in program.steps):
            programs.append(without_constant_phase(program))
    return list(dict.fromkeys(programs))


def _planned(plan: FusionPlan, module: Module, options: Options) -> Planned:
    use = planned_use(module, options)
    sliced = not whole_sliced(plan, options)
    return Planned(plan, module, use.peak, executed_picoseconds(plan, module, options), sliced)


def _picoseconds(plan: FusionPlan, options: Options) -> int:
    saved = saved_flops(plan.program, plan.extent_of, options)
    return plan_picoseconds(plan, options.constants, options.dtype, saved, options.calls)


def _bytes(plan: FusionPlan, options: Options) -> int:
    return plan_peak(plan) + output_bytes(plan.program, plan.extent_of, options.dtype)

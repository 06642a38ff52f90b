"""The choice among formula sequences: by predicted time, and by bytes within a memory limit.

One sequence is formed for the machine's weight of a byte. If a memory limit makes its plan slow, or
refuses it, sequences for larger weights, which store less, are planned as well, each also without a
constant phase, whose arrays no loop of a call can contract, and for another objective.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf

from ..algebra import Sequences, form_sequences, without_constant_phase
from ..algebra.cost_model import CostModel
from ..errors import ExtentError
from ..fusion import plan_fusion
from ..fusion.placement.memory import output_bytes, plan_peak
from ..fusion.solver.time_cost import plan_picoseconds, saved_flops
from ..ir.loops import Module
from ..ir.plan import FusionPlan
from ..ir.program import BEST_FOUND, FormulaSequence, Phase
from ..ir.system import System, planning_extents
from ..options import Options
from ..thresholds.time_model import Machine
from .limits import lower_within, plan_within, planned_use
from .plan_cache import cached

# Sequences and plans whose predicted times differ by less are equally fast, and the one of less
# memory is taken: the error of the prediction is larger.
_CLOSE_PERCENT = 3

# Multiples of the weight of a byte for sequences that store less. Source: with 16, CCSD at o=30 and
# v=300 forms no array of v^4, 2026-11-29.
_HEAVIER = (4, 16, 64)


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan that was lowered.

    Attributes:
        bytes: bytes that a call allocates at planning extents, on one thread.
        picoseconds: predicted time.
    """

    plan: FusionPlan
    module: Module
    bytes: int
    picoseconds: int


def sequences(
    system: System,
    options: Options,
    byte_weights: tuple[float, ...],
    progress: Callable[[str], None],
    *,
    use_cache: bool,
) -> tuple[FormulaSequence, ...]:
    """The sequences of :func:`tcgen.algebra.form_sequences`, from the cache if they are there.

    A large system is searched at its typical extents, so that all extents share that search, and
    factored greedily at those of the options. Only if this costs less, they are searched as well.
    """

    def search(wish: Options, *, greedy: bool = False) -> tuple[FormulaSequence, ...]:
        make = partial(form_sequences, system, wish, byte_weights, progress, greedy=greedy)
        if use_cache:
            given, key = (system, byte_weights, greedy), _read_by_factoring(wish)
            make = partial(cached, "program", given, key, Sequences, make)
        return make().found

    typical = _typical_extents(system)
    terms = sum(len(e.terms) for e in system.equations)
    few = options.thresholds.planner.algebra.direct_terms
    if not options.optimize or terms <= few or typical in (None, options.extents):
        return search(options)
    usual, here = search(replace(options, extents=typical)), search(options, greedy=True)
    for weight in byte_weights:
        cost = partial(CostModel.of(options, weight).cost, extents=options.extent_of)
        if min(map(cost, here)) < min(map(cost, usual)):
            return search(options)
    # Found at other extents, so that nothing is proven of it here.
    return tuple(replace(p, each_term=here[0].each_term, optimality=BEST_FOUND) for p in usual)


def _typical_extents(system: System) -> tuple[tuple[str, int], ...] | None:
    try:
        return planning_extents(system, {})
    except ExtentError:
        return None


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
    make = partial(plan_within, program, options)
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

    ``plan`` is that of the options' own weight of a byte and objective. If it keeps the limit it is
    the result, for the objective ``time`` only in about the time of its steps without shared loops.
    """
    limit = options.memory_limit
    assert limit is not None, "there is a limit"
    best = _planned(plan, module, options)
    unfused = plan_fusion(plan.program, replace(options, objective="none"))
    enough: float = _picoseconds(unfused, options) * (100 + _CLOSE_PERCENT) // 100
    if options.objective != "time":
        enough = inf

    def rank(one: Planned) -> tuple[bool, int, int]:
        over = one.bytes > limit
        return over, one.bytes if over else one.picoseconds, one.bytes

    others = _others(system, plan.program, options, progress, use_cache=use_cache)
    while best.bytes > limit or best.picoseconds > enough:
        program, wish = next(others, (None, options))
        if program is None:
            break
        other = plan_of(program, wish, use_cache=use_cache)
        best = min(best, _planned(other, lower_within(other, wish), wish), key=rank)
    return best


def _others(
    system: System,
    first: FormulaSequence,
    options: Options,
    progress: Callable[[str], None],
    *,
    use_cache: bool,
) -> Iterator[tuple[FormulaSequence, Options]]:
    """Sequences to plan within a limit beside the first one, with the options of each plan."""
    # None of loops is shared where the user asks for that.
    alternative = {"none": None, "time": "peak"}.get(options.objective, "time")
    known = {first}
    programs = [first]
    weight = options.byte_weight or 1.0
    if options.optimize:
        weights = tuple(weight * factor for factor in _HEAVIER)
        programs += sequences(system, options, weights, progress, use_cache=use_cache)
    for program in list(programs):
        if any(step.phase is Phase.CONSTANT for step in program.steps):
            programs.append(without_constant_phase(program))
    for objective in (options.objective, alternative):
        if objective is None:
            continue
        wish = replace(options, objective=objective)
        for program in programs:
            if objective != options.objective or program not in known:
                known.add(program)
                yield program, wish


def _planned(plan: FusionPlan, module: Module, options: Options) -> Planned:
    use = planned_use(module, options)
    return Planned(plan, module, use.peak, _picoseconds(plan, options))


def _picoseconds(plan: FusionPlan, options: Options) -> int:
    saved = saved_flops(plan.program, plan.extent_of, options)
    return plan_picoseconds(plan, options.constants, options.dtype, saved)


def _bytes(plan: FusionPlan, options: Options) -> int:
    return plan_peak(plan) + output_bytes(plan.program, plan.extent_of, options.dtype)

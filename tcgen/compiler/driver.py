"""The compilation pipeline: equations to an artifact in seven stages.

    System -> FormulaSequence -> FusionPlan -> Module -> Artifact

:func:`compile_system` calls the stages, which do not know each other. A
:class:`~tcgen.compiler.tracer.Tracer` times each of them, and verifies and dumps the level that it
returns.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

from .. import environment
from ..artifact.folder import Artifact
from ..errors import ArgumentError, Diagnostic, ExtentError, SpecError
from ..ir.executed import executed_by
from ..ir.loops import Module
from ..ir.plan import FusionPlan
from ..ir.pretty.equations import pretty_step
from ..ir.program import FormulaSequence
from ..ir.system import System, planning_extents, with_inputs_on_disk
from ..ir.tensor import Role, element_bytes
from ..ir.verify.system import check_names
from ..options import Options
from ..records.loops import stored_shape
from ..resources import find_spec
from .faults import without_fault
from .plan_cache import cached
from .tracer import Tracer, check_values

if TYPE_CHECKING:
    from .tuning import Choice


@dataclass(frozen=True, slots=True)
class Compilation:
    """The results of all stages of one compilation.

    ``system`` has sliced inputs resolved. ``seconds`` are wall times by stage, on which the
    artifact does not depend. ``choices`` are measured variants, if the options ask for tuning.
    """

    system: System
    program: FormulaSequence
    plan: FusionPlan
    module: Module
    artifact: Artifact
    seconds: tuple[tuple[str, float], ...]
    choices: tuple[Choice, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """Properties of the equations that their author may not have meant."""
        return tuple(
            f"output {t.name} is zero for all inputs: its terms cancel, or vanish by the "
            f"symmetries declared for the arrays they read"
            for t in self.program.zero_outputs
            if not t.accumulate
        )


def compile_system(
    system: System,
    options: Options,
    tracer: Tracer | None = None,
    *,
    documents: bool = True,
    fallback: bool = False,
) -> Compilation:
    """Compile equations for the options' target, planning for the options' extents.

    With ``documents`` the artifact is complete as a folder: the runtime, its equations, plan,
    report and explanation are beside the sources. A ``fallback`` is the program for NumPy, which
    runs if there is no C compiler.

    Raises:
        ArgumentError: a fallback of a program for another target than cpu.
        SpecError: symmetries declared for outputs that do not follow from their equations, or
            numbers that the element type cannot hold.
        ExtentError: a planning extent is missing, or makes an array larger than memory addresses.
        VerifyError: a name is not an identifier, or tcgen has a fault for which no other plan could
            be taken; where one is taken, a RuntimeWarning says so.
        MemoryLimitError: the plan needs more bytes than ``options.memory_limit``.
        PlanError: a program for a GPU launches too many kernels.
    """
    if fallback and options.target != "cpu":
        raise ArgumentError(
            f"a program for the target {options.target} has no fallback: leave fallback out, or "
            f"compile for the target cpu"
        )
    # Not only with TCGEN_VERIFY, since generated code contains the names.
    check_names(system)
    tracer = tracer or Tracer()
    system, options = _checked(system, options, tracer)
    make = partial(_compiled, system, tracer=tracer, documents=documents, fallback=fallback)
    return without_fault(make, system.name, options, tracer)


def compile_artifact(system: System, options: Options, tracer: Tracer) -> Artifact:
    """The artifact of :func:`compile_system` without documents, from the cache if it is there.

    All stages then take the time of reading one file. Levels that are dumped, or whose values are
    checked, are made.
    """
    check_names(system)
    system, options = _checked(system, options, tracer)

    def make(options: Options) -> Artifact:
        return _compiled(system, options, tracer=tracer, documents=False, fallback=False).artifact

    if options.tune or tracer.check_values or environment.dump_stages():
        return without_fault(make, system.name, options, tracer)
    return without_fault(
        lambda wish: cached("artifact", system, wish, Artifact, partial(make, wish)),
        system.name,
        options,
        tracer,
    )


def _checked(system: System, options: Options, tracer: Tracer) -> tuple[System, Options]:
    """The equations with inputs on disk, and the options with all planning extents."""
    options = replace(options, extents=planning_extents(system, options.extent_of))
    _refuse_overflow(system, options)
    if environment.verify_level() >= 2:
        tracer.check_values = partial(check_values, system, options.dtype)
    equations = with_inputs_on_disk(system, options.sliced)
    return tracer.run("system", lambda: equations), options


def _refuse_overflow(system: System, options: Options) -> None:
    """Refuse planning extents at which an array of the caller has more bytes than addresses."""
    for tensor in system.tensors:
        if tensor.role not in (Role.INPUT, Role.OUTPUT):
            continue
        shape = stored_shape(tensor, options.extent_of)
        count = element_bytes(tensor, options.dtype) * prod(shape)
        if count > sys.maxsize:
            raise ExtentError(
                f"{tensor.name} of shape {shape} would have {count:,} bytes, more than a machine "
                f"addresses: plan for smaller extents; a program runs at any"
            )


def _compiled(
    system: System, options: Options, *, tracer: Tracer, documents: bool, fallback: bool
) -> Compilation:
    """The stages behind the system."""
    # A single product in the given order needs no search: looking for its file takes longer.
    use_cache = options.objective != "none" or options.optimize or len(system.equations) != 1
    program = form_program(system, options, tracer, use_cache=use_cache)
    plan = plan_loops(program, options, tracer, use_cache=use_cache)
    module = lower(plan, options, tracer)
    if options.memory_limit is not None:
        program, plan, module = keep_limit(
            system, plan, module, options, tracer, use_cache=use_cache
        )
    module, choices = tune(module, options, tracer)
    artifact = emit(plan, module, options, tracer, with_runtime=documents, fallback=fallback)
    if documents:
        artifact = document(artifact, system, plan, module, choices, options, tracer)
    seconds = tuple(tracer.seconds.items())
    return Compilation(system, program, plan, module, artifact, seconds, choices)


def form_program(
    system: System, options: Options, tracer: Tracer, *, use_cache: bool
) -> FormulaSequence:
    """Factor equations, whose numbers the element type must hold, into a sequence of steps."""
    from .element_types import check_numbers, check_real_arguments  # noqa: PLC0415
    from .sequences import fastest_sequence, sequences  # noqa: PLC0415  (stages load on first use)

    def make() -> FormulaSequence:
        weights = (options.byte_weight or 0,)
        found = sequences(system, options, weights, tracer.tell, use_cache=use_cache)
        return fastest_sequence(found, options)

    try:
        check_numbers(system, options.dtype)
        if options.dtype == "complex128":
            check_real_arguments(system)
        return tracer.run("program", make)
    except SpecError as error:
        raise SpecError(tuple(map(_with_source_line, error.diagnostics))) from None


def _with_source_line(diagnostic: Diagnostic) -> Diagnostic:
    """The diagnostic of a later stage with its source line, if the file can still be read."""
    try:
        lines = Path(diagnostic.span.file).read_text(encoding="utf-8-sig").splitlines()
        return replace(diagnostic, source_line=lines[diagnostic.span.line - 1])
    except (OSError, ValueError, IndexError):
        return diagnostic


def plan_loops(
    program: FormulaSequence, options: Options, tracer: Tracer, *, use_cache: bool
) -> FusionPlan:
    """Choose shared loops and tiles for the options' objective.

    Without a memory limit no other plan is tried, so that a sliced input may not be whole.
    """
    from .sequences import plan_of  # noqa: PLC0415

    plan = tracer.run("plan", lambda: plan_of(program, options, use_cache=use_cache))
    if options.memory_limit is None:
        _check_sliced(plan, options)
    return plan


def _check_sliced(plan: FusionPlan, options: Options) -> None:
    """Refuse a plan that holds a sliced input whole."""
    from .limits import whole_sliced  # noqa: PLC0415

    for array in whole_sliced(plan, options):
        step = plan.program.steps[plan.visits[array.live[1]].step]
        raise ArgumentError(
            f"sliced input {array.tensor.source} is needed whole by {pretty_step(step)}: the step "
            f"must read one of its axes in full and with one index, so name a block of a joined "
            f"axis as an input of its own, or pass the array whole"
        )


def lower(plan: FusionPlan, options: Options, tracer: Tracer) -> Module:
    """Turn a plan into loops with as many copies as the memory limit allows."""
    from .limits import lower_within  # noqa: PLC0415

    return tracer.run("module", lambda: lower_within(plan, options))


def keep_limit(
    system: System,
    plan: FusionPlan,
    module: Module,
    options: Options,
    tracer: Tracer,
    *,
    use_cache: bool,
) -> tuple[FormulaSequence, FusionPlan, Module]:
    """Sequence, plan and module of the least predicted time among those that keep the limit.

    Other sequences and plans are tried if the given plan does not keep the limit, or is slow.
    """
    from .limits import refuse_excess  # noqa: PLC0415
    from .sequences import best_within  # noqa: PLC0415

    tracer.tell("plan")
    found = tracer.add_time(
        "plan",
        lambda: best_within(system, plan, module, options, tracer.tell, use_cache=use_cache),
    )
    _check_sliced(found.plan, options)
    if found.plan != plan:
        tracer.run("program", lambda: found.plan.program)
        tracer.run("plan", lambda: found.plan)
        tracer.run("module", lambda: found.module)
    refuse_excess(found.plan, found.bytes, found.picoseconds, options)
    return found.plan.program, found.plan, found.module


def tune(module: Module, options: Options, tracer: Tracer) -> tuple[Module, tuple[Choice, ...]]:
    """Replace the variants of products by the fastest measured ones, if the options ask for it."""
    if not options.tune:
        return module, ()
    from .tuning import tune_products  # noqa: PLC0415

    tuned = tracer.run_for(
        "tuned",
        lambda: tune_products(module, options, tracer.tell),
        lambda result: result.module,
    )
    return tuned.module, tuned.choices


def emit(
    plan: FusionPlan,
    module: Module,
    options: Options,
    tracer: Tracer,
    *,
    with_runtime: bool,
    fallback: bool,
) -> Artifact:
    """Print a module as sources with a manifest; a fallback is lowered and printed for NumPy."""
    from .limits import lower_within, refuse_many_launches  # noqa: PLC0415

    def make() -> Artifact:
        artifact = _emitted(module, options, with_runtime=with_runtime)
        refuse_many_launches(artifact.manifest, options)
        if not fallback:
            return artifact
        by_numpy = replace(options, tune=False, target="numpy")
        module_of_numpy = lower_within(plan, by_numpy)
        return artifact.with_fallback(_emitted(module_of_numpy, by_numpy, with_runtime=False))

    tracer.start("emit")
    return tracer.add_time("emit", make)


def _emitted(module: Module, options: Options, *, with_runtime: bool) -> Artifact:
    from ..emit import emit_artifact  # noqa: PLC0415

    return emit_artifact(
        module,
        target=options.target,
        planning_extents=options.extents,
        memory_limit=options.memory_limit,
        machine=options.constants,
        round_each=options.round_each,
        thresholds=options.thresholds.cpu,
        with_runtime=with_runtime,
    )


def document(
    artifact: Artifact,
    system: System,
    plan: FusionPlan,
    module: Module,
    choices: tuple[Choice, ...],
    options: Options,
    tracer: Tracer,
) -> Artifact:
    """Add the equations, the plan, the executed work and the reports to an artifact."""
    from .documents import compile_records, with_documents  # noqa: PLC0415
    from .limits import pareto_plan, pareto_points  # noqa: PLC0415

    def make() -> Artifact:
        records = compile_records(system, options, choices)
        if options.pareto:
            records["pareto"] = pareto_points(plan, options)
            records |= {"pareto_plan": point} if (point := pareto_plan(plan, options)) else {}
        return with_documents(artifact, system, plan, executed_by(module), records)

    tracer.start("report")
    return tracer.add_time("emit", make)


def read_system(path: Path) -> System:
    """The equations of a .spec or a .json term list; a SpecError has every error of the file.

    What is neither a file nor a shipped spec may be a method whose equations can be derived.
    """
    from ..frontend import read, read_spec  # noqa: PLC0415  (loads lark)

    if path.parent == Path() and not path.exists():
        if shipped := find_spec(path.name):

            def parsed() -> System:
                # The cache has no folders.
                return read_spec(shipped.read_text("utf-8"), shipped.name, folder=shipped.parent)

            return cached("system", shipped.name, None, System, parsed)
        from .derived import spec_by_name  # noqa: PLC0415

        if text := spec_by_name(path.name):
            return read_spec(text, f"{path.name}.spec")
    return read(path)

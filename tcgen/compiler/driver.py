"""The page that knows every stage: from equations to an artifact.

    text -> System -> FormulaSequence -> FusionPlan -> Module -> Artifact

Each stage is a plain function, called through a :class:`Tracer`, which times it, verifies what it
made and dumps it where TCGEN_DUMP asks for it. Stages know nothing of each other.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from .. import environment
from ..artifact.folder import Artifact
from ..errors import (
    ArgumentError,
    ArtifactError,
    CheckError,
    Diagnostic,
    SpecError,
    UnavailableError,
)
from ..ir.cost import extent_of
from ..ir.executed import Executed, executed_by
from ..ir.loops import Module
from ..ir.plan import FusionPlan
from ..ir.pretty import pretty
from ..ir.pretty.program import pretty_step
from ..ir.program import FormulaSequence
from ..ir.system import System, planning_extents
from ..ir.verify import verify
from ..ir.verify.system import check_names
from ..options import Options, changed_options
from ..thresholds.time_model import Machine
from .documents import read_document, read_executed
from .serialize import encode

if TYPE_CHECKING:  # loaded where it is asked for
    from .autotune import Choice

Level: TypeAlias = System | FormulaSequence | FusionPlan | Module
L = TypeVar("L", System, FormulaSequence, FusionPlan, Module)
T = TypeVar("T")


@dataclass(slots=True)
class Tracer:
    """Times, verifies and dumps the stages of one compilation.

    Attributes:
        progress: called with a stage's name as it starts, and with the state of a long search (the
            command line shows both).
        seconds: wall time by stage, in order.
    """

    progress: Callable[[str], None] = lambda _: None
    seconds: dict[str, float] = field(default_factory=dict)
    check_values: Callable[[str, Level], None] | None = None

    def run(self, stage: str, make: Callable[[], L]) -> L:
        """The level that ``make`` builds, verified and dumped."""
        return self.run_for(stage, make, lambda level: level)

    def run_for(self, stage: str, make: Callable[[], T], level_of: Callable[[T], Level]) -> T:
        """What ``make`` builds; its level is verified and dumped."""
        self.progress(stage)
        start = time.perf_counter()
        made = make()
        level = level_of(made)
        if environment.verify_level() >= 1:
            verify(level)
        if environment.verify_level() >= 2 and self.check_values is not None:
            self.check_values(stage, level)
        self.seconds[stage] = time.perf_counter() - start
        wanted = environment.dump_stages()
        if "all" in wanted or stage in wanted:
            self._dump(stage, pretty(level))
        return made

    def _dump(self, stage: str, text: str) -> None:
        folder = environment.dump_dir()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{len(self.seconds):02d}-{stage}.txt").write_text(text, encoding="utf-8")
        except OSError as error:
            raise UnavailableError(
                f"TCGEN_DUMP: cannot write to {folder} ({error.strerror}): set TCGEN_DUMP_DIR"
            ) from error


@dataclass(frozen=True, slots=True)
class Compilation:
    """Everything that one compilation made; ``seconds`` by stage are for the reader only.

    ``choices`` are the measured variants, if tuning was asked for.
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
        """What compiling showed that the author of the equations may not have meant."""
        return tuple(
            f"output {t.name} is zero for all inputs: its terms cancel, or vanish by the "
            f"symmetries declared for what they read"
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

    Args:
        system: the equations.
        options: how.
        tracer: to be told about each stage.
        documents: the artifact is complete as a folder: it has the runtime, its equations, plan,
            report and explanation beside the sources.
        fallback: the artifact also carries the program for NumPy, which runs where there is no C
            compiler.

    Raises:
        ArgumentError: a fall-back of a program that is not for the target cpu.
        SpecError: symmetries declared for outputs that do not follow from their equations, or
            numbers that the element type cannot hold.
        ExtentError: a planning extent is missing.
        VerifyError: a name is not an identifier.
        MemoryLimitError: the plan needs more bytes than ``options.memory_limit``.
        PlanError: a program for a GPU launches too many kernels.
    """
    from ..algebra import form_sequence  # noqa: PLC0415  (each stage is loaded when it is used)
    from ..emit import emit_artifact  # noqa: PLC0415
    from ..frontend.sliced import read_in_slices  # noqa: PLC0415
    from .launch_limit import refuse_many_launches  # noqa: PLC0415
    from .memory_limit import lower_within, plan_within, refuse_excess  # noqa: PLC0415
    from .numbers_in_range import check_numbers  # noqa: PLC0415
    from .real_arguments import check_real_arguments  # noqa: PLC0415

    if fallback and options.target != "cpu":
        raise ArgumentError(
            f"a program for the target {options.target} has no fall-back: leave fallback out, or "
            f"compile for the target cpu"
        )
    check_names(system)  # whatever TCGEN_VERIFY says: programs are made of them
    tracer = tracer or Tracer()
    # One product in the order given needs no search: looking for its file takes longer.
    plain = options.objective == "none" and not options.optimize and len(system.equations) == 1

    def keep(stage: str, given: Level, asked: Options, kind: type[L], make: Callable[[], L]) -> L:
        if plain:
            return make()
        from .plan_cache import cached  # noqa: PLC0415

        return cached(stage, given, asked, kind, make)

    options = replace(options, extents=planning_extents(system, options.extent_of))
    if environment.verify_level() >= 2:
        tracer.check_values = _ValueCheck(system, options.dtype)
    equations = read_in_slices(system, options.sliced)
    system = tracer.run("system", lambda: equations)
    planning = replace(options, tune=False)
    factoring = replace(  # what the search for a sequence reads
        planning,
        objective="none",
        memory_limit=None,
        machine=Machine(),
        pareto=False,
        library=True,
        tf32=False,
        target="cpu",
    )
    try:
        check_numbers(system, options.dtype)
        if options.dtype == "complex128":
            check_real_arguments(system)
        program = tracer.run(
            "program",
            lambda: keep(
                "program",
                system,
                factoring,
                FormulaSequence,
                lambda: form_sequence(system, options, tracer.progress),
            ),
        )
    except SpecError as error:
        raise SpecError(tuple(map(_with_line, error.diagnostics))) from None

    plan = tracer.run(
        "plan",
        lambda: keep("plan", program, planning, FusionPlan, lambda: plan_within(program, options)),
    )
    _check_sliced(plan, options)
    module = tracer.run("module", lambda: lower_within(plan, options))
    refuse_excess(program, plan, module, options)
    choices: tuple[Choice, ...] = ()
    if options.tune:
        from .autotune import tune  # noqa: PLC0415
        from .gpu_tuning import tune_on_gpu  # noqa: PLC0415

        measure = tune_on_gpu if options.target == "cuda" else tune
        tuned = tracer.run_for(
            "tuned", lambda: measure(module, options, tracer.progress), lambda made: made.module
        )
        module, choices = tuned.module, tuned.choices
    tracer.progress("emit")
    start = time.perf_counter()

    def emitted(module: Module, target: str, *, with_runtime: bool) -> Artifact:
        return emit_artifact(
            module,
            target=target,
            planning_extents=options.extents,
            memory_limit=options.memory_limit,
            machine=options.constants,
            round_each=options.round_each,
            thresholds=options.thresholds.cpu,
            with_runtime=with_runtime,
        )

    artifact = emitted(module, options.target, with_runtime=documents)
    refuse_many_launches(artifact.manifest, options)
    if fallback:
        by_numpy = lower_within(plan, replace(planning, target="numpy"))
        artifact = artifact.with_fallback(emitted(by_numpy, "numpy", with_runtime=False))
    points: list[dict[str, Any]] = []
    if options.pareto:
        from ..report import pareto_points  # noqa: PLC0415

        points = pareto_points(plan, options)
    if documents:
        tracer.progress("report")
        rows = [choice.row(times=False) for choice in choices] if options.tune else None
        artifact = _with_documents(
            artifact, system, plan, executed_by(module), changed_options(options), points, rows
        )
    tracer.seconds["emit"] = time.perf_counter() - start
    seconds = tuple(tracer.seconds.items())
    return Compilation(system, program, plan, module, artifact, seconds, choices)


def _check_sliced(plan: FusionPlan, options: Options) -> None:
    """Refuse a plan that holds a sliced input whole."""
    for array in plan.arrays:
        extents = [extent_of(s, plan.extent_of) for s in array.tensor.spaces]
        if array.tensor.source not in options.sliced or array.contracted or max(extents) == 1:
            continue
        step = plan.program.steps[plan.visits[array.live[1]].step]
        raise ArgumentError(
            f"sliced input {array.tensor.source} is needed whole by {pretty_step(step)}: the step "
            f"must read one of its axes in full and with one index, so name a block of a joined "
            f"axis as an input of its own, or pass the array whole"
        )


def _with_line(diagnostic: Diagnostic) -> Diagnostic:
    """The diagnostic of a later stage with its source line, where that can still be read."""
    try:
        lines = Path(diagnostic.span.file).read_text(encoding="utf-8-sig").splitlines()
        return replace(diagnostic, source_line=lines[diagnostic.span.line - 1])
    except (OSError, ValueError, IndexError):
        return diagnostic


def read_system(path: Path) -> System:
    """The equations of a .spec or a .json term list.

    Raises:
        SpecError: with every error of the file.
    """
    from ..frontend import read  # noqa: PLC0415  (lark is loaded only where a spec is read)

    return read(path)


def read_plan(artifact: Artifact) -> FusionPlan:
    """The plan that an artifact was made from.

    Raises:
        ArtifactError: its file is missing, damaged, or is of another program.
    """
    return read_document(artifact, "plan.json", FusionPlan)


_ASKED = ("reproducible", "options", "pareto", "tuning", "names")


def read_asked(artifact: Artifact) -> dict[str, Any]:
    """Entries of an artifact's report that do not follow from its plan and manifest.

    ``options`` are those that differ from their defaults; ``pareto`` holds the points of the
    time-memory trade-off, ``tuning`` the measured variants; ``reproducible`` is False after tuning;
    ``names`` are those of the source that are no identifiers.
    """
    report = artifact.json("report.json")
    return {key: report[key] for key in _ASKED if key in report}


def report_of(artifact: Artifact, plan: FusionPlan, extents: Mapping[str, int]) -> dict[str, Any]:
    """The report of an artifact at given extents of the base spaces.

    Raises:
        ArtifactError: a file that it needs is missing, damaged, or is of another program.
    """
    from ..report import report_json  # noqa: PLC0415

    executed = read_executed(artifact, plan)
    return report_json(plan, artifact.manifest, executed, extents) | read_asked(artifact)


def read_artifact_system(artifact: Artifact) -> System:
    """The equations that an artifact was made from.

    Raises:
        ArtifactError: their file is missing, damaged, or is of another program.
    """
    return read_document(artifact, "system.json", System)


def _with_documents(
    artifact: Artifact,
    system: System,
    plan: FusionPlan,
    executed: Executed,
    options: dict[str, str],
    pareto: list[dict[str, Any]],
    tuning: list[dict[str, Any]] | None,
) -> Artifact:
    """The artifact with its equations, plan, work, report and explanation beside the sources."""
    from ..report import explain_text, report_html, report_json  # noqa: PLC0415

    report = report_json(plan, artifact.manifest, executed, plan.extent_of)
    if options:
        report["options"] = options
    if system.written:
        report["names"] = dict(system.written)
    if pareto:
        report["pareto"] = pareto
    if tuning is not None:
        report |= {"tuning": tuning, "reproducible": False}
    documents = (
        ("system.json", encode(system)),
        ("equations.tex", system.latex() + "\n"),
        ("plan.json", encode(plan)),
        ("executed.json", encode(executed)),
        ("report.json", json.dumps(report, indent=1) + "\n"),
        ("report.html", report_html(system, plan, artifact.manifest, executed, report)),
        ("explain.txt", explain_text(plan, report)),
    )
    return artifact.with_files(documents)


@dataclass(frozen=True, slots=True)
class _ValueCheck:
    """TCGEN_VERIFY=2: every level must give the values of the equations at small extents."""

    system: System
    dtype: str

    def __call__(self, stage: str, level: Level) -> None:
        from ..interp import evaluate_program, evaluate_system, run_module  # noqa: PLC0415
        from ..testing import assert_same_values, random_arrays, split_starts  # noqa: PLC0415

        bases = [s.name for s in self.system.spaces if not s.parts]
        extents = {name: 2 + n % 3 for n, name in enumerate(bases)}
        arrays = random_arrays(self.system, extents, dtype=self.dtype, seed=0)
        inputs, starts = split_starts(self.system, arrays)
        expected = evaluate_system(self.system, inputs, extents, out=starts, dtype=self.dtype)
        match level:
            case FormulaSequence():
                actual = evaluate_program(level, inputs, extents, out=starts, dtype=self.dtype)
            case Module():
                actual = run_module(level, inputs, extents, out=starts)
            case _:
                return  # a system is the reference itself; a plan means what its module means
        try:
            assert_same_values(actual, expected, rtol=1e-4 if self.dtype == "float32" else 1e-10)
        except AssertionError as error:
            raise CheckError(f"TCGEN_VERIFY: {stage} differs from the equations: {error}") from None


def is_artifact(path: Path) -> bool:
    """True where ``path`` is the folder of a compiled program."""
    return (path / "manifest.json").is_file()


def load_artifact(path: Path) -> Artifact:
    """Read a saved program.

    Raises:
        ArtifactError: it is missing, damaged, or of another version.
    """
    if not path.is_dir():
        raise ArtifactError(f"there is no folder {path}: give the folder that tcgen compile wrote")
    return Artifact.load(path)

"""The page that knows every stage: from equations to an artifact.

    text -> System -> Program -> FusionPlan -> Module -> Artifact

Each stage is a plain function, called through a :class:`Tracer`, which times it, verifies what it
made and dumps it where TCGEN_DUMP asks for it. Stages know nothing of each other.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

from . import config
from .artifact import Artifact
from .config import Options
from .errors import (
    ArgumentError,
    ArtifactError,
    CheckError,
    Diagnostic,
    MemoryLimitError,
    SpecError,
    UnavailableError,
)
from .ir.cost import extent_of
from .ir.loops import Module
from .ir.plan import FusionPlan
from .ir.program import Program, pretty_step
from .ir.serial import decode, encode
from .ir.system import System, planning_extents


class Level(Protocol):
    """What every level offers."""

    def verify(self) -> None:
        """Raise VerifyError where a rule of the level is broken."""

    def pretty(self) -> str:
        """Text for people."""


L = TypeVar("L", bound=Level)

_TIGHTER = 8  # tries of smaller tiles, because copies take a part of the limit


@dataclass(slots=True)
class Tracer:
    """Times, verifies and dumps the stages of one compilation.

    Attributes:
        progress: called with a stage's name as it starts, and with what a long search has found so
            far (the command line shows it).
        seconds: wall time by stage, in order.
    """

    progress: Callable[[str], None] = lambda _: None
    seconds: dict[str, float] = field(default_factory=dict)
    check_values: Callable[[str, Level], None] | None = None

    def run(self, stage: str, make: Callable[[], L]) -> L:
        """The level that ``make`` builds, verified and dumped."""
        self.progress(stage)
        start = time.perf_counter()
        level = make()
        if config.verify_level() >= 1:
            level.verify()
        if config.verify_level() >= 2 and self.check_values is not None:
            self.check_values(stage, level)
        self.seconds[stage] = time.perf_counter() - start
        wanted = config.dump_stages()
        if "all" in wanted or stage in wanted:
            self._dump(stage, level.pretty())
        return level

    def _dump(self, stage: str, text: str) -> None:
        folder = config.dump_dir()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{len(self.seconds):02d}-{stage}.txt").write_text(text, encoding="utf-8")
        except OSError as error:
            raise UnavailableError(
                f"TCGEN_DUMP: cannot write to {folder} ({error.strerror}): set TCGEN_DUMP_DIR"
            ) from error


@dataclass(frozen=True, slots=True)
class Compilation:
    """Everything that one compilation made; ``seconds`` by stage are for the reader only."""

    system: System
    program: Program
    plan: FusionPlan
    module: Module
    artifact: Artifact
    seconds: tuple[tuple[str, float], ...]


def compile_system(system: System, options: Options, tracer: Tracer | None = None) -> Compilation:
    """Compile equations for the options' target, planning for the options' extents.

    Raises:
        SpecError: symmetries declared for outputs that do not follow from their equations.
        ExtentError: a planning extent is missing.
        MemoryLimitError: the plan needs more bytes than ``options.memory_limit``.
    """
    from .algebra import form_sequence  # noqa: PLC0415  (each stage is loaded when it is used)
    from .emit import emit_artifact  # noqa: PLC0415
    from .frontend.sliced import read_in_slices  # noqa: PLC0415
    from .fusion import plan_fusion, smaller_tiles  # noqa: PLC0415
    from .lower import lower_plan  # noqa: PLC0415

    tracer = tracer or Tracer()
    options = replace(options, extents=planning_extents(system, options.extent_of))
    if config.verify_level() >= 2:
        tracer.check_values = _ValueCheck(system, options.dtype)
    equations = read_in_slices(system, options.sliced)
    system = tracer.run("system", lambda: equations)
    try:
        program = tracer.run("program", lambda: form_sequence(system, options, tracer.progress))
    except SpecError as error:
        raise SpecError(tuple(map(_with_line, error.diagnostics))) from None

    def emitted(of: Module) -> Artifact:
        return emit_artifact(
            of,
            target=options.target,
            planning_extents=options.extents,
            memory_limit=options.memory_limit,
            extra_files=(),
        )

    def least_bytes() -> int | None:
        """What a call needs under the objective ``peak``; None where this plan takes the least."""
        from .report import report_json  # noqa: PLC0415

        if options.objective in ("peak", "time"):
            return None
        wish = replace(options, objective="peak")
        least = plan_fusion(program, wish)
        manifest = emitted(lower_plan(least, wish, scratch=False)).manifest
        needed: int = report_json(least, manifest, least.extent_of)["memory"]["peak_bytes"]
        return needed

    def call_bytes(module: Module) -> int:
        """What a call at planning extents allocates."""
        from .runtime.memory import memory_use  # noqa: PLC0415

        sizes = options.extent_of
        return memory_use(emitted(module).manifest, sizes, threads=1).peak

    def with_room_for_copies(plan: FusionPlan, limit: int) -> FusionPlan:
        """The plan with tiles so small that the copies of its products fit under the limit too.

        Where no tiles are, the plan as it is: lowering will do with fewer copies.
        """
        room, tried = limit, plan
        for _ in range(_TIGHTER):
            needed = call_bytes(lower_plan(tried, replace(options, memory_limit=None)))
            if needed <= limit:
                return tried
            room = min(room * limit // needed, room * 7 // 8)
            wish = replace(options, memory_limit=room)
            smaller = smaller_tiles(tried, wish) if tried.loops else plan_fusion(program, wish)
            if smaller is None:
                break
            tried = smaller
        return plan

    def planned() -> FusionPlan:
        plan, limit = plan_fusion(program, options), options.memory_limit
        if options.objective == "time" and limit is not None:
            return with_room_for_copies(plan, limit)
        return plan

    plan = tracer.run("plan", planned)
    _check_sliced(plan, options)

    def lowered() -> Module:
        """With all copies and packed blocks where they fit, else with those that do."""
        if options.objective == "time" and options.memory_limit is not None:
            module = lower_plan(plan, replace(options, memory_limit=None))
            if call_bytes(module) <= options.memory_limit:
                return module
        return lower_plan(plan, options)

    module = tracer.run("module", lowered)
    tracer.progress("emit")
    start = time.perf_counter()
    first = emitted(module)
    if _exceeds_promise(first, plan, options):
        # Copies that fit into what lives at one time need not fit between the arrays of the arena.
        module = tracer.run("module", lambda: lower_plan(plan, options, scratch=False))
        first = emitted(module)
    points: list[dict[str, Any]] = []
    if options.pareto:
        from .report import pareto_points  # noqa: PLC0415

        points = pareto_points(plan, options)
    artifact = _with_documents(first, system, plan, least_bytes, points)
    tracer.seconds["emit"] = time.perf_counter() - start
    return Compilation(system, program, plan, module, artifact, tuple(tracer.seconds.items()))


def _check_sliced(plan: FusionPlan, options: Options) -> None:
    """Refuse a plan that holds an input whole which was to be read in slices."""
    for array in plan.arrays:
        extents = [extent_of(s, plan.extent_of) for s in array.tensor.spaces]
        if array.tensor.name not in options.sliced or array.contracted or max(extents) == 1:
            continue
        step = plan.program.steps[plan.visits[array.live[1]].step]
        raise ArgumentError(
            f"sliced input {array.tensor.name} is needed whole by {pretty_step(step)}: the step "
            f"must read one of its axes in full and with one index, so name a block of a joined "
            f"axis as an input of its own, or pass the array whole"
        )


def _exceeds_promise(artifact: Artifact, plan: FusionPlan, options: Options) -> bool:
    """True where a call at planning extents takes more than the plan or the limit allows."""
    from .runtime.memory import memory_use  # noqa: PLC0415

    use = memory_use(artifact.manifest, plan.extent_of, threads=1)
    if options.memory_limit is not None and use.peak > options.memory_limit:
        return True
    return plan.solve.objective == "peak" and use.arenas > max(plan.arena, plan.solve.value or 0)


def _with_line(diagnostic: Diagnostic) -> Diagnostic:
    """The diagnostic of a later stage with its source line, where that can still be read."""
    try:
        lines = Path(diagnostic.span.file).read_text(encoding="utf-8-sig").splitlines()
        return replace(diagnostic, source_line=lines[diagnostic.span.line - 1].replace("\t", " "))
    except (OSError, ValueError, IndexError):
        return diagnostic


def read_system(path: Path) -> System:
    """The equations of a .spec or a .json term list.

    Raises:
        SpecError: with every error of the file.
    """
    from .frontend import read  # noqa: PLC0415  (lark is loaded only where a spec is read)

    return read(path)


def read_plan(artifact: Artifact) -> FusionPlan:
    """The plan that an artifact was made from."""
    return decode(artifact.text("plan.json"), FusionPlan)


def read_pareto(artifact: Artifact) -> list[dict[str, Any]]:
    """Points of time against memory that an artifact was compiled with; none if not asked for."""
    points: list[dict[str, Any]] = json.loads(artifact.text("report.json")).get("pareto", [])
    return points


def read_artifact_system(artifact: Artifact) -> System:
    """The equations that an artifact was made from."""
    return decode(artifact.text("system.json"), System)


def _with_documents(
    artifact: Artifact,
    system: System,
    plan: FusionPlan,
    least_bytes: Callable[[], int | None],
    pareto: list[dict[str, Any]],
) -> Artifact:
    """The artifact with its equations, plan, report and explanation beside the sources."""
    from .report import explain_text, report_html, report_json  # noqa: PLC0415

    extents = plan.extent_of
    manifest = artifact.manifest
    limit = manifest.memory_limit
    report = report_json(plan, manifest, extents)
    if pareto:
        report["pareto"] = pareto
    peak = report["memory"]["peak_bytes"]
    if limit is not None and peak > limit:
        rows = sorted(report["arrays"], key=lambda a: -a["bytes"])
        largest = [f"{a['name']} {a['bytes']:,}" for a in rows if a["kind"] != "input"][:4]
        least = least_bytes()
        if least is not None and least < peak:
            advice = (
                "try --objective time, which plans for the limit, or use --objective peak, which "
                f"fuses loops and needs {least:,} bytes"
            )
        elif plan.solve.objective == "time":
            advice = "since no plan that tcgen finds needs less"
        else:
            advice = (
                "or try --objective time, which plans for the limit and may compute parts anew; "
                "no fusion alone that tcgen finds needs less"
            )
        raise MemoryLimitError(
            f"this plan needs {peak:,} bytes, the memory limit is {limit:,}: its largest arrays "
            f"are {'; '.join(largest)} bytes. Raise the limit to {peak} or more, {advice}"
        )
    documents = (
        ("system.json", encode(system)),
        ("plan.json", encode(plan)),
        ("report.json", json.dumps(report, indent=1) + "\n"),
        ("report.html", report_html(system, plan, manifest, extents, pareto)),
        ("explain.txt", explain_text(plan, extents)),
    )
    return artifact.with_files(documents)


@dataclass(frozen=True, slots=True)
class _ValueCheck:
    """TCGEN_VERIFY=2: every level must give the values of the equations at small extents."""

    system: System
    dtype: str

    def __call__(self, stage: str, level: Level) -> None:
        from .interp import evaluate_program, evaluate_system, run_module  # noqa: PLC0415
        from .testing import (  # noqa: PLC0415
            assert_same_values,
            random_arrays,
            split_starts,
        )

        bases = [s.name for s in self.system.spaces if not s.parts]
        extents = {name: 2 + n % 3 for n, name in enumerate(bases)}
        arrays = random_arrays(self.system, extents, dtype=self.dtype, seed=0)
        inputs, starts = split_starts(self.system, arrays)
        expected = evaluate_system(self.system, inputs, extents, out=starts)
        match level:
            case Program():
                actual = evaluate_program(level, inputs, extents, out=starts)
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
        raise ArtifactError(f"{path}: no such folder of a compiled program")
    return Artifact.load(path)

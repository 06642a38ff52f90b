"""Time, verify and dump the stages of a compilation."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from .. import environment
from ..errors import CheckError, UnavailableError
from ..ir.loops import Module
from ..ir.plan import FusionPlan
from ..ir.pretty import pretty
from ..ir.program import FormulaSequence
from ..ir.system import System
from ..ir.verify import verify

Level: TypeAlias = System | FormulaSequence | FusionPlan | Module
L = TypeVar("L", System, FormulaSequence, FusionPlan, Module)
T = TypeVar("T")


@dataclass(slots=True)
class Tracer:
    """Times, verifies and dumps the stages of one compilation.

    ``progress`` is called with a stage's name as it starts, and with the state of a long search;
    ``seconds`` has the wall time by stage, in order. ``check_values`` compares the values of a
    level with those of the equations. ``stage`` is the present stage, and ``of_progress`` what
    ``progress`` raised.
    """

    progress: Callable[[str], None] = lambda _: None
    seconds: dict[str, float] = field(default_factory=dict)
    check_values: Callable[[str, Level], None] | None = None
    stage: str = "system"
    of_progress: Exception | None = None

    def tell(self, text: str) -> None:
        """Call ``progress``, whose errors are its own."""
        try:
            self.progress(text)
        except Exception as error:
            self.of_progress = error
            raise

    def start(self, stage: str) -> None:
        """Name the stage that starts."""
        self.stage = stage
        self.tell(stage)

    def run(self, stage: str, make: Callable[[], L]) -> L:
        """Build a level with ``make``, verify it and dump it."""
        return self.run_for(stage, make, lambda level: level)

    def run_for(self, stage: str, make: Callable[[], T], level_of: Callable[[T], Level]) -> T:
        """Build a result with ``make``; verify and dump its level."""
        self.start(stage)
        start = time.perf_counter()
        made = make()
        level = level_of(made)
        if environment.verify_level() >= 1:
            verify(level)
        if environment.verify_level() >= 2 and self.check_values is not None:
            self.check_values(stage, level)
        self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - start
        dumped = environment.dump_stages()
        if "all" in dumped or stage in dumped:
            self._dump(stage, pretty(level))
        return made

    def add_time(self, stage: str, make: Callable[[], T]) -> T:
        """Run ``make`` and add its time to that of a stage."""
        start = time.perf_counter()
        made = make()
        self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - start
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


def check_values(system: System, dtype: str, stage: str, level: Level) -> None:
    """Compare the values of a stage's level with those of the equations (TCGEN_VERIFY=2).

    The extents are small. A CheckError names the stage if the values differ.
    """
    from ..interp import evaluate_program, evaluate_system, run_module  # noqa: PLC0415
    from ..probes import assert_same_values, random_arrays, split_starts  # noqa: PLC0415

    bases = [s.name for s in system.spaces if not s.parts]
    extents = {name: 2 + n % 3 for n, name in enumerate(bases)}
    arrays = random_arrays(system, extents, dtype=dtype, seed=0)
    inputs, starts = split_starts(system, arrays)
    expected = evaluate_system(system, inputs, extents, out=starts, dtype=dtype)
    match level:
        case FormulaSequence():
            actual = evaluate_program(level, inputs, extents, out=starts, dtype=dtype)
        case Module():
            actual = run_module(level, inputs, extents, out=starts)
        case _:
            return  # a system is the reference; a plan is checked by its module
    try:
        assert_same_values(actual, expected, rtol=1e-4 if dtype == "float32" else 1e-10)
    except AssertionError as error:
        raise CheckError(f"TCGEN_VERIFY: {stage} differs from the equations: {error}") from None

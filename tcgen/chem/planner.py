"""Programs that are planned, and begin to be compiled, while integrals are transformed."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from ..runtime.program import Program

# Seconds after which a thread of Python lets another one run. The transform takes thousands of
# steps outside Python; by default each would wait up to 5 ms for the planner before the next.
_SWITCH = 1e-4


class Planner:
    """The programs that a function plans: in the background, or when they are asked for."""

    def __init__(self, plan: Callable[[], Sequence[Program]]) -> None:
        self._plan = plan
        self._programs: Sequence[Program] | None = None
        self._error: BaseException | None = None
        self._thread: threading.Thread | None = None
        self._compilers = ExitStack()
        self._abandoned = False
        # No compiler begins once an error has ended them.
        self._begins = threading.Lock()

    def programs(self) -> Sequence[Program]:
        """The programs, once they are planned; raises the errors of planning."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        elif self._programs is None and self._error is None:
            self._programs = self._plan()
        if self._error is not None:
            raise self._error
        assert self._programs is not None
        return self._programs

    @contextmanager
    def beside(self) -> Iterator[None]:
        """Plan and compile in the background while the context runs.

        An exception in the context ends the compilers; a planner ends with the process.
        """
        if self._programs is not None:
            self._compile()
        else:
            self._thread = threading.Thread(target=self._run, name="tcgen planner", daemon=True)
            self._thread.start()
        interval = sys.getswitchinterval()
        sys.setswitchinterval(min(interval, _SWITCH))
        try:
            with self._compilers:
                try:
                    yield
                    sys.setswitchinterval(interval)
                    self.programs()
                except BaseException:
                    with self._begins:
                        self._abandoned = True
                    raise
        finally:
            sys.setswitchinterval(interval)

    def _run(self) -> None:
        try:
            self._programs = self._plan()
            with self._begins:
                if not self._abandoned:
                    self._compile()
        except BaseException as error:  # programs() raises it
            self._error = error

    def _compile(self) -> None:
        """Begin to compile."""
        assert self._programs is not None
        for one in self._programs:
            if one.manifest.target == "cpu":
                self._compilers.enter_context(one.building())

"""Dispatch: decide whether an operation is deferred, and whether NumPy or a kernel runs it.

A kernel takes up to a second to compile. So NumPy runs the first graphs of a form, and the kernel
is compiled in the background once they have taken long enough. Both are measured, and the faster
one runs graphs of this form and size.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache

from ..compiler.program_cache import LeastRecentlyUsed
from ..environment import lazy_min_elements
from .compile import Kernel


@dataclass(slots=True)
class Limits:
    """Limits for recording operations and compiling kernels.

    Attributes:
        elements: number of elements below which NumPy computes operations at once.
        large: seconds of one run in NumPy after which the kernel is compiled at once.
        spent: seconds of all runs of one form without a kernel after which it is compiled: about
            the time for which compiling takes the interpreter from other threads. The C compiler
            is a separate process.
    """

    elements: int = 0
    large: float = 0.01
    spent: float = 0.05

    @property
    def kernels_only(self) -> bool:
        """True if NumPy runs nothing that a kernel can."""
        return self.elements == 0


LIMITS = Limits(lazy_min_elements())


def read_limits() -> None:
    """Read the environment's limit of elements; a call takes too long for each operation."""
    LIMITS.elements = lazy_min_elements()


# Times of single runs scatter: the first ones get new memory, other processes take the processor,
# and the time of some operations depends on the values. So lower quartiles are compared.
_LATEST = 9  # runs whose lower quartile is compared
_PATIENCE = 4.0, 128.0  # first and last ratio of the seconds between two trials to what one loses


def typical(seconds: list[float]) -> float:
    """The lower quartile of some runs, infinite without runs."""
    return sorted(seconds)[(len(seconds) - 1) // 4] if seconds else float("inf")


@dataclass(slots=True)
class Times:
    """Seconds of the latest runs of one size, by NumPy and by the kernel.

    Attributes:
        runs: number of runs since the first one of the kernel, which loads it and is not compared.
        spent: seconds of the runs since the slower one was last tried.
        patience: ratio of the seconds until its next trial to those that the trial loses.
    """

    numpy: list[float] = field(default_factory=list)
    kernel: list[float] = field(default_factory=list)
    runs: int = 0
    spent: float = 0.0
    patience: float = _PATIENCE[0]

    def record(self, by_kernel: bool, seconds: float) -> None:
        """Count a run."""
        if by_kernel and not self.runs:
            self.spent = 0.0
        else:
            latest = self.kernel if by_kernel else self.numpy
            latest[:] = [*latest[1 - _LATEST :], seconds]
            self.spent += seconds
        self.runs += by_kernel or self.runs > 0

    @property
    def is_settled(self) -> bool:
        """True if both have run often enough to be compared without further measurements."""
        return self.runs > _LATEST

    def prefers_kernel(self) -> bool:
        """True if the kernel is faster, or has not been measured.

        The slower one is tried again, ever more seldom: its first runs may have been disturbed.
        """
        if not self.kernel:
            return True
        numpy, kernel = typical(self.numpy), typical(self.kernel)
        if self.spent < self.patience * abs(kernel - numpy):
            return kernel < numpy
        self.spent, self.patience = 0.0, min(2 * self.patience, _PATIENCE[1])
        return kernel >= numpy


@dataclass(slots=True, eq=False)
class Form:
    """Record of the graphs of one form, with the seconds of NumPy's runs.

    ``requested`` means that the kernel is being compiled, or could not be. ``times`` are by the
    bits of the number of elements.
    """

    kernel: Kernel | None = None
    spent: float = 0.0
    requested: bool = False
    times: dict[int, Times] = field(default_factory=dict)

    def of_size(self, elements: int) -> Times:
        """The times of runs with about as many elements."""
        return self.times.setdefault(elements.bit_length(), Times())


_MOST_FORMS = 4096  # forms in the cache of a process
FORMS: LeastRecentlyUsed[Form] = LeastRecentlyUsed(lambda: _MOST_FORMS)


def form_of(key: Hashable) -> Form:
    """The record of a form."""
    form = FORMS.get(key)
    if form is None:
        form = Form()
        FORMS.add(key, form)
    return form


@cache
def _worker(process: int) -> ThreadPoolExecutor:
    """One thread that compiles; a forked process starts its own."""
    return ThreadPoolExecutor(1, f"tcgen-lazy-{process}")


def in_background(work: Callable[[], object]) -> None:
    """Run the work in another thread, after all earlier work."""
    _worker(os.getpid()).submit(work)


def wait_for_background() -> None:
    """Return when the other thread has done all its work."""
    _worker(os.getpid()).submit(int).result()

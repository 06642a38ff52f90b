"""Dispatch: decide whether an operation is deferred, and whether NumPy or a kernel runs it.

A kernel takes up to a second to compile. So NumPy runs the first graphs of a form, and their time
is measured; the kernel is compiled in the background once NumPy's runs have taken long enough.
Then the kernel's time is also measured, and the faster of the two runs graphs of this form and
size.
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
        trials: number of runs of the kernel that are measured before the faster one is chosen.
    """

    elements: int = 0
    large: float = 0.01
    spent: float = 0.05
    trials: int = 3

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
_MEASURED = 2  # runs of a kernel, the second one measured
_CLEARLY = 1.2  # ratio above the difference between two measurements of the same run
_RETRY_BELOW = 10  # NumPy is measured again unless it is this many times slower than the kernel


def typical(seconds: list[float]) -> float:
    """The lower quartile of some runs, infinite without runs."""
    return sorted(seconds)[(len(seconds) - 1) // 4] if seconds else float("inf")


@dataclass(slots=True)
class Times:
    """Seconds of the latest runs of one size.

    Attributes:
        numpy: those of NumPy. Runs before the kernel's may be slow: their memory is new, and the
            compiler takes the processor. Of them, the fastest stays.
        kernel: those of the kernel, without its first run, which loads and links it.
        runs: number of runs of the kernel.
        again: NumPy has been measured after the kernel's first runs.
        spent: seconds of NumPy's runs since the kernel's last one.
        patience: seconds of NumPy before the kernel's next trial, over those that the trial loses.
    """

    numpy: list[float] = field(default_factory=list)
    kernel: list[float] = field(default_factory=list)
    runs: int = 0
    again: bool = False
    spent: float = 0.0
    patience: float = 20.0

    def record_numpy(self, seconds: float) -> None:
        """Count a run in NumPy."""
        self.spent += seconds
        self.again |= self.runs >= _MEASURED
        self.numpy = [*self.numpy[1 - _LATEST :], seconds]

    def record_kernel(self, seconds: float) -> None:
        """Count a run of the kernel."""
        if self.runs:
            self.kernel = [*self.kernel[1 - _LATEST :], seconds]
        elif self.numpy:
            self.numpy = [min(self.numpy)]
        self.runs += 1
        self.spent = 0.0

    def is_open(self, trials: int) -> bool:
        """True if a measurement of the preferred run can change the preference."""
        return 0 < self.runs <= trials or self._remeasures_numpy()

    def prefers_kernel(self, trials: int) -> bool:
        """True if the kernel has been faster, or has not been measured often enough.

        A kernel that is clearly slower gets further trials seldom, and ever more seldom: they would
        cost the user time.
        """
        if self.runs < _MEASURED:
            return True
        if self._remeasures_numpy():
            return False
        numpy, kernel = typical(self.numpy), typical(self.kernel)
        if kernel < (_CLEARLY * numpy if self.runs <= trials else numpy):
            return True
        if self.spent < self.patience * (kernel - numpy):
            return False
        self.patience *= 2
        return True

    def _remeasures_numpy(self) -> bool:
        """True if NumPy is measured again, since its first runs may have been slow."""
        if self.runs < _MEASURED or self.again:
            return False
        return _RETRY_BELOW * typical(self.kernel) >= typical(self.numpy)


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

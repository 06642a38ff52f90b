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

from ..compiler.program_cache import LeastRecentlyUsed
from ..environment import lazy_min_elements
from .kernels import Kernel
from .timing import Times


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


class _Background:
    """One thread of the process that compiles; a forked process starts its own."""

    def __init__(self) -> None:
        self.worker: ThreadPoolExecutor | None = None
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        self.worker = None

    def submit(self, work: Callable[[], object]) -> None:
        if self.worker is None:
            self.worker = ThreadPoolExecutor(1, "tcgen-lazy")
        self._last = self.worker.submit(work)

    def wait(self) -> None:
        if self.worker is not None:
            self._last.result()


_BACKGROUND = _Background()


def in_background(work: Callable[[], object]) -> None:
    """Run the work in another thread, after all earlier work."""
    _BACKGROUND.submit(work)


def wait_for_background() -> None:
    """Return when the other thread has done all its work."""
    _BACKGROUND.wait()

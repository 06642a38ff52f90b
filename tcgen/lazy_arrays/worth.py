"""What an operation is worth: whether it is noted, and whether NumPy or a kernel runs it.

A kernel takes up to a second to compile. So NumPy runs the first lines of a form, and their time
is measured; the kernel is compiled in the background once NumPy's runs have taken long enough.
Then the kernel's time is measured, too, and the faster of the two runs the lines of this form and
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
from .times import Times


@dataclass(slots=True)
class Limits:
    """When operations are noted and kernels compiled.

    Attributes:
        elements: NumPy computes operations on fewer elements at once.
        large: seconds of one run in NumPy, from which the kernel is compiled at once.
        spent: seconds of the runs of one form without a kernel, after which it is compiled in any
            case: about those for which compiling takes the interpreter from other threads. The C
            compiler is a process of its own.
        trials: runs of the kernel that are measured before one of the two is chosen.
    """

    elements: int = 0
    large: float = 0.01
    spent: float = 0.05
    trials: int = 3

    @property
    def kernels_alone(self) -> bool:
        """True where NumPy runs nothing that a kernel can."""
        return self.elements == 0


LIMITS = Limits(lazy_min_elements())


def read_limits() -> None:
    """Read the environment's limit of elements; a call takes too long for each operation."""
    LIMITS.elements = lazy_min_elements()


@dataclass(slots=True, eq=False)
class Form:
    """What is known of the lines of one form.

    Attributes:
        kernel: once it is compiled.
        spent: seconds of NumPy's runs.
        asked: the kernel is being compiled, or could not be.
        times: by the bits of the number of elements.
    """

    kernel: Kernel | None = None
    spent: float = 0.0
    asked: bool = False
    times: dict[int, Times] = field(default_factory=dict)

    def of_size(self, elements: int) -> Times:
        """The times of runs with about as many elements."""
        return self.times.setdefault(elements.bit_length(), Times())


_MOST_FORMS = 4096  # forms that a process remembers
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
    """Let another thread do the work, after all that it was given before."""
    _BACKGROUND.submit(work)


def wait_for_background() -> None:
    """Return when the other thread has done all that it was given."""
    _BACKGROUND.wait()

"""Measured times of NumPy and of a kernel for one form and size, and the choice between them.

Times of single runs scatter: the first ones get new memory, other processes take the processor, and
the time of some operations depends on the values. So the lower quartiles of the latest runs are
compared.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Latest:
    """Seconds of the latest runs; ``typical`` is their lower quartile, infinite without runs."""

    seconds: list[float] = field(default_factory=list)
    typical: float = float("inf")

    def record(self, seconds: float) -> None:
        """Count a run."""
        self.seconds.append(seconds)
        if len(self.seconds) > _LATEST:
            del self.seconds[0]
        self.typical = sorted(self.seconds)[(len(self.seconds) - 1) // 4]


@dataclass(slots=True)
class Times:
    """Times of runs of one size.

    Attributes:
        before: times of NumPy before the kernel's first runs. They may be slow: their memory is
            new, and the compiler takes the processor.
        later: times of NumPy after the kernel's first runs.
        kernel: times of the kernel, without its first run, which loads and links it.
        spent: seconds of NumPy's runs since the kernel's last one.
        patience: seconds of NumPy before the kernel's next trial, over those that the trial loses.
    """

    before: Latest = field(default_factory=Latest)
    later: Latest = field(default_factory=Latest)
    kernel: Latest = field(default_factory=Latest)
    runs: int = 0
    spent: float = 0.0
    patience: float = 20.0

    @property
    def numpy(self) -> float:
        """Seconds of a run of NumPy."""
        return min(self.before.typical, self.later.typical)

    def record_numpy(self, seconds: float) -> None:
        """Count a run in NumPy."""
        self.spent += seconds
        (self.later if self.runs >= _MEASURED else self.before).record(seconds)

    def record_kernel(self, seconds: float) -> None:
        """Count a run of the kernel."""
        if self.runs:
            self.kernel.record(seconds)
        self.runs += 1
        self.spent = 0.0

    def is_open(self, trials: int) -> bool:
        """True if a measurement of the preferred run can change the preference."""
        if not self.runs:
            return False
        return self.runs <= trials or self._remeasures_numpy()

    def prefers_kernel(self, trials: int) -> bool:
        """True if the kernel has been faster, or has not been measured often enough.

        A kernel that is clearly slower gets further trials seldom, and ever more seldom: they would
        cost the user time.
        """
        if self.runs < _MEASURED:
            return True
        if self._remeasures_numpy():
            return False
        numpy, kernel = self.numpy, self.kernel.typical
        if kernel < (_CLEARLY * numpy if self.runs <= trials else numpy):
            return True
        if self.spent < self.patience * (kernel - numpy):
            return False
        self.patience *= 2
        return True

    def _remeasures_numpy(self) -> bool:
        """True if NumPy is measured again, since its first runs may have been slow."""
        if self.runs < _MEASURED or self.later.seconds:
            return False
        return _RETRY_BELOW * self.kernel.typical >= self.numpy


_LATEST = 9  # runs whose lower quartile is compared
_MEASURED = 2  # runs of a kernel, the second one measured
_CLEARLY = 1.2  # ratio above the difference between two measurements of the same run
_RETRY_BELOW = 10  # NumPy is measured again unless it is this many times slower than the kernel

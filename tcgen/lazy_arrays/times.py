"""Measured times of NumPy's runs and of a kernel's runs of one form and size, and which is faster.

The time of one run says little: the first ones get new memory, other processes take the processor,
and the time of some operations depends on the values. So the lower quartiles of the latest runs are
compared.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Latest:
    """The latest times of a run.

    Attributes:
        seconds: of the latest runs.
        typical: their lower quartile, the least of up to four; infinite if there are none.
    """

    seconds: list[float] = field(default_factory=list)
    typical: float = float("inf")

    def note(self, seconds: float) -> None:
        """Count a run."""
        self.seconds.append(seconds)
        if len(self.seconds) > _LATEST:
            del self.seconds[0]
        self.typical = sorted(self.seconds)[(len(self.seconds) - 1) // 4]


@dataclass(slots=True)
class Times:
    """Times of runs of one size.

    Attributes:
        before: of NumPy, before the kernel's first runs. They may be slow: their memory is new, and
            the compiler takes the processor.
        later: of NumPy, after the kernel's first runs.
        kernel: of the kernel; its first run loads and links it and does not count.
        runs: of the kernel.
        spent: seconds of NumPy's runs since the kernel's last one.
        patience: how many times as long NumPy must have run as the kernel's next trial would lose.
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

    def note_numpy(self, seconds: float) -> None:
        """Count a run in NumPy."""
        self.spent += seconds
        (self.later if self.runs >= _MEASURED else self.before).note(seconds)

    def note_kernel(self, seconds: float) -> None:
        """Count a run of the kernel."""
        if self.runs:
            self.kernel.note(seconds)
        self.runs += 1
        self.spent = 0.0

    def is_open(self, trials: int) -> bool:
        """True where a measurement of the run that is preferred can change what is preferred."""
        if not self.runs:
            return False
        return self.runs <= trials or self._asks_numpy()

    def prefers_kernel(self, trials: int) -> bool:
        """True where the kernel has been faster, or has not been measured often enough.

        A kernel that is clearly slower gets further trials seldom, and ever more seldom: they would
        cost the user time.
        """
        if self.runs < _MEASURED:
            return True
        if self._asks_numpy():
            return False
        numpy, kernel = self.numpy, self.kernel.typical
        if kernel < (_CLEARLY * numpy if self.runs <= trials else numpy):
            return True
        if self.spent < self.patience * (kernel - numpy):
            return False
        self.patience *= 2
        return True

    def _asks_numpy(self) -> bool:
        """True where NumPy is measured again, since its first runs may have been slow ones."""
        if self.runs < _MEASURED or self.later.seconds:
            return False
        return _HOPELESS * self.kernel.typical >= self.numpy


_LATEST = 9  # runs whose lower quartile is compared
_MEASURED = 2  # runs of a kernel, of which one has been measured
_CLEARLY = 1.2  # times as long: more than two measurements of the same run differ
_HOPELESS = 10  # times as long as the kernel: no second measurement of NumPy changes the choice

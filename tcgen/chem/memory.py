"""Memory of a job: what it takes beside the program, and the bytes that remain for that.

All is counted beyond what the process held when ``solve`` was called.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..errors import MemoryLimitError

# Bytes of modules, of plans and of what planning leaves in the heap: up to 125 MB were measured for
# CCSD within small limits, 50 MB where the plan was in the cache.
BASE = 160_000_000
# Arrays as large as all amplitudes while they are updated: old, new, their change, and copies.
_COPIES = 6
# Part of the memory for vectors of DIIS that are not in a file.
_OF_DIIS = 1 / 8
# Part of the memory for rows of a file that are kept.
OF_FILE = 1 / 8


@dataclass(frozen=True, slots=True)
class Budget:
    """The memory of a job in bytes, and what is known to take it.

    Attributes:
        memory: all that the job may take.
        inputs: bytes of each input that is held in memory, by name.
        making: bytes while each of them is made from the mean field, by name.
        amplitudes: bytes of all amplitudes.
        diis: number of vectors of DIIS.
        reading: bytes of parts of a file that are kept.
    """

    memory: float
    inputs: Mapping[str, float]
    making: Mapping[str, float]
    amplitudes: float
    diis: int
    reading: float = 0.0

    @property
    def diis_on_disk(self) -> bool:
        """True if vectors and errors of DIIS go to a file."""
        return 2 * self.diis * self.amplitudes > self.memory * _OF_DIIS

    @property
    def beside(self) -> float:
        """Bytes beside the program while it is called."""
        diis = 0.0 if self.diis_on_disk else 2 * self.diis * self.amplitudes
        held = sum(self.inputs.values()) + self.reading
        return BASE + held + _COPIES * self.amplitudes + diis

    def peak(self, program: float) -> float:
        """Most bytes of the job, with a program of so many bytes."""
        return max(self.beside + program, max(map(self._while_making, self.making), default=0.0))

    def for_program(self) -> int:
        """Bytes that remain for the program.

        Raises:
            MemoryLimitError: the integrals cannot be made, or nothing remains.
        """
        for name in self.making:
            needed = self._while_making(name)
            if needed > self.memory:
                raise self._too_small(f"to make {name} takes {needed:,.0f} bytes", needed)
        if self.beside >= self.memory:
            largest = sorted(self.inputs.items(), key=lambda item: -item[1])[:3]
            shown = "; ".join(f"{name} {count:,.0f}" for name, count in largest)
            text = (
                f"modules and plans take {BASE:,} bytes, amplitudes "
                f"{_COPIES * self.amplitudes:,.0f}"
            )
            held = f", the largest inputs in memory {shown}" if shown else ""
            raise self._too_small(text + held, self.beside)
        return int(self.memory - self.beside)

    def _while_making(self, name: str) -> float:
        return BASE + sum(self.inputs.values()) - self.inputs[name] + self.making[name]

    def _too_small(self, reason: str, needed: float) -> MemoryLimitError:
        return MemoryLimitError(
            f"memory={self.memory:,.0f} bytes is too small: {reason}. Give more than "
            f"{needed:,.0f} bytes, or a smaller diis="
        )

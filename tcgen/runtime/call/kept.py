"""What the constant phase of a bound program leaves for its calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Kept:
    """An arena, and results that depend on constants alone; on the device where there is one.

    Attributes:
        extents: of the base spaces that it depends on.
        memory: of the arena.
        outputs: by name.
        copied_bytes: of the constants that had to be copied.
    """

    extents: tuple[tuple[str, int], ...]
    memory: Any
    outputs: Mapping[str, Any]
    copied_bytes: int

    @property
    def held_bytes(self) -> int:
        """Bytes of what is held beside the arena."""
        results: int = sum(a.nbytes for a in self.outputs.values())
        return self.copied_bytes + results

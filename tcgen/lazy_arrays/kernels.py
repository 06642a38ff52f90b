"""Kernels of lazy arrays: a program for each form of a graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..artifact.folder import Artifact
from ..compiler.driver import compile_system
from ..compiler.program_cache import ProgramCache
from ..options import Options
from ..runtime.program import Program
from .equations import LazySystem
from .graph import Array
from .linearized import Linearized

FLOAT64 = np.dtype(np.float64)
_MOST_PROGRAMS = 256  # compiled programs in the cache of a process
PROGRAMS = ProgramCache(Program, lambda: _MOST_PROGRAMS)


@dataclass(frozen=True, slots=True)
class Kernel:
    """A compiled program that runs any graph of a form; ``lazy`` names its arrays and numbers."""

    program: Program
    lazy: LazySystem

    def run(self, line: Linearized) -> list[Array]:
        """The arrays of the roots."""
        lazy, dtype = self.lazy, line.dtype
        given: dict[str, Any] = {}
        for place, array in zip(lazy.inputs, line.arrays(), strict=True):
            kind = FLOAT64 if place.real else dtype
            if array.dtype != kind:  # integers and booleans
                array = array.astype(kind, order="C")
            given[place.name] = place.view(array)
        for name, value in zip(lazy.numbers, line.numbers(), strict=True):
            given[name] = np.array(value, dtype)
        if lazy.target is not None and line.target is not None:
            self.program(out={lazy.target.name: lazy.target.view(line.target)}, **given)
            return [line.target]
        made = self.program(**given)
        results = []
        for name, root in zip(lazy.outputs, line.roots, strict=True):
            array, shape = made[name].astype(line.dtypes[root], copy=False), line.shapes[root]
            results.append(array if array.shape == shape else array.reshape(shape))
        return results


def kernel_of(lazy: LazySystem, dtype: str, target: str) -> Kernel:
    """The kernel of a system, compiled if the cache has none."""
    key = (lazy.system, dtype, target)
    return Kernel(PROGRAMS.program(key, lambda: _compiled(lazy, dtype, target)), lazy)


def _compiled(lazy: LazySystem, dtype: str, target: str) -> Artifact:
    options = Options(
        extents=tuple(sorted((name, max(1, n)) for name, n in lazy.extents.items())),
        target=target,
        dtype=dtype,
        objective="kernels",
        optimize=False,
        round_each=True,
        sums_alone=False,
    )
    return compile_system(lazy.system, options).artifact

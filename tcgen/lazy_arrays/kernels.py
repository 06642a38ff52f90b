"""Kernels of lazy arrays: a program for each form of a graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..artifact.folder import Artifact
from ..compiler.driver import compile_system
from ..compiler.program_cache import ProgramCache
from ..ir.system import System
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
        objective=_objective(lazy.system),
        optimize=False,
        round_each=True,
        sums_alone=False,
    )
    return compile_system(lazy.system, options).artifact


def _objective(system: System) -> str:
    """What loops are fused for: ``none`` keeps matrix products apart, which libraries compute.

    Otherwise intermediates shrink to elements of fused loops, as few elements as there can be. That
    would read one column after the other, where sums that keep the last axis are of intermediates,
    or are read in loops over more axes: the objective ``time`` sees what it costs.
    """
    terms = [(e.lhs.tensor.name, term) for e in system.equations for term in e.terms]
    if len(terms) == 1 or any(len(term.factors) > 1 for _, term in terms):
        return "none"
    of_columns: set[str] = set()  # tensors that depend on such a sum
    for name, term in terms:
        for ref in term.refs:
            if ref.tensor.name in of_columns:
                of_columns.add(name)
                if ref.indices and len(ref.indices) < len(term.indices):
                    return "time"
            if term.sums and {*ref.indices} & {*term.sums} and ref.indices[-1] not in term.sums:
                of_columns.add(name)
                if not ref.tensor.is_input:
                    return "time"
    return "memory"

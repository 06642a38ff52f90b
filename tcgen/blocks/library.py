"""The compiled library of a program over blocks, and its calls."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..runtime.cpu.blas import blas_pointers, blas_threads, used_threads
from ..runtime.cpu.build import Source, build_libraries
from ..runtime.cpu.interrupt import NOT_INTERRUPTED, on_main_thread, run_interruptible
from .operations import Inside, Operation

# tc_step of templates/c/blocks/steps.c.
_STEP = np.dtype(
    [
        *((name, np.int64) for name in ("kind", "rows", "width", "elements", "accumulate", "map")),
        *((name, np.uintp) for name in ("places", "steps", "arrays", "inside")),
        ("coefficient", np.float64),
    ]
)
# tc_nest and tc_program of the same file.
_NEST = np.dtype(
    [
        *((name, np.int64) for name in ("slices", "results", "buffers")),
        *((name, np.uintp) for name in ("offsets", "programs")),
    ]
)
_PROGRAM = np.dtype([("count", np.int64), ("steps", np.uintp)])
_STOP = 13  # place of the address of the number that ends loops: TC_STOP of templates/c/head.c
_LONG_FLOPS = 1e8  # flops of a call that Ctrl-C can end: about 3 ms


class _Process:
    """Whether this process is a fork, in which OpenMP starts no threads."""

    forked = False


def _mark() -> None:
    _Process.forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_mark)


class Library:
    """The compiled C source of a program over blocks."""

    def __init__(self, text: str) -> None:
        (self._library,) = build_libraries((Source(text),))
        self._run = self._library.tcgen_blocks
        self._run.restype = None
        pointers = (*blas_pointers(), blas_threads().controlled or None)
        padding = (None,) * (_STOP - len(pointers))
        table = (*pointers, *padding, ctypes.addressof(NOT_INTERRUPTED))
        self._table = (ctypes.c_void_p * len(table))(*table)

    @property
    def threads(self) -> int:
        """Threads of a call: as ``set_threads`` says, else as many as OpenMP offers."""
        return 1 if _Process.forked else used_threads(self._library.tcgen_threads())

    def run(self, steps: Steps, addresses: npt.NDArray[np.uintp]) -> None:
        """Execute steps on the buffers at some addresses."""
        count = ctypes.c_int64(len(steps.table))
        pointers = (steps.table.ctypes.data, addresses.ctypes.data)
        first = (count, *map(ctypes.c_void_p, pointers), ctypes.c_int(self.threads))
        with blas_threads():
            if steps.flops < _LONG_FLOPS or not on_main_thread():
                self._run(*first, self._table)
                return
            stop = ctypes.c_int(0)
            own = type(self._table)(*self._table)
            own[_STOP] = ctypes.addressof(stop)
            run_interruptible(self._run, (*first, own), stop)


class Steps:
    """Operations in the form that the library reads.

    Attributes:
        table: one row for each operation.
        flops: flops of all products.
    """

    def __init__(self, operations: Sequence[Operation], numbers: Mapping[str, int]) -> None:
        self.flops = sum(op.flops for op in operations)
        self._keep: list[Any] = [op.table for op in operations]
        self.table = np.zeros(len(operations), _STEP)
        for row, op in zip(self.table, operations, strict=True):
            arrays = np.array([numbers[name] for name in op.arrays], np.int64)
            self._keep.append(arrays)
            row["kind"], row["coefficient"] = int(op.kind), op.coefficient
            row["elements"], row["accumulate"] = op.elements, op.accumulate
            row["map"], row["arrays"] = op.number, arrays.ctypes.data
            if op.table is not None:
                places, steps = op.table.places, op.table.steps
                row["rows"], row["width"] = steps.shape
                row["places"], row["steps"] = places.ctypes.data, steps.ctypes.data
            if op.inside is not None:
                row["inside"] = self._nest(op, op.inside)

    def _nest(self, operation: Operation, inside: Inside) -> int:
        """The address of what a nest executes."""
        programs = np.zeros(len(inside.schedules), _PROGRAM)
        made = [Steps(schedule.operations, inside.numbers) for schedule in inside.schedules]
        for row, steps in zip(programs, made, strict=True):
            row["count"], row["steps"] = len(steps.table), steps.table.ctypes.data
        nest = np.zeros(1, _NEST)
        buffers, results = len(inside.numbers), operation.elements
        nest["slices"], nest["results"] = len(operation.arrays) - results - 1, results
        nest["buffers"], nest["offsets"] = buffers, inside.offsets.ctypes.data
        nest["programs"] = programs.ctypes.data
        self._keep += [made, programs, nest, inside]
        return nest.ctypes.data

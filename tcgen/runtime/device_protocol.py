"""Protocols of the memory of kernels, and of a GPU.

A call takes the same steps on every target. It makes, copies and compares arrays only through a
:class:`Device`: ``host_device.HostDevice`` for the CPU, ``gpu.cupy_device`` for a GPU.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ..records.arena import Layout

Array = npt.NDArray[Any]


class Device(Protocol):
    """The memory where kernels read and write arrays."""

    @property
    def on_cpu(self) -> bool:
        """True where the arrays of the device are NumPy arrays."""

    @property
    def array_kind(self) -> str:
        """The arrays that a caller may pass, in words: ``NumPy array``."""

    @property
    def direct_kind(self) -> str:
        """The arrays that kernels take without a copy, in words: ``in C order``."""

    def holds(self, array: object) -> bool:
        """True for an array in the memory of the device."""

    def adopt(self, array: Any) -> Any:
        """An array of the device over the memory of an array of another library on a GPU.

        The current stream waits for the library's. None if the device takes no arrays of a GPU.
        """

    def elsewhere(self, array: Any) -> str | None:
        """Names of the device that holds an array and of this one; None if they are the same."""

    def aligned(self, array: Any) -> bool:
        """True if elements of an array of the device begin at multiples of their bytes."""

    def direct(self, array: Any) -> bool:
        """True if kernels can take an array of the device: in C order, aligned to its elements."""

    def contiguous(self, array: Any) -> Any:
        """An array of the device that kernels can take: the same one if ``direct``, else a copy."""

    def empty(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Any:
        """A new array in C order, of unknown values; MemoryLimitError if memory is short."""

    def arena(self, layout: Layout) -> Any:
        """The memory of an arena as an array of bytes, which starts as the layout asks.

        Raises MemoryLimitError if the device has no memory for it.
        """

    @property
    def nothing(self) -> Any:
        """An arena without memory."""

    def inside(self, memory: Any, offset: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        """An array in C order in the memory of an ``arena``, from a byte ``offset`` on."""

    def put(self, array: Array) -> Any:
        """A copy on the device of an array of the CPU; on the CPU the array itself."""

    def get(self, array: Any) -> Array:
        """A copy on the CPU of an array of the device; on the CPU the array itself."""

    def overlap(self, one: Any, other: Any) -> bool:
        """True if the bounds of two arrays of the device overlap in memory."""

    def wait(self) -> None:
        """Wait for the work that is queued on the current stream."""

    def update(self, target: Any, array: Array) -> None:
        """Copy an array of the CPU to one in C order, behind the work that is queued.

        Both have the same shape and element type; ``array`` may change when the call returns.
        """

    def begin(self) -> None:
        """Called before a call makes arrays; ArgumentError if the current stream takes no calls."""


class Function(Protocol):
    """A kernel: one-dimensional grid and block, arrays and NumPy numbers as arguments."""

    def __call__(
        self,
        grid: tuple[int],
        block: tuple[int],
        args: tuple[Any, ...],
        shared_mem: int = 0,
    ) -> None:
        """Launch it on the current stream."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """A matrix inside an array of a device; all numbers count elements.

    ``row`` and ``column`` are steps between neighbours in a column, and in a row; one of them is 1,
    or the matrix has one row or one column. Two matrices of a batch are ``apart``.
    """

    offset: int
    row: int
    column: int
    apart: int


@dataclass(frozen=True, slots=True)
class MatrixProduct:
    """``out[m, n] (+)= factor * a[m, k] * b[k, n]``, for a batch of ``count``; k may be 0.

    The arrays have one element type. Unless ``accumulate``, the result is overwritten, whatever it
    holds.
    """

    dtype: str
    m: int
    n: int
    k: int
    count: int
    factor: float
    accumulate: bool
    out: Matrix
    a: Matrix
    b: Matrix


@dataclass(frozen=True, slots=True)
class Operand:
    """The elements of an array of a device that a contraction uses; numbers count elements.

    ``modes`` has the number of the variable of each axis.
    """

    offset: int
    modes: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Contraction:
    """``out (+)= factor * sum of a * b`` over the modes that ``out`` has not.

    The arrays have one element type; ``lengths`` has the length of each mode, which may be 0.
    Unless ``accumulate``, the result is overwritten, whatever it holds.
    """

    dtype: str
    lengths: tuple[int, ...]
    factor: float
    accumulate: bool
    out: Operand
    a: Operand
    b: Operand


class Gpu(Device, Protocol):
    """A device that compiles CUDA and runs it."""

    def describe(self) -> str:
        """Its name, architecture and memory."""

    @property
    def number(self) -> int:
        """Number of the current GPU, on which kernels are launched."""

    def translated(self) -> AbstractContextManager[None]:
        """A context that raises errors of the driver as a TcgenError."""

    def module(self, code: str) -> Any:
        """Compile a source, or take it from a cache."""

    def function(self, module: Any, name: str, shared_bytes: int) -> Function:
        """A kernel of a compiled ``module``, for launches on the current GPU.

        ``shared_bytes`` is the most dynamic shared memory that a launch gives each block;
        ExtentError if a block of this GPU has not as much.
        """

    def load_library(self, name: str) -> None:
        """Load a library of :data:`tcgen.hardware.GPU_LIBRARIES`; UnavailableError if missing."""

    def multiply(self, product: MatrixProduct, out: Any, a: Any, b: Any) -> None:
        """Queue products of matrices of three arrays on the current stream."""

    def contract(self, contraction: Contraction, out: Any, a: Any, b: Any) -> None:
        """Queue a contraction of three arrays on the current stream."""

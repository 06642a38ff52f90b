"""What a GPU offers to the runtime, as protocols."""

from __future__ import annotations

from typing import Any, Protocol

import numpy.typing as npt

Array = npt.NDArray[Any]


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


class CompiledModule(Protocol):
    """A compiled source."""

    def get_function(self, name: str) -> Function:
        """A kernel by its name."""


class Device(Protocol):
    """Where a program for a GPU runs."""

    def describe(self) -> str:
        """Its name, architecture and memory."""

    def module(self, code: str) -> CompiledModule:
        """Compile a source, or take it from a cache."""

    def holds(self, array: object) -> bool:
        """True for an array in the memory of the device."""

    def elsewhere(self, array: Any) -> str | None:
        """Which other device holds an array, and which one is current; None where it is here."""

    def direct(self, array: Any) -> bool:
        """True where kernels can take an array of the device: in C order, on whole elements."""

    def contiguous(self, array: Any) -> Any:
        """An array of the device that kernels can take; the same one where it is one."""

    def empty(self, shape: tuple[int, ...], dtype: str) -> Any:
        """A new array on the device, in C order, of unknown values."""

    def put(self, array: Array) -> Any:
        """A copy on the device of an array of the CPU."""

    def get(self, array: Any) -> Array:
        """A copy on the CPU of an array of the device."""

    def overlap(self, one: Any, other: Any) -> bool:
        """True where two arrays of the device may share memory."""

    def wait(self) -> None:
        """Wait for what is queued on the current stream."""

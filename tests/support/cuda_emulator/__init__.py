"""CUDA kernels on the CPU, under watch: faults of the text of a .cu are named (README.md)."""

from .module import EmulatedKernel, EmulatedModule, EmulationError

__all__ = ["EmulatedKernel", "EmulatedModule", "EmulationError"]

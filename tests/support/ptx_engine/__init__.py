"""The PTX that a compiler makes of CUDA kernels, run on the CPU under the emulator's watch."""

from .module import PtxModule

__all__ = ["PtxModule"]

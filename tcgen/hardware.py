"""Sizes that the supported processors and GPUs share."""

from __future__ import annotations

import os

CACHE_LINE_BYTES = 64  # unit of transfer between memory and caches, x86-64 and most AArch64
SECTOR_BYTES = 32  # unit of transfer between memory and caches, NVIDIA GPUs
PAGE_BYTES = 4096  # smallest page of virtual memory
WARP_THREADS = 32  # threads that run in step on NVIDIA GPUs
SHARED_MEMORY_BYTES = 48 * 1024  # shared memory of one block of any kernel without an opt-in

CUBLAS, CUTENSOR = GPU_LIBRARIES = ("cuBLAS", "cuTENSOR")  # libraries of matrix products

# Shared memory of generated CUDA kernels.
COPY_BYTES = 16  # widest copy of one thread of a GPU
BLOCK_SUM_BYTES = 1024  # partial sums of the warps of a block
PRIVATE_SHARED_BYTES = SHARED_MEMORY_BYTES - 2 * BLOCK_SUM_BYTES  # all but sums and scalars


def memory_of_node() -> int:
    """Bytes of physical memory of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")

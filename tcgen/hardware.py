"""Sizes of all supported processors and GPUs: cache lines, pages, warps, shared memory."""

from __future__ import annotations

CACHE_LINE_BYTES = 64  # that pass between memory and caches at once, on x86-64 and most AArch64
PAGE_BYTES = 4096  # of virtual memory, the smallest that the supported processors map
WARP_THREADS = 32  # that run in step on NVIDIA GPUs
SHARED_MEMORY_BYTES = 48 * 1024  # that every kernel may use for one block without asking for more

# Shared memory of generated CUDA kernels.
COPY_BYTES = 16  # the most that one thread of a GPU copies at once
BLOCK_SUM_BYTES = 1024  # for the partial sums of the warps of a block
PRIVATE_SHARED_BYTES = SHARED_MEMORY_BYTES - 2 * BLOCK_SUM_BYTES  # all but sums and scalars

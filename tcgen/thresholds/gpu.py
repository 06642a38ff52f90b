"""Thresholds of lowering to CUDA.

A matrix product is ``C[m,n] += A[m,k] * B[k,n]``: m, n and k stand for groups of axes, and for the
number of their points under the planning extents.
"""

from __future__ import annotations

from dataclasses import dataclass

from .legal_range import threshold

_FAR = 2**62  # above every size that a program can have


@dataclass(frozen=True, slots=True)
class GpuThresholds:
    """Thresholds of lowering to CUDA.

    Attributes:
        multiprocessors: of the GPU that the plan is for: a full wave has one thread block of a
            matrix product for each (132: NVIDIA H100).
        nest_iterations: independent iterations that keep a GPU busy, so that thread blocks walk
            them.
        block_points: points of the largest iteration that a thread block walks if there are fewer.
        nest_blocks: most thread blocks of a nest; each takes further iterations in turn.
        least_mnk: m, n and k from which threadblock tiles pay.
        split_k: points of k that each split has at least.
        splits: most thread blocks that divide the k of one tile (split-K).
        few_elements: elements below which one thread for each leaves a GPU idle.
        long_sum: points of a sum from which the threads of a block add up one of few elements.
        sum_blocks: thread blocks of sums for each multiprocessor.
        lane_points: values of a variable from which the lanes of a warp take them in turn.
        expression_leaves: arrays read in one expression, beyond which the loads no longer fit
            registers.

        flops_per_byte: flops of a double-precision product in the time in which a byte is copied
            (NVIDIA H200: 58.8 Tflop/s of cuBLAS and 4.3 TB/s).
        launch_bytes: bytes that are copied in the time of a launch, about 4 microseconds.
        library_percent: of that rate of flops that the library reaches, ...
        tensor_percent: ... that generated tiles on tensor cores reach (58.2 of cuBLAS's 61.7
            Tflop/s), ...
        blocked_percent: ... those whose factors have unit stride along different variables of k
            (48.0), ...
        tile_percent: ... generated tiles of other element types, ...
        point_percent: ... and generated sums that are not tiles.
        copy_percent: of the rate of a copy that a transposition reaches.
        library_scratch: bytes of transposed arrays that one product of the library takes at most.
        library_gain: percent by which a library launch has to be faster, by this model; and by the
            time of a launch.

        benchmark_flops: of the largest product that tuning measures at its full extents.
        benchmark_elements: of its arrays together.
    """

    multiprocessors: int = threshold(132, 1, 2**10)
    nest_iterations: int = threshold(128, 0, _FAR)
    block_points: int = threshold(2**15, 0, _FAR)
    nest_blocks: int = threshold(1024, 1, 2**20)
    least_mnk: int = threshold(4, 1, _FAR)
    split_k: int = threshold(128, 1, _FAR)
    splits: int = threshold(32, 1, 64)
    few_elements: int = threshold(2**14, 0, _FAR)
    long_sum: int = threshold(64, 1, _FAR)
    sum_blocks: int = threshold(4, 1, 64)
    lane_points: int = threshold(24, 1, _FAR)
    expression_leaves: int = threshold(80, 1, 1000)

    flops_per_byte: int = threshold(14, 1, 1000)
    launch_bytes: int = threshold(2**24, 0, _FAR)
    library_percent: int = threshold(100, 1, 100)
    tensor_percent: int = threshold(94, 1, 100)
    blocked_percent: int = threshold(78, 1, 100)
    tile_percent: int = threshold(60, 1, 100)
    point_percent: int = threshold(4, 1, 100)
    copy_percent: int = threshold(60, 1, 100)
    library_scratch: int = threshold(2**32, 0, _FAR)
    library_gain: int = threshold(3, 0, 100)

    benchmark_flops: int = threshold(10**12, 1, _FAR)
    benchmark_elements: int = threshold(2**29, 1, _FAR)

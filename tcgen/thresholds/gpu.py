"""Thresholds of lowering to CUDA.

A matrix product is ``C[m,n] += A[m,k] * B[k,n]``: m, n and k stand for groups of axes, and for the
number of their points under the planning extents.
"""

from __future__ import annotations

from dataclasses import dataclass

from .legal_range import UNBOUNDED, threshold
from .time_model import GpuRates


@dataclass(frozen=True, slots=True)
class GpuThresholds(GpuRates):
    """Thresholds of lowering to CUDA, with the rates of :class:`.time_model.GpuRates`.

    Attributes:
        nest_iterations: least independent iterations that keep a GPU busy; if there are so many,
            thread blocks walk them.
        block_points: points of the largest iteration that a thread block walks if there are fewer.
        summed_bytes: bytes of the largest array of which each block of a nest adds up a copy.
        nest_blocks: most thread blocks of a nest; each takes further iterations in turn.
        least_mnk: m, n and k from which threadblock tiles pay.
        split_k: least points of k in each split.
        splits: most thread blocks that divide the k of one tile (split-K).
        few_elements: elements below which one thread for each leaves a GPU idle.
        long_sum: points of a sum from which the threads of a block add up one of few elements.
        sum_blocks: thread blocks of sums for each multiprocessor.
        lane_points: values of a variable from which the lanes of a warp take them in turn.
        expression_leaves: most arrays read in one expression; the loads of more do not fit
            registers.

        symmetric_flops: flops of the smallest contraction whose symmetry is searched for; launching
            the copies of a smaller one takes longer than its product.
        symmetric_copy_flops: flops in the time in which an element is copied.

        library_scratch: most bytes of transposed arrays that one product of the library takes.
        library_gain: least gain of a library launch in percent of the predicted time of a generated
            kernel; the gain must also exceed the time of a launch.

        benchmark_tilings: most tilings of a product that tuning measures, those of least estimate.
        benchmark_flops: flops of the largest product that tuning measures at its full extents.
        benchmark_elements: elements of all arrays of that product.
    """

    nest_iterations: int = threshold(128, 0, UNBOUNDED)
    block_points: int = threshold(2**15, 0, UNBOUNDED)
    summed_bytes: int = threshold(2**15, 0, 2**24)
    nest_blocks: int = threshold(1024, 1, 2**20)
    least_mnk: int = threshold(4, 1, UNBOUNDED)
    split_k: int = threshold(128, 1, UNBOUNDED)
    splits: int = threshold(32, 1, 64)
    few_elements: int = threshold(2**14, 0, UNBOUNDED)
    long_sum: int = threshold(64, 1, UNBOUNDED)
    sum_blocks: int = threshold(4, 1, 64)
    lane_points: int = threshold(24, 1, UNBOUNDED)
    expression_leaves: int = threshold(80, 1, 1000)

    symmetric_flops: int = threshold(10**9, 1, UNBOUNDED)
    symmetric_copy_flops: int = threshold(200, 0, UNBOUNDED)

    library_scratch: int = threshold(2**32, 0, UNBOUNDED)
    library_gain: int = threshold(3, 0, 100)

    benchmark_tilings: int = threshold(3, 0, 10)
    benchmark_flops: int = threshold(10**12, 1, UNBOUNDED)
    benchmark_elements: int = threshold(2**29, 1, UNBOUNDED)

"""Thresholds of lowering to C and of its printer.

A matrix product is ``C[m,n] += A[m,k] * B[k,n]``: m, n and k stand for groups of axes, and for the
number of their points under the planning extents. Work is counted in multiply-adds (2 flops each).
Sizes are in elements unless a name says bytes or flops.
"""

from __future__ import annotations

from dataclasses import dataclass

from .legal_range import UNBOUNDED, threshold
from .time_model import CpuRates


@dataclass(frozen=True, slots=True)
class CpuThresholds(CpuRates):
    """Thresholds of lowering to C and of its printer, with those of :class:`.time_model.CpuRates`.

    Attributes:
        gemv_multiply_adds: multiply-adds of the smallest matrix-vector product for which an operand
            is copied.

        thin_side: largest value of the smallest of m, n and k for which the generated kernel
            computes a product that the BLAS could compute without copies.
        thin_multiply_adds: multiply-adds of the smallest product that is thin in this sense.
        thin_mn: smallest m and n of a thin product, about a tile of registers.
        thin_mn_float64: smallest m and n of a thin product of doubles if k is at least ``thin_k``.
        thin_k: k from which the time of storing C does not matter.
        gemv_vectors: most vectors that generated matrix-vector loops multiply at once; the kernel
            multiplies more.
        gemv_length: least length of these vectors; the kernel takes shorter ones.
        gemv_matrix: least elements of the matrix of these loops; the kernel takes smaller ones.

        unpacked_mn: m (or n) up to which a large B (or A) is read in place instead of packed.
        unpacked_m: m up to which B is read in place if its unit-stride axis is summed or k is
            short.
        unpacked_operand: elements from which an operand counts as large for these rules.
        short_k: k up to which a sum counts as short.
        staged_n: n up to which the kernel transposes tiles of C instead of a large A.
        staged_k: k up to which tiles are staged, at most the KC of the kernel.
        any_order_k: k from which C may be stored in any order, so that n follows the memory order
            of B.
        any_order_m_per_k: largest m, in multiples of k, for which n follows the memory order of B.

        cached_operand: elements of an operand that stays in a cache while it is packed, in any
            layout.
        copied_operand: elements of the largest operand that is transposed as a whole.
        slice_elements: elements of a transposed slice of a larger operand.
        slice_mn: points of m (or n) in a transposed slice, which packs the other operand again.
        largest_slice: elements of the largest slice; packed operands with more elements are
            unpacked in slices.
        gathered_slice: elements of the largest slice of a factor that is gathered in its groups of
            symmetric indices.
        transposed_target: elements of A for each element of C from which C is transposed instead.
        repacked: elements that may be packed again for each transposed one.
        sliced_least: n (or m) from which transposed slices pay.
        sliced_most: n (or m) up to which they pay; a larger one hides the time of packing.

        summed_images: most elements of an operand that are added up for one element of its
            antisymmetrised copy.
        pair_flops: flops of the smallest contraction whose exchange symmetry is searched for.

        copied_points: points of the smallest loop nest for which an operand is transposed.
        copied_reuse: points for each transposed element from which that pays.
        l1_elements: elements that stay in the L1 cache.
        l2_elements: elements that stay in the L2 cache together with other data.
        tlb_pages: pages in the TLB; a loop that meets more pages between two elements of a cache
            line is blocked. At -1 every loop of that kind is.
        batch_products: products at each point that loops over the batch compute without a
            transposed operand.
        batch_reread: elements of the larger operand for each one of the smaller operand.
        batch_lanes: points of the batch that fill vectors.
        batch_gemv: multiply-adds of a matrix-vector product below which vector loops are faster
            than a call of the BLAS.
        batch_dot: multiply-adds below which they are faster if they add up along the unit-stride
            axis.

        nested_points: points of a statement inside a sequential loop from which it pays to start
            threads for each iteration.
        busy_iterations: iterations that keep the threads of a machine busy.
        even_iterations: iterations that keep them busy if some take longer than others.
        iteration_points: points of the smallest iteration that is given to one thread.
        thread_bytes: private memory of a thread up to which iterations run in parallel.
        machine_threads: threads of a large machine, which share a memory limit.

        block_side: elements on each side of a block of a transposing loop; two blocks of doubles
            stay in the L1 cache.
        sum_piece: elements of a sum that a thread adds up at a time.

        piece_lines: lines of the kernels of a program from which its source has several pieces,
            and about those of a piece.
        short_percent: percent of a program's predicted time that loops may take which compilers
            optimise less, all of them together.

        benchmark_flops: flops of the largest product that tuning measures at its full extents.
        benchmark_elements: elements of all arrays of that product.
    """

    gemv_multiply_adds: int = threshold(2**12, 0, UNBOUNDED)

    thin_side: int = threshold(256, 0, UNBOUNDED)
    thin_multiply_adds: int = threshold(2**20, 0, UNBOUNDED)
    thin_mn: int = threshold(8, 0, UNBOUNDED)
    thin_mn_float64: int = threshold(2, 0, UNBOUNDED)
    thin_k: int = threshold(32, 0, UNBOUNDED)
    gemv_vectors: int = threshold(7, 0, UNBOUNDED)
    gemv_length: int = threshold(512, 0, UNBOUNDED)
    gemv_matrix: int = threshold(2**20, 0, UNBOUNDED)

    unpacked_mn: int = threshold(48, 0, UNBOUNDED)
    unpacked_m: int = threshold(120, 0, UNBOUNDED)
    unpacked_operand: int = threshold(2**17, 0, UNBOUNDED)
    short_k: int = threshold(64, 0, UNBOUNDED)
    staged_n: int = threshold(96, 0, UNBOUNDED)
    staged_k: int = threshold(384, 0, 384)
    any_order_k: int = threshold(8, 0, UNBOUNDED)
    any_order_m_per_k: int = threshold(32, 1, UNBOUNDED)

    cached_operand: int = threshold(2**14, 0, UNBOUNDED)
    copied_operand: int = threshold(2**19, 0, UNBOUNDED)
    slice_elements: int = threshold(2**17, 1, UNBOUNDED)
    slice_mn: int = threshold(1024, 1, UNBOUNDED)
    largest_slice: int = threshold(2**22, 1, UNBOUNDED)
    gathered_slice: int = threshold(2**19, 1, UNBOUNDED)
    transposed_target: int = threshold(2, 0, UNBOUNDED)
    repacked: int = threshold(2, 0, UNBOUNDED)
    sliced_least: int = threshold(16, 0, UNBOUNDED)
    sliced_most: int = threshold(2048, 0, UNBOUNDED)

    summed_images: int = threshold(6, 1, 6)
    pair_flops: int = threshold(10**6, 1, UNBOUNDED)

    copied_points: int = threshold(2**14, 0, UNBOUNDED)
    copied_reuse: int = threshold(2, 0, UNBOUNDED)
    l1_elements: int = threshold(2**12, 0, UNBOUNDED)
    l2_elements: int = threshold(2**15, 0, UNBOUNDED)
    tlb_pages: int = threshold(2**11, -1, UNBOUNDED)
    batch_products: int = threshold(16, 0, UNBOUNDED)
    batch_reread: int = threshold(4, 0, UNBOUNDED)
    batch_lanes: int = threshold(16, 1, UNBOUNDED)
    batch_gemv: int = threshold(2**11, 0, UNBOUNDED)
    batch_dot: int = threshold(2**5, 0, UNBOUNDED)

    nested_points: int = threshold(2**15, 0, UNBOUNDED)
    busy_iterations: int = threshold(64, 0, UNBOUNDED)
    even_iterations: int = threshold(256, 0, UNBOUNDED)
    iteration_points: int = threshold(2**12, 0, UNBOUNDED)
    thread_bytes: int = threshold(2**23, 0, UNBOUNDED)
    machine_threads: int = threshold(64, 1, UNBOUNDED)

    block_side: int = threshold(32, 1, 64)
    sum_piece: int = threshold(4096, 1, 2**30)

    piece_lines: int = threshold(800, 1, UNBOUNDED)
    short_percent: int = threshold(3, 0, 100)

    benchmark_flops: int = threshold(4 * 10**9, 1, UNBOUNDED)
    benchmark_elements: int = threshold(2**26, 1, UNBOUNDED)

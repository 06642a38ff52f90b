"""Thresholds of lowering to C and of its printer.

A matrix product is ``C[m,n] += A[m,k] * B[k,n]``: m, n and k stand for groups of axes, and for the
number of their points under the planning extents. Work is counted in multiply-adds (2 flops each).
Sizes are in elements unless a name says bytes or flops.
"""

from __future__ import annotations

from dataclasses import dataclass

from .legal_range import threshold

_FAR = 2**62  # above every size that a program can have


@dataclass(frozen=True, slots=True)
class CpuThresholds:
    """Thresholds of lowering to C and of its printer.

    Attributes:
        gemv_reuse: multiply-adds for each copied element from which a matrix-vector product is
            worth its copies.
        gemv_multiply_adds: of the smallest matrix-vector product for which an operand is copied.
        gemm_call: elements that are copied in the time of one more call of the BLAS.

        thin_side: largest value of the smallest of m, n and k for which the generated kernel
            computes a product that the BLAS could compute without copies.
        thin_multiply_adds: of the smallest such product.
        thin_mn: smallest m and n of such a product, about a tile of registers.
        thin_mn_float64: the same for doubles, if k is at least ``thin_k``.
        thin_k: k from which the time of storing C does not matter.
        gemv_vectors: most vectors that generated matrix-vector loops multiply at once, instead of
            the kernel, ...
        gemv_length: ... if they are at least this long ...
        gemv_matrix: ... and the matrix has at least this many elements.

        unpacked_mn: m (or n) up to which a large B (or A) is read in place instead of packed.
        unpacked_m: the same for m where B's unit-stride axis is summed or k is short.
        unpacked_operand: elements from which an operand counts as large for these rules.
        short_k: k up to which a sum counts as short.
        staged_n: n up to which the kernel transposes tiles of C instead of a large A.
        staged_k: k up to which tiles are staged, at most the KC of the kernel.
        any_order_k: k from which the order in which C is stored does not matter, so that n follows
            the memory order of B, ...
        any_order_m_per_k: ... unless m is more than this many times k.

        cached_operand: elements of an operand that stays in a cache while it is packed, whatever
            its layout.
        copied_operand: elements of the largest operand that is transposed as a whole.
        slice_elements: elements of a transposed slice of a larger operand.
        slice_mn: points of m (or n) in such a slice, which packs the other operand again.
        largest_slice: elements of the largest slice; packed operands with more elements are
            unpacked in slices.
        gathered_slice: elements of the largest slice of a factor that is gathered in its groups of
            symmetric indices.
        transposed_target: elements of A for each element of C from which C is transposed instead.
        repacked: elements that may be packed again for each transposed one.
        sliced_least: n (or m) from which transposed slices pay, ...
        sliced_most: ... and up to which: a larger one hides the time of packing.

        pair_copy_flops: flops in the time in which an element of a symmetric pair is copied.
        group_reads: pairs copied in the time in which whole axes read an element of a larger group.
        pair_flops: of the smallest contraction whose exchange symmetry is searched for.

        copied_points: points of the smallest loop nest for which an operand is transposed.
        copied_reuse: points for each transposed element from which that pays.
        l1_elements: elements that stay in the first-level cache.
        l2_elements: elements that stay in the second-level cache together with other data.
        tlb_pages: pages whose addresses the processor remembers (TLB); a loop that meets more of
            them between two elements of a cache line is blocked. At -1 every such loop is.
        batch_products: products at each point that loops over the batch compute without a
            transposed operand.
        batch_reread: elements of the larger operand for each one of the smaller operand.
        batch_lanes: points of the batch that fill vectors.
        batch_gemv: multiply-adds of a matrix-vector product below which vector loops are faster
            than a call of the BLAS.
        batch_dot: the same where the loops add up along the unit-stride axis.

        nested_points: points of a statement inside a sequential loop from which threads are worth
            being started for each iteration.
        busy_iterations: iterations that keep the threads of a machine busy.
        even_iterations: iterations that do so if some take longer than others.
        iteration_points: points of the smallest iteration that is given to a thread by itself.
        thread_bytes: private memory of a thread up to which iterations run in parallel.
        machine_threads: threads of a large machine, which share a memory limit.

        block_side: elements on each side of a block of a transposing loop; two blocks of doubles
            stay in the first-level cache.
        sum_piece: elements of a sum that a thread adds up at a time.

        benchmark_flops: of the largest product that tuning measures at its full extents.
        benchmark_elements: of its arrays together.
    """

    gemv_reuse: int = threshold(4, 0, _FAR)
    gemv_multiply_adds: int = threshold(2**12, 0, _FAR)
    gemm_call: int = threshold(1000, 0, _FAR)

    thin_side: int = threshold(256, 0, _FAR)
    thin_multiply_adds: int = threshold(2**20, 0, _FAR)
    thin_mn: int = threshold(8, 0, _FAR)
    thin_mn_float64: int = threshold(2, 0, _FAR)
    thin_k: int = threshold(32, 0, _FAR)
    gemv_vectors: int = threshold(7, 0, _FAR)
    gemv_length: int = threshold(512, 0, _FAR)
    gemv_matrix: int = threshold(2**20, 0, _FAR)

    unpacked_mn: int = threshold(48, 0, _FAR)
    unpacked_m: int = threshold(120, 0, _FAR)
    unpacked_operand: int = threshold(2**17, 0, _FAR)
    short_k: int = threshold(64, 0, _FAR)
    staged_n: int = threshold(96, 0, _FAR)
    staged_k: int = threshold(384, 0, 384)
    any_order_k: int = threshold(8, 0, _FAR)
    any_order_m_per_k: int = threshold(32, 1, _FAR)

    cached_operand: int = threshold(2**14, 0, _FAR)
    copied_operand: int = threshold(2**19, 0, _FAR)
    slice_elements: int = threshold(2**17, 1, _FAR)
    slice_mn: int = threshold(1024, 1, _FAR)
    largest_slice: int = threshold(2**22, 1, _FAR)
    gathered_slice: int = threshold(2**19, 1, _FAR)
    transposed_target: int = threshold(2, 0, _FAR)
    repacked: int = threshold(2, 0, _FAR)
    sliced_least: int = threshold(16, 0, _FAR)
    sliced_most: int = threshold(2048, 0, _FAR)

    pair_copy_flops: int = threshold(40, 0, _FAR)
    group_reads: int = threshold(2, 1, _FAR)
    pair_flops: int = threshold(10**6, 1, _FAR)

    copied_points: int = threshold(2**14, 0, _FAR)
    copied_reuse: int = threshold(2, 0, _FAR)
    l1_elements: int = threshold(2**12, 0, _FAR)
    l2_elements: int = threshold(2**15, 0, _FAR)
    tlb_pages: int = threshold(2**11, -1, _FAR)
    batch_products: int = threshold(16, 0, _FAR)
    batch_reread: int = threshold(4, 0, _FAR)
    batch_lanes: int = threshold(16, 1, _FAR)
    batch_gemv: int = threshold(2**11, 0, _FAR)
    batch_dot: int = threshold(2**5, 0, _FAR)

    nested_points: int = threshold(2**15, 0, _FAR)
    busy_iterations: int = threshold(64, 0, _FAR)
    even_iterations: int = threshold(256, 0, _FAR)
    iteration_points: int = threshold(2**12, 0, _FAR)
    thread_bytes: int = threshold(2**23, 0, _FAR)
    machine_threads: int = threshold(64, 1, _FAR)

    block_side: int = threshold(32, 1, 64)
    sum_piece: int = threshold(4096, 1, 2**30)

    benchmark_flops: int = threshold(4 * 10**9, 1, _FAR)
    benchmark_elements: int = threshold(2**26, 1, _FAR)

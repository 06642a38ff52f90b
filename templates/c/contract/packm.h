#ifndef TC_PACKM_H
#define TC_PACKM_H
/* Packing of micro-panels: MR rows of A or NR columns of B, one k after the other. A complex product is a real one of
 * twice the k: A is packed as the columns (re, im) and (-im, re), B as the rows re and im, so that a column of a tile
 * is a column of C.
 *
 * ``row`` and ``k_offset`` are scatter vectors: of the m or n of a micro-panel, and of k.
 */
#include "scatter.h"
#include "simd.h"

#if TC_REALS == 1
/* Copy whole micro-panels of B whose columns are contiguous; each row of B is read from its first to its last. */
TC_NOINLINE void tc_pack_contiguous_b(tc_real *restrict to, int64_t panels, int64_t k, const tc_real *restrict from,
    const int64_t *k_offset, tc_real alpha)
{
    for (int64_t p = 0; p < k; ++p, to += TC_NR) {
        const tc_real *source = from + k_offset[p];
        tc_real *target = to;
        for (int64_t q = 0; q < panels; ++q, target += k*TC_NR, source += TC_NR) {
            for (int n = 0; n < TC_NR; n += TC_SIDE) {
                const int j = (int)tc_min(n, TC_NR - TC_SIDE);
                *(tc_short_any *)(target + j) = alpha**(const tc_short_any *)(source + j);
            }
        }
    }
}

/* Transpose a square, whose rows have the offsets ``row``, to rows that are ``pitch`` apart. */
TC_INLINE void tc_pack_square(tc_real *restrict to, int64_t pitch, const tc_real *restrict from, const int64_t *row,
    tc_real alpha)
{
    tc_short x[TC_SIDE];
    TC_UNROLL(8)
    for (int n = 0; n < TC_SIDE; ++n) {
        const tc_real *const source = from + row[n];
        __builtin_prefetch(source + 2*TC_LINE, 0, 3);  /* most often of the next squares */
        x[n] = alpha**(const tc_short_any *)source;
    }
    tc_transpose_short(x);
    TC_UNROLL(8)
    for (int n = 0; n < TC_SIDE; ++n) *(tc_short_any *)(to + n*pitch) = x[n];
}

/* Pack ``rows`` rows whose k are contiguous, at least a square of both. The last squares overlap others. GCC keeps
 * squares in memory where this is a part of a larger function.
 */
TC_NOINLINE void tc_pack_squares(tc_real *restrict to, int64_t width, int64_t rows, int64_t k,
    const tc_real *restrict from, const int64_t *row, tc_real alpha)
{
    for (int64_t q = 0; q < k; q += TC_SIDE) {
        const int64_t start = tc_min(q, k - TC_SIDE);
        for (int64_t n = 0; n < rows; n += TC_SIDE) {
            const int64_t first = tc_min(n, rows - TC_SIDE);
            tc_pack_square(to + start*width + first, width, from + start, row + first, alpha);
        }
    }
}

/* Pack ``rows`` contiguous rows; the rest of the micro-panel's ``width`` is zero. */
TC_NOINLINE void tc_pack_columns(tc_real *restrict to, int64_t width, int64_t rows, int64_t k,
    const tc_real *restrict from, const int64_t *k_offset, tc_real alpha)
{
    const int64_t whole = rows/TC_LANES*TC_LANES;
    for (int64_t p = 0; p < k; ++p, to += width) {
        const tc_real *source = from + k_offset[p];
        int64_t n = 0;
        for (; n < whole; n += TC_LANES) *(tc_vec_any *)(to + n) = alpha**(const tc_vec_any *)(source + n);
        for (; n + TC_SIDE <= rows; n += TC_SIDE) {
            *(tc_short_any *)(to + n) = alpha**(const tc_short_any *)(source + n);
        }
        for (; n < rows; ++n) to[n] = alpha*source[n];
        for (; n < width; ++n) to[n] = 0;
    }
}

/* Pack a micro-panel of any strides, times alpha; rows beyond ``rows`` are zero. */
TC_NOINLINE void tc_pack(tc_real *restrict to, int64_t width, int64_t rows, int64_t k, const tc_scalar *restrict from,
    const int64_t *row, const int64_t *k_offset, tc_real alpha)
{
    if (tc_is_contiguous(row, rows)) {
        tc_pack_columns(to, width, rows, k, from + row[0], k_offset, alpha);
        return;
    }
    for (int64_t p = 0, end; p < k; p = end) {
        end = p + tc_run_length(k_offset + p, k - p);
        if (end - p >= TC_SIDE && rows >= TC_SIDE) {
            tc_pack_squares(to + p*width, width, rows, end - p, from + k_offset[p], row, alpha);
            continue;
        }
        for (int64_t run; end < k; end += run) {
            run = tc_run_length(k_offset + end, k - end);
            if (run >= TC_SIDE && rows >= TC_SIDE) break;
        }
        for (int64_t n = 0, last; n < rows; n = last) {
            last = n + tc_run_length(row + n, rows - n);
            for (int64_t q = p; q < end; ++q) {
                const tc_real *const source = from + row[n] + k_offset[q];
                tc_real *const target = to + q*width + n;
                int64_t r = 0;
                for (; r + TC_SIDE <= last - n; r += TC_SIDE) {
                    *(tc_short_any *)(target + r) = alpha**(const tc_short_any *)(source + r);
                }
                for (; r < last - n; ++r) target[r] = alpha*source[r];
            }
        }
    }
    for (int64_t q = 0; rows < width && q < k; ++q) {
        for (int64_t r = rows; r < width; ++r) to[q*width + r] = 0;
    }
}
#define tc_pack_a tc_pack
#define tc_pack_b tc_pack
#else
TC_NOINLINE void tc_pack_a(tc_real *restrict to, int64_t width, int64_t rows, int64_t k,
    const tc_scalar *restrict from, const int64_t *row, const int64_t *k_offset, tc_real alpha)
{
    for (int64_t p = 0; p < k; ++p, to += 2*width) {
        for (int64_t n = 0; n < rows; ++n) {
            const tc_real *x = (const tc_real *)(from + row[n] + k_offset[p]);
            to[2*n] = to[width + 2*n + 1] = alpha*x[0];
            to[2*n + 1] = alpha*x[1];
            to[width + 2*n] = -alpha*x[1];
        }
        for (int64_t n = 2*rows; n < width; ++n) to[n] = to[width + n] = 0;
    }
}

TC_NOINLINE void tc_pack_b(tc_real *restrict to, int64_t width, int64_t rows, int64_t k,
    const tc_scalar *restrict from, const int64_t *row, const int64_t *k_offset, tc_real alpha)
{
    for (int64_t p = 0; p < k; ++p, to += 2*width) {
        for (int64_t n = 0; n < rows; ++n) {
            const tc_real *x = (const tc_real *)(from + row[n] + k_offset[p]);
            to[n] = alpha*x[0];
            to[width + n] = alpha*x[1];
        }
        for (int64_t n = rows; n < width; ++n) to[n] = to[width + n] = 0;
    }
}
#endif
#endif

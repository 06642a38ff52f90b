#ifndef TC_STORE_TRANSPOSED_H
#define TC_STORE_TRANSPOSED_H
/* A block of C that was computed into a staging buffer with its unit-stride axis across the vectors: it is transposed
 * by squares of vectors, TC_LANES m by a cache line of C each, and stored.
 */
#include "minmax.h"
#include "simd.h"

#define TC_SQUARES_AHEAD 4  /* Squares between the prefetch of a line of C and the store to it. */

/* A square: where its first element is, in the buffer and in C; its column, m and element of the unit-stride axis. */
typedef struct {
    const tc_real *from;
    tc_real *to;
    int64_t column, m, element;
} tc_square;

/* The block: ``columns`` of ``m`` by ``run`` elements of the unit-stride axis. In the buffer these lie ``pitch`` reals
 * apart and columns ``width`` of them; in C, m and columns have the offsets c_m and c_column.
 */
typedef struct {
    const tc_real *from;
    int64_t pitch, width, columns, m, run;
    tc_real *c;
    const int64_t *c_m, *c_column;
    int add, non_temporal;
    int64_t left;  /* squares that are not stored yet */
    tc_square next, ahead;
} tc_transposed;

static inline void tc_next_square(const tc_transposed *t, tc_square *at)
{
    at->from += TC_LINE*t->pitch;
    at->to += TC_LINE;
    if ((at->element += TC_LINE) < t->run) return;
    at->element = 0;
    if ((at->m += TC_LANES) >= t->m) {
        at->m = 0;
        if (++at->column == t->columns) return;
    }
    at->from = t->from + at->column*t->width*t->pitch + at->m;
    at->to = t->c + t->c_column[at->column];
}

static inline void tc_begin_transposed(tc_transposed *t)
{
    t->left = t->columns*((t->m + TC_LANES - 1)/TC_LANES)*((t->run + TC_LINE - 1)/TC_LINE);
    t->next = t->ahead = (tc_square){t->from, t->c + t->c_column[0], 0, 0, 0};
    for (int n = 0; n < TC_SQUARES_AHEAD && t->ahead.column < t->columns; ++n) tc_next_square(t, &t->ahead);
}

/* Prefetch the lines of C that a square is stored to. */
static inline void tc_prefetch_square(const tc_transposed *t, const tc_square *at)
{
    const tc_real *const to = at->to + tc_min(TC_LINE, t->run - at->element) - 1;
    const int64_t m = tc_min(TC_LANES, t->m - at->m);
    for (int64_t n = 0; n < m; ++n) TC_PREFETCH_C(to + t->c_m[at->m + n]);
}

/* Transpose and store a whole square, or what there is of one at an edge of the block. */
TC_INLINE void tc_store_square(const tc_transposed *t, const tc_square *at, const int whole, const int non_temporal)
{
    const int64_t *const c_m = t->c_m + at->m, m = whole ? TC_LANES : tc_min(TC_LANES, t->m - at->m);
    const tc_real *from = at->from;
    TC_UNROLL(4)
    for (int f = 0; f < TC_LINE; f += TC_LANES) {
        const int64_t run = whole ? TC_LANES : tc_min(TC_LANES, t->run - at->element - f);
        tc_vec x[TC_LANES];
        TC_UNROLL(16)
        for (int n = 0; n < TC_LANES; ++n, from += t->pitch) x[n] = *(const tc_vec_any *)from;
        tc_transpose(x);
        TC_UNROLL(16)
        for (int n = 0; n < TC_LANES; ++n) {
            if (n >= m || run <= 0) break;
            tc_real *const to = at->to + c_m[n] + f;
            if (!whole) {
                tc_store_lanes(to, x[n], 0, run, t->add);
            } else if (non_temporal) {
                TC_STREAM(to, x[n]);
            } else {
                if (t->add) x[n] += *(const tc_vec_any *)to;
                *(tc_vec_any *)to = x[n];
            }
        }
    }
}

/* Transpose and store the next ``count`` squares of a block. */
TC_NOINLINE void tc_store_squares(tc_transposed *t, int64_t count)
{
    const int64_t last = tc_max(0, t->left - count);
    for (; t->left > last; --t->left, tc_next_square(t, &t->next)) {
        const tc_square *const at = &t->next;
        if (!t->non_temporal && t->ahead.column < t->columns) {
            tc_prefetch_square(t, &t->ahead);
            tc_next_square(t, &t->ahead);
        }
        if (t->m - at->m < TC_LANES || t->run - at->element < TC_LINE) tc_store_square(t, at, 0, 0);
        else if (t->non_temporal) tc_store_square(t, at, 1, 1);
        else tc_store_square(t, at, 1, 0);
    }
}
#endif

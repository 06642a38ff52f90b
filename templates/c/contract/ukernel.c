/* A library of micro-kernels, by the vectors of MR. TC_READ_A and TC_READ_B say how they read their operands. */
#include "ukernel.h"

#define TC_IN_PLACE 0
#define TC_PACKED 1
#ifndef TC_READ_A
#define TC_READ_A TC_PACKED
#define TC_READ_B TC_PACKED
#endif

/* Cache level to which lines are prefetched, as __builtin_prefetch counts: 3 is the first level, 2 the second. */
#if TC_READ_A == TC_PACKED && TC_READ_B == TC_PACKED
#define TC_LEVEL 2
#else
#define TC_LEVEL TC_PREFETCH_LEVEL
#endif

/* The products of each k up to ``end``, unrolled, with a prefetch at each of them or without. */
#define TC_PRODUCTS(times, prefetching)                                              \
    TC_UNROLL(times)                                                                 \
    for (; p < end; ++p) {                                                           \
        if (prefetching) __builtin_prefetch(from + prefetch[p], 0, TC_LEVEL);           \
        const tc_real *const column_a = TC_READ_A == TC_PACKED ? a : a + a_k[p];        \
        tc_vec x[TC_MR_VECTORS];                                                     \
        TC_UNROLL(3)                                                                 \
        for (int v = 0; v < vectors; ++v) {                                          \
            x[v] = *(const tc_vec_any *)(column_a + v*TC_LANES);                     \
            TC_LOADED(x[v]);                                                         \
        }                                                                            \
        TC_UNROLL(8)                                                                 \
        for (int j = 0; j < TC_NR; ++j) {                                            \
            const tc_real y = TC_READ_B == TC_PACKED ? b[j] : column_b[j][b_k[p]];      \
            TC_UNROLL(3)                                                             \
            for (int v = 0; v < vectors; ++v) sum[j][v] += x[v]*y;                   \
        }                                                                            \
        if (TC_READ_A == TC_PACKED) a += vectors*TC_LANES;                              \
        if (TC_READ_B == TC_PACKED) b += TC_NR;                                         \
    }

TC_INLINE void tc_multiply(const tc_tiles *t, const int vectors)
{
    const int64_t k = t->k, prefetches = t->prefetches, *prefetch = t->prefetch;
    const int64_t *b_column = t->b_column, *c_column = t->c_column;
    const int64_t *const a_k = t->a_k, *const b_k = t->b_k;
    const char *const from = t->prefetch_from;
    const int store = t->store;
    const tc_origin *origin = t->origin;
    const tc_real *panel_a = t->a, *panel_b = t->b;
    for (int64_t tile = t->tiles; tile > 0; --tile) {
        tc_real *const c = (tc_real *)(t->c + origin->c);
        tc_vec sum[TC_NR][TC_MR_VECTORS];
        TC_UNROLL(8)
        for (int j = 0; j < TC_NR; ++j) {
            TC_UNROLL(3)
            for (int v = 0; v < vectors; ++v) sum[j][v] = (tc_vec){0};
        }
        if (store == TC_RESUME) {
            TC_UNROLL(8)
            for (int j = 0; j < TC_NR; ++j) {
                const tc_real *const at = c + TC_REALS*c_column[j];
                TC_UNROLL(3)
                for (int v = 0; v < vectors; ++v) sum[j][v] = *(const tc_vec_any *)(at + v*TC_LANES);
            }
        }
        if (t->prefetch_c) {
            for (int j = 0; j < TC_NR; ++j) {
                const tc_real *const to = c + TC_REALS*c_column[j];
                TC_UNROLL(3)
                for (int v = 0; v < vectors; ++v) TC_PREFETCH_C(to + v*TC_LANES);
                TC_PREFETCH_C(to + vectors*TC_LANES - 1);
            }
        }
        const tc_real *a = TC_READ_A == TC_PACKED ? panel_a : panel_a + origin->a, *b = panel_b, *column_b[TC_NR];
        if (TC_READ_A != TC_PACKED) __asm__("" : "+r"(a));  /* one address, to which each k adds its own */
        TC_UNROLL(8)
        for (int j = 0; j < TC_NR; ++j) column_b[j] = TC_READ_B == TC_PACKED ? b + j : b + b_column[j];
        int64_t p = 0, end = tc_min(k, prefetches);
        TC_PRODUCTS(TC_UNROLL_PREFETCHING, 1)
        end = k;
        TC_PRODUCTS(TC_UNROLL_PRODUCTS, 0)
        for (int64_t n = k; n < prefetches; ++n) __builtin_prefetch(from + prefetch[n], 0, TC_LEVEL);
        prefetch += prefetches;
        if (store == TC_NON_TEMPORAL) {
            TC_UNROLL(8)
            for (int j = 0; j < TC_NR; ++j) {
                tc_real *const to = c + TC_REALS*c_column[j];
                TC_UNROLL(3)
                for (int v = 0; v < vectors; ++v) TC_STREAM(to + v*TC_LANES, sum[j][v]);
            }
        } else {
            TC_UNROLL(8)
            for (int j = 0; j < TC_NR; ++j) {
                tc_real *const to = c + TC_REALS*c_column[j];
                TC_UNROLL(3)
                for (int v = 0; v < vectors; ++v) {
                    tc_vec_any *const at = (tc_vec_any *)(to + v*TC_LANES);
                    if (store == TC_ADD) sum[j][v] += *at;
                    *at = sum[j][v];
                }
            }
        }
        if (t->along_panels) {
            ++origin;
            panel_a += TC_READ_A == TC_PACKED ? t->slot : 0;
        } else {
            c_column += TC_NR;
            b_column += TC_READ_B == TC_PACKED ? 0 : TC_NR;
            panel_b += TC_READ_B == TC_PACKED ? k*TC_NR : 0;
        }
    }
}

#define TC_UKERNEL(vectors)                                                           \
    static __attribute__((noinline)) void tc_ukernel_##vectors(const tc_tiles *t)     \
    {                                                                                 \
        tc_multiply(t, vectors);                                                      \
    }
TC_UKERNEL(1)
TC_UKERNEL(2)
#if TC_MR_VECTORS > 2
TC_UKERNEL(3)
#else
#define tc_ukernel_3 0
#endif
const tc_ukernels TC_NAME(tc_made) = {0, tc_ukernel_1, tc_ukernel_2, tc_ukernel_3};

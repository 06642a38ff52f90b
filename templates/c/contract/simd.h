#ifndef TC_SIMD_H
#define TC_SIMD_H
/* Vectors of TC_VECTOR_BYTES, by the extensions of GCC and clang: non-temporal and masked stores, transposes. */
#include "element.h"
#include "target.h"

/* Reals of a vector, as a number that the preprocessor can paste, and of a cache line. */
#define TC_LANES TC_PASTE(TC_PASTE(TC_LANES_, TC_VECTOR_BYTES), TC_PASTE(_, TC_REAL_BYTES))
#define TC_LANES_64_8 8
#define TC_LANES_64_4 16
#define TC_LANES_32_8 4
#define TC_LANES_32_4 8
#define TC_LANES_16_8 2
#define TC_LANES_16_4 4
#define TC_LINE (64/TC_REAL_BYTES)

/* Reals of the m dimension in a tile of the micro-kernel. */
#define TC_MR (TC_MR_VECTORS*TC_LANES)

/* A vector in registers, one at any address, and lane numbers. */
typedef tc_real tc_vec __attribute__((vector_size(TC_VECTOR_BYTES)));
typedef tc_real tc_vec_any __attribute__((vector_size(TC_VECTOR_BYTES), aligned(TC_REAL_BYTES), may_alias));
typedef tc_lane tc_lanes __attribute__((vector_size(TC_VECTOR_BYTES)));

/* Prefetch of a line of C that is written in part. */
#if TC_PREFETCH_C_LEVEL == 3
#define TC_PREFETCH_C(place) __builtin_prefetch(place, 1, 3)
#else
#define TC_PREFETCH_C(place) __builtin_prefetch(place, 0, 2)
#endif

/* TC_LOADED(x) keeps a vector of A in its register. With FMA and only 16 registers compilers read it from memory
 * again for each column, which is more reads than a processor does beside so many products.
 */
#if defined(__FMA__) && !defined(__AVX512F__)
#define TC_LOADED(x) __asm__("" : "+x"(x))
#else
#define TC_LOADED(x) ((void)0)
#endif

/* TC_STREAM(to, x) stores a vector to an aligned address without reading its line into the caches; TC_FENCE() orders
 * such stores before what follows.
 */
#if defined(__clang__)
#define TC_STREAM(to, x) __builtin_nontemporal_store(x, (tc_vec *)(to))
#define TC_FENCE() __sync_synchronize()
#elif defined(__AVX__)
#if defined(__AVX512F__) && TC_REAL_BYTES == 8
#define TC_STREAM(to, x) __builtin_ia32_movntpd512((double *)(to), x)
#elif defined(__AVX512F__)
#define TC_STREAM(to, x) __builtin_ia32_movntps512((float *)(to), x)
#elif TC_REAL_BYTES == 8
#define TC_STREAM(to, x) __builtin_ia32_movntpd256((double *)(to), x)
#else
#define TC_STREAM(to, x) __builtin_ia32_movntps256((float *)(to), x)
#endif
#define TC_FENCE() __builtin_ia32_sfence()
#else
#define TC_STREAM(to, x) (*(tc_vec *)(to) = (x))
#define TC_FENCE() ((void)0)
#endif

/* Lists of lane numbers for transposes: in each square of 2 h lanes, the upper right and the lower left quarter
 * change places. ``l`` is the number of lanes of a vector.
 */
#define TC_UPPER(n, l, h) ((n) & (h) ? (l) + (n) - (h) : (n))
#define TC_LOWER(n, l, h) ((n) & (h) ? (l) + (n) : (n) + (h))
#define TC_LIST_2(F, l, h) F(0, l, h), F(1, l, h)
#define TC_LIST_4(F, l, h) TC_LIST_2(F, l, h), F(2, l, h), F(3, l, h)
#define TC_LIST_8(F, l, h) TC_LIST_4(F, l, h), F(4, l, h), F(5, l, h), F(6, l, h), F(7, l, h)
#define TC_LIST_16(F, l, h) TC_LIST_8(F, l, h), F(8, l, h), F(9, l, h), F(10, l, h), F(11, l, h), \
    F(12, l, h), F(13, l, h), F(14, l, h), F(15, l, h)
#define TC_LIST TC_PASTE(TC_LIST_, TC_LANES)

/* Store lanes first to last of a vector, or add them to what is there; lane 0 belongs to ``to``. */
#if defined(__AVX512F__) && !defined(__clang__) && TC_REAL_BYTES == 8
#define TC_MASK(first, last) ((unsigned char)((1u << (last)) - (1u << (first))))
#define TC_MASKED_LOAD(from, mask) __builtin_ia32_loadupd512_mask(from, (tc_vec){0}, mask)
#define TC_MASKED_STORE(to, mask, x) __builtin_ia32_storeupd512_mask(to, x, mask)
#elif defined(__AVX512F__) && !defined(__clang__)
#define TC_MASK(first, last) ((unsigned short)((1u << (last)) - (1u << (first))))
#define TC_MASKED_LOAD(from, mask) __builtin_ia32_loadups512_mask(from, (tc_vec){0}, mask)
#define TC_MASKED_STORE(to, mask, x) __builtin_ia32_storeups512_mask(to, x, mask)
#elif defined(__AVX__) && !defined(__AVX512F__)
#if TC_REAL_BYTES == 8
typedef long long tc_mask __attribute__((vector_size(TC_VECTOR_BYTES)));
#define TC_MASKED_LOAD(from, mask) __builtin_ia32_maskloadpd256((const tc_vec *)(from), (tc_mask)(mask))
#define TC_MASKED_STORE(to, mask, x) __builtin_ia32_maskstorepd256((tc_vec *)(to), (tc_mask)(mask), x)
#else
#define TC_MASKED_LOAD(from, mask) __builtin_ia32_maskloadps256((const tc_vec *)(from), mask)
#define TC_MASKED_STORE(to, mask, x) __builtin_ia32_maskstoreps256((tc_vec *)(to), mask, x)
#endif
#define TC_NUMBER(n, l, h) n
#define TC_NUMBERS ((tc_lanes){TC_LIST(TC_NUMBER, 0, 0)})
#define TC_MASK(first, last) ((TC_NUMBERS >= (tc_lane)(first)) & (TC_NUMBERS < (tc_lane)(last)))
#endif
static inline void tc_store_lanes(tc_real *to, tc_vec x, int64_t first, int64_t last, int add)
{
#ifdef TC_MASK
    if (add) x += TC_MASKED_LOAD(to, TC_MASK(first, last));
    TC_MASKED_STORE(to, TC_MASK(first, last), x);
#else
    for (int64_t n = first; n < last; ++n) to[n] = add ? to[n] + x[n] : x[n];
#endif
}

/* Some lanes of two vectors, by constant numbers. */
#if defined(__clang__)
#define TC_SHUFFLE(lanes, one, two, ...) __builtin_shufflevector(one, two, __VA_ARGS__)
#else
#define TC_SHUFFLE(lanes, one, two, ...) __builtin_shuffle(one, two, (lanes){__VA_ARGS__})
#endif

/* One step of a transpose of ``count`` vectors: quarters of squares of 2 h lanes change places. */
#define TC_EXCHANGE(type, lanes, list, l, h, count)                               \
    TC_UNROLL(16)                                                                 \
    for (int n = 0; n < (count); ++n) {                                           \
        if (n & (h)) continue;                                                    \
        const type one = x[n], two = x[n + (h)];                                  \
        x[n] = TC_SHUFFLE(lanes, one, two, list(TC_UPPER, l, h));                 \
        x[n + (h)] = TC_SHUFFLE(lanes, one, two, list(TC_LOWER, l, h));           \
    }

/* Transpose TC_LANES vectors in place. */
TC_INLINE void tc_transpose(tc_vec *x)
{
    TC_EXCHANGE(tc_vec, tc_lanes, TC_LIST, TC_LANES, 1, TC_LANES)
#if TC_LANES >= 4
    TC_EXCHANGE(tc_vec, tc_lanes, TC_LIST, TC_LANES, 2, TC_LANES)
#endif
#if TC_LANES >= 8
    TC_EXCHANGE(tc_vec, tc_lanes, TC_LIST, TC_LANES, 4, TC_LANES)
#endif
#if TC_LANES >= 16
    TC_EXCHANGE(tc_vec, tc_lanes, TC_LIST, TC_LANES, 8, TC_LANES)
#endif
}

/* Short vectors of TC_SIDE reals, at most TC_NR, with which packing transposes squares. */
#if TC_LANES < TC_NR
#define TC_SIDE TC_LANES
#elif TC_NR == 8
#define TC_SIDE 8
#else
#define TC_SIDE 4
#endif
#define TC_SIDE_LIST TC_PASTE(TC_LIST_, TC_SIDE)
typedef tc_real tc_short __attribute__((vector_size(TC_SIDE*TC_REAL_BYTES)));
typedef tc_real tc_short_any __attribute__((vector_size(TC_SIDE*TC_REAL_BYTES), aligned(TC_REAL_BYTES), may_alias));
typedef tc_lane tc_short_lanes __attribute__((vector_size(TC_SIDE*TC_REAL_BYTES)));

/* Transpose TC_SIDE short vectors in place. */
TC_INLINE void tc_transpose_short(tc_short *x)
{
#if TC_SIDE >= 8
    TC_EXCHANGE(tc_short, tc_short_lanes, TC_SIDE_LIST, TC_SIDE, 4, TC_SIDE)
#endif
#if TC_SIDE >= 4
    TC_EXCHANGE(tc_short, tc_short_lanes, TC_SIDE_LIST, TC_SIDE, 2, TC_SIDE)
#endif
    TC_EXCHANGE(tc_short, tc_short_lanes, TC_SIDE_LIST, TC_SIDE, 1, TC_SIDE)
}
#endif

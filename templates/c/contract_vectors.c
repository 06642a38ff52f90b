/* With 16 registers and FMA compilers read a vector from memory once for each column instead of keeping it in
 * a register: more reads than a processor does beside that many products.
 */
#if defined(__FMA__) && !defined(__AVX512F__)
#define TC_KEEP(x) __asm__("" : "+x"(x))
#else
#define TC_KEEP(x) ((void)0)
#endif

#if defined(__AVX512F__) && !defined(__clang__)
#define TC_STREAM_d(place, x) __builtin_ia32_movntpd512((double *)(place), x)
#define TC_STREAM_s(place, x) __builtin_ia32_movntps512((float *)(place), x)
#define TC_FENCE() __builtin_ia32_sfence()
#elif defined(__AVX__) && !defined(__clang__)
#define TC_STREAM_d(place, x) __builtin_ia32_movntpd256((double *)(place), x)
#define TC_STREAM_s(place, x) __builtin_ia32_movntps256((float *)(place), x)
#define TC_FENCE() __builtin_ia32_sfence()
#elif defined(__clang__)
#define TC_STREAM_d(place, x) __builtin_nontemporal_store(x, place)
#define TC_STREAM_s(place, x) __builtin_nontemporal_store(x, place)
#define TC_FENCE() __sync_synchronize()
#else
#define TC_STREAM_d(place, x) (*(place) = (x))
#define TC_STREAM_s(place, x) (*(place) = (x))
#define TC_FENCE() ((void)0)
#endif

#if defined(__AVX512F__) && !defined(__clang__)
#define TC_MASKED(load, store, bits, to, x, first, last, add)       \
    do {                                                            \
        const bits tc_m = (bits)((1u << (last)) - (1u << (first))); \
        __typeof__(x) tc_x = x;                                     \
        if (add) tc_x += load(to, (__typeof__(x)){0}, tc_m);        \
        store(to, tc_x, tc_m);                                      \
    } while (0)
#define TC_MASK_d(to, x, first, last, add) TC_MASKED(__builtin_ia32_loadupd512_mask, \
    __builtin_ia32_storeupd512_mask, unsigned char, to, x, first, last, add)
#define TC_MASK_s(to, x, first, last, add) TC_MASKED(__builtin_ia32_loadups512_mask, \
    __builtin_ia32_storeups512_mask, unsigned short, to, x, first, last, add)
#define TC_MASK_z TC_MASK_d
#elif TC_VECTOR == 32
#define TC_MASKED(load, store, pick, lanes, to, x, first, last, add)          \
    do {                                                                      \
        typedef pick tc_lane __attribute__((vector_size(TC_VECTOR)));         \
        const tc_lane tc_n = lanes, tc_m = (tc_n >= (pick)(first)) & (tc_n < (pick)(last)); \
        __typeof__(x) tc_x = x;                                               \
        if (add) tc_x += load((const __typeof__(x) *)(to), tc_m);             \
        store((__typeof__(x) *)(to), tc_m, tc_x);                             \
    } while (0)
#define TC_UP_TO(...) {__VA_ARGS__}
#define TC_MASK_d(to, x, first, last, add) TC_MASKED(__builtin_ia32_maskloadpd256, \
    __builtin_ia32_maskstorepd256, long long, TC_UP_TO(0, 1, 2, 3), to, x, first, last, add)
#define TC_MASK_s(to, x, first, last, add) TC_MASKED(__builtin_ia32_maskloadps256, \
    __builtin_ia32_maskstoreps256, int, TC_UP_TO(0, 1, 2, 3, 4, 5, 6, 7), to, x, first, last, add)
#define TC_MASK_z TC_MASK_d
#endif
#define TC_STREAM_z TC_STREAM_d

/* Lanes of two vectors, by numbers that are known when it runs: one of them holds a cache line. */
#if defined(__AVX512F__) && !defined(__clang__)
#define TC_MERGE_d(one, two, from) __builtin_shuffle(one, two, from)
#define TC_MERGE_s TC_MERGE_d
#elif defined(__AVX512F__)
#define TC_MERGE_d(one, two, from) __builtin_ia32_vpermi2varpd512(one, from, two)
#define TC_MERGE_s(one, two, from) __builtin_ia32_vpermi2varps512(one, from, two)
#endif

/* Lanes of two vectors, by their numbers. */
#if defined(__clang__)
#define TC_SHUFFLE(pick, one, two, ...) __builtin_shufflevector(one, two, __VA_ARGS__)
#else
#define TC_SHUFFLE(pick, one, two, ...) __builtin_shuffle(one, two, (pick){__VA_ARGS__})
#endif

/* A vector of halves of two. */
typedef double tc_whole __attribute__((vector_size(TC_VECTOR)));
#if TC_VECTOR == 16
typedef double tc_half __attribute__((aligned(4), may_alias));
#define TC_JOIN(low, high) ((tc_whole){low, high})
#else
typedef double tc_half __attribute__((vector_size(TC_VECTOR/2), aligned(4), may_alias));
#if defined(__clang__) && TC_VECTOR == 64
#define TC_JOIN(low, high) __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7)
#elif defined(__clang__)
#define TC_JOIN(low, high) __builtin_shufflevector(low, high, 0, 1, 2, 3)
#elif TC_VECTOR == 64
#define TC_JOIN(low, high) \
    __builtin_ia32_insertf64x4_mask(__builtin_ia32_pd512_256pd(low), high, 1, (tc_whole){0}, 255)
#else
#define TC_JOIN(low, high) __builtin_ia32_vinsertf128_pd256(__builtin_ia32_pd256_pd(low), high, 1)
#endif
#endif

/* Lists of lanes, for squares that are turned. */
#define TC_BELOW(n, l, h) ((n) & (h) ? (l) + (n) - (h) : (n))
#define TC_ABOVE(n, l, h) ((n) & (h) ? (l) + (n) : (n) + (h))
#define TC_NUMBER(n, l, h) (n)
#define TC_EACH_2(F, l, h) F(0, l, h), F(1, l, h)
#define TC_EACH_4(F, l, h) TC_EACH_2(F, l, h), F(2, l, h), F(3, l, h)
#define TC_EACH_8(F, l, h) TC_EACH_4(F, l, h), F(4, l, h), F(5, l, h), F(6, l, h), F(7, l, h)
#define TC_EACH_16(F, l, h) TC_EACH_8(F, l, h), F(8, l, h), F(9, l, h), F(10, l, h), F(11, l, h), \
    F(12, l, h), F(13, l, h), F(14, l, h), F(15, l, h)

#ifndef TC_ABI_H
#define TC_ABI_H
/* What kernels and the contraction library share: axis groups, and the size of packing memory. */
#include "minmax.h"
#include "sizes.h"

static inline int64_t tc_aligned(int64_t bytes) { return (bytes + 63)/64*64; }  /* to whole cache lines */

/* A group of axes, the last one the fastest: lengths, and strides in two operands, in elements. */
typedef struct {
    int axes;
    const int64_t *length, *x, *y;
} tc_group;

/* Which operands a contraction packs; the other one is read in place. */
enum { TC_PACK_A = 1, TC_PACK_B = 2 };

/* c (+)= alpha a b, summed over k: m has strides in a and c, n in b and c, k in a and b, batch in a and b, target is
 * the batch in c. Each thread packs in memory of its own, memory_bytes apart. The result is 0 where the library cannot
 * compute the contraction; then nothing is done. Each block asks whether *stop is set: then C is left unfinished.
 */
typedef int tc_contraction(int threads, int scheme, const tc_group *m, const tc_group *n, const tc_group *k,
    const tc_group *batch, const tc_group *target, double alpha, const void *a, const void *b, int add, void *c,
    char *memory, int64_t memory_bytes, const volatile int *stop);

/* Elements of the packed blocks of A and of B, and the most m, n and k of a block. */
typedef struct {
    int64_t packed_a, packed_b, m, n, k;
} tc_block_sizes;

/* reals: 2 for complex elements, of which a packed one is two by two reals. Blocks of floats hold twice as many
 * elements. Where the target is staged with A read in place, two staging buffers take the place of the block of A.
 */
static inline tc_block_sizes tc_block_sizes_of(
    int64_t element, int reals, int64_t m, int64_t n, int64_t k, int staged_a)
{
    const int64_t more = 8*reals/element;
    tc_block_sizes most = {0};
    most.k = tc_min(TC_KC/reals, k > 1 ? k : 1);
    most.packed_a = tc_min(more*(staged_a ? TC_STAGE_ROOM : TC_MC*TC_KC)/(reals*reals), (3*m + TC_EDGE)*most.k);
    most.packed_b = tc_min(more*TC_NC*TC_KC, (n + TC_EDGE)*most.k);
    most.m = tc_min(TC_MOST_M, m + TC_EDGE);
    most.n = tc_min(TC_MOST_N, n + TC_EDGE);
    return most;
}

/* Bytes in which one thread packs. */
static inline int64_t tc_packing(int64_t element, int reals, int64_t m, int64_t n, int64_t k, int staged_a)
{
    const tc_block_sizes most = tc_block_sizes_of(element, reals, m, n, k, staged_a);
    return tc_aligned(most.packed_a*element*reals) + tc_aligned(most.packed_b*element)
        + tc_aligned(16*(most.m + most.n + most.k));
}
#endif

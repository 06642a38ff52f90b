/* What kernels and the library of contractions share: groups of axes, and the memory to pack in. */

/* Bytes rounded up to whole cache lines. */
static inline int64_t tc_aligned(int64_t bytes) { return (bytes + 63)/64*64; }

/* A group of axes, the last one the fastest: lengths, and strides in two operands. */
typedef struct {
    int axes;
    const int64_t *length, *x, *y;
} tc_group;

enum { TC_PACK_LEFT = 1, TC_PACK_RIGHT = 2 };
enum { TC_DEPTH = $depth };  /* most summed points of a block */

/* c (+)= alpha a b, summed over k: m has strides in a and c, n in b and c, k in a and b, batch in a
 * and b, target is the batch in c. Each thread packs in memory of its own, memory_bytes apart.
 * 0 where the library cannot, and nothing is done.
 */
typedef int tc_contraction(int threads, int scheme, const tc_group *m, const tc_group *n,
    const tc_group *k, const tc_group *batch, const tc_group *target, double alpha,
    const void *a, const void *b, int add, void *c, char *memory, int64_t memory_bytes);

/* Elements of packed blocks; rows, columns and summed points of a block. */
typedef struct {
    int64_t left, right, rows, columns, depth;
} tc_blocks;

/* parts: 2 for complex elements, of which a packed one is two by two real ones. Blocks of floats
 * hold twice as many elements. Instead of a left block, staged rows have two buffers of the target.
 */
static inline tc_blocks tc_blocks_of(
    int64_t element, int parts, int64_t rows, int64_t columns, int64_t summed, int staged_rows)
{
    const int64_t more = 8*parts/element;
    tc_blocks most = {0};
    most.depth = tc_min(TC_DEPTH/parts, summed > 1 ? summed : 1);
    const int64_t left = staged_rows ? $staged : $left;
    most.left = tc_min(more*left/(parts*parts), (3*rows + $spare)*most.depth);
    most.right = tc_min(more*$right, (columns + $spare)*most.depth);
    most.rows = tc_min($rows, rows + $spare);
    most.columns = tc_min($columns, columns + $spare);
    return most;
}

/* Bytes in which one thread packs. */
static inline int64_t tc_packing(
    int64_t element, int parts, int64_t rows, int64_t columns, int64_t summed, int staged_rows)
{
    const tc_blocks most = tc_blocks_of(element, parts, rows, columns, summed, staged_rows);
    return tc_aligned(most.left*element*parts) + tc_aligned(most.right*element)
        + tc_aligned(16*(most.rows + most.columns + most.depth));
}

/* A panel of a block: its first row, rows and vectors. It is full if it fills its vectors, and its rows
 * are not scattered in the target.
 */
typedef struct {
    int64_t row, rows;
    int height, scattered, full;
} tc_strip_$kind;

/* A block of the target: panels and columns, with the operands for some summed points. */
typedef struct {
    const tc_strip_$kind *strips;
    const tc_origin *origins;  /* of the strips */
    int64_t row, panels, columns, depth, slot;
    const $real *packed_a, *packed_b;
    const $scalar *a, *b;
    $scalar *c;
    const int64_t *a_row, *a_depth, *b_column, *b_depth, *c_row, *c_column;
    int add;
    tc_fetch_$kind *fetch, *then;  /* one after the other */
    int64_t fetches;  /* for each tile */
    int64_t group;    /* columns that stay in the first-level cache while panels go by */
    int64_t ahead;    /* lines of packed columns, fetched before their turn */
    tc_stream_$kind *stream;
} tc_block_$kind;

/* ``tiles`` tiles of a block from panel q and column j on, but for where they are stored; what computes
 * them.
 */
static inline __attribute__((always_inline)) tc_run_$kind *tc_operands_$kind(
    const tc_work_$kind *w, const tc_block_$kind *block, int64_t q, int64_t j, int64_t tiles,
    tc_tiles_$kind *t)
{
    const tc_strip_$kind strip = block->strips[q];
    t->tiles = tiles;
    t->depth = block->depth*$parts;
    t->join = 0;
    t->slot = block->slot;
    t->origin = block->origins + q;
    t->a = block->packed_a + q*block->slot;
    t->b = block->packed_b + j*t->depth;
    tc_fetch_$kind *const fetch = block->fetch->left > 0 ? block->fetch : block->then;
    t->fetch = fetch->list;
    t->fetch_from = (const char *)fetch->from;
    t->fetches = tc_take_evenly_$kind(fetch, block->fetches, tiles);
#if $parts == 1
    if (!w->left && strip.rows == strip.height*w->cut.lanes) {
        t->a = block->a;
        t->a_column = block->a_depth;
        return tc_left_$kind[strip.height];
    }
    if (!w->right) {
        t->b = block->b;
        t->b_column = block->b_column + j;
        t->b_row = block->b_depth;
        return tc_right_$kind[strip.height];
    }
#else
    (void)w;
#endif
    return tc_packed_$kind[strip.height];
}

/* Tiles that are computed together from panel q and column j on: along panels that are alike up to
 * panel ``last``, or along columns up to that one.
 */
static inline int64_t tc_alike_$kind(
    const tc_block_$kind *block, int64_t q, int64_t j, int along_panels, int64_t last)
{
    const int64_t most = tc_max(1, TC_FETCHES/block->fetches);
    if (!along_panels) return tc_max(1, tc_min(most, (last - j)/TC_COLUMNS));
    int64_t count = 1;
    while (count < most && q + count < last && block->strips[q + count].full
        && block->strips[q + count].height == block->strips[q].height) {
        ++count;
    }
    return count;
}

/* One tile of a block or, if they are whole, several of them, along panels or columns up to the last
 * one; how many.
 */
static inline int64_t tc_some_$kind(const tc_work_$kind *w, const tc_block_$kind *block,
    int64_t q, int64_t j, int along_panels, int64_t last)
{
    const tc_strip_$kind strip = block->strips[q];
    const int64_t across = tc_min(TC_COLUMNS, block->columns - j);
    const int whole = strip.full && across == TC_COLUMNS;
    const int64_t tiles = whole ? tc_alike_$kind(block, q, j, along_panels, last) : 1;
    tc_tiles_$kind t;
    tc_run_$kind *const run = tc_operands_$kind(w, block, q, j, tiles, &t);
    t.along_panels = along_panels;
    t.c = block->c;
    t.c_column = block->c_column + j;
    t.add = block->add;
    t.leave = whole && w->stream == TC_DIRECT ? &block->stream->pending : 0;
    tc_give_$kind(&t, &block->stream->pending);
    t.far = !t.leave;
    if (whole) {
        run(&t);
    } else {
        tc_edge_$kind(run, &t, strip.rows, across, strip.scattered ? block->c_row + strip.row : 0);
    }
    return tiles;
}

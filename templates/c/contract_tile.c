/* Lines of the target on their way past the caches. Stores past the caches come to a halt when many
 * follow each other, so that tiles leave their lines here and the next tile stores one at each step, unless
 * the processor takes them at once (TC_AT_ONCE).
 */
typedef struct {
    $real *to;
    const $real *from;
} tc_line_$kind;

typedef struct {
    int64_t count;
    tc_line_$kind line[TC_PENDING];
    tc_vec_$kind value[TC_PENDING];
} tc_pending_$kind;

static void tc_await_$kind(tc_pending_$kind *pending)
{
    pending->count = 0;
    for (int n = 0; n < TC_PENDING; ++n) pending->line[n].from = (const $real *)(pending->value + n);
}

/* Store the line ``along`` reals behind the one that is given. */
static inline void tc_pass_line_$kind(const tc_line_$kind *line, int64_t along)
{
    TC_STREAM_$kind((tc_vec_$kind *)(line->to + along), *(const tc_vec_$kind *)(line->from + along));
}

static void tc_drain_$kind(tc_pending_$kind *pending)
{
    for (int64_t n = 0; n < pending->count; ++n) tc_pass_line_$kind(pending->line + n, 0);
    pending->count = 0;
}

/* Where the first row of a panel lies: in an operand that is read in place, and in the target. */
typedef struct {
    int64_t a, c;
} tc_origin;

/* Tiles of the target that follow each other, along panels or along columns. Each has a panel of the
 * left operand and columns of the right one, packed or, with the places of its columns and rows, where
 * it lies.
 */
typedef struct {
    int64_t tiles, depth, slot;  /* slot: reals from one packed panel to the next */
    int along_panels;
    const $real *a, *b;
    const int64_t *a_column, *b_column, *b_row;
    /* Beside a block that is turned: runs of so many columns, as far apart each, from there on, the first one of
     * so many.
     */
    int64_t a_step, a_run, a_start, a_bend;
    $scalar *c;
    const tc_origin *origin;
    const int64_t *c_column;
    const char *fetch_from;  /* lines that are read later, bytes from here: */
    const int64_t *fetch;    /* so many for each tile, one a step */
    const tc_line_$kind *store;    /* lines of other tiles that are stored, too: */
    int64_t next_line, next_along;  /* the next of the list, or those that follow the first one */
    int64_t fetches, stores;
    tc_pending_$kind *leave;  /* where lines are left that the next tile stores, or not */
    void *join;               /* columns that are put together (tc_joining), or not */
    int add, far;  /* to what is there; out of the caches */
    $real *copy;                /* where the first tile packs what it reads in place for the others, or not, */
    tc_turning_$kind *turning;  /* and a block that is turned meanwhile, so many halves of its squares: */
    int64_t halves, gap;        /* the next one after this many steps */
} tc_tiles_$kind;

/* Let tiles store what waits, or the first one if others leave lines. */
static inline void tc_give_$kind(tc_tiles_$kind *t, tc_pending_$kind *pending)
{
    const int64_t tiles = t->leave ? 1 : t->tiles, rest = pending->count%tiles;
    for (int64_t n = pending->count - rest; n < pending->count; ++n) {
        tc_pass_line_$kind(pending->line + n, 0);
    }
    t->store = pending->line;
    t->next_line = 1;
    t->next_along = 0;
    t->stores = pending->count/tiles;
    pending->count = 0;
}

/* Products of one step: a column of the left operand from there on, by a row of the right one. */
#define TC_PRODUCTS(from)                                                        \
    tc_vec_$kind x[TC_HEIGHT];                                                           \
    _Pragma("GCC unroll 3")                                                      \
    for (int v = 0; v < height; ++v) {                                           \
        x[v] = *(const tc_any_$kind *)((from) + v*TC_LANES);                     \
        TC_KEEP(x[v]);                                                           \
    }                                                                            \
    _Pragma("GCC unroll 8")                                                      \
    for (int j = 0; j < TC_COLUMNS; ++j) {                                       \
        const $real y = right == TC_PACKED ? b[j] : column[j][b_row[p]];         \
        _Pragma("GCC unroll 3")                                                  \
        for (int v = 0; v < height; ++v) sum[j][v] += x[v]*y;                    \
    }                                                                            \
    if (right == TC_PACKED) b += TC_COLUMNS;

/* Steps from p up to the end, several written one behind the other, ``storing`` and ``fetching`` a line at each
 * of them: what does not change within them is not asked at each.
 */
#define TC_STEPS(times, storing, fetching)                                       \
    TC_UNROLL(times)                                                             \
    for (; p < end; ++p) {                                                       \
        if (storing) {                                                           \
            tc_pass_line_$kind(store, along);                                    \
            store += next_line;                                                  \
            along += next_along;                                                 \
        }                                                                        \
        if (fetching) __builtin_prefetch(fetch_from + fetch[p], 0, 2);           \
        TC_PRODUCTS(left == TC_PACKED ? a : a + a_column[p])                     \
        if (left == TC_PACKED) a += height*TC_LANES;                             \
    }

static inline __attribute__((always_inline)) void tc_multiply_$kind(
    const tc_tiles_$kind *t, const int height, const int left, const int right)
{
    const int64_t depth = t->depth;
    const int64_t *b_column = t->b_column, *c_column = t->c_column;
    const tc_origin *origin = t->origin;
    const $real *panel = t->a, *columns = t->b;
    const int64_t *fetch = t->fetch;
    const char *const fetch_from = t->fetch_from;
    const tc_line_$kind *store = t->store;
    int64_t stores = t->stores, next_line = t->next_line, next_along = t->next_along, along = 0;
    for (int64_t tile = t->tiles; tile > 0; --tile) {
        tc_vec_$kind sum[TC_COLUMNS][TC_HEIGHT];
        _Pragma("GCC unroll 8")
        for (int j = 0; j < TC_COLUMNS; ++j) {
            _Pragma("GCC unroll 3")
            for (int v = 0; v < height; ++v) sum[j][v] = (tc_vec_$kind){0};
        }
        $real *const c = ($real *)(t->c + origin->c);
        if (t->far) {  /* the target arrives while the tile is computed */
            for (int j = 0; j < TC_COLUMNS; ++j) {
                const $real *const to = c + $parts*c_column[j];
                _Pragma("GCC unroll 3")
                for (int v = 0; v < height; ++v) TC_FETCH_TARGET(to + v*TC_LANES);
                TC_FETCH_TARGET(to + height*TC_LANES - 1);
            }
        }
        const int64_t fetches = t->fetches;
        const int64_t *const a_column = t->a_column, *const b_row = t->b_row;
        const $real *a = left == TC_PACKED ? panel : panel + origin->a, *b = columns;
        if (left != TC_PACKED) __asm__("" : "+r"(a));  /* one address, to which steps add theirs */
        const $real *column[TC_COLUMNS];
        _Pragma("GCC unroll 8")
        for (int j = 0; j < TC_COLUMNS; ++j) column[j] = right == TC_PACKED ? b + j : b + b_column[j];
        for (int64_t p = 0; p < depth;) {
            const int storing = p < stores, fetching = p < fetches;
            const int64_t end = tc_min(depth, tc_min(storing ? stores : depth, fetching ? fetches : depth));
            if (storing && fetching) {
                TC_STEPS(TC_TOGETHER, 1, 1)
            } else if (storing) {
                TC_STEPS(TC_TOGETHER, 1, 0)
            } else if (fetching) {
                TC_STEPS(TC_TOGETHER, 0, 1)
            } else {
                TC_STEPS(TC_ALONE, 0, 0)
            }
        }
        for (int64_t n = depth; n < stores; ++n, store += next_line, along += next_along) {
            tc_pass_line_$kind(store, along);
        }
        for (int64_t n = depth; n < fetches; ++n) __builtin_prefetch(fetch_from + fetch[n], 0, 2);
        fetch += fetches;
        tc_pending_$kind *const leave = t->leave;
#ifdef TC_MERGE_$kind
        if (TC_JOINS && height > 1 && t->join) {
            tc_join_columns_$kind(t->join, sum, c, c_column, height, t->along_panels);
        } else
#endif
        if (leave && TC_AT_ONCE) {
            _Pragma("GCC unroll 8")
            for (int j = 0; j < TC_COLUMNS; ++j) {
                $real *const to = c + $parts*c_column[j];
                _Pragma("GCC unroll 3")
                for (int v = 0; v < height; ++v) TC_STREAM_$kind((tc_vec_$kind *)(to + v*TC_LANES), sum[j][v]);
            }
            stores = 0;
        } else if (leave) {
            _Pragma("GCC unroll 8")
            for (int j = 0; j < TC_COLUMNS; ++j) {
                $real *const to = c + $parts*c_column[j];
                _Pragma("GCC unroll 3")
                for (int v = 0; v < height; ++v) {
                    leave->line[j*height + v].to = to + v*TC_LANES;
                    leave->value[j*height + v] = sum[j][v];
                }
            }
            store = leave->line;
            next_line = 1;
            next_along = along = 0;
            stores = leave->count = TC_COLUMNS*height;
        } else {
            const int add = t->add;
            _Pragma("GCC unroll 8")
            for (int j = 0; j < TC_COLUMNS; ++j) {
                $real *const to = c + $parts*c_column[j];
                _Pragma("GCC unroll 3")
                for (int v = 0; v < height; ++v) {
                    tc_any_$kind *const here = (tc_any_$kind *)(to + v*TC_LANES);
                    if (add) sum[j][v] += *here;
                    *here = sum[j][v];
                }
            }
        }
        if (t->along_panels) {
            ++origin;
            panel += left == TC_PACKED ? t->slot : 0;
        } else {
            c_column += TC_COLUMNS;
            b_column += right == TC_PACKED ? 0 : TC_COLUMNS;
            columns += right == TC_PACKED ? depth*TC_COLUMNS : 0;
        }
    }
}

typedef void tc_run_$kind(const tc_tiles_$kind *);
typedef tc_run_$kind *tc_heights_$kind[4];  /* none of 0; of one to three vectors */

/* Rows of a tile that are consecutive in the target and within one vector: the lanes first to last
 * of it, whose first lane of all belongs ``shift`` reals after the tile's first row.
 */
typedef struct {
    int64_t shift;
    int vector, first, last;
} tc_piece_$kind;

static int tc_pieces_$kind(const int64_t *c_row, int64_t rows, tc_piece_$kind *piece)
{
    const int64_t across = TC_LANES/$parts;
    int count = 0;
    for (int64_t n = 0, end; n < rows; n = end) {
        const int64_t lane = n%across, here = c_row ? c_row[n] - c_row[0] : n;
        end = n + 1;
        while (end < rows && end%across && (!c_row || c_row[end] == c_row[end - 1] + 1)) ++end;
        piece[count].shift = $parts*(here - lane);
        piece[count].vector = (int)(n/across);
        piece[count].first = (int)($parts*lane);
        piece[count++].last = (int)($parts*(lane + end - n));
    }
    return count;
}

/* A tile by way of a buffer, of which pieces are stored. */
static __attribute__((noinline)) void tc_pieced_$kind(tc_run_$kind *run, tc_tiles_$kind *tile,
    const tc_piece_$kind *piece, int pieces, int64_t columns)
{
    tc_vec_$kind whole[TC_COLUMNS][TC_HEIGHT];
    const tc_origin here = {tile->origin->a, 0};
    $scalar *const c = tile->c + tile->origin->c;
    int64_t places[TC_COLUMNS];
    $real *to[TC_COLUMNS];
    for (int64_t j = 0; j < TC_COLUMNS; ++j) places[j] = j*(TC_HEIGHT*TC_LANES/$parts);
    for (int64_t j = 0; j < columns; ++j) to[j] = ($real *)(c + tile->c_column[j]);
    const int add = tile->add;
    tile->origin = &here;
    tile->c = ($scalar *)whole[0];
    tile->c_column = places;
    tile->add = tile->far = 0;
    tile->leave = 0;
    run(tile);
    for (int n = 0; n < pieces; ++n) {
        const tc_piece_$kind p = piece[n];
        for (int64_t j = 0; j < columns; ++j) {
            tc_part_$kind(to[j] + p.shift, whole[j][p.vector], p.first, p.last, add);
        }
    }
}

/* A tile at an edge, or one whose rows are not consecutive. */
static __attribute__((noinline)) void tc_edge_$kind(tc_run_$kind *run,
    tc_tiles_$kind *tile, int64_t rows, int64_t columns, const int64_t *c_row)
{
    tc_piece_$kind piece[TC_HEIGHT*TC_LANES];
    const int pieces = tc_pieces_$kind(c_row, rows, piece);
    for (int64_t j = 0; j < columns; ++j) {
        const $real *const to = ($real *)(tile->c + tile->origin->c + tile->c_column[j]);
        for (int n = 0; n < pieces; ++n) {
            TC_FETCH_TARGET(to + piece[n].shift + piece[n].first);
            TC_FETCH_TARGET(to + piece[n].shift + piece[n].last - 1);
        }
    }
    tc_pieced_$kind(run, tile, piece, pieces, columns);
}

/* Register tile, packing, blocks, threads. A complex product is a real one
 * of twice the depth: the left operand is packed as the columns (re, im) and (-im, re), the right
 * one as the rows re and im, so that a column of the tile is a column of the target.
 */
#undef TC_LANES
#undef TC_EACH
#define TC_LANES (TC_VECTOR/$bytes)
#if TC_VECTOR/$bytes == 16
#define TC_EACH TC_EACH_16
#elif TC_VECTOR/$bytes == 8
#define TC_EACH TC_EACH_8
#elif TC_VECTOR/$bytes == 4
#define TC_EACH TC_EACH_4
#else
#define TC_EACH TC_EACH_2
#endif

typedef $real tc_vec_$kind __attribute__((vector_size(TC_VECTOR)));
typedef $real tc_any_$kind __attribute__((vector_size(TC_VECTOR), aligned($bytes), may_alias));
typedef $number tc_pick_$kind __attribute__((vector_size(TC_VECTOR)));

/* A block of TC_LANES rows becomes its transpose. */
#define TC_TURN(h)                                                                \
    {                                                                             \
        const tc_pick_$kind below = {TC_EACH(TC_BELOW, h)};                       \
        const tc_pick_$kind above = {TC_EACH(TC_ABOVE, h)};                       \
        _Pragma("GCC unroll 16")                                                  \
        for (int n = 0; n < TC_LANES; ++n) {                                      \
            if (n & (h)) continue;                                                \
            const tc_vec_$kind one = x[n], two = x[n + (h)];                      \
            x[n] = __builtin_shuffle(one, two, below);                            \
            x[n + (h)] = __builtin_shuffle(one, two, above);                      \
        }                                                                         \
    }
static inline __attribute__((always_inline)) void tc_turn_$kind(tc_vec_$kind *x)
{
#if TC_VECTOR/$bytes >= 16
    TC_TURN(8)
#endif
#if TC_VECTOR/$bytes >= 8
    TC_TURN(4)
#endif
#if TC_VECTOR/$bytes >= 4
    TC_TURN(2)
#endif
    TC_TURN(1)
}
#undef TC_TURN

#if $parts == 1
/* How many of the first panels of columns are consecutive, up to eight: they are read together. */
static int64_t tc_together_$kind(const int64_t *place, int64_t columns)
{
    int64_t run = 1;
    while (run < tc_min(columns, 8*TC_COLUMNS) && place[run] == place[run - 1] + 1) ++run;
    return run/TC_COLUMNS;
}

/* Pack whole panels whose columns are consecutive; rows are read from their first to their last. */
static void tc_copy_$kind($real *restrict to, int64_t panels, int64_t depth,
    const $real *restrict from, const int64_t *row, $real alpha)
{
    for (int64_t p = 0; p < depth; ++p, to += TC_COLUMNS) {
        const $real *source = from + row[p];
        $real *target = to;
        for (int64_t q = 0; q < panels; ++q, target += depth*TC_COLUMNS, source += TC_COLUMNS) {
            for (int n = 0; n < TC_COLUMNS; ++n) target[n] = alpha*source[n];
        }
    }
}

/* Copy ``rows`` rows of ``depth`` elements to columns of ``width``, zeros below; times alpha. */
static void tc_pack_$kind($real *restrict to, int64_t width, int64_t rows, int64_t depth,
    const $scalar *restrict from, const int64_t *row, const int64_t *column, $real alpha)
{
    if (tc_consecutive(row, rows)) {
        const int64_t whole = rows/TC_LANES*TC_LANES;
        for (int64_t p = 0; p < depth; ++p, to += width) {
            const $real *source = from + row[0] + column[p];
            int64_t n = 0;
            for (; n < whole; n += TC_LANES) {
                *(tc_any_$kind *)(to + n) = alpha**(const tc_any_$kind *)(source + n);
            }
            for (; n < rows; ++n) to[n] = alpha*source[n];
            for (; n < width; ++n) to[n] = 0;
        }
        return;
    }
    for (int64_t p = 0; p < depth;) {
        const int64_t block = tc_min(depth - p, TC_LANES);
        int64_t n = 0;
        if (block == TC_LANES && tc_consecutive(column + p, TC_LANES)) {
            for (; n + TC_LANES <= rows; n += TC_LANES) {
                tc_vec_$kind x[TC_LANES];
                _Pragma("GCC unroll 16")
                for (int r = 0; r < TC_LANES; ++r) {
                    x[r] = alpha**(const tc_any_$kind *)(from + row[n + r] + column[p]);
                }
                tc_turn_$kind(x);
                _Pragma("GCC unroll 16")
                for (int r = 0; r < TC_LANES; ++r) *(tc_any_$kind *)(to + r*width + n) = x[r];
            }
        }
        for (int64_t q = 0; q < block; ++q, to += width) {
            const $real *source = from + column[p + q];
            for (int64_t r = n; r < rows; ++r) to[r] = alpha*source[row[r]];
            for (int64_t r = rows; r < width; ++r) to[r] = 0;
        }
        p += block;
    }
}
#define TC_PACK_LEFT_$kind tc_pack_$kind
#define TC_PACK_RIGHT_$kind tc_pack_$kind
#else
static void tc_pack_left_$kind($real *restrict to, int64_t width, int64_t rows, int64_t depth,
    const $scalar *restrict from, const int64_t *row, const int64_t *column, $real alpha)
{
    for (int64_t p = 0; p < depth; ++p, to += 2*width) {
        for (int64_t n = 0; n < rows; ++n) {
            const $real *x = (const $real *)(from + row[n] + column[p]);
            to[2*n] = to[width + 2*n + 1] = alpha*x[0];
            to[2*n + 1] = alpha*x[1];
            to[width + 2*n] = -alpha*x[1];
        }
        for (int64_t n = 2*rows; n < width; ++n) to[n] = to[width + n] = 0;
    }
}

static void tc_pack_right_$kind($real *restrict to, int64_t width, int64_t rows, int64_t depth,
    const $scalar *restrict from, const int64_t *row, const int64_t *column, $real alpha)
{
    for (int64_t p = 0; p < depth; ++p, to += 2*width) {
        for (int64_t n = 0; n < rows; ++n) {
            const $real *x = (const $real *)(from + row[n] + column[p]);
            to[n] = alpha*x[0];
            to[width + n] = alpha*x[1];
        }
        for (int64_t n = rows; n < width; ++n) to[n] = to[width + n] = 0;
    }
}
#define TC_PACK_LEFT_$kind tc_pack_left_$kind
#define TC_PACK_RIGHT_$kind tc_pack_right_$kind
#endif

/* The first rows of a vector to memory, or added to it. */
static inline void tc_part_$kind($real *to, tc_vec_$kind x, int64_t rows, int add)
{
#ifdef TC_MASK_$kind
    TC_MASK_$kind(to, x, rows, add);
#else
    for (int64_t n = 0; n < rows; ++n) to[n] = add ? to[n] + x[n] : x[n];
#endif
}

/* One tile of the target: its panel of the left operand and its columns of the right one, each
 * packed or, with the places of its columns and rows, where it lies.
 */
typedef struct {
    int64_t depth;
    const $real *a, *b;
    const int64_t *a_column, *b_column, *b_row;
    $scalar *c;
    const int64_t *c_column;
    int64_t ahead;  /* what is read next, from a */
    int add, stream;
} tc_tile_$kind;

static inline __attribute__((always_inline)) void tc_multiply_$kind(
    const tc_tile_$kind *tile, const int height, const int left, const int right)
{
    tc_vec_$kind sum[TC_COLUMNS][3];
    _Pragma("GCC unroll 8")
    for (int j = 0; j < TC_COLUMNS; ++j) {
        _Pragma("GCC unroll 3")
        for (int v = 0; v < height; ++v) sum[j][v] = (tc_vec_$kind){0};
    }
    const $real *a = tile->a, *b = tile->b;
    const int64_t *const a_column = tile->a_column, *const b_row = tile->b_row;
    const int64_t depth = tile->depth;
    const $real *column[TC_COLUMNS];
    _Pragma("GCC unroll 8")
    for (int j = 0; j < TC_COLUMNS; ++j) column[j] = right ? b + j : b + tile->b_column[j];
    _Pragma("GCC unroll 1")
    for (int64_t p = 0; p < depth; ++p) {
        const $real *from = left == TC_PACKED ? a : a + a_column[p];
        tc_vec_$kind x[3];
        _Pragma("GCC unroll 3")
        for (int v = 0; v < height; ++v) x[v] = *(const tc_any_$kind *)(from + v*TC_LANES);
        if (left == TC_AHEAD) {
            const char *const next = (const char *)(from + tile->ahead);
            _Pragma("GCC unroll 4")
            for (int v = 0; v < height*TC_VECTOR; v += 64) __builtin_prefetch(next + v);
            __builtin_prefetch(next + height*TC_VECTOR - 1);
        }
        _Pragma("GCC unroll 8")
        for (int j = 0; j < TC_COLUMNS; ++j) {
            const $real y = right ? b[j] : column[j][b_row[p]];
            _Pragma("GCC unroll 3")
            for (int v = 0; v < height; ++v) sum[j][v] += x[v]*y;
        }
        if (left == TC_PACKED) a += height*TC_LANES;
        if (right) b += TC_COLUMNS;
    }
    _Pragma("GCC unroll 8")
    for (int j = 0; j < TC_COLUMNS; ++j) {
        $real *const to = ($real *)tile->c + $parts*tile->c_column[j];
        _Pragma("GCC unroll 3")
        for (int v = 0; v < height; ++v) {
            tc_any_$kind *const here = (tc_any_$kind *)(to + v*TC_LANES);
            if (tile->stream) TC_STREAM_$kind((tc_vec_$kind *)here, sum[j][v]);
            else if (tile->add) *here += sum[j][v];
            else *here = sum[j][v];
        }
    }
}

#define TC_TILE(height, left, right)                                                        \
    static __attribute__((noinline)) void tc_tile_${kind}_##height##left##right(            \
        const tc_tile_$kind *tile)                                                          \
    {                                                                                       \
        tc_multiply_$kind(tile, height, left, right);                                       \
    }
TC_TILE(1, 1, 1)
TC_TILE(2, 1, 1)
TC_TILE(3, 1, 1)
#if $parts == 1
TC_TILE(1, 0, 1)
TC_TILE(2, 0, 1)
TC_TILE(3, 0, 1)
TC_TILE(1, 1, 0)
TC_TILE(2, 1, 0)
TC_TILE(3, 1, 0)
TC_TILE(1, 2, 1)
TC_TILE(2, 2, 1)
TC_TILE(3, 2, 1)
#endif
#undef TC_TILE

typedef void tc_run_tile_$kind(const tc_tile_$kind *);

/* A tile at an edge, or one whose rows are not consecutive: by way of a buffer. */
static __attribute__((noinline)) void tc_edge_$kind(tc_run_tile_$kind *run,
    const tc_tile_$kind *tile, int64_t rows, int64_t columns, const int64_t *c_row)
{
    $real whole[TC_COLUMNS][3*TC_LANES] __attribute__((aligned(64)));
    int64_t places[TC_COLUMNS];
    for (int j = 0; j < TC_COLUMNS; ++j) places[j] = j*(3*TC_LANES/$parts);
    tc_tile_$kind inner = *tile;
    inner.c = ($scalar *)whole[0];
    inner.c_column = places;
    inner.add = inner.stream = 0;
    run(&inner);
    for (int64_t j = 0; j < columns; ++j) {
        $scalar *const to = tile->c + tile->c_column[j];
        if (!c_row) {
            for (int64_t n = 0; n < $parts*rows; n += TC_LANES) {
                tc_part_$kind(($real *)to + n, *(const tc_vec_$kind *)(whole[j] + n),
                    tc_min(TC_LANES, $parts*rows - n), tile->add);
            }
            continue;
        }
        const $scalar *const value = (const $scalar *)whole[j];
        for (int64_t i = 0; i < rows; ++i) {
            $scalar *const here = to + (c_row[i] - c_row[0]);
            *here = tile->add ? *here + value[i] : value[i];
        }
    }
}

/* A contraction: groups with their strides (m: a and c, n: b and c, k: a and b), how rows are cut,
 * which operands are packed, and the places of the batch.
 */
typedef struct {
    tc_walk m, n, k, batch, target;
    tc_cut cut;
    int left, right, add, stream, regular, inner_columns;
    $real alpha;
    const $scalar *a, *b;
    $scalar *c;
    tc_blocks blocks;
} tc_work_$kind;

/* The rows of some panels and some columns, for some points of the batch. */
static void tc_share_$kind(const tc_work_$kind *w, int64_t first_batch, int64_t last_batch,
    int64_t first_panel, int64_t last_panel, int64_t first_column, int64_t last_column,
    char *memory)
{
    static tc_run_tile_$kind *const packed[] = {
        0, tc_tile_${kind}_111, tc_tile_${kind}_211, tc_tile_${kind}_311};
#if $parts == 1
    static tc_run_tile_$kind *const left_in_place[] = {
        0, tc_tile_${kind}_101, tc_tile_${kind}_201, tc_tile_${kind}_301};
    static tc_run_tile_$kind *const right_in_place[] = {
        0, tc_tile_${kind}_110, tc_tile_${kind}_210, tc_tile_${kind}_310};
#endif
    const int64_t summed = tc_points(&w->k), most_depth = w->blocks.depth;
    const int64_t slot = 3*TC_LANES*$parts*most_depth;  /* reals of a panel */
    const int64_t wide = tc_min(w->blocks.columns, w->blocks.right/most_depth)/TC_COLUMNS*TC_COLUMNS;
    const int64_t high = tc_max(1, tc_min(w->blocks.left*$parts*$parts/slot,
        w->blocks.rows/(3*w->cut.lanes)));
    $real *const packed_a = ($real *)memory;
    memory += tc_aligned(w->blocks.left*(int64_t)sizeof($scalar)*$parts);
    $real *const packed_b = ($real *)memory;
    memory += tc_aligned(w->blocks.right*(int64_t)sizeof($scalar));
    int64_t *const a_row = (int64_t *)memory, *const c_row = a_row + w->blocks.rows;
    int64_t *const b_column = c_row + w->blocks.rows, *const c_column = b_column + w->blocks.columns;
    int64_t *const a_depth = c_column + w->blocks.columns, *const b_depth = a_depth + w->blocks.depth;
    for (int64_t batch = first_batch; batch < last_batch; ++batch) {
        int64_t a_start, b_start, c_start;
        tc_places(&w->batch, batch, 1, &a_start, &b_start);
        tc_places(&w->target, batch, 1, &c_start, &c_start);
        const $scalar *const a = w->a + a_start, *const b = w->b + b_start;
        for (int64_t j0 = first_column; j0 < last_column; j0 += wide) {
            const int64_t columns = tc_min(wide, last_column - j0);
            tc_places(&w->n, j0, columns, b_column, c_column);
            int64_t p0 = 0;
            do {
                const int64_t depth = tc_min(most_depth, summed - p0);
                tc_places(&w->k, p0, depth, a_depth, b_depth);
                for (int64_t j = 0; w->right && j < columns;) {
#if $parts == 1
                    const int64_t many = tc_together_$kind(b_column + j, columns - j);
                    if (many > 0) {
                        tc_copy_$kind(packed_b + j*depth*$parts, many, depth, b + b_column[j],
                            b_depth, w->alpha);
                        j += many*TC_COLUMNS;
                        continue;
                    }
#endif
                    TC_PACK_RIGHT_$kind(packed_b + j*depth*$parts, TC_COLUMNS,
                        tc_min(TC_COLUMNS, columns - j), depth, b, b_column + j, b_depth, w->alpha);
                    j += TC_COLUMNS;
                }
                const $real scale = w->right ? 1 : w->alpha;
                for (int64_t q0 = first_panel; q0 < last_panel; q0 += high) {
                    const int64_t panels = tc_min(high, last_panel - q0);
                    int height;
                    int64_t rows;
                    const int64_t r0 = tc_panel(&w->cut, q0, &height, &rows);
                    const int64_t r1 = tc_panel(&w->cut, q0 + panels - 1, &height, &rows) + rows;
                    tc_places(&w->m, r0, r1 - r0, a_row, c_row);
                    for (int64_t q = 0; q < panels; ++q) {
                        const int64_t row = tc_panel(&w->cut, q0 + q, &height, &rows) - r0;
                        if (!w->left && rows == height*w->cut.lanes) continue;
                        TC_PACK_LEFT_$kind(packed_a + q*slot, height*TC_LANES, rows, depth, a,
                            a_row + row, a_depth, scale);
                    }
                    /* The inner loop walks what lies closer together in the target. */
                    const int64_t across = columns/TC_COLUMNS + (columns%TC_COLUMNS > 0);
                    const int64_t tiles = panels*across;
                    for (int64_t t = 0; t < tiles; ++t) {
                        const int64_t q = w->inner_columns ? t/across : t%panels;
                        const int64_t j = (w->inner_columns ? t%across : t/panels)*TC_COLUMNS;
                        const int64_t row = tc_panel(&w->cut, q0 + q, &height, &rows) - r0;
                        tc_tile_$kind tile = {
                            .depth = depth*$parts,
                            .a = packed_a + q*slot,
                            .b = packed_b + j*depth*$parts,
                            .c = w->c + c_start + c_row[row],
                            .c_column = c_column + j,
                            .add = w->add || p0 > 0,
                        };
                        const int64_t across_here = tc_min(TC_COLUMNS, columns - j);
                        if (w->stream && across_here == TC_COLUMNS) {
                            uintptr_t places = 0;
                            for (int n = 0; n < TC_COLUMNS; ++n) {
                                places |= (uintptr_t)(tile.c + tile.c_column[n]);
                            }
                            tile.stream = places%TC_VECTOR == 0;
                        }
                        tc_run_tile_$kind *run = packed[height];
#if $parts == 1
                        int64_t column[TC_COLUMNS];
                        if (!w->left && rows == height*w->cut.lanes) {
                            tile.a = a + a_row[row];
                            tile.a_column = a_depth;
                            run = left_in_place[height];
                        } else if (!w->right) {
                            for (int n = 0; n < TC_COLUMNS; ++n) {
                                column[n] = b_column[tc_min(j + n, columns - 1)];
                            }
                            tile.b = b;
                            tile.b_column = column;
                            tile.b_row = b_depth;
                            run = right_in_place[height];
                        }
#endif
                        const int64_t *const scattered =
                            w->regular || tc_consecutive(c_row + row, rows) ? 0 : c_row + row;
                        if (scattered || across_here < TC_COLUMNS
                            || rows < height*w->cut.lanes) {
                            tc_edge_$kind(run, &tile, rows, across_here, scattered);
                        } else {
                            run(&tile);
                        }
                    }
                }
                p0 += depth;
            } while (p0 < summed);
        }
    }
    if (w->stream) TC_FENCE();
}

#if $parts == 1
/* Rows that lie in lanes, turned as they are stored: places of the rows, ``run`` consecutive
 * elements of each, from columns of ``pitch`` rows.
 */
static void tc_flush_$kind(const $real *from, int64_t pitch, int64_t rows, int64_t run, $real *c,
    const int64_t *c_row, int add)
{
    for (int64_t i = 0; i < rows; i += TC_LANES) {
        const int64_t high = tc_min(TC_LANES, rows - i);
        for (int64_t f = 0; f < run; f += TC_LANES) {
            const int64_t wide = tc_min(TC_LANES, run - f);
            tc_vec_$kind x[TC_LANES];
            _Pragma("GCC unroll 16")
            for (int n = 0; n < TC_LANES; ++n) {
                x[n] = *(const tc_any_$kind *)(from + (f + tc_min(n, wide - 1))*pitch + i);
            }
            tc_turn_$kind(x);
            if (high == TC_LANES && wide == TC_LANES && !add) {
                _Pragma("GCC unroll 16")
                for (int n = 0; n < TC_LANES; ++n) {
                    $real *const to = c + c_row[i + n] + f;
                    if ((uintptr_t)to%TC_VECTOR == 0) TC_STREAM_$kind((tc_vec_$kind *)to, x[n]);
                    else *(tc_any_$kind *)to = x[n];
                }
                continue;
            }
            _Pragma("GCC unroll 16")
            for (int n = 0; n < TC_LANES; ++n) {
                if (n < high) tc_part_$kind(c + c_row[i + n] + f, x[n], wide, add);
            }
        }
    }
}

/* Panels and runs of the target that go through a buffer: the target's fastest axis belongs to the
 * rows, of which the left operand's fastest axis is the last (``turned`` is its number), or to the
 * columns (turned < 0), of which it is the last. A share of the blocks of all threads.
 */
static void tc_stage_$kind(const tc_work_$kind *w, int turned, int64_t width, int64_t together,
    int64_t share, int64_t shares, char *memory)
{
    static tc_run_tile_$kind *const ahead[] = {
        0, tc_tile_${kind}_121, tc_tile_${kind}_221, tc_tile_${kind}_321};
    static tc_run_tile_$kind *const in_place[] = {
        0, tc_tile_${kind}_101, tc_tile_${kind}_201, tc_tile_${kind}_301};
    static tc_run_tile_$kind *const packed[] = {
        0, tc_tile_${kind}_111, tc_tile_${kind}_211, tc_tile_${kind}_311};
    static tc_run_tile_$kind *const right_in_place[] = {
        0, tc_tile_${kind}_110, tc_tile_${kind}_210, tc_tile_${kind}_310};
    const int64_t summed = tc_points(&w->k), batches = tc_points(&w->batch);
    const int64_t slot = 3*TC_LANES*summed, columns = tc_points(&w->n);
    $real *const left = ($real *)memory;
    memory += tc_aligned(w->blocks.left*(int64_t)sizeof($scalar));
    $real *const right = ($real *)memory;
    memory += tc_aligned(w->blocks.right*(int64_t)sizeof($scalar));
    int64_t *const c_row = (int64_t *)memory, *const a_row = c_row + w->blocks.rows;
    int64_t *const b_column = a_row + w->blocks.rows, *const c_column = b_column + w->blocks.columns;
    int64_t *const a_depth = c_column + w->blocks.columns, *const b_depth = a_depth + summed;
    tc_places(&w->k, 0, summed, a_depth, b_depth);
    tc_walk outer = turned < 0 ? w->n : w->m;
    const int last = outer.axes - 1;
    const int64_t rows = turned < 0 ? tc_points(&w->m) : w->m.length[last];
    const int64_t fast = outer.length[turned < 0 ? last : turned];
    const int64_t fast_step = turned < 0 ? outer.x[last] : outer.x[turned];
    const int64_t row_step = turned < 0 ? 0 : outer.y[last];
    if (turned >= 0) outer.length[turned] = 1;
    outer.length[last] = 1;
    const int64_t around = tc_points(&outer), runs = (fast + width - 1)/width;
    const int64_t groups = (w->cut.panels + together - 1)/together, blocks = around*runs*groups;
    const int64_t pitch = together*3*TC_LANES;
    for (int64_t batch = 0; batch < batches; ++batch) {
        int64_t a_start, b_start, c_start;
        tc_places(&w->batch, batch, 1, &a_start, &b_start);
        tc_places(&w->target, batch, 1, &c_start, &c_start);
        const $real *const a = w->a + a_start, *const b = w->b + b_start;
        int height;
        int64_t high;
        if (turned < 0) {
            tc_places(&w->m, 0, rows, a_row, c_row);
            for (int64_t q = 0; q < w->cut.panels; ++q) {
                const int64_t row = tc_panel(&w->cut, q, &height, &high);
                tc_pack_$kind(left + q*slot, height*TC_LANES, high, summed, a, a_row + row,
                    a_depth, w->alpha);
            }
        } else {
            tc_places(&w->n, 0, columns, b_column, c_column);
            for (int64_t j = 0; j < columns; j += TC_COLUMNS) {
                tc_pack_$kind(right + j*summed, TC_COLUMNS, tc_min(TC_COLUMNS, columns - j), summed,
                    b, b_column + j, b_depth, w->alpha);
            }
        }
        for (int64_t block = blocks*share/shares; block < blocks*(share + 1)/shares; ++block) {
            const int64_t first = block%groups*together, f0 = block/groups%runs*width;
            const int64_t run = tc_min(width, fast - f0);
            int64_t from, to, places[TC_COLUMNS], here[TC_COLUMNS];
            tc_places(&outer, block/groups/runs, 1, &from, &to);
            $real *const c = w->c + c_start + to + f0;
            if (turned < 0) {
                $real *const buffer = right;
                for (int64_t f = 0; f < run; f += TC_COLUMNS) {
                    const int64_t wide = tc_min(TC_COLUMNS, run - f);
                    for (int n = 0; n < TC_COLUMNS; ++n) {
                        places[n] = from + (f0 + f + tc_min(n, wide - 1))*fast_step;
                        here[n] = n*pitch;
                    }
                    for (int64_t q = 0; q < w->cut.panels; ++q) {
                        const int64_t row = tc_panel(&w->cut, q, &height, &high);
                        const tc_tile_$kind tile = {
                            .depth = summed, .a = left + q*slot, .b = b, .b_column = places,
                            .b_row = b_depth, .c = buffer + f*pitch + row, .c_column = here,
                        };
                        right_in_place[height](&tile);
                    }
                }
                tc_flush_$kind(buffer, pitch, rows, run, c, c_row, w->add);
                continue;
            }
            $real *const buffer = left + slot;
            const int64_t last_panel = tc_min(first + together, w->cut.panels);
            const int64_t start = tc_panel(&w->cut, first, &height, &high);
            for (int n = 0; n < TC_COLUMNS; ++n) here[n] = n*width*pitch;
            int64_t rows_here = 0;
            for (int64_t f = 0; f < run; ++f) {
                for (int64_t q = first; q < last_panel; ++q) {
                    const int64_t row = tc_panel(&w->cut, q, &height, &high);
                    const $real *source = a + from + row + (f0 + f)*fast_step;
                    const int whole = high == height*TC_LANES;
                    rows_here = row + high - start;
                    if (!whole) {
                        for (int64_t n = 0; n < high; ++n) a_row[n] = n;
                        tc_pack_$kind(left, height*TC_LANES, high, summed, source, a_row, a_depth, 1);
                        source = left;
                    }
                    const int64_t next = q + 1 < last_panel ? height*TC_LANES
                        : fast_step - (row - start);
                    for (int64_t j = 0; j < columns; j += TC_COLUMNS) {
                        const tc_tile_$kind tile = {
                            .depth = summed, .a = source, .a_column = a_depth,
                            .b = right + j*summed,
                            .c = buffer + (j*width + f)*pitch + row - start,
                            .c_column = here,
                            .ahead = next,
                        };
                        (!whole ? packed : j == 0 && f + 1 < run ? ahead : in_place)[height](&tile);
                    }
                }
            }
            for (int64_t n = 0; n < rows_here; ++n) c_row[n] = (start + n)*row_step;
            for (int64_t j = 0; j < columns; ++j) {
                tc_flush_$kind(buffer + j*width*pitch, pitch, rows_here, run, c + c_column[j], c_row,
                    w->add);
            }
        }
    }
    TC_FENCE();
}

/* Length of the runs that go through a buffer, or 0 where that does not fit. */
static int64_t tc_width_$kind(
    const tc_work_$kind *w, int turned, int64_t summed, int64_t *together)
{
    const int64_t slot = 3*TC_LANES*summed, columns = tc_points(&w->n);
    if (summed == 0 || summed > w->blocks.depth) return 0;
    int64_t room, element, fast;
    if (turned < 0) {
        if (tc_points(&w->m) > w->blocks.rows || w->cut.panels*slot > w->blocks.left) return 0;
        room = w->blocks.right;
        *together = w->cut.panels;
        element = w->cut.panels*3*TC_LANES;
        fast = w->n.length[w->n.axes - 1];
    } else {
        const int64_t padded = (columns + TC_COLUMNS - 1)/TC_COLUMNS*TC_COLUMNS;
        if (padded > w->blocks.columns || padded*summed > w->blocks.right) return 0;
        room = w->blocks.left - slot;
        element = padded*3*TC_LANES;
        fast = w->m.length[turned];
        const int64_t width = tc_min(3*TC_LANES, (fast + TC_LANES - 1)/TC_LANES*TC_LANES);
        *together = tc_max(1, tc_min(TC_BUFFER, room)/(element*width));
        *together = tc_min(*together, w->cut.panels);
        element *= *together;
    }
    const int64_t step = tc_max(TC_LANES, TC_COLUMNS);
    const int64_t most = tc_min(tc_min(TC_BUFFER, room)/element/step*step, 6*TC_LANES/step*step);
    if (most < step) return 0;
    const int64_t pieces = (fast + most - 1)/most;
    return ((fast + pieces - 1)/pieces + step - 1)/step*step;
}
#endif

void tc_contract_$kind(int threads, int scheme, const tc_group *m, const tc_group *n,
    const tc_group *k, const tc_group *batch, const tc_group *target, double alpha,
    const void *a, const void *b, int add, void *c, char *memory, int64_t memory_bytes)
{
    tc_work_$kind w;
    tc_join(&w.m, m, 1);
    tc_join(&w.n, n, 1);
    tc_join(&w.k, k, 1);
    tc_join(&w.batch, batch, 0);
    tc_join(&w.target, target, 0);
    w.alpha = ($real)alpha;
    w.a = a;
    w.b = b;
    w.c = c;
    w.add = add;
    const int64_t rows = tc_points(&w.m), columns = tc_points(&w.n), summed = tc_points(&w.k);
    const int64_t batches = tc_points(&w.batch);
    if (rows == 0 || columns == 0 || batches == 0 || (summed == 0 && add)) return;
    w.blocks = tc_blocks_of($parts, rows, columns, summed);
#if $parts == 1
    if (scheme & TC_STAGE && w.m.axes && w.n.axes) {
        int turned = -1;
        for (int d = 0; d < w.m.axes - 1; ++d) turned = w.m.y[d] == 1 ? d : turned;
        const int lies = turned < 0 ? w.n.y[w.n.axes - 1] == 1 : w.m.x[w.m.axes - 1] == 1;
        const int64_t run = turned < 0 ? rows : w.m.length[w.m.axes - 1];
        w.cut = tc_cut_rows(turned < 0 ? rows : run, run, TC_LANES);
        int64_t together = 1;
        const int64_t width = lies ? tc_width_$kind(&w, turned, summed, &together) : 0;
        if (width > 0) {
            if ((double)batches*rows*columns*summed < TC_THREAD_POINTS) threads = 1;
            #pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
            for (int part = 0; part < threads; ++part) {
                tc_stage_$kind(&w, turned, width, together, part, threads, memory + part*memory_bytes);
            }
            return;
        }
    }
#endif
    /* Panels follow the runs of the target, unless these are short and there is much to sum. */
    const int lanes = TC_LANES/$parts;
    int64_t run = tc_run(w.m.axes, w.m.length, w.m.y);
    w.left = scheme & TC_PACK_LEFT || $parts == 2;
    w.right = scheme & TC_PACK_RIGHT || $parts == 2;
    if (!w.left) run = tc_min(run, tc_run(w.m.axes, w.m.length, w.m.x));
    const int64_t padded = (run + lanes - 1)/lanes*lanes;
    w.regular = 5*run >= 4*padded || run == rows || (w.blocks.depth < 32 && run > 1);
    if (!w.regular) {
        run = rows;
        w.left = 1;
    }
    if (w.left == 0 && w.right == 0) w.right = 1;
    w.cut = tc_cut_rows(rows, run, lanes);
    w.stream = !add && summed <= w.blocks.depth && w.regular
        && (double)rows*columns*batches*sizeof($scalar) >= TC_STREAM_BYTES;
    const int64_t next = w.n.axes ? w.n.y[w.n.axes - 1] : INT64_MAX;
    const int up = w.m.axes - 1;
    int64_t beyond = INT64_MAX;
    for (int d = 0; d <= up; ++d) {
        if (w.m.y[d] >= run) beyond = tc_min(beyond, w.m.y[d]);
    }
    w.inner_columns = next < beyond && w.blocks.depth <= 192;
    if ((double)batches*rows*columns*summed < TC_THREAD_POINTS) threads = 1;
    /* Each thread has a part of the batch, or a rectangle of the target. */
    int strips = 1;
    const int64_t panels = w.cut.panels, wide = (columns + TC_COLUMNS - 1)/TC_COLUMNS;
    for (int count = 2; count <= threads; ++count) {
        if (threads%count) continue;
        const int64_t now = ((panels + strips - 1)/strips)
            *((wide + threads/strips - 1)/(threads/strips));
        const int64_t then = ((panels + count - 1)/count)
            *((wide + threads/count - 1)/(threads/count));
        if (then <= now) strips = count;
    }
    const int by_batch = batches >= threads;
    #pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int part = 0; part < threads; ++part) {
        char *const own = memory + part*memory_bytes;
        if (by_batch) {
            tc_share_$kind(&w, batches*part/threads, batches*(part + 1)/threads, 0, panels, 0,
                columns, own);
            continue;
        }
        const int row = part%strips, column = part/strips, groups = threads/strips;
        tc_share_$kind(&w, 0, batches, panels*row/strips, panels*(row + 1)/strips,
            tc_min(columns, wide*column/groups*TC_COLUMNS),
            tc_min(columns, wide*(column + 1)/groups*TC_COLUMNS), own);
    }
}

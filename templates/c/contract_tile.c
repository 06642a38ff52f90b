/* Lanes first to last of a vector to memory, or added to it; the first lane of all is for ``to``. */
static inline void tc_part_$kind($real *to, tc_vec_$kind x, int64_t first, int64_t last, int add)
{
#ifdef TC_MASK_$kind
    TC_MASK_$kind(to, x, first, last, add);
#else
    for (int64_t n = first; n < last; ++n) to[n] = add ? to[n] + x[n] : x[n];
#endif
}

/* Lines of the target on their way past the caches. Stores past the caches come to a halt when many
 * follow each other, so that tiles leave their lines here and the next tile stores one at each step.
 */
typedef struct {
    int64_t count;
    $real *to[TC_PENDING];
    tc_vec_$kind line[TC_PENDING];
} tc_pending_$kind;

static void tc_drain_$kind(tc_pending_$kind *pending)
{
    for (int64_t n = 0; n < pending->count; ++n) {
        TC_STREAM_$kind((tc_vec_$kind *)pending->to[n], pending->line[n]);
    }
    pending->count = 0;
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
    $real *copy;  /* where the panel is packed as it is read */
    const void *const *fetch;  /* lines that are read later, one a step */
    int64_t fetches;
    int add, stream;
    tc_pending_$kind *pending;
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
    const void *const *const fetch = tile->fetch;
    const int64_t fetches = tile->fetches;
    $real *copy = tile->copy;
    const int add = tile->add, stream = tile->stream;
    const $real *column[TC_COLUMNS];
    _Pragma("GCC unroll 8")
    for (int j = 0; j < TC_COLUMNS; ++j) column[j] = right == TC_PACKED ? b + j : b + tile->b_column[j];
    tc_pending_$kind *const pending = tile->pending;
    const int64_t waiting = pending->count;
    if (!stream) {  /* the target arrives while the tile is computed */
        _Pragma("GCC unroll 8")
        for (int j = 0; j < TC_COLUMNS; ++j) {
            const $real *const to = ($real *)tile->c + $parts*tile->c_column[j];
            _Pragma("GCC unroll 3")
            for (int v = 0; v < height; ++v) __builtin_prefetch(to + v*TC_LANES, 1, 3);
            __builtin_prefetch(to + height*TC_LANES - 1, 1, 3);
        }
    }
    _Pragma("GCC unroll 1")
    for (int64_t p = 0; p < depth; ++p) {
        if (p < waiting) TC_STREAM_$kind((tc_vec_$kind *)pending->to[p], pending->line[p]);
        if (p < fetches) __builtin_prefetch(fetch[p], 0, 2);
        const $real *from = left == TC_PACKED ? a : a + a_column[p];
        tc_vec_$kind x[3];
        _Pragma("GCC unroll 3")
        for (int v = 0; v < height; ++v) x[v] = *(const tc_any_$kind *)(from + v*TC_LANES);
        if (left == TC_COPIED) {
            _Pragma("GCC unroll 3")
            for (int v = 0; v < height; ++v) *(tc_vec_$kind *)(copy + v*TC_LANES) = x[v];
            copy += height*TC_LANES;
        }
        _Pragma("GCC unroll 8")
        for (int j = 0; j < TC_COLUMNS; ++j) {
            const $real y = right == TC_PACKED ? b[j] : column[j][b_row[p]];
            _Pragma("GCC unroll 3")
            for (int v = 0; v < height; ++v) sum[j][v] += x[v]*y;
        }
        if (left == TC_PACKED) a += height*TC_LANES;
        if (right == TC_PACKED) b += TC_COLUMNS;
    }
    for (int64_t n = depth; n < waiting; ++n) {
        TC_STREAM_$kind((tc_vec_$kind *)pending->to[n], pending->line[n]);
    }
    pending->count = stream ? TC_COLUMNS*height : 0;
    _Pragma("GCC unroll 8")
    for (int j = 0; j < TC_COLUMNS; ++j) {
        $real *const to = ($real *)tile->c + $parts*tile->c_column[j];
        _Pragma("GCC unroll 3")
        for (int v = 0; v < height; ++v) {
            tc_any_$kind *const here = (tc_any_$kind *)(to + v*TC_LANES);
            if (stream) {
                pending->to[j*height + v] = ($real *)here;
                pending->line[j*height + v] = sum[j][v];
            } else if (add) {
                *here += sum[j][v];
            } else {
                *here = sum[j][v];
            }
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

/* Runs of the target that do not fill whole lines: where a run begins at the end of the one before
 * it, they are joined, and whole lines pass by the caches; what is left at the ends is stored as it is.
 */
typedef struct {
    $real *line;        /* of the target, the first line that is not complete */
    int64_t head, end;  /* its elements head to end are there, */
    tc_vec_$kind part;  /* in here */
} tc_joint_$kind;

/* One for each column of a tile: runs follow each other along rows, or along columns. */
typedef struct {
    int latest;
    tc_joint_$kind joint[TC_COLUMNS];
} tc_joints_$kind;

static void tc_close_$kind(tc_joint_$kind *t)
{
    for (int64_t n = t->head; n < t->end; ++n) t->line[n] = t->part[n];
    t->line = 0;
    t->head = t->end = 0;
}

static void tc_close_all_$kind(tc_joints_$kind *t)
{
    for (int j = 0; j < TC_COLUMNS; ++j) tc_close_$kind(t->joint + j);
}

/* Add a run of ``count`` elements in whole vectors. They are moved in registers: what is loaded from
 * memory in other pieces than it was stored in has to wait for all stores before it.
 */
static void tc_append_$kind(tc_joints_$kind *t, int column, $real *to, const tc_vec_$kind *value,
    int64_t count, tc_pending_$kind *pending)
{
    if (t->joint[t->latest].line + t->joint[t->latest].end != to) t->latest = column;
    tc_joint_$kind *const joint = t->joint + t->latest;
    if (joint->line + joint->end != to) {
        tc_close_$kind(joint);
        joint->head = joint->end = (int64_t)((uintptr_t)to%TC_VECTOR/sizeof($real));
        joint->line = to - joint->head;
    }
    const tc_pick_$kind place = {TC_EACH(TC_ITSELF, 0)};
    const $number shift = ($number)joint->end;
    const tc_pick_$kind kept = place < shift;  /* what is there comes before what is added */
    const tc_pick_$kind joined = (place & kept) | ((place - shift + TC_LANES) & ~kept);
    const tc_pick_$kind rest = place - shift + TC_LANES;  /* what is added beyond the line */
    if (pending->count + 4 > TC_PENDING) tc_drain_$kind(pending);
    $real *line = joint->line;
    tc_vec_$kind part = joint->part;
    int64_t head = joint->head, lines = pending->count, end = joint->end + count;
    for (; count > 0; count -= TC_LANES, ++value) {
        const tc_vec_$kind whole = __builtin_shuffle(part, *value, joined);
        if (shift + count < TC_LANES) {
            part = whole;
            break;
        }
        part = __builtin_shuffle(*value, rest);
        if (head > 0) {
            for (int64_t h = head; h < TC_LANES; ++h) line[h] = whole[h];
            head = 0;
        } else {
            pending->to[lines] = line;
            pending->line[lines++] = whole;
        }
        line += TC_LANES;
        end -= TC_LANES;
    }
    pending->count = lines;
    joint->head = head;
    joint->end = end;
    joint->line = line;
    joint->part = part;
}

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

/* A tile at an edge, or one whose rows are not consecutive or not on lines: by way of a buffer. */
static __attribute__((noinline)) void tc_edge_$kind(tc_run_tile_$kind *run,
    const tc_tile_$kind *tile, int64_t rows, int64_t columns, const int64_t *c_row,
    tc_joints_$kind *joints)
{
    tc_vec_$kind whole[TC_COLUMNS][3];
    tc_piece_$kind piece[3*TC_LANES];
    const int join = joints && !c_row, pieces = join ? 0 : tc_pieces_$kind(c_row, rows, piece);
    int64_t places[TC_COLUMNS];
    for (int64_t j = 0; j < TC_COLUMNS; ++j) places[j] = j*(3*TC_LANES/$parts);
    for (int64_t j = 0; j < columns; ++j) {
        const $real *const to = ($real *)(tile->c + tile->c_column[j]);
        for (int n = 0; n < pieces; ++n) {
            __builtin_prefetch(to + piece[n].shift + piece[n].first, 1, 3);
            __builtin_prefetch(to + piece[n].shift + piece[n].last - 1, 1, 3);
        }
    }
    tc_tile_$kind inner = *tile;
    inner.c = ($scalar *)whole[0];
    inner.c_column = places;
    inner.add = inner.stream = 0;
    run(&inner);
    for (int64_t j = 0; j < columns; ++j) {
        $real *const to = ($real *)(tile->c + tile->c_column[j]);
        if (join) tc_append_$kind(joints, (int)j, to, whole[j], $parts*rows, tile->pending);
        for (int n = 0; n < pieces; ++n) {
            tc_part_$kind(to + piece[n].shift, whole[j][piece[n].vector], piece[n].first,
                piece[n].last, tile->add);
        }
    }
}

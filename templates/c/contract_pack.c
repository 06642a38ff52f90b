/* Vectors, and packing. A complex product is a real one of twice the depth: the left operand is
 * packed as the columns (re, im) and (-im, re), the right one as the rows re and im, so that a column
 * of a tile is a column of the target.
 */
#undef TC_LANES
#undef TC_EACH
#define TC_LANES (TC_VECTOR/$bytes)
#if TC_LANES == 16
#define TC_EACH TC_EACH_16
#elif TC_LANES == 8
#define TC_EACH TC_EACH_8
#elif TC_LANES == 4
#define TC_EACH TC_EACH_4
#else
#define TC_EACH TC_EACH_2
#endif

/* Squares that packing turns are no wider than a panel of columns. */
#undef TC_SIDE
#undef TC_SIDES
#if TC_LANES < TC_COLUMNS
#define TC_SIDE TC_LANES
#define TC_SIDES TC_EACH
#elif TC_COLUMNS == 8
#define TC_SIDE 8
#define TC_SIDES TC_EACH_8
#else
#define TC_SIDE 4
#define TC_SIDES TC_EACH_4
#endif

typedef $real tc_vec_$kind __attribute__((vector_size(TC_VECTOR)));
typedef $real tc_any_$kind __attribute__((vector_size(TC_VECTOR), aligned($bytes), may_alias));
typedef $number tc_pick_$kind __attribute__((vector_size(TC_VECTOR)));
typedef $real tc_row_$kind __attribute__((vector_size(TC_SIDE*$bytes)));
typedef $real tc_any_row_$kind __attribute__((vector_size(TC_SIDE*$bytes), aligned($bytes), may_alias));
typedef $number tc_pick_row_$kind __attribute__((vector_size(TC_SIDE*$bytes)));

/* One step of turning vectors of ``lanes``, ``count`` of them: halves of squares of 2 h change places. */
#define TC_TURN(type, pick, each, lanes, h, count)                                \
    {                                                                             \
        _Pragma("GCC unroll 16")                                                  \
        for (int n = 0; n < count; ++n) {                                         \
            if (n & (h)) continue;                                                \
            const type one = x[n], two = x[n + (h)];                              \
            x[n] = TC_SHUFFLE(pick, one, two, each(TC_BELOW, lanes, h));          \
            x[n + (h)] = TC_SHUFFLE(pick, one, two, each(TC_ABOVE, lanes, h));    \
        }                                                                         \
    }
/* What is left of it for half of the vectors, once each holds halves of two rows. */
static inline __attribute__((always_inline)) void tc_turn_half_$kind(tc_vec_$kind *x)
{
    (void)x;
#if TC_LANES >= 4
    TC_TURN(tc_vec_$kind, tc_pick_$kind, TC_EACH, TC_LANES, 1, TC_LANES/2)
#endif
#if TC_LANES >= 8
    TC_TURN(tc_vec_$kind, tc_pick_$kind, TC_EACH, TC_LANES, 2, TC_LANES/2)
#endif
#if TC_LANES >= 16
    TC_TURN(tc_vec_$kind, tc_pick_$kind, TC_EACH, TC_LANES, 4, TC_LANES/2)
#endif
}

/* A block of TC_LANES rows becomes its transpose. */
static inline __attribute__((always_inline)) void tc_turn_$kind(tc_vec_$kind *x)
{
    TC_TURN(tc_vec_$kind, tc_pick_$kind, TC_EACH, TC_LANES, TC_LANES/2, TC_LANES)
    tc_turn_half_$kind(x);
    tc_turn_half_$kind(x + TC_LANES/2);
}

/* A block of TC_SIDE short rows, too. */
static inline __attribute__((always_inline)) void tc_turn_rows_$kind(tc_row_$kind *x)
{
#if TC_SIDE >= 8
    TC_TURN(tc_row_$kind, tc_pick_row_$kind, TC_SIDES, TC_SIDE, 4, TC_SIDE)
#endif
#if TC_SIDE >= 4
    TC_TURN(tc_row_$kind, tc_pick_row_$kind, TC_SIDES, TC_SIDE, 2, TC_SIDE)
#endif
    TC_TURN(tc_row_$kind, tc_pick_row_$kind, TC_SIDES, TC_SIDE, 1, TC_SIDE)
}
#undef TC_TURN

#if $parts == 1
/* How many of the first panels of columns are consecutive, up to eight: they are read together. */
static int64_t tc_together_$kind(const int64_t *place, int64_t columns)
{
    return tc_run_of(place, tc_min(columns, 8*TC_COLUMNS), 1)/TC_COLUMNS;
}

/* Pack whole panels whose columns are consecutive; rows are read from their first to their last. */
static void tc_copy_$kind($real *restrict to, int64_t panels, int64_t depth,
    const $real *restrict from, const int64_t *row, $real alpha)
{
    for (int64_t p = 0; p < depth; ++p, to += TC_COLUMNS) {
        const $real *source = from + row[p];
        $real *target = to;
        for (int64_t q = 0; q < panels; ++q, target += depth*TC_COLUMNS, source += TC_COLUMNS) {
            for (int n = 0; n < TC_COLUMNS; n += TC_SIDE) {
                const int j = (int)tc_min(n, TC_COLUMNS - TC_SIDE);
                *(tc_any_row_$kind *)(target + j) = alpha**(const tc_any_row_$kind *)(source + j);
            }
        }
    }
}

/* Turn a square whose rows begin at the places ``row``, to rows that are ``apart``. */
static inline __attribute__((always_inline)) void tc_pack_square_$kind($real *restrict to,
    int64_t apart, const $real *restrict from, const int64_t *row, $real alpha)
{
    tc_row_$kind x[TC_SIDE];
    _Pragma("GCC unroll 8")
    for (int n = 0; n < TC_SIDE; ++n) {
        const $real *const source = from + row[n];
        __builtin_prefetch(source + 128/$bytes, 0, 3);  /* two lines on, often of the next squares */
        x[n] = alpha**(const tc_any_row_$kind *)source;
    }
    tc_turn_rows_$kind(x);
    _Pragma("GCC unroll 8")
    for (int n = 0; n < TC_SIDE; ++n) *(tc_any_row_$kind *)(to + n*apart) = x[n];
}

/* Copy ``rows`` rows of ``run`` consecutive elements to columns of ``width``, at least a square of them.
 * The last squares lie over others.
 */
static inline __attribute__((always_inline)) void tc_pack_squares_$kind($real *restrict to,
    int64_t width, int64_t rows, int64_t run, const $real *restrict from, const int64_t *row,
    $real alpha)
{
    for (int64_t q = 0; q < run; q += TC_SIDE) {
        const int64_t start = tc_min(q, run - TC_SIDE);
        for (int64_t n = 0; n < rows; n += TC_SIDE) {
            const int64_t first = tc_min(n, rows - TC_SIDE);
            tc_pack_square_$kind(to + start*width + first, width, from + start, row + first, alpha);
        }
    }
}

/* Copy ``rows`` rows of consecutive elements to columns of ``width``. */
static inline __attribute__((always_inline)) void tc_pack_columns_$kind($real *restrict to,
    int64_t width, int64_t rows, int64_t depth, const $real *restrict from, const int64_t *column,
    $real alpha)
{
    const int64_t whole = rows/TC_LANES*TC_LANES;
    for (int64_t p = 0; p < depth; ++p, to += width) {
        const $real *source = from + column[p];
        int64_t n = 0;
        for (; n < whole; n += TC_LANES) {
            *(tc_any_$kind *)(to + n) = alpha**(const tc_any_$kind *)(source + n);
        }
        for (; n + TC_SIDE <= rows; n += TC_SIDE) {
            *(tc_any_row_$kind *)(to + n) = alpha**(const tc_any_row_$kind *)(source + n);
        }
        for (; n < rows; ++n) to[n] = alpha*source[n];
        for (; n < width; ++n) to[n] = 0;
    }
}

/* These two, for the widths of whole panels as constants. They are functions of their own, since GCC
 * leaves squares in memory that share one with more.
 */
#define TC_BY_WIDTH(pack, ...)                               \
    if (rows == TC_COLUMNS && width == TC_COLUMNS) {         \
        pack(to, TC_COLUMNS, TC_COLUMNS, __VA_ARGS__);       \
    } else if (rows == TC_HEIGHT*TC_LANES && width == TC_HEIGHT*TC_LANES) {  \
        pack(to, TC_HEIGHT*TC_LANES, TC_HEIGHT*TC_LANES, __VA_ARGS__);       \
    } else {                                                 \
        pack(to, width, rows, __VA_ARGS__);                  \
    }
static __attribute__((noinline)) void tc_pack_run_$kind($real *to, int64_t width, int64_t rows,
    int64_t run, const $real *from, const int64_t *row, $real alpha)
{
    TC_BY_WIDTH(tc_pack_squares_$kind, run, from, row, alpha)
}

static __attribute__((noinline)) void tc_pack_lines_$kind($real *to, int64_t width, int64_t rows,
    int64_t depth, const $real *from, const int64_t *column, $real alpha)
{
    TC_BY_WIDTH(tc_pack_columns_$kind, depth, from, column, alpha)
}
#undef TC_BY_WIDTH

/* Copy ``rows`` rows of ``depth`` elements to columns of ``width``, zeros below; times alpha. */
static void tc_pack_$kind($real *restrict to, int64_t width, int64_t rows, int64_t depth,
    const $scalar *restrict from, const int64_t *row, const int64_t *column, $real alpha)
{
    if (tc_consecutive(row, rows)) {
        tc_pack_lines_$kind(to, width, rows, depth, from + row[0], column, alpha);
        return;
    }
    for (int64_t p = 0, end; p < depth; p = end) {
        end = p + tc_run_of(column + p, depth - p, 1);
        if (end - p >= TC_SIDE && rows >= TC_SIDE) {
            tc_pack_run_$kind(to + p*width, width, rows, end - p, from + column[p], row, alpha);
            continue;
        }
        for (int64_t run; end < depth; end += run) {
            run = tc_run_of(column + end, depth - end, 1);
            if (run >= TC_SIDE && rows >= TC_SIDE) break;
        }
        for (int64_t n = 0, last; n < rows; n = last) {
            last = n + tc_run_of(row + n, rows - n, 1);
            for (int64_t q = p; q < end; ++q) {
                const $real *const source = from + row[n] + column[q];
                $real *const here = to + q*width + n;
                int64_t r = 0;
                for (; r + TC_SIDE <= last - n; r += TC_SIDE) {
                    *(tc_any_row_$kind *)(here + r) = alpha**(const tc_any_row_$kind *)(source + r);
                }
                for (; r < last - n; ++r) here[r] = alpha*source[r];
            }
        }
    }
    for (int64_t q = 0; rows < width && q < depth; ++q) {
        for (int64_t r = rows; r < width; ++r) to[q*width + r] = 0;
    }
}

/* Pack whole columns whose consecutive elements belong to points that are ``leap`` apart. */
static void tc_pack_leaping_$kind($real *restrict to, int64_t depth, const $real *restrict from,
    const int64_t *column, const int64_t *row, int64_t leap, $real alpha)
{
    const int64_t run = depth/leap, whole = run/TC_SIDE*TC_SIDE;
    for (int64_t p = 0; p < leap; ++p) {
        for (int64_t q = 0; q < whole; q += TC_SIDE) {
            for (int n = 0; n < TC_COLUMNS; n += TC_SIDE) {
                const int j = (int)tc_min(n, TC_COLUMNS - TC_SIDE);
                tc_pack_square_$kind(to + (p + q*leap)*TC_COLUMNS + j, leap*TC_COLUMNS,
                    from + row[p + q*leap], column + j, alpha);
            }
        }
        for (int64_t q = whole; q < run; ++q) {
            for (int j = 0; j < TC_COLUMNS; ++j) {
                to[(p + q*leap)*TC_COLUMNS + j] = alpha*from[column[j] + row[p + q*leap]];
            }
        }
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

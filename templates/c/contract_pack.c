/* Vectors, and packing. A complex product is a real one of twice the depth: the left operand is
 * packed as the columns (re, im) and (-im, re), the right one as the rows re and im, so that a column
 * of a tile is a column of the target.
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
/* Pack whole columns whose consecutive elements belong to points that are ``leap`` apart. */
static void tc_pack_leaping_$kind($real *restrict to, int64_t depth, const $real *restrict from,
    const int64_t *column, const int64_t *row, int64_t leap, $real alpha)
{
    const int64_t run = depth/leap, whole = TC_COLUMNS%TC_LANES ? 0 : run/TC_LANES*TC_LANES;
    for (int64_t p = 0; p < leap; ++p) {
        for (int64_t q = 0; q < whole; q += TC_LANES) {
            for (int j = 0; j < TC_COLUMNS; j += TC_LANES) {
                tc_vec_$kind x[TC_LANES];
                _Pragma("GCC unroll 16")
                for (int n = 0; n < TC_LANES; ++n) {
                    const $real *const source = from + column[(j + n)%TC_COLUMNS];
                    x[n] = alpha**(const tc_any_$kind *)(source + row[p + q*leap]);
                }
                tc_turn_$kind(x);
                _Pragma("GCC unroll 16")
                for (int n = 0; n < TC_LANES; ++n) {
                    *(tc_any_$kind *)(to + (p + (q + n)*leap)*TC_COLUMNS + j) = x[n];
                }
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

/* Turn and store half of a square: whole lines, or, with its first half, as much of it as there is. */
static inline __attribute__((always_inline)) void tc_turn_square_half_$kind(
    const tc_turning_$kind *t, const tc_square_$kind *at, int64_t half, const int way)
{
    if (way == TC_BY_SQUARES && !half) tc_fetch_square_$kind(t, at);
    if (way == TC_BY_SQUARES && (t->rows - at->row < TC_LANES || t->run - at->element < TC_LINE)) {
        if (!half) tc_turn_part_$kind(t, at);
        return;
    }
#ifdef TC_MERGE_$kind
    tc_vec_$kind *const end = t->begins && at->element == 0 ? t->lines->first
        : t->ends && at->element + TC_LINE == t->all_run ? t->lines->last : 0;
#endif
    const int band_ends = way == TC_ACROSS_LINES && (t->begins || t->ends);
    if (band_ends && !half && at->element == 0) tc_begin_band_$kind(t, at);
    const int64_t first = half*(TC_LANES/2), pitch = t->pitch;
    const $real *const from = at->from + first;
    const int64_t *const c_row = at->c_row + first;
    $real *const row = at->to;
    _Pragma("GCC unroll 4")
    for (int s = 0; s < TC_SQUARES; ++s) {
        tc_vec_$kind x[TC_LANES/2];
        tc_read_half_$kind(x, from + s*TC_LANES*pitch, pitch);
        _Pragma("GCC unroll 8")
        for (int n = 0; n < TC_LANES/2; ++n) {
#ifdef TC_MERGE_$kind
            if (way == TC_ACROSS_LINES) {
                tc_join_line_$kind(t, at, first + n, x[n], end);
                continue;
            }
#endif
            $real *const to = row + c_row[n] + s*TC_LANES;
            if (way == TC_BY_LINES) {
                TC_STREAM_$kind((tc_vec_$kind *)to, x[n]);
            } else {
                if (t->add) x[n] += *(const tc_any_$kind *)to;
                *(tc_any_$kind *)to = x[n];
            }
        }
    }
    if (band_ends && half && at->element + TC_LINE == t->all_run) tc_end_band_$kind(t, at);
}

/* Turn the next half of a square. */
static inline __attribute__((always_inline)) void tc_turn_next_$kind(
    const tc_turning_$kind *t, tc_square_$kind *at, int64_t *half, const int way)
{
    tc_turn_square_half_$kind(t, at, *half & 1, way);
    if (*half & 1) tc_next_square_$kind(t, at, way);
    ++*half;
}

/* Turn the next half and, where squares are stored to lines in the caches, the other one, whose lines are there now;
 * how many halves.
 */
static inline __attribute__((always_inline)) int64_t tc_turn_some_$kind(
    const tc_turning_$kind *t, tc_square_$kind *at, int64_t *half, int64_t halves, const int way)
{
    tc_turn_next_$kind(t, at, half, way);
    if (way != TC_BY_SQUARES || !(*half & 1) || *half == halves) return 1;
    tc_turn_next_$kind(t, at, half, way);
    return 2;
}

/* Steps of a tile from p up to stop, so many ``together``: ``fetching`` a line at each of them, ``copying`` the
 * panel that is read in place. What does not change within them is not asked at each.
 */
#undef TC_STEPS
#define TC_STEPS(together, fetching, copying)                                                    \
    TC_UNROLL(together)                                                                          \
    for (; p < stop; ++p) {                                                                      \
        if (fetching) __builtin_prefetch(fetch_from + fetch[p], 0, TC_LEVEL);                    \
        TC_PRODUCTS(a)                                                                           \
        if (copying) {                                                                           \
            _Pragma("GCC unroll 3")                                                              \
            for (int v = 0; v < height; ++v) *(tc_vec_$kind *)(copy + v*TC_LANES) = x[v];        \
            copy += height*TC_LANES;                                                             \
        }                                                                                        \
        a += a_step;                                                                             \
    }

/* Tiles beside which a block is turned. The first one may pack what it reads in place, for the others. */
static inline __attribute__((always_inline)) void tc_multiply_turning_$kind(
    const tc_tiles_$kind *t, const int height, const int left, const int right, const int way)
{
    const int64_t depth = t->depth, gap = t->gap, fetches = t->fetches;
    int64_t a_step = left == TC_PACKED ? height*TC_LANES : t->a_step;
    int64_t a_run = left == TC_PACKED ? depth : t->a_run;
    int64_t a_start = left == TC_PACKED ? 0 : t->a_start, a_bend = left == TC_PACKED ? depth : t->a_bend;
    const int64_t *c_column = t->c_column, *fetch = t->fetch;
    const $real *panel = t->a, *columns = t->b;
    $real *copy = left != TC_PACKED ? t->copy : 0;
    tc_turning_$kind *const turned = t->turning;
    tc_square_$kind at = {0};  /* field by field: a copy waits until what was just written is in the cache */
    at.from = turned->next.from;
    at.to = turned->next.to;
    at.c_row = turned->next.c_row;
    at.column = turned->next.column;
    at.row = turned->next.row;
    at.element = turned->next.element;
    if (way == TC_ACROSS_LINES) at.band = turned->next.band;
    int64_t half = turned->half;
    const int64_t halves = half + t->halves;
    const int add = t->add;
    for (int64_t tile = t->tiles; tile > 0; --tile) {
        for (int64_t due = 0; !TC_BESIDE && half < halves && due < depth;) {
            due += gap*tc_turn_some_$kind(turned, &at, &half, halves, way);
        }
        tc_vec_$kind sum[TC_COLUMNS][TC_HEIGHT];
        _Pragma("GCC unroll 8")
        for (int j = 0; j < TC_COLUMNS; ++j) {
            _Pragma("GCC unroll 3")
            for (int v = 0; v < height; ++v) sum[j][v] = (tc_vec_$kind){0};
        }
        if (add) {
            _Pragma("GCC unroll 8")
            for (int j = 0; j < TC_COLUMNS; ++j) {
                const $real *const from = ($real *)t->c + c_column[j];
                _Pragma("GCC unroll 3")
                for (int v = 0; v < height; ++v) sum[j][v] = *(const tc_any_$kind *)(from + v*TC_LANES);
            }
        }
        const $real *a = panel + a_start, *b = columns;
        const $real *column[TC_COLUMNS];
        _Pragma("GCC unroll 8")
        for (int j = 0; j < TC_COLUMNS; ++j) column[j] = right == TC_PACKED ? b : b + t->b_column[j];
        const char *const fetch_from = t->fetch_from;
        const int64_t *const b_row = t->b_row;
        int64_t p = 0, bend = a_bend, due = 0;  /* where another run of columns begins; when halves are due */
        while (p < depth) {
            if (TC_BESIDE && half < halves && p >= due) due += gap*tc_turn_some_$kind(turned, &at, &half, halves, way);
            const int fetching = p < fetches;
            const int64_t end = TC_BESIDE && half < halves ? tc_min(depth, due) : depth;
            const int64_t stop = tc_min(tc_min(end, bend), fetching ? fetches : depth);
            if (right != TC_PACKED) {  /* addresses fill the registers */
                TC_STEPS(1, fetching, 0)
            } else if (left != TC_PACKED && copy && fetching) {
                TC_STEPS(TC_TOGETHER, 1, 1)
            } else if (left != TC_PACKED && copy) {
                TC_STEPS(TC_TOGETHER, 0, 1)
            } else if (fetching) {
                TC_STEPS(TC_TOGETHER, 1, 0)
            } else {
                TC_STEPS(TC_ALONE, 0, 0)
            }
            if (p == bend && p < depth) {
                a = panel + t->a_column[p];
                bend += a_run;
            }
        }
        for (int64_t n = depth; n < fetches; ++n) __builtin_prefetch(fetch_from + fetch[n], 0, TC_LEVEL);
        fetch += fetches;
        _Pragma("GCC unroll 8")
        for (int j = 0; j < TC_COLUMNS; ++j) {
            $real *const to = ($real *)t->c + c_column[j];
            _Pragma("GCC unroll 3")
            for (int v = 0; v < height; ++v) *(tc_any_$kind *)(to + v*TC_LANES) = sum[j][v];
        }
        if (left != TC_PACKED && copy) {
            panel = t->copy;
            a_step = height*TC_LANES;
            a_run = a_bend = depth;
            a_start = 0;
            copy = 0;
        }
        c_column += TC_COLUMNS;
        columns += right == TC_PACKED ? depth*TC_COLUMNS : 0;
    }
    while (half < halves) tc_turn_next_$kind(turned, &at, &half, way);
    turned->next.from = at.from;
    turned->next.to = at.to;
    turned->next.c_row = at.c_row;
    turned->next.column = at.column;
    turned->next.row = at.row;
    turned->next.element = at.element;
    if (way == TC_ACROSS_LINES) turned->next.band = at.band;
    turned->half = half & 1;
    turned->left -= t->halves;
}


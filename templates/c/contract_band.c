#ifdef TC_MERGE_$kind
/* Elements of a line: the last ones of what was turned before, behind them the first ones of x. */
static inline __attribute__((always_inline)) tc_vec_$kind tc_merge_$kind(
    const tc_band_$kind *band, int64_t row, tc_vec_$kind x)
{
    const tc_pick_$kind lanes = {TC_EACH(TC_NUMBER, 0, 0)};
    return TC_MERGE_$kind(x, band->before[row], lanes - ($number)band->begin[row]);
}

/* Store the line of a row of a band that a square completes, or keep it at one of the ends. */
static inline __attribute__((always_inline)) void tc_join_line_$kind(
    const tc_turning_$kind *t, const tc_square_$kind *at, int64_t row, tc_vec_$kind x, tc_vec_$kind *end)
{
    const tc_vec_$kind line = tc_merge_$kind(at->band, row, x);
    at->band->before[row] = x;
    $real *const to = at->to + at->band->place[row];
    if (end) end[row] = line;
    else if (at->row + row < t->rows) TC_STREAM_$kind((tc_vec_$kind *)to, line);
}

/* Store elements first to last of a line; nobody has fetched it where these are all. */
static inline void tc_store_end_$kind($real *to, tc_vec_$kind line, int64_t first, int64_t last)
{
    if (first == 0 && last >= TC_LINE) TC_STREAM_$kind((tc_vec_$kind *)to, line);
    else tc_part_$kind(to, line, first, tc_min(last, TC_LINE), 0);
}
#endif

/* Begin the band of a square where its rows begin or end in this block: the lines are fetched. */
static __attribute__((noinline)) void tc_begin_band_$kind(
    const tc_turning_$kind *t, const tc_square_$kind *at)
{
    tc_band_$kind *const band = at->band;
    const int64_t rows = tc_min(TC_LANES, t->rows - at->row);
    for (int64_t n = 0; n < rows; ++n) {
        $real *const start = at->to + at->c_row[n];
        const int64_t begin = (int64_t)((uintptr_t)start%64/sizeof($real));
        if (t->begins && begin > 0) TC_FETCH_TARGET(start);
        if (t->ends && (begin + t->run)%TC_LINE > 0) TC_FETCH_TARGET(start + t->run - 1);
        band->begin[n] = begin;
        band->place[n] = at->c_row[n] - begin;
    }
}

/* Store the lines with which the rows of a band begin and end. */
static __attribute__((noinline)) void tc_end_band_$kind(
    const tc_turning_$kind *t, const tc_square_$kind *at)
{
#ifdef TC_MERGE_$kind
    const tc_band_$kind *const band = at->band;
    const int64_t last = t->all_run - TC_LINE, rows = tc_min(TC_LANES, t->rows - at->row);
    for (int64_t n = 0; n < rows; ++n) {
        const int64_t begin = band->begin[n], end = begin + t->run;
        const tc_vec_$kind rest = tc_merge_$kind(band, n, band->before[n]);
        $real *const to = at->to - at->element + band->place[n];
        if (t->begins) tc_store_end_$kind(to, t->lines->first[n], begin, end);
        if (!t->ends) continue;
        if (last > 0 || !t->begins) tc_store_end_$kind(to + last, t->lines->last[n], 0, end - last);
        if (end > t->all_run) tc_store_end_$kind(to + t->all_run, rest, 0, end - t->all_run);
    }
#else
    (void)t;
    (void)at;
#endif
}

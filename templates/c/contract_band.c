#ifdef TC_MERGE_$kind
/* Store the line of a row of a band that a square completes, or keep it at one of the ends. */
static inline __attribute__((always_inline)) void tc_join_line_$kind(
    tc_band_$kind *band, int64_t row, tc_vec_$kind x, int64_t element, tc_vec_$kind *end)
{
    const tc_vec_$kind line = TC_MERGE_$kind(x, band->before[row], band->from[row]);
    band->before[row] = x;
    if (end) end[row] = line;
    else if (row < band->rows) TC_STREAM_$kind((tc_vec_$kind *)(band->to[row] + element), line);
}
#endif

/* Begin the band of a square: the lines with which its rows begin and end are fetched. */
static __attribute__((noinline)) void tc_begin_band_$kind(
    const tc_turning_$kind *t, const tc_square_$kind *at)
{
    tc_band_$kind *const band = t->band;
    const tc_pick_$kind lanes = {TC_EACH(TC_NUMBER, 0, 0)};
    band->rows = tc_min(TC_LANES, t->rows - at->row);
    for (int64_t n = 0; n < band->rows; ++n) {
        $real *const start = at->to + at->c_row[n];
        const int64_t begin = (int64_t)((uintptr_t)start%64/sizeof($real));
        if (begin > 0) __builtin_prefetch(start, 1, 3);
        if ((begin + t->run)%TC_LINE > 0) __builtin_prefetch(start + t->run - 1, 1, 3);
        band->begin[n] = begin;
        band->to[n] = start - begin;
        band->from[n] = (lanes - ($number)begin) & (2*TC_LANES - 1);
    }
}

#ifdef TC_MERGE_$kind
/* Store elements first to last of a line; nobody has fetched it where these are all. */
static inline void tc_store_end_$kind($real *to, tc_vec_$kind line, int64_t first, int64_t last)
{
    if (first == 0 && last >= TC_LINE) TC_STREAM_$kind((tc_vec_$kind *)to, line);
    else tc_part_$kind(to, line, first, tc_min(last, TC_LINE), 0);
}
#endif

/* Store the lines with which the rows of a band begin and end. */
static __attribute__((noinline)) void tc_store_ends_$kind(const tc_turning_$kind *t)
{
#ifdef TC_MERGE_$kind
    const tc_band_$kind *const band = t->band;
    const int64_t last = t->all_run - TC_LINE;
    for (int64_t n = 0; n < band->rows; ++n) {
        const int64_t begin = band->begin[n], end = begin + t->run;
        const tc_vec_$kind x = band->before[n], rest = TC_MERGE_$kind(x, x, band->from[n]);
        $real *const to = band->to[n];
        tc_store_end_$kind(to, band->first[n], begin, end);
        if (last > 0) tc_store_end_$kind(to + last, band->last[n], 0, end - last);
        if (end > t->all_run) tc_store_end_$kind(to + t->all_run, rest, 0, end - t->all_run);
    }
#else
    (void)t;
#endif
}

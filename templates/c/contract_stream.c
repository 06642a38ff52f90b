/* Stretches of a target that pass by the caches. They are written to a buffer as they lie in memory,
 * and their whole lines are stored while the tiles that follow are computed.
 */
typedef struct {
    $real *to;
    const tc_vec_$kind *from;
    int64_t lines;
} tc_stretch_$kind;

typedef struct {
    int turn;
    int64_t first, count;
    tc_line_$kind line;  /* the next one of a stretch */
    tc_stretch_$kind stretch[TC_STRETCHES];
    tc_pending_$kind pending;
    tc_vec_$kind buffer[2][TC_LINES + TC_HEIGHT*TC_TALLEST] __attribute__((aligned(64)));
} tc_stream_$kind;

/* Store elements first to last of a line. */
static inline void tc_line_part_$kind($real *to, const tc_vec_$kind *from, int64_t first, int64_t last)
{
    _Pragma("GCC unroll 4")
    for (int64_t n = 0; n < TC_LINE; n += TC_LANES) {
        const int64_t here = tc_max(0, first - n), end = tc_min(TC_LANES, last - n);
        if (here < end) tc_part_$kind(to + n, from[n/TC_LANES], here, end, 0);
    }
}

/* Let ``count`` consecutive elements wait; in the buffer they lie on lines as in the target. */
static void tc_pass_$kind(tc_stream_$kind *stream, $real *to, const $real *from, int64_t count)
{
    const int64_t lane = (int64_t)((uintptr_t)to%64/sizeof($real));
    const tc_vec_$kind *source = (const tc_vec_$kind *)(from - lane);
    int64_t end = lane + count;
    to -= lane;
    if (lane > 0) {
        tc_line_part_$kind(to, source, lane, tc_min(end, TC_LINE));
        source += TC_LINE/TC_LANES;
        to += TC_LINE;
        end -= TC_LINE;
    }
    if (end <= 0) return;
    const int64_t whole = end/TC_LINE*TC_LINE, rest = end%TC_LINE;
    if (rest > 0) tc_line_part_$kind(to + whole, source + whole/TC_LANES, 0, rest);
    if (whole > 0) stream->stretch[stream->count++] = (tc_stretch_$kind){to, source, whole/TC_LANES};
}

/* Let tiles store up to ``most`` lines each, of one stretch; how many tiles find that many. */
static int64_t tc_share_lines_$kind(
    tc_tiles_$kind *t, tc_stream_$kind *stream, int64_t most, int64_t tiles)
{
    t->stores = 0;
    if (stream->first == stream->count || most == 0) return tiles;
    tc_stretch_$kind *const s = stream->stretch + stream->first;
    tiles = tc_max(1, tc_min(tiles, s->lines/most));
    t->stores = tc_min(most, s->lines);
    stream->line = (tc_line_$kind){s->to, (const $real *)s->from};
    t->store = &stream->line;
    t->next_line = 0;
    t->next_along = TC_LANES;
    const int64_t lines = tiles*t->stores;
    s->to += lines*TC_LANES;
    s->from += lines;
    s->lines -= lines;
    stream->first += s->lines == 0;
    return tiles;
}

static void tc_drain_stream_$kind(tc_stream_$kind *stream)
{
    for (int64_t n = stream->first; n < stream->count; ++n) {
        const tc_stretch_$kind s = stream->stretch[n];
        for (int64_t l = 0; l < s.lines; ++l) {
            TC_STREAM_$kind((tc_vec_$kind *)s.to + l, s.from[l]);
        }
    }
    stream->first = stream->count = 0;
    tc_drain_$kind(&stream->pending);
}

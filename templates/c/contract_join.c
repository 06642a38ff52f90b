#ifdef TC_MERGE_$kind
/* What of a stretch of the target has not filled its line: the last lanes of ``carry``, up to ``end``. */
typedef struct {
    $real *end;
    tc_vec_$kind carry;
} tc_rest_$kind;

/* Tiles whose columns pass by the caches by whole lines: ``rows`` reals of each, ``left`` columns from the next one on. Along
 * columns each goes on where the one before it ends, if they follow each other; along panels, where the same one does.
 */
typedef struct {
    int64_t rows, left;
    tc_rest_$kind rest[TC_COLUMNS];
} tc_joining_$kind;

#define TC_SOON (2*TC_COLUMNS)  /* columns from fetching a line that is not all of a stretch to storing it */

/* Fetch the lines in which a column begins another stretch, and the one before it ends. */
static inline void tc_fetch_ends_$kind($real *column, $real *before, int64_t rows)
{
    if (column == before + rows) return;
    TC_FETCH_TARGET(column);
    TC_FETCH_TARGET(before + rows - 1);
}

/* Store the rest of a stretch. */
static __attribute__((noinline)) void tc_end_stretch_$kind($real *end, tc_vec_$kind carry)
{
    const tc_pick_$kind lanes = {TC_EACH(TC_NUMBER, 0, 0)};
    const int64_t rest = (int64_t)((uintptr_t)end%64/sizeof($real));
    if (rest == 0) return;
    tc_part_$kind(end - rest, TC_MERGE_$kind(carry, carry, lanes + ($number)(TC_LANES - rest)), 0, rest, 0);
}

/* Store the rest of a stretch, and the first line of another one, from that lane on. */
static __attribute__((noinline)) void tc_begin_stretch_$kind(
    $real *end, tc_vec_$kind carry, $real *line, tc_vec_$kind first, int64_t lane)
{
    tc_end_stretch_$kind(end, carry);
    tc_part_$kind(line, first, lane, TC_LANES, 0);
}

/* Store the columns of a tile of two vectors or three by whole lines: each holds the last elements of one vector and the
 * first ones of the next.
 */
static inline __attribute__((always_inline)) void tc_join_columns_$kind(tc_joining_$kind *g,
    tc_vec_$kind sum[TC_COLUMNS][TC_HEIGHT], $real *c, const int64_t *c_column, const int height, const int along_panels)
{
    const tc_pick_$kind lanes = {TC_EACH(TC_NUMBER, 0, 0)};
    const int64_t rows = g->rows, left = g->left, last = rows - (height - 1)*TC_LANES;
    const tc_pick_$kind kept = lanes + ($number)last;
    $real *end = g->rest[0].end;
    tc_vec_$kind carry = g->rest[0].carry;
    _Pragma("GCC unroll 8")
    for (int j = 0; j < TC_COLUMNS; ++j) {
        if (j >= left) break;
        $real *const to = c + $parts*c_column[j];
        if (along_panels) {
            end = g->rest[j].end;
            carry = g->rest[j].carry;
        } else if (j + TC_SOON < left) {
            const int64_t *const soon = c_column + j + TC_SOON;
            tc_fetch_ends_$kind(c + $parts*soon[0], c + $parts*soon[-1], rows);
        }
        const int64_t lane = (int64_t)((uintptr_t)to%64/sizeof($real));
        const tc_pick_$kind from = lanes + ($number)(TC_LANES - lane);
        const int full = lane + last >= TC_LANES;  /* so is the last line */
        $real *const line = to - lane;
        const tc_vec_$kind first = TC_MERGE_$kind(carry, sum[j][0], from);
        if (to != end) {
            tc_begin_stretch_$kind(end, carry, line, first, lane);
        } else {
            TC_STREAM_$kind((tc_vec_$kind *)line, first);
        }
        _Pragma("GCC unroll 3")
        for (int v = 1; v < height; ++v) {
            const tc_vec_$kind x = TC_MERGE_$kind(sum[j][v - 1], sum[j][v], from);
            if (v < height - 1 || full) TC_STREAM_$kind((tc_vec_$kind *)(line + v*TC_LANES), x);
        }
        carry = TC_MERGE_$kind(sum[j][height > 1 ? height - 2 : 0], sum[j][height - 1], kept);
        end = to + rows;
        if (along_panels) {
            g->rest[j].end = end;
            g->rest[j].carry = carry;
        }
    }
    if (along_panels) return;
    g->rest[0].end = end;
    g->rest[0].carry = carry;
    g->left = left - TC_COLUMNS;
}
#endif

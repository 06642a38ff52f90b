/* Elements of a cache line, and the squares next to each other that they are turned in. */
#undef TC_LINE
#undef TC_SQUARES
#define TC_LINE (64/$bytes)
#define TC_SQUARES (64/TC_VECTOR)

/* A band: TC_LANES rows of the target that begin ``begin`` elements after a line, at ``place``, and what was
 * turned last of each: with the elements turned next it is a line. The next block often goes on there.
 */
typedef struct {
    tc_vec_$kind before[TC_LANES];
    int64_t place[TC_LANES], begin[TC_LANES];
} tc_band_$kind;

/* Lines with which the rows of a band begin and end, not all of which are theirs. */
typedef struct {
    tc_vec_$kind first[TC_LANES], last[TC_LANES];
} tc_ends_$kind;

/* A square of a block: where it lies in the buffer, and the target's places of its first row and of the
 * others; its column of the block, first row and first element, and its band.
 */
typedef struct {
    const $real *from;
    $real *to;
    const int64_t *c_row;
    int64_t column, row, element;
    tc_band_$kind *band;
} tc_square_$kind;

/* A block of the target whose rows lie in lanes, in a buffer: it is turned square by square while the next
 * block is computed. Squares go along ``run`` elements of a row of the target, then along ``rows`` rows
 * (places c_row), then along the columns. Where they are whole lines, edges are left; otherwise the last
 * ones go on over both ends.
 */
typedef struct {
    const $real *from;
    int64_t pitch, width, columns, rows, run, all_rows, all_run;
    $real *c;
    const int64_t *c_row, *c_column;
    int add, way;  /* to what is there; how it is stored, */
    tc_band_$kind *bands;  /* across lines; */
    tc_ends_$kind *lines;
    int begins, ends;      /* whether its rows do so in this block */
    int64_t left;  /* halves of squares, from this half of this square on */
    int64_t half;
    tc_square_$kind next;
} tc_turning_$kind;

static void tc_begin_turning_$kind(tc_turning_$kind *t)
{
    t->all_rows = (t->rows + (t->way != TC_BY_LINES ? TC_LANES - 1 : 0))/TC_LANES*TC_LANES;
    t->all_run = (t->run + (t->way != TC_BY_LINES ? TC_LINE - 1 : 0))/TC_LINE*TC_LINE;
    t->left = 2*t->columns*(t->all_rows/TC_LANES)*(t->all_run/TC_LINE);
    t->half = 0;
    t->next = (tc_square_$kind){t->from, t->c + t->c_column[0], t->c_row, 0, 0, 0, t->bands};
}

static inline __attribute__((always_inline)) void tc_next_square_$kind(
    const tc_turning_$kind *t, tc_square_$kind *at, const int way)
{
    at->from += TC_LINE*t->pitch;
    at->to += TC_LINE;
    if ((at->element += TC_LINE) < t->all_run) return;
    at->from += TC_LANES - t->all_run*t->pitch;
    at->to -= t->all_run;
    at->c_row += TC_LANES;
    if (way == TC_ACROSS_LINES) ++at->band;
    at->element = 0;
    if ((at->row += TC_LANES) < t->all_rows) return;
    at->row = 0;
    at->c_row = t->c_row;
    if (++at->column == t->columns) return;
    at->from = t->from + at->column*t->width*t->pitch;
    at->to = t->c + t->c_column[at->column];
}

/* Read as much of TC_LANES rows as becomes half of the rows of the target, and turn it. So few vectors at a
 * time leave the sums of a tile in registers.
 */
static inline __attribute__((always_inline)) void tc_read_half_$kind(
    tc_vec_$kind x[TC_LANES/2], const $real *from, int64_t pitch)
{
    _Pragma("GCC unroll 8")
    for (int n = 0; n < TC_LANES/2; ++n, from += pitch) {
        const $real *const other = from + TC_LANES/2*pitch;
        x[n] = (tc_vec_$kind)TC_JOIN(*(const tc_half *)from, *(const tc_half *)other);
    }
    tc_turn_half_$kind(x);
}

/* Fetch the places of the square that is stored TC_AHEAD squares after this one. */
static inline void tc_fetch_square_$kind(const tc_turning_$kind *t, const tc_square_$kind *at)
{
    int64_t column = at->column, i = at->row, f = at->element + TC_AHEAD*TC_LINE;
    while (f >= t->all_run) {
        f -= t->all_run;
        i += TC_LANES;
        if (i >= t->all_rows) {
            i = 0;
            ++column;
        }
    }
    if (column >= t->columns) return;
    const $real *const c = t->c + t->c_column[column] + tc_min(f + TC_LINE, t->run) - 1;
    const int64_t rows = tc_min(TC_LANES, t->rows - i);
    for (int64_t n = 0; n < rows; ++n) TC_FETCH_TARGET(c + t->c_row[i + n]);
}

/* Lanes first to last of a vector to memory, or added to it; the first lane of all is for ``to``. */
static inline void tc_part_$kind($real *to, tc_vec_$kind x, int64_t first, int64_t last, int add)
{
#ifdef TC_MASK_$kind
    TC_MASK_$kind(to, x, first, last, add);
#else
    for (int64_t n = first; n < last; ++n) to[n] = add ? to[n] + x[n] : x[n];
#endif
}

/* Turn and store as much of a square as there is. */
static __attribute__((noinline, cold)) void tc_turn_part_$kind(
    const tc_turning_$kind *t, const tc_square_$kind *at)
{
    const int64_t rows = tc_min(TC_LANES, t->rows - at->row);
    const $real *from = at->from;
    for (int64_t f = 0; f < TC_LINE; f += TC_LANES) {
        const int64_t wide = tc_min(TC_LANES, t->run - at->element - f);
        tc_vec_$kind x[TC_LANES];
        _Pragma("GCC unroll 16")
        for (int n = 0; n < TC_LANES; ++n, from += t->pitch) x[n] = *(const tc_any_$kind *)from;
        tc_turn_$kind(x);
        for (int64_t n = 0; n < rows && wide > 0; ++n) {
            tc_part_$kind(at->to + at->c_row[n] + f, x[n], 0, wide, t->add);
        }
    }
}

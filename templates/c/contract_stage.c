/* Elements of a cache line, and the squares next to each other that they are turned in. */
#undef TC_LINE
#undef TC_SQUARES
#define TC_LINE (64/$bytes)
#define TC_SQUARES (64/TC_VECTOR)

/* A block of the target whose rows lie in lanes, in a buffer: it is turned square by square and stored
 * while the next block is computed. Squares go along ``run`` elements of a row of the target, then
 * along ``rows`` rows (places c_row), then along the columns.
 */
typedef struct {
    const $real *from;
    int64_t pitch, width, columns, rows, run;
    $real *c;
    const int64_t *c_row, *c_column;
    int64_t column, row, element, left;  /* the next square; how many are left */
    int add, cached;  /* to what is there; not by whole lines, so that it is read first */
} tc_turning_$kind;

/* Fetch the places of a square that is stored soon. */
static inline void tc_fetch_square_$kind(const tc_turning_$kind *t)
{
    int64_t column = t->column, i = t->row, f = t->element;
    f += TC_AHEAD*TC_LINE;
    while (f >= t->run) {
        f -= (t->run + TC_LINE - 1)/TC_LINE*TC_LINE;
        i += TC_LANES;
        if (i >= t->rows) {
            i = 0;
            ++column;
        }
    }
    if (column >= t->columns) return;
    const $real *const c = t->c + t->c_column[column] + f;
    const int64_t last = tc_min(TC_LINE, t->run - f) - 1;
    for (int64_t n = 0; n < tc_min(TC_LANES, t->rows - i); ++n) {
        __builtin_prefetch(c + t->c_row[i + n] + last, 1, 3);
    }
}

/* Turn and store ``count`` squares, whole lines past the caches unless the target is in them. */
static void tc_store_$kind(tc_turning_$kind *t, int64_t count)
{
    for (count = tc_min(count, t->left); count > 0; --count, --t->left) {
        const int64_t i = t->row, f = t->element;
        if (t->cached) tc_fetch_square_$kind(t);
        const int64_t high = tc_min(TC_LANES, t->rows - i), wide = tc_min(TC_LINE, t->run - f);
        const $real *const from = t->from + (t->column*t->width + f)*t->pitch + i;
        $real *const c = t->c + t->c_column[t->column] + f;
        const int whole = high == TC_LANES && wide == TC_LINE && !t->add;
        tc_vec_$kind x[TC_SQUARES][TC_LANES];
        _Pragma("GCC unroll 4")
        for (int s = 0; s < TC_SQUARES; ++s) {
            _Pragma("GCC unroll 16")
            for (int n = 0; n < TC_LANES; ++n) {
                x[s][n] = *(const tc_any_$kind *)(from + tc_min(s*TC_LANES + n, wide - 1)*t->pitch);
            }
            tc_turn_$kind(x[s]);
        }
        _Pragma("GCC unroll 16")
        for (int n = 0; n < TC_LANES; ++n) {
            $real *const row = c + t->c_row[tc_min(i + n, t->rows - 1)];
            _Pragma("GCC unroll 4")
            for (int s = 0; s < TC_SQUARES; ++s) {
                $real *const to = row + s*TC_LANES;
                if (whole && !t->cached) {
                    TC_STREAM_$kind((tc_vec_$kind *)to, x[s][n]);
                } else if (whole) {
                    *(tc_any_$kind *)to = x[s][n];
                } else if (n < high && s*TC_LANES < wide) {
                    tc_part_$kind(to, x[s][n], 0, tc_min(TC_LANES, wide - s*TC_LANES), t->add);
                }
            }
        }
        if ((t->element += TC_LINE) < t->run) continue;
        t->element = 0;
        if ((t->row += TC_LANES) < t->rows) continue;
        t->row = 0;
        ++t->column;
    }
}

/* A staged contraction: one axis is the target's fastest and not the operand's; it is taken out of
 * its group. A block of the target is ``width`` elements of it, by ``together`` panels of the other
 * rows, by all columns; or, where it is an axis of the columns, by all rows and one of the others.
 */
typedef struct {
    int64_t width, together, pitch, fast, fast_step, others, near, runs, blocks;
    int of_columns, on_lines;
} tc_stages_$kind;

/* First panel, first element of the fastest axis, and places in the operand and the target. ``near``
 * groups of rows follow each other for the same elements.
 */
static void tc_stage_place_$kind(const tc_work_$kind *w, const tc_stages_$kind *s, int64_t block,
    int64_t *panel, int64_t *element, int64_t *from, int64_t *to)
{
    const int64_t place = block/s->near/s->runs*s->near + block%s->near;
    *panel = place/s->others*s->together;
    *element = block/s->near%s->runs*s->width;
    *from = *to = 0;
    if (s->of_columns) tc_places(&w->n, place%s->others, 1, from, to);
    *from += *element*s->fast_step;
    *to += *element;
}

/* First row of a group of panels, and how many. */
static int64_t tc_stage_first_$kind(
    const tc_work_$kind *w, const tc_stages_$kind *s, int64_t panel, int64_t *rows)
{
    int height;
    const int64_t first = tc_panel(&w->cut, panel, &height, rows);
    const int64_t last = tc_min(panel + s->together, w->cut.panels) - 1;
    const int64_t start = tc_panel(&w->cut, last, &height, rows);
    *rows += start - first;
    return first;
}

/* Places of rows of a group, one for each line of memory; how many. */
static int64_t tc_stage_lines_$kind(const tc_work_$kind *w, const tc_stages_$kind *s, int64_t panel,
    int64_t next, int64_t *line)
{
    const int64_t length = 64/(int64_t)sizeof($real);
    int64_t x[TC_NEARBY], y[TC_NEARBY], rows, count = 0, last = 0, since = 0;
    const int64_t first = tc_stage_first_$kind(w, s, panel, &rows);
    for (int64_t n = 0; n < rows; n += TC_NEARBY) {
        const int64_t many = tc_min(TC_NEARBY, rows - n);
        tc_places(&w->m, first + n, many, x, y);
        for (int64_t r = 0; r < many && count < TC_FETCHES - 2; last = x[r++]) {
            if (n + r > 0 && x[r] == last + 1) {
                if (++since%length == 0) line[count++] = x[r];
                continue;
            }
            if (since%length) line[count++] = last;
            line[count++] = x[r];
            since = 0;
        }
    }
    /* A run that starts within a line ends in one more, unless the next one follows it. */
    if (since%length && next != rows) line[count++] = last;
    return count;
}

/* The tiles of a block whose rows are read in place, by groups of panels: the first columns
 * pack a panel, the others find it packed. Meanwhile the next group is fetched and the block before
 * this one is stored.
 */
static void tc_stage_rows_$kind(const tc_work_$kind *w, const tc_stages_$kind *s, int64_t first,
    int64_t run, const $real *a, int64_t next, const $real *following, const $real *right,
    const int64_t *a_depth, $real *left, $real *buffer, tc_turning_$kind *before,
    tc_fetch_$kind *fetch)
{
    const int64_t summed = tc_points(&w->k), columns = tc_points(&w->n);
    const int64_t across = (columns + TC_COLUMNS - 1)/TC_COLUMNS;
    const int64_t last = tc_min(first + s->together, w->cut.panels);
    const int64_t tiles = across*(last - first), squares = before->left;
    const int64_t step = summed > 1 ? a_depth[1] - a_depth[0] : 0;
    const tc_origin origin = {0};
    int64_t here[TC_STAGED_TILES*TC_COLUMNS], each[3*TC_LANES], source[TC_STRIPS];
    int64_t rows, unused, stored = 0;
    const int64_t start = tc_stage_first_$kind(w, s, first, &rows);
    for (int n = 0; n < TC_STAGED_TILES*TC_COLUMNS; ++n) here[n] = n*s->width*s->pitch;
    for (int n = 0; n < 3*TC_LANES; ++n) each[n] = n;
    for (int64_t q = first; q < last; ++q) {
        int height;
        const int64_t row = tc_panel(&w->cut, q, &height, &rows);
        tc_places(&w->m, row, 1, source + q - first, &unused);
    }
    int64_t lines = tc_stage_lines_$kind(w, s, first, step, fetch->line_room);
    for (int64_t f = 0; f < run; ++f) {
        if (f + 1 == run) lines = tc_stage_lines_$kind(w, s, next, step, fetch->line_room);
        tc_aim_$kind(fetch, f + 1 < run ? a + (f + 1)*s->fast_step : following, fetch->line_room,
            lines, a_depth, summed);
        const int64_t share_of_lines = fetch->left/tiles + 1;
        int64_t done = 0;
        for (int64_t q = first; q < last; ++q) {
            int height;
            int64_t high;
            const int64_t row = tc_panel(&w->cut, q, &height, &high) - start;
            const $real *const from = a + source[q - first] + f*s->fast_step;
            const int whole = high == height*TC_LANES;
            if (!whole) tc_pack_$kind(left, height*TC_LANES, high, summed, from, each, a_depth, 1);
            for (int64_t j = 0, some; j < columns; j += some*TC_COLUMNS) {
                const int copy = whole && j == 0;
                some = copy ? 1 : tc_min(TC_STAGED_TILES, (columns - j + TC_COLUMNS - 1)/TC_COLUMNS);
                done += some;
                const int64_t share = squares*(f*tiles + done)/(run*tiles);
                tc_store_$kind(before, share - stored);
                stored = share;
                tc_tiles_$kind tile = {
                    .tiles = some, .depth = summed, .origin = &origin,
                    .a = copy ? from : left,
                    .a_column = a_depth,
                    .b = right + j*summed,
                    .c = buffer + (j*s->width + f)*s->pitch + row,
                    .c_column = here,
                    .copy = left,
                    .fetch = fetch->list,
                };
                tile.fetches = tc_take_evenly_$kind(fetch, share_of_lines, some);
                (copy ? tc_copied_$kind : tc_packed_$kind)[height](&tile);
            }
        }
    }
}

/* The tiles of a block whose rows are packed: the other operand is read element by element. */
static void tc_stage_columns_$kind(const tc_work_$kind *w, const tc_stages_$kind *s, int64_t run,
    const $real *b, const $real *following, const $real *left, const int64_t *b_depth,
    $real *buffer, tc_turning_$kind *before, tc_fetch_$kind *fetch)
{
    const int64_t summed = tc_points(&w->k), slot = 3*TC_LANES*summed, squares = before->left;
    const int64_t tiles = (run + TC_COLUMNS - 1)/TC_COLUMNS*w->cut.panels;
    const int64_t line = 64/(int64_t)sizeof($real);
    /* Columns start within a line, so that there is one more, unless they follow each other. */
    const int64_t lines = (summed + line - 1)/line + (s->fast_step != summed);
    const tc_origin origin = {0};
    int64_t places[TC_COLUMNS], here[TC_COLUMNS], steps[TC_COLUMNS], done = 0, stored = 0;
    for (int n = 0; n < TC_COLUMNS; ++n) {
        here[n] = n*s->pitch;
        steps[n] = n*s->fast_step;
    }
    for (int64_t f = 0; f < run; f += TC_COLUMNS) {
        const int64_t wide = tc_min(TC_COLUMNS, run - f);
        for (int n = 0; n < TC_COLUMNS; ++n) {
            places[n] = (f + tc_min(n, wide - 1))*s->fast_step;
        }
        tc_aim_$kind(fetch, f + TC_COLUMNS < run ? b + (f + TC_COLUMNS)*s->fast_step : following,
            fetch->line_room, lines, steps, tc_min(TC_COLUMNS, s->fast));
        const int64_t share_of_lines = fetch->left/w->cut.panels + 1;
        for (int64_t q = 0; q < w->cut.panels; ++q) {
            int height;
            int64_t high;
            const int64_t row = tc_panel(&w->cut, q, &height, &high);
            const int64_t share = squares*++done/tiles;
            tc_store_$kind(before, share - stored);
            stored = share;
            tc_tiles_$kind tile = {
                .tiles = 1, .depth = summed, .origin = &origin,
                .a = left + q*slot, .b = b, .b_column = places, .b_row = b_depth,
                .fetch = fetch->list, .c = buffer + f*s->pitch + row, .c_column = here,
            };
            tile.fetches = tc_take_$kind(fetch, share_of_lines);
            tc_right_$kind[height](&tile);
        }
    }
}

/* The blocks of a staged contraction that fall to one thread of ``shares``. */
static void tc_stage_$kind(const tc_work_$kind *w, const tc_stages_$kind *s, int64_t share,
    int64_t shares, char *memory)
{
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
    const int cached = w->add || !s->on_lines;
    const int64_t room = s->pitch*s->width
        *(s->of_columns ? 1 : (columns + TC_COLUMNS - 1)/TC_COLUMNS*TC_COLUMNS);
    $real *const buffers = s->of_columns ? right : left + slot;
    tc_fetch_$kind fetch;
    for (int64_t batch = 0; batch < batches; ++batch) {
        int64_t a_start, b_start, c_start;
        tc_places(&w->batch, batch, 1, &a_start, &b_start);
        tc_places(&w->target, batch, 1, &c_start, &c_start);
        const $real *const a = w->a + a_start, *const b = w->b + b_start;
        if (s->of_columns) {
            tc_places(&w->m, 0, tc_points(&w->m), a_row, c_row);
            c_column[0] = 0;
            const int64_t line = 64/(int64_t)sizeof($real);
            for (int64_t n = 0; n < summed; n += line) fetch.line_room[n/line] = b_depth[n];
            fetch.line_room[(summed + line - 1)/line] = b_depth[summed - 1];
            for (int64_t q = 0; q < w->cut.panels; ++q) {
                int height;
                int64_t high;
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
        tc_turning_$kind before = {.left = 0};
        const int64_t end = s->blocks*(share + 1)/shares;
        for (int64_t block = s->blocks*share/shares; block < end; ++block) {
            int64_t panel, element, from, to, next_panel, next_element, next, unused;
            tc_stage_place_$kind(w, s, block, &panel, &element, &from, &to);
            tc_stage_place_$kind(w, s, tc_min(block + 1, end - 1), &next_panel, &next_element, &next,
                &unused);
            $real *const buffer = buffers + block%2*room;
            int64_t *const places = s->of_columns || block%2 ? c_row : a_row;
            tc_turning_$kind now = {
                .from = buffer, .pitch = s->pitch, .width = s->width, .columns = 1,
                .run = tc_min(s->width, s->fast - element), .c = w->c + c_start + to,
                .c_row = places, .c_column = c_column, .add = w->add, .cached = cached,
            };
            if (s->of_columns) {
                now.rows = tc_points(&w->m);
                tc_stage_columns_$kind(w, s, now.run, b + from, b + next, left, b_depth, buffer,
                    &before, &fetch);
            } else {
                const int64_t start = tc_stage_first_$kind(w, s, panel, &now.rows);
                for (int64_t n = 0, other[TC_NEARBY]; n < now.rows; n += TC_NEARBY) {
                    tc_places(&w->m, start + n, tc_min(TC_NEARBY, now.rows - n), other, places + n);
                }
                now.columns = columns;
                tc_stage_rows_$kind(w, s, panel, now.run, a + from, next_panel, a + next, right,
                    a_depth, left, buffer, &before, &fetch);
            }
            now.left = now.columns*((now.rows + TC_LANES - 1)/TC_LANES)
                *((now.run + TC_LINE - 1)/TC_LINE);
            tc_store_$kind(&before, before.left);
            before = now;
        }
        tc_store_$kind(&before, before.left);
    }
    TC_FENCE();
}

/* Blocks of a contraction whose fastest axis is of ``fast`` elements, ``fast_step`` apart in the
 * operand; none where two buffers do not fit.
 */
static tc_stages_$kind tc_stages_of_$kind(
    const tc_work_$kind *w, int of_columns, int64_t fast, int64_t fast_step)
{
    tc_stages_$kind s = {.of_columns = of_columns, .fast = fast, .fast_step = fast_step};
    s.on_lines = tc_on_lines_$kind(w);
    const int64_t summed = tc_points(&w->k), columns = tc_points(&w->n);
    const int64_t line = 64/(int64_t)sizeof($real), step = tc_max(line, TC_COLUMNS);
    const int64_t slot = 3*TC_LANES*summed;
    if (summed == 0 || summed > w->blocks.depth) return s;
    int64_t room, element = 3*TC_LANES;
    if (of_columns) {
        if (tc_points(&w->m) > w->blocks.rows || w->cut.panels*slot > w->blocks.left) return s;
        room = tc_min(TC_BUFFER/$bytes, w->blocks.right/2);
        s.together = w->cut.panels;
    } else {
        const int64_t padded = (columns + TC_COLUMNS - 1)/TC_COLUMNS*TC_COLUMNS;
        if (padded > w->blocks.columns || padded*summed > w->blocks.right) return s;
        room = tc_min(TC_BUFFER/$bytes, (w->blocks.left - slot)/2);
        element *= padded;
        const int64_t width = tc_min(3*line, (fast + line - 1)/line*line);
        s.together = tc_min(tc_min(tc_max(1, room/(element*width)), TC_STRIPS/2), w->cut.panels);
        if (s.together > w->cut.pieces) s.together -= s.together%w->cut.pieces;
    }
    element *= s.together;
    const int64_t most = tc_min(room/element/step*step, 6*line/step*step);
    if (most < step) return s;
    const int64_t pieces = (fast + most - 1)/most;
    s.width = ((fast + pieces - 1)/pieces + step - 1)/step*step;
    s.pitch = s.together*3*TC_LANES;
    s.others = of_columns ? columns : 1;
    const int64_t groups = (w->cut.panels + s.together - 1)/s.together;
    s.runs = (fast + s.width - 1)/s.width;
    s.blocks = s.others*s.runs*groups;
    /* Rows lie near to each other in the operand, and often in the target. But lines of the target
     * that two blocks share are written soon after each other.
     */
    const int64_t across = tc_min(w->m.length[w->m.axes - 1], w->cut.run);
    const int64_t stretch = (across + s.pitch - 1)/s.pitch;
    s.near = s.on_lines ? s.others*groups : of_columns || groups%stretch ? 1 : stretch;
    return s;
}

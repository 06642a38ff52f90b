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
    f += TC_AHEAD*TC_LANES;
    while (f >= t->run) {
        f -= (t->run + TC_LANES - 1)/TC_LANES*TC_LANES;
        i += TC_LANES;
        if (i >= t->rows) {
            i = 0;
            ++column;
        }
    }
    if (column >= t->columns) return;
    const $real *const c = t->c + t->c_column[column] + f;
    const int64_t last = tc_min(TC_LANES, t->run - f) - 1;
    for (int64_t n = 0; n < tc_min(TC_LANES, t->rows - i); ++n) {
        __builtin_prefetch(c + t->c_row[i + n] + last, 1, 3);
    }
}

/* Turn and store ``count`` squares; whole lines wait for the next tile to store them. */
static void tc_store_$kind(tc_turning_$kind *t, int64_t count, tc_pending_$kind *pending)
{
    for (count = tc_min(count, t->left); count > 0; --count, --t->left) {
        const int64_t i = t->row, f = t->element;
        if (t->cached) tc_fetch_square_$kind(t);
        const int64_t high = tc_min(TC_LANES, t->rows - i), wide = tc_min(TC_LANES, t->run - f);
        const $real *const from = t->from + (t->column*t->width + f)*t->pitch + i;
        $real *const c = t->c + t->c_column[t->column] + f;
        tc_vec_$kind x[TC_LANES];
        _Pragma("GCC unroll 16")
        for (int n = 0; n < TC_LANES; ++n) {
            x[n] = *(const tc_any_$kind *)(from + tc_min(n, wide - 1)*t->pitch);
        }
        tc_turn_$kind(x);
        const int whole = high == TC_LANES && wide == TC_LANES && !t->add;
        if (whole && pending->count + TC_LANES <= TC_PENDING) {
            _Pragma("GCC unroll 16")
            for (int n = 0; n < TC_LANES; ++n) {
                $real *const to = c + t->c_row[i + n];
                if ((uintptr_t)to%TC_VECTOR == 0) {
                    pending->to[pending->count] = to;
                    pending->line[pending->count++] = x[n];
                } else {
                    *(tc_any_$kind *)to = x[n];
                }
            }
        } else {
            _Pragma("GCC unroll 16")
            for (int n = 0; n < TC_LANES; ++n) {
                if (n < high) tc_part_$kind(c + t->c_row[i + n], x[n], 0, wide, t->add);
            }
        }
        if ((t->element += TC_LANES) < t->run) continue;
        t->element = 0;
        if ((t->row += TC_LANES) < t->rows) continue;
        t->row = 0;
        ++t->column;
    }
}

static void tc_finish_$kind(tc_turning_$kind *t, tc_pending_$kind *pending)
{
    while (t->left > 0) {
        tc_store_$kind(t, TC_PENDING/TC_LANES, pending);
        tc_drain_$kind(pending);
    }
}

/* A staged contraction: the outer indices are those of the rows without the lanes and the target's
 * fastest axis, or those of the columns without the latter. A block of the target is ``width``
 * elements of its fastest axis, by ``together`` panels of rows, by all columns; with the outer group
 * of columns by all rows.
 */
typedef struct {
    tc_walk outer;
    int64_t width, together, pitch, fast, fast_step, row_step, groups, runs, blocks;
} tc_stages_$kind;

static tc_stages_$kind tc_stages_of_$kind(
    const tc_work_$kind *w, int turned, int64_t width, int64_t together)
{
    tc_stages_$kind s = {.outer = turned < 0 ? w->n : w->m, .width = width, .together = together};
    const int last = s.outer.axes - 1, axis = turned < 0 ? last : turned;
    s.pitch = together*3*TC_LANES;
    s.fast = s.outer.length[axis];
    s.fast_step = s.outer.x[axis];
    s.row_step = turned < 0 ? 0 : s.outer.y[last];
    s.outer.length[axis] = s.outer.length[last] = 1;
    s.groups = (w->cut.panels + together - 1)/together;
    s.runs = (s.fast + width - 1)/width;
    s.blocks = tc_points(&s.outer)*s.runs*s.groups;
    return s;
}

/* First panel, first element of the fastest axis, and places in the operand and the target. */
static void tc_stage_place_$kind(const tc_stages_$kind *s, int64_t block, int64_t *panel,
    int64_t *element, int64_t *from, int64_t *to)
{
    *panel = block%s->groups*s->together;
    *element = block/s->groups%s->runs*s->width;
    tc_places(&s->outer, block/s->groups/s->runs, 1, from, to);
    *from += *element*s->fast_step;
    *to += *element;
}

/* The tiles of a block whose rows are read in place, by groups of panels: the first columns
 * pack a panel, the others find it packed. Meanwhile the next group is fetched and the block before
 * this one is stored.
 */
static void tc_stage_rows_$kind(const tc_work_$kind *w, const tc_stages_$kind *s, int64_t first,
    int64_t run, const $real *a, const $real *following, const $real *right, const int64_t *a_depth,
    int64_t *a_row, $real *left, $real *buffer, tc_turning_$kind *before,
    tc_pending_$kind *pending, tc_fetch_$kind *fetch)
{
    const int64_t summed = tc_points(&w->k), columns = tc_points(&w->n);
    const int64_t across = (columns + TC_COLUMNS - 1)/TC_COLUMNS;
    const int64_t line = 64/(int64_t)sizeof($real);
    const int64_t last = tc_min(first + s->together, w->cut.panels);
    int height;
    int64_t high;
    const int64_t start = tc_panel(&w->cut, first, &height, &high);
    const int64_t rows = tc_panel(&w->cut, last - 1, &height, &high) + high - start;
    const int64_t tiles = across*(last - first), squares = before->left;
    int64_t here[TC_COLUMNS], stored = 0;
    /* Rows start within a line, so that there is one more, unless they follow each other in memory. */
    const int more = summed < 2 || a_depth[1] - a_depth[0] != rows;
    const int64_t lines = tc_min(TC_FETCHES, (rows + line - 1)/line + more);
    for (int64_t n = 0; n < lines; ++n) fetch->line_room[n] = tc_min(n*line, rows - 1);
    for (int n = 0; n < TC_COLUMNS; ++n) here[n] = n*s->width*s->pitch;
    for (int64_t f = 0; f < run; ++f) {
        const $real *const next = f + 1 < run ? a + (f + 1)*s->fast_step : following;
        tc_aim_$kind(fetch, next, fetch->line_room, lines, a_depth, summed);
        const int64_t share_of_lines = fetch->left/tiles + 1;
        int64_t done = 0;
        for (int64_t q = first; q < last; ++q) {
            const int64_t row = tc_panel(&w->cut, q, &height, &high) - start;
            const $real *const source = a + row + f*s->fast_step;
            const int whole = high == height*TC_LANES;
            if (!whole) {
                for (int64_t n = 0; n < high; ++n) a_row[n] = n;
                tc_pack_$kind(left, height*TC_LANES, high, summed, source, a_row, a_depth, 1);
            }
            for (int64_t j = 0; j < columns; j += TC_COLUMNS) {
                ++done;
                const int64_t share = squares*(f*tiles + done)/(run*tiles);
                tc_store_$kind(before, share - stored, pending);
                stored = share;
                const int copy = whole && j == 0;
                tc_tile_$kind tile = {
                    .depth = summed,
                    .a = copy ? source : left,
                    .a_column = a_depth,
                    .b = right + j*summed,
                    .c = buffer + (j*s->width + f)*s->pitch + row,
                    .c_column = here,
                    .copy = left,
                    .fetch = fetch->list,
                    .fetches = tc_take_$kind(fetch, share_of_lines),
                };
                tc_give_$kind(&tile, pending);
                (copy ? tc_copied_$kind : tc_packed_$kind)[height](&tile);
            }
        }
    }
}

/* The tiles of a block whose rows are packed: the other operand is read element by element. */
static void tc_stage_columns_$kind(const tc_work_$kind *w, const tc_stages_$kind *s, int64_t run,
    const $real *b, const $real *following, const $real *left, const int64_t *b_depth,
    $real *buffer, tc_turning_$kind *before, tc_pending_$kind *pending, tc_fetch_$kind *fetch)
{
    const int64_t summed = tc_points(&w->k), slot = 3*TC_LANES*summed, squares = before->left;
    const int64_t tiles = (run + TC_COLUMNS - 1)/TC_COLUMNS*w->cut.panels;
    const int64_t line = 64/(int64_t)sizeof($real);
    /* Columns start within a line, so that there is one more, unless they follow each other. */
    const int64_t lines = (summed + line - 1)/line + (s->fast_step != summed);
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
            tc_store_$kind(before, share - stored, pending);
            stored = share;
            tc_tile_$kind tile = {
                .depth = summed, .a = left + q*slot, .b = b, .b_column = places, .b_row = b_depth,
                .fetch = fetch->list, .fetches = tc_take_$kind(fetch, share_of_lines),
                .c = buffer + f*s->pitch + row, .c_column = here,
            };
            tc_give_$kind(&tile, pending);
            tc_right_$kind[height](&tile);
        }
    }
}

/* The blocks of a staged contraction that fall to one thread of ``shares``. */
static void tc_stage_$kind(const tc_work_$kind *w, int turned, int64_t width, int64_t together,
    int64_t share, int64_t shares, char *memory)
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
    const tc_stages_$kind s = tc_stages_of_$kind(w, turned, width, together);
    const int cached = w->add || !tc_on_lines_$kind(w);
    const int64_t room = s.pitch*width*(turned < 0 ? 1 : (columns + TC_COLUMNS - 1)/TC_COLUMNS*TC_COLUMNS);
    $real *const buffers = turned < 0 ? right : left + slot;
    tc_pending_$kind pending;
    pending.count = 0;
    tc_fetch_$kind fetch;
    int height;
    int64_t high;
    for (int64_t batch = 0; batch < batches; ++batch) {
        int64_t a_start, b_start, c_start;
        tc_places(&w->batch, batch, 1, &a_start, &b_start);
        tc_places(&w->target, batch, 1, &c_start, &c_start);
        const $real *const a = w->a + a_start, *const b = w->b + b_start;
        if (turned < 0) {
            tc_places(&w->m, 0, tc_points(&w->m), a_row, c_row);
            c_column[0] = 0;
            const int64_t line = 64/(int64_t)sizeof($real);
            for (int64_t n = 0; n < summed; n += line) fetch.line_room[n/line] = b_depth[n];
            fetch.line_room[(summed + line - 1)/line] = b_depth[summed - 1];
            for (int64_t q = 0; q < w->cut.panels; ++q) {
                const int64_t row = tc_panel(&w->cut, q, &height, &high);
                tc_pack_$kind(left + q*slot, height*TC_LANES, high, summed, a, a_row + row,
                    a_depth, w->alpha);
            }
        } else {
            tc_places(&w->n, 0, columns, b_column, c_column);
            for (int64_t n = 0; n < together*3*TC_LANES; ++n) c_row[n] = n*s.row_step;
            for (int64_t j = 0; j < columns; j += TC_COLUMNS) {
                tc_pack_$kind(right + j*summed, TC_COLUMNS, tc_min(TC_COLUMNS, columns - j), summed,
                    b, b_column + j, b_depth, w->alpha);
            }
        }
        tc_turning_$kind before = {.left = 0};
        const int64_t end = s.blocks*(share + 1)/shares;
        for (int64_t block = s.blocks*share/shares; block < end; ++block) {
            int64_t panel, element, from, to, next_panel, next_element, next, unused;
            tc_stage_place_$kind(&s, block, &panel, &element, &from, &to);
            tc_stage_place_$kind(&s, tc_min(block + 1, end - 1), &next_panel, &next_element, &next,
                &unused);
            $real *const buffer = buffers + block%2*room;
            tc_turning_$kind now = {
                .from = buffer, .pitch = s.pitch, .width = width, .columns = 1,
                .run = tc_min(width, s.fast - element), .c = w->c + c_start + to,
                .c_row = c_row, .c_column = c_column, .add = w->add, .cached = cached,
            };
            if (turned < 0) {
                now.rows = tc_points(&w->m);
                tc_stage_columns_$kind(w, &s, now.run, b + from, b + next, left, b_depth, buffer,
                    &before, &pending, &fetch);
            } else {
                const int64_t last = tc_min(panel + together, w->cut.panels) - 1;
                const int64_t start = tc_panel(&w->cut, panel, &height, &high);
                now.rows = tc_panel(&w->cut, last, &height, &high) + high - start;
                now.columns = columns;
                now.c += start*s.row_step;
                const int64_t ahead = tc_panel(&w->cut, next_panel, &height, &high);
                tc_stage_rows_$kind(w, &s, panel, now.run, a + from + start, a + next + ahead, right,
                    a_depth, a_row, left, buffer, &before, &pending, &fetch);
            }
            now.left = now.columns*((now.rows + TC_LANES - 1)/TC_LANES)
                *((now.run + TC_LANES - 1)/TC_LANES);
            tc_finish_$kind(&before, &pending);
            before = now;
        }
        tc_finish_$kind(&before, &pending);
    }
    tc_drain_$kind(&pending);
    TC_FENCE();
}

/* Length of the runs that go through a buffer, or 0 where two buffers do not fit. */
static int64_t tc_width_$kind(
    const tc_work_$kind *w, int turned, int64_t summed, int64_t *together)
{
    const int64_t slot = 3*TC_LANES*summed, columns = tc_points(&w->n);
    if (summed == 0 || summed > w->blocks.depth) return 0;
    int64_t room, element, fast;
    if (turned < 0) {
        if (tc_points(&w->m) > w->blocks.rows || w->cut.panels*slot > w->blocks.left) return 0;
        room = w->blocks.right/2;
        *together = w->cut.panels;
        element = w->cut.panels*3*TC_LANES;
        fast = w->n.length[w->n.axes - 1];
    } else {
        const int64_t padded = (columns + TC_COLUMNS - 1)/TC_COLUMNS*TC_COLUMNS;
        if (padded > w->blocks.columns || padded*summed > w->blocks.right) return 0;
        room = (w->blocks.left - slot)/2;
        element = padded*3*TC_LANES;
        fast = w->m.length[turned];
        const int64_t width = tc_min(3*TC_LANES, (fast + TC_LANES - 1)/TC_LANES*TC_LANES);
        *together = tc_max(1, tc_min(TC_BUFFER/$bytes, room)/(element*width));
        *together = tc_min(*together, w->cut.panels);
        element *= *together;
    }
    const int64_t step = tc_max(TC_LANES, TC_COLUMNS);
    const int64_t most = tc_min(tc_min(TC_BUFFER/$bytes, room)/element/step*step, 6*TC_LANES/step*step);
    if (most < step) return 0;
    const int64_t pieces = (fast + most - 1)/most;
    return ((fast + pieces - 1)/pieces + step - 1)/step*step;
}

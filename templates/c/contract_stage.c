/* Turn and store what is not in squares that tiles turn. */
static __attribute__((noinline)) void tc_turn_edges_$kind(const tc_turning_$kind *t)
{
    if (t->rows <= t->all_rows && t->run <= t->all_run) return;
    for (int64_t column = 0; column < t->columns; ++column) {
        for (int64_t i = 0; i < t->rows; i += TC_LANES) {
            for (int64_t f = i < t->all_rows ? t->all_run : 0; f < t->run; f += TC_LINE) {
                const tc_square_$kind at = {
                    t->from + (column*t->width + f)*t->pitch + i, t->c + t->c_column[column] + f,
                    t->c_row + i, column, i, f,
                };
                tc_turn_part_$kind(t, &at);
            }
        }
    }
}

/* Turn and store the rest of a block. */
static __attribute__((noinline)) void tc_turn_rest_$kind(tc_turning_$kind *t)
{
    while (t->left > 0) {
        switch (t->way) {
        case TC_BY_LINES: tc_turn_square_half_$kind(t, &t->next, t->half, TC_BY_LINES); break;
        case TC_BY_SQUARES: tc_turn_square_half_$kind(t, &t->next, t->half, TC_BY_SQUARES); break;
        default: tc_turn_square_half_$kind(t, &t->next, t->half, TC_ACROSS_LINES);
        }
        t->half = !t->half;
        if (!t->half) tc_next_square_$kind(t, &t->next, t->way);
        --t->left;
    }
}

/* Steps from one half of a square to the next where ``tiles`` tiles of so many steps turn the block before. */
static int64_t tc_gap_$kind(const tc_turning_$kind *before, int64_t tiles, int64_t steps)
{
    return tc_max(1, tiles*steps/tc_max(1, before->left));
}

/* A panel of a block: where its first row lies in the operand and the buffer, its rows and vectors. */
typedef struct {
    int64_t source, row, rows;
    int height;
} tc_staged_panel_$kind;

/* Read a panel where it was packed, ``apart`` reals from one summed point to the next. */
static void tc_read_packed_$kind(tc_tiles_$kind *t, const $real *packed, int64_t apart)
{
    t->a = packed;
    t->a_step = apart;
    t->a_run = t->a_bend = t->depth;
    t->a_start = 0;
    t->copy = 0;
}

/* The tiles of a block whose rows are read in place, by parts of the sum and by panels; rows at the end of the operand, or whose
 * points lie far apart, are packed. Meanwhile what comes next is fetched, and the block before this one is
 * turned.
 */
static void tc_stage_rows_$kind(const tc_work_$kind *w, const tc_stages_$kind *s, int64_t first,
    int64_t run, const int64_t *along, const $real *a, int64_t next, const $real *following,
    const $real *right, const int64_t *a_depth, $real *left, $real *buffer, tc_turning_$kind *before,
    tc_ahead_$kind *ahead)
{
    const int64_t summed = tc_points(&w->k), columns = tc_points(&w->n);
    const int64_t across = (columns + TC_COLUMNS - 1)/TC_COLUMNS;
    const int64_t panels = tc_min(s->together, w->cut.panels - first), tiles = panels*across;
    const int64_t halves = before->left, step = summed > 1 ? a_depth[1] - a_depth[0] : 0;
    const int64_t parts = (summed + s->part - 1)/s->part, all = run*tiles*parts;
    const int64_t pace = (halves*TC_PACE + all - 1)/all;
    const tc_origin origin = {0};
    int64_t here[TC_FEW + TC_COLUMNS], each[TC_HEIGHT*TC_LANES];
    const int64_t inner = w->k.axes ? w->k.length[w->k.axes - 1] : 1;
    tc_run_$kind *const *const run_tile = tc_staged_left_$kind[s->way];
    int64_t done = 0, rows, unused;
    tc_staged_panel_$kind panel[TC_STRIPS];
    /* The first tile packs a panel each of whose points lies on a page of its own, or that only then fits
     * the first-level cache: in place there is a line more for each point.
     */
    const int far = step*(int64_t)sizeof($real) >= TC_PAGE;
    const int fits = TC_HEIGHT*TC_VECTOR*s->part <= TC_FIRST && (TC_HEIGHT*TC_VECTOR + 64)*s->part > TC_FIRST;
    const int pack = across > 1 && (far || fits);
    const int64_t start = tc_stage_first_$kind(w, s, first, &rows);
    for (int64_t n = 0; n < across*TC_COLUMNS; ++n) here[n] = n*s->column*s->pitch;
    for (int n = 0; n < TC_HEIGHT*TC_LANES; ++n) each[n] = n;
    for (int64_t q = 0; q < panels; ++q) {
        const int64_t row = tc_panel(&w->cut, first + q, &panel[q].height, &panel[q].rows);
        tc_places(&w->m, row, 1, &panel[q].source, &unused);
        panel[q].row = row - start;
    }
    const int64_t beyond = tc_stage_source_$kind(w, s, next);
    tc_look_at_$kind(ahead, w, s, first, step);
    tc_tiles_$kind tile = {
        .tiles = across, .origin = &origin, .c_column = here, .turning = before,
        .gap = tc_gap_$kind(before, all, s->part),
    };
    for (int64_t f = 0, p = 0, then; f < run; f += then == 0, p = then) {
        const int64_t *const depth = a_depth + p;
        then = p + s->part < summed ? p + s->part : 0;
        tile.depth = tc_min(s->part, summed - p);
        tile.b = right + p*across*TC_COLUMNS;
        tile.add = p > 0;
        if (then > 0) {
            tile.fetch_from = (const char *)(a + panel[0].source + along[f] + a_depth[then]);
        } else if (f + 1 < run) {
            tile.fetch_from = (const char *)(a + panel[0].source + along[f + 1]);
        } else {
            tc_look_at_$kind(ahead, w, s, next, step);
            tile.fetch_from = (const char *)(following + beyond);
        }
        tc_list_ahead_$kind(ahead, a_depth + then, tc_min(s->part, summed - then), across);
        int64_t fetched = 0;
        const int64_t lines = ahead->count, share = (lines + tiles - 1)/tiles;
        for (int64_t q = 0; q < panels; ++q) {
            const int64_t apart = panel[q].height*TC_LANES;
            tile.a = a + panel[q].source + along[f];
            tile.a_column = depth;
            tile.a_step = step;
            tile.a_run = inner;
            tile.a_start = depth[0];
            tile.a_bend = inner - p%inner;
            tile.copy = pack ? left : 0;
            /* Lanes beyond the last row read what lies there, unless the operand ends before. */
            if (panel[q].rows < apart && tile.a - w->a + s->deepest + apart > s->reach) {
                tc_pack_$kind(left, apart, panel[q].rows, tile.depth, tile.a, each, depth, 1);
                tc_read_packed_$kind(&tile, left, apart);
            }
            tile.c = buffer + f*s->pitch + panel[q].row;
            tile.fetch = ahead->list + fetched;
            tile.fetches = tc_min(share, (lines - fetched + across - 1)/across);
            fetched += tile.fetches*across;
            done += across;
            tile.halves = tc_min(pace*done/TC_PACE - (halves - before->left), before->left);
            run_tile[panel[q].height](&tile);
        }
    }
}

/* The columns with which the next block begins: where the first one lies, and how far from it. */
typedef struct {
    const $real *from;
    const int64_t *along;
    int64_t count;
} tc_following_$kind;

/* Aim at columns, so many ``lines`` of each: in turn, as pages are always, or one column after the other. */
static void tc_aim_columns_$kind(
    tc_fetch_$kind *f, const $real *from, const int64_t *along, int64_t count, int64_t lines)
{
    if (TC_ALWAYS) tc_aim_$kind(f, from, along, count, f->line_room, lines);
    else tc_aim_$kind(f, from, f->line_room, lines, along, count);
}

/* The tiles of a block whose rows are packed: the other operand is read element by element, ``along`` the
 * fastest axes.
 */
static void tc_stage_columns_$kind(const tc_work_$kind *w, const tc_stages_$kind *s, int64_t run,
    const int64_t *along, const $real *b, const tc_following_$kind *next, const $real *left,
    const int64_t *b_depth, $real *buffer, tc_turning_$kind *before, tc_fetch_$kind *fetch)
{
    const int64_t summed = tc_points(&w->k), slot = TC_HEIGHT*TC_LANES*summed;
    const int64_t tiles = (run + TC_COLUMNS - 1)/TC_COLUMNS*w->cut.panels, halves = before->left;
    const int64_t line = 64/(int64_t)sizeof($real);
    /* Columns start within a line, so that there is one more, unless they follow each other. */
    const int64_t lines = (summed + line - 1)/line + (s->fast_step != summed);
    const tc_origin origin = {0};
    tc_run_$kind *const *const run_tile = tc_staged_right_$kind[s->way];
    int64_t places[TC_COLUMNS], here[TC_COLUMNS], steps[2*TC_COLUMNS], done = 0;
    for (int n = 0; n < TC_COLUMNS; ++n) here[n] = n*s->pitch;
    tc_tiles_$kind tile = {
        .tiles = 1, .depth = summed, .origin = &origin, .b = b, .b_column = places, .b_row = b_depth,
        .c_column = here, .fetch = fetch->list, .turning = before,
        .gap = tc_gap_$kind(before, tiles, summed),
    };
    for (int64_t f = 0, wide = tc_min(TC_COLUMNS, run); f < run; f += TC_COLUMNS) {
        for (int n = 0; n < TC_COLUMNS; ++n) places[n] = along[f + tc_min(n, wide - 1)];
        wide = tc_min(TC_COLUMNS, run - f - TC_COLUMNS);
        for (int n = 0; n < wide; ++n) steps[n] = along[f + TC_COLUMNS + n] - along[f + TC_COLUMNS];
        if (wide > 0) tc_aim_columns_$kind(fetch, b + along[f + TC_COLUMNS], steps, wide, lines);
        else tc_aim_columns_$kind(fetch, next->from, next->along, next->count, lines);
        const int64_t share = fetch->left/w->cut.panels + 1;
        for (int64_t q = 0; q < w->cut.panels; ++q) {
            int height;
            int64_t high;
            tile.c = buffer + f*s->pitch + tc_panel(&w->cut, q, &height, &high);
            tile.a = left + q*slot;
            tile.halves = (halves*++done/tiles - (halves - before->left))/2*2;  /* whole squares */
            tile.fetches = tc_take_$kind(fetch, share);
            tile.fetch_from = (const char *)fetch->from;
            run_tile[height](&tile);
        }
    }
}

/* The blocks of a staged contraction that fall to one thread of ``shares``. */
static void tc_stage_$kind(const tc_work_$kind *w, const tc_stages_$kind *s, int64_t share,
    int64_t shares, char *memory)
{
    const int64_t summed = tc_points(&w->k), batches = tc_points(&w->batch);
    const int64_t slot = TC_HEIGHT*TC_LANES*summed, columns = tc_points(&w->n);
    $real *const left = ($real *)memory;
    memory += tc_aligned(w->blocks.left*(int64_t)sizeof($scalar));
    $real *const right = ($real *)memory;
    memory += tc_aligned(w->blocks.right*(int64_t)sizeof($scalar));
    int64_t *const c_row = (int64_t *)memory, *const a_row = c_row + w->blocks.rows;
    int64_t *const b_column = a_row + w->blocks.rows, *const c_column = b_column + w->blocks.columns;
    int64_t *const a_depth = c_column + w->blocks.columns, *const b_depth = a_depth + summed;
    tc_places(&w->k, 0, summed, a_depth, b_depth);
    const int64_t room = s->pitch*s->width
        *(s->of_columns ? 1 : (columns + TC_COLUMNS - 1)/TC_COLUMNS*TC_COLUMNS);
    $real *const buffers = s->of_columns ? right : left + slot;
    tc_band_$kind *const bands = (tc_band_$kind *)(buffers + 2*room);
    tc_fetch_$kind fetch;
    tc_ahead_$kind ahead = {.lines = 0, .depth = 0};
    tc_ends_$kind lines;
    int64_t along[TC_LONGER*TC_LINE], unused;
    tc_stage_along_$kind(s, 0, tc_min(s->width, s->fast), along);  /* of one axis those of all blocks */
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
            const int64_t padded = (columns + TC_COLUMNS - 1)/TC_COLUMNS*TC_COLUMNS;
            for (int64_t p = 0; p < summed; p += s->part) {
                const int64_t depth = tc_min(s->part, summed - p);
                for (int64_t j = 0; j < columns; j += TC_COLUMNS) {
                    tc_pack_$kind(right + p*padded + j*depth, TC_COLUMNS, tc_min(TC_COLUMNS, columns - j),
                        depth, b, b_column + j, b_depth + p, w->alpha);
                }
            }
        }
        tc_turning_$kind before = {.left = 0, .way = s->way};
        const int64_t begin = s->blocks*share/shares, end = s->blocks*(share + 1)/shares;
        for (int64_t block = begin; block < end; ++block) {
            int64_t panel, element, from, to, next_panel, next_element, next;
            tc_stage_place_$kind(w, s, block, &panel, &element, &from, &to);
            tc_stage_place_$kind(w, s, tc_min(block + 1, end - 1), &next_panel, &next_element, &next,
                &unused);
            $real *const buffer = buffers + block%2*room;
            int64_t *const places = s->of_columns || block%2 ? c_row : a_row;
            const int64_t run = tc_min(s->width, s->fast - element);
            tc_turning_$kind now = {
                .from = buffer, .pitch = s->pitch, .width = s->width, .columns = 1, .run = run,
                .c = w->c + c_start + to, .c_row = places, .c_column = c_column, .add = w->add,
                .way = s->way, .bands = bands, .lines = &lines,
                .begins = element == 0 || block == begin,
                .ends = element + run == s->fast || block + 1 == end,
            };
            if (s->along.axes > 1) tc_stage_along_$kind(s, element, run, along);
            if (s->of_columns) {
                int64_t apart[2*TC_COLUMNS];
                const int64_t *const first = s->along.axes > 1 ? apart : along;
                const tc_following_$kind then = {b + next, first, tc_min(TC_COLUMNS, s->fast - next_element)};
                if (first == apart) tc_stage_along_$kind(s, next_element, then.count, apart);
                now.rows = tc_points(&w->m);
                tc_stage_columns_$kind(w, s, run, along, b + from, &then, left, b_depth, buffer, &before,
                    &fetch);
            } else {
                const int64_t start = tc_stage_first_$kind(w, s, panel, &now.rows);
                for (int64_t n = 0, other[TC_NEARBY]; n < now.rows; n += TC_NEARBY) {
                    tc_places(&w->m, start + n, tc_min(TC_NEARBY, now.rows - n), other, places + n);
                }
                now.columns = s->joined ? 1 : columns;
                now.run *= s->joined ? columns : 1;
                tc_stage_rows_$kind(w, s, panel, run, along, a + from, next_panel, a + next, right,
                    a_depth, left, buffer, &before, &ahead);
            }
            tc_turn_rest_$kind(&before);
            tc_begin_turning_$kind(&now);
            tc_turn_edges_$kind(&now);
            before = now;
        }
        tc_turn_rest_$kind(&before);
    }
    TC_FENCE();
}

/* Turn and store what is not in whole squares. */
static __attribute__((noinline)) void tc_turn_edges_$kind(const tc_turning_$kind *t)
{
    if (t->rows == t->whole_rows && t->run == t->whole_run) return;
    for (int64_t column = 0; column < t->columns; ++column) {
        for (int64_t i = 0; i < t->rows; i += TC_LANES) {
            const int64_t high = tc_min(TC_LANES, t->rows - i);
            for (int64_t f = i < t->whole_rows ? t->whole_run : 0; f < t->run; f += TC_LINE) {
                const int64_t wide = tc_min(TC_LINE, t->run - f);
                $real *const c = t->c + t->c_column[column] + f;
                for (int64_t n = i + TC_LANES; n < tc_min(i + 2*TC_LANES, t->rows); ++n) {
                    __builtin_prefetch(c + t->c_row[n], 1, 3);
                }
                tc_vec_$kind x[TC_SQUARES][TC_LANES];
                tc_read_square_$kind(
                    x, t->from + (column*t->width + f)*t->pitch + i, t->pitch, wide);
                for (int64_t n = 0; n < high; ++n) {
                    for (int64_t s = 0; s*TC_LANES < wide; ++s) {
                        tc_part_$kind(c + t->c_row[i + n] + s*TC_LANES, x[s][n], 0,
                            tc_min(TC_LANES, wide - s*TC_LANES), t->add);
                    }
                }
            }
        }
    }
}

/* Turn and store the rest of a block. */
static __attribute__((noinline)) void tc_turn_rest_$kind(tc_turning_$kind *t)
{
    for (; t->left > 0; --t->left) {
        if (t->cached) tc_turn_square_$kind(t, &t->next, 1);
        else tc_turn_square_$kind(t, &t->next, 0);
        tc_next_square_$kind(t, &t->next);
    }
}

/* A staged contraction: one axis is the target's fastest and not the operand's; it is taken out of
 * its group. A block of the target is ``width`` elements of it, by ``together`` panels of the other
 * rows, by all columns; or, where it is an axis of the columns, by all rows and one of the others.
 */
typedef struct {
    int64_t width, together, pitch, fast, fast_step, others, near, runs, blocks;
    int of_columns, on_lines, cached;
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

/* Place of the first row of a group of panels in the operand. */
static int64_t tc_stage_source_$kind(
    const tc_work_$kind *w, const tc_stages_$kind *s, int64_t panel)
{
    int64_t rows, place, unused;
    tc_places(&w->m, tc_stage_first_$kind(w, s, panel, &rows), 1, &place, &unused);
    return place;
}

/* Lines of memory of a group of panels for all summed points, in bytes from its first element, and with
 * the last one ``spare`` times more. ``line``: those of one point. Most groups have the same.
 */
typedef struct {
    int64_t lines, count, line[TC_FETCHES], list[TC_LISTED + TC_FEW];
} tc_ahead_$kind;

/* Set the lines of a group. Groups whose points are ``next`` rows apart follow each other. */
static void tc_look_ahead_$kind(tc_ahead_$kind *ahead, const tc_work_$kind *w,
    const tc_stages_$kind *s, int64_t panel, const int64_t *a_depth, int64_t next, int64_t spare)
{
    const int64_t length = 64/(int64_t)sizeof($real), summed = tc_points(&w->k);
    int64_t x[TC_NEARBY], y[TC_NEARBY], rows, lines = 0, last = 0, since = 0;
    int same = 1;
    const int64_t first = tc_stage_first_$kind(w, s, panel, &rows);
#define TC_ADD_LINE(place) \
    (same &= ahead->line[lines] == (place) - x0, ahead->line[lines++] = (place) - x0)
    int64_t x0 = 0;
    for (int64_t n = 0; n < rows; n += TC_NEARBY) {
        const int64_t many = tc_min(TC_NEARBY, rows - n);
        tc_places(&w->m, first + n, many, x, y);
        x0 = n == 0 ? x[0] : x0;
        for (int64_t r = 0; r < many && lines < TC_FETCHES - 2; last = x[r++]) {
            if (n + r > 0 && x[r] == last + 1) {
                if (++since%length == 0) TC_ADD_LINE(x[r]);
                continue;
            }
            if (since%length) TC_ADD_LINE(last);
            TC_ADD_LINE(x[r]);
            since = 0;
        }
    }
    /* A run that starts within a line ends in one more, unless the next one follows it. */
    if (since%length && next != rows) TC_ADD_LINE(last);
#undef TC_ADD_LINE
    if (same && lines == ahead->lines) return;
    ahead->lines = lines;
    int64_t count = 0;
    for (int64_t p = 0; p < summed && count + lines <= TC_LISTED; ++p) {
        for (int64_t l = 0; l < lines; ++l) {
            ahead->list[count++] = (a_depth[p] + ahead->line[l])*(int64_t)sizeof($real);
        }
    }
    for (int64_t n = 0; count > 0 && n < spare; ++n) ahead->list[count + n] = ahead->list[count - 1];
    ahead->count = count > 0 ? count + spare : 0;
}

/* Steps from one square to the next where ``tiles`` tiles of so many steps turn the block before. */
static int64_t tc_gap_$kind(const tc_turning_$kind *before, int64_t tiles, int64_t steps)
{
    return tc_max(1, tiles*steps/tc_max(1, before->left));
}

/* A panel of a block: where its first row lies in the operand and the buffer, its rows and vectors. */
typedef struct {
    int64_t source, row, rows;
    int height;
} tc_step_$kind;

/* The tiles of a block whose rows are read in place, by panels; rows that do not fill a panel, or whose
 * points lie far apart, are packed. Meanwhile what comes next is fetched and the block before this one is turned.
 */
static void tc_stage_rows_$kind(const tc_work_$kind *w, const tc_stages_$kind *s, int64_t first,
    int64_t run, const $real *a, int64_t next, const $real *following, const $real *right,
    const int64_t *a_depth, $real *left, $real *buffer, tc_turning_$kind *before,
    tc_ahead_$kind *ahead)
{
    const int64_t summed = tc_points(&w->k), columns = tc_points(&w->n);
    const int64_t across = (columns + TC_COLUMNS - 1)/TC_COLUMNS;
    const int64_t panels = tc_min(s->together, w->cut.panels - first), tiles = panels*across;
    const int64_t squares = before->left, step = summed > 1 ? a_depth[1] - a_depth[0] : 0;
    const int64_t pace = (squares*TC_PACE + run*tiles - 1)/(run*tiles);
    const tc_origin origin = {0};
    int64_t here[TC_FEW + TC_COLUMNS], each[3*TC_LANES], packed[4][TC_DEPTH];
    tc_run_$kind *const *const run_tile = tc_staged_left_$kind + (s->cached ? 3 : 0);
    int64_t done = 0, rows, unused;
    tc_step_$kind panel[TC_STRIPS];
    /* The first columns pack a panel each of whose points lies on a page of its own, or that only then fits
     * the first-level cache: in place there is a line more for each point.
     */
    const int far = step*(int64_t)sizeof($real) >= TC_PAGE;
    const int fits = 3*TC_VECTOR*summed <= TC_FIRST && (3*TC_VECTOR + 64)*summed > TC_FIRST;
    const int pack = across > 1 && (far || fits);
    const int64_t start = tc_stage_first_$kind(w, s, first, &rows);
    for (int64_t n = 0; n < across*TC_COLUMNS; ++n) here[n] = n*s->width*s->pitch;
    for (int n = 0; n < 3*TC_LANES; ++n) each[n] = n;
    for (int height = 1; height <= 3; ++height) {
        for (int64_t p = 0; p < summed; ++p) packed[height][p] = p*height*TC_LANES;
    }
    for (int64_t q = 0; q < panels; ++q) {
        const int64_t row = tc_panel(&w->cut, first + q, &panel[q].height, &panel[q].rows);
        tc_places(&w->m, row, 1, &panel[q].source, &unused);
        panel[q].row = row - start;
    }
    const int64_t beyond = tc_stage_source_$kind(w, s, next);
    tc_look_ahead_$kind(ahead, w, s, first, a_depth, step, across);
    tc_tiles_$kind tile = {
        .depth = summed, .origin = &origin,
        .turning = before, .gap = tc_gap_$kind(before, run*tiles, summed),
    };
    for (int64_t f = 0; f < run; ++f) {
        if (f + 1 == run) {
            tc_look_ahead_$kind(ahead, w, s, next, a_depth, step, across);
            tile.fetch_from = (const char *)(following + beyond);
        } else {
            tile.fetch_from = (const char *)(a + panel[0].source + (f + 1)*s->fast_step);
        }
        int64_t fetched = 0;
        const int64_t lines = ahead->count, share = lines/tiles + 1;
        for (int64_t q = 0; q < panels; ++q) {
            const int64_t apart = panel[q].height*TC_LANES;
            tile.a = a + panel[q].source + f*s->fast_step;
            tile.a_column = a_depth;
            tile.copy = pack ? left : 0;
            if (panel[q].rows < apart) {
                tc_pack_$kind(left, apart, panel[q].rows, summed, tile.a, each, a_depth, 1);
                tile.copy = 0;
                tile.a = left;
                tile.a_column = packed[panel[q].height];
            }
            tile.c = buffer + f*s->pitch + panel[q].row;
            tile.tiles = tile.copy ? 1 : across;
            for (int64_t j = 0; j < across; j += tile.tiles, tile.tiles = across - j) {
                if (j > 0) {
                    tile.copy = 0;
                    tile.a = left;
                    tile.a_column = packed[panel[q].height];
                }
                tile.b = right + j*TC_COLUMNS*summed;
                tile.c_column = here + j*TC_COLUMNS;
                tile.fetch = ahead->list + fetched;
                tile.fetches = tc_min(share, (lines - fetched)/tile.tiles);
                fetched += tile.fetches*tile.tiles;
                done += tile.tiles;
                tile.squares = tc_min(pace*done/TC_PACE - (squares - before->left), before->left);
                run_tile[panel[q].height](&tile);
            }
        }
    }
}

/* The tiles of a block whose rows are packed: the other operand is read element by element. */
static void tc_stage_columns_$kind(const tc_work_$kind *w, const tc_stages_$kind *s, int64_t run,
    const $real *b, const $real *following, const $real *left, const int64_t *b_depth,
    $real *buffer, tc_turning_$kind *before, tc_fetch_$kind *fetch)
{
    const int64_t summed = tc_points(&w->k), slot = 3*TC_LANES*summed;
    const int64_t tiles = (run + TC_COLUMNS - 1)/TC_COLUMNS*w->cut.panels, squares = before->left;
    const int64_t line = 64/(int64_t)sizeof($real);
    /* Columns start within a line, so that there is one more, unless they follow each other. */
    const int64_t lines = (summed + line - 1)/line + (s->fast_step != summed);
    const tc_origin origin = {0};
    tc_run_$kind *const *const run_tile = tc_staged_right_$kind + (s->cached ? 3 : 0);
    int64_t places[TC_COLUMNS], here[TC_COLUMNS], steps[TC_COLUMNS], done = 0;
    for (int n = 0; n < TC_COLUMNS; ++n) {
        here[n] = n*s->pitch;
        steps[n] = n*s->fast_step;
    }
    tc_tiles_$kind tile = {
        .tiles = 1, .depth = summed, .origin = &origin, .b = b, .b_column = places, .b_row = b_depth,
        .c_column = here, .fetch = fetch->list, .turning = before,
        .gap = tc_gap_$kind(before, tiles, summed),
    };
    for (int64_t f = 0; f < run; f += TC_COLUMNS) {
        const int64_t wide = tc_min(TC_COLUMNS, run - f);
        for (int n = 0; n < TC_COLUMNS; ++n) {
            places[n] = (f + tc_min(n, wide - 1))*s->fast_step;
        }
        tc_aim_$kind(fetch, f + TC_COLUMNS < run ? b + (f + TC_COLUMNS)*s->fast_step : following,
            fetch->line_room, lines, steps, tc_min(TC_COLUMNS, s->fast));
        const int64_t share = fetch->left/w->cut.panels + 1;
        for (int64_t q = 0; q < w->cut.panels; ++q) {
            int height;
            int64_t high;
            tile.c = buffer + f*s->pitch + tc_panel(&w->cut, q, &height, &high);
            tile.a = left + q*slot;
            tile.squares = squares*++done/tiles - (squares - before->left);
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
    const int64_t slot = 3*TC_LANES*summed, columns = tc_points(&w->n);
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
    tc_fetch_$kind fetch;
    tc_ahead_$kind ahead = {.lines = 0};
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
                .c_row = places, .c_column = c_column, .add = w->add, .cached = s->cached,
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
                    a_depth, left, buffer, &before, &ahead);
            }
            tc_begin_turning_$kind(&now);
            tc_turn_edges_$kind(&now);
            before = now;
        }
        tc_turn_rest_$kind(&before);
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
    s.cached = w->add || !s.on_lines;
    const int64_t summed = tc_points(&w->k), columns = tc_points(&w->n);
    const int64_t line = 64/(int64_t)sizeof($real), step = tc_max(line, TC_COLUMNS);
    const int64_t slot = 3*TC_LANES*summed;
    if (summed == 0 || summed > w->blocks.depth) return s;
    const int64_t padded = of_columns ? 1 : (columns + TC_COLUMNS - 1)/TC_COLUMNS*TC_COLUMNS;
    int64_t room = TC_BUFFER/$bytes;
    if (of_columns) {
        if (tc_points(&w->m) > w->blocks.rows || w->cut.panels*slot > w->blocks.left) return s;
        room = tc_min(room, w->blocks.right/2);
        s.together = w->cut.panels;
    } else {
        if (columns > TC_FEW || padded > w->blocks.columns || padded*summed > w->blocks.right) return s;
        room = tc_min(room, (w->blocks.left - slot)/2);
        const int64_t width = tc_min(3*line, (fast + line - 1)/line*line);
        s.together = tc_max(1, (room/(padded*width) - line)/(3*TC_LANES));
        s.together = tc_min(tc_min(s.together, TC_STRIPS/2), w->cut.panels);
        if (s.together > w->cut.pieces) s.together -= s.together%w->cut.pieces;
    }
    s.pitch = s.together*3*TC_LANES + line;  /* so that not all columns lie in the same places of a cache */
    const int64_t most = tc_min(room/(padded*s.pitch)/step*step, 6*line/step*step);
    if (most < step) return s;
    const int64_t pieces = (fast + most - 1)/most;
    s.width = ((fast + pieces - 1)/pieces + step - 1)/step*step;
    s.others = of_columns ? columns : 1;
    const int64_t groups = (w->cut.panels + s.together - 1)/s.together;
    s.runs = (fast + s.width - 1)/s.width;
    s.blocks = s.others*s.runs*groups;
    /* Rows lie near to each other in the operand, and often in the target. But lines of the target
     * that two blocks share are written soon after each other.
     */
    const int64_t across = tc_min(w->m.length[w->m.axes - 1], w->cut.run);
    const int64_t stretch = (across + s.pitch - line - 1)/(s.pitch - line);
    s.near = s.on_lines ? s.others*groups : of_columns || groups%stretch ? 1 : stretch;
    return s;
}

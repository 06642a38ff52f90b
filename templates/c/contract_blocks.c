/* A panel of a block: its first row, vectors and rows. */
typedef struct {
    int64_t row, rows;
    int height;
} tc_strip_$kind;

/* A block of the target: panels and columns, with the operands for some summed points. */
typedef struct {
    const tc_strip_$kind *strips;
    int64_t row, panels, columns, depth, slot;
    const $real *packed_a, *packed_b;
    const $scalar *a, *b;
    $scalar *c;
    const int64_t *a_row, *a_depth, *b_column, *b_depth, *c_row, *c_column;
    int add;
    tc_fetch_$kind *fetch;
    int64_t fetches;  /* for each tile */
    int64_t ahead;    /* lines of packed columns, fetched before their turn */
    tc_stream_$kind *stream;
} tc_block_$kind;

/* The operands of one tile of a block, and what computes it. ``column``: room for their places. */
static inline __attribute__((always_inline)) tc_run_tile_$kind *tc_operands_$kind(
    const tc_work_$kind *w, const tc_block_$kind *block, int64_t q, int64_t j,
    tc_tile_$kind *tile, int64_t *column)
{
    const tc_strip_$kind strip = block->strips[q];
    tile->depth = block->depth*$parts;
    tile->a = block->packed_a + q*block->slot;
    tile->b = block->packed_b + j*tile->depth;
    tile->fetch = block->fetch->list;
    tile->fetches = tc_take_$kind(block->fetch, block->fetches);
#if $parts == 1
    if (!w->left && strip.rows == strip.height*w->cut.lanes) {
        tile->a = block->a + block->a_row[strip.row];
        tile->a_column = block->a_depth;
        return tc_left_$kind[strip.height];
    }
    if (!w->right) {
        for (int n = 0; n < TC_COLUMNS; ++n) {
            column[n] = block->b_column[tc_min(j + n, block->columns - 1)];
        }
        tile->b = block->b;
        tile->b_column = column;
        tile->b_row = block->b_depth;
        return tc_right_$kind[strip.height];
    }
#else
    (void)w, (void)column;
#endif
    return tc_packed_$kind[strip.height];
}

/* One tile of a block. */
static inline __attribute__((always_inline)) void tc_one_$kind(
    const tc_work_$kind *w, const tc_block_$kind *block, int64_t q, int64_t j)
{
    const tc_strip_$kind strip = block->strips[q];
    const int64_t across = tc_min(TC_COLUMNS, block->columns - j);
    int64_t column[TC_COLUMNS];
    tc_tile_$kind tile;
    tc_run_tile_$kind *const run = tc_operands_$kind(w, block, q, j, &tile, column);
    tile.c = block->c + block->c_row[strip.row];
    tile.c_column = block->c_column + j;
    tile.add = block->add;
    tc_give_$kind(&tile, &block->stream->pending);
    tile.leave = 0;
    if (w->stream == TC_DIRECT && across == TC_COLUMNS && strip.rows == strip.height*w->cut.lanes) {
        tile.leave = &block->stream->pending;
    }
    tile.far = !tile.leave;
    const int64_t *const rows = block->c_row + strip.row;
    const int64_t *const scattered = w->regular || tc_consecutive(rows, strip.rows) ? 0 : rows;
    if (scattered || across < TC_COLUMNS || strip.rows < strip.height*w->cut.lanes) {
        tc_edge_$kind(run, &tile, strip.rows, across, scattered);
    } else {
        run(&tile);
    }
}

/* Panels of one run, from panel q on, that go through the buffer together. */
static int64_t tc_tall_$kind(const tc_work_$kind *w, const tc_block_$kind *block, int64_t q)
{
    const int64_t run = (block->row + block->strips[q].row)/w->cut.run;
    int64_t last = q + 1;
    while (last < block->panels && last - q < TC_TALLEST
        && (block->row + block->strips[last].row)/w->cut.run == run) {
        ++last;
    }
    return last;
}

/* Columns that go through the buffer with panels of one run, or runs of one panel, at least those of
 * a tile.
 */
static int64_t tc_broad_$kind(const tc_work_$kind *w)
{
    const tc_cut *const cut = &w->cut;
    const int64_t height = (cut->vectors + cut->pieces - 1)/cut->pieces;
    const int64_t lines = w->together > 1
        ? w->together*((w->run + cut->lanes - 1)/cut->lanes + 1)
        : tc_min(cut->pieces, TC_TALLEST)*height + 1;
    return (TC_LINES - w->together)/lines/TC_COLUMNS*TC_COLUMNS;
}

/* A chunk of a target that passes by the caches: panels q0 to q1, of one run, or one panel of several
 * runs, and columns j0 to j1. It is written as the target lies, runs that follow each other joined,
 * so that whole lines are stored while the next chunk is computed. Runs of one panel lie
 * one behind the other in the buffer, each within its lines as in the target.
 */
static void tc_chunk_$kind(
    const tc_work_$kind *w, const tc_block_$kind *block, int64_t q0, int64_t q1, int64_t j0, int64_t j1)
{
    const int64_t across = w->cut.lanes, row = block->strips[q0].row;
    const int64_t all = block->strips[q1 - 1].row + block->strips[q1 - 1].rows - row;
    const int64_t runs = w->together > 1 ? all/w->run : 1, rows = all/runs;
    const int64_t *const c_row = block->c_row + row, *const c_column = block->c_column;
    tc_stream_$kind *const stream = block->stream;
    stream->turn = !stream->turn;
    $scalar *const buffer = ($scalar *)stream->buffer[stream->turn];
    $scalar *const c = block->c + c_row[0];
    int64_t place[TC_LINES + TC_COLUMNS], first[TC_LINES + 1], end = 0;
    int stretches = 0;
    for (int64_t j = j0; j < j1;) {
        end = (end + across - 1)/across*across;
        end += (int64_t)((uintptr_t)(c + c_column[j])%TC_VECTOR/sizeof($scalar));
        first[stretches++] = j;
        const int64_t apart = rows == w->run ? rows : 0;  /* from a run to one that joins it */
        do {
            place[j++ - j0] = end;
            end += rows;
        } while (j < j1 && apart && c_column[j] == c_column[j - 1] + apart);
    }
    first[stretches] = j1;
    for (int64_t j = j1; j < j1 + TC_COLUMNS; ++j) place[j - j0] = TC_LINES*across;
    const int64_t room = (end + across - 1)/across*across + across;
    int64_t begin[TC_RUNS], here[3*TC_LANES];
    tc_piece_$kind piece[3*TC_LANES];
    for (int64_t r = 0; r < runs; ++r) {
        begin[r] = r*room + ((c_row[r*rows] - c_row[0])%across + across)%across;
        for (int64_t n = 0; n < stretches; ++n) {  /* the ends are not whole lines */
            const $scalar *const to = c + (c_row[r*rows] - c_row[0]);
            __builtin_prefetch(to + c_column[first[n]], 1, 3);
            __builtin_prefetch(to + c_column[first[n + 1] - 1] + rows - 1, 1, 3);
        }
        for (int64_t n = 0; runs > 1 && n < rows; ++n) here[r*rows + n] = begin[r] + n;
    }
    const int pieces = runs > 1 ? tc_pieces_$kind(here, all, piece) : 0;
    const int64_t tiles = (j1 - j0 + TC_COLUMNS - 1)/TC_COLUMNS*(q1 - q0);
    int64_t waiting = 0;
    for (int64_t n = stream->first; n < stream->count; ++n) waiting += stream->stretch[n].lines;
    const int64_t share = (waiting + tiles - 1)/tiles;
    for (int64_t j = j0; j < j1; j += TC_COLUMNS) {
        for (int64_t q = q1 - 1; q >= q0; --q) {  /* padding is written over */
            int64_t column[TC_COLUMNS];
            tc_tile_$kind tile;
            tc_run_tile_$kind *const run = tc_operands_$kind(w, block, q, j, &tile, column);
            tile.c = buffer + (block->strips[q].row - row);
            tile.c_column = place + (j - j0);
            tile.add = tile.far = 0;
            tile.leave = 0;
            tc_share_lines_$kind(&tile, stream, share);
            if (runs > 1) tc_pieced_$kind(run, &tile, piece, pieces, tc_min(TC_COLUMNS, j1 - j));
            else run(&tile);
        }
    }
    tc_drain_stream_$kind(stream);
    for (int64_t r = 0; r < runs; ++r) {
        for (int n = 0; n < stretches; ++n) {
            tc_pass_$kind(stream, ($real *)(c + (c_row[r*rows] - c_row[0]) + c_column[first[n]]),
                ($real *)(buffer + begin[r] + place[first[n] - j0]),
                (first[n + 1] - first[n])*rows*$parts);
        }
    }
}

/* All tiles of a block; the inner loop walks what lies closer together in the target. */
static void tc_tiles_$kind(const tc_work_$kind *w, const tc_block_$kind *block)
{
    const int64_t panels = block->panels, columns = block->columns;
    const int64_t broad = tc_broad_$kind(w);
    if (w->stream == TC_BUFFERED && w->inner_columns) {
        for (int64_t q = 0, next; q < panels; q = next) {
            next = tc_tall_$kind(w, block, q);
            for (int64_t j = 0; j < columns; j += broad) {
                tc_chunk_$kind(w, block, q, next, j, tc_min(columns, j + broad));
            }
        }
    } else if (w->stream == TC_BUFFERED) {
        for (int64_t j = 0; j < columns; j += broad) {
            for (int64_t q = 0, next; q < panels; q = next) {
                next = tc_tall_$kind(w, block, q);
                tc_chunk_$kind(w, block, q, next, j, tc_min(columns, j + broad));
            }
        }
    } else if (w->inner_columns) {
        for (int64_t q = 0; q < panels; ++q) {
            for (int64_t j = 0; j < columns; j += TC_COLUMNS) tc_one_$kind(w, block, q, j);
        }
    } else {
        const int64_t here = 0;
        for (int64_t j = 0; j < columns; j += TC_COLUMNS) {
            if (block->ahead && j + TC_COLUMNS < columns) {
                const $real *const next = block->packed_b + (j + TC_COLUMNS)*block->depth*$parts;
                tc_aim_$kind(block->fetch, (const $scalar *)next, block->fetch->line_room,
                    block->ahead, &here, 1);
            }
            for (int64_t q = 0; q < panels; ++q) tc_one_$kind(w, block, q, j);
        }
    }
}

/* The rows of some panels and some columns, for some points of the batch. */
static void tc_share_$kind(const tc_work_$kind *w, int64_t first_batch, int64_t last_batch,
    int64_t first_panel, int64_t last_panel, int64_t first_column, int64_t last_column,
    char *memory)
{
    tc_strip_$kind strips[TC_STRIPS];
    tc_fetch_$kind fetch;
    tc_stream_$kind stream;
    stream.turn = 0;
    stream.first = stream.count = stream.pending.count = 0;
    const int64_t summed = tc_points(&w->k), most_depth = w->blocks.depth;
    const tc_steps *const steps = &w->steps;
    const int64_t slot = 3*TC_LANES*$parts*most_depth;  /* reals of a panel */
    int64_t wide = tc_min(w->blocks.columns, w->blocks.right/most_depth)/TC_COLUMNS*TC_COLUMNS;
    int64_t high = tc_max(1, tc_min(TC_STRIPS, tc_min(w->blocks.left*$parts*$parts/slot,
        w->blocks.rows/(3*w->cut.lanes))));
    /* Where one operand is small, blocks of the other one need not be large. */
    const int once = summed <= most_depth && last_panel - first_panel <= high;
    if ((last_panel - first_panel)*slot <= TC_NEAR/$bytes) {
        wide = tc_min(wide, TC_NEAR/$bytes/(most_depth*$parts)/TC_COLUMNS*TC_COLUMNS + TC_COLUMNS);
    } else if ((last_column - first_column)*most_depth*$parts <= TC_NEAR/$bytes) {
        high = tc_min(high, TC_NEAR/$bytes/slot + 1);
    }
    $real *const packed_a = ($real *)memory;
    memory += tc_aligned(w->blocks.left*(int64_t)sizeof($scalar)*$parts);
    $real *const packed_b = ($real *)memory;
    memory += tc_aligned(w->blocks.right*(int64_t)sizeof($scalar));
    int64_t *const a_row = (int64_t *)memory, *const c_row = a_row + w->blocks.rows;
    int64_t *const b_column = c_row + w->blocks.rows, *const c_column = b_column + w->blocks.columns;
    int64_t *const a_depth = c_column + w->blocks.columns, *const b_depth = a_depth + w->blocks.depth;
    /* A large operand that meets few columns (rows) is fetched: packing it takes much of the time. */
    const double bytes = (double)summed*sizeof($scalar);
    const int large_a = bytes*tc_points(&w->m) >= TC_STREAM_BYTES && !steps->crossed
        && last_column - first_column <= TC_FEW;
    const int large_b = bytes*tc_points(&w->n) >= TC_STREAM_BYTES && once
        && last_panel - first_panel <= TC_FEW/(3*w->cut.lanes);
    for (int64_t batch = first_batch; batch < last_batch; ++batch) {
        int64_t a_start, b_start, c_start;
        tc_places(&w->batch, batch, 1, &a_start, &b_start);
        tc_places(&w->target, batch, 1, &c_start, &c_start);
        const $scalar *const a = w->a + a_start, *const b = w->b + b_start;
        for (int64_t j0 = first_column; j0 < last_column; j0 += wide) {
            const int64_t columns = tc_min(wide, last_column - j0);
            tc_places(&w->n, j0, columns, b_column, c_column);
            for (int64_t step = 0; step < steps->count; ++step) {
                int64_t leap;
                const int64_t depth = tc_step(steps, step, a_depth, b_depth, &leap);
                for (int64_t j = 0; w->right && j < columns;) {
#if $parts == 1
                    if (leap > 1 && j + TC_COLUMNS <= columns) {
                        tc_pack_leaping_$kind(packed_b + j*depth, depth, b, b_column + j, b_depth,
                            leap, w->alpha);
                        j += TC_COLUMNS;
                        continue;
                    }
                    const int64_t many = tc_together_$kind(b_column + j, columns - j);
                    if (many > 0) {
                        tc_copy_$kind(packed_b + j*depth*$parts, many, depth, b + b_column[j],
                            b_depth, w->alpha);
                        j += many*TC_COLUMNS;
                        continue;
                    }
#endif
                    TC_PACK_RIGHT_$kind(packed_b + j*depth*$parts, TC_COLUMNS,
                        tc_min(TC_COLUMNS, columns - j), depth, b, b_column + j, b_depth, w->alpha);
                    j += TC_COLUMNS;
                }
                const $real scale = w->right ? 1 : w->alpha;
                for (int64_t q0 = first_panel; q0 < last_panel; q0 += high) {
                    const int64_t panels = tc_min(high, last_panel - q0);
                    int height;
                    int64_t rows;
                    const int64_t r0 = tc_panel(&w->cut, q0, &height, &rows);
                    const int64_t r1 = tc_panel(&w->cut, q0 + panels - 1, &height, &rows) + rows;
                    tc_places(&w->m, r0, r1 - r0, a_row, c_row);
                    for (int64_t q = 0; q < panels; ++q) {
                        tc_strip_$kind *const strip = strips + q;
                        strip->row = tc_panel(&w->cut, q0 + q, &strip->height, &strip->rows) - r0;
                        if (!w->left && strip->rows == strip->height*w->cut.lanes) continue;
                        if (once && j0 > first_column) continue;
                        TC_PACK_LEFT_$kind(packed_a + q*slot, strip->height*TC_LANES, strip->rows,
                            depth, a, a_row + strip->row, a_depth, scale);
                    }
                    tc_aim_$kind(&fetch, a, 0, 0, 0, 0);
                    if (q0 + high < last_panel || step + 1 < steps->count) {
                        const int same = q0 + high < last_panel;
                        const int64_t p1 = (same ? step : step + 1)*most_depth;
                        const int64_t q1 = same ? q0 + high : first_panel;
                        const int64_t s0 = tc_panel(&w->cut, q1, &height, &rows);
                        const int64_t s1 = tc_panel(&w->cut, tc_min(q1 + high, last_panel) - 1,
                            &height, &rows) + rows;
                        if (large_a) {
                            tc_aim_block_$kind(&fetch, a, &w->m, s0, s1 - s0, &w->k, p1,
                                tc_min(most_depth, summed - p1), 0);
                        }
                    } else if (j0 + wide < last_column && large_b) {
                        tc_aim_block_$kind(&fetch, b, &w->n, j0 + wide,
                            tc_min(wide, last_column - j0 - wide), &w->k, 0,
                            tc_min(most_depth, summed), 1);
                    }
                    const int64_t tiles = panels*((columns + TC_COLUMNS - 1)/TC_COLUMNS);
                    int64_t ahead = 0;
                    if (fetch.left == 0 && w->right && columns*depth*$parts*$bytes > TC_NEAR) {
                        for (; ahead < TC_COLUMNS*depth*$parts*$bytes/64; ++ahead) {
                            fetch.line_room[ahead] = ahead*64/(int64_t)sizeof($scalar);
                        }
                    }
                    const tc_block_$kind block = {
                        .strips = strips, .row = r0, .panels = panels, .columns = columns, .depth = depth,
                        .slot = slot, .packed_a = packed_a, .packed_b = packed_b,
                        .a = a, .b = b, .c = w->c + c_start,
                        .a_row = a_row, .a_depth = a_depth, .b_column = b_column,
                        .b_depth = b_depth, .c_row = c_row, .c_column = c_column,
                        .add = w->add || step > 0, .stream = &stream,
                        .fetch = &fetch, .ahead = ahead,
                        .fetches = (ahead ? ahead/panels : fetch.left/tiles) + 1,
                    };
                    tc_tiles_$kind(w, &block);
                }
            }
        }
    }
    tc_drain_stream_$kind(&stream);
    if (w->stream) TC_FENCE();
}

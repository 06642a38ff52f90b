#ifdef TC_MERGE_$kind
/* Tiles that are put together, from panel q and column j on; how many. */
static int64_t tc_join_some_$kind(const tc_work_$kind *w, const tc_block_$kind *block, int64_t q, int64_t j,
    int along_panels, int64_t last, tc_joining_$kind *joining)
{
    const int64_t tiles = tc_alike_$kind(block, q, j, along_panels, last);
    tc_tiles_$kind t;
    tc_run_$kind *const run = tc_operands_$kind(w, block, q, j, tiles, &t);
    joining->rows = block->strips[q].rows*$parts;
    t.along_panels = along_panels;
    t.c = block->c;
    t.c_column = block->c_column + j;
    t.add = t.far = 0;
    t.leave = 0;
    t.stores = 0;
    t.join = joining;
    run(&t);
    return tiles;
}

/* A panel that is all of its run, along the columns of a block. */
static void tc_join_panel_$kind(const tc_work_$kind *w, const tc_block_$kind *block, int64_t q)
{
    const int64_t columns = block->columns, *const c_column = block->c_column;
    const int64_t padded = (columns + TC_COLUMNS - 1)/TC_COLUMNS*TC_COLUMNS, rows = block->strips[q].rows*$parts;
    $real *const c = ($real *)(block->c + block->origins[q].c);
    tc_joining_$kind joining = {.left = columns};
    TC_FETCH_TARGET(c + $parts*c_column[0]);
    for (int64_t j = 1; j < tc_min(columns, TC_SOON); ++j) {
        tc_fetch_ends_$kind(c + $parts*c_column[j], c + $parts*c_column[j - 1], rows);
    }
    for (int64_t j = 0; j < columns;) {
        j += TC_COLUMNS*tc_join_some_$kind(w, block, q, j, 0, padded, &joining);
    }
    tc_end_stretch_$kind(joining.rest[0].end, joining.rest[0].carry);
}

/* Panels q0 to q1 of one run, with the columns of a tile from j on; meanwhile those that come next are fetched. */
static void tc_join_run_$kind(const tc_work_$kind *w, const tc_block_$kind *block, int64_t q0, int64_t q1, int64_t j)
{
    const int64_t columns = tc_min(TC_COLUMNS, block->columns - j);
    const int64_t rows = block->strips[q1 - 1].row + block->strips[q1 - 1].rows - block->strips[q0].row;
    $scalar *const c = block->c + block->origins[q0].c;
    tc_joining_$kind joining = {.left = columns};
    for (int64_t n = j > 0 ? columns : 0; n < tc_min(2*columns, block->columns - j); ++n) {
        TC_FETCH_TARGET(c + block->c_column[j + n]);
        TC_FETCH_TARGET(c + block->c_column[j + n] + rows - 1);
    }
    for (int64_t q = q0; q < q1;) q += tc_join_some_$kind(w, block, q, j, 1, q1, &joining);
    for (int64_t n = 0; n < columns; ++n) tc_end_stretch_$kind(joining.rest[n].end, joining.rest[n].carry);
}
#endif

/* All tiles of a block: groups of columns, and within a group one panel, or a chunk's, after another. */
static void tc_compute_$kind(const tc_work_$kind *w, const tc_block_$kind *block)
{
    const int64_t panels = block->panels, columns = block->columns, here = 0;
#ifdef TC_MERGE_$kind
    if (w->stream == TC_JOINED_LINES) {
        for (int64_t q = 0, next; q < panels; q = next) {
            next = tc_tall_$kind(w, block, q);
            if (w->cut.pieces == 1) tc_join_panel_$kind(w, block, q);
            for (int64_t j = 0; w->cut.pieces > 1 && j < columns; j += TC_COLUMNS) {
                tc_join_run_$kind(w, block, q, next, j);
            }
        }
        return;
    }
#endif
    const int64_t broad = w->stream == TC_BUFFERED ? tc_broad_$kind(w) : TC_COLUMNS;
    const int64_t group = w->stream != TC_BUFFERED ? block->group
        : w->inner_columns ? tc_max(1, block->group/broad)*broad : broad;
    for (int64_t j0 = 0; j0 < columns; j0 += group) {
        const int64_t j1 = tc_min(columns, j0 + group);
        if (w->stream == TC_BUFFERED) {
            for (int64_t q = 0, next; q < panels; q = next) {
                next = tc_tall_$kind(w, block, q);
                for (int64_t j = j0; j < j1; j += broad) {
                    tc_pass_by_$kind(w, block, q, next, j, tc_min(j1, j + broad));
                }
            }
            continue;
        }
        if (block->ahead && j1 < columns) {
            const $real *const next = block->packed_b + j1*block->depth*$parts;
            tc_aim_$kind(block->fetch, (const $scalar *)next, block->fetch->line_room, block->ahead,
                &here, 1);
        }
        if (group == TC_COLUMNS) {
            for (int64_t q = 0; q < panels;) q += tc_some_$kind(w, block, q, j0, 1, panels);
            continue;
        }
        for (int64_t q = 0; q < panels; ++q) {
            for (int64_t j = j0; j < j1;) j += TC_COLUMNS*tc_some_$kind(w, block, q, j, 0, j1);
        }
    }
}

/* Columns that stay in the first-level cache while panels go by: at least those of a tile, or of some
 * where columns are what lies closer together.
 */
static int64_t tc_group_$kind(const tc_work_$kind *w, int64_t depth)
{
    const int64_t bytes = TC_COLUMNS*tc_max(1, depth)*$parts*$bytes;
    return tc_max(w->inner_columns ? TC_SOME : 1, TC_KEPT/bytes)*TC_COLUMNS;
}

/* The rows of some panels and some columns, for some points of the batch and some steps of the sum. */
static void tc_share_$kind(const tc_work_$kind *w, int64_t first_batch, int64_t last_batch,
    int64_t first_panel, int64_t last_panel, int64_t first_column, int64_t last_column,
    int64_t first_step, int64_t last_step, char *memory)
{
    tc_strip_$kind strips[TC_STRIPS];
    tc_origin origins[TC_STRIPS];
    tc_fetch_$kind fetch, other;
    tc_stream_$kind stream;
    stream.turn = 0;
    stream.first = stream.count = 0;
    tc_await_$kind(&stream.pending);
    const tc_steps *const steps = &w->steps;
    const int64_t summed = tc_points(&w->k), most_depth = steps->depth;
    const int64_t slot = TC_HEIGHT*TC_LANES*$parts*most_depth;  /* reals of a panel */
    int64_t wide = tc_min(w->blocks.columns, w->blocks.right/most_depth)/TC_COLUMNS*TC_COLUMNS;
    int64_t high = tc_max(1, tc_min(TC_STRIPS, tc_min(w->blocks.left*$parts*$parts/slot,
        w->blocks.rows/(TC_HEIGHT*w->cut.lanes))));
    /* Where one operand is small, blocks of the other one need not be large. */
    const int once = summed <= most_depth && last_panel - first_panel <= high;
    const int64_t small = w->stream == TC_BUFFERED ? TC_FILLED : TC_NEAR;
    if ((last_panel - first_panel)*slot <= small/$bytes) {
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
    /* A large operand that meets few columns (rows) is fetched: packing it takes much of the time. Of two
     * that meet several, both are, the right one for the next summed points.
     */
    const double length = (double)summed*sizeof($scalar);
    const int large_a = length*tc_points(&w->m) >= TC_STREAM_BYTES
        && last_column - first_column <= TC_SEVERAL;
    const int large_b = length*tc_points(&w->n) >= TC_STREAM_BYTES && (once || w->right)
        && last_panel - first_panel <= (once ? TC_FEW : TC_SEVERAL)/(TC_HEIGHT*w->cut.lanes);
    for (int64_t batch = first_batch; batch < last_batch; ++batch) {
        int64_t a_start, b_start, c_start;
        tc_places(&w->batch, batch, 1, &a_start, &b_start);
        tc_places(&w->target, batch, 1, &c_start, &c_start);
        const $scalar *const a = w->a + a_start, *const b = w->b + b_start;
        for (int64_t j0 = first_column; j0 < last_column; j0 += wide) {
            const int64_t columns = tc_min(wide, last_column - j0);
            tc_places(&w->n, j0, columns, b_column, c_column);
            for (int64_t n = columns; n%TC_COLUMNS; ++n) b_column[n] = b_column[columns - 1];
            for (int64_t step = first_step; step < last_step; ++step) {
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
                        const int filled = strip->rows == strip->height*w->cut.lanes;
                        strip->scattered = !w->regular
                            && !tc_consecutive(c_row + strip->row, strip->rows);
                        strip->full = filled && !strip->scattered;
                        origins[q] = (tc_origin){a_row[strip->row], c_row[strip->row]};
                        if (!w->left && filled) continue;
                        if (once && j0 > first_column) continue;
                        TC_PACK_LEFT_$kind(packed_a + q*slot, strip->height*TC_LANES, strip->rows,
                            depth, a, a_row + strip->row, a_depth, scale);
                    }
                    tc_aim_$kind(&fetch, a, 0, 0, 0, 0);
                    tc_aim_$kind(&other, b, 0, 0, 0, 0);
                    if (q0 + high < last_panel || step + 1 < last_step) {
                        const int same = q0 + high < last_panel;
                        const int64_t q1 = same ? q0 + high : first_panel;
                        const int64_t s0 = tc_panel(&w->cut, q1, &height, &rows);
                        const int64_t s1 = tc_panel(&w->cut, tc_min(q1 + high, last_panel) - 1,
                            &height, &rows) + rows;
                        int64_t next_a[TC_DEPTH], next_b[TC_DEPTH], next_leap = 1;
                        const int64_t more = same || !(large_a || large_b) ? depth
                            : tc_step(steps, step + 1, next_a, next_b, &next_leap);
                        if (large_a) {
                            tc_aim_block_$kind(&fetch, a, &w->m, s0, s1 - s0,
                                same ? a_depth : next_a, more, 1);
                        }
                        if (!same && large_b) {
                            tc_aim_block_$kind(&other, b, &w->n, j0, columns, next_b, more, next_leap);
                        }
                    } else if (j0 + wide < last_column && large_b && once) {
                        tc_aim_block_$kind(&fetch, b, &w->n, j0 + wide,
                            tc_min(wide, last_column - j0 - wide), b_depth, depth, 1);
                    }
                    const int64_t tiles = panels*((columns + TC_COLUMNS - 1)/TC_COLUMNS);
                    const int64_t group = tc_group_$kind(w, depth), bytes = depth*$parts*$bytes;
                    int64_t ahead = 0;
                    if (fetch.left + other.left == 0 && w->right && columns*bytes > TC_NEAR) {
                        for (; ahead < tc_min(TC_FETCHES, group*bytes/64); ++ahead) {
                            fetch.line_room[ahead] = ahead*64/(int64_t)sizeof($scalar);
                        }
                    }
                    const tc_block_$kind block = {
                        .strips = strips, .origins = origins, .row = r0, .panels = panels,
                        .columns = columns, .depth = depth, .slot = slot,
                        .packed_a = packed_a, .packed_b = packed_b, .a = a, .b = b, .c = w->c + c_start,
                        .a_row = a_row, .a_depth = a_depth, .b_column = b_column,
                        .b_depth = b_depth, .c_row = c_row, .c_column = c_column,
                        .add = w->add || step > first_step, .stream = &stream,
                        .fetch = &fetch, .then = &other, .group = group, .ahead = ahead,
                        .fetches = 1 + (ahead ? ahead*TC_COLUMNS/group/panels
                            : (fetch.left + other.left)/tiles),
                    };
                    tc_compute_$kind(w, &block);
                }
            }
        }
    }
    tc_drain_stream_$kind(&stream);
    if (w->stream) TC_FENCE();
}

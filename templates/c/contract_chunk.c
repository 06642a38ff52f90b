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
 * a tile. Each may begin and end within a line.
 */
static int64_t tc_broad_$kind(const tc_work_$kind *w)
{
    const tc_cut *const cut = &w->cut;
    const int64_t height = (cut->vectors + cut->pieces - 1)/cut->pieces;
    const int64_t line = 64/TC_VECTOR, ends = 2*line - 1;
    const int64_t vectors = w->together > 1
        ? w->together*((w->run + cut->lanes - 1)/cut->lanes + ends)
        : tc_min(cut->pieces, TC_TALLEST)*height + ends;
    return tc_min(TC_BROAD/$bytes, (TC_LINES - w->together*line)/vectors/TC_COLUMNS*TC_COLUMNS);
}

/* Tiles on their way through the buffer: its rows and columns from those of the block on, pieces where
 * a panel holds several runs, and how many lines each tile stores that others left there.
 */
typedef struct {
    int64_t q, j, last_column;
    $scalar *buffer;
    const tc_origin *origin;
    const int64_t *place;
    const tc_piece_$kind *piece;
    int pieces;
    int64_t stores;
} tc_chunk_$kind;

/* Panels q0 to q1 of a chunk and all its columns; the inner loop walks panels or columns. */
static void tc_buffer_$kind(const tc_work_$kind *w, const tc_block_$kind *block,
    const tc_chunk_$kind *chunk, int64_t q0, int64_t q1, int along_panels)
{
    const int64_t wide = (chunk->last_column - chunk->j + TC_COLUMNS - 1)/TC_COLUMNS*TC_COLUMNS;
    const int64_t last = along_panels ? q1 : chunk->j + wide;
    for (int64_t q = q0, j = chunk->j; q < q1 && j < chunk->last_column;) {
        tc_tiles_$kind t;
        const int64_t tiles = tc_share_lines_$kind(&t, block->stream, chunk->stores,
            chunk->pieces ? 1 : tc_alike_$kind(block, q, j, along_panels, last));
        tc_run_$kind *const run = tc_operands_$kind(w, block, q, j, tiles, &t);
        t.along_panels = along_panels;
        t.origin = chunk->origin + (q - chunk->q);
        t.c = chunk->buffer;
        t.c_column = chunk->place + (j - chunk->j);
        t.add = t.far = 0;
        t.leave = 0;
        if (chunk->pieces) {
            tc_pieced_$kind(run, &t, chunk->piece, chunk->pieces,
                tc_min(TC_COLUMNS, chunk->last_column - j));
        } else {
            run(&t);
        }
        if (along_panels) {
            q += tiles;
            if (q == q1) q = q0, j += TC_COLUMNS;
        } else {
            j += tiles*TC_COLUMNS;
            if (j >= chunk->last_column) j = chunk->j, ++q;
        }
    }
}

/* A chunk of a target that passes by the caches: panels q0 to q1, of one run, or one panel of several
 * runs, and columns j0 to j1. It is written as the target lies, runs that follow each other joined,
 * so that whole lines are stored while the next chunk is computed. Runs of one panel lie
 * one behind the other in the buffer, each within its lines as in the target.
 */
static void tc_pass_by_$kind(
    const tc_work_$kind *w, const tc_block_$kind *block, int64_t q0, int64_t q1, int64_t j0, int64_t j1)
{
    const int64_t across = 64/(int64_t)sizeof($scalar), row = block->strips[q0].row;  /* of a line */
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
        end += (int64_t)((uintptr_t)(c + c_column[j])%64/sizeof($scalar));
        first[stretches++] = j;
        const int64_t joined = rows == w->run ? tc_run_of(c_column + j, j1 - j, rows) : 1;
        for (int64_t n = 0; n < joined; ++n) place[j - j0 + n] = end + n*rows;
        end += joined*rows;
        j += joined;
    }
    first[stretches] = j1;
    for (int64_t j = j1; j < j1 + TC_COLUMNS; ++j) place[j - j0] = TC_LINES*w->cut.lanes;
    const int64_t room = (end + across - 1)/across*across + across;
    int64_t begin[TC_RUNS], here[TC_HEIGHT*TC_LANES];
    tc_piece_$kind piece[TC_HEIGHT*TC_LANES];
    for (int64_t r = 0; r < runs; ++r) {
        begin[r] = r*room + ((c_row[r*rows] - c_row[0])%across + across)%across;
        for (int64_t n = 0; n < stretches; ++n) {  /* the ends are not whole lines */
            const $scalar *const to = c + (c_row[r*rows] - c_row[0]);
            TC_FETCH_TARGET(to + c_column[first[n]]);
            TC_FETCH_TARGET(to + c_column[first[n + 1] - 1] + rows - 1);
        }
        for (int64_t n = 0; runs > 1 && n < rows; ++n) here[r*rows + n] = begin[r] + n;
    }
    const int pieces = runs > 1 ? tc_pieces_$kind(here, all, piece) : 0;
    tc_origin origins[TC_TALLEST];
    for (int64_t q = q0; q < q1; ++q) {
        origins[q - q0] = (tc_origin){block->origins[q].a, block->strips[q].row - row};
    }
    const int64_t wide = (j1 - j0 + TC_COLUMNS - 1)/TC_COLUMNS, tiles = wide*(q1 - q0);
    int64_t waiting = 0;
    for (int64_t n = stream->first; n < stream->count; ++n) waiting += stream->stretch[n].lines;
    const tc_chunk_$kind chunk = {
        .q = q0, .j = j0, .last_column = j1, .buffer = buffer, .origin = origins, .place = place,
        .piece = piece, .pieces = pieces, .stores = (waiting + tiles - 1)/tiles,
    };
    tc_buffer_$kind(w, block, &chunk, q1 - 1, q1, 0);  /* what pads this panel is written over */
    tc_buffer_$kind(w, block, &chunk, q0, q1 - 1, wide == 1);
    tc_drain_stream_$kind(stream);
    for (int64_t r = 0; r < runs; ++r) {
        for (int n = 0; n < stretches; ++n) {
            tc_pass_$kind(stream, ($real *)(c + (c_row[r*rows] - c_row[0]) + c_column[first[n]]),
                ($real *)(buffer + begin[r] + place[first[n] - j0]),
                (first[n + 1] - first[n])*rows*$parts);
        }
    }
}

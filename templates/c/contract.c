/* A contraction on its way to some threads. */
typedef struct {
    const tc_work_$kind *work;
    tc_parts parts;
    int by_batch, threads;
    char *memory;
    int64_t memory_bytes;
} tc_call_$kind;

/* What one thread does: points of the batch, or a rectangle of the target and a part of its sum. */
static void tc_thread_$kind(const tc_call_$kind *call, int part)
{
    const tc_work_$kind *const w = call->work;
    const tc_parts parts = call->parts;
    const int64_t columns = tc_points(&w->n), batches = tc_points(&w->batch);
    const int64_t panels = w->cut.panels, wide = (columns + TC_COLUMNS - 1)/TC_COLUMNS;
    char *const own = call->memory + part*call->memory_bytes;
    if (call->by_batch) {
        tc_share_$kind(w, batches*part/call->threads, batches*(part + 1)/call->threads, 0, panels, 0,
            columns, 0, w->steps.count, own);
        return;
    }
    const int others = parts.strips*parts.groups;  /* threads of one part of the sum */
    const int row = part%parts.strips, column = part/parts.strips%parts.groups, sum = part/others;
    tc_work_$kind apart;
    if (sum > 0) {
        int64_t room;
        char *const first = call->memory + sum*others*call->memory_bytes;
        apart = tc_apart_$kind(w, tc_part_room_$kind(w, first, &room));
    }
    tc_share_$kind(sum > 0 ? &apart : w, 0, batches, panels*row/parts.strips, panels*(row + 1)/parts.strips,
        tc_min(columns, wide*column/parts.groups*TC_COLUMNS),
        tc_min(columns, wide*(column + 1)/parts.groups*TC_COLUMNS),
        w->steps.count*sum/parts.sums, w->steps.count*(sum + 1)/parts.sums, own);
}

/* The library's one function: which way a contraction goes, and its threads. It does them all. */
int tc_blocks_$kind(int threads, int scheme, const tc_group *m, const tc_group *n,
    const tc_group *k, const tc_group *batch, const tc_group *target, double alpha,
    const void *a, const void *b, int add, void *c, char *memory, int64_t memory_bytes)
{
    tc_work_$kind w;
    const double points = tc_begin_$kind(&w, m, n, k, batch, target, alpha, a, b, add, c, 0);
    if (points == 0) return 1;
    const int64_t rows = tc_points(&w.m), columns = tc_points(&w.n), summed = tc_points(&w.k);
    const int64_t batches = tc_points(&w.batch);
    /* Panels follow the runs of the target, unless these are short and there is much to sum. */
    const int lanes = TC_LANES/$parts;
    int64_t run = tc_run(w.m.axes, w.m.length, w.m.y);
    w.left = scheme & TC_PACK_LEFT || $parts == 2;
    w.right = scheme & TC_PACK_RIGHT || $parts == 2;
    if (!w.left) run = tc_min(run, tc_run(w.m.axes, w.m.length, w.m.x));
    /* Past the caches go large targets of long stretches, or of whole lines. */
    int64_t stretch = run;
    for (int d = w.n.axes - 1; d >= 0 && w.n.y[d] == stretch; --d) stretch *= w.n.length[d];
    const int past = !add && summed <= w.blocks.depth && (uintptr_t)c%sizeof($scalar) == 0
        && (double)rows*columns*batches*sizeof($scalar) >= TC_STREAM_BYTES;
    const int joined = past && stretch >= 6*lanes;
    w.run = run;
    w.together = joined && w.left ? tc_runs_together(rows, run, summed, lanes) : 1;
    const int64_t padded = (run + lanes - 1)/lanes*lanes;
    const int most = w.blocks.depth < TC_DEEP ? 5 : 25;  /* of which one part may be padding */
    w.regular = w.together > 1 || most*run >= (most - 1)*padded || run == rows
        || (w.blocks.depth < 32 && run > 1);
    if (!w.regular) {
        w.run = run = rows;
        w.left = 1;
    }
    if (w.left == 0 && w.right == 0) w.right = 1;
    w.cut = tc_cut_rows(rows, w.together*run, 0, lanes);
    w.steps = tc_steps_of(&w.k, w.blocks.depth);
    w.stream = TC_CACHED;
    if (past && w.regular) {
        /* Long stretches had better be stored by whole lines, which go through a buffer where tiles do not hold them. */
        const int64_t unit = joined ? 64 : TC_VECTOR;
        const int holds = TC_HEIGHT*TC_VECTOR%unit == 0 && run%(unit/(int64_t)sizeof($scalar)) == 0;
        if (w.together == 1 && holds && tc_on_lines_$kind(&w, unit)) w.stream = TC_DIRECT;
        else if (joined) w.stream = TC_BUFFERED;
#ifdef TC_MERGE_$kind
        /* Rows of several panels begin and end with lines of which there had better be few. Panels have two vectors or three. */
        const int64_t least = w.cut.pieces == 1 ? TC_LANES + 1 : TC_LASTING*TC_LINE;
        if (TC_JOINS && w.stream == TC_BUFFERED && w.together == 1 && run*$parts >= least) w.stream = TC_JOINED_LINES;
#endif
    }
    const int64_t next = w.n.axes ? w.n.y[w.n.axes - 1] : INT64_MAX;
    const int up = w.m.axes - 1;
    int64_t beyond = run > TC_HEIGHT*lanes ? TC_HEIGHT*lanes : INT64_MAX;  /* to the next panel */
    for (int d = 0; d <= up; ++d) {
        if (w.m.y[d] >= run) beyond = tc_min(beyond, w.m.y[d]);
    }
    w.inner_columns = next < beyond && w.blocks.depth <= 192;
    if (points < TC_THREAD_POINTS) threads = 1;
    const int by_batch = batches >= threads;
    const tc_parts parts = by_batch ? (tc_parts){1, 1, 1} : tc_parts_of_$kind(&w, threads, memory);
    const tc_call_$kind call = {&w, parts, by_batch, threads, memory, memory_bytes};
    if (threads == 1) {  /* no team of threads, which takes as long to begin as a small product */
        tc_thread_$kind(&call, 0);
        return 1;
    }
    #pragma omp parallel for schedule(static) num_threads(threads)
    for (int part = 0; part < threads; ++part) tc_thread_$kind(&call, part);
    if (parts.sums == 1) return 1;
    const int others = parts.strips*parts.groups;
    int64_t room;
    const $scalar *const first = tc_part_room_$kind(&w, memory + others*memory_bytes, &room);
    #pragma omp parallel for schedule(static) num_threads(threads)
    for (int part = 0; part < threads; ++part) {
        tc_add_parts_$kind(&w, parts.sums - 1, first, others*memory_bytes, columns*part/threads,
            columns*(part + 1)/threads);
    }
    return 1;
}

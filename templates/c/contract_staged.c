/* Take an axis out of a group; the others stay, if asked for, in the order of the operand. It becomes the
 * slowest one of ``along``.
 */
static void tc_take_axis(tc_walk *along, tc_walk *g, int axis, int ordered)
{
    for (int d = along->axes++; d > 0; --d) {
        along->length[d] = along->length[d - 1];
        along->x[d] = along->x[d - 1];
        along->y[d] = along->y[d - 1];
    }
    along->length[0] = g->length[axis];
    along->x[0] = g->x[axis];
    along->y[0] = g->y[axis];
    tc_walk rest = {.axes = 0};
    for (int d = 0; d < g->axes; ++d) {
        if (d == axis) continue;
        int place = rest.axes++;
        for (; ordered && place > 0 && rest.x[place - 1] < g->x[d]; --place) {
            rest.length[place] = rest.length[place - 1];
            rest.x[place] = rest.x[place - 1];
            rest.y[place] = rest.y[place - 1];
        }
        rest.length[place] = g->length[d];
        rest.x[place] = g->x[d];
        rest.y[place] = g->y[d];
    }
    *g = rest;
}

/* The library's one function: a contraction by way of a buffer, if it fits; 0 where it does not. */
int tc_staged_$kind(int threads, int scheme, const tc_group *m, const tc_group *n,
    const tc_group *k, const tc_group *batch, const tc_group *target, double alpha,
    const void *a, const void *b, int add, void *c, char *memory, int64_t memory_bytes)
{
    const int staged_rows = (scheme & TC_PACK_RIGHT) != 0;
    tc_work_$kind w;
    const double points = tc_begin_$kind(
        &w, m, n, k, batch, target, alpha, a, b, add, c, staged_rows);
    if (points == 0) return 1;
    if (!w.m.axes || !w.n.axes) return 0;
    int fast = -1;
    for (int d = 0; d < w.m.axes - 1; ++d) fast = w.m.y[d] == 1 ? d : fast;
    const int of_columns = fast < 0;
    if (of_columns == staged_rows) return 0;  /* axes of one point are left out */
    if (of_columns ? w.n.y[w.n.axes - 1] != 1 : w.m.x[w.m.axes - 1] != 1) return 0;
    tc_walk *const group = of_columns ? &w.n : &w.m;
    int way = tc_way_$kind(&w);
    if (of_columns) fast = w.n.axes - 1;
    tc_walk along = {.axes = 0};
    tc_take_axis(&along, group, fast, !of_columns);
    /* Longer rows of the target share fewer of their lines with others. */
    const int lanes = !of_columns;  /* the last axis stays in the group */
    for (int d = group->axes - 1 - lanes; d >= 0 && way == TC_ACROSS_LINES; --d) {
        if (tc_points(&along) >= TC_LASTING*TC_LINE || group->y[d] != tc_points(&along)) continue;
        tc_take_axis(&along, group, d, 0);
        d = group->axes - lanes;
    }
    const int64_t rows = tc_points(&w.m);
    w.cut = tc_cut_rows(rows, of_columns ? rows : tc_run(w.m.axes, w.m.length, w.m.x), 0, TC_LANES);
    if (!of_columns) tc_cut_on_vectors_$kind(&w, &along);
    tc_stages_$kind s = tc_stages_of_$kind(&w, of_columns, &along, way);
    if (s.blocks == 0 && way == TC_ACROSS_LINES) {  /* a small one, with no room for what is carried */
        way = TC_BY_SQUARES;
        s = tc_stages_of_$kind(&w, of_columns, &along, way);
    }
    if (s.blocks == 0) return 0;
    tc_run_$kind *const *const tiles = (of_columns ? tc_staged_right_$kind : tc_staged_left_$kind)[way];
    if (!tiles[1] && tc_make_$kind) tc_make_$kind(of_columns, way);
    if (!tiles[1]) return 0;
    if (points < TC_THREAD_POINTS) threads = 1;
    if (threads == 1) {
        tc_stage_$kind(&w, &s, 0, 1, memory);
        return 1;
    }
    #pragma omp parallel for schedule(static) num_threads(threads)
    for (int part = 0; part < threads; ++part) {
        tc_stage_$kind(&w, &s, part, threads, memory + part*memory_bytes);
    }
    return 1;
}

/* The library's one function: a contraction by way of a buffer, if it fits; 0 where it does not. */
int tc_staged_$kind(int threads, int scheme, const tc_group *m, const tc_group *n,
    const tc_group *k, const tc_group *batch, const tc_group *target, double alpha,
    const void *a, const void *b, int add, void *c, char *memory, int64_t memory_bytes)
{
    (void)scheme;  /* it follows from the layout */
    tc_work_$kind w;
    const double points = tc_begin_$kind(&w, m, n, k, batch, target, alpha, a, b, add, c);
    if (points == 0) return 1;
    if (!w.m.axes || !w.n.axes) return 0;
    const int64_t rows = tc_points(&w.m), summed = tc_points(&w.k);
    int turned = -1;
    for (int d = 0; d < w.m.axes - 1; ++d) turned = w.m.y[d] == 1 ? d : turned;
    const int lies = turned < 0 ? w.n.y[w.n.axes - 1] == 1 : w.m.x[w.m.axes - 1] == 1;
    const int64_t run = turned < 0 ? rows : w.m.length[w.m.axes - 1];
    w.cut = tc_cut_rows(run, run, TC_LANES);
    int64_t together = 1;
    const int64_t width = lies ? tc_width_$kind(&w, turned, summed, &together) : 0;
    if (width == 0 || !(turned < 0 ? tc_right_$kind : tc_copied_$kind)[1]) return 0;
    if (points < TC_THREAD_POINTS) threads = 1;
    #pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int part = 0; part < threads; ++part) {
        tc_stage_$kind(&w, turned, width, together, part, threads, memory + part*memory_bytes);
    }
    return 1;
}

/* Parts: numbers of the iterations of nested loops, as in records/parts.py. */

/* Depth of the triangle of loops that begins with one. */
static int tcr_depth(const tcr_program *p, int loop)
{
    int depth = 1;
    while (loop + depth < p->loops && p->loop[loop + depth].below) ++depth;
    return depth;
}

/* Iterations of a triangle of ``depth`` loops over n values. */
static int64_t tcr_points(int64_t n, int depth) { return tcr_values(n, depth, 0); }

/* Iterations of the loops from one on. */
static int64_t tcr_iterations(const tcr_program *p, const int64_t *extents, int loop)
{
    int64_t count = 1;
    for (int depth; loop < p->loops; loop += depth) {
        const int64_t n = tcr_extent(p, p->loop[loop].space, extents), tile = p->loop[loop].tile;
        depth = tcr_depth(p, loop);
        count *= tcr_points((n + tile - 1)/tile, depth);
    }
    return count;
}

static int64_t tcr_parts(const tcr_program *p, const int64_t *extents)
{
    return tc_max(1, tcr_iterations(p, extents, 0));
}

/* Values of the loops in the iteration of a number. */
static void tcr_iteration(const tcr_call *c, int64_t number, int64_t *values)
{
    const tcr_program *const p = c->program;
    for (int loop = 0, depth; loop < p->loops; loop += depth) {
        depth = tcr_depth(p, loop);
        const int64_t inner = tcr_iterations(p, c->extents, loop + depth);
        int64_t rank = number/inner;
        number %= inner;
        for (int left = depth; left > 0; --left) {
            int64_t step = left == 1 ? rank : 0;
            while (left > 1 && tcr_points(step + 1, left) <= rank) ++step;
            values[loop + depth - left] = step*p->loop[loop].tile;
            rank -= tcr_points(step, left);
        }
    }
}

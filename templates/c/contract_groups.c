/* A group within the library: neighbouring axes joined. */
typedef struct {
    int axes;
    int64_t length[TC_AXES], x[TC_AXES], y[TC_AXES];
} tc_walk;

/* A group without axes of length 1; neighbours that lie as one axis in both operands are joined. */
static void tc_join(tc_walk *to, const tc_group *g, int join)
{
    int last = -1;
    for (int n = 0; n < g->axes; ++n) {
        if (g->length[n] == 1) continue;
        const int64_t length = g->length[n], x = g->x[n], y = g->y[n];
        if (join && last >= 0 && to->x[last] == x*length && to->y[last] == y*length) {
            to->length[last] *= length;
        } else {
            to->length[++last] = length;
        }
        to->x[last] = x;
        to->y[last] = y;
    }
    to->axes = last + 1;
}

static int64_t tc_points(const tc_walk *g)
{
    int64_t points = 1;
    for (int n = 0; n < g->axes; ++n) points *= g->length[n];
    return points;
}

/* Place of the last point of a group in the first operand. */
static int64_t tc_reach(const tc_walk *g)
{
    int64_t reach = 0;
    for (int n = 0; n < g->axes; ++n) reach += (g->length[n] - 1)*g->x[n];
    return reach;
}

/* Places in both operands of ``count`` points of a group from number ``first`` on. */
static void tc_places(const tc_walk *g, int64_t first, int64_t count, int64_t *x, int64_t *y)
{
    int64_t digit[TC_AXES], here = 0, there = 0;
    const int last = g->axes - 1;
    if (count == 0) return;
    if (last < 0) {
        for (int64_t n = 0; n < count; ++n) x[n] = y[n] = 0;
        return;
    }
    for (int d = last; d >= 0; --d) {
        digit[d] = first%g->length[d];
        first /= g->length[d];
        here += digit[d]*g->x[d];
        there += digit[d]*g->y[d];
    }
    for (int64_t n = 0; n < count;) {
        const int64_t run = tc_min(count - n, g->length[last] - digit[last]);
        const int64_t step_x = g->x[last], step_y = g->y[last];
        for (int64_t r = 0; r < run; ++r) {
            x[n + r] = here + r*step_x;
            y[n + r] = there + r*step_y;
        }
        n += run;
        here -= digit[last]*step_x;
        there -= digit[last]*step_y;
        digit[last] = 0;
        for (int d = last - 1; d >= 0; --d) {
            here += g->x[d];
            there += g->y[d];
            if (++digit[d] < g->length[d]) break;
            here -= g->length[d]*g->x[d];
            there -= g->length[d]*g->y[d];
            digit[d] = 0;
        }
    }
}

/* Length of the longest run of consecutive places along the fastest axes. */
static int64_t tc_run(int axes, const int64_t *length, const int64_t *stride)
{
    int64_t run = 1;
    for (int n = axes - 1; n >= 0 && stride[n] == run; --n) run *= length[n];
    return run;
}

/* How rows are cut into panels of at most three vectors: by runs, several short ones together, or all
 * rows as one run. A run begins in its first vector, at the lane ``before``.
 */
typedef struct {
    int64_t rows, run, vectors, pieces, panels, before;
    int lanes;
} tc_cut;

static tc_cut tc_cut_rows(int64_t rows, int64_t run, int64_t before, int lanes)
{
    tc_cut cut = {rows, run, (before + run + lanes - 1)/lanes, 0, 0, before, lanes};
    cut.pieces = (cut.vectors + TC_HEIGHT - 1)/TC_HEIGHT;
    cut.panels = (rows + run - 1)/run*cut.pieces;
    return cut;
}

/* How many runs a panel takes: a tile of several has fewer idle lanes, but is stored in pieces. In
 * units of a vector's products at a summed point, a tile takes the time of 12, and a piece that of 4.
 */
static int64_t tc_runs_together(int64_t rows, int64_t run, int64_t depth, int lanes)
{
    const int64_t runs = tc_min(tc_min(TC_HEIGHT*lanes/run, rows/run), TC_RUNS);
    if (runs < 2) return 1;
    const int64_t vectors = (runs*run + lanes - 1)/lanes, pieces = runs + vectors - 1;
    const int64_t alone = runs*((run + lanes - 1)/lanes*depth + 12);
    return 20*(vectors*depth + 12 + 4*pieces) < 19*alone ? runs : 1;
}

/* First row of a panel; its vectors and rows. */
static int64_t tc_panel(const tc_cut *cut, int64_t panel, int *vectors, int64_t *rows)
{
    const int64_t piece = panel%cut->pieces, base = cut->vectors/cut->pieces;
    const int64_t extra = cut->vectors%cut->pieces;
    const int64_t skip = (piece*base + tc_min(piece, extra))*cut->lanes - cut->before;
    const int64_t start = tc_max(0, skip), first = panel/cut->pieces*cut->run + start;
    *vectors = (int)(base + (piece < extra));
    *rows = tc_min(skip + (int64_t)*vectors*cut->lanes, cut->run) - start;
    *rows = tc_min(*rows, cut->rows - first);  /* the last panel may hold fewer runs */
    *vectors = (int)((*rows + cut->lanes - 1)/cut->lanes);
    return first;
}

/* How summed points are cut into blocks: equal ones in their order, or, where two long axes have
 * stride 1 in an operand each, rectangles of both. Whole cache lines of both operands are then used at
 * once.
 */
typedef struct {
    tc_walk walk;  /* of all points; in rectangles, without the two axes */
    int crossed;
    int64_t depth, count, tall, wide;
    int64_t first[3], second[3];  /* length and strides of the axes of b and of a */
} tc_steps;

static tc_steps tc_steps_of(const tc_walk *k, int64_t depth)
{
    tc_steps s = {.walk = *k, .depth = depth, .tall = 1, .wide = 1};
    int one = -1, two = -1;
    for (int d = 0; d < k->axes; ++d) {
        if (k->y[d] == 1) one = d;
        if (k->x[d] == 1) two = d;
    }
    const int64_t points = tc_points(k);
    s.count = tc_max(1, (points + depth - 1)/depth);
    s.depth = tc_max(1, tc_min(depth, ((points + s.count - 1)/s.count + 7)/8*8));
    if (one < 0 || two < 0 || one == two || points <= depth
        || k->length[one] < TC_TALL || k->length[two] <= 2*TC_WIDE || depth < TC_TALL*TC_WIDE) {
        return s;
    }
    s.crossed = 1;
    s.depth = depth;
    for (int n = 0; n < 3; ++n) {
        s.first[n] = (n == 0 ? k->length : n == 1 ? k->x : k->y)[one];
        s.second[n] = (n == 0 ? k->length : n == 1 ? k->x : k->y)[two];
    }
    s.walk.length[one] = s.walk.length[two] = 1;
    s.tall = (s.first[0] + TC_TALL - 1)/TC_TALL;
    s.wide = (s.second[0] + TC_WIDE - 1)/TC_WIDE;
    s.count = tc_points(&s.walk)*s.tall*s.wide;
    return s;
}

/* Places of the points of a block, and how many. From one point to that with the next element of b
 * are ``leap`` points.
 */
static int64_t tc_step(const tc_steps *s, int64_t step, int64_t *x, int64_t *y, int64_t *leap)
{
    *leap = 1;
    if (!s->crossed) {
        const int64_t start = step*s->depth, depth = tc_min(s->depth, tc_points(&s->walk) - start);
        tc_places(&s->walk, start, depth, x, y);
        return depth;
    }
    const int64_t p = step%s->wide*TC_WIDE, q = step/s->wide%s->tall*TC_TALL;
    const int64_t wide = tc_min(TC_WIDE, s->second[0] - p), tall = tc_min(TC_TALL, s->first[0] - q);
    int64_t from, to;
    tc_places(&s->walk, step/s->wide/s->tall, 1, &from, &to);
    for (int64_t n = 0; n < tall*wide; ++n) {
        x[n] = from + (q + n/wide)*s->first[1] + (p + n%wide)*s->second[1];
        y[n] = to + (q + n/wide)*s->first[2] + (p + n%wide)*s->second[2];
    }
    *leap = wide;
    return tall*wide;
}

typedef int64_t tc_places_in_lanes __attribute__((vector_size(TC_VECTOR), aligned(8), may_alias));

/* How many of ``count`` places follow each other, ``apart``, from the first one on: most often few, or all. */
static int64_t tc_run_of(const int64_t *places, int64_t count, int64_t apart)
{
    enum { LANES = TC_VECTOR/8, TOGETHER = 4*LANES };
    int64_t run = 1;
    while (run + TOGETHER <= count) {
        tc_places_in_lanes other = {0};
        int64_t jumps = 0;
        _Pragma("GCC unroll 4")
        for (int n = 0; n < TOGETHER; n += LANES) {
            const int64_t *const here = places + run + n;
            other |= *(const tc_places_in_lanes *)here - *(const tc_places_in_lanes *)(here - 1) - apart;
        }
        _Pragma("GCC unroll 8")
        for (int n = 0; n < LANES; ++n) jumps |= other[n];
        if (jumps) break;
        run += TOGETHER;
    }
    while (run < count && places[run] == places[run - 1] + apart) ++run;
    return run;
}

static int tc_consecutive(const int64_t *places, int64_t count)
{
    return count <= 1 || tc_run_of(places, count, 1) == count;
}

/* A staged contraction: axes that are the target's fastest and not the operand's are taken out of
 * their group. A block of the target is ``width`` elements of them, by ``together`` panels of the other
 * rows, by all columns; or, where they are one axis of the columns, by all rows and one of the others.
 */
typedef struct {
    tc_walk along;  /* the axes, */
    int64_t width, together, pitch, fast, fast_step, others, near, runs, blocks;
    int64_t column;  /* elements of one column of the buffer, */
    int joined;      /* where the next one goes on in the target */
    int64_t deepest, reach;  /* the operand's last summed point; elements up to its last one, or 0 */
    int of_columns, way;
    int64_t part;            /* summed points that are added before the next ones */
} tc_stages_$kind;

/* How the target is stored. Lines are put together where that is not much work beside the sums. */
static int tc_way_$kind(const tc_work_$kind *w)
{
    if (!w->add && tc_on_lines_$kind(w, TC_VECTOR)) return TC_BY_LINES;
#ifdef TC_MERGE_$kind
    const int close = tc_points(&w->k) >= TC_DEEP;
    if (!w->add && !close && (uintptr_t)w->c%sizeof($real) == 0) return TC_ACROSS_LINES;
#endif
    return TC_BY_SQUARES;
}

/* Panels of which a block of so many columns and elements of a row fits ``room``. */
static int64_t tc_stage_panels_$kind(int64_t room, int64_t columns, int64_t width)
{
    return (room/(columns*width) - 64/(int64_t)sizeof($real))/(TC_HEIGHT*TC_LANES);
}

/* Elements of a row of a block where lines of the target are put together, and room for the block. Rows whose
 * columns follow each other are whole, if that is possible. Runs of the operand that are read whole count more
 * than long rows and than little room.
 */
static int64_t tc_stage_joined_$kind(const tc_work_$kind *w, int64_t fast, int64_t columns, int64_t *room)
{
    const int64_t line = 64/(int64_t)sizeof($real), all = (fast + line - 1)/line;
    const int joined = all <= TC_LONGER && w->n.axes == 1 && w->n.y[0] == fast;
    const int64_t most = joined ? all : tc_min(TC_CARRIED, all);
    const int64_t least = joined ? all : tc_min(TC_CARRIED/2, all);
    const int64_t once = (joined ? TC_JOINED : TC_GOING)/$bytes;
    for (*room = once; *room <= 2*once; *room += once) {
        for (int64_t lines = most; lines >= least; --lines) {
            if (tc_stage_panels_$kind(*room, columns, lines*line) >= w->cut.pieces) return lines*line;
        }
    }
    *room = once;
    return most*line;
}

/* Summed points of a part of the sum: equal parts, on TC_PAGES each. All of them where a panel ends within a vector
 * and another one follows: it is stored over the next one's first rows, before these are.
 */
static int64_t tc_stage_part_$kind(const tc_work_$kind *w)
{
    const int64_t summed = tc_points(&w->k), page = TC_PAGE/(int64_t)sizeof($real);
    const int64_t apart = w->k.axes ? tc_max(1, tc_min(w->k.x[w->k.axes - 1], page)) : page;
    const int64_t parts = (summed*apart + TC_PAGES*page - 1)/(TC_PAGES*page);
    if (w->cut.run%TC_LANES && w->cut.panels > w->cut.pieces) return summed;
    return (summed + parts - 1)/parts;
}

/* Let the panels of long runs of rows begin on vectors of the operand, of which NumPy's begin within a line: then a
 * vector of rows lies in one line. Only where runs begin in the same lane at all points, and sums have one part.
 */
static void tc_cut_on_vectors_$kind(tc_work_$kind *w, const tc_walk *along)
{
    const int64_t run = w->cut.run, start = (int64_t)((uintptr_t)w->a%TC_VECTOR);
    int64_t steps = 0;
    for (int d = 0; d < w->k.axes; ++d) steps |= w->k.x[d];
    for (int d = 0; d < along->axes; ++d) steps |= along->x[d];
    for (int d = 0; d < w->batch.axes; ++d) steps |= w->batch.x[d];
    int outside = w->m.axes;
    for (int64_t inside = 1; inside < run; inside *= w->m.length[outside]) --outside;
    for (int d = 0; d < outside; ++d) steps |= w->m.x[d];
    if (steps%TC_LANES || start%(int64_t)sizeof($real) || run < TC_UNBROKEN*TC_LANES) return;
    if (tc_stage_part_$kind(w) < tc_points(&w->k)) return;
    w->cut = tc_cut_rows(w->cut.rows, run, start/(int64_t)sizeof($real), TC_LANES);
}

/* Elements of a row of a block, so that it holds a whole run of rows if summed points follow each other that far
 * apart, because memory is then read as it lies; and room for the block.
 */
static int64_t tc_stage_whole_$kind(const tc_work_$kind *w, int64_t columns, int64_t width, int64_t *room)
{
    const int64_t line = 64/(int64_t)sizeof($real), most = tc_min(TC_WHOLE, w->blocks.left*$bytes/2);
    if (!w->k.axes || w->k.x[w->k.axes - 1] != w->cut.run) return width;
    if (tc_stage_panels_$kind(*room, columns, width) >= w->cut.pieces) return width;
    for (int64_t narrow = width; narrow >= line; narrow -= line) {
        if (tc_stage_panels_$kind(most/$bytes, columns, narrow) < w->cut.pieces) continue;
        *room = most/$bytes;
        return narrow;
    }
    return width;
}

/* Blocks of a contraction whose fastest axes are ``along``; none where two buffers do not fit. */
static tc_stages_$kind tc_stages_of_$kind(
    const tc_work_$kind *w, int of_columns, const tc_walk *along, int way)
{
    const int64_t fast = tc_points(along);
    tc_stages_$kind s = {.of_columns = of_columns, .way = way, .along = *along, .fast = fast};
    s.fast_step = along->x[along->axes - 1];
    s.deepest = tc_reach(&w->k);
    s.reach = 1 + s.deepest + tc_reach(along) + tc_reach(&w->m) + tc_reach(&w->batch);
    const int64_t summed = tc_points(&w->k), columns = tc_points(&w->n);
    const int64_t line = 64/(int64_t)sizeof($real), step = tc_max(line, TC_COLUMNS);
    const int64_t slot = TC_HEIGHT*TC_LANES*summed;
    if (summed == 0 || summed > w->blocks.depth) return s;
    s.part = of_columns ? summed : tc_stage_part_$kind(w);
    const int64_t padded = of_columns ? 1 : (columns + TC_COLUMNS - 1)/TC_COLUMNS*TC_COLUMNS;
    const int across = way == TC_ACROSS_LINES;
    const int64_t memory = of_columns ? w->blocks.right : w->blocks.left - slot;
    const int64_t bands = across ? (int64_t)sizeof(tc_band_$kind)/(TC_LANES*$bytes) : 0;  /* of a row */
    int64_t room = (of_columns ? TC_BUFFER : TC_STAGED)/$bytes;
    if (of_columns) {
        if (tc_points(&w->m) > w->blocks.rows || w->cut.panels*slot > w->blocks.left) return s;
        s.together = w->cut.panels;
    } else {
        if (columns > TC_FEW || padded > w->blocks.columns || padded*summed > w->blocks.right) return s;
        /* Stores that jump to another page take longer, which a long sum hides: then more rows are better. */
        const int64_t lines = summed < TC_HIDING ? TC_ROW : TC_HIDDEN;
        const int64_t width = across ? tc_stage_joined_$kind(w, fast, padded, &room)
            : tc_stage_whole_$kind(w, padded, tc_min(lines, (fast + line - 1)/line)*line, &room);
        room = tc_min(room, memory*width/(2*width + bands));
        const int64_t listed = (TC_LISTED/s.part - 1)*line/(TC_HEIGHT*TC_LANES);  /* those whose lines are fetched */
        s.together = tc_max(1, tc_min(listed, tc_stage_panels_$kind(room, padded, width)));
        s.together = tc_min(tc_min(s.together, TC_STRIPS/2), w->cut.panels);
        if (s.together > w->cut.pieces) s.together -= s.together%w->cut.pieces;
    }
    s.pitch = s.together*TC_HEIGHT*TC_LANES + line;  /* so that not all columns lie in the same places of a cache */
    const int64_t row = padded*s.pitch, most_lines = across ? TC_LONGER : TC_LONG;
    const int64_t fits = tc_min(room/row, (memory/row - bands)/2);
    const int64_t most = tc_min(fits/step*step, most_lines*line/step*step);
    if (most < step) return s;
    const int64_t pieces = (fast + most - 1)/most;
    s.width = ((fast + pieces - 1)/pieces + step - 1)/step*step;
    s.others = of_columns ? columns : 1;
    s.joined = across && s.width >= fast && w->n.axes == 1 && w->n.y[0] == fast;
    s.column = s.joined ? fast : s.width;
    const int64_t groups = (w->cut.panels + s.together - 1)/s.together;
    s.runs = (fast + s.width - 1)/s.width;
    s.blocks = s.others*s.runs*groups;
    /* Rows lie near to each other in the operand, and often in the target. Where lines are put together, the
     * next block goes on where this one ends.
     */
    const int64_t run = tc_min(w->m.length[w->m.axes - 1], w->cut.run);
    const int64_t stretch = (run + s.pitch - line - 1)/(s.pitch - line);
    s.near = across ? 1 : tc_on_lines_$kind(w, TC_VECTOR) ? s.others*groups : of_columns || groups%stretch ? 1 : stretch;
    return s;
}

/* First panel, first element of the fastest axis, and places in the operand and the target. ``near``
 * groups of rows follow each other for the same elements.
 */
static void tc_stage_place_$kind(const tc_work_$kind *w, const tc_stages_$kind *s, int64_t block,
    int64_t *panel, int64_t *element, int64_t *from, int64_t *to)
{
    const int64_t place = block/s->near/s->runs*s->near + block%s->near;
    *panel = place/s->others*s->together;
    *element = block/s->near%s->runs*s->width;
    int64_t start, unused;
    tc_places(&s->along, *element, 1, &start, &unused);
    *from = *to = 0;
    if (s->of_columns) tc_places(&w->n, place%s->others, 1, from, to);
    *from += start;
    *to += *element;
}

/* Places of some elements of the fastest axes in the operand, from the first of them on. */
static void tc_stage_along_$kind(
    const tc_stages_$kind *s, int64_t element, int64_t count, int64_t *place)
{
    int64_t unused[TC_LONGER*TC_LINE];
    tc_places(&s->along, element, count, place, unused);
    for (int64_t n = count - 1; n >= 0; --n) place[n] -= place[0];
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

/* Lines of memory of a group of panels for one summed point, in elements from its first one; how many.
 * Groups whose points are ``next`` rows apart follow each other.
 */
static int64_t tc_stage_lines_$kind(const tc_work_$kind *w, const tc_stages_$kind *s, int64_t panel,
    int64_t next, int64_t *line)
{
    const int64_t length = 64/(int64_t)sizeof($real);
    int64_t x[TC_NEARBY], y[TC_NEARBY], rows, lines = 0, start = 0, last = 0, since = 0;
    const int64_t first = tc_stage_first_$kind(w, s, panel, &rows);
    for (int64_t n = 0; n < rows; n += TC_NEARBY) {
        const int64_t many = tc_min(TC_NEARBY, rows - n);
        tc_places(&w->m, first + n, many, x, y);
        start = n == 0 ? x[0] : start;
        for (int64_t r = 0; r < many && lines < TC_FETCHES - 2; last = x[r++]) {
            if (n + r > 0 && x[r] == last + 1) {
                if (++since%length == 0) line[lines++] = x[r] - start;
                continue;
            }
            if (since%length) line[lines++] = last - start;
            line[lines++] = x[r] - start;
            since = 0;
        }
    }
    /* A run that starts within a line ends in one more, unless the next one follows it. */
    if (since%length && next != rows) line[lines++] = last - start;
    return lines;
}

/* Lines of a group of panels for one summed point, and those for ``depth`` of them in bytes from the first one,
 * behind which the last one comes ``spare`` times more.
 */
typedef struct {
    int64_t lines, count, depth, line[TC_FETCHES], offset[TC_DEPTH], list[TC_LISTED + TC_FEW];
} tc_ahead_$kind;

/* Look at the lines of another group; most groups' lie as those of the last one. */
static void tc_look_at_$kind(tc_ahead_$kind *ahead, const tc_work_$kind *w,
    const tc_stages_$kind *s, int64_t panel, int64_t next)
{
    int64_t line[TC_FETCHES], same = 0;
    const int64_t lines = tc_stage_lines_$kind(w, s, panel, next, line);
    while (same < lines && line[same] == ahead->line[same]) ++same;
    if (same == lines && lines == ahead->lines) return;
    ahead->lines = lines;
    ahead->depth = 0;
    for (int64_t l = same; l < lines; ++l) ahead->line[l] = line[l];
}

/* List the group's lines for some summed points, unless those listed lie as far apart. Lines of several pages
 * take turns.
 */
static void tc_list_ahead_$kind(tc_ahead_$kind *ahead, const int64_t *a_depth, int64_t depth, int64_t spare)
{
    int64_t same = 0, count = 0;
    while (same < depth && a_depth[same] - a_depth[0] == ahead->offset[same]) ++same;
    if (same == depth && depth <= ahead->depth) return;
    for (int64_t p = same; p < depth; ++p) ahead->offset[p] = a_depth[p] - a_depth[0];
    ahead->depth = depth;
    const int64_t points = tc_min(depth, TC_LISTED/tc_max(1, ahead->lines));
    const int64_t step = depth > 1 ? ahead->offset[1]*(int64_t)sizeof($real) : 0;
    const int64_t pages = tc_min(step, TC_PAGE)*points/TC_PAGE;
    const int turns = TC_ALWAYS || (step < TC_PAGE && pages >= TC_STREAMS);
    const int64_t streams = turns ? tc_max(1, tc_min(TC_STREAMS, pages)) : 1;
    const int64_t each = (points + streams - 1)/streams;
    for (int64_t p = 0; p < each; ++p) {
        for (int64_t l = 0; l < ahead->lines; ++l) {
            for (int64_t q = p; q < points; q += each) {
                ahead->list[count++] = (ahead->offset[q] + ahead->line[l])*(int64_t)sizeof($real);
            }
        }
    }
    for (int64_t n = 0; count > 0 && n < spare; ++n) ahead->list[count + n] = ahead->list[count - 1];
    ahead->count = count;
}

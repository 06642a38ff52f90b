/* How threads divide a contraction: strips of panels, by groups of columns, by parts of the sum. */
typedef struct {
    int strips, groups, sums;
} tc_parts;

/* Memory of a thread behind its packed columns, where a part of the sum for all of the target goes. */
static $scalar *tc_part_room_$kind(const tc_work_$kind *w, char *memory, int64_t *elements)
{
    const int64_t columns = (tc_points(&w->n) + TC_COLUMNS - 1)/TC_COLUMNS*TC_COLUMNS;
    const int64_t packed = columns*w->steps.depth*$parts, reals = w->blocks.right*$parts;
    memory += tc_aligned(w->blocks.left*(int64_t)sizeof($scalar)*$parts);
    *elements = tc_max(0, reals - packed)/$parts;
    return ($scalar *)(($real *)memory + packed);
}

/* The threads' parts: those that take the least time. A vector of rows times the columns of a tile takes one
 * unit for each summed point; so does reading what these columns need, and each vector of rows. Sums are
 * divided where the target is small, since their parts are added up afterwards.
 */
static tc_parts tc_parts_of_$kind(const tc_work_$kind *w, int threads, char *memory)
{
    const int64_t rows = tc_points(&w->m), columns = tc_points(&w->n), batches = tc_points(&w->batch);
    const int64_t panels = w->cut.panels, wide = (columns + TC_COLUMNS - 1)/TC_COLUMNS;
    int64_t room;
    tc_part_room_$kind(w, memory, &room);
    const int64_t most = rows*columns*batches <= room ? w->steps.count : 1;
    tc_parts best = {1, 1, 1};
    double least = 0;
    for (int sums = 1; sums <= tc_min(threads, most); ++sums) {
        if (threads%sums) continue;
        for (int strips = 1; strips <= threads/sums; ++strips) {
            if (threads/sums%strips) continue;
            const int groups = threads/sums/strips;
            const int64_t high = (panels + strips - 1)/strips, across = (wide + groups - 1)/groups;
            const double steps = (double)((w->steps.count + sums - 1)/sums)*w->steps.depth*batches;
            const double time = steps*(TC_HEIGHT*high*across + TC_HEIGHT*high + across)
                + (sums > 1 ? TC_ADDING + (double)sums*rows*columns*batches/threads : 0);
            if (least == 0 || time < least) {
                least = time;
                best = (tc_parts){strips, groups, sums};
            }
        }
    }
    return best;
}

/* The contraction whose target is ``c``, dense, in place of the true one. */
static tc_work_$kind tc_apart_$kind(const tc_work_$kind *w, $scalar *c)
{
    tc_work_$kind part = *w;
    int64_t step = 1;
    for (int d = part.m.axes - 1; d >= 0; step *= part.m.length[d--]) part.m.y[d] = step;
    for (int d = part.n.axes - 1; d >= 0; step *= part.n.length[d--]) part.n.y[d] = step;
    for (int d = part.target.axes - 1; d >= 0; step *= part.target.length[d--]) {
        part.target.x[d] = part.target.y[d] = step;
    }
    part.c = c;
    part.add = 0;
    return part;
}

/* Add what others summed to some columns of the target, one part after the other; the next one lies
 * ``apart`` bytes on.
 */
static void tc_add_parts_$kind(const tc_work_$kind *w, int parts, const $scalar *first, int64_t apart,
    int64_t first_column, int64_t last_column)
{
    const int64_t rows = tc_points(&w->m), columns = tc_points(&w->n);
    int64_t place[TC_NEARBY], unused[TC_NEARBY];
    for (int64_t batch = 0; batch < tc_points(&w->target); ++batch) {
        int64_t start, column;
        tc_places(&w->target, batch, 1, &start, unused);
        for (int64_t j = first_column; j < last_column; ++j) {
            tc_places(&w->n, j, 1, unused, &column);
            for (int64_t i = 0; i < rows; i += TC_NEARBY) {
                const int64_t many = tc_min(TC_NEARBY, rows - i);
                tc_places(&w->m, i, many, unused, place);
                const char *from = (const char *)(first + (batch*columns + j)*rows + i);
                for (int part = 0; part < parts; ++part, from += apart) {
                    for (int64_t r = 0; r < many; ++r) {
                        w->c[start + column + place[r]] += ((const $scalar *)from)[r];
                    }
                }
            }
        }
    }
}

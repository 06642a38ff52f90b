/* Tiles, from libraries of their own; whoever loads these puts them here, those that turn squares by the way
 * of storing them and when ``tc_make`` asks for them: by rows (0) or columns (1), and the way.
 */
tc_heights_$kind tc_packed_$kind, tc_left_$kind, tc_right_$kind;
tc_heights_$kind tc_staged_left_$kind[TC_WAYS], tc_staged_right_$kind[TC_WAYS];
void (*tc_make_$kind)(int, int);

/* A contraction: groups with their strides (m: a and c, n: b and c, k: a and b), how rows are cut,
 * the length of a run of the target and how many of them are in a panel, how summed points are cut,
 * which operands are packed, and the places of the batch.
 */
typedef struct {
    tc_walk m, n, k, batch, target;
    tc_cut cut;
    tc_steps steps;
    int64_t run, together;
    int left, right, add, stream, regular, inner_columns;
    $real alpha;
    const $scalar *a, *b;
    $scalar *c;
    tc_blocks blocks;
} tc_work_$kind;

/* True if the target and all its strides but the fastest are whole vectors, or lines, of so many bytes. */
static int tc_on_lines_$kind(const tc_work_$kind *w, int64_t bytes)
{
    int64_t steps = 0;
    for (int d = 0; d < w->m.axes; ++d) steps |= w->m.y[d] == 1 ? 0 : w->m.y[d];
    for (int d = 0; d < w->n.axes; ++d) steps |= w->n.y[d] == 1 ? 0 : w->n.y[d];
    for (int d = 0; d < w->target.axes; ++d) steps |= w->target.x[d];
    return (uintptr_t)w->c%bytes == 0 && steps%(bytes/(int64_t)sizeof($scalar)) == 0;
}

/* The groups as the kernel's callers give them, and what each thread packs in; the number of
 * points to compute, 0 where there is nothing to do.
 */
static double tc_begin_$kind(tc_work_$kind *w, const tc_group *m, const tc_group *n,
    const tc_group *k, const tc_group *batch, const tc_group *target, double alpha,
    const void *a, const void *b, int add, void *c, int staged_rows)
{
    tc_join(&w->m, m, 1);
    tc_join(&w->n, n, 1);
    tc_join(&w->k, k, 1);
    tc_join(&w->batch, batch, 0);
    tc_join(&w->target, target, 0);
    w->alpha = ($real)alpha;
    w->a = a;
    w->b = b;
    w->c = c;
    w->add = add;
    const int64_t rows = tc_points(&w->m), columns = tc_points(&w->n), summed = tc_points(&w->k);
    w->blocks = tc_blocks_of(sizeof($scalar), $parts, rows, columns, summed, staged_rows);
    return (double)tc_points(&w->batch)*rows*columns*(summed > 0 || add ? summed : 1);
}

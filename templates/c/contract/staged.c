/* A library of one function: a contraction by way of staging buffers, which are transposed into C. */
#include "packm.h"
#include "staged_prefetch.h"
#include "store_transposed.h"
#include "ukernel.h"

#include "tables.h"

/* What a thread works on: packed operands, scatter vectors of k, and the block that is stored next, of which all tiles
 * of the present block store equal parts.
 */
typedef struct {
    const tc_problem *problem;
    const tc_staging *staging;
    tc_real *packed_a, *packed_b;
    int64_t *a_k, *b_k;
    tc_transposed before;
    int64_t squares, done, tiles;
} tc_stage;

static inline void tc_begin_tiles(tc_stage *t, int64_t tiles)
{
    t->squares = t->before.left;
    t->done = 0;
    t->tiles = tiles;
}

/* Store the squares that are due before the next ``count`` tiles. */
static inline void tc_store_due(tc_stage *t, int64_t count)
{
    t->done += count;
    const int64_t due = t->squares*t->done/t->tiles - (t->squares - t->before.left);
    if (due > 0) tc_store_squares(&t->before, due);
}

/* A micro-panel of a block: offset of its first m in A and in the buffer, its m and vectors. */
typedef struct {
    int64_t source, row, m;
    int vectors;
} tc_stage_panel;

/* The tiles of a block, A in place: for each element of the unit-stride axis and each part of k, all micro-panels. What
 * comes next, at ``following`` for micro-panel ``next``, is prefetched. ``a`` is where the block begins.
 */
static void tc_stage_a(tc_stage *t, int64_t first, int64_t run, const tc_real *a, int64_t next,
    const tc_real *following, tc_real *buffer, tc_stage_list *list)
{
    const tc_problem *const w = t->problem;
    const tc_staging *const s = t->staging;
    const int64_t k = w->size_k, across = (w->size_n + TC_NR - 1)/TC_NR, step = k > 1 ? t->a_k[1] - t->a_k[0] : 0;
    const int64_t panels = tc_min(s->together, w->panels.count - first), tiles = panels*across;
    const tc_origin origin = {0};
    tc_stage_panel panel[TC_STAGE_MOST_PANELS];
    int64_t c_column[TC_STAGE_MOST_N + TC_NR], contiguous[TC_MR], m, unused, beyond;
    for (int64_t n = 0; n < across*TC_NR; ++n) c_column[n] = n*s->width*s->pitch;
    for (int n = 0; n < TC_MR; ++n) contiguous[n] = n;
    const int64_t first_m = tc_stage_m(w, s, first, &m);
    for (int64_t q = 0; q < panels; ++q) {
        panel[q].row = tc_panel(&w->panels, first + q, &panel[q].vectors, &panel[q].m) - first_m;
        tc_scatter(&w->m, first_m + panel[q].row, 1, &panel[q].source, &unused);
    }
    tc_scatter(&w->m, tc_stage_m(w, s, next, &m), 1, &beyond, &unused);
    tc_stage_turn_to(list, w, s, first, step);
    tc_begin_tiles(t, run*tiles*((k + s->kc - 1)/s->kc));
    tc_tiles tile = {.tiles = across, .origin = &origin, .c_column = c_column};
    for (int64_t f = 0, p = 0, then; f < run; f += then == 0, p = then) {
        then = p + s->kc < k ? p + s->kc : 0;
        tile.k = tc_min(s->kc, k - p);
        tile.b = t->packed_b + p*across*TC_NR;
        tile.store = p > 0 ? TC_RESUME : TC_OVERWRITE;
        if (then > 0) {
            tile.prefetch_from = (const char *)(a + panel[0].source + f*s->step + t->a_k[then]);
        } else if (f + 1 < run) {
            tile.prefetch_from = (const char *)(a + panel[0].source + (f + 1)*s->step);
        } else {
            tc_stage_turn_to(list, w, s, next, step);
            tile.prefetch_from = (const char *)(following + beyond);
        }
        tc_stage_list_k(list, t->a_k + then, tc_min(s->kc, k - then), across);
        int64_t prefetched = 0;
        const int64_t share = (list->count + tiles - 1)/tiles;
        for (int64_t q = 0; q < panels; ++q) {
            const int64_t lanes = panel[q].vectors*TC_LANES;
            tc_ukernel *run_tiles = TC_NAME(tc_left)[panel[q].vectors];
            tile.a = a + panel[q].source + f*s->step;
            tile.a_k = t->a_k + p;
            /* Lanes beyond the last m read what follows it, unless A ends before. */
            if (panel[q].m < lanes && tile.a - (const tc_real *)w->a + s->last_k + lanes > s->end) {
                tc_pack_a(t->packed_a, lanes, panel[q].m, tile.k, (const tc_scalar *)tile.a, contiguous, tile.a_k, 1);
                tile.a = t->packed_a;
                run_tiles = TC_NAME(tc_packed)[panel[q].vectors];
            }
            tile.c = (tc_scalar *)(buffer + f*s->pitch + panel[q].row);
            tile.prefetch = list->list + prefetched;
            tile.prefetches = tc_min(share, (list->count - prefetched + across - 1)/across);
            prefetched += tile.prefetches*across;
            tc_store_due(t, across);
            run_tiles(&tile);
        }
    }
}

/* The tiles of a block, A packed and B in place: NR elements of the unit-stride axis by all micro-panels. The columns
 * that come next are prefetched, ``count`` of those at ``following`` at last.
 */
static void tc_stage_b(tc_stage *t, int64_t run, const tc_real *b, const tc_real *following, int64_t count,
    tc_real *buffer, tc_prefetch *list)
{
    const tc_problem *const w = t->problem;
    const tc_staging *const s = t->staging;
    const int64_t k = w->size_k, panels = w->panels.count;
    /* Columns begin within a line, so that each has one more, unless they follow each other. */
    const int64_t lines = (k + TC_LINE - 1)/TC_LINE + (s->step != k);
    const tc_origin origin = {0};
    int64_t b_column[TC_NR], c_column[TC_NR], next[TC_NR];
    for (int n = 0; n < TC_NR; ++n) c_column[n] = n*s->pitch;
    for (int n = 0; n < TC_NR; ++n) next[n] = n*s->step;
    tc_begin_tiles(t, (run + TC_NR - 1)/TC_NR*panels);
    tc_tiles tile = {
        .tiles = 1, .k = k, .origin = &origin, .b_column = b_column, .b_k = t->b_k, .c_column = c_column,
        .store = TC_OVERWRITE, .prefetch = list->list,
    };
    for (int64_t f = 0; f < run; f += TC_NR) {
        const int64_t wide = tc_min(TC_NR, run - f), then = tc_min(TC_NR, run - f - TC_NR);
        const tc_scalar *const from = (const tc_scalar *)(then > 0 ? b + (f + TC_NR)*s->step : following);
        for (int n = 0; n < TC_NR; ++n) b_column[n] = tc_min(n, wide - 1)*s->step;
        if (TC_STREAMS > 1) tc_prefetch_these(list, from, next, then > 0 ? then : count, list->line_room, lines);
        else tc_prefetch_these(list, from, list->line_room, lines, next, then > 0 ? then : count);
        const int64_t share = list->left/panels + 1;
        for (int64_t q = 0; q < panels; ++q) {
            int vectors;
            int64_t m;
            tile.b = b + f*s->step;
            tile.c = (tc_scalar *)(buffer + f*s->pitch + tc_panel(&w->panels, q, &vectors, &m));
            tile.a = t->packed_a + q*TC_MR*k;
            tile.prefetches = TC_WITH(TC_PREFETCH_STAGED) ? tc_prefetch_next(list, share) : 0;
            tile.prefetch_from = (const char *)list->from;
            tc_store_due(t, 1);
            TC_NAME(tc_right)[vectors](&tile);
        }
    }
}

/* Pack the operand that is not read in place, for one point of the batch. */
static void tc_stage_pack(tc_stage *t, const tc_real *a, const tc_real *b, int64_t *a_m, int64_t *c_m, int64_t *b_n,
    int64_t *c_n)
{
    const tc_problem *const w = t->problem;
    const int64_t k = w->size_k, padded = (w->size_n + TC_NR - 1)/TC_NR*TC_NR, kc = t->staging->kc;
    if (t->staging->in_place_b) {
        tc_scatter(&w->m, 0, w->size_m, a_m, c_m);
        c_n[0] = 0;
        for (int64_t q = 0; q < w->panels.count; ++q) {
            int vectors;
            int64_t m;
            const int64_t first = tc_panel(&w->panels, q, &vectors, &m);
            tc_pack_a(t->packed_a + q*TC_MR*k, vectors*TC_LANES, m, k, (const tc_scalar *)a, a_m + first, t->a_k,
                w->alpha);
        }
        return;
    }
    tc_scatter(&w->n, 0, w->size_n, b_n, c_n);
    for (int64_t p = 0; p < k; p += kc) {
        const int64_t here = tc_min(kc, k - p);
        for (int64_t j = 0; j < w->size_n; j += TC_NR) {
            tc_pack_b(t->packed_b + p*padded + j*here, TC_NR, tc_min(TC_NR, w->size_n - j), here,
                (const tc_scalar *)b, b_n + j, t->b_k + p, w->alpha);
        }
    }
}

/* The blocks of one thread of ``threads``. */
static void tc_stage_thread(const tc_problem *w, const tc_staging *s, int64_t thread, int64_t threads, char *memory)
{
    const int64_t k = w->size_k, padded = s->in_place_b ? 1 : (w->size_n + TC_NR - 1)/TC_NR*TC_NR;
    const int64_t room = s->pitch*s->width*padded;
    tc_stage t = {.problem = w, .staging = s, .packed_a = (tc_real *)memory};
    memory += tc_aligned(w->most.packed_a*(int64_t)sizeof(tc_scalar));
    t.packed_b = (tc_real *)memory;
    memory += tc_aligned(w->most.packed_b*(int64_t)sizeof(tc_scalar));
    int64_t *const c_m[2] = {(int64_t *)memory, (int64_t *)memory + w->most.m};
    int64_t *const b_n = c_m[1] + w->most.m, *const c_n = b_n + w->most.n;
    t.a_k = c_n + w->most.n;
    t.b_k = t.a_k + k;
    tc_scatter(&w->k, 0, k, t.a_k, t.b_k);
    tc_real *const buffers = s->in_place_b ? t.packed_b : t.packed_a + TC_MR*k;
    tc_prefetch prefetch;
    tc_stage_list list = {.lines = 0, .k = 0};
    if (s->in_place_b) {
        for (int64_t n = 0; n < k; n += TC_LINE) prefetch.line_room[n/TC_LINE] = t.b_k[n];
        prefetch.line_room[(k + TC_LINE - 1)/TC_LINE] = t.b_k[k - 1];
    }
    const int64_t begin = s->blocks*thread/threads, end = s->blocks*(thread + 1)/threads;
    for (int64_t batch = 0; batch < tc_size(&w->batch); ++batch) {
        int64_t a_start, b_start, c_start;
        tc_scatter(&w->batch, batch, 1, &a_start, &b_start);
        tc_scatter(&w->target, batch, 1, &c_start, &c_start);
        const tc_real *const a = (const tc_real *)w->a + a_start, *const b = (const tc_real *)w->b + b_start;
        tc_stage_pack(&t, a, b, c_m[1], c_m[0], b_n, c_n);
        t.before.left = 0;
        for (int64_t block = begin; block < end; ++block) {
            if (*w->stop) return;
            int64_t panel, element, from, to, next_panel, next_element, next, unused;
            tc_stage_block(w, s, block, &panel, &element, &from, &to);
            tc_stage_block(w, s, tc_min(block + 1, end - 1), &next_panel, &next_element, &next, &unused);
            tc_real *const buffer = buffers + block%2*room;
            tc_transposed now = {
                .from = buffer, .pitch = s->pitch, .width = s->width, .columns = s->in_place_b ? 1 : w->size_n,
                .m = w->size_m, .run = tc_min(s->width, s->fast - element), .c = (tc_real *)w->c + c_start + to,
                .c_m = c_m[s->in_place_b ? 0 : block%2], .c_column = c_n, .add = w->add,
                .non_temporal = s->non_temporal,
            };
            if (s->in_place_b) {
                tc_stage_b(&t, now.run, b + from, b + next, tc_min(TC_NR, s->fast - next_element), buffer, &prefetch);
            } else {
                const int64_t first = tc_stage_m(w, s, panel, &now.m);
                for (int64_t n = 0, source[64]; n < now.m; n += 64) {
                    tc_scatter(&w->m, first + n, tc_min(64, now.m - n), source, c_m[block%2] + n);
                }
                tc_stage_a(&t, panel, now.run, a + from, next_panel, a + next, buffer, &list);
            }
            tc_store_squares(&t.before, t.before.left);
            tc_begin_transposed(&now);
            t.before = now;
        }
        tc_store_squares(&t.before, t.before.left);
    }
    if (s->non_temporal) TC_FENCE();
}

/* Take an axis out of a group. The others stay in the order of the operand, if ``sorted``. */
static void tc_remove_axis(tc_axes *g, int axis, int sorted)
{
    tc_axes rest = {.axes = 0};
    for (int d = 0; d < g->axes; ++d) {
        if (d == axis) continue;
        int at = rest.axes++;
        for (; sorted && at > 0 && rest.x[at - 1] < g->x[d]; --at) {
            rest.length[at] = rest.length[at - 1];
            rest.x[at] = rest.x[at - 1];
            rest.y[at] = rest.y[at - 1];
        }
        rest.length[at] = g->length[d];
        rest.x[at] = g->x[d];
        rest.y[at] = g->y[d];
    }
    *g = rest;
}

/* The result is 0, and nothing is done, where C has no unit-stride axis across the operand or the buffers do not fit. */
int TC_NAME(tc_staged)(int threads, int scheme, const tc_group *m, const tc_group *n, const tc_group *k,
    const tc_group *batch, const tc_group *target, double alpha, const void *a, const void *b, int add, void *c,
    char *memory, int64_t memory_bytes, const volatile int *stop)
{
    const int in_place_a = (scheme & TC_PACK_B) != 0;
    tc_problem w;
    const double points = tc_begin(&w, m, n, k, batch, target, alpha, a, b, add, c, in_place_a, stop);
    if (points == 0) return 1;
    if (!w.m.axes || !w.n.axes || !TC_WITH(in_place_a ? TC_STAGED_A : TC_STAGED_B)) return 0;
    int axis = in_place_a ? -1 : w.n.axes - 1;
    for (int d = 0; in_place_a && d < w.m.axes - 1; ++d) axis = w.m.y[d] == 1 ? d : axis;
    if (axis < 0 || (in_place_a ? w.m.x[w.m.axes - 1] : w.n.y[axis]) != 1) return 0;
    tc_axes *const group = in_place_a ? &w.m : &w.n;
    const int64_t fast = group->length[axis], step = group->x[axis];
    tc_remove_axis(group, axis, in_place_a);
    w.size_m = tc_size(&w.m);
    w.size_n = tc_size(&w.n);
    const int64_t run = in_place_a ? tc_contiguous(w.m.axes, w.m.length, w.m.x) : w.size_m;
    w.panels = tc_panels_of(w.size_m, run, TC_LANES);
    const tc_staging s = tc_stage_layout(&w, !in_place_a, fast, step);
    if (s.blocks == 0) return 0;
    if (points < TC_THREAD_POINTS || threads == 1) {
        tc_stage_thread(&w, &s, 0, 1, memory);
        return 1;
    }
    TC_PARALLEL_FOR(threads)
    for (int thread = 0; thread < threads; ++thread) {
        tc_stage_thread(&w, &s, thread, threads, memory + thread*memory_bytes);
    }
    return 1;
}

#ifndef TC_BLOCKING_H
#define TC_BLOCKING_H
/* How a contraction is cut: m into micro-panels, k into blocks. */
#include "scatter.h"
#include "simd.h"

#define TC_STREAMED_C 4000000  /* Bytes of C from which on non-temporal stores pay: it would not stay in the caches. */
#define TC_NEAR_BLOCK 262144   /* Bytes of a packed block that leaves room for the other one in the second-level cache. */
#define TC_THREAD_POINTS 200000  /* Multiply-adds below which starting threads costs more than it saves. */

/* Micro-panels of m. A run is a stretch of m that is contiguous in C; each run is cut into ``pieces`` of at most
 * TC_MR, which differ by one vector at most. The last run may be shorter.
 */
typedef struct {
    int64_t m, run, vectors, pieces, count;
    int lanes;  /* elements of a vector */
} tc_panels;

static inline tc_panels tc_panels_of(int64_t m, int64_t run, int lanes)
{
    tc_panels panels = {m, run, (run + lanes - 1)/lanes, 0, 0, lanes};
    panels.pieces = (panels.vectors + TC_MR_VECTORS - 1)/TC_MR_VECTORS;
    panels.count = (m + run - 1)/run*panels.pieces;
    return panels;
}

/* First m of a micro-panel; its vectors and its m. */
static inline int64_t tc_panel(const tc_panels *panels, int64_t panel, int *vectors, int64_t *m)
{
    const int64_t piece = panel%panels->pieces, base = panels->vectors/panels->pieces;
    const int64_t extra = panels->vectors%panels->pieces;
    const int64_t start = (piece*base + tc_min(piece, extra))*panels->lanes;
    const int64_t first = panel/panels->pieces*panels->run + start;
    *vectors = (int)(base + (piece < extra));
    *m = tc_min(tc_min(*vectors*panels->lanes, panels->run - start), panels->m - first);
    *vectors = (int)((*m + panels->lanes - 1)/panels->lanes);
    return first;
}

/* A contraction: its groups, with strides in two operands (m: a and c, n: b and c, k: a and b, batch: a and b, target:
 * c), its micro-panels, and which operands are packed.
 */
typedef struct {
    tc_axes m, n, k, batch, target;
    int64_t size_m, size_n, size_k;
    tc_panels panels;
    int pack_a, pack_b, add;
    tc_real alpha;
    const tc_scalar *a, *b;
    tc_scalar *c;
    tc_block_sizes most;
    const volatile int *stop;  /* set where the contraction is to end unfinished */
} tc_problem;

/* The groups as callers give them. Returns the multiply-adds, 0 where there is nothing to do. */
static inline double tc_begin(tc_problem *w, const tc_group *m, const tc_group *n, const tc_group *k,
    const tc_group *batch, const tc_group *target, double alpha, const void *a, const void *b, int add, void *c,
    int staged_a, const volatile int *stop)
{
    tc_fuse_axes(&w->m, m, 1);
    tc_fuse_axes(&w->n, n, 1);
    tc_fuse_axes(&w->k, k, 1);
    tc_fuse_axes(&w->batch, batch, 0);
    tc_fuse_axes(&w->target, target, 0);
    w->alpha = (tc_real)alpha;
    w->a = a;
    w->b = b;
    w->c = c;
    w->add = add;
    w->stop = stop;
    w->size_m = tc_size(&w->m);
    w->size_n = tc_size(&w->n);
    w->size_k = tc_size(&w->k);
    w->most = tc_block_sizes_of(sizeof(tc_scalar), TC_REALS, w->size_m, w->size_n, w->size_k, staged_a);
    return (double)tc_size(&w->batch)*w->size_m*w->size_n*(w->size_k > 0 || add ? w->size_k : 1);
}

/* True if C and all its strides but the fastest are multiples of so many bytes. */
static inline int tc_aligned_c(const tc_problem *w, int64_t bytes)
{
    int64_t strides = 0;
    for (int d = 0; d < w->m.axes; ++d) strides |= w->m.y[d] == 1 ? 0 : w->m.y[d];
    for (int d = 0; d < w->n.axes; ++d) strides |= w->n.y[d] == 1 ? 0 : w->n.y[d];
    for (int d = 0; d < w->target.axes; ++d) strides |= w->target.x[d];
    return (uintptr_t)w->c%bytes == 0 && strides%(bytes/(int64_t)sizeof(tc_scalar)) == 0;
}
#endif

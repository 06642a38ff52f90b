#ifndef TC_LOOPS_H
#define TC_LOOPS_H
/* The loops around the macro-kernel: batch, n by blocks of NC, k by KC, m by MC; they pack A and B and prefetch what is
 * packed next.
 */
#include "packm.h"
#include "store_buffered.h"

#define TC_MOST_N_PREFETCHED 512    /* Columns up to which a large A is prefetched: packing it takes time that counts. */
#define TC_MOST_M_PREFETCHED 512    /* m up to which a large B is prefetched, */
#define TC_MOST_M_ONE_BLOCK 128     /* and where one block of A serves all of B. */

/* Columns of B that stay in the first-level cache while micro-panels of A pass. */
static inline int64_t tc_columns_kept(const tc_work *w, int64_t k)
{
    const int64_t bytes = TC_NR*tc_max(1, k)*TC_REALS*TC_REAL_BYTES;
    return tc_max(w->inner_n ? TC_PANELS_B : 1, TC_PANEL_B/bytes)*TC_NR;
}

/* Pack columns of B. */
static inline void tc_pack_block_b(const tc_work *w, tc_real *to, const tc_scalar *b, int64_t n, int64_t k,
    const int64_t *b_n, const int64_t *b_k)
{
    const tc_real alpha = w->problem.alpha;
    for (int64_t j = 0; j < n;) {
#if TC_REALS == 1
        const int64_t panels = tc_run_length(b_n + j, tc_min(n - j, 8*TC_NR))/TC_NR;
        if (panels > 0) {
            tc_pack_contiguous_b(to + j*k, panels, k, b + b_n[j], b_k, alpha);
            j += panels*TC_NR;
            continue;
        }
#endif
        tc_pack_b(to + j*k*TC_REALS, TC_NR, tc_min(TC_NR, n - j), k, b, b_n + j, b_k, alpha);
        j += TC_NR;
    }
}

/* m of ``panels`` micro-panels from q on; the first of them. */
static inline int64_t tc_block_m(const tc_panels *p, int64_t q, int64_t panels, int64_t *m)
{
    int vectors;
    const int64_t first = tc_panel(p, q, &vectors, m);
    const int64_t last = tc_panel(p, q + panels - 1, &vectors, m);
    *m += last - first;
    return first;
}

/* The micro-panels, columns and blocks of k from first to last, for some points of the batch. */
typedef struct {
    int64_t first_batch, last_batch, first_panel, last_panel, first_n, last_n, first_k_block, last_k_block;
} tc_range;

static inline void tc_loops(const tc_work *w, const tc_range *range, char *memory)
{
    const tc_problem *const p = &w->problem;
    tc_panel_a panel[TC_MOST_PANELS];
    tc_origin origin[TC_MOST_PANELS];
    tc_prefetch prefetch_a, prefetch_b;
    const int64_t all_panels = range->last_panel - range->first_panel, all_n = range->last_n - range->first_n;
    const int64_t slot = TC_MR*TC_REALS*w->kc;  /* reals of a micro-panel of A */
    int64_t nc = tc_min(p->most.n, p->most.packed_b/w->kc)/TC_NR*TC_NR;
    int64_t mc = tc_max(1, tc_min(TC_MOST_PANELS, tc_min(p->most.packed_a*TC_REALS*TC_REALS/slot,
        p->most.m/(TC_MR_VECTORS*p->panels.lanes))));  /* in micro-panels */
    /* Where one operand is small, blocks of the other one need not be large. */
    const int one_block = p->size_k <= w->kc && all_panels <= mc;
    if (all_panels*slot <= TC_NEAR_BLOCK/TC_REAL_BYTES) {
        nc = tc_min(nc, TC_NEAR_BLOCK/TC_REAL_BYTES/(w->kc*TC_REALS)/TC_NR*TC_NR + TC_NR);
    } else if (all_n*w->kc*TC_REALS <= TC_NEAR_BLOCK/TC_REAL_BYTES) {
        mc = tc_min(mc, TC_NEAR_BLOCK/TC_REAL_BYTES/slot + 1);
    }
    tc_real *const packed_a = (tc_real *)memory;
    memory += tc_aligned(p->most.packed_a*(int64_t)sizeof(tc_scalar)*TC_REALS);
    tc_real *const packed_b = (tc_real *)memory;
    memory += tc_aligned(p->most.packed_b*(int64_t)sizeof(tc_scalar));
    int64_t *const a_m = (int64_t *)memory, *const c_m = a_m + p->most.m, *const b_n = c_m + p->most.m;
    int64_t *const c_n = b_n + p->most.n, *const a_k = c_n + p->most.n, *const b_k = a_k + p->most.k;
    /* A large operand that meets few m or n of the other one is prefetched: packing it takes much of the time. */
    const double length = (double)p->size_k*sizeof(tc_scalar);
    const int large_a = TC_WITH(TC_PREFETCH_AB) && length*p->size_m >= TC_STREAMED_C && all_n <= TC_MOST_N_PREFETCHED;
    const int large_b = TC_WITH(TC_PREFETCH_AB) && length*p->size_n >= TC_STREAMED_C && (one_block || p->pack_b)
        && all_panels*TC_MR_VECTORS*p->panels.lanes <= (one_block ? TC_MOST_M_ONE_BLOCK : TC_MOST_M_PREFETCHED);
    for (int64_t batch = range->first_batch; batch < range->last_batch; ++batch) {
        int64_t a_start, b_start, c_start, m;
        tc_scatter(&p->batch, batch, 1, &a_start, &b_start);
        tc_scatter(&p->target, batch, 1, &c_start, &c_start);
        const tc_scalar *const a = p->a + a_start, *const b = p->b + b_start;
        for (int64_t j0 = range->first_n; j0 < range->last_n; j0 += nc) {
            const int64_t n = tc_min(nc, range->last_n - j0);
            tc_scatter(&p->n, j0, n, b_n, c_n);
            for (int64_t j = n; j%TC_NR; ++j) b_n[j] = b_n[n - 1];
            for (int64_t step = range->first_k_block; step < range->last_k_block; ++step) {
                const int64_t k = tc_min(w->kc, p->size_k - step*w->kc);
                tc_scatter(&p->k, step*w->kc, k, a_k, b_k);
                if (p->pack_b) tc_pack_block_b(w, packed_b, b, n, k, b_n, b_k);
                for (int64_t q0 = range->first_panel; q0 < range->last_panel; q0 += mc) {
                    if (*p->stop) return;
                    const int64_t panels = tc_min(mc, range->last_panel - q0);
                    const int64_t first_m = tc_block_m(&p->panels, q0, panels, &m);
                    tc_scatter(&p->m, first_m, m, a_m, c_m);
                    for (int64_t q = 0; q < panels; ++q) {
                        tc_panel_a *const at = panel + q;
                        at->first = tc_panel(&p->panels, q0 + q, &at->vectors, &at->m) - first_m;
                        const int filled = at->m == at->vectors*p->panels.lanes;
                        at->scattered = !w->regular && !tc_is_contiguous(c_m + at->first, at->m);
                        at->full = filled && !at->scattered;
                        origin[q] = (tc_origin){a_m[at->first], c_m[at->first]};
                        if ((!p->pack_a && filled) || (one_block && j0 > range->first_n)) continue;
                        tc_pack_a(packed_a + q*slot, at->vectors*TC_LANES, at->m, k, a, a_m + at->first, a_k,
                            p->pack_b ? 1 : p->alpha);
                    }
                    tc_prefetch_these(&prefetch_a, a, 0, 0, 0, 0);
                    tc_prefetch_these(&prefetch_b, b, 0, 0, 0, 0);
                    const int same_k = q0 + mc < range->last_panel;
                    if (same_k || step + 1 < range->last_k_block) {
                        int64_t next_a[TC_KC], next_b[TC_KC], next_m;
                        const int64_t q1 = same_k ? q0 + mc : range->first_panel;
                        const int64_t next = tc_block_m(&p->panels, q1, tc_min(mc, range->last_panel - q1), &next_m);
                        const int64_t start = (step + !same_k)*w->kc, next_k = tc_min(w->kc, p->size_k - start);
                        if (large_a || large_b) tc_scatter(&p->k, start, next_k, next_a, next_b);
                        if (large_a) tc_prefetch_block(&prefetch_a, a, &p->m, next, next_m, next_a, next_k);
                        if (!same_k && large_b) tc_prefetch_block(&prefetch_b, b, &p->n, j0, n, next_b, next_k);
                    } else if (j0 + nc < range->last_n && large_b && one_block) {
                        tc_prefetch_block(&prefetch_b, b, &p->n, j0 + nc, tc_min(nc, range->last_n - j0 - nc), b_k, k);
                    }
                    const tc_block block = {
                        .panel = panel, .origin = origin, .first_panel = q0, .panels = panels, .n = n, .k = k,
                        .slot = slot, .packed_a = packed_a, .packed_b = packed_b, .a = a, .b = b,
                        .c = p->c + c_start, .a_k = a_k, .b_n = b_n, .b_k = b_k, .c_m = c_m, .c_n = c_n,
                        .add = p->add || step > range->first_k_block, .prefetch = &prefetch_a, .then = &prefetch_b,
                        .prefetches = 1 + (prefetch_a.left + prefetch_b.left)/(panels*((n + TC_NR - 1)/TC_NR)),
                        .columns = tc_columns_kept(w, k),
                    };
                    if (w->stream == TC_BUFFERED) tc_buffered_macrokernel(w, &block);
                    else tc_macrokernel(w, &block);
                }
            }
        }
    }
    if (w->stream != TC_CACHED) TC_FENCE();
}
#endif

#ifndef TC_MACROKERNEL_H
#define TC_MACROKERNEL_H
/* The macro-kernel: all tiles of a block of C, micro-panels by columns, for one block of k. */
#include "blocking.h"
#include "store_pieces.h"

#define TC_MOST_PANELS 256   /* Most micro-panels of a block. */
#define TC_PANEL_B 16384     /* Bytes of packed B that stay in the first-level cache while micro-panels of A pass, */
#define TC_PANELS_B 4        /* or at least so many times NR columns where neighbouring columns of C lie closest. */

#include "tables.h"

/* How C is stored: through the caches, by non-temporal stores of whole tiles, or by non-temporal stores of cache lines
 * that a buffer collects.
 */
enum { TC_CACHED, TC_WHOLE_TILES, TC_BUFFERED };

/* A contraction and how its blocks go: ``run`` m are contiguous in C, or all m form one irregular run; a block of k has
 * ``kc``. ``inner_n``: neighbouring columns of C lie closer together than micro-panels.
 */
typedef struct {
    tc_problem problem;
    int64_t run, kc, k_blocks;
    int stream, regular, inner_n;
} tc_work;

/* A micro-panel of a block: its first m, its m and vectors. It is full if its m fill the vectors and are contiguous. */
typedef struct {
    int64_t first, m;
    int vectors, scattered, full;
} tc_panel_a;

/* A block of C with its operands. */
typedef struct {
    const tc_panel_a *panel;
    const tc_origin *origin;  /* of the micro-panels */
    int64_t first_panel, panels, n, k, slot;
    const tc_real *packed_a, *packed_b;
    const tc_scalar *a, *b;
    tc_scalar *c;
    const int64_t *a_k, *b_n, *b_k, *c_m, *c_n;
    int add;
    tc_prefetch *prefetch, *then;  /* of A, then of B */
    int64_t prefetches;            /* for each tile */
    int64_t columns;               /* of B that stay in the first-level cache */
} tc_block;

/* Operands of ``tiles`` tiles from micro-panel q and column j on. Returns the micro-kernel that reads them so. */
static inline tc_ukernel *tc_operands(const tc_work *w, const tc_block *block, int64_t q, int64_t j, int64_t tiles,
    tc_tiles *t)
{
    const tc_panel_a panel = block->panel[q];
    tc_prefetch *const prefetch = block->prefetch->left > 0 ? block->prefetch : block->then;
    t->tiles = tiles;
    t->k = block->k*TC_REALS;
    t->slot = block->slot;
    t->origin = block->origin + q;
    t->a = block->packed_a + q*block->slot;
    t->b = block->packed_b + j*t->k;
    t->prefetch = prefetch->list;
    t->prefetch_from = (const char *)prefetch->from;
    t->prefetches = tc_prefetch_evenly(prefetch, block->prefetches, tiles);
    if (!w->problem.pack_a && panel.m == panel.vectors*w->problem.panels.lanes) {
        t->a = (const tc_real *)block->a;
        t->a_k = block->a_k;
        return TC_NAME(tc_left)[panel.vectors];
    }
    if (!w->problem.pack_b) {
        t->b = (const tc_real *)block->b;
        t->b_column = block->b_n + j;
        t->b_k = block->b_k;
        return TC_NAME(tc_right)[panel.vectors];
    }
    return TC_NAME(tc_packed)[panel.vectors];
}

/* One tile from micro-panel q and column j on or, if they are whole, several of them: along micro-panels of the same
 * height up to panel ``last``, or along columns up to column ``last``. Returns their number.
 */
static inline int64_t tc_some_tiles(const tc_work *w, const tc_block *block, int64_t q, int64_t j, int along_panels,
    int64_t last)
{
    const tc_panel_a panel = block->panel[q];
    const int64_t n = tc_min(TC_NR, block->n - j), prefetched = tc_max(1, TC_PREFETCHES/block->prefetches);
    const int whole = panel.full && n == TC_NR;
    const int64_t most = whole ? tc_min(prefetched, along_panels ? last - q : (last - j)/TC_NR) : 1;
    int64_t tiles = along_panels ? 1 : tc_max(1, most);
    tc_tiles t;
    while (tiles < most && block->panel[q + tiles].full && block->panel[q + tiles].vectors == panel.vectors) ++tiles;
    tc_ukernel *const run = tc_operands(w, block, q, j, tiles, &t);
    t.along_panels = along_panels;
    t.c = block->c;
    t.c_column = block->c_n + j;
    t.store = block->add ? TC_ADD : whole && w->stream == TC_WHOLE_TILES ? TC_NON_TEMPORAL : TC_OVERWRITE;
    t.prefetch_c = w->stream == TC_CACHED;
    if (whole) run(&t);
    else tc_store_pieces(run, &t, panel.m, n, panel.scattered ? block->c_m + panel.first : 0);
    return tiles;
}

/* All tiles of a block: groups of columns of B, and for each of these all micro-panels of A. Each group asks whether to
 * stop: a block whose C is touched for the first time may take seconds.
 */
static inline void tc_macrokernel(const tc_work *w, const tc_block *block)
{
    for (int64_t j0 = 0; j0 < block->n; j0 += block->columns) {
        if (*w->problem.stop) return;
        const int64_t j1 = tc_min(block->n, j0 + block->columns);
        if (block->columns == TC_NR) {
            for (int64_t q = 0; q < block->panels;) q += tc_some_tiles(w, block, q, j0, 1, block->panels);
            continue;
        }
        for (int64_t q = 0; q < block->panels; ++q) {
            for (int64_t j = j0; j < j1;) j += TC_NR*tc_some_tiles(w, block, q, j, 0, j1);
        }
    }
}
#endif

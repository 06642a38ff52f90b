#ifndef TC_STORE_BUFFERED_H
#define TC_STORE_BUFFERED_H
/* Non-temporal stores of a C whose runs of m do not begin and end on cache lines: tiles go to a buffer in which they
 * lie on lines as in C, and the whole lines are stored from there.
 */
#include "macrokernel.h"

#define TC_BUFFER_VECTORS (51200/TC_VECTOR_BYTES)              /* Vectors of the buffer; it and a panel of A fit an L2. */
#define TC_BUFFER_PANELS (3072/TC_VECTOR_BYTES/TC_MR_VECTORS)  /* Most micro-panels of a run that share the buffer. */
#define TC_BUFFER_COLUMNS (384/TC_REAL_BYTES)                  /* Most columns that share the buffer. */

/* Store ``count`` contiguous elements: the whole cache lines of C by non-temporal stores. */
static inline void tc_store_lines(tc_real *to, const tc_real *from, int64_t count)
{
    const int64_t before = (int64_t)((uintptr_t)to%64/sizeof(tc_real)), end = before + count;
    to -= before;
    from -= before;
    for (int64_t n = 0; n < end; n += TC_LANES) {
        const int64_t line = n/TC_LINE*TC_LINE;
        const tc_vec x = *(const tc_vec *)(from + n);
        const int64_t first = tc_max(0, before - n), last = tc_min(TC_LANES, end - n);
        if (line >= before && line + TC_LINE <= end) TC_STREAM(to + n, x);
        else if (first < last) tc_store_lanes(to + n, x, first, last, 0);
    }
}

/* A chunk of C, micro-panels q0 to q1 of one run by columns j0 to j1, through the buffer. Columns that follow each
 * other in C do so in the buffer, as a stretch. The last micro-panel comes first: others overwrite what pads it.
 */
static inline void tc_store_chunk(const tc_work *w, const tc_block *block, int64_t q0, int64_t q1, int64_t j0,
    int64_t j1)
{
    tc_vec room[TC_BUFFER_VECTORS + TC_MR_VECTORS*TC_BUFFER_PANELS] __attribute__((aligned(64)));
    tc_scalar *const c = block->c + block->origin[q0].c;
    const int64_t line = 64/(int64_t)sizeof(tc_scalar), first_m = block->panel[q0].first, *const c_n = block->c_n;
    const int64_t m = block->panel[q1 - 1].first + block->panel[q1 - 1].m - first_m;
    int64_t offset[TC_BUFFER_COLUMNS + TC_NR], first[TC_BUFFER_COLUMNS + 1], end = 0;
    tc_origin origin[TC_BUFFER_PANELS];
    tc_panel_a panel[TC_BUFFER_PANELS];
    int stretches = 0;
    for (int64_t j = j0; j < j1;) {
        first[stretches++] = j;
        TC_PREFETCH_C(c + c_n[j]);
        end = (end + line - 1)/line*line + (int64_t)((uintptr_t)(c + c_n[j])%64/sizeof(tc_scalar));
        do {
            offset[j++ - j0] = end;
            end += m;
        } while (m == w->run && j < j1 && c_n[j] == c_n[j - 1] + m);
        TC_PREFETCH_C(c + c_n[j - 1] + m - 1);
    }
    first[stretches] = j1;
    for (int64_t j = j1; j < j1 + TC_NR; ++j) offset[j - j0] = TC_BUFFER_VECTORS*w->problem.panels.lanes;
    for (int64_t q = q0; q < q1; ++q) {
        panel[q - q0] = block->panel[q];
        panel[q - q0].full = 1;
        origin[q - q0] = (tc_origin){block->origin[q].a, block->panel[q].first - first_m};
    }
    tc_block chunk = *block;
    chunk.n = chunk.columns = (j1 - j0 + TC_NR - 1)/TC_NR*TC_NR;
    chunk.packed_b += j0*block->k*TC_REALS;
    chunk.b_n += j0;
    chunk.c = (tc_scalar *)room;
    chunk.c_n = offset;
    for (int last = 1; last >= 0; --last) {
        const int64_t q = last ? q1 - 1 - q0 : 0;
        chunk.panels = last ? 1 : q1 - 1 - q0;
        chunk.panel = panel + q;
        chunk.origin = origin + q;
        chunk.packed_a = block->packed_a + (q0 + q)*block->slot;
        tc_macrokernel(w, &chunk);
    }
    for (int n = 0; n < stretches; ++n) {
        tc_store_lines((tc_real *)(c + c_n[first[n]]), (const tc_real *)(chunk.c + offset[first[n] - j0]),
            (first[n + 1] - first[n])*m*TC_REALS);
    }
}

/* All tiles of a block by chunks. Each column of a chunk may begin and end within a line. */
static inline void tc_buffered_macrokernel(const tc_work *w, const tc_block *block)
{
    const int64_t pieces = w->problem.panels.pieces, line = 64/TC_VECTOR_BYTES;
    const int64_t vectors = tc_min(pieces, TC_BUFFER_PANELS)*TC_MR_VECTORS + 2*line - 1;
    const int64_t wide = tc_min(TC_BUFFER_COLUMNS, (TC_BUFFER_VECTORS - line)/vectors)/TC_NR*TC_NR;
    const int64_t columns = w->inner_n ? tc_max(1, block->columns/wide)*wide : wide;
    for (int64_t j0 = 0; j0 < block->n; j0 += columns) {
        if (*w->problem.stop) return;
        const int64_t j1 = tc_min(block->n, j0 + columns);
        for (int64_t q = 0, next; q < block->panels; q = next) {
            next = tc_min(block->panels, q + tc_min(TC_BUFFER_PANELS, pieces - (block->first_panel + q)%pieces));
            for (int64_t j = j0; j < j1; j += wide) tc_store_chunk(w, block, q, next, j, tc_min(j1, j + wide));
        }
    }
}
#endif

#ifndef TC_STORE_BUFFERED_H
#define TC_STORE_BUFFERED_H
/* Non-temporal stores of a C whose runs of m do not begin and end on cache lines: tiles go to a buffer in which they
 * lie on lines as in C, and the whole lines are stored from there.
 */
#include "macrokernel.h"

#define TC_BUFFER_VECTORS (TC_BUFFER_BYTES/TC_VECTOR_BYTES)
#define TC_BUFFER_PANELS (3072/TC_VECTOR_BYTES/TC_MR_VECTORS)  /* Most micro-panels of a run that share the buffer. */

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

/* Last micro-panel, plus one, of those from q on that belong to one run and share the buffer. */
static inline int64_t tc_buffer_panels(const tc_work *w, const tc_block *block, int64_t q)
{
    const int64_t run = (block->first_m + block->panel[q].first)/w->run;
    int64_t last = q + 1;
    while (last < block->panels && last - q < TC_BUFFER_PANELS
        && (block->first_m + block->panel[last].first)/w->run == run) {
        ++last;
    }
    return last;
}

/* Columns that share the buffer with the micro-panels of a run. Each may begin and end within a line. */
static inline int64_t tc_buffer_columns(const tc_work *w)
{
    const tc_panels *const panels = &w->problem.panels;
    const int64_t height = (panels->vectors + panels->pieces - 1)/panels->pieces, line = 64/TC_VECTOR_BYTES;
    const int64_t vectors = tc_min(panels->pieces, TC_BUFFER_PANELS)*height + 2*line - 1;
    return tc_min(TC_BUFFER_ROW_BYTES/TC_REAL_BYTES, (TC_BUFFER_VECTORS - line)/vectors/TC_NR*TC_NR);
}

/* Micro-panels q0 to q1 by the columns of a chunk; the inner loop walks micro-panels or columns. */
static inline void tc_fill_buffer(const tc_work *w, const tc_block *block, int64_t q0, int64_t q1, int64_t j0,
    int64_t j1, int along_panels, tc_scalar *buffer, const tc_origin *origin, const int64_t *offset)
{
    const int64_t last = along_panels ? q1 : j0 + (j1 - j0 + TC_NR - 1)/TC_NR*TC_NR;
    for (int64_t q = q0, j = j0; q < q1 && j < j1;) {
        tc_tiles t;
        const int64_t tiles = tc_alike(block, q, j, along_panels, last);
        tc_ukernel *const run = tc_operands(w, block, q, j, tiles, &t);
        t.along_panels = along_panels;
        t.origin = origin + (q - q0);
        t.c = buffer;
        t.c_column = offset + (j - j0);
        t.store = TC_OVERWRITE;
        t.prefetch_c = 0;
        run(&t);
        if (along_panels) {
            q += tiles;
            if (q == q1) q = q0, j += TC_NR;
        } else {
            j += tiles*TC_NR;
            if (j >= j1) j = j0, ++q;
        }
    }
}

/* A chunk of C, micro-panels q0 to q1 of one run by columns j0 to j1, through the buffer. Runs that are contiguous in C
 * are so in the buffer. The last micro-panel comes first: others overwrite what pads it.
 */
static inline void tc_store_chunk(const tc_work *w, const tc_block *block, int64_t q0, int64_t q1, int64_t j0,
    int64_t j1)
{
    tc_vec room[TC_BUFFER_VECTORS + TC_MR_VECTORS*TC_BUFFER_PANELS] __attribute__((aligned(64)));
    tc_scalar *const buffer = (tc_scalar *)room, *const c = block->c + block->origin[q0].c;
    const int64_t line = 64/(int64_t)sizeof(tc_scalar), first_m = block->panel[q0].first, *const c_n = block->c_n;
    const int64_t m = block->panel[q1 - 1].first + block->panel[q1 - 1].m - first_m;
    int64_t offset[TC_BUFFER_VECTORS + TC_NR], first[TC_BUFFER_VECTORS + 1], end = 0;
    tc_origin origin[TC_BUFFER_PANELS];
    int stretches = 0;
    for (int64_t j = j0, joined; j < j1; j += joined) {
        joined = m == w->run ? tc_run_length(c_n + j, j1 - j, m) : 1;
        TC_PREFETCH_C(c + c_n[j]);
        TC_PREFETCH_C(c + c_n[j + joined - 1] + m - 1);
        end = (end + line - 1)/line*line + (int64_t)((uintptr_t)(c + c_n[j])%64/sizeof(tc_scalar));
        first[stretches++] = j;
        for (int64_t n = 0; n < joined; ++n) offset[j - j0 + n] = end + n*m;
        end += joined*m;
    }
    first[stretches] = j1;
    for (int64_t j = j1; j < j1 + TC_NR; ++j) offset[j - j0] = TC_BUFFER_VECTORS*w->problem.panels.lanes;
    for (int64_t q = q0; q < q1; ++q) {
        origin[q - q0] = (tc_origin){block->origin[q].a, block->panel[q].first - first_m};
    }
    tc_fill_buffer(w, block, q1 - 1, q1, j0, j1, 0, buffer, origin + (q1 - 1 - q0), offset);
    tc_fill_buffer(w, block, q0, q1 - 1, j0, j1, j1 - j0 <= TC_NR, buffer, origin, offset);
    for (int n = 0; n < stretches; ++n) {
        tc_store_lines((tc_real *)(c + c_n[first[n]]), (const tc_real *)(buffer + offset[first[n] - j0]),
            (first[n + 1] - first[n])*m*TC_REALS);
    }
}

/* All tiles of a block by chunks. */
static inline void tc_buffered_macrokernel(const tc_work *w, const tc_block *block)
{
    const int64_t broad = tc_buffer_columns(w);
    const int64_t columns = w->inner_n ? tc_max(1, block->columns/broad)*broad : broad;
    for (int64_t j0 = 0; j0 < block->n; j0 += columns) {
        const int64_t j1 = tc_min(block->n, j0 + columns);
        for (int64_t q = 0, next; q < block->panels; q = next) {
            next = tc_buffer_panels(w, block, q);
            for (int64_t j = j0; j < j1; j += broad) tc_store_chunk(w, block, q, next, j, tc_min(j1, j + broad));
        }
    }
}
#endif

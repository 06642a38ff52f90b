#ifndef TC_STAGED_LAYOUT_H
#define TC_STAGED_LAYOUT_H
/* Staged contractions: the unit-stride axis of C is not that of the operand that is read in place. Blocks of C are
 * computed into a staging buffer in which that axis is the slowest, and transposed on their way to C.
 */
#include "blocking.h"

#define TC_STAGE_B_BYTES 524288    /* Bytes of a staging buffer where B is read in place. */
#define TC_STAGE_MOST_N 128        /* Columns up to which A is read in place: all of B is packed beside it. */
#define TC_STAGE_MOST_LINES 6      /* Most cache lines of a row of C in a block. */
#define TC_STAGE_LONG_K 40         /* k beside which stores to other pages take no time: more m are better then. */
#define TC_PAGE 4096               /* Bytes of a page. */
#define TC_LISTED 4096             /* Most lines of a group of micro-panels that are prefetched. */
#define TC_STAGE_MOST_PANELS 128   /* Most micro-panels of a block. */

/* A block is ``width`` elements of the unit-stride axis by ``together`` micro-panels by all columns, where A is read in
 * place; or, where B is, by all m and one of the other columns.
 */
typedef struct {
    int in_place_b, non_temporal;
    int64_t fast, step;            /* length of the unit-stride axis of C; its stride in the operand */
    int64_t width, together, pitch;  /* pitch: reals of the buffer from one element of that axis to the next */
    int64_t others, runs, near, blocks;
    int64_t kc;                    /* k that are summed before the next ones */
    int64_t last_k, end;           /* offset of the last k in A, and of the end of A */
} tc_staging;

/* k of a part of the sum: equal parts, each on at most TC_STAGE_PAGES pages, so that translations of their addresses
 * stay known. All k where a micro-panel ends within a vector and another one follows: its last vector overwrites the
 * first m of that one, before these are computed.
 */
static inline int64_t tc_stage_kc(const tc_problem *w)
{
    const int64_t page = TC_PAGE/TC_REAL_BYTES;
    const int64_t apart = w->k.axes ? tc_max(1, tc_min(w->k.x[w->k.axes - 1], page)) : page;
    const int64_t parts = (w->size_k*apart + TC_STAGE_PAGES*page - 1)/(TC_STAGE_PAGES*page);
    if (!TC_WITH(TC_PARTS_OF_K) || (w->panels.run%TC_LANES && w->panels.count > w->panels.pieces)) return w->size_k;
    return (w->size_k + parts - 1)/parts;
}

/* Blocks of a contraction whose C has a unit-stride axis of ``fast``, ``step`` apart in the operand; no blocks where
 * two staging buffers do not fit.
 */
static inline tc_staging tc_stage_layout(const tc_problem *w, int in_place_b, int64_t fast, int64_t step)
{
    tc_staging s = {.in_place_b = in_place_b, .fast = fast, .step = step};
    const int64_t k = w->size_k, slot = TC_MR*k, lines = (fast + TC_LINE - 1)/TC_LINE;
    const int64_t n = in_place_b ? 1 : (w->size_n + TC_NR - 1)/TC_NR*TC_NR;
    const int64_t memory = in_place_b ? w->most.packed_b : w->most.packed_a - slot;
    int64_t room = (in_place_b ? TC_STAGE_B_BYTES : TC_STAGE_A_BYTES)/TC_REAL_BYTES, unit = TC_LINE;
    if (k == 0 || k > w->most.k) return s;
    s.non_temporal = TC_WITH(TC_NON_TEMPORAL_C) && !w->add && tc_aligned_c(w, TC_VECTOR_BYTES);
    s.last_k = tc_last_offset(&w->k);
    s.end = 1 + s.last_k + (fast - 1)*step + tc_last_offset(&w->m) + tc_last_offset(&w->batch);
    s.kc = in_place_b ? k : tc_stage_kc(w);
    if (in_place_b) {
        if (w->size_m > w->most.m || w->panels.count*slot > w->most.packed_a) return s;
        s.together = w->panels.count;
        if (TC_LINE%TC_NR) unit *= TC_NR/2;  /* tiles of 6 columns, and whole lines */
    } else {
        if (w->size_n > TC_STAGE_MOST_N || n > w->most.n || n*k > w->most.packed_b) return s;
        const int64_t width = tc_min(k < TC_STAGE_LONG_K ? TC_STAGE_LINES : TC_STAGE_LINES - 1, lines)*TC_LINE;
        room = tc_min(room, memory/2);
        const int64_t listed = (TC_LISTED/s.kc - 1)*TC_LINE/TC_MR;  /* whose lines are prefetched */
        s.together = tc_max(1, tc_min(listed, (room/(n*width) - TC_LINE)/TC_MR));
        s.together = tc_min(tc_min(s.together, TC_STAGE_MOST_PANELS), w->panels.count);
        if (s.together > w->panels.pieces) s.together -= s.together%w->panels.pieces;
    }
    s.pitch = s.together*TC_MR + TC_LINE;  /* so that not all columns are in the same sets of a cache */
    const int64_t row = n*s.pitch, fits = tc_min(room, memory/2)/row;
    const int64_t most = tc_min(fits, TC_STAGE_MOST_LINES*TC_LINE)/unit*unit;
    if (most < unit) return s;
    const int64_t pieces = (fast + most - 1)/most;
    s.width = ((fast + pieces - 1)/pieces + unit - 1)/unit*unit;
    s.others = in_place_b ? w->size_n : 1;
    s.runs = (fast + s.width - 1)/s.width;
    const int64_t groups = (w->panels.count + s.together - 1)/s.together;
    s.blocks = s.others*s.runs*groups;
    s.near = s.non_temporal ? s.others*groups : 1;
    return s;
}

/* First micro-panel of a block, first element of the unit-stride axis, and offsets of the block in the operand and C.
 * ``near`` groups of m or columns follow each other for the same elements.
 */
static inline void tc_stage_block(const tc_problem *w, const tc_staging *s, int64_t block, int64_t *panel,
    int64_t *element, int64_t *from, int64_t *to)
{
    const int64_t group = block/s->near/s->runs*s->near + block%s->near;
    *panel = group/s->others*s->together;
    *element = block/s->near%s->runs*s->width;
    *from = *to = 0;
    if (s->in_place_b) tc_scatter(&w->n, group%s->others, 1, from, to);
    *from += *element*s->step;
    *to += *element;
}

/* First m of a group of micro-panels, and how many. */
static inline int64_t tc_stage_m(const tc_problem *w, const tc_staging *s, int64_t panel, int64_t *m)
{
    int vectors;
    const int64_t first = tc_panel(&w->panels, panel, &vectors, m);
    const int64_t last = tc_min(panel + s->together, w->panels.count) - 1;
    const int64_t start = tc_panel(&w->panels, last, &vectors, m);
    *m += start - first;
    return first;
}
#endif

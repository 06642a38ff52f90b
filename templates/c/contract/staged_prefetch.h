#ifndef TC_STAGED_PREFETCH_H
#define TC_STAGED_PREFETCH_H
/* Prefetch of the m of A that a staged contraction reads next in place. */
#include "prefetch.h"
#include "staged_layout.h"

/* Lines of a group of micro-panels for one k, and the list for ``k`` of them in bytes from the first one. */
typedef struct {
    int64_t lines, count, k, line[TC_PREFETCHES], offset[TC_KC], list[TC_LISTED + TC_STAGE_MOST_N];
} tc_stage_list;

/* Lines of the group for one k, in elements from its first m. Those of the next k are ``next`` behind. */
static inline int64_t tc_stage_lines(const tc_problem *w, const tc_staging *s, int64_t panel, int64_t next,
    int64_t *line)
{
    enum { TOGETHER = 64 };
    int64_t x[TOGETHER], y[TOGETHER], m, lines = 0, start = 0, last = 0, since = 0;
    const int64_t first = tc_stage_m(w, s, panel, &m);
    for (int64_t n = 0; n < m; n += TOGETHER) {
        const int64_t many = tc_min(TOGETHER, m - n);
        tc_scatter(&w->m, first + n, many, x, y);
        start = n == 0 ? x[0] : start;
        for (int64_t r = 0; r < many && lines < TC_PREFETCHES - 2; last = x[r++]) {
            if (n + r > 0 && x[r] == last + 1) {
                if (++since%TC_LINE == 0) line[lines++] = x[r] - start;
                continue;
            }
            if (since%TC_LINE) line[lines++] = last - start;
            line[lines++] = x[r] - start;
            since = 0;
        }
    }
    /* A run that starts within a line ends in one more, unless the next one follows it. */
    if (since%TC_LINE && next != m) line[lines++] = last - start;
    return lines;
}

/* Turn to another group of micro-panels; most groups have the lines of the one before. */
static inline void tc_stage_turn_to(tc_stage_list *list, const tc_problem *w, const tc_staging *s, int64_t panel,
    int64_t next)
{
    int64_t line[TC_PREFETCHES], same = 0;
    const int64_t lines = tc_stage_lines(w, s, panel, next, line);
    while (same < lines && line[same] == list->line[same]) ++same;
    if (same == lines && lines == list->lines) return;
    list->lines = lines;
    list->k = 0;
    for (int64_t l = same; l < lines; ++l) list->line[l] = line[l];
}

/* List the lines of some k, unless they are listed already. Lines of TC_STREAMS pages alternate, which keeps more
 * channels of the memory busy. The last line is repeated ``spare`` times.
 */
static inline void tc_stage_list_k(tc_stage_list *list, const int64_t *a_k, int64_t k, int64_t spare)
{
    int64_t same = 0, count = 0;
    while (same < k && a_k[same] - a_k[0] == list->offset[same]) ++same;
    if (same == k && k <= list->k) return;
    for (int64_t p = same; p < k; ++p) list->offset[p] = a_k[p] - a_k[0];
    list->k = k;
    const int64_t points = tc_min(k, TC_LISTED/tc_max(1, list->lines));
    const int64_t pages = k > 1 ? tc_min(list->offset[1]*TC_REAL_BYTES, TC_PAGE)*points/TC_PAGE : 1;
    const int64_t each = points/(TC_WITH(TC_ALTERNATE) ? tc_max(1, tc_min(TC_STREAMS, pages)) : 1);
    for (int64_t p = 0; p < each; ++p) {
        for (int64_t l = 0; l < list->lines; ++l) {
            for (int64_t q = p; q < points; q += each) {
                list->list[count++] = (list->offset[q] + list->line[l])*TC_REAL_BYTES;
            }
        }
    }
    for (int64_t n = 0; count > 0 && n < spare; ++n) list->list[count + n] = list->list[count - 1];
    list->count = TC_WITH(TC_PREFETCH_STAGED) ? count : 0;
}
#endif

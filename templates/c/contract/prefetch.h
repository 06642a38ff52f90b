#ifndef TC_PREFETCH_H
#define TC_PREFETCH_H
/* Prefetch of what is packed or read next, a cache line at each k of the micro-kernel: a memory that is busy at all
 * times delivers several times what it delivers on demand.
 */
#include "scatter.h"
#include "simd.h"

#define TC_PREFETCHES 512                   /* Most lines that one call of the micro-kernel prefetches. */
#define TC_ADDRESSES (TC_VECTOR_BYTES/8)    /* Addresses computed in one vector. */

/* Lines to prefetch: those of the elements ``line`` behind each of ``start``, all relative to ``from``. */
typedef struct {
    const tc_scalar *from;
    const int64_t *line, *start;
    int64_t lines, starts, next_line, next_start, left;
    int64_t line_room[TC_PREFETCHES + TC_ADDRESSES], start_room[2*TC_PREFETCHES];
    int64_t list[TC_PREFETCHES + TC_ADDRESSES];  /* bytes from ``from`` */
} tc_prefetch;

static inline void tc_prefetch_these(tc_prefetch *f, const tc_scalar *from, const int64_t *line, int64_t lines,
    const int64_t *start, int64_t starts)
{
    f->from = from;
    f->line = line;
    f->start = start;
    f->lines = lines;
    f->starts = starts;
    f->next_line = f->next_start = 0;
    f->left = lines*starts;
}

/* Put the next lines into the list, at most ``count``. Returns their number. */
TC_NOINLINE int64_t tc_prefetch_next(tc_prefetch *f, int64_t count)
{
    count = tc_min(tc_min(count, TC_PREFETCHES), f->left);
    f->left -= count;
    for (int64_t n = 0; n < count;) {
        const int64_t run = tc_min(count - n, f->lines - f->next_line);
        const int64_t start = f->start[f->next_start], size = sizeof(tc_scalar);
        const int64_t *const line = f->line + f->next_line;
        for (int64_t r = 0; r < run; r += TC_ADDRESSES) {  /* the next run overwrites those beyond it */
            const tc_offsets along = *(const tc_offsets *)(line + r);
            *(tc_offsets *)(f->list + n + r) = (start + along)*size;
        }
        n += run;
        if ((f->next_line += run) < f->lines) continue;
        f->next_line = 0;
        ++f->next_start;
    }
    return count;
}

/* Lines for several tiles, ``each`` for every one of them; the last line is repeated at the end of the list. Returns
 * the number for each tile.
 */
static inline int64_t tc_prefetch_evenly(tc_prefetch *f, int64_t each, int64_t tiles)
{
    each = tc_min(each, TC_PREFETCHES);
    const int64_t all = each*tiles, count = tc_prefetch_next(f, all);
    if (count == 0) return 0;
    for (int64_t n = count; n < all; ++n) f->list[n] = f->list[n - 1];
    return each;
}

/* Offsets of every ``step``-th of ``count`` points of a group, the last one of each step. At most ``room`` of them;
 * returns their number.
 */
static inline int64_t tc_sample(const tc_axes *g, int64_t first, int64_t count, int64_t step, int64_t *offset,
    int64_t room)
{
    enum { CHUNK = 256 };
    int64_t x[CHUNK], unused[CHUNK], sampled = 0;
    for (int64_t n = 0; n < count && sampled < room; n += CHUNK) {
        const int64_t many = tc_min(CHUNK, count - n);
        tc_scatter(g, first + n, many, x, unused);
        for (int64_t r = tc_min(step, many) - 1; r < many && sampled < room; r += step) offset[sampled++] = x[r];
    }
    return sampled;
}

/* Prefetch the next block of an operand: ``count`` points of its group m or n from number ``first`` on, for the k at
 * ``k_offset``. Its unit-stride axis is the last one of that group or of k; otherwise nothing is prefetched.
 */
TC_NOINLINE void tc_prefetch_block(tc_prefetch *f, const tc_scalar *from, const tc_axes *group, int64_t first,
    int64_t count, const int64_t *k_offset, int64_t k)
{
    const int64_t length = 64/(int64_t)sizeof(tc_scalar);
    int64_t lines = 0, starts = 0;
    if (group->axes && group->x[group->axes - 1] == 1) {
        lines = tc_sample(group, first, count, length, f->line_room, TC_PREFETCHES);
        for (; starts < k; ++starts) f->start_room[starts] = k_offset[starts];
    } else if (k > 1 && (k_offset[1] == k_offset[0] + 1 || k_offset[k - 1] == k_offset[k - 2] + 1)) {
        for (int64_t p = tc_min(length, k) - 1; p < k; p += length) f->line_room[lines++] = k_offset[p];
        starts = tc_sample(group, first, count, 1, f->start_room, 2*TC_PREFETCHES);
    }
    tc_prefetch_these(f, from, f->line_room, lines, f->start_room, starts);
}
#endif

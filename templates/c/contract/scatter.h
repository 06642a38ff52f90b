#ifndef TC_SCATTER_H
#define TC_SCATTER_H
/* Scatter vectors: the offsets of the points of a group of axes in two operands. */
#include "abi.h"
#include "target.h"

#define TC_AXES 64  /* Most axes of a group: as many as a NumPy array has. */

/* A group of axes within the library. */
typedef struct {
    int axes;
    int64_t length[TC_AXES], x[TC_AXES], y[TC_AXES];
} tc_axes;

/* Leave out axes of length 1. Join neighbours that are one axis in both operands, if asked for. */
static inline void tc_fuse_axes(tc_axes *to, const tc_group *g, int join)
{
    int last = -1;
    for (int n = 0; n < g->axes; ++n) {
        if (g->length[n] == 1) continue;
        const int64_t length = g->length[n], x = g->x[n], y = g->y[n];
        if (join && last >= 0 && to->x[last] == x*length && to->y[last] == y*length) {
            to->length[last] *= length;
        } else {
            to->length[++last] = length;
        }
        to->x[last] = x;
        to->y[last] = y;
    }
    to->axes = last + 1;
}

/* Number of points of a group. */
static inline int64_t tc_size(const tc_axes *g)
{
    int64_t points = 1;
    for (int n = 0; n < g->axes; ++n) points *= g->length[n];
    return points;
}

/* Offset of the last point of a group in the first operand. */
static inline int64_t tc_last_offset(const tc_axes *g)
{
    int64_t offset = 0;
    for (int n = 0; n < g->axes; ++n) offset += (g->length[n] - 1)*g->x[n];
    return offset;
}

/* Offsets in both operands of ``count`` points of a group from number ``first`` on. */
static inline void tc_scatter(const tc_axes *g, int64_t first, int64_t count, int64_t *x, int64_t *y)
{
    int64_t digit[TC_AXES], in_x = 0, in_y = 0;
    const int last = g->axes - 1;
    if (count == 0) return;
    if (last < 0) {
        for (int64_t n = 0; n < count; ++n) x[n] = y[n] = 0;
        return;
    }
    for (int d = last; d >= 0; --d) {
        digit[d] = first%g->length[d];
        first /= g->length[d];
        in_x += digit[d]*g->x[d];
        in_y += digit[d]*g->y[d];
    }
    for (int64_t n = 0; n < count;) {
        const int64_t run = tc_min(count - n, g->length[last] - digit[last]);
        const int64_t step_x = g->x[last], step_y = g->y[last];
        for (int64_t r = 0; r < run; ++r) {
            x[n + r] = in_x + r*step_x;
            y[n + r] = in_y + r*step_y;
        }
        n += run;
        in_x -= digit[last]*step_x;
        in_y -= digit[last]*step_y;
        digit[last] = 0;
        for (int d = last - 1; d >= 0; --d) {
            in_x += g->x[d];
            in_y += g->y[d];
            if (++digit[d] < g->length[d]) break;
            in_x -= g->length[d]*g->x[d];
            in_y -= g->length[d]*g->y[d];
            digit[d] = 0;
        }
    }
}

/* Points of the fastest axes that are contiguous in memory. */
static inline int64_t tc_contiguous(int axes, const int64_t *length, const int64_t *stride)
{
    int64_t run = 1;
    for (int n = axes - 1; n >= 0 && stride[n] == run; --n) run *= length[n];
    return run;
}

typedef int64_t tc_offsets __attribute__((vector_size(TC_VECTOR_BYTES), aligned(8), may_alias));

/* How many of ``count`` offsets are contiguous, from the first one on. */
static inline int64_t tc_run_length(const int64_t *offset, int64_t count)
{
    int64_t run = 1;
    while (run < count && offset[run] == offset[run - 1] + 1) ++run;
    return run;
}

static inline int tc_is_contiguous(const int64_t *offset, int64_t count)
{
    return count <= 1 || tc_run_length(offset, count) == count;
}
#endif

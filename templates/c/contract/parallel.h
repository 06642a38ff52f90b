#ifndef TC_PARALLEL_H
#define TC_PARALLEL_H
/* Threads: each has a rectangle of C and, where C is small, a part of the sum over k, which is added up afterwards. */
#include "loops.h"

#define TC_ADDING 4000  /* Time in which threads wait for each other before parts are added, in the units below. */
#define TC_ADD_M 64     /* m of which the offsets are computed at a time while parts are added. */

/* How threads divide a contraction: micro-panels by columns by parts of the sum. */
typedef struct {
    int m, n, k;
} tc_division;

/* Memory of a thread behind its packed B, for its part of the sum of all of C; its elements. */
static inline tc_scalar *tc_part_memory(const tc_work *w, char *memory, int64_t *elements)
{
    const tc_problem *const p = &w->problem;
    const int64_t packed = (p->size_n + TC_NR - 1)/TC_NR*TC_NR*w->kc*TC_REALS;
    memory += tc_aligned(p->most.packed_a*(int64_t)sizeof(tc_scalar)*TC_REALS);
    *elements = tc_max(0, p->most.packed_b*TC_REALS - packed)/TC_REALS;
    return (tc_scalar *)((tc_real *)memory + packed);
}

/* The division that takes the least time. The products of a vector of m with NR columns take one unit for each k; so
 * does packing these columns, and each vector of m. Parts of the sum cost their addition.
 */
static inline tc_division tc_divide(const tc_work *w, int threads, char *memory)
{
    const tc_problem *const p = &w->problem;
    const int64_t batches = tc_size(&p->batch), columns = (p->size_n + TC_NR - 1)/TC_NR;
    const double size = (double)p->size_m*p->size_n*batches;
    int64_t room;
    tc_part_memory(w, memory, &room);
    tc_division best = {1, 1, 1};
    double least = 0;
    for (int k = 1; k <= (size <= room ? tc_min(threads, w->k_blocks) : 1); ++k) {
        for (int m = 1; threads%k == 0 && m <= threads/k; ++m) {
            if (threads/k%m) continue;
            const int n = threads/k/m;
            const int64_t high = TC_MR_VECTORS*((p->panels.count + m - 1)/m), wide = (columns + n - 1)/n;
            const double steps = (double)((w->k_blocks + k - 1)/k)*w->kc*batches;
            const double time = steps*(high*wide + high + wide) + (k > 1 ? TC_ADDING + k*size/threads : 0);
            if (least == 0 || time < least) {
                least = time;
                best = (tc_division){m, n, k};
            }
        }
    }
    return best;
}

/* The contraction with a dense C at ``c``. */
static inline tc_work tc_with_dense_c(const tc_work *w, tc_scalar *c)
{
    tc_work part = *w;
    tc_axes *const groups[] = {&part.problem.m, &part.problem.n};
    for (int g = 0; g < 2; ++g) {
        int64_t stride = g == 0 ? 1 : w->problem.size_m;
        for (int d = groups[g]->axes - 1; d >= 0; stride *= groups[g]->length[d--]) groups[g]->y[d] = stride;
    }
    tc_axes *const target = &part.problem.target;
    int64_t stride = w->problem.size_m*w->problem.size_n;
    for (int d = target->axes - 1; d >= 0; stride *= target->length[d--]) target->x[d] = target->y[d] = stride;
    part.problem.c = c;
    part.problem.add = 0;
    return part;
}

/* Add to some columns of C what other threads summed of them, one part after the other, each ``pitch`` bytes on. */
static inline void tc_add_parts(const tc_problem *p, int parts, const tc_scalar *first, int64_t pitch, int64_t first_n,
    int64_t last_n)
{
    int64_t offset[TC_ADD_M], unused[TC_ADD_M];
    for (int64_t batch = 0; batch < tc_size(&p->target); ++batch) {
        int64_t start, column;
        tc_scatter(&p->target, batch, 1, &start, unused);
        for (int64_t j = first_n; j < last_n; ++j) {
            tc_scatter(&p->n, j, 1, unused, &column);
            for (int64_t i = 0; i < p->size_m; i += TC_ADD_M) {
                const int64_t many = tc_min(TC_ADD_M, p->size_m - i);
                tc_scatter(&p->m, i, many, unused, offset);
                const char *from = (const char *)(first + (batch*p->size_n + j)*p->size_m + i);
                for (int part = 0; part < parts; ++part, from += pitch) {
                    for (int64_t r = 0; r < many; ++r) {
                        p->c[start + column + offset[r]] += ((const tc_scalar *)from)[r];
                    }
                }
            }
        }
    }
}
#endif

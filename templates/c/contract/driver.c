/* A library of one function: a contraction of any layout by blocks. */
#include "parallel.h"

/* A contraction on its way to some threads. */
typedef struct {
    const tc_work *work;
    tc_division division;
    int by_batch, threads;
    char *memory;
    int64_t memory_bytes;
} tc_call;

/* What one thread computes: points of the batch, or a rectangle of C and a part of its sum. */
static void tc_thread(const tc_call *call, int thread)
{
    const tc_work *w = call->work;
    const tc_problem *const p = &w->problem;
    const int64_t panels = p->panels.count, n = p->size_n, batches = tc_size(&p->batch);
    const tc_division by = call->division;
    tc_range range = {0, batches, 0, panels, 0, n, 0, w->k_blocks};
    tc_work part;
    if (call->by_batch) {
        range.first_batch = batches*thread/call->threads;
        range.last_batch = batches*(thread + 1)/call->threads;
    } else {
        const int q = thread%by.m, j = thread/by.m%by.n, k = thread/by.m/by.n;
        const int64_t columns = (n + TC_NR - 1)/TC_NR;
        range = (tc_range){
            0, batches, panels*q/by.m, panels*(q + 1)/by.m,
            tc_min(n, columns*j/by.n*TC_NR), tc_min(n, columns*(j + 1)/by.n*TC_NR),
            w->k_blocks*k/by.k, w->k_blocks*(k + 1)/by.k,
        };
        if (k > 0) {
            int64_t room;
            part = tc_with_dense_c(w, tc_part_memory(w, call->memory + k*by.m*by.n*call->memory_bytes, &room));
            w = &part;
        }
    }
    tc_loops(w, &range, call->memory + thread*call->memory_bytes);
}

/* Choose runs of m and how C is stored. Runs follow C, unless they are short and there is much to sum: then all m are
 * one run, whose micro-panels are stored in pieces.
 */
static void tc_choose(tc_work *w, int scheme)
{
    enum { LONG_K = 192, SHORT_K = 32 };  /* k beside which storing in pieces takes no time; which is little to sum */
    tc_problem *const p = &w->problem;
    const int64_t lanes = TC_LANES/TC_REALS, size = sizeof(tc_scalar), m = p->size_m, most_k = p->most.k;
    p->pack_a = scheme & TC_PACK_A || TC_REALS == 2;
    p->pack_b = scheme & TC_PACK_B || TC_REALS == 2;
    w->run = tc_contiguous(p->m.axes, p->m.length, p->m.y);
    if (!p->pack_a) w->run = tc_min(w->run, tc_contiguous(p->m.axes, p->m.length, p->m.x));
    /* Non-temporal stores suit a large C of long stretches, or of whole tiles on cache lines. */
    int64_t stretch = w->run;
    for (int d = p->n.axes - 1; d >= 0 && p->n.y[d] == stretch; --d) stretch *= p->n.length[d];
    const int large = TC_WITH(TC_NON_TEMPORAL_C) && !p->add && p->size_k <= most_k && (uintptr_t)p->c%size == 0
        && (double)m*p->size_n*tc_size(&p->batch)*size >= TC_STREAMED_C;
    const int long_stretches = large && stretch >= 6*lanes;
    const int64_t padded = (w->run + lanes - 1)/lanes*lanes, most = most_k < LONG_K ? 5 : 25;
    w->regular = most*w->run >= (most - 1)*padded  /* at most one part of ``most`` is padding */
        || w->run == m || (most_k < SHORT_K && w->run > 1);
    if (!w->regular) {
        w->run = m;
        p->pack_a = 1;
    }
    if (!p->pack_a && !p->pack_b) p->pack_b = 1;
    p->panels = tc_panels_of(m, w->run, (int)lanes);
    w->stream = TC_CACHED;
    if (large && w->regular) {
        const int64_t unit = long_stretches ? 64 : TC_VECTOR_BYTES;
        const int whole = TC_MR_VECTORS*TC_VECTOR_BYTES%unit == 0 && w->run%(unit/size) == 0;
        if (whole && tc_aligned_c(p, unit)) w->stream = TC_WHOLE_TILES;
        else if (long_stretches && TC_WITH(TC_BUFFERED_C)) w->stream = TC_BUFFERED;
    }
    /* From a column to the next one, and from a micro-panel to the next one. */
    const int64_t next_n = p->n.axes ? p->n.y[p->n.axes - 1] : INT64_MAX;
    int64_t next_m = w->run > TC_MR_VECTORS*lanes ? TC_MR_VECTORS*lanes : INT64_MAX;
    for (int d = 0; d < p->m.axes; ++d) {
        if (p->m.y[d] >= w->run) next_m = tc_min(next_m, p->m.y[d]);
    }
    w->inner_n = next_n < next_m && most_k <= LONG_K;
    /* Equal blocks of k. */
    w->k_blocks = tc_max(1, (p->size_k + most_k - 1)/most_k);
    w->kc = tc_max(1, tc_min(most_k, ((p->size_k + w->k_blocks - 1)/w->k_blocks + 7)/8*8));
}

int TC_NAME(tc_blocks)(int threads, int scheme, const tc_group *m, const tc_group *n, const tc_group *k,
    const tc_group *batch, const tc_group *target, double alpha, const void *a, const void *b, int add, void *c,
    char *memory, int64_t memory_bytes, const volatile int *stop)
{
    tc_work w;
    tc_problem *const p = &w.problem;
    const double points = tc_begin(p, m, n, k, batch, target, alpha, a, b, add, c, 0, stop);
    if (points == 0) return 1;
    tc_choose(&w, scheme);
    if (points < TC_THREAD_POINTS) threads = 1;
    const int by_batch = tc_size(&p->batch) >= threads;
    const tc_division by = by_batch ? (tc_division){1, 1, 1} : tc_divide(&w, threads, memory);
    const tc_call call = {&w, by, by_batch, threads, memory, memory_bytes};
    if (threads == 1) {  /* a team of one thread takes as long to begin as a small product */
        tc_thread(&call, 0);
        return 1;
    }
    TC_PARALLEL_FOR(threads)
    for (int thread = 0; thread < threads; ++thread) tc_thread(&call, thread);
    if (by.k == 1) return 1;
    int64_t room;
    const tc_scalar *const first = tc_part_memory(&w, memory + by.m*by.n*memory_bytes, &room);
    TC_PARALLEL_FOR(threads)
    for (int thread = 0; thread < threads; ++thread) {
        tc_add_parts(p, by.k - 1, first, by.m*by.n*memory_bytes, p->size_n*thread/threads,
            p->size_n*(thread + 1)/threads);
    }
    return 1;
}

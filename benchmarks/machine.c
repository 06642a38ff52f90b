/* Register tiles beside lines that are fetched or stored: what a core can do at the same time. */
#include <stdint.h>

#ifdef __AVX512F__
enum { LANES = 8, COLUMNS = 8, DEPTH = 64 };
#else
enum { LANES = 4, COLUMNS = 4, DEPTH = 64 };
#endif
typedef double vector __attribute__((vector_size(8*LANES), may_alias));

#if defined(__AVX512F__) && !defined(__clang__)
#define PAST_THE_CACHES(to, x) __builtin_ia32_movntpd512((double *)(to), x)
#elif defined(__AVX__) && !defined(__clang__)
#define PAST_THE_CACHES(to, x) __builtin_ia32_movntpd256((double *)(to), x)
#elif defined(__clang__)
#define PAST_THE_CACHES(to, x) __builtin_nontemporal_store(x, to)
#else
#define PAST_THE_CACHES(to, x) (*(to) = (x))
#endif

static double panel[DEPTH][3*LANES] __attribute__((aligned(64)));
static double columns[DEPTH][COLUMNS] __attribute__((aligned(64)));

void fill(void)
{
    for (int k = 0; k < DEPTH; ++k) {
        for (int n = 0; n < 3*LANES; ++n) panel[k][n] = 1e-3*(n + 1);
        for (int j = 0; j < COLUMNS; ++j) columns[k][j] = 1e-3*(j + 1);
    }
}

static inline void store_line(char *to)
{
    const vector x = {0};
    for (int v = 0; v < 8/LANES; ++v) PAST_THE_CACHES((vector *)to + v, x);
}

/* Steps of a tile, or none; at each of them lines are fetched (bit 0) or stored (bit 1), by number. */
static inline __attribute__((always_inline)) double walk(
    char *memory, const int32_t *line, int64_t steps, const int multiply, const int lines)
{
    vector sum[COLUMNS][3];
    _Pragma("GCC unroll 8")
    for (int j = 0; j < COLUMNS; ++j) {
        _Pragma("GCC unroll 3")
        for (int v = 0; v < 3; ++v) sum[j][v] = (vector){0};
    }
    for (int64_t k = 0; k < steps; ++k) {
        char *const place = memory + 64*(int64_t)line[k];
        if (lines & 1) __builtin_prefetch(place, 0, 2);
        if (lines & 2) store_line(place);
        if (!multiply) continue;
        vector x[3];
        _Pragma("GCC unroll 3")
        for (int v = 0; v < 3; ++v) x[v] = *(const vector *)(panel[k%DEPTH] + v*LANES);
        _Pragma("GCC unroll 8")
        for (int j = 0; j < COLUMNS; ++j) {
            _Pragma("GCC unroll 3")
            for (int v = 0; v < 3; ++v) sum[j][v] += x[v]*columns[k%DEPTH][j];
        }
    }
    vector all = {0};
    _Pragma("GCC unroll 8")
    for (int j = 0; j < COLUMNS; ++j) {
        _Pragma("GCC unroll 3")
        for (int v = 0; v < 3; ++v) all += sum[j][v];
    }
    return all[0];
}

int64_t flops(void) { return 2*3*LANES*COLUMNS; }

double multiply(char *m, const int32_t *l, int64_t n) { return walk(m, l, n, 1, 0); }
double fetch(char *m, const int32_t *l, int64_t n) { return walk(m, l, n, 0, 1); }
double store(char *m, const int32_t *l, int64_t n) { return walk(m, l, n, 0, 2); }
double fetch_beside(char *m, const int32_t *l, int64_t n) { return walk(m, l, n, 1, 1); }
double store_beside(char *m, const int32_t *l, int64_t n) { return walk(m, l, n, 1, 2); }

/* Follow pointers, each of which is the first word of a line. */
char *chase(char *place, int64_t steps)
{
    for (int64_t k = 0; k < steps; ++k) place = *(char *volatile *)place;
    return place;
}

/* packing: written by tcgen 0.1.0, float64. C11 with OpenMP; it works without OpenMP too.
 *
 * Every kernel takes a table of arrays, the extents of the base spaces (N_o, N_v, ...), the values
 * of host loop variables, for each kernel the bytes from one thread's own arrays to the next
 * thread's, the number of threads, and the BLAS (null where there is none).
 * Arrays are in C order: the last axis is the fastest.
 */
#include <complex.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#else
static inline int omp_get_thread_num(void) { return 0; }
static inline int omp_get_max_threads(void) { return 1; }
#endif
#ifndef CMPLX
#define CMPLX(x, y) ((double complex)((double)(x) + _Complex_I*(double)(y)))
#endif

/* Below this many points starting threads costs more than it saves. */
#define TC_PARALLEL_POINTS 50000
#define TC_PRODUCT_POINTS 200000

/* Most rows of a matrix whose products with a vector are added up on the stack. */
#define TC_ROWS 8192

/* Place in the table of the BLAS that is not null where the BLAS runs on the calling thread. */
#define TC_BLAS_SERIAL 6

static inline int64_t tc_min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t tc_max(int64_t a, int64_t b) { return a > b ? a : b; }

/* Place of the pair (p, q) in a packed lower triangle, with and without diagonal. */
static inline int64_t tc_triangle(int64_t p, int64_t q)
{
    return p >= q ? p*(p + 1)/2 + q : q*(q + 1)/2 + p;
}

static inline int64_t tc_strict(int64_t p, int64_t q)
{
    return p >= q ? p*(p - 1)/2 + q : q*(q - 1)/2 + p;
}

static inline int tc_sign(int64_t p, int64_t q) { return p < q ? -1 : 1; }

/* Number of distinct arrangements of the values i >= j >= k >= ... */
static inline int64_t tc_orbit(int count, const int64_t *values)
{
    int64_t arrangements = 1, run = 1;
    for (int n = 1; n < count; ++n) {
        run = values[n] == values[n - 1] ? run + 1 : 1;
        arrangements = arrangements*(n + 1)/run;
    }
    return arrangements;
}

/* Five bits without a loop: a constant exponent leaves straight code, which has vectors. */
#define TC_POW_BIT                      \
    if (n & 1) result *= base;          \
    base *= base;                       \
    n >>= 1;
#define TC_POW(kind, type)                                      \
    static inline type tc_pow_##kind(type base, int exponent)   \
    {                                                           \
        type result = 1;                                        \
        int n = exponent < 0 ? -exponent : exponent;            \
        TC_POW_BIT TC_POW_BIT TC_POW_BIT TC_POW_BIT TC_POW_BIT  \
        while (n > 0) { TC_POW_BIT }                            \
        return exponent < 0 ? 1/result : result;                \
    }
TC_POW(d, double)
TC_POW(s, float)
TC_POW(z, double complex)

static inline void tc_zero(void *start, int64_t bytes, int threads)
{
    const int64_t piece = 1 << 20;
    if (threads == 1 || bytes <= 4*piece) {  /* to begin a team of one thread takes time, too */
        memset(start, 0, (size_t)bytes);
        return;
    }
    #pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t n = 0; n < bytes; n += piece) {
        memset((char *)start + n, 0, (size_t)tc_min(piece, bytes - n));
    }
}

int tcgen_threads(void) { return omp_get_max_threads(); }

/* kernel packing_0
 *   by hand
 * inputs  g[o,o,v,v]
 * outputs full[o,v,o,v]
 * flops   0
 * bytes   2 o^2 v^2 + 2 o v^2 - 2 o^2 v - 2 o v read, 8 o^2 v^2 written
 */
void tcgen_packing_0(
    void *const *tc_buffers, const int64_t *tc_extents, const int64_t *tc_host,
    const int64_t *tc_strides, int tc_threads, void *const *tc_blas)
{
    const int64_t N_o = tc_extents[0];
    const int64_t N_v = tc_extents[1];
    double *restrict full = tc_buffers[2];
    const double *restrict g = tc_buffers[0];
    (void)tc_buffers, (void)tc_extents, (void)tc_host, (void)tc_strides;
    (void)tc_threads, (void)tc_blas;

    #pragma omp parallel for collapse(2) schedule(static) num_threads(tc_threads) if ((double)N_o*N_v*N_o*N_v > TC_PARALLEL_POINTS)
    for (int64_t i = 0; i < N_o; ++i) {
        for (int64_t a = 0; a < N_v; ++a) {
            for (int64_t j = 0; j < N_o; ++j) {
                #pragma omp simd
                for (int64_t b = 0; b < N_v; ++b) {
                    full[((i*N_v + a)*N_o + j)*N_v + b] = (a == b ? 0 : tc_sign(a, b)*g[(tc_triangle(i, j))*(N_v*(N_v - 1)/2) + tc_strict(a, b)]);
                }
            }
        }
    }
}

/* kernel packing_1
 *   by hand
 * inputs  g[o,o,v,v], n[o,o,v]
 * outputs t[v,v], s[v,v]
 * flops   o^2 v^2 + 1/2 o v^2 + o^2 v + 1/2 o v
 * bytes   2 o^2 v^2 + 2 o v^2 + 2 o^2 v - 6 o v read, 8 v^2 written
 */
void tcgen_packing_1(
    void *const *tc_buffers, const int64_t *tc_extents, const int64_t *tc_host,
    const int64_t *tc_strides, int tc_threads, void *const *tc_blas)
{
    const int64_t N_o = tc_extents[0];
    const int64_t N_v = tc_extents[1];
    double *restrict t = tc_buffers[3];
    const double *restrict g = tc_buffers[0];
    const double *restrict n = tc_buffers[1];
    double *restrict s = tc_buffers[4];
    (void)tc_buffers, (void)tc_extents, (void)tc_host, (void)tc_strides;
    (void)tc_threads, (void)tc_blas;

    #pragma omp parallel for schedule(guided) num_threads(tc_threads) if ((double)N_v*N_v*N_o*N_o > TC_PARALLEL_POINTS)
    for (int64_t a = 0; a < N_v; ++a) {
        for (int64_t b = 0; b < a + 1; ++b) {
            double tc_sum = 0.0;
            for (int64_t i = 0; i < N_o; ++i) {
                #pragma omp simd reduction(+:tc_sum)
                for (int64_t j = 0; j < N_o; ++j) {
                    tc_sum += (a == b ? 0 : tc_sign(a, b)*g[(tc_triangle(i, j))*(N_v*(N_v - 1)/2) + a*(a - 1)/2 + b])*(j == i ? 0 : tc_sign(j, i)*n[b*(N_o*(N_o - 1)/2) + tc_strict(j, i)]);
                }
            }
            if (a >= b) t[a*(a + 1)/2 + b] = tc_sum;
        }
    }
    for (int64_t a = 0; a < N_v; ++a) {
        for (int64_t b = 0; b < a + 1; ++b) {
            double tc_sum = 0.0;
            #pragma omp simd reduction(+:tc_sum)
            for (int64_t i = 0; i < N_o; ++i) {
                tc_sum += (a == b ? 0 : tc_sign(a, b)*g[(tc_triangle(i, i))*(N_v*(N_v - 1)/2) + a*(a - 1)/2 + b]);
            }
            if (a > b) s[a*(a - 1)/2 + b] = tc_sum;
        }
    }
}

/* kernel packing_2
 *   by hand
 * inputs  n[o,o,v]
 * outputs copy[o,o,v]
 * flops   0
 * bytes   4 o^2 v - 4 o v read, 8 o^2 v written
 */
void tcgen_packing_2(
    void *const *tc_buffers, const int64_t *tc_extents, const int64_t *tc_host,
    const int64_t *tc_strides, int tc_threads, void *const *tc_blas)
{
    const int64_t N_o = tc_extents[0];
    const int64_t N_v = tc_extents[1];
    double *restrict copy = tc_buffers[5];
    const double *restrict n = tc_buffers[1];
    (void)tc_buffers, (void)tc_extents, (void)tc_host, (void)tc_strides;
    (void)tc_threads, (void)tc_blas;

    #pragma omp parallel for schedule(static) num_threads(tc_threads) if ((double)N_o*N_o*N_v > TC_PARALLEL_POINTS)
    for (int64_t i = 0; i < N_o; ++i) {
        for (int64_t j = 0; j < N_o; ++j) {
            #pragma omp simd
            for (int64_t a = 0; a < N_v; ++a) {
                copy[(i*N_o + j)*N_v + a] = (j == i ? 0 : tc_sign(j, i)*n[a*(N_o*(N_o - 1)/2) + tc_strict(j, i)]);
            }
        }
    }
}

/* The volatile phase of the host program in one call. */
void tcgen_phase_volatile(void *const *tc_buffers, const int64_t *tc_extents,
    const int64_t *tc_strides, int tc_threads, void *const *tc_blas)
{
    tcgen_packing_0(tc_buffers, tc_extents, NULL,
        tc_strides, tc_threads, tc_blas);
    tcgen_packing_1(tc_buffers, tc_extents, NULL,
        tc_strides, tc_threads, tc_blas);
    tcgen_packing_2(tc_buffers, tc_extents, NULL,
        tc_strides, tc_threads, tc_blas);
}

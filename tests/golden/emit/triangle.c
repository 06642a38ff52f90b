/* triangles: written by tcgen 0.1.0, float64. C11 with OpenMP; it works without OpenMP too.
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

/* kernel triangles_0
 *   by hand
 * inputs  e, u[o]
 * outputs e
 * private r[1]
 * flops   1/3 o^3 + o^2 + 2/3 o
 * bytes   8 o + 8 read, 8 written
 */
void tcgen_triangles_0(
    void *const *tc_buffers, const int64_t *tc_extents, const int64_t *tc_host,
    const int64_t *tc_strides, int tc_threads, void *const *tc_blas)
{
    const int64_t N_o = tc_extents[0];
    double *restrict e = tc_buffers[2];
    const double *restrict u = tc_buffers[0];
    double r = 0;
    (void)tc_buffers, (void)tc_extents, (void)tc_host, (void)tc_strides;
    (void)tc_threads, (void)tc_blas;

    tc_zero(e, 1*(int64_t)sizeof(double), tc_threads);
    for (int64_t i = 0; i < N_o; ++i) {
        for (int64_t j = 0; j < i + 1; ++j) {
            for (int64_t k = 0; k < j + 1; ++k) {
                r = u[i]*u[j]*u[k];
                e[0] += 0.14285714285714285*tc_orbit(3, (const int64_t[]){i, j, k})*r;
            }
        }
    }
}

/* kernel triangles_1
 *   by hand
 * inputs  u[o]
 * outputs f
 * flops   o^2 + o
 * bytes   8 o read, 8 written
 */
void tcgen_triangles_1(
    void *const *tc_buffers, const int64_t *tc_extents, const int64_t *tc_host,
    const int64_t *tc_strides, int tc_threads, void *const *tc_blas)
{
    const int64_t N_o = tc_extents[0];
    double *restrict f = tc_buffers[3];
    const double *restrict u = tc_buffers[0];
    (void)tc_buffers, (void)tc_extents, (void)tc_host, (void)tc_strides;
    (void)tc_threads, (void)tc_blas;

    {
        double tc_parts[tc_threads*(64/(int)sizeof(double))];
        for (int tc_n = 0; tc_n < tc_threads; ++tc_n) tc_parts[tc_n*(64/(int)sizeof(double))] = 0;
        #pragma omp parallel num_threads(tc_threads) if ((double)N_o*N_o > TC_PARALLEL_POINTS)
        {
            double tc_sum = 0.0;
            #pragma omp for schedule(static) nowait
            for (int64_t x = 0; x < N_o; ++x) {
                #pragma omp simd reduction(+:tc_sum)
                for (int64_t y = 0; y < x + 1; ++y) {
                    tc_sum += (x == y ? 1 : 2)*(u[x]*u[y]);
                }
            }
            tc_parts[omp_get_thread_num()*(64/(int)sizeof(double))] = tc_sum;
        }
        double tc_sum = 0;
        for (int tc_n = 0; tc_n < tc_threads; ++tc_n) tc_sum += tc_parts[tc_n*(64/(int)sizeof(double))];
        f[0] = tc_sum;
    }
}

/* kernel triangles_2
 *   by hand
 * inputs  u[o]
 * outputs h
 * flops   2/3 o^3 + 2 o^2 + 4/3 o
 * bytes   8 o read, 8 written
 */
void tcgen_triangles_2(
    void *const *tc_buffers, const int64_t *tc_extents, const int64_t *tc_host,
    const int64_t *tc_strides, int tc_threads, void *const *tc_blas)
{
    const int64_t N_o = tc_extents[0];
    double *restrict h = tc_buffers[4];
    const double *restrict u = tc_buffers[0];
    (void)tc_buffers, (void)tc_extents, (void)tc_host, (void)tc_strides;
    (void)tc_threads, (void)tc_blas;

    {
        double tc_parts[tc_threads*(64/(int)sizeof(double))];
        for (int tc_n = 0; tc_n < tc_threads; ++tc_n) tc_parts[tc_n*(64/(int)sizeof(double))] = 0;
        #pragma omp parallel num_threads(tc_threads) if ((double)N_o*N_o*N_o > TC_PARALLEL_POINTS)
        {
            double tc_sum = 0.0;
            #pragma omp for schedule(static) nowait
            for (int64_t x = 0; x < N_o; ++x) {
                for (int64_t y = 0; y < x + 1; ++y) {
                    #pragma omp simd reduction(+:tc_sum)
                    for (int64_t z = 0; z < y + 1; ++z) {
                        tc_sum += tc_orbit(3, (const int64_t[]){x, y, z})*(u[x]*u[y]*u[z]);
                    }
                }
            }
            tc_parts[omp_get_thread_num()*(64/(int)sizeof(double))] = tc_sum;
        }
        double tc_sum = 0;
        for (int tc_n = 0; tc_n < tc_threads; ++tc_n) tc_sum += tc_parts[tc_n*(64/(int)sizeof(double))];
        h[0] = tc_sum;
    }
}

/* kernel triangles_3
 *   by hand
 * inputs  half[o,o], m[o,v]
 * outputs half[o,o]
 * flops   o^2 v + o v
 * bytes   8 o v + 8 o^2 read, 8 o^2 written
 */
void tcgen_triangles_3(
    void *const *tc_buffers, const int64_t *tc_extents, const int64_t *tc_host,
    const int64_t *tc_strides, int tc_threads, void *const *tc_blas)
{
    const int64_t N_o = tc_extents[0];
    const int64_t N_v = tc_extents[1];
    double *restrict half = tc_buffers[5];
    const double *restrict m = tc_buffers[1];
    (void)tc_buffers, (void)tc_extents, (void)tc_host, (void)tc_strides;
    (void)tc_threads, (void)tc_blas;

    tc_zero(half, N_o*N_o*(int64_t)sizeof(double), tc_threads);
    #pragma omp parallel for schedule(guided) num_threads(tc_threads) if ((double)N_o*N_o*N_v > TC_PARALLEL_POINTS)
    for (int64_t x = 0; x < N_o; ++x) {
        for (int64_t y = 0; y < x + 1; ++y) {
            double tc_sum = 0.0;
            #pragma omp simd reduction(+:tc_sum)
            for (int64_t a = 0; a < N_v; ++a) {
                tc_sum += m[x*N_v + a]*m[y*N_v + a];
            }
            half[x*N_o + y] += tc_sum;
        }
    }
}

/* The volatile phase of the host program in one call. */
void tcgen_phase_volatile(void *const *tc_buffers, const int64_t *tc_extents,
    const int64_t *tc_strides, int tc_threads, void *const *tc_blas)
{
    tcgen_triangles_0(tc_buffers, tc_extents, NULL,
        tc_strides, tc_threads, tc_blas);
    tcgen_triangles_1(tc_buffers, tc_extents, NULL,
        tc_strides, tc_threads, tc_blas);
    tcgen_triangles_2(tc_buffers, tc_extents, NULL,
        tc_strides, tc_threads, tc_blas);
    tcgen_triangles_3(tc_buffers, tc_extents, NULL,
        tc_strides, tc_threads, tc_blas);
}

/* energy: written by tcgen 0.1.0, float64. C11 with OpenMP; it works without OpenMP too.
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

/* On Linux with glibc the C library has these functions for whole vectors too (libmvec: at most 4
 * units in the last place), but its header says so under -ffast-math alone. Everywhere else, and
 * with -DTC_PLAIN_MATH, the plain functions are called, one element at a time. */
#if defined(_OPENMP) && defined(__x86_64__) && defined(__GLIBC_PREREQ) && !defined(TC_PLAIN_MATH)
#if __GLIBC_PREREQ(2, 35) && defined(__GNUC__) && !defined(__clang__) && !defined(__INTEL_COMPILER)
#define TC_VECTOR_FORM(type, name, function)                        \
    _Pragma("omp declare simd notinbranch")                         \
    type name(type) __asm__(#function) __attribute__((const));
TC_VECTOR_FORM(double, exp, exp)
TC_VECTOR_FORM(float, expf, expf)
TC_VECTOR_FORM(double, log, log)
TC_VECTOR_FORM(float, logf, logf)
TC_VECTOR_FORM(double, tanh, tanh)
TC_VECTOR_FORM(float, tanhf, tanhf)
/* By another name: the compiler would make one call of a sine and a cosine, which has no vectors. */
TC_VECTOR_FORM(double, tc_sin, sin)
TC_VECTOR_FORM(float, tc_sinf, sinf)
TC_VECTOR_FORM(double, tc_cos, cos)
TC_VECTOR_FORM(float, tc_cosf, cosf)
#define sin tc_sin
#define sinf tc_sinf
#define cos tc_cos
#define cosf tc_cosf
#endif
#endif

/* kernel energy_0
 *   t[i,a] = -2*g[i,a]/(e_o[i] - e_v[a] + shift)
 * inputs  t[o,v], g[o,v], e_o[o], e_v[v], shift
 * outputs t[o,v], e
 * flops   6 o v
 * bytes   16 o v + 8 o + 8 v + 8 read, 8 o v + 8 written
 */
void tcgen_energy_0(
    void *const *tc_buffers, const int64_t *tc_extents, const int64_t *tc_host,
    const int64_t *tc_strides, int tc_threads, void *const *tc_blas)
{
    const int64_t N_o = tc_extents[0];
    const int64_t N_v = tc_extents[1];
    double *restrict t = tc_buffers[4];
    const double *restrict g = tc_buffers[0];
    const double *restrict e_o = tc_buffers[1];
    const double *restrict e_v = tc_buffers[2];
    const double *restrict shift = tc_buffers[3];
    double *restrict e = tc_buffers[5];
    (void)tc_buffers, (void)tc_extents, (void)tc_host, (void)tc_strides;
    (void)tc_threads, (void)tc_blas;

    #pragma omp parallel for schedule(static) num_threads(tc_threads) if ((double)N_o*N_v > TC_PARALLEL_POINTS)
    for (int64_t i = 0; i < N_o; ++i) {
        #pragma omp simd
        for (int64_t a = 0; a < N_v; ++a) {
            t[i*N_v + a] = -2.0*(g[i*N_v + a]/(e_o[i] - e_v[a] + shift[0]));
        }
    }
    {
        double tc_parts[tc_threads*(64/(int)sizeof(double))];
        for (int tc_n = 0; tc_n < tc_threads; ++tc_n) tc_parts[tc_n*(64/(int)sizeof(double))] = 0;
        #pragma omp parallel num_threads(tc_threads) if ((double)N_o*N_v > TC_PARALLEL_POINTS)
        {
            double tc_sum = 0.0;
            #pragma omp for schedule(static) nowait
            for (int64_t tc_piece = 0; tc_piece < N_o*N_v; tc_piece += 4096) {
                #pragma omp simd reduction(+:tc_sum)
                for (int64_t a = tc_piece; a < tc_min(tc_piece + 4096, N_o*N_v); ++a) {
                    tc_sum += t[a]*g[a];
                }
            }
            tc_parts[omp_get_thread_num()*(64/(int)sizeof(double))] = tc_sum;
        }
        double tc_sum = 0;
        for (int tc_n = 0; tc_n < tc_threads; ++tc_n) tc_sum += tc_parts[tc_n*(64/(int)sizeof(double))];
        e[0] = 0.3333333333333333*tc_sum;
    }
}

/* kernel energy_1
 *   t[i,a] = -2*g[i,a]/(e_o[i] - e_v[a] + shift)
 * inputs  t[o,v]
 * outputs f[o,v]
 * flops   26 o v
 * bytes   8 o v read, 8 o v written
 */
void tcgen_energy_1(
    void *const *tc_buffers, const int64_t *tc_extents, const int64_t *tc_host,
    const int64_t *tc_strides, int tc_threads, void *const *tc_blas)
{
    const int64_t N_o = tc_extents[0];
    const int64_t N_v = tc_extents[1];
    double *restrict f = tc_buffers[6];
    const double *restrict t = tc_buffers[4];
    (void)tc_buffers, (void)tc_extents, (void)tc_host, (void)tc_strides;
    (void)tc_threads, (void)tc_blas;

    #pragma omp parallel for schedule(static) num_threads(tc_threads) if ((double)N_v*N_o > TC_PARALLEL_POINTS)
    for (int64_t a = 0; a < N_v; ++a) {
        #pragma omp simd
        for (int64_t i = 0; i < N_o; ++i) {
            f[i*N_v + a] = exp((-0.25)*tc_pow_d(t[i*N_v + a], 2)) + cos(t[i*N_v + a])/(3.0 + fabs(sin(t[i*N_v + a]))) + sqrt(fabs(t[i*N_v + a])) + tc_pow_d(2.0 + tanh((t[i*N_v + a])), -3) + (t[i*N_v + a]) + (0*(t[i*N_v + a])) + log(9.0 + fabs(t[i*N_v + a]));
        }
    }
}

/* kernel energy_2
 *   t[i,a] = -2*g[i,a]/(e_o[i] - e_v[a] + shift)
 * inputs  lambda[o], t[o,v], e_o[o]
 * outputs lambda[o]
 * flops   o v + o
 * bytes   8 o v + 16 o read, 8 o written
 */
void tcgen_energy_2(
    void *const *tc_buffers, const int64_t *tc_extents, const int64_t *tc_host,
    const int64_t *tc_strides, int tc_threads, void *const *tc_blas)
{
    const int64_t N_o = tc_extents[0];
    const int64_t N_v = tc_extents[1];
    double *restrict lambda = tc_buffers[7];
    const double *restrict t = tc_buffers[4];
    const double *restrict e_o = tc_buffers[1];
    (void)tc_buffers, (void)tc_extents, (void)tc_host, (void)tc_strides;
    (void)tc_threads, (void)tc_blas;

    tc_zero(lambda, N_o*(int64_t)sizeof(double), tc_threads);
    for (int64_t a = 0; a < N_v; ++a) {
        #pragma omp simd
        for (int64_t i = 0; i < N_o; ++i) {
            lambda[i] += t[i*N_v + a];
        }
    }
    #pragma omp simd
    for (int64_t i = 0; i < N_o; ++i) {
        lambda[i] += -e_o[i];
    }
}

/* kernel energy_3
 *   t[i,a] = -2*g[i,a]/(e_o[i] - e_v[a] + shift)
 * inputs  t[o,v]
 * outputs norm
 * flops   3 o v
 * bytes   8 o v read, 8 written
 */
void tcgen_energy_3(
    void *const *tc_buffers, const int64_t *tc_extents, const int64_t *tc_host,
    const int64_t *tc_strides, int tc_threads, void *const *tc_blas)
{
    const int64_t N_o = tc_extents[0];
    const int64_t N_v = tc_extents[1];
    double *restrict norm = tc_buffers[8];
    const double *restrict t = tc_buffers[4];
    (void)tc_buffers, (void)tc_extents, (void)tc_host, (void)tc_strides;
    (void)tc_threads, (void)tc_blas;

    {
        double tc_sum = 0.0;
        #pragma omp simd reduction(+:tc_sum)
        for (int64_t a = 0; a < N_o*N_v; ++a) {
            tc_sum += t[a]*(t[a]);
        }
        norm[0] = tc_sum;
    }
}

/* The volatile phase of the host program in one call. */
void tcgen_phase_volatile(void *const *tc_buffers, const int64_t *tc_extents,
    const int64_t *tc_strides, int tc_threads, void *const *tc_blas)
{
    tcgen_energy_0(tc_buffers, tc_extents, NULL,
        tc_strides, tc_threads, tc_blas);
    tcgen_energy_1(tc_buffers, tc_extents, NULL,
        tc_strides, tc_threads, tc_blas);
    tcgen_energy_2(tc_buffers, tc_extents, NULL,
        tc_strides, tc_threads, tc_blas);
    tcgen_energy_3(tc_buffers, tc_extents, NULL,
        tc_strides, tc_threads, tc_blas);
}

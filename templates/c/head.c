/* $name: written by tcgen $version, $dtype. C11 with OpenMP; it works without OpenMP too.
 *
 * Every kernel takes a table of arrays, the extents of the base spaces (N_o, N_v, ...), the values
 * of host loop variables, for each kernel the bytes from one thread's own arrays to the next
 * thread's, the number of threads, and the BLAS (null where there is none). The last entry of that
 * table is the address of a number that another thread sets to end the kernel: loops ask for it.
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

/* Multiply-adds of a product of the BLAS in one call: 0.15 s at 50 Gflop/s. Tests choose fewer. */
#ifndef TC_PIECE_POINTS
#define TC_PIECE_POINTS 4e9
#endif

/* Most rows of a matrix whose products with a vector are added up on the stack. */
#define TC_ROWS 8192

/* Largest dimension and stride that the BLAS takes; tests choose smaller ones. */
#ifndef TC_BLAS_MOST
#define TC_BLAS_MOST INT32_MAX
#endif

/* Place in the table of the BLAS that is not null where the BLAS runs on the calling thread. */
#define TC_BLAS_SERIAL 6

/* Place of the address of the number that ends kernels, behind the contractions. */
#define TC_STOP 13

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

/* Five bits without a loop: a constant exponent leaves straight code, which has vectors. As in
 * NumPy, powers from 4 on and negative ones begin with a product by 1, which turns complex
 * infinities into NaN, and the others do not. */
#define TC_POW_BIT                                  \
    if (n & 1) {                                    \
        result = first ? base : result*base;        \
        first = 0;                                  \
    }                                               \
    base *= base;                                   \
    n >>= 1;
#define TC_POW(kind, type)                                      \
    static inline type tc_pow_##kind(type base, int exponent)   \
    {                                                           \
        type result = 1;                                        \
        int n = exponent < 0 ? -exponent : exponent;            \
        int first = 0 < exponent && exponent < 4;               \
        TC_POW_BIT TC_POW_BIT TC_POW_BIT TC_POW_BIT TC_POW_BIT  \
        while (n > 0) { TC_POW_BIT }                            \
        return exponent < 0 ? 1/result : result;                \
    }
TC_POW(d, double)
TC_POW(s, float)
TC_POW(z, double complex)

/* By zero, each part is divided, as NumPy's are: C's rules would give NaN. */
static inline double complex tc_quotient_z(double complex x, double complex y)
{
    return y == 0 ? CMPLX(creal(x)/fabs(creal(y)), cimag(x)/fabs(creal(y))) : x/y;
}

static inline void tc_zero(void *start, int64_t bytes, int threads, const volatile int *stop)
{
    const int64_t piece = 1 << 20;
    if (bytes <= 4*piece) {  /* to begin a team of threads takes time, too */
        memset(start, 0, (size_t)bytes);
        return;
    }
    #pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t n = 0; n < bytes; n += piece) {
        if (*stop) continue;
        memset((char *)start + n, 0, (size_t)tc_min(piece, bytes - n));
    }
}

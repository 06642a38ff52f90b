/* orbit: written by tcgen 0.1.0, float64. C11 with OpenMP; it works without OpenMP too.
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

/* Place in the table of the BLAS that is not null where the BLAS runs on the calling thread. */
#define TC_BLAS_SERIAL 3

static inline int64_t tc_min(int64_t a, int64_t b) { return a < b ? a : b; }

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
    #pragma omp parallel for schedule(static) num_threads(threads) if (bytes > 4*piece)
    for (int64_t n = 0; n < bytes; n += piece) {
        memset((char *)start + n, 0, (size_t)tc_min(piece, bytes - n));
    }
    (void)threads;
}

int tcgen_threads(void) { return omp_get_max_threads(); }

/* C = alpha op(A) op(B) + beta C, stored by columns, beta 0 or 1. op is A ('N') or its transpose
 * ('T'). The BLAS does it where there is one and its 32-bit arguments can hold the dimensions.
 */
typedef void tc_blas_gemm_d(const char *, const char *, const int *, const int *, const int *,
    const double *, const double *, const int *, const double *, const int *,
    const double *, double *, const int *);

/* The plain product: blocks of A are copied to the stack, columns of C are walked in order. */
static void tc_plain_gemm_d(int threads, char flip_a, char flip_b,
    int64_t m, int64_t n, int64_t k, double alpha, const double *a, int64_t lda,
    const double *b, int64_t ldb, double beta, double *c, int64_t ldc)
{
    enum { ROWS = 64, DEPTH = 64, COLUMNS = 16 };
    const int64_t row_a = flip_a == 'N' ? 1 : lda, column_a = flip_a == 'N' ? lda : 1;
    const int64_t row_b = flip_b == 'N' ? 1 : ldb, column_b = flip_b == 'N' ? ldb : 1;
    #pragma omp parallel for schedule(static) num_threads(threads) if ((double)m*n*k > 4e6)
    for (int64_t first = 0; first < n; first += COLUMNS) {
        const int64_t last = tc_min(first + COLUMNS, n);
        for (int64_t i0 = 0; i0 < m; i0 += ROWS) {
            const int64_t rows = tc_min(ROWS, m - i0);
            if (beta == 0) {
                for (int64_t j = first; j < last; ++j) {
                    memset(c + i0 + j*ldc, 0, (size_t)rows*sizeof(double));
                }
            }
            for (int64_t p0 = 0; p0 < k; p0 += DEPTH) {
                const int64_t depth = tc_min(DEPTH, k - p0);
                double block[DEPTH][ROWS];
                for (int64_t p = 0; p < depth; ++p) {
                    for (int64_t i = 0; i < rows; ++i) {
                        block[p][i] = alpha*a[(i0 + i)*row_a + (p0 + p)*column_a];
                    }
                }
                for (int64_t j = first; j < last; ++j) {
                    double *restrict target = c + i0 + j*ldc;
                    for (int64_t p = 0; p < depth; ++p) {
                        const double factor = b[(p0 + p)*row_b + j*column_b];
                        for (int64_t i = 0; i < rows; ++i) target[i] += block[p][i]*factor;
                    }
                }
            }
        }
    }
    (void)threads;
}

/* y[i] = alpha sum(p) a[i,p] x[p] + beta y[i], beta 0 or 1: a is read once, where it lies. The BLAS
 * would copy it into blocks first. Rows of a lie dense where column is 1, else its columns do; the
 * partial sums of a row are as many as a compiler puts into vectors without changing their order.
 */
static void tc_vector_d(int threads, int64_t m, int64_t k, double alpha,
    const double *a, int64_t row, int64_t column, const double *x, int64_t step_x,
    double beta, double *y, int64_t step_y)
{
    enum { PART = 256, SUMS = 16 };
    #pragma omp parallel for schedule(static) num_threads(threads) if ((double)m*k > TC_PRODUCT_POINTS)
    for (int64_t first = 0; first < m; first += PART) {
        const int64_t rows = tc_min(PART, m - first);
        double sum[PART] = {0};
        if (column == 1) {
            for (int64_t i = 0; i < rows; ++i) {
                const double *line = a + (first + i)*row;
                double part[SUMS] = {0};
                int64_t p = 0;
                if (step_x == 1) {
                    for (; p + SUMS <= k; p += SUMS) {
                        for (int n = 0; n < SUMS; ++n) part[n] += line[p + n]*x[p + n];
                    }
                }
                for (; p < k; ++p) sum[i] += line[p]*x[p*step_x];
                for (int n = 0; n < SUMS; ++n) sum[i] += part[n];
            }
        } else {
            for (int64_t p = 0; p < k; ++p) {
                const double *line = a + first*row + p*column;
                const double factor = x[p*step_x];
                for (int64_t i = 0; i < rows; ++i) sum[i] += line[i*row]*factor;
            }
        }
        for (int64_t i = 0; i < rows; ++i) {
            double *const target = y + (first + i)*step_y;
            *target = alpha*sum[i] + (beta == 0 ? 0 : *target);
        }
    }
    (void)threads;
}

static void tc_gemm_d(void *const *table, int threads, char flip_a, char flip_b,
    int64_t m, int64_t n, int64_t k, double alpha, const double *a, int64_t lda,
    const double *b, int64_t ldb, double beta, double *c, int64_t ldc)
{
    tc_blas_gemm_d *const blas = (tc_blas_gemm_d *)table[1];
    if (m == 0 || n == 0 || (k == 0 && beta != 0)) return;
    lda = lda > 1 ? lda : 1;
    ldb = ldb > 1 ? ldb : 1;
    ldc = ldc > 1 ? ldc : 1;
    if (n == 1) {
        tc_vector_d(threads, m, k, alpha, a, flip_a == 'N' ? 1 : lda, flip_a == 'N' ? lda : 1,
            b, flip_b == 'N' ? 1 : ldb, beta, c, 1);
        return;
    }
    if (m == 1) {
        tc_vector_d(threads, n, k, alpha, b, flip_b == 'N' ? ldb : 1, flip_b == 'N' ? 1 : ldb,
            a, flip_a == 'N' ? lda : 1, beta, c, ldc);
        return;
    }
    const int64_t most = INT32_MAX;
    if (!blas || k == 0 || m > most || n > most || k > most || lda > most || ldb > most
        || ldc > most) {
        tc_plain_gemm_d(threads, flip_a, flip_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
        return;
    }
    /* Where the BLAS was told to use one thread, each of ours computes a part of C. */
    if (!table[TC_BLAS_SERIAL] || (double)m*n*k < TC_PRODUCT_POINTS) threads = 1;
    int strips = 1;
    for (int rows = 2; rows <= threads; ++rows) {
        if (threads%rows == 0 && m/rows + n/(threads/rows) < m/strips + n/(threads/strips)) {
            strips = rows;
        }
    }
    const int64_t high = (m + strips - 1)/strips, parts = threads/strips;
    const int64_t wide = (n + parts - 1)/parts;
    const int k_ = (int)k, lda_ = (int)lda, ldb_ = (int)ldb, ldc_ = (int)ldc;
    #pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int part = 0; part < threads; ++part) {
        const int64_t i = part%strips*high, j = part/strips*wide;
        const int m_ = (int)tc_min(high, m - i), n_ = (int)tc_min(wide, n - j);
        if (m_ <= 0 || n_ <= 0) continue;
        blas(&flip_a, &flip_b, &m_, &n_, &k_, &alpha, a + (flip_a == 'N' ? i : i*lda), &lda_,
            b + (flip_b == 'N' ? j*ldb : j), &ldb_, &beta, c + i + j*ldc, &ldc_);
    }
}

/* kernel orbit_0
 *   by hand
 * inputs  e, x[o,v], d[v,v], n
 * outputs e, n
 * private w[3,3]
 * flops   2 o v^2 + 2 v^2
 * bytes   8 o v + 8 v^2 + 16 read, 16 written
 */
void tcgen_orbit_0(
    void *const *tc_buffers, const int64_t *tc_extents, const int64_t *tc_host,
    const int64_t *tc_strides, int tc_threads, void *const *tc_blas)
{
    const int64_t N_o = tc_extents[0];
    const int64_t N_v = tc_extents[1];
    double *restrict e = tc_buffers[2];
    const double *restrict x = tc_buffers[0];
    const double *restrict d = tc_buffers[1];
    double *restrict n = tc_buffers[3];
    (void)tc_buffers, (void)tc_extents, (void)tc_host, (void)tc_strides;
    (void)tc_threads, (void)tc_blas;

    tc_zero(e, 1*(int64_t)sizeof(double), tc_threads);
    {
        double tc_total_e = e[0];
        double tc_total_n = n[0];
        double tc_parts_e[tc_threads*(64/(int)sizeof(double))];
        double tc_parts_n[tc_threads*(64/(int)sizeof(double))];
        for (int tc_n = 0; tc_n < tc_threads; ++tc_n) { tc_parts_e[tc_n*(64/(int)sizeof(double))] = 0; tc_parts_n[tc_n*(64/(int)sizeof(double))] = 0; }
        #pragma omp parallel num_threads(tc_threads)
        {
            double tc_total_e = 0;
            double tc_total_n = 0;
            #pragma omp for collapse(2) schedule(static, 1) nowait
            for (int64_t a0 = 0; a0 < N_v; a0 += 3) {
                for (int64_t b0 = 0; b0 < N_v; b0 += 3) {
                    if (b0 > a0) continue;
                    const int64_t tc_skip = omp_get_thread_num()*tc_strides[0];
                    double *restrict w = (void *)((char *)tc_buffers[4] + tc_skip);
                    tc_gemm_d(tc_blas, 1, 'N', 'T',
                        (tc_min(b0 + 3, N_v) - b0), (tc_min(a0 + 3, N_v) - a0), N_o,
                        1.0, x + b0, N_v, x + a0, N_v,
                        0, w, 3);
                    {
                        double tc_sum = 0.0;
                        for (int64_t a = a0; a < tc_min(a0 + 3, N_v); ++a) {
                            #pragma omp simd reduction(+:tc_sum)
                            for (int64_t b = b0; b < tc_min(b0 + 3, N_v); ++b) {
                                tc_sum += (a0 == b0 ? 1 : 2)*(w[(a - a0)*3 + b - b0]*d[a*N_v + b]);
                            }
                        }
                        tc_total_e += 0.5*tc_sum;
                    }
                    {
                        double tc_sum = 0.0;
                        for (int64_t a = a0; a < tc_min(a0 + 3, N_v); ++a) {
                            #pragma omp simd reduction(+:tc_sum)
                            for (int64_t b = b0; b < tc_min(b0 + 3, N_v); ++b) {
                                tc_sum += w[(a - a0)*3 + b - b0];
                            }
                        }
                        tc_total_n += tc_sum;
                    }
                }
            }
            tc_parts_e[omp_get_thread_num()*(64/(int)sizeof(double))] = tc_total_e;
            tc_parts_n[omp_get_thread_num()*(64/(int)sizeof(double))] = tc_total_n;
        }
        for (int tc_n = 0; tc_n < tc_threads; ++tc_n) { tc_total_e += tc_parts_e[tc_n*(64/(int)sizeof(double))]; tc_total_n += tc_parts_n[tc_n*(64/(int)sizeof(double))]; }
        e[0] = tc_total_e;
        n[0] = tc_total_n;
    }
}

/* The volatile phase of the host program in one call. */
void tcgen_phase_volatile(void *const *tc_buffers, const int64_t *tc_extents,
    const int64_t *tc_strides, int tc_threads, void *const *tc_blas)
{
    tcgen_orbit_0(tc_buffers, tc_extents, NULL,
        tc_strides, tc_threads, tc_blas);
}

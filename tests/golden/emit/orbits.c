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

#ifndef TC_TARGET_H
#define TC_TARGET_H
/* The table of targets, printed by tcgen/emit/c/targets.py: a column for each target,
 * which TC_PICK takes. Targets, and where their numbers were measured:
 * 0: Sapphire Rapids and later (a Xeon with AVX-512 and AMX (family 6, model 207), virtual machine).
 * 1: other Intel, AVX-512 (a Xeon with AVX-512 and AMX (family 6, model 207), virtual machine; second-level cache of Skylake).
 * 2: Zen 4 (an EPYC of Zen 4, virtual machine).
 * 3: Zen 5 and later (an EPYC of Zen 5, virtual machine).
 * 4: Intel, AVX (a Xeon with AVX-512 and AMX (family 6, model 207), virtual machine, without AVX-512).
 * 5: Zen 4, AVX (an EPYC of Zen 4, virtual machine, without AVX-512).
 * 6: other Zen, AVX (an EPYC of Zen 5, virtual machine, without AVX-512).
 * 7: generic, AVX-512 (not measured).
 * 8: generic, AVX (not measured).
 * 9: AArch64 (not measured; tests run under QEMU).
 * 10: generic (not measured).
 */
#define TC_INTEL 1
#define TC_AMD 2
#ifdef TC_TARGET
#elif defined(__AVX512F__) && TC_CPU_VENDOR == TC_INTEL && TC_CPU_FAMILY == 6 && TC_CPU_MODEL >= 143
#define TC_TARGET 0
#elif defined(__AVX512F__) && TC_CPU_VENDOR == TC_INTEL
#define TC_TARGET 1
#elif defined(__AVX512F__) && TC_CPU_VENDOR == TC_AMD && TC_CPU_FAMILY == 25 && (TC_CPU_MODEL/16 == 1 || (TC_CPU_MODEL >= 96 && TC_CPU_MODEL < 176))
#define TC_TARGET 2
#elif defined(__AVX512F__) && TC_CPU_VENDOR == TC_AMD && TC_CPU_FAMILY >= 26
#define TC_TARGET 3
#elif defined(__AVX__) && !defined(__AVX512F__) && TC_CPU_VENDOR == TC_INTEL
#define TC_TARGET 4
#elif defined(__AVX__) && !defined(__AVX512F__) && TC_CPU_VENDOR == TC_AMD && TC_CPU_FAMILY == 25 && (TC_CPU_MODEL/16 == 1 || (TC_CPU_MODEL >= 96 && TC_CPU_MODEL < 176))
#define TC_TARGET 5
#elif defined(__AVX__) && !defined(__AVX512F__) && TC_CPU_VENDOR == TC_AMD
#define TC_TARGET 6
#elif defined(__AVX512F__)
#define TC_TARGET 7
#elif defined(__AVX__)
#define TC_TARGET 8
#elif defined(__aarch64__)
#define TC_TARGET 9
#else
#define TC_TARGET 10
#endif
#define TC_PICK(...) TC_PICK_ROW(TC_TARGET, __VA_ARGS__)
#define TC_PICK_ROW(row, ...) TC_PICK_COLUMN(row, __VA_ARGS__)
#define TC_PICK_COLUMN(row, ...) TC_PICK_##row(__VA_ARGS__)
#define TC_PICK_0(t0, t1, t2, t3, t4, t5, t6, t7, t8, t9, t10) t0
#define TC_PICK_1(t0, t1, t2, t3, t4, t5, t6, t7, t8, t9, t10) t1
#define TC_PICK_2(t0, t1, t2, t3, t4, t5, t6, t7, t8, t9, t10) t2
#define TC_PICK_3(t0, t1, t2, t3, t4, t5, t6, t7, t8, t9, t10) t3
#define TC_PICK_4(t0, t1, t2, t3, t4, t5, t6, t7, t8, t9, t10) t4
#define TC_PICK_5(t0, t1, t2, t3, t4, t5, t6, t7, t8, t9, t10) t5
#define TC_PICK_6(t0, t1, t2, t3, t4, t5, t6, t7, t8, t9, t10) t6
#define TC_PICK_7(t0, t1, t2, t3, t4, t5, t6, t7, t8, t9, t10) t7
#define TC_PICK_8(t0, t1, t2, t3, t4, t5, t6, t7, t8, t9, t10) t8
#define TC_PICK_9(t0, t1, t2, t3, t4, t5, t6, t7, t8, t9, t10) t9
#define TC_PICK_10(t0, t1, t2, t3, t4, t5, t6, t7, t8, t9, t10) t10
#define TC_PREFETCH_GEMV_LEVEL TC_PICK(3, 3, 2, 3, 3, 2, 3, 3, 3, 3, 3)  /* the same for the matrix of a matrix-vector product */
#endif

/* A matrix times one vector, or a few. */
typedef void tc_blas_gemv_d(const char *, const int *, const int *, const double *,
    const double *, const int *, const double *, const int *, const double *, double *,
    const int *);

/* Elements of a row beside which it costs the BLAS more to begin its sum than to add it up. */
#define TC_SHORT_d (1 ? 64 : 16)

#if 1
typedef double tc_quad_d __attribute__((
    vector_size(4*sizeof(double)), aligned(sizeof(double)), may_alias));
typedef double tc_wide_d __attribute__((vector_size(32), aligned(sizeof(double)), may_alias));

/* Eight lines of memory that are read together, of different pages: it delivers more than of one at a time,
 * and more again where what comes next is fetched, to the first level.
 */
enum {
    TC_LINES_d = 8,
    TC_LINE_d = 64/sizeof(double),
    TC_NEXT_d = 2048/sizeof(double),
    TC_PAGE_d = 4096/sizeof(double),
};

/* sum[i] += sum(p) a[i*row + p] x[p] of as many long rows. */
static inline void tc_long_dots_d(
    int64_t k, const double *a, int64_t row, const double *x, double *sum)
{
    enum { LANES = TC_LINE_d/2 };
    tc_wide_d part[TC_LINES_d];
    int64_t p = 0;
    for (int n = 0; n < TC_LINES_d; ++n) part[n] = (tc_wide_d){0};
    for (; p + TC_LINE_d <= k; p += TC_LINE_d) {
        const tc_wide_d f0 = *(const tc_wide_d *)(x + p);
        const tc_wide_d f1 = *(const tc_wide_d *)(x + p + LANES);
        _Pragma("GCC unroll 8")
        for (int n = 0; n < TC_LINES_d; ++n) {
            const double *const line = a + n*row + p;
            __builtin_prefetch(line + TC_NEXT_d, 0, TC_PREFETCH_GEMV_LEVEL);
            part[n] += *(const tc_wide_d *)line*f0;
            part[n] += *(const tc_wide_d *)(line + LANES)*f1;
        }
    }
    for (int n = 0; n < TC_LINES_d; ++n) {
        for (int64_t q = p; q < k; ++q) sum[n] += a[n*row + q]*x[q];
        for (int lane = 0; lane < LANES; ++lane) sum[n] += part[n][lane];
    }
}

/* sum[i] += sum(p) a[p*column + i] f[p] of as many columns. */
static inline void tc_add_lines_d(
    int64_t rows, const double *a, int64_t column, const double *f, double *restrict sum)
{
    enum { LANES = TC_LINE_d/2 };
    int64_t i = 0;
    for (; i + TC_LINE_d <= rows; i += TC_LINE_d) {
        tc_wide_d s0 = *(tc_wide_d *)(sum + i), s1 = *(tc_wide_d *)(sum + i + LANES);
        _Pragma("GCC unroll 8")
        for (int n = 0; n < TC_LINES_d; ++n) {
            const double *const line = a + n*column + i;
            __builtin_prefetch(line + TC_NEXT_d, 0, TC_PREFETCH_GEMV_LEVEL);
            s0 += *(const tc_wide_d *)line*f[n];
            s1 += *(const tc_wide_d *)(line + LANES)*f[n];
        }
        *(tc_wide_d *)(sum + i) = s0;
        *(tc_wide_d *)(sum + i + LANES) = s1;
    }
    for (; i < rows; ++i) {
        for (int n = 0; n < TC_LINES_d; ++n) sum[i] += a[n*column + i]*f[n];
    }
}
#endif

/* sum(p) a[p] x[p*step_x]: the partial sums are as many as a compiler puts into vectors without changing
 * their order.
 */
static inline double tc_dot_d(int64_t k, const double *a, const double *x, int64_t step_x)
{
    enum { SUMS = 16 };
    double part[SUMS] = {0}, sum = 0;
    int64_t p = 0;
    for (; step_x == 1 && p + SUMS <= k; p += SUMS) {
        for (int n = 0; n < SUMS; ++n) part[n] += a[p + n]*x[p + n];
    }
    for (int n = 0; n < SUMS/2; ++n) part[n] += part[n + SUMS/2];
    for (int n = 0; n < SUMS/2; ++n) sum += part[n];
    for (; p < k; ++p) sum += a[p]*x[p*step_x];
    return sum;
}

/* sum[i] = sum(p) a[i*row + p] x[p*step_x] of some rows, each of which lies dense. Short ones take turns,
 * four at a time, so that none waits for its own last sum.
 */
static inline void tc_dots_d(int64_t rows, int64_t k, const double *a, int64_t row,
    const double *x, int64_t step_x, double *sum)
{
    int64_t i = 0;
    for (; k < TC_SHORT_d && i + 4 <= rows; i += 4) {
        const double *const l0 = a + i*row, *const l1 = l0 + row;
        const double *const l2 = l1 + row, *const l3 = l2 + row;
        double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
        int64_t p = 0;
#if 1
        tc_quad_d v0 = {0}, v1 = {0}, v2 = {0}, v3 = {0};
        for (; step_x == 1 && p + 4 <= k; p += 4) {
            const tc_quad_d factor = *(const tc_quad_d *)(x + p);
            v0 += *(const tc_quad_d *)(l0 + p)*factor;
            v1 += *(const tc_quad_d *)(l1 + p)*factor;
            v2 += *(const tc_quad_d *)(l2 + p)*factor;
            v3 += *(const tc_quad_d *)(l3 + p)*factor;
        }
        s0 = (v0[0] + v0[1]) + (v0[2] + v0[3]), s1 = (v1[0] + v1[1]) + (v1[2] + v1[3]);
        s2 = (v2[0] + v2[1]) + (v2[2] + v2[3]), s3 = (v3[0] + v3[1]) + (v3[2] + v3[3]);
#endif
        for (; p < k; ++p) {
            const double factor = x[p*step_x];
            s0 += l0[p]*factor, s1 += l1[p]*factor, s2 += l2[p]*factor, s3 += l3[p]*factor;
        }
        sum[i] = s0, sum[i + 1] = s1, sum[i + 2] = s2, sum[i + 3] = s3;
    }
    for (; i < rows; ++i) sum[i] = tc_dot_d(k, a + i*row, x, step_x);
}

/* sum[i] = sum(p) a[i + p*column] x[p*step_x] of some rows, whose columns lie dense: several are added
 * at once, so that the sums are read and written few times.
 */
static inline void tc_lines_d(int64_t rows, int64_t k, const double *a, int64_t column,
    const double *x, int64_t step_x, double *restrict sum)
{
    int64_t p = 0;
    memset(sum, 0, (size_t)rows*sizeof(double));
#if 1
    for (; p + TC_LINES_d <= k; p += TC_LINES_d) {
        double f[TC_LINES_d];
        for (int n = 0; n < TC_LINES_d; ++n) f[n] = x[(p + n)*step_x];
        tc_add_lines_d(rows, a + p*column, column, f, sum);
    }
#endif
    for (; p < k; ++p) {
        const double *const line = a + p*column, factor = x[p*step_x];
        for (int64_t i = 0; i < rows; ++i) sum[i] += line[i]*factor;
    }
}

/* sum[i] = sum(p) a[i,p] x[p] of some rows, by the BLAS where there is one: its product of a matrix
 * and a vector reads a once, as these loops do, but it is slow where dense rows are short, and reads long
 * ones from few pages at a time.
 */
static void tc_sums_d(tc_blas_gemv_d *blas, int64_t rows, int64_t k, const double *a,
    int64_t row, int64_t column, const double *x, int64_t step_x, double *sum)
{
    const int64_t most = INT32_MAX, dense = column == 1 ? k : rows;
    const int64_t apart = tc_max(column == 1 ? row : column, tc_max(dense, 1));
#if 1
    if (dense >= TC_PAGE_d && column != 1) {
        tc_lines_d(rows, k, a, column, x, step_x, sum);
        return;
    }
    if (dense >= TC_PAGE_d && step_x == 1) {
        const int64_t whole = rows/TC_LINES_d*TC_LINES_d;
        memset(sum, 0, (size_t)whole*sizeof(double));
        for (int64_t p = 0; p < k; p += TC_ROWS) {  /* x from a near cache */
            for (int64_t i = 0; i < whole; i += TC_LINES_d) {
                tc_long_dots_d(tc_min(TC_ROWS, k - p), a + i*row + p, row, x + p, sum + i);
            }
        }
        if (whole == rows) return;
        a += whole*row;
        sum += whole;
        rows -= whole;
    }
#endif
    if (!blas || k > most || apart > most || step_x > most || k < (column == 1 ? TC_SHORT_d : 1)) {
        if (column == 1) tc_dots_d(rows, k, a, row, x, step_x, sum);
        else tc_lines_d(rows, k, a, column, x, step_x, sum);
        return;
    }
    const double one = 1;
    const int high = (int)dense, wide = (int)(column == 1 ? rows : k), lda = (int)apart;
    const int step = (int)step_x, next = 1;
    memset(sum, 0, (size_t)rows*sizeof(double));
    blas(column == 1 ? "T" : "N", &high, &wide, &one, a, &lda, x, &step, &one, sum, &next);
}

/* y[i] = alpha sum(p) a[i,p] x[p] + beta y[i] of some rows, beta 0 or 1. */
static void tc_vector_part_d(tc_blas_gemv_d *blas, int64_t rows, int64_t k, double alpha,
    const double *a, int64_t row, int64_t column, const double *x, int64_t step_x,
    double beta, double *y, int64_t step_y)
{
    double sum[TC_ROWS];
    for (int64_t first = 0; first < rows; first += TC_ROWS) {
        const int64_t part = tc_min(TC_ROWS, rows - first);
        tc_sums_d(blas, part, k, a + first*row, row, column, x, step_x, sum);
        for (int64_t i = 0; i < part; ++i) {
            double *const target = y + (first + i)*step_y;
            *target = alpha*sum[i] + (beta == 0 ? 0 : *target);
        }
    }
}

/* The same of a whole matrix, which is read once, where it lies. Rows of a lie dense where column is 1,
 * else its columns do. Threads share the rows; few of them are summed piece by piece, and the pieces added
 * in the order of the threads. One thread begins no team of threads, which takes as long as a short sum.
 */
static void tc_vector_d(tc_blas_gemv_d *blas, int threads, int64_t m, int64_t k,
    double alpha, const double *a, int64_t row, int64_t column, const double *x, int64_t step_x,
    double beta, double *y, int64_t step_y)
{
    enum { FEW = 64, LEAST = 16 };
    if (threads == 1 || (double)m*k <= TC_PRODUCT_POINTS) {
        tc_vector_part_d(blas, m, k, alpha, a, row, column, x, step_x, beta, y, step_y);
        return;
    }
    if (m < LEAST*threads && m <= FEW) {
        double pieces[threads][FEW];
        const int64_t length = (k + threads - 1)/threads;
        #pragma omp parallel for schedule(static) num_threads(threads)
        for (int n = 0; n < threads; ++n) {
            const int64_t first = tc_min(n*length, k);
            tc_sums_d(blas, m, tc_min(length, k - first), a + first*column, row, column,
                x + first*step_x, step_x, pieces[n]);
        }
        for (int64_t i = 0; i < m; ++i) {
            double sum = 0;
            for (int n = 0; n < threads; ++n) sum += pieces[n][i];
            y[i*step_y] = alpha*sum + (beta == 0 ? 0 : y[i*step_y]);
        }
        return;
    }
    const int64_t rows = tc_max(LEAST, tc_min(TC_ROWS, (m + threads - 1)/threads));
    #pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t first = 0; first < m; first += rows) {
        tc_vector_part_d(blas, tc_min(rows, m - first), k, alpha, a + first*row, row, column, x,
            step_x, beta, y + first*step_y, step_y);
    }
}

#if 1
/* A few vectors at once, each ``apart`` from the one before: pieces of lines that the first one has read are in
 * the first-level cache for the others.
 */
enum { TC_FEW_d = 7, TC_PIECE_d = 2048/sizeof(double), TC_HIGH_d = TC_ROWS/8 };

/* y[v][i] = alpha sum(p) a[i,p] x[v][p] + beta y[v][i] of at most TC_HIGH rows, beta 0 or 1. */
static void tc_few_part_d(int64_t rows, int64_t k, int vectors, double alpha, const double *a,
    int64_t row, int64_t column, const double *x, int64_t step_x, int64_t apart_x, double beta,
    double *y, int64_t step_y, int64_t apart_y)
{
    double sum[TC_FEW_d][TC_HIGH_d], part[TC_FEW_d][TC_HIGH_d];
    const int64_t across = column == 1 ? rows : k, whole = across/TC_LINES_d*TC_LINES_d;
    memset(sum, 0, sizeof(sum));
    for (int64_t p0 = 0; p0 < k; p0 += TC_HIGH_d) {
        const int64_t depth = tc_min(TC_HIGH_d, k - p0);
        for (int v = 0; v < vectors; ++v) {
            for (int64_t p = 0; p < depth; ++p) part[v][p] = x[v*apart_x + (p0 + p)*step_x];
        }
        for (int64_t i = 0; column == 1 && i < whole; i += TC_LINES_d) {
            for (int64_t p = 0; p < depth; p += TC_PIECE_d) {
                const int64_t length = tc_min(TC_PIECE_d, depth - p);
                const double *const from = a + i*row + p0 + p;
                for (int v = 0; v < vectors; ++v) {
                    tc_long_dots_d(length, from, row, part[v] + p, sum[v] + i);
                }
            }
        }
        for (int64_t i = whole; column == 1 && i < rows; ++i) {
            for (int v = 0; v < vectors; ++v) sum[v][i] += tc_dot_d(depth, a + i*row + p0, part[v], 1);
        }
        for (int64_t p = p0; column != 1 && p < tc_min(whole, p0 + depth); p += TC_LINES_d) {
            for (int64_t i = 0; i < rows; i += TC_PIECE_d) {
                const int64_t length = tc_min(TC_PIECE_d, rows - i);
                const double *const from = a + p*column + i;
                for (int v = 0; v < vectors; ++v) {
                    tc_add_lines_d(length, from, column, part[v] + (p - p0), sum[v] + i);
                }
            }
        }
    }
    for (int64_t p = whole; column != 1 && p < k; ++p) {
        for (int v = 0; v < vectors; ++v) {
            const double factor = x[v*apart_x + p*step_x];
            for (int64_t i = 0; i < rows; ++i) sum[v][i] += a[p*column + i]*factor;
        }
    }
    for (int v = 0; v < vectors; ++v) {
        for (int64_t i = 0; i < rows; ++i) {
            double *const target = y + v*apart_y + i*step_y;
            *target = alpha*sum[v][i] + (beta == 0 ? 0 : *target);
        }
    }
}

/* The same of a whole matrix, if it is one of long lines that no near cache holds: else 0, and nothing is done. */
static int tc_few_d(int threads, int64_t m, int64_t k, int64_t vectors, double alpha, const double *a,
    int64_t row, int64_t column, const double *x, int64_t step_x, int64_t apart_x, double beta,
    double *y, int64_t step_y, int64_t apart_y)
{
    enum { LEAST = 16, LARGE = 1 << 18 };
    const int64_t dense = column == 1 ? k : m, across = column == 1 ? m : k;
    if (vectors > TC_FEW_d || dense < TC_PAGE_d || across < TC_LINES_d || (double)m*k < LARGE) return 0;
    if (threads > 1 && m < LEAST*threads) return 0;
    const int64_t rows = tc_max(LEAST, tc_min(TC_HIGH_d, (m + threads - 1)/threads));
    #pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t first = 0; first < m; first += rows) {
        tc_few_part_d(tc_min(rows, m - first), k, (int)vectors, alpha, a + first*row, row, column, x,
            step_x, apart_x, beta, y + first*step_y, step_y, apart_y);
    }
    return 1;
}
#endif

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

static void tc_gemm_d(void *const *table, int threads, char flip_a, char flip_b,
    int64_t m, int64_t n, int64_t k, double alpha, const double *a, int64_t lda,
    const double *b, int64_t ldb, double beta, double *c, int64_t ldc)
{
    tc_blas_gemm_d *const blas = (tc_blas_gemm_d *)table[1];
    tc_blas_gemv_d *const lines = (tc_blas_gemv_d *)table[4];
    if (m == 0 || n == 0 || (k == 0 && beta != 0)) return;
    lda = lda > 1 ? lda : 1;
    ldb = ldb > 1 ? ldb : 1;
    ldc = ldc > 1 ? ldc : 1;
    if (n == 1) {
        tc_vector_d(lines, threads, m, k, alpha, a, flip_a == 'N' ? 1 : lda, flip_a == 'N' ? lda : 1,
            b, flip_b == 'N' ? 1 : ldb, beta, c, 1);
        return;
    }
    if (m == 1) {
        tc_vector_d(lines, threads, n, k, alpha, b, flip_b == 'N' ? ldb : 1, flip_b == 'N' ? 1 : ldb,
            a, flip_a == 'N' ? lda : 1, beta, c, ldc);
        return;
    }
#if 1
    if (tc_few_d(threads, m, k, n, alpha, a, flip_a == 'N' ? 1 : lda, flip_a == 'N' ? lda : 1, b,
            flip_b == 'N' ? 1 : ldb, flip_b == 'N' ? ldb : 1, beta, c, 1, ldc)) return;
    if (tc_few_d(threads, n, k, m, alpha, b, flip_b == 'N' ? ldb : 1, flip_b == 'N' ? 1 : ldb, a,
            flip_a == 'N' ? lda : 1, flip_a == 'N' ? 1 : lda, beta, c, ldc, 1)) return;
#endif
    const int64_t most = INT32_MAX;
    if (!blas || k == 0 || m > most || n > most || k > most || lda > most || ldb > most
        || ldc > most) {
        tc_plain_gemm_d(threads, flip_a, flip_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
        return;
    }
    const int m_ = (int)m, n_ = (int)n, k_ = (int)k, lda_ = (int)lda, ldb_ = (int)ldb, ldc_ = (int)ldc;
    /* Where the BLAS was told to use one thread, each of ours computes a part of C. */
    if (threads == 1 || !table[TC_BLAS_SERIAL] || (double)m*n*k < TC_PRODUCT_POINTS) {
        blas(&flip_a, &flip_b, &m_, &n_, &k_, &alpha, a, &lda_, b, &ldb_, &beta, c, &ldc_);
        return;
    }
    int strips = 1;
    for (int rows = 2; rows <= threads; ++rows) {
        if (threads%rows == 0 && m/rows + n/(threads/rows) < m/strips + n/(threads/strips)) {
            strips = rows;
        }
    }
    const int64_t high = (m + strips - 1)/strips, parts = threads/strips;
    const int64_t wide = (n + parts - 1)/parts;
    #pragma omp parallel for schedule(static) num_threads(threads)
    for (int part = 0; part < threads; ++part) {
        const int64_t i = part%strips*high, j = part/strips*wide;
        const int rows = (int)tc_min(high, m - i), columns = (int)tc_min(wide, n - j);
        if (rows <= 0 || columns <= 0) continue;
        blas(&flip_a, &flip_b, &rows, &columns, &k_, &alpha, a + (flip_a == 'N' ? i : i*lda), &lda_,
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

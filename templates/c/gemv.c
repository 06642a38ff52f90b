/* A matrix times one vector, or a few. */
typedef void tc_blas_gemv_$kind(const char *, const int *, const int *, const $scalar *,
    const $scalar *, const int *, const $scalar *, const int *, const $scalar *, $scalar *,
    const int *);

/* Elements of a row beside which it costs the BLAS more to begin its sum than to add it up. */
#define TC_SHORT_$kind ($lanes ? 64 : 16)

#if $lanes
typedef $scalar tc_quad_$kind __attribute__((
    vector_size(4*sizeof($scalar)), aligned(sizeof($scalar)), may_alias));
typedef $scalar tc_wide_$kind __attribute__((vector_size(32), aligned(sizeof($scalar)), may_alias));

/* Eight lines of memory that are read together, of different pages: it delivers more than of one at a time,
 * and more again where what comes next is fetched, to the first level.
 */
enum {
    TC_LINES_$kind = 8,
    TC_LINE_$kind = 64/sizeof($scalar),
    TC_NEXT_$kind = 2048/sizeof($scalar),
    TC_PAGE_$kind = 4096/sizeof($scalar),
};

/* sum[i] += sum(p) a[i*row + p] x[p] of as many long rows. */
static inline void tc_long_dots_$kind(
    int64_t k, const $scalar *a, int64_t row, const $scalar *x, $scalar *sum)
{
    enum { LANES = TC_LINE_$kind/2 };
    tc_wide_$kind part[TC_LINES_$kind];
    int64_t p = 0;
    for (int n = 0; n < TC_LINES_$kind; ++n) part[n] = (tc_wide_$kind){0};
    for (; p + TC_LINE_$kind <= k; p += TC_LINE_$kind) {
        const tc_wide_$kind f0 = *(const tc_wide_$kind *)(x + p);
        const tc_wide_$kind f1 = *(const tc_wide_$kind *)(x + p + LANES);
        _Pragma("GCC unroll 8")
        for (int n = 0; n < TC_LINES_$kind; ++n) {
            const $scalar *const line = a + n*row + p;
            __builtin_prefetch(line + TC_NEXT_$kind, 0, TC_PREFETCH_GEMV_LEVEL);
            part[n] += *(const tc_wide_$kind *)line*f0;
            part[n] += *(const tc_wide_$kind *)(line + LANES)*f1;
        }
    }
    for (int n = 0; n < TC_LINES_$kind; ++n) {
        for (int64_t q = p; q < k; ++q) sum[n] += a[n*row + q]*x[q];
        for (int lane = 0; lane < LANES; ++lane) sum[n] += part[n][lane];
    }
}

/* sum[i] += sum(p) a[p*column + i] f[p] of as many columns. */
static inline void tc_add_lines_$kind(
    int64_t rows, const $scalar *a, int64_t column, const $scalar *f, $scalar *restrict sum)
{
    enum { LANES = TC_LINE_$kind/2 };
    int64_t i = 0;
    for (; i + TC_LINE_$kind <= rows; i += TC_LINE_$kind) {
        tc_wide_$kind s0 = *(tc_wide_$kind *)(sum + i), s1 = *(tc_wide_$kind *)(sum + i + LANES);
        _Pragma("GCC unroll 8")
        for (int n = 0; n < TC_LINES_$kind; ++n) {
            const $scalar *const line = a + n*column + i;
            __builtin_prefetch(line + TC_NEXT_$kind, 0, TC_PREFETCH_GEMV_LEVEL);
            s0 += *(const tc_wide_$kind *)line*f[n];
            s1 += *(const tc_wide_$kind *)(line + LANES)*f[n];
        }
        *(tc_wide_$kind *)(sum + i) = s0;
        *(tc_wide_$kind *)(sum + i + LANES) = s1;
    }
    for (; i < rows; ++i) {
        for (int n = 0; n < TC_LINES_$kind; ++n) sum[i] += a[n*column + i]*f[n];
    }
}
#endif

/* sum(p) a[p] x[p*step_x]: the partial sums are as many as a compiler puts into vectors without changing
 * their order.
 */
static inline $scalar tc_dot_$kind(int64_t k, const $scalar *a, const $scalar *x, int64_t step_x)
{
    enum { SUMS = 16 };
    $scalar part[SUMS] = {0}, sum = 0;
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
static inline void tc_dots_$kind(int64_t rows, int64_t k, const $scalar *a, int64_t row,
    const $scalar *x, int64_t step_x, $scalar *sum)
{
    int64_t i = 0;
    for (; k < TC_SHORT_$kind && i + 4 <= rows; i += 4) {
        const $scalar *const l0 = a + i*row, *const l1 = l0 + row;
        const $scalar *const l2 = l1 + row, *const l3 = l2 + row;
        $scalar s0 = 0, s1 = 0, s2 = 0, s3 = 0;
        int64_t p = 0;
#if $lanes
        tc_quad_$kind v0 = {0}, v1 = {0}, v2 = {0}, v3 = {0};
        for (; step_x == 1 && p + 4 <= k; p += 4) {
            const tc_quad_$kind factor = *(const tc_quad_$kind *)(x + p);
            v0 += *(const tc_quad_$kind *)(l0 + p)*factor;
            v1 += *(const tc_quad_$kind *)(l1 + p)*factor;
            v2 += *(const tc_quad_$kind *)(l2 + p)*factor;
            v3 += *(const tc_quad_$kind *)(l3 + p)*factor;
        }
        s0 = (v0[0] + v0[1]) + (v0[2] + v0[3]), s1 = (v1[0] + v1[1]) + (v1[2] + v1[3]);
        s2 = (v2[0] + v2[1]) + (v2[2] + v2[3]), s3 = (v3[0] + v3[1]) + (v3[2] + v3[3]);
#endif
        for (; p < k; ++p) {
            const $scalar factor = x[p*step_x];
            s0 += l0[p]*factor, s1 += l1[p]*factor, s2 += l2[p]*factor, s3 += l3[p]*factor;
        }
        sum[i] = s0, sum[i + 1] = s1, sum[i + 2] = s2, sum[i + 3] = s3;
    }
    for (; i < rows; ++i) sum[i] = tc_dot_$kind(k, a + i*row, x, step_x);
}

/* sum[i] = sum(p) a[i + p*column] x[p*step_x] of some rows, whose columns lie dense: several are added
 * at once, so that the sums are read and written few times.
 */
static inline void tc_lines_$kind(int64_t rows, int64_t k, const $scalar *a, int64_t column,
    const $scalar *x, int64_t step_x, $scalar *restrict sum)
{
    int64_t p = 0;
    memset(sum, 0, (size_t)rows*sizeof($scalar));
#if $lanes
    for (; p + TC_LINES_$kind <= k; p += TC_LINES_$kind) {
        $scalar f[TC_LINES_$kind];
        for (int n = 0; n < TC_LINES_$kind; ++n) f[n] = x[(p + n)*step_x];
        tc_add_lines_$kind(rows, a + p*column, column, f, sum);
    }
#endif
    for (; p < k; ++p) {
        const $scalar *const line = a + p*column, factor = x[p*step_x];
        #pragma omp simd
        for (int64_t i = 0; i < rows; ++i) sum[i] += line[i]*factor;
    }
}

/* sum[i] = sum(p) a[i,p] x[p] of some rows, by the BLAS where there is one: its product of a matrix
 * and a vector reads a once, as these loops do, but it is slow where dense rows are short, and reads long
 * ones from few pages at a time.
 */
static void tc_sums_$kind(tc_blas_gemv_$kind *blas, int64_t rows, int64_t k, const $scalar *a,
    int64_t row, int64_t column, const $scalar *x, int64_t step_x, $scalar *sum)
{
    const int64_t dense = column == 1 ? k : rows, piece = tc_min(k, TC_BLAS_MOST);
#if $lanes
    if (dense >= TC_PAGE_$kind && column != 1) {
        tc_lines_$kind(rows, k, a, column, x, step_x, sum);
        return;
    }
    if (dense >= TC_PAGE_$kind && step_x == 1) {
        const int64_t whole = rows/TC_LINES_$kind*TC_LINES_$kind;
        memset(sum, 0, (size_t)whole*sizeof($scalar));
        for (int64_t p = 0; p < k; p += TC_ROWS) {  /* x from a near cache */
            for (int64_t i = 0; i < whole; i += TC_LINES_$kind) {
                tc_long_dots_$kind(tc_min(TC_ROWS, k - p), a + i*row + p, row, x + p, sum + i);
            }
        }
        if (whole == rows) return;
        a += whole*row;
        sum += whole;
        rows -= whole;
    }
#endif
    const int64_t lines = column == 1 ? rows : k, least = column == 1 ? piece : rows;
    const int64_t apart = tc_max(lines == 1 ? 1 : column == 1 ? row : column, tc_max(least, 1));
    if (!blas || apart > TC_BLAS_MOST || step_x > TC_BLAS_MOST || k < (column == 1 ? TC_SHORT_$kind : 1)) {
        if (column == 1) tc_dots_$kind(rows, k, a, row, x, step_x, sum);
        else tc_lines_$kind(rows, k, a, column, x, step_x, sum);
        return;
    }
    const $scalar one = 1;
    const int lda = (int)apart, step = (int)step_x, next = 1, all = (int)rows;
    memset(sum, 0, (size_t)rows*sizeof($scalar));
    for (int64_t p = 0; p < k; p += piece) {
        const int part = (int)tc_min(piece, k - p);
        blas(column == 1 ? "T" : "N", column == 1 ? &part : &all, column == 1 ? &all : &part, &one,
            a + p*column, &lda, x + p*step_x, &step, &one, sum, &next);
    }
}

/* y[i] = alpha sum(p) a[i,p] x[p] + beta y[i] of some rows, beta 0 or 1. */
static void tc_vector_part_$kind(tc_blas_gemv_$kind *blas, const volatile int *stop, int64_t rows, int64_t k, $scalar alpha,
    const $scalar *a, int64_t row, int64_t column, const $scalar *x, int64_t step_x,
    $scalar beta, $scalar *y, int64_t step_y)
{
    $scalar sum[TC_ROWS];
    for (int64_t first = 0; first < rows; first += TC_ROWS) {
        if (*stop) return;
        const int64_t part = tc_min(TC_ROWS, rows - first);
        tc_sums_$kind(blas, part, k, a + first*row, row, column, x, step_x, sum);
        for (int64_t i = 0; i < part; ++i) {
            $scalar *const target = y + (first + i)*step_y;
            *target = alpha*sum[i] + (beta == 0 ? 0 : *target);
        }
    }
}

/* The same of a whole matrix, which is read once, where it lies. Rows of a lie dense where column is 1,
 * else its columns do. Threads share the rows; few of them are summed piece by piece, and the pieces added
 * in the order of the threads. One thread begins no team of threads, which takes as long as a short sum.
 */
static void tc_vector_$kind(tc_blas_gemv_$kind *blas, const volatile int *stop, int threads, int64_t m, int64_t k,
    $scalar alpha, const $scalar *a, int64_t row, int64_t column, const $scalar *x, int64_t step_x,
    $scalar beta, $scalar *y, int64_t step_y)
{
    enum { FEW = 64, LEAST = 16 };
    if (threads == 1 || (double)m*k <= TC_PRODUCT_POINTS) {
        tc_vector_part_$kind(blas, stop, m, k, alpha, a, row, column, x, step_x, beta, y, step_y);
        return;
    }
    if (m < LEAST*threads && m <= FEW) {
        $scalar pieces[threads][FEW];
        const int64_t length = (k + threads - 1)/threads;
        #pragma omp parallel for schedule(static) num_threads(threads)
        for (int n = 0; n < threads; ++n) {
            const int64_t first = tc_min(n*length, k);
            tc_sums_$kind(blas, m, tc_min(length, k - first), a + first*column, row, column,
                x + first*step_x, step_x, pieces[n]);
        }
        for (int64_t i = 0; i < m; ++i) {
            $scalar sum = 0;
            for (int n = 0; n < threads; ++n) sum += pieces[n][i];
            y[i*step_y] = alpha*sum + (beta == 0 ? 0 : y[i*step_y]);
        }
        return;
    }
    const int64_t rows = tc_max(LEAST, tc_min(TC_ROWS, (m + threads - 1)/threads));
    #pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t first = 0; first < m; first += rows) {
        tc_vector_part_$kind(blas, stop, tc_min(rows, m - first), k, alpha, a + first*row, row, column, x,
            step_x, beta, y + first*step_y, step_y);
    }
}

#if $lanes
/* A few vectors at once, each ``apart`` from the one before: pieces of lines that the first one has read are in
 * the first-level cache for the others.
 */
enum { TC_FEW_$kind = 7, TC_PIECE_$kind = 2048/sizeof($scalar), TC_HIGH_$kind = TC_ROWS/8 };

/* y[v][i] = alpha sum(p) a[i,p] x[v][p] + beta y[v][i] of at most TC_HIGH rows, beta 0 or 1. */
static void tc_few_part_$kind(int64_t rows, int64_t k, int vectors, $scalar alpha, const $scalar *a,
    int64_t row, int64_t column, const $scalar *x, int64_t step_x, int64_t apart_x, $scalar beta,
    $scalar *y, int64_t step_y, int64_t apart_y)
{
    $scalar sum[TC_FEW_$kind][TC_HIGH_$kind], part[TC_FEW_$kind][TC_HIGH_$kind];
    const int64_t across = column == 1 ? rows : k, whole = across/TC_LINES_$kind*TC_LINES_$kind;
    memset(sum, 0, sizeof(sum));
    for (int64_t p0 = 0; p0 < k; p0 += TC_HIGH_$kind) {
        const int64_t depth = tc_min(TC_HIGH_$kind, k - p0);
        for (int v = 0; v < vectors; ++v) {
            for (int64_t p = 0; p < depth; ++p) part[v][p] = x[v*apart_x + (p0 + p)*step_x];
        }
        for (int64_t i = 0; column == 1 && i < whole; i += TC_LINES_$kind) {
            for (int64_t p = 0; p < depth; p += TC_PIECE_$kind) {
                const int64_t length = tc_min(TC_PIECE_$kind, depth - p);
                const $scalar *const from = a + i*row + p0 + p;
                for (int v = 0; v < vectors; ++v) {
                    tc_long_dots_$kind(length, from, row, part[v] + p, sum[v] + i);
                }
            }
        }
        for (int64_t i = whole; column == 1 && i < rows; ++i) {
            for (int v = 0; v < vectors; ++v) sum[v][i] += tc_dot_$kind(depth, a + i*row + p0, part[v], 1);
        }
        for (int64_t p = p0; column != 1 && p < tc_min(whole, p0 + depth); p += TC_LINES_$kind) {
            for (int64_t i = 0; i < rows; i += TC_PIECE_$kind) {
                const int64_t length = tc_min(TC_PIECE_$kind, rows - i);
                const $scalar *const from = a + p*column + i;
                for (int v = 0; v < vectors; ++v) {
                    tc_add_lines_$kind(length, from, column, part[v] + (p - p0), sum[v] + i);
                }
            }
        }
    }
    for (int64_t p = whole; column != 1 && p < k; ++p) {
        for (int v = 0; v < vectors; ++v) {
            const $scalar factor = x[v*apart_x + p*step_x];
            #pragma omp simd
            for (int64_t i = 0; i < rows; ++i) sum[v][i] += a[p*column + i]*factor;
        }
    }
    for (int v = 0; v < vectors; ++v) {
        for (int64_t i = 0; i < rows; ++i) {
            $scalar *const target = y + v*apart_y + i*step_y;
            *target = alpha*sum[v][i] + (beta == 0 ? 0 : *target);
        }
    }
}

/* The same of a whole matrix, if it is one of long lines that no near cache holds: else 0, and nothing is done. */
static int tc_few_$kind(const volatile int *stop, int threads, int64_t m, int64_t k, int64_t vectors, $scalar alpha, const $scalar *a,
    int64_t row, int64_t column, const $scalar *x, int64_t step_x, int64_t apart_x, $scalar beta,
    $scalar *y, int64_t step_y, int64_t apart_y)
{
    enum { LEAST = 16, LARGE = 1 << 18 };
    const int64_t dense = column == 1 ? k : m, across = column == 1 ? m : k;
    if (vectors > TC_FEW_$kind || dense < TC_PAGE_$kind || across < TC_LINES_$kind || (double)m*k < LARGE) return 0;
    if (threads > 1 && m < LEAST*threads) return 0;
    const int64_t rows = tc_max(LEAST, tc_min(TC_HIGH_$kind, (m + threads - 1)/threads));
    #pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t first = 0; first < m; first += rows) {
        if (*stop) continue;
        tc_few_part_$kind(tc_min(rows, m - first), k, (int)vectors, alpha, a + first*row, row, column, x,
            step_x, apart_x, beta, y + first*step_y, step_y, apart_y);
    }
    return 1;
}
#endif

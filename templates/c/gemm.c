/* C = alpha op(A) op(B) + beta C, stored by columns, beta 0 or 1. op is A ('N') or its transpose
 * ('T'). The BLAS does it where there is one. Its arguments have 32 bits: a longer sum is added up in pieces.
 */
typedef void tc_blas_gemm_$kind(const char *, const char *, const int *, const int *, const int *,
    const $scalar *, const $scalar *, const int *, const $scalar *, const int *,
    const $scalar *, $scalar *, const int *);

/* The plain product: blocks of A are copied to the stack, columns of C are walked in order. */
static void tc_plain_gemm_$kind(const volatile int *stop, int threads, char flip_a, char flip_b,
    int64_t m, int64_t n, int64_t k, $scalar alpha, const $scalar *a, int64_t lda,
    const $scalar *b, int64_t ldb, $scalar beta, $scalar *c, int64_t ldc)
{
    enum { ROWS = 64, DEPTH = 64, COLUMNS = 16 };
    const int64_t row_a = flip_a == 'N' ? 1 : lda, column_a = flip_a == 'N' ? lda : 1;
    const int64_t row_b = flip_b == 'N' ? 1 : ldb, column_b = flip_b == 'N' ? ldb : 1;
    #pragma omp parallel for schedule(static) num_threads(threads) if ((double)m*n*k > 4e6)
    for (int64_t first = 0; first < n; first += COLUMNS) {
        const int64_t last = tc_min(first + COLUMNS, n);
        for (int64_t i0 = 0; i0 < m; i0 += ROWS) {
            if (*stop) break;
            const int64_t rows = tc_min(ROWS, m - i0);
            if (beta == 0) {
                for (int64_t j = first; j < last; ++j) {
                    memset(c + i0 + j*ldc, 0, (size_t)rows*sizeof($scalar));
                }
            }
            for (int64_t p0 = 0; p0 < k; p0 += DEPTH) {
                const int64_t depth = tc_min(DEPTH, k - p0);
                $scalar block[DEPTH][ROWS];
                for (int64_t p = 0; p < depth; ++p) {
                    for (int64_t i = 0; i < rows; ++i) {
                        block[p][i] = alpha*a[(i0 + i)*row_a + (p0 + p)*column_a];
                    }
                }
                for (int64_t j = first; j < last; ++j) {
                    $scalar *restrict target = c + i0 + j*ldc;
                    for (int64_t p = 0; p < depth; ++p) {
                        const $scalar factor = b[(p0 + p)*row_b + j*column_b];
                        #pragma omp simd
                        for (int64_t i = 0; i < rows; ++i) target[i] += block[p][i]*factor;
                    }
                }
            }
        }
    }
    (void)threads;
}

/* The BLAS cannot be ended, so that a large product is given to it in pieces of TC_PIECE_POINTS for each thread. */
static void tc_pieces_$kind(tc_blas_gemm_$kind *blas, const volatile int *stop, double most, char flip_a, char flip_b,
    int64_t m, int64_t n, int64_t k, $scalar alpha, const $scalar *a, int64_t lda,
    const $scalar *b, int64_t ldb, $scalar beta, $scalar *c, int64_t ldc)
{
    if (*stop) return;
    if ((double)m*n*k <= most) {
        const int m_ = (int)m, n_ = (int)n, k_ = (int)k, lda_ = (int)lda, ldb_ = (int)ldb, ldc_ = (int)ldc;
        blas(&flip_a, &flip_b, &m_, &n_, &k_, &alpha, a, &lda_, b, &ldb_, &beta, c, &ldc_);
        return;
    }
    const int by_m = m >= n && m >= k, by_n = !by_m && n >= k, by_k = !by_m && !by_n;
    const int64_t i = by_m ? m/2 : 0, j = by_n ? n/2 : 0, p = by_k ? k/2 : 0;  /* where the second half begins */
    tc_pieces_$kind(blas, stop, most, flip_a, flip_b, by_m ? i : m, by_n ? j : n, by_k ? p : k, alpha, a, lda,
        b, ldb, beta, c, ldc);
    tc_pieces_$kind(blas, stop, most, flip_a, flip_b, m - i, n - j, k - p, alpha,
        a + (flip_a == 'N' ? i + p*lda : i*lda + p), lda, b + (flip_b == 'N' ? p + j*ldb : p*ldb + j), ldb,
        by_k ? 1 : beta, c + i + j*ldc, ldc);
}

$linkage void tc_gemm_$kind(void *const *table, int threads, char flip_a, char flip_b,
    int64_t m, int64_t n, int64_t k, $scalar alpha, const $scalar *a, int64_t lda,
    const $scalar *b, int64_t ldb, $scalar beta, $scalar *c, int64_t ldc)
{
    tc_blas_gemm_$kind *const blas = (tc_blas_gemm_$kind *)table[$matrix];
    tc_blas_gemv_$kind *const lines = (tc_blas_gemv_$kind *)table[$vector];
    const volatile int *const stop = (const volatile int *)table[TC_STOP];
    if (m == 0 || n == 0 || (k == 0 && beta != 0)) return;
    lda = lda > 1 ? lda : 1;
    ldb = ldb > 1 ? ldb : 1;
    ldc = ldc > 1 ? ldc : 1;
    if (n == 1) {
        tc_vector_$kind(lines, stop, threads, m, k, alpha, a, flip_a == 'N' ? 1 : lda, flip_a == 'N' ? lda : 1,
            b, flip_b == 'N' ? 1 : ldb, beta, c, 1);
        return;
    }
    if (m == 1) {
        tc_vector_$kind(lines, stop, threads, n, k, alpha, b, flip_b == 'N' ? ldb : 1, flip_b == 'N' ? 1 : ldb,
            a, flip_a == 'N' ? lda : 1, beta, c, ldc);
        return;
    }
#if $lanes
    if (tc_few_$kind(stop, threads, m, k, n, alpha, a, flip_a == 'N' ? 1 : lda, flip_a == 'N' ? lda : 1, b,
            flip_b == 'N' ? 1 : ldb, flip_b == 'N' ? ldb : 1, beta, c, 1, ldc)) return;
    if (tc_few_$kind(stop, threads, n, k, m, alpha, b, flip_b == 'N' ? ldb : 1, flip_b == 'N' ? 1 : ldb, a,
            flip_a == 'N' ? lda : 1, flip_a == 'N' ? 1 : lda, beta, c, ldc, 1)) return;
#endif
    const int64_t most = TC_BLAS_MOST;
    if (blas && k > most) {
        for (int64_t p = 0; p < k; p += most) {
            tc_gemm_$kind(table, threads, flip_a, flip_b, m, n, tc_min(most, k - p), alpha,
                a + (flip_a == 'N' ? p*lda : p), lda, b + (flip_b == 'N' ? p : p*ldb), ldb,
                p == 0 ? beta : 1, c, ldc);
        }
        return;
    }
    if (blas && n <= m && (lda > most || ldb > most || ldc > most || m > most)) {
        for (int64_t j = 0; j < n; ++j) {
            tc_gemm_$kind(table, threads, flip_a, flip_b, m, 1, k, alpha, a, lda,
                b + (flip_b == 'N' ? j*ldb : j), ldb, beta, c + j*ldc, ldc);
        }
        return;
    }
    if (blas && (lda > most || ldb > most || ldc > most || n > most)) {
        for (int64_t i = 0; i < m; ++i) {
            tc_gemm_$kind(table, threads, flip_a, flip_b, 1, n, k, alpha,
                a + (flip_a == 'N' ? i : i*lda), lda, b, ldb, beta, c + i, ldc);
        }
        return;
    }
    if (!blas || k == 0) {
        tc_plain_gemm_$kind(stop, threads, flip_a, flip_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
        return;
    }
    /* Where the BLAS was told to use one thread, each of ours computes a part of C. */
    if (threads == 1 || !table[TC_BLAS_SERIAL] || (double)m*n*k < TC_PRODUCT_POINTS) {
        const double most = table[TC_BLAS_SERIAL] ? TC_PIECE_POINTS : TC_PIECE_POINTS*threads;
        tc_pieces_$kind(blas, stop, most, flip_a, flip_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
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
        const int64_t rows = tc_min(high, m - i), columns = tc_min(wide, n - j);
        if (rows <= 0 || columns <= 0) continue;
        tc_pieces_$kind(blas, stop, TC_PIECE_POINTS, flip_a, flip_b, rows, columns, k, alpha,
            a + (flip_a == 'N' ? i : i*lda), lda, b + (flip_b == 'N' ? j*ldb : j), ldb, beta, c + i + j*ldc, ldc);
    }
}

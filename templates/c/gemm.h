TC_SHARED void tc_gemm_$kind(void *const *table, int threads, char flip_a, char flip_b,
    int64_t m, int64_t n, int64_t k, $scalar alpha, const $scalar *a, int64_t lda,
    const $scalar *b, int64_t ldb, $scalar beta, $scalar *c, int64_t ldc);

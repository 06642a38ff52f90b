/* The BLAS with which the library is linked: TCGEN_LINK_BLAS is the number of bytes of its integers. */

#if !defined TCGEN_LINK_BLAS
static const tcgen_blas *const tcr_linked_blas = NULL;
#else
#if TCGEN_LINK_BLAS == 8
/* Programs pass integers of 32 bits. */
#define TCR_ROUTINE(name) (void *)tcr_##name
#define TCR_GEMM(name)                                                                                          \
    extern void name(const char *, const char *, const int64_t *, const int64_t *, const int64_t *,             \
        const void *, const void *, const int64_t *, const void *, const int64_t *, const void *, void *,       \
        const int64_t *);                                                                                       \
    static void tcr_##name(const char *flip_a, const char *flip_b, const int *m, const int *n, const int *k,    \
        const void *alpha, const void *a, const int *lda, const void *b, const int *ldb, const void *beta,      \
        void *c, const int *ldc)                                                                                \
    {                                                                                                           \
        const int64_t wide[6] = {*m, *n, *k, *lda, *ldb, *ldc};                                                 \
        name(flip_a, flip_b, wide, wide + 1, wide + 2, alpha, a, wide + 3, b, wide + 4, beta, c, wide + 5);     \
    }
#define TCR_GEMV(name)                                                                                          \
    extern void name(const char *, const int64_t *, const int64_t *, const void *, const void *,                \
        const int64_t *, const void *, const int64_t *, const void *, void *, const int64_t *);                 \
    static void tcr_##name(const char *flip, const int *m, const int *n, const void *alpha, const void *a,      \
        const int *lda, const void *x, const int *step_x, const void *beta, void *y, const int *step_y)         \
    {                                                                                                           \
        const int64_t wide[5] = {*m, *n, *lda, *step_x, *step_y};                                               \
        name(flip, wide, wide + 1, alpha, a, wide + 2, x, wide + 3, beta, y, wide + 4);                         \
    }
#else
#define TCR_ROUTINE(name) (void *)name
#define TCR_GEMM(name) extern void name(void);
#define TCR_GEMV(name) extern void name(void);
#endif
TCR_GEMM(sgemm_) TCR_GEMM(dgemm_) TCR_GEMM(zgemm_) TCR_GEMV(sgemv_) TCR_GEMV(dgemv_) TCR_GEMV(zgemv_)
static const tcgen_blas tcr_blas = {TCR_ROUTINE(sgemm_), TCR_ROUTINE(dgemm_), TCR_ROUTINE(zgemm_), TCR_ROUTINE(sgemv_),
    TCR_ROUTINE(dgemv_), TCR_ROUTINE(zgemv_)};
static const tcgen_blas *const tcr_linked_blas = &tcr_blas;
#endif

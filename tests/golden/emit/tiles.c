/* kernel tiled_0
 *   by hand
 * inputs  x[o,v], y[v,o]
 * outputs g[o,o]
 * flops   2 o^2 v
 * bytes   16 o v read, 8 o^2 written
 */
void tcgen_tiled_0(
    void *const *tc_buffers, const int64_t *tc_extents, const int64_t *tc_host,
    const int64_t *tc_strides, int tc_threads, void *const *tc_blas)
{
    const volatile int *const tc_stop = tc_blas[TC_STOP];
    const int64_t N_o = tc_extents[0];
    const int64_t N_v = tc_extents[1];
    double *restrict g = tc_buffers[4];
    const double *restrict x = tc_buffers[0];
    const double *restrict y = tc_buffers[1];
    (void)tc_buffers, (void)tc_extents, (void)tc_host, (void)tc_strides;
    (void)tc_threads, (void)tc_stop;

    #pragma omp parallel for collapse(2) schedule(static) num_threads(tc_threads) if ((double)N_o*N_o*N_v > TC_PARALLEL_POINTS)
    for (int64_t i = 0; i < N_o; ++i) {
        for (int64_t j = 0; j < N_o; ++j) {
            if (*tc_stop) continue;
            double tc_sum = 0.0;
            #pragma omp simd reduction(+:tc_sum)
            for (int64_t d = 0; d < N_v; ++d) {
                tc_sum += x[i*N_v + d]*y[d*N_o + j];
            }
            g[i*N_o + j] = tc_sum;
        }
    }
}

/* kernel tiled_1
 *   by hand
 * inputs  x[o,v], g[o,o]
 * outputs r[v,o]
 * private w[3,o], q[3,o]
 * flops   2 o^2 v + 2 o v
 * bytes   8 o v + 8 o^2 read, 8 o v written
 */
void tcgen_tiled_1(
    void *const *tc_buffers, const int64_t *tc_extents, const int64_t *tc_host,
    const int64_t *tc_strides, int tc_threads, void *const *tc_blas)
{
    const volatile int *const tc_stop = tc_blas[TC_STOP];
    const int64_t N_o = tc_extents[0];
    const int64_t N_v = tc_extents[1];
    const double *restrict x = tc_buffers[0];
    const double *restrict g = tc_buffers[4];
    double *restrict r = tc_buffers[2];
    (void)tc_buffers, (void)tc_extents, (void)tc_host, (void)tc_strides;
    (void)tc_threads, (void)tc_stop;

    #pragma omp parallel for schedule(dynamic) num_threads(tc_threads)
    for (int64_t c0 = 0; c0 < N_v; c0 += 3) {
        if (*tc_stop) continue;
        const int64_t tc_skip = omp_get_thread_num()*tc_strides[1];
        double *restrict w = (void *)((char *)tc_buffers[5] + tc_skip);
        double *restrict q = (void *)((char *)tc_buffers[6] + tc_skip);
        tc_zero(w, 3*N_o*(int64_t)sizeof(double), 1, tc_stop);
        for (int64_t c = c0; c < tc_min(c0 + 3, N_v); ++c) {
            #pragma omp simd
            for (int64_t i = 0; i < N_o; ++i) {
                w[(c - c0)*N_o + i] += 2.0*x[i*N_v + c];
            }
        }
        tc_gemm_d(tc_blas, 1, 'N', 'N',
            N_o, (tc_min(c0 + 3, N_v) - c0), N_o,
            1.0, g, N_o, w, N_o,
            0, q, N_o);
        for (int64_t c = c0; c < tc_min(c0 + 3, N_v); ++c) {
            #pragma omp simd
            for (int64_t j = 0; j < N_o; ++j) {
                r[c*N_o + j] = q[(c - c0)*N_o + j];
            }
        }
    }
}

/* kernel tiled_2
 *   by hand
 * inputs  s[o,o], x[o,v], y[v,o]
 * outputs s[o,o]
 * private h[3,o]
 * flops   2 o^2 v
 * bytes   16 o v + 8 o^2 read, 16 o^2 written
 */
void tcgen_tiled_2(
    void *const *tc_buffers, const int64_t *tc_extents, const int64_t *tc_host,
    const int64_t *tc_strides, int tc_threads, void *const *tc_blas)
{
    const volatile int *const tc_stop = tc_blas[TC_STOP];
    const int64_t N_o = tc_extents[0];
    const int64_t N_v = tc_extents[1];
    double *restrict s = tc_buffers[3];
    double *restrict h = tc_buffers[7];
    const double *restrict x = tc_buffers[0];
    const double *restrict y = tc_buffers[1];
    (void)tc_buffers, (void)tc_extents, (void)tc_host, (void)tc_strides;
    (void)tc_threads, (void)tc_stop;

    tc_zero(s, N_o*N_o*(int64_t)sizeof(double), tc_threads, tc_stop);
    for (int64_t c1 = 0; c1 < N_v; c1 += 3) {
        if (*tc_stop) continue;
        #pragma omp parallel for schedule(static) num_threads(tc_threads) if ((double)N_v*N_o > TC_PARALLEL_POINTS)
        for (int64_t c = c1; c < tc_min(c1 + 3, N_v); ++c) {
            if (*tc_stop) continue;
            #pragma omp simd
            for (int64_t i = 0; i < N_o; ++i) {
                h[(c - c1)*N_o + i] = x[i*N_v + c];
            }
        }
        tc_gemm_d(tc_blas, tc_threads, 'N', 'T',
            N_o, N_o, (tc_min(c1 + 3, N_v) - c1),
            1.0, y + c1*N_o, N_o, h, N_o,
            1, s, N_o);
    }
}

/* The volatile phase of the host program in one call. */
void tcgen_phase_volatile(void *const *tc_buffers, const int64_t *tc_extents,
    const int64_t *tc_strides, int tc_threads, void *const *tc_blas)
{
    tcgen_tiled_0(tc_buffers, tc_extents, NULL,
        tc_strides, tc_threads, tc_blas);
    tcgen_tiled_1(tc_buffers, tc_extents, NULL,
        tc_strides, tc_threads, tc_blas);
    tcgen_tiled_2(tc_buffers, tc_extents, NULL,
        tc_strides, tc_threads, tc_blas);
}

/* kernel packing_0
 *   by hand
 * inputs  g[o,o,v,v]
 * outputs full[o,v,o,v]
 * flops   0
 * bytes   2 o^2 v^2 + 2 o v^2 - 2 o^2 v - 2 o v read, 8 o^2 v^2 written
 */
void tcgen_packing_0(
    void *const *tc_buffers, const int64_t *tc_extents, const int64_t *tc_host,
    const int64_t *tc_strides, int tc_threads, void *const *tc_blas)
{
    const volatile int *const tc_stop = tc_blas[TC_STOP];
    const int64_t N_o = tc_extents[0];
    const int64_t N_v = tc_extents[1];
    double *restrict full = tc_buffers[2];
    const double *restrict g = tc_buffers[0];
    (void)tc_buffers, (void)tc_extents, (void)tc_host, (void)tc_strides;
    (void)tc_threads, (void)tc_stop;

    #pragma omp parallel for collapse(2) schedule(static) num_threads(tc_threads) if ((double)N_o*N_v*N_o*N_v > TC_PARALLEL_POINTS)
    for (int64_t i = 0; i < N_o; ++i) {
        for (int64_t a = 0; a < N_v; ++a) {
            if (*tc_stop) continue;
            for (int64_t j = 0; j < N_o; ++j) {
                tc_positions tc_order_0 = TC_POSITIONS(i, j);
                (void)tc_sort(2, &tc_order_0);
                const int64_t tc_at_0_0 = tc_order_0.at[0];
                const int64_t tc_at_0_1 = tc_order_0.at[1];
                const int64_t tc_place_0 = tc_at_0_0*(tc_at_0_0 + 1)/2 + tc_at_0_1;
                #pragma omp simd
                for (int64_t b = 0; b < tc_min(N_v, a); ++b) {
                    full[((i*N_v + a)*N_o + j)*N_v + b] = g[tc_place_0*(N_v*(N_v - 1)/2) + a*(a - 1)/2 + b];
                }
                if (a < N_v) {
                    const int64_t b = a;
                    full[((i*N_v + a)*N_o + j)*N_v + b] = 0;
                }
                #pragma omp simd
                for (int64_t b = a + 1; b < N_v; ++b) {
                    full[((i*N_v + a)*N_o + j)*N_v + b] = -g[tc_place_0*(N_v*(N_v - 1)/2) + b*(b - 1)/2 + a];
                }
            }
        }
    }
}

/* kernel packing_1
 *   by hand
 * inputs  g[o,o,v,v], n[o,o,v]
 * outputs t[v,v], s[v,v]
 * flops   o^2 v^2 + 1/2 o v^2 + o^2 v - 1/2 o v
 * bytes   2 o^2 v^2 + 6 o v^2 + 2 o^2 v - 10 o v read, 8 v^2 written
 */
void tcgen_packing_1(
    void *const *tc_buffers, const int64_t *tc_extents, const int64_t *tc_host,
    const int64_t *tc_strides, int tc_threads, void *const *tc_blas)
{
    const volatile int *const tc_stop = tc_blas[TC_STOP];
    const int64_t N_o = tc_extents[0];
    const int64_t N_v = tc_extents[1];
    double *restrict t = tc_buffers[3];
    const double *restrict g = tc_buffers[0];
    const double *restrict n = tc_buffers[1];
    double *restrict s = tc_buffers[4];
    (void)tc_buffers, (void)tc_extents, (void)tc_host, (void)tc_strides;
    (void)tc_threads, (void)tc_stop;

    #pragma omp parallel for schedule(guided) num_threads(tc_threads) if ((double)N_v*N_v*N_o*N_o > TC_PARALLEL_POINTS)
    for (int64_t a = 0; a < N_v; ++a) {
        if (*tc_stop) continue;
        for (int64_t b = 0; b < a + 1; ++b) {
            double tc_sum = 0.0;
            for (int64_t i = 0; i < N_o; ++i) {
                #pragma omp simd reduction(+:tc_sum)
                for (int64_t j = 0; j < N_o; ++j) {
                    tc_sum += (a == b ? 0 : g[(tc_triangle(i, j))*(N_v*(N_v - 1)/2) + a*(a - 1)/2 + b])*(j == i ? 0 : tc_sign(j, i)*n[b*(N_o*(N_o - 1)/2) + tc_strict(j, i)]);
                }
            }
            t[a*(a + 1)/2 + b] = tc_sum;
        }
    }
    for (int64_t a = 0; a < N_v; ++a) {
        if (*tc_stop) continue;
        for (int64_t b = 0; b < a + 1; ++b) {
            double tc_sum = 0.0;
            #pragma omp simd reduction(+:tc_sum)
            for (int64_t i = 0; i < N_o; ++i) {
                tc_sum += (a == b ? 0 : g[(tc_triangle(i, i))*(N_v*(N_v - 1)/2) + a*(a - 1)/2 + b]);
            }
            if (a > b) s[a*(a - 1)/2 + b] = tc_sum;
        }
    }
}

/* kernel packing_2
 *   by hand
 * inputs  n[o,o,v]
 * outputs copy[o,o,v]
 * flops   0
 * bytes   4 o^2 v - 4 o v read, 8 o^2 v written
 */
void tcgen_packing_2(
    void *const *tc_buffers, const int64_t *tc_extents, const int64_t *tc_host,
    const int64_t *tc_strides, int tc_threads, void *const *tc_blas)
{
    const volatile int *const tc_stop = tc_blas[TC_STOP];
    const int64_t N_o = tc_extents[0];
    const int64_t N_v = tc_extents[1];
    double *restrict copy = tc_buffers[5];
    const double *restrict n = tc_buffers[1];
    (void)tc_buffers, (void)tc_extents, (void)tc_host, (void)tc_strides;
    (void)tc_threads, (void)tc_stop;

    #pragma omp parallel for schedule(static) num_threads(tc_threads) if ((double)N_o*N_o*N_v > TC_PARALLEL_POINTS)
    for (int64_t i = 0; i < N_o; ++i) {
        if (*tc_stop) continue;
        for (int64_t j = 0; j < N_o; ++j) {
            tc_positions tc_order_0 = TC_POSITIONS(j, i);
            const int tc_sign_of_0 = tc_sort(2, &tc_order_0);
            const int64_t tc_at_0_0 = tc_order_0.at[0];
            const int64_t tc_at_0_1 = tc_order_0.at[1];
            const int64_t tc_place_0 = tc_at_0_0*(tc_at_0_0 - 1)/2 + tc_at_0_1;
            const double tc_row_sign = tc_sign_of_0;
            if (tc_row_sign == 0) {
                #pragma omp simd
                for (int64_t a = 0; a < N_v; ++a) {
                    copy[(i*N_o + j)*N_v + a] = 0;
                }
            } else {
                #pragma omp simd
                for (int64_t a = 0; a < N_v; ++a) {
                    copy[(i*N_o + j)*N_v + a] = tc_row_sign*n[a*(N_o*(N_o - 1)/2) + tc_place_0];
                }
            }
        }
    }
}

/* The volatile phase of the host program in one call. */
void tcgen_phase_volatile(void *const *tc_buffers, const int64_t *tc_extents,
    const int64_t *tc_strides, int tc_threads, void *const *tc_blas)
{
    tcgen_packing_0(tc_buffers, tc_extents, NULL,
        tc_strides, tc_threads, tc_blas);
    tcgen_packing_1(tc_buffers, tc_extents, NULL,
        tc_strides, tc_threads, tc_blas);
    tcgen_packing_2(tc_buffers, tc_extents, NULL,
        tc_strides, tc_threads, tc_blas);
}

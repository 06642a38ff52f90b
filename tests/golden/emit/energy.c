/* kernel energy_0
 *   t[i,a] = -2*g[i,a]/(e_o[i] - e_v[a] + shift)
 * inputs  t[o,v], g[o,v], e_o[o], e_v[v], shift
 * outputs t[o,v], e
 * flops   6 o v
 * bytes   24 o v + 8 o + 8 v + 8 read, 8 o v + 8 written
 */
void tcgen_energy_0(
    void *const *tc_buffers, const int64_t *tc_extents, const int64_t *tc_host,
    const int64_t *tc_strides, int tc_threads, void *const *tc_blas)
{
    const volatile int *const tc_stop = tc_blas[TC_STOP];
    const int64_t N_o = tc_extents[0];
    const int64_t N_v = tc_extents[1];
    double *restrict t = tc_buffers[4];
    const double *restrict g = tc_buffers[0];
    const double *restrict e_o = tc_buffers[1];
    const double *restrict e_v = tc_buffers[2];
    const double *restrict shift = tc_buffers[3];
    double *restrict e = tc_buffers[5];
    (void)tc_buffers, (void)tc_extents, (void)tc_host, (void)tc_strides;
    (void)tc_threads, (void)tc_stop;

    #pragma omp parallel for schedule(static) num_threads(tc_threads) if ((double)N_o*N_v > TC_PARALLEL_POINTS)
    for (int64_t i = 0; i < N_o; ++i) {
        if (*tc_stop) continue;
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
                if (*tc_stop) continue;
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
    const volatile int *const tc_stop = tc_blas[TC_STOP];
    const int64_t N_o = tc_extents[0];
    const int64_t N_v = tc_extents[1];
    double *restrict f = tc_buffers[6];
    const double *restrict t = tc_buffers[4];
    (void)tc_buffers, (void)tc_extents, (void)tc_host, (void)tc_strides;
    (void)tc_threads, (void)tc_stop;

    #pragma omp parallel for schedule(static) num_threads(tc_threads) if ((double)N_v*N_o > TC_PARALLEL_POINTS)
    for (int64_t a = 0; a < N_v; ++a) {
        if (*tc_stop) continue;
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
 * bytes   8 o v + 24 o read, 24 o written
 */
void tcgen_energy_2(
    void *const *tc_buffers, const int64_t *tc_extents, const int64_t *tc_host,
    const int64_t *tc_strides, int tc_threads, void *const *tc_blas)
{
    const volatile int *const tc_stop = tc_blas[TC_STOP];
    const int64_t N_o = tc_extents[0];
    const int64_t N_v = tc_extents[1];
    double *restrict lambda = tc_buffers[7];
    const double *restrict t = tc_buffers[4];
    const double *restrict e_o = tc_buffers[1];
    (void)tc_buffers, (void)tc_extents, (void)tc_host, (void)tc_strides;
    (void)tc_threads, (void)tc_stop;

    tc_zero(lambda, N_o*(int64_t)sizeof(double), tc_threads, tc_stop);
    for (int64_t a = 0; a < N_v; ++a) {
        if (*tc_stop) continue;
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
 * flops   2 o v
 * bytes   8 o v read, 8 written
 */
void tcgen_energy_3(
    void *const *tc_buffers, const int64_t *tc_extents, const int64_t *tc_host,
    const int64_t *tc_strides, int tc_threads, void *const *tc_blas)
{
    const volatile int *const tc_stop = tc_blas[TC_STOP];
    const int64_t N_o = tc_extents[0];
    const int64_t N_v = tc_extents[1];
    double *restrict norm = tc_buffers[8];
    const double *restrict t = tc_buffers[4];
    (void)tc_buffers, (void)tc_extents, (void)tc_host, (void)tc_strides;
    (void)tc_threads, (void)tc_stop;

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

/* kernel orbit_0
 *   by hand
 * inputs  e, x[o,v], d[v,v], n
 * outputs e, n
 * private w[3,3]
 * flops   o v^2 + 3 o v + v^2 + 3 v
 * bytes   16 o v + 4 v^2 + 12 v + 16 read, 24 written
 */
void tcgen_orbit_0(
    void *const *tc_buffers, const int64_t *tc_extents, const int64_t *tc_host,
    const int64_t *tc_strides, int tc_threads, void *const *tc_blas)
{
    const volatile int *const tc_stop = tc_blas[TC_STOP];
    const int64_t N_o = tc_extents[0];
    const int64_t N_v = tc_extents[1];
    double *restrict e = tc_buffers[2];
    const double *restrict x = tc_buffers[0];
    const double *restrict d = tc_buffers[1];
    double *restrict n = tc_buffers[3];
    (void)tc_buffers, (void)tc_extents, (void)tc_host, (void)tc_strides;
    (void)tc_threads, (void)tc_stop;

    tc_zero(e, 1*(int64_t)sizeof(double), tc_threads, tc_stop);
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
                    if (*tc_stop) continue;
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

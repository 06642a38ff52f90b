/* kernel triangles_0
 *   by hand
 * inputs  e, u[o]
 * outputs e
 * private r[1]
 * flops   1/3 o^3 + o^2 + 2/3 o
 * bytes   24 o + 8 read, 16 written
 */
void tcgen_triangles_0(
    void *const *tc_buffers, const int64_t *tc_extents, const int64_t *tc_host,
    const int64_t *tc_strides, int tc_threads, void *const *tc_blas)
{
    const volatile int *const tc_stop = tc_blas[TC_STOP];
    const int64_t N_o = tc_extents[0];
    double *restrict e = tc_buffers[2];
    const double *restrict u = tc_buffers[0];
    double r = 0;
    (void)tc_buffers, (void)tc_extents, (void)tc_host, (void)tc_strides;
    (void)tc_threads, (void)tc_stop;

    tc_zero(e, 1*(int64_t)sizeof(double), tc_threads, tc_stop);
    for (int64_t i = 0; i < N_o; ++i) {
        if (*tc_stop) continue;
        for (int64_t j = 0; j < i + 1; ++j) {
            if (*tc_stop) continue;
            for (int64_t k = 0; k < j + 1; ++k) {
                r = u[i]*u[j]*u[k];
                e[0] += 0.14285714285714285*tc_orbit(3, (const int64_t[]){i, j, k})*r;
            }
        }
    }
}

/* kernel triangles_1
 *   by hand
 * inputs  u[o]
 * outputs f
 * flops   o^2 + o
 * bytes   16 o read, 8 written
 */
void tcgen_triangles_1(
    void *const *tc_buffers, const int64_t *tc_extents, const int64_t *tc_host,
    const int64_t *tc_strides, int tc_threads, void *const *tc_blas)
{
    const volatile int *const tc_stop = tc_blas[TC_STOP];
    const int64_t N_o = tc_extents[0];
    double *restrict f = tc_buffers[3];
    const double *restrict u = tc_buffers[0];
    (void)tc_buffers, (void)tc_extents, (void)tc_host, (void)tc_strides;
    (void)tc_threads, (void)tc_stop;

    {
        double tc_parts[tc_threads*(64/(int)sizeof(double))];
        for (int tc_n = 0; tc_n < tc_threads; ++tc_n) tc_parts[tc_n*(64/(int)sizeof(double))] = 0;
        #pragma omp parallel num_threads(tc_threads) if ((double)N_o*N_o > TC_PARALLEL_POINTS)
        {
            double tc_sum = 0.0;
            #pragma omp for schedule(static) nowait
            for (int64_t x = 0; x < N_o; ++x) {
                if (*tc_stop) continue;
                #pragma omp simd reduction(+:tc_sum)
                for (int64_t y = 0; y < x + 1; ++y) {
                    tc_sum += (x == y ? 1 : 2)*(u[x]*u[y]);
                }
            }
            tc_parts[omp_get_thread_num()*(64/(int)sizeof(double))] = tc_sum;
        }
        double tc_sum = 0;
        for (int tc_n = 0; tc_n < tc_threads; ++tc_n) tc_sum += tc_parts[tc_n*(64/(int)sizeof(double))];
        f[0] = tc_sum;
    }
}

/* kernel triangles_2
 *   by hand
 * inputs  u[o]
 * outputs h
 * flops   2/3 o^3 + 2 o^2 + 4/3 o
 * bytes   24 o read, 8 written
 */
void tcgen_triangles_2(
    void *const *tc_buffers, const int64_t *tc_extents, const int64_t *tc_host,
    const int64_t *tc_strides, int tc_threads, void *const *tc_blas)
{
    const volatile int *const tc_stop = tc_blas[TC_STOP];
    const int64_t N_o = tc_extents[0];
    double *restrict h = tc_buffers[4];
    const double *restrict u = tc_buffers[0];
    (void)tc_buffers, (void)tc_extents, (void)tc_host, (void)tc_strides;
    (void)tc_threads, (void)tc_stop;

    {
        double tc_parts[tc_threads*(64/(int)sizeof(double))];
        for (int tc_n = 0; tc_n < tc_threads; ++tc_n) tc_parts[tc_n*(64/(int)sizeof(double))] = 0;
        #pragma omp parallel num_threads(tc_threads) if ((double)N_o*N_o*N_o > TC_PARALLEL_POINTS)
        {
            double tc_sum = 0.0;
            #pragma omp for schedule(static) nowait
            for (int64_t x = 0; x < N_o; ++x) {
                if (*tc_stop) continue;
                for (int64_t y = 0; y < x + 1; ++y) {
                    #pragma omp simd reduction(+:tc_sum)
                    for (int64_t z = 0; z < y + 1; ++z) {
                        tc_sum += tc_orbit(3, (const int64_t[]){x, y, z})*(u[x]*u[y]*u[z]);
                    }
                }
            }
            tc_parts[omp_get_thread_num()*(64/(int)sizeof(double))] = tc_sum;
        }
        double tc_sum = 0;
        for (int tc_n = 0; tc_n < tc_threads; ++tc_n) tc_sum += tc_parts[tc_n*(64/(int)sizeof(double))];
        h[0] = tc_sum;
    }
}

/* kernel triangles_3
 *   by hand
 * inputs  half[o,o], m[o,v]
 * outputs half[o,o]
 * flops   o^2 v + o v
 * bytes   16 o v + 4 o^2 + 4 o read, 12 o^2 + 4 o written
 */
void tcgen_triangles_3(
    void *const *tc_buffers, const int64_t *tc_extents, const int64_t *tc_host,
    const int64_t *tc_strides, int tc_threads, void *const *tc_blas)
{
    const volatile int *const tc_stop = tc_blas[TC_STOP];
    const int64_t N_o = tc_extents[0];
    const int64_t N_v = tc_extents[1];
    double *restrict half = tc_buffers[5];
    const double *restrict m = tc_buffers[1];
    (void)tc_buffers, (void)tc_extents, (void)tc_host, (void)tc_strides;
    (void)tc_threads, (void)tc_stop;

    tc_zero(half, N_o*N_o*(int64_t)sizeof(double), tc_threads, tc_stop);
    #pragma omp parallel for schedule(guided) num_threads(tc_threads) if ((double)N_o*N_o*N_v > TC_PARALLEL_POINTS)
    for (int64_t x = 0; x < N_o; ++x) {
        if (*tc_stop) continue;
        for (int64_t y = 0; y < x + 1; ++y) {
            double tc_sum = 0.0;
            #pragma omp simd reduction(+:tc_sum)
            for (int64_t a = 0; a < N_v; ++a) {
                tc_sum += m[x*N_v + a]*m[y*N_v + a];
            }
            half[x*N_o + y] += tc_sum;
        }
    }
}

/* The volatile phase of the host program in one call. */
void tcgen_phase_volatile(void *const *tc_buffers, const int64_t *tc_extents,
    const int64_t *tc_strides, int tc_threads, void *const *tc_blas)
{
    tcgen_triangles_0(tc_buffers, tc_extents, NULL,
        tc_strides, tc_threads, tc_blas);
    tcgen_triangles_1(tc_buffers, tc_extents, NULL,
        tc_strides, tc_threads, tc_blas);
    tcgen_triangles_2(tc_buffers, tc_extents, NULL,
        tc_strides, tc_threads, tc_blas);
    tcgen_triangles_3(tc_buffers, tc_extents, NULL,
        tc_strides, tc_threads, tc_blas);
}

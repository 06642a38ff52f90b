/* kernel tiled_0
 *   by hand
 * inputs  x[o,v], y[v,o]
 * outputs g[o,o]
 * flops   2 o^2 v
 * bytes   16 o v read, 8 o^2 written
 */
extern "C" __global__ void __launch_bounds__(128, 1)
tcgen_tiled_0(
    double *__restrict__ g,
    const double *__restrict__ x,
    const double *__restrict__ y,
    const tc_int N_o,
    const tc_int N_v)
{
    __shared__ double tc_left[3][16][17];
    __shared__ double tc_right[3][16][17];
    __shared__ tc_int tc_left_row[16], tc_right_column[16];
    __shared__ tc_int tc_left_deep[2][16], tc_right_deep[2][16];
    __shared__ tc_int tc_out_row[16], tc_out_column[16];
    const int tc_y = threadIdx.x/16, tc_x = threadIdx.x%16;
    tc_int tc_block = blockIdx.x;
    const tc_int tc_c0_points = N_o;
    const tc_int tc_c0_tiles = tc_tiles(tc_c0_points, 16);
    const tc_int tc_c0_first = tc_block%tc_c0_tiles*16;
    tc_block /= tc_c0_tiles;
    const tc_int tc_r0_points = N_o;
    const tc_int tc_r0_tiles = tc_tiles(tc_r0_points, 16);
    const tc_int tc_r0_first = tc_block%tc_r0_tiles*16;
    tc_block /= tc_r0_tiles;
    for (int tc_n = threadIdx.x; tc_n < 16; tc_n += 128) {
        const tc_int tc_r0 = tc_r0_first + tc_n;
        const tc_int i = tc_min(tc_r0, tc_r0_points - 1);
        tc_out_row[tc_n] = tc_r0 < tc_r0_points ? i*N_o : -1;
    }
    for (int tc_n = threadIdx.x; tc_n < 16; tc_n += 128) {
        const tc_int tc_c0 = tc_c0_first + tc_n;
        const tc_int j = tc_min(tc_c0, tc_c0_points - 1);
        tc_out_column[tc_n] = tc_c0 < tc_c0_points ? j : -1;
    }
    double tc_sum[2][1];
    #pragma unroll
    for (int tc_r = 0; tc_r < 2; ++tc_r) {
        #pragma unroll
        for (int tc_c = 0; tc_c < 1; ++tc_c) tc_sum[tc_r][tc_c] = 0.0;
    }
    {
        const double *const tc_left_start = x;
        const double *const tc_right_start = y;
        for (int tc_n = threadIdx.x; tc_n < 16; tc_n += 128) {
            const tc_int tc_r0 = tc_r0_first + tc_n;
            const tc_int i = tc_min(tc_r0, tc_r0_points - 1);
            tc_left_row[tc_n] = i*N_v;
        }
        for (int tc_n = threadIdx.x; tc_n < 16; tc_n += 128) {
            const tc_int tc_c0 = tc_c0_first + tc_n;
            const tc_int j = tc_min(tc_c0, tc_c0_points - 1);
            tc_right_column[tc_n] = j;
        }
        const tc_int tc_depth = N_v;
        const tc_int tc_first = 0, tc_steps = tc_tiles(tc_depth, 16);
        for (tc_int tc_load = -1; tc_load < tc_steps + 2; ++tc_load) {
            const tc_int tc_step = tc_load - 2;
            tc_cp_async_wait<1>();
            __syncthreads();
            if (tc_load >= 0 && tc_load < tc_steps) {
                const int tc_slot = (int)(tc_load%3);
                const tc_int tc_rest = tc_depth - (tc_first + tc_load)*16;
                if (tc_rest >= 16) {
                    #pragma unroll 4
                    for (int tc_turn = 0; tc_turn < 2; ++tc_turn) {
                        const int tc_n = tc_turn*128 + threadIdx.x;
                        const int tc_k = tc_n%16, tc_m = tc_n/16;
                        tc_copy(&tc_left[tc_slot][tc_k][tc_m], tc_left_start + tc_left_row[tc_m] + tc_left_deep[tc_load&1][tc_k]);
                    }
                    #pragma unroll 4
                    for (int tc_turn = 0; tc_turn < 2; ++tc_turn) {
                        const int tc_n = tc_turn*128 + threadIdx.x;
                        const int tc_m = tc_n%16, tc_k = tc_n/16;
                        tc_copy(&tc_right[tc_slot][tc_k][tc_m], tc_right_start + tc_right_column[tc_m] + tc_right_deep[tc_load&1][tc_k]);
                    }
                } else {
                    for (int tc_n = threadIdx.x; tc_n < 256; tc_n += 128) {
                        const int tc_k = tc_n%16, tc_m = tc_n/16;
                        if (tc_k < tc_rest) tc_copy(&tc_left[tc_slot][tc_k][tc_m], tc_left_start + tc_left_row[tc_m] + tc_left_deep[tc_load&1][tc_k]);
                        else tc_left[tc_slot][tc_k][tc_m] = 0.0;
                    }
                    for (int tc_n = threadIdx.x; tc_n < 256; tc_n += 128) {
                        const int tc_m = tc_n%16, tc_k = tc_n/16;
                        if (tc_k < tc_rest) tc_copy(&tc_right[tc_slot][tc_k][tc_m], tc_right_start + tc_right_column[tc_m] + tc_right_deep[tc_load&1][tc_k]);
                        else tc_right[tc_slot][tc_k][tc_m] = 0.0;
                    }
                }
            }
            tc_cp_async_commit();
            if (tc_load + 1 < tc_steps && threadIdx.x < 16) {
                const int tc_n = threadIdx.x;
                const tc_int d = tc_min((tc_first + tc_load + 1)*16 + tc_n, tc_depth - 1);
                tc_left_deep[(tc_load + 1)&1][tc_n] = d;
                tc_right_deep[(tc_load + 1)&1][tc_n] = d*N_o;
            }
            if (tc_step >= 0) {
                const int tc_slot = (int)(tc_step%3);
                #pragma unroll
                for (int tc_k = 0; tc_k < 16; ++tc_k) {
                    double tc_a[2], tc_b[1];
                    #pragma unroll
                    for (int tc_r = 0; tc_r < 2; ++tc_r) tc_a[tc_r] = tc_left[tc_slot][tc_k][tc_y + tc_r*8];
                    #pragma unroll
                    for (int tc_c = 0; tc_c < 1; ++tc_c) tc_b[tc_c] = tc_right[tc_slot][tc_k][tc_x + tc_c*16];
                    #pragma unroll
                    for (int tc_r = 0; tc_r < 2; ++tc_r) {
                        #pragma unroll
                        for (int tc_c = 0; tc_c < 1; ++tc_c) tc_sum[tc_r][tc_c] += tc_a[tc_r]*tc_b[tc_c];
                    }
                }
            }
        }
    }
    #pragma unroll
    for (int tc_r = 0; tc_r < 2; ++tc_r) {
        const tc_int tc_i = tc_out_row[tc_y + tc_r*8];
        #pragma unroll
        for (int tc_c = 0; tc_c < 1; ++tc_c) {
            const tc_int tc_j = tc_out_column[tc_x + tc_c*16];
            if (tc_i >= 0 && tc_j >= 0) g[tc_i + tc_j] = tc_sum[tc_r][tc_c];
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
extern "C" __global__ void __launch_bounds__(128)
tcgen_tiled_1(
    const double *__restrict__ x,
    const double *__restrict__ g,
    double *__restrict__ r,
    char *__restrict__ tc_scratch,
    const tc_int tc_in_shared,
    const tc_int N_o,
    const tc_int N_v)
{
    const tc_int tc_own_bytes = tc_aligned(3*N_o*(tc_int)sizeof(double)) + tc_aligned(3*N_o*(tc_int)sizeof(double));
    extern __shared__ __align__(16) char tc_dynamic[];
    char *tc_own = tc_in_shared ? tc_dynamic : tc_scratch + blockIdx.x*tc_own_bytes;
    double *const w = (double *)tc_own;
    tc_own += tc_aligned(3*N_o*(tc_int)sizeof(double));
    double *const q = (double *)tc_own;
    for (tc_int tc_point = blockIdx.x; tc_point < tc_tiles(N_v, 3); tc_point += gridDim.x) {
        const tc_int c0 = tc_point*3;
        for (tc_int tc_n = threadIdx.x; tc_n < 3*N_o; tc_n += 128) {
            w[tc_n] = double(0);
        }
        __syncthreads();
        for (tc_int tc_n = threadIdx.x; tc_n < tc_min(3, N_v - c0)*N_o; tc_n += 128) {
            tc_int tc_rest = tc_n;
            const tc_int i = tc_rest%N_o;
            tc_rest /= N_o;
            const tc_int c = c0 + tc_rest;
            w[(c - c0)*N_o + i] += 2.0*x[i*N_v + c];
        }
        __syncthreads();
        for (tc_int tc_n = threadIdx.x; tc_n < tc_min(3, N_v - c0)*N_o; tc_n += 128) {
            tc_int tc_rest = tc_n;
            const tc_int j = tc_rest%N_o;
            tc_rest /= N_o;
            const tc_int c = c0 + tc_rest;
            double tc_sum = 0.0;
            for (tc_int i = 0; i < N_o; ++i) {
                tc_sum += w[(c - c0)*N_o + i]*g[i*N_o + j];
            }
            q[(c - c0)*N_o + j] = tc_sum;
        }
        __syncthreads();
        for (tc_int tc_n = threadIdx.x; tc_n < tc_min(3, N_v - c0)*N_o; tc_n += 128) {
            tc_int tc_rest = tc_n;
            const tc_int j = tc_rest%N_o;
            tc_rest /= N_o;
            const tc_int c = c0 + tc_rest;
            r[c*N_o + j] = q[(c - c0)*N_o + j];
        }
        __syncthreads();
    }
}

/* kernel tiled_2
 *   by hand
 * inputs  (none)
 * outputs s[o,o]
 * flops   0
 * bytes   0 read, 8 o^2 written
 */
extern "C" __global__ void __launch_bounds__(256)
tcgen_tiled_2(
    double *__restrict__ s,
    const tc_int N_o)
{
    for (tc_int tc_n = (tc_int)blockIdx.x*256 + threadIdx.x; tc_n < N_o*N_o; tc_n += (tc_int)gridDim.x*256) {
        s[tc_n] = double(0);
    }
}

/* kernel tiled_2_2
 *   by hand
 * inputs  x[o,v]
 * outputs h[3,o]
 * flops   0
 * bytes   8 o v read, 8 o v written
 */
extern "C" __global__ void __launch_bounds__(256)
tcgen_tiled_2_2(
    double *__restrict__ h,
    const double *__restrict__ x,
    const tc_int N_o,
    const tc_int N_v,
    const tc_int c1)
{
    for (tc_int tc_n = (tc_int)blockIdx.x*256 + threadIdx.x; tc_n < tc_min(3, N_v - c1)*N_o; tc_n += (tc_int)gridDim.x*256) {
        tc_int tc_rest = tc_n;
        const tc_int i = tc_rest%N_o;
        tc_rest /= N_o;
        const tc_int c = c1 + tc_rest;
        h[(c - c1)*N_o + i] = x[i*N_v + c];
    }
}

/* kernel tiled_2_3
 *   by hand
 * inputs  s[o,o], h[3,o], y[v,o]
 * outputs s[o,o]
 * flops   2 o^2 v
 * bytes   8/3 o^2 v + 16 o v read, 8/3 o^2 v written
 */
extern "C" __global__ void __launch_bounds__(256)
tcgen_tiled_2_3(
    double *__restrict__ s,
    const double *__restrict__ h,
    const double *__restrict__ y,
    const tc_int N_o,
    const tc_int N_v,
    const tc_int c1)
{
    for (tc_int tc_n = (tc_int)blockIdx.x*256 + threadIdx.x; tc_n < N_o*N_o; tc_n += (tc_int)gridDim.x*256) {
        tc_int tc_rest = tc_n;
        const tc_int j = tc_rest%N_o;
        tc_rest /= N_o;
        const tc_int i = tc_rest;
        double tc_sum = 0.0;
        for (tc_int c = c1; c < tc_min(c1 + 3, N_v); ++c) {
            tc_sum += h[(c - c1)*N_o + i]*y[c*N_o + j];
        }
        s[i*N_o + j] += tc_sum;
    }
}

/* kernel tiled_0
 *   by hand
 * inputs  x[o,v], y[v,o]
 * outputs g[o,o]
 * flops   2 o^2 v
 * bytes   16 o v read, 8 o^2 written
 */
extern "C" __global__ void __launch_bounds__(64, 3)
tcgen_tiled_0(
    double *__restrict__ g,
    const double *__restrict__ x,
    const double *__restrict__ y,
    const tc_int N_o,
    const tc_int N_v)
{
    extern __shared__ __align__(16) char tc_dynamic[];
    __shared__ __align__(16) tc_int tc_left_rows[16], tc_right_columns[16];
    __shared__ __align__(16) long long tc_left_ks[128], tc_right_ks[128];
    __shared__ tc_int tc_out_row[16], tc_out_column[16];
    const int tc_lane = threadIdx.x%32, tc_warp = threadIdx.x/32;
    const int tc_top = tc_warp/2*16, tc_side = tc_warp%2*8;
    const int tc_y = tc_top + tc_lane/4, tc_x = tc_side + tc_lane%4*2;
    const tc_int tc_r0_points = N_o;
    const tc_int tc_r0_tiles = tc_tiles(tc_r0_points, 16);
    const tc_int tc_c0_points = N_o;
    const tc_int tc_c0_tiles = tc_tiles(tc_c0_points, 16);
    tc_int tc_block = blockIdx.x, tc_row, tc_column;
    tc_tile_of_block(tc_block%(tc_r0_tiles*tc_c0_tiles), tc_r0_tiles, tc_c0_tiles, tc_row, tc_column);
    tc_block /= tc_r0_tiles*tc_c0_tiles;
    const tc_int tc_r0_first = tc_row*16;
    const tc_int tc_c0_first = tc_column*16;
    #pragma unroll 1
    for (int tc_n = threadIdx.x; tc_n < 16; tc_n += 64) {
        const tc_int tc_r0 = tc_r0_first + tc_n;
        const tc_int i = (tc_r0 < tc_r0_points ? tc_r0 : 0);
        tc_out_row[tc_n] = tc_r0 < tc_r0_points ? i*N_o : -1;
        tc_left_rows[tc_n] = i*N_v;
    }
    #pragma unroll 1
    for (int tc_n = threadIdx.x; tc_n < 16; tc_n += 64) {
        const tc_int tc_c0 = tc_c0_first + tc_n;
        const tc_int j = (tc_c0 < tc_c0_points ? tc_c0 : 0);
        tc_out_column[tc_n] = tc_c0 < tc_c0_points ? j : -1;
        tc_right_columns[tc_n] = j;
    }
    double tc_sum[2][2];
    #pragma unroll
    for (int tc_r = 0; tc_r < 2; ++tc_r) {
        #pragma unroll
        for (int tc_c = 0; tc_c < 2; ++tc_c) tc_sum[tc_r][tc_c] = 0.0;
    }
    {
        const double *const tc_left_start = x;
        const double *const tc_right_start = y;
        double *const tc_left = (double *)tc_dynamic;
        double *const tc_right = (double *)(tc_dynamic + 7680);
        const auto tc_offsets = [&](
            tc_int tc_k, tc_int &tc_left_offset, tc_int &tc_right_offset) {
            const tc_int d = tc_k;
            tc_left_offset = d;
            tc_right_offset = d*N_o;
        };
        const tc_int tc_depth = N_v, tc_last = N_v;
        const tc_int tc_first = 0, tc_steps = tc_tiles(tc_depth, 16);
        const auto tc_scale = [](const double tc_a) { return tc_a; };
        if (tc_steps > 0
            && N_o*N_v < 4294967296
            && N_v%2 == 0
            && (unsigned long long)tc_left_start%16 == 0
            && N_v*N_o < 4294967296
            && N_o%2 == 0
            && (unsigned long long)tc_right_start%16 == 0) {
            typedef unsigned tc_index;
            typedef tc_operand<double, tc_index, 64, 16, 16, 2, true, 20, 1, 16, 1, false, false> tc_left_tile;
            typedef tc_operand<double, tc_index, 64, 16, 16, 2, false, 20, 1, 16, 1, false, false> tc_right_tile;
            tc_pipeline<64, 16, 3, tc_left_tile, tc_right_tile, tc_index, decltype(tc_offsets)> tc_pipe(
                tc_left_tile(tc_left_start, tc_left, tc_left_rows, (tc_index *)tc_left_ks),
                tc_right_tile(tc_right_start, tc_right, tc_right_columns, (tc_index *)tc_right_ks),
                (tc_index *)tc_left_ks, (tc_index *)tc_right_ks, tc_offsets, tc_depth, tc_last, tc_first, tc_steps);
            tc_multiply_by_warps<16, 2, 2>(tc_sum, tc_pipe, tc_top, tc_side, tc_scale);
        } else if (tc_steps > 0) {
            typedef long long tc_index;
            typedef tc_operand<double, tc_index, 64, 16, 16, 1, true, 20, 1, 16, 1, false, false> tc_left_tile;
            typedef tc_operand<double, tc_index, 64, 16, 16, 1, false, 20, 1, 16, 1, false, false> tc_right_tile;
            tc_pipeline<64, 16, 3, tc_left_tile, tc_right_tile, tc_index, decltype(tc_offsets)> tc_pipe(
                tc_left_tile(tc_left_start, tc_left, tc_left_rows, (tc_index *)tc_left_ks),
                tc_right_tile(tc_right_start, tc_right, tc_right_columns, (tc_index *)tc_right_ks),
                (tc_index *)tc_left_ks, (tc_index *)tc_right_ks, tc_offsets, tc_depth, tc_last, tc_first, tc_steps);
            tc_multiply_by_warps<16, 2, 2>(tc_sum, tc_pipe, tc_top, tc_side, tc_scale);
        } else {
            __syncthreads();
        }
    }
    if (N_o%2 == 0 && (unsigned long long)g%16 == 0) {
        #pragma unroll
        for (int tc_r = 0; tc_r < 2; ++tc_r) {
            const tc_int tc_i = tc_out_row[tc_y + tc_r*8];
            #pragma unroll
            for (int tc_c = 0; tc_c < 2; tc_c += 2) {
                const tc_int tc_j = tc_out_column[tc_x + tc_c/2*8 + tc_c%2];
                if (tc_i >= 0 && tc_j >= 0) tc_store_pair(g + (tc_i + tc_j), tc_sum[tc_r][tc_c], tc_sum[tc_r][tc_c + 1]);
            }
        }
    } else {
        #pragma unroll
        for (int tc_r = 0; tc_r < 2; ++tc_r) {
            const tc_int tc_i = tc_out_row[tc_y + tc_r*8];
            #pragma unroll
            for (int tc_c = 0; tc_c < 2; ++tc_c) {
                const tc_int tc_j = tc_out_column[tc_x + tc_c/2*8 + tc_c%2];
                if (tc_i >= 0 && tc_j >= 0) g[tc_i + tc_j] = tc_sum[tc_r][tc_c];
            }
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
extern "C" __global__ void __launch_bounds__(128, 1)
tcgen_tiled_1(
    const double *__restrict__ x,
    const double *__restrict__ g,
    double *__restrict__ r,
    char *__restrict__ tc_scratch,
    const tc_int tc_in_shared,
    const tc_int N_o,
    const tc_int N_v)
{
    extern __shared__ __align__(16) char tc_dynamic[];
    const tc_int tc_own_bytes = tc_aligned(3*N_o*(tc_int)sizeof(double)) + tc_aligned(3*N_o*(tc_int)sizeof(double));
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
 * inputs  x[o,v], s[o,o], y[v,o]
 * outputs s[o,o]
 * private h[3,o]
 * flops   2 o^2 v
 * bytes   16 o v + 8 o^2 read, 8 o^2 written
 */
extern "C" __global__ void __launch_bounds__(128, 1)
tcgen_tiled_2_2(
    const double *__restrict__ x,
    double *__restrict__ s,
    const double *__restrict__ y,
    char *__restrict__ tc_scratch,
    const tc_int tc_in_shared,
    const tc_int N_o,
    const tc_int N_v)
{
    const tc_int tc_copied_bytes = tc_aligned(N_o*N_o*(tc_int)sizeof(double));
    extern __shared__ __align__(16) char tc_dynamic[];
    const tc_int tc_own_bytes = tc_aligned(3*N_o*(tc_int)sizeof(double));
    char *tc_own = tc_in_shared ? tc_dynamic : tc_scratch + (tc_int)gridDim.x*tc_copied_bytes + blockIdx.x*tc_own_bytes;
    double *const h = (double *)tc_own;
    double *const tc_copy_s = (double *)(tc_scratch + blockIdx.x*tc_copied_bytes + 0);
    for (tc_int tc_n = threadIdx.x; tc_n < N_o*N_o; tc_n += 128) {
        tc_copy_s[tc_n] = 0.0;
    }
    __syncthreads();
    for (tc_int tc_point = blockIdx.x; tc_point < tc_tiles(N_v, 3); tc_point += gridDim.x) {
        const tc_int c1 = tc_point*3;
        for (tc_int tc_n = threadIdx.x; tc_n < tc_min(3, N_v - c1)*N_o; tc_n += 128) {
            tc_int tc_rest = tc_n;
            const tc_int i = tc_rest%N_o;
            tc_rest /= N_o;
            const tc_int c = c1 + tc_rest;
            h[(c - c1)*N_o + i] = x[i*N_v + c];
        }
        __syncthreads();
        for (tc_int tc_n = threadIdx.x; tc_n < N_o*N_o; tc_n += 128) {
            tc_int tc_rest = tc_n;
            const tc_int j = tc_rest%N_o;
            tc_rest /= N_o;
            const tc_int i = tc_rest;
            double tc_sum = 0.0;
            for (tc_int c = c1; c < tc_min(c1 + 3, N_v); ++c) {
                tc_sum += h[(c - c1)*N_o + i]*y[c*N_o + j];
            }
            tc_copy_s[i*N_o + j] += tc_sum;
        }
        __syncthreads();
    }
}

/* The second pass: adds the parts of each sum in order. */
extern "C" __global__ void __launch_bounds__(128, 1)
tcgen_tiled_2_2_finish(
    const double *__restrict__ x,
    double *__restrict__ s,
    const double *__restrict__ y,
    char *__restrict__ tc_scratch,
    const tc_int tc_in_shared,
    const tc_int N_o,
    const tc_int N_v)
{
    const tc_int tc_copied_bytes = tc_aligned(N_o*N_o*(tc_int)sizeof(double));
    for (tc_int tc_element = blockIdx.x; tc_element < N_o*N_o; tc_element += gridDim.x) {
        double tc_sum = 0.0;
        for (tc_int tc_n = threadIdx.x; tc_n < gridDim.x; tc_n += 128)
            tc_sum += ((const double *)(tc_scratch + tc_n*tc_copied_bytes + 0))[tc_element];
        tc_sum = tc_block_sum(tc_sum);
        if (threadIdx.x == 0) s[tc_element] += tc_sum;
        __syncthreads();
    }
}

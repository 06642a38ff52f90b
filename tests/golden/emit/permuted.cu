/* kernel permuted_0
 *   by hand
 * inputs  r[v,o,v,o], t[v,o,o,v], u[o,o,v,v], s[o,v,v]
 * outputs r[v,o,v,o]
 * flops   4 o^3 v^3 + 2 o^2 v^3
 * bytes   32 o^2 v^2 + 16 o v^2 read, 8 o^2 v^2 written
 */
extern "C" __global__ void __launch_bounds__(128, 1)
tcgen_permuted_0(
    double *__restrict__ r,
    const double *__restrict__ t,
    const double *__restrict__ u,
    const double *__restrict__ s,
    const tc_int N_o,
    const tc_int N_v)
{
    extern __shared__ __align__(16) char tc_dynamic[];
    __shared__ __align__(16) tc_int tc_left_rows[32], tc_right_columns[32];
    __shared__ __align__(16) long long tc_left_ks[128], tc_right_ks[128];
    __shared__ tc_int tc_out_row[32], tc_out_column[32];
    const int tc_lane = threadIdx.x%32, tc_warp = threadIdx.x/32;
    const int tc_top = tc_warp/2*16, tc_side = tc_warp%2*16;
    const int tc_y = tc_top + tc_lane/4, tc_x = tc_side + tc_lane%4*2;
    const tc_int tc_r0_points = N_o*N_v;
    const tc_int tc_r0_tiles = tc_tiles(tc_r0_points, 32);
    const tc_int tc_c0_points = N_v;
    const tc_int tc_c0_tiles = tc_tiles(tc_c0_points, 4);
    const tc_int tc_c1_points = N_o;
    const tc_int tc_c1_tiles = tc_tiles(tc_c1_points, 8);
    tc_int tc_block = blockIdx.x, tc_row, tc_column;
    tc_tile_of_block(tc_block%(tc_r0_tiles*tc_c0_tiles*tc_c1_tiles), tc_r0_tiles, tc_c0_tiles*tc_c1_tiles, tc_row, tc_column);
    tc_block /= tc_r0_tiles*tc_c0_tiles*tc_c1_tiles;
    const tc_int tc_r0_first = tc_row*32;
    const tc_int tc_c1_first = tc_column%tc_c1_tiles*8;
    tc_column /= tc_c1_tiles;
    const tc_int tc_c0_first = tc_column*4;
    #pragma unroll 1
    for (int tc_n = threadIdx.x; tc_n < 32; tc_n += 128) {
        const tc_int tc_r0 = tc_r0_first + tc_n;
        tc_int tc_r0_rest = (tc_r0 < tc_r0_points ? tc_r0 : 0);
        const tc_int b = tc_r0_rest%N_v;
        tc_r0_rest /= N_v;
        const tc_int i = tc_r0_rest;
        tc_out_row[tc_n] = tc_r0 < tc_r0_points ? i*N_v*N_o + b*N_o : -1;
        tc_left_rows[tc_n] = i*N_o*N_v*N_v + b*N_v;
    }
    #pragma unroll 1
    for (int tc_n = threadIdx.x; tc_n < 32; tc_n += 128) {
        int tc_m = tc_n;
        const tc_int tc_c1 = tc_c1_first + tc_m%8;
        tc_m /= 8;
        const tc_int j = (tc_c1 < tc_c1_points ? tc_c1 : 0);
        const tc_int tc_c0 = tc_c0_first + tc_m;
        const tc_int a = (tc_c0 < tc_c0_points ? tc_c0 : 0);
        tc_out_column[tc_n] = tc_c1 < tc_c1_points && tc_c0 < tc_c0_points ? a*N_o*N_v*N_o + j : -1;
        tc_right_columns[tc_n%8*4 + tc_n/8] = j*N_o*N_v + a;
    }
    double tc_sum[2][4];
    #pragma unroll
    for (int tc_r = 0; tc_r < 2; ++tc_r) {
        #pragma unroll
        for (int tc_c = 0; tc_c < 4; ++tc_c) tc_sum[tc_r][tc_c] = 0.0;
    }
    const tc_int tc_given0 = N_o;
    const tc_int tc_given1 = N_v;
    __shared__ tc_int tc_place[3];
    if (threadIdx.x == 0) {
        tc_place[0] = tc_r0_first;
        tc_place[1] = tc_c0_first;
        tc_place[2] = tc_c1_first;
    }
    {
        const double *const tc_left_start = u;
        const double *const tc_right_start = t;
        double *const tc_left = (double *)tc_dynamic;
        double *const tc_right = (double *)(tc_dynamic + 15360);
        const auto tc_offsets = [&](
            tc_int tc_k, tc_int &tc_left_offset, tc_int &tc_right_offset) {
            tc_int tc_rest = tc_k;
            const tc_int c = tc_rest%N_v;
            tc_rest /= N_v;
            const tc_int k = tc_rest;
            tc_left_offset = k*N_v*N_v + c;
            tc_right_offset = c*N_o*N_o*N_v + k*N_v;
        };
        const tc_int tc_depth = N_o*N_v, tc_last = N_v;
        const tc_int tc_first = 0, tc_steps = tc_tiles(tc_depth, 16);
        const auto tc_scale = [](const double tc_a) { return -1.5*tc_a; };
        if (tc_steps > 0
            && N_o*N_o*N_v*N_v < 4294967296
            && N_v%2 == 0
            && (unsigned long long)tc_left_start%16 == 0
            && N_v*N_o*N_o*N_v < 4294967296
            && (unsigned long long)tc_right_start%16 == 0) {
            typedef unsigned tc_index;
            typedef tc_operand<double, tc_index, 128, 32, 16, 2, true, 20, 1, 16, 1, false, false> tc_left_tile;
            typedef tc_operand<double, tc_index, 128, 32, 16, 2, false, 34, 8, 4, 1, false, false> tc_right_tile;
            tc_pipeline<128, 16, 3, tc_left_tile, tc_right_tile, tc_index, decltype(tc_offsets)> tc_pipe(
                tc_left_tile(tc_left_start, tc_left, tc_left_rows, (tc_index *)tc_left_ks),
                tc_right_tile(tc_right_start, tc_right, tc_right_columns, (tc_index *)tc_right_ks),
                (tc_index *)tc_left_ks, (tc_index *)tc_right_ks, tc_offsets, tc_depth, tc_last, tc_first, tc_steps);
            tc_multiply_by_warps<16, 2, 4>(tc_sum, tc_pipe, tc_top, tc_side, tc_scale);
        } else if (tc_steps > 0) {
            typedef long long tc_index;
            typedef tc_operand<double, tc_index, 128, 32, 16, 1, true, 20, 1, 16, 1, false, false> tc_left_tile;
            typedef tc_operand<double, tc_index, 128, 32, 16, 1, false, 34, 8, 4, 1, false, false> tc_right_tile;
            tc_pipeline<128, 16, 3, tc_left_tile, tc_right_tile, tc_index, decltype(tc_offsets)> tc_pipe(
                tc_left_tile(tc_left_start, tc_left, tc_left_rows, (tc_index *)tc_left_ks),
                tc_right_tile(tc_right_start, tc_right, tc_right_columns, (tc_index *)tc_right_ks),
                (tc_index *)tc_left_ks, (tc_index *)tc_right_ks, tc_offsets, tc_depth, tc_last, tc_first, tc_steps);
            tc_multiply_by_warps<16, 2, 4>(tc_sum, tc_pipe, tc_top, tc_side, tc_scale);
        } else {
            __syncthreads();
        }
    }
    {
        __syncthreads();
        const tc_int N_o = tc_anew(tc_given0);
        const tc_int N_v = tc_anew(tc_given1);
        const tc_int tc_r0_first = tc_place[0];
        const tc_int tc_c0_first = tc_place[1];
        const tc_int tc_c1_first = tc_place[2];
        const double *const tc_left_start = u;
        const double *const tc_right_start = t;
        double *const tc_left = (double *)tc_dynamic;
        double *const tc_right = (double *)(tc_dynamic + 15360);
        #pragma unroll 1
        for (int tc_n = threadIdx.x; tc_n < 32; tc_n += 128) {
            const tc_int tc_r0 = tc_r0_first + tc_n;
            tc_int tc_r0_rest = (tc_r0 < tc_r0_points ? tc_r0 : 0);
            const tc_int b = tc_r0_rest%N_v;
            tc_r0_rest /= N_v;
            const tc_int i = tc_r0_rest;
            tc_left_rows[tc_n] = i*N_o*N_v*N_v + b*N_v;
        }
        #pragma unroll 1
        for (int tc_n = threadIdx.x; tc_n < 32; tc_n += 128) {
            int tc_m = tc_n;
            const tc_int tc_c1 = tc_c1_first + tc_m%8;
            tc_m /= 8;
            const tc_int j = (tc_c1 < tc_c1_points ? tc_c1 : 0);
            const tc_int tc_c0 = tc_c0_first + tc_m;
            const tc_int a = (tc_c0 < tc_c0_points ? tc_c0 : 0);
            tc_right_columns[tc_n%8*4 + tc_n/8] = j*N_o*N_v + a;
        }
        const auto tc_offsets = [&](
            tc_int tc_k, tc_int &tc_left_offset, tc_int &tc_right_offset) {
            tc_int tc_rest = tc_k;
            const tc_int a_2 = tc_rest%N_v;
            tc_rest /= N_v;
            const tc_int k_2 = tc_rest;
            tc_left_offset = k_2*N_v*N_v + a_2;
            tc_right_offset = a_2*N_o*N_o*N_v + k_2*N_v;
        };
        const tc_int tc_depth = N_o*N_v, tc_last = N_v;
        const tc_int tc_first = 0, tc_steps = tc_tiles(tc_depth, 16);
        const auto tc_scale = [](const double tc_a) { return tc_a; };
        if (tc_steps > 0
            && N_o*N_o*N_v*N_v < 4294967296
            && N_v%2 == 0
            && (unsigned long long)tc_left_start%16 == 0
            && N_v*N_o*N_o*N_v < 4294967296
            && (unsigned long long)tc_right_start%16 == 0) {
            typedef unsigned tc_index;
            typedef tc_operand<double, tc_index, 128, 32, 16, 2, true, 20, 1, 16, 1, false, false> tc_left_tile;
            typedef tc_operand<double, tc_index, 128, 32, 16, 2, false, 34, 8, 4, 1, false, false> tc_right_tile;
            tc_pipeline<128, 16, 3, tc_left_tile, tc_right_tile, tc_index, decltype(tc_offsets)> tc_pipe(
                tc_left_tile(tc_left_start, tc_left, tc_left_rows, (tc_index *)tc_left_ks),
                tc_right_tile(tc_right_start, tc_right, tc_right_columns, (tc_index *)tc_right_ks),
                (tc_index *)tc_left_ks, (tc_index *)tc_right_ks, tc_offsets, tc_depth, tc_last, tc_first, tc_steps);
            tc_multiply_by_warps<16, 2, 4>(tc_sum, tc_pipe, tc_top, tc_side, tc_scale);
        } else if (tc_steps > 0) {
            typedef long long tc_index;
            typedef tc_operand<double, tc_index, 128, 32, 16, 1, true, 20, 1, 16, 1, false, false> tc_left_tile;
            typedef tc_operand<double, tc_index, 128, 32, 16, 1, false, 34, 8, 4, 1, false, false> tc_right_tile;
            tc_pipeline<128, 16, 3, tc_left_tile, tc_right_tile, tc_index, decltype(tc_offsets)> tc_pipe(
                tc_left_tile(tc_left_start, tc_left, tc_left_rows, (tc_index *)tc_left_ks),
                tc_right_tile(tc_right_start, tc_right, tc_right_columns, (tc_index *)tc_right_ks),
                (tc_index *)tc_left_ks, (tc_index *)tc_right_ks, tc_offsets, tc_depth, tc_last, tc_first, tc_steps);
            tc_multiply_by_warps<16, 2, 4>(tc_sum, tc_pipe, tc_top, tc_side, tc_scale);
        } else {
            __syncthreads();
        }
    }
    {
        __syncthreads();
        const tc_int N_o = tc_anew(tc_given0);
        const tc_int N_v = tc_anew(tc_given1);
        const tc_int tc_r0_first = tc_place[0];
        const tc_int tc_c0_first = tc_place[1];
        const tc_int tc_c1_first = tc_place[2];
        const double *const tc_left_start = u;
        const double *const tc_right_start = s;
        double *const tc_left = (double *)tc_dynamic;
        double *const tc_right = (double *)(tc_dynamic + 15360);
        #pragma unroll 1
        for (int tc_n = threadIdx.x; tc_n < 32; tc_n += 128) {
            const tc_int tc_r0 = tc_r0_first + tc_n;
            tc_int tc_r0_rest = (tc_r0 < tc_r0_points ? tc_r0 : 0);
            const tc_int b = tc_r0_rest%N_v;
            tc_r0_rest /= N_v;
            const tc_int i = tc_r0_rest;
            tc_left_rows[tc_n] = i*N_o*N_v*N_v + i*N_v*N_v + b*N_v;
        }
        #pragma unroll 1
        for (int tc_n = threadIdx.x; tc_n < 32; tc_n += 128) {
            int tc_m = tc_n;
            const tc_int tc_c1 = tc_c1_first + tc_m%8;
            tc_m /= 8;
            const tc_int j = (tc_c1 < tc_c1_points ? tc_c1 : 0);
            const tc_int tc_c0 = tc_c0_first + tc_m;
            const tc_int a = (tc_c0 < tc_c0_points ? tc_c0 : 0);
            tc_right_columns[tc_n%8*4 + tc_n/8] = j*N_v*N_v + a*N_v;
        }
        const auto tc_offsets = [&](
            tc_int tc_k, tc_int &tc_left_offset, tc_int &tc_right_offset) {
            const tc_int c_2 = tc_k;
            tc_left_offset = c_2;
            tc_right_offset = c_2;
        };
        const tc_int tc_depth = N_v, tc_last = N_v;
        const tc_int tc_first = 0, tc_steps = tc_tiles(tc_depth, 16);
        const auto tc_scale = [](const double tc_a) { return tc_a; };
        if (tc_steps > 0
            && N_o*N_o*N_v*N_v < 4294967296
            && N_v%2 == 0
            && (unsigned long long)tc_left_start%16 == 0
            && N_o*N_v*N_v < 4294967296
            && (unsigned long long)tc_right_start%16 == 0) {
            typedef unsigned tc_index;
            typedef tc_operand<double, tc_index, 128, 32, 16, 2, true, 20, 1, 16, 1, false, false> tc_left_tile;
            typedef tc_operand<double, tc_index, 128, 32, 16, 2, true, 20, 8, 16, 1, false, false> tc_right_tile;
            tc_pipeline<128, 16, 3, tc_left_tile, tc_right_tile, tc_index, decltype(tc_offsets)> tc_pipe(
                tc_left_tile(tc_left_start, tc_left, tc_left_rows, (tc_index *)tc_left_ks),
                tc_right_tile(tc_right_start, tc_right, tc_right_columns, (tc_index *)tc_right_ks),
                (tc_index *)tc_left_ks, (tc_index *)tc_right_ks, tc_offsets, tc_depth, tc_last, tc_first, tc_steps);
            tc_multiply_by_warps<16, 2, 4>(tc_sum, tc_pipe, tc_top, tc_side, tc_scale);
        } else if (tc_steps > 0) {
            typedef long long tc_index;
            typedef tc_operand<double, tc_index, 128, 32, 16, 1, true, 20, 1, 16, 1, false, false> tc_left_tile;
            typedef tc_operand<double, tc_index, 128, 32, 16, 1, true, 20, 8, 16, 1, false, false> tc_right_tile;
            tc_pipeline<128, 16, 3, tc_left_tile, tc_right_tile, tc_index, decltype(tc_offsets)> tc_pipe(
                tc_left_tile(tc_left_start, tc_left, tc_left_rows, (tc_index *)tc_left_ks),
                tc_right_tile(tc_right_start, tc_right, tc_right_columns, (tc_index *)tc_right_ks),
                (tc_index *)tc_left_ks, (tc_index *)tc_right_ks, tc_offsets, tc_depth, tc_last, tc_first, tc_steps);
            tc_multiply_by_warps<16, 2, 4>(tc_sum, tc_pipe, tc_top, tc_side, tc_scale);
        } else {
            __syncthreads();
        }
    }
    {
        const tc_int N_o = tc_anew(tc_given0);
        const tc_int N_v = tc_anew(tc_given1);
        if (N_o%2 == 0 && (unsigned long long)r%16 == 0) {
            #pragma unroll
            for (int tc_r = 0; tc_r < 2; ++tc_r) {
                const tc_int tc_i = tc_out_row[tc_y + tc_r*8];
                #pragma unroll
                for (int tc_c = 0; tc_c < 4; tc_c += 2) {
                    const tc_int tc_j = tc_out_column[tc_x + tc_c/2*8 + tc_c%2];
                    if (tc_i >= 0 && tc_j >= 0) tc_store_pair(r + (tc_i + tc_j), tc_sum[tc_r][tc_c], tc_sum[tc_r][tc_c + 1]);
                }
            }
        } else {
            #pragma unroll
            for (int tc_r = 0; tc_r < 2; ++tc_r) {
                const tc_int tc_i = tc_out_row[tc_y + tc_r*8];
                #pragma unroll
                for (int tc_c = 0; tc_c < 4; ++tc_c) {
                    const tc_int tc_j = tc_out_column[tc_x + tc_c/2*8 + tc_c%2];
                    if (tc_i >= 0 && tc_j >= 0) r[tc_i + tc_j] = tc_sum[tc_r][tc_c];
                }
            }
        }
    }
}

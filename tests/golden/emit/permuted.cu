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
    char *__restrict__ tc_scratch,
    const tc_int N_o,
    const tc_int N_v)
{
    __shared__ __align__(16) double tc_left[3][16][68];
    __shared__ __align__(16) double tc_right[3][16][36];
    __shared__ tc_int tc_left_row[64], tc_right_column[32];
    __shared__ tc_int tc_left_deep[2][16], tc_right_deep[2][16];
    __shared__ tc_int tc_out_row[64], tc_out_column[32];
    const int tc_lane = threadIdx.x%32, tc_warp = threadIdx.x/32;
    const int tc_top = tc_warp/2*32, tc_side = tc_warp%2*16;
    const int tc_y = tc_top + tc_lane/4, tc_x = tc_side + tc_lane%4*2;
    tc_int tc_block = blockIdx.x;
    const tc_int tc_c1_points = N_o;
    const tc_int tc_c1_tiles = tc_tiles(tc_c1_points, 8);
    const tc_int tc_c1_first = tc_block%tc_c1_tiles*8;
    tc_block /= tc_c1_tiles;
    const tc_int tc_c0_points = N_v;
    const tc_int tc_c0_tiles = tc_tiles(tc_c0_points, 4);
    const tc_int tc_c0_first = tc_block%tc_c0_tiles*4;
    tc_block /= tc_c0_tiles;
    const tc_int tc_r0_points = N_o*N_v;
    const tc_int tc_r0_tiles = tc_tiles(tc_r0_points, 64);
    const tc_int tc_r0_first = tc_block%tc_r0_tiles*64;
    tc_block /= tc_r0_tiles;
    for (int tc_n = threadIdx.x; tc_n < 64; tc_n += 128) {
        const tc_int tc_r0 = tc_r0_first + tc_n;
        tc_int tc_r0_rest = tc_min(tc_r0, tc_r0_points - 1);
        const tc_int b = tc_r0_rest%N_v;
        tc_r0_rest /= N_v;
        const tc_int i = tc_r0_rest;
        tc_out_row[tc_n] = tc_r0 < tc_r0_points ? i*N_v*N_o + b*N_o : -1;
    }
    for (int tc_n = threadIdx.x; tc_n < 32; tc_n += 128) {
        int tc_m = tc_n;
        const tc_int tc_c1 = tc_c1_first + tc_m%8;
        tc_m /= 8;
        const tc_int j = tc_min(tc_c1, tc_c1_points - 1);
        const tc_int tc_c0 = tc_c0_first + tc_m;
        const tc_int a = tc_min(tc_c0, tc_c0_points - 1);
        tc_out_column[tc_n] = tc_c1 < tc_c1_points && tc_c0 < tc_c0_points ? a*N_o*N_v*N_o + j : -1;
    }
    double tc_sum[4][4];
    #pragma unroll
    for (int tc_r = 0; tc_r < 4; ++tc_r) {
        #pragma unroll
        for (int tc_c = 0; tc_c < 4; ++tc_c) tc_sum[tc_r][tc_c] = 0.0;
    }
    {
        const double *const tc_left_start = u;
        const double *const tc_right_start = t;
        for (int tc_n = threadIdx.x; tc_n < 64; tc_n += 128) {
            const tc_int tc_r0 = tc_r0_first + tc_n;
            tc_int tc_r0_rest = tc_min(tc_r0, tc_r0_points - 1);
            const tc_int b = tc_r0_rest%N_v;
            tc_r0_rest /= N_v;
            const tc_int i = tc_r0_rest;
            tc_left_row[tc_n] = i*N_o*N_v*N_v + b*N_v;
        }
        for (int tc_n = threadIdx.x; tc_n < 32; tc_n += 128) {
            int tc_m = tc_n;
            const tc_int tc_c1 = tc_c1_first + tc_m%8;
            tc_m /= 8;
            const tc_int j = tc_min(tc_c1, tc_c1_points - 1);
            const tc_int tc_c0 = tc_c0_first + tc_m;
            const tc_int a = tc_min(tc_c0, tc_c0_points - 1);
            tc_right_column[tc_n] = j*N_o*N_v + a;
        }
        const tc_int tc_depth = N_o*N_v;
        const tc_int tc_each = tc_tiles(tc_tiles(tc_depth, 16), 2);
        const tc_int tc_first = tc_block*tc_each;
        const tc_int tc_steps = tc_min(tc_each, tc_tiles(tc_depth, 16) - tc_first);
        for (tc_int tc_load = -1; tc_load < tc_steps + 2; ++tc_load) {
            const tc_int tc_step = tc_load - 2;
            tc_cp_async_wait<1>();
            __syncthreads();
            if (tc_load >= 0 && tc_load < tc_steps) {
                const int tc_slot = (int)(tc_load%3);
                const tc_int tc_rest = tc_depth - (tc_first + tc_load)*16;
                if (tc_rest >= 16) {
                    #pragma unroll 4
                    for (int tc_turn = 0; tc_turn < 8; ++tc_turn) {
                        const int tc_n = tc_turn*128 + threadIdx.x;
                        const int tc_k = tc_n%16, tc_m = tc_n/16;
                        tc_copy(&tc_left[tc_slot][tc_k][tc_m], tc_left_start + tc_left_row[tc_m] + tc_left_deep[tc_load&1][tc_k]);
                    }
                    #pragma unroll 4
                    for (int tc_turn = 0; tc_turn < 2; ++tc_turn) {
                        const int tc_n = tc_turn*128 + threadIdx.x;
                        const int tc_m = tc_n%16*2, tc_k = tc_n/16;
                        tc_copy_pair(&tc_right[tc_slot][tc_k][tc_m], tc_right_start + tc_right_deep[tc_load&1][tc_k], tc_right_column[tc_m], tc_right_column[tc_m + 1]);
                    }
                } else {
                    for (int tc_n = threadIdx.x; tc_n < 1024; tc_n += 128) {
                        const int tc_k = tc_n%16, tc_m = tc_n/16;
                        if (tc_k < tc_rest) tc_copy(&tc_left[tc_slot][tc_k][tc_m], tc_left_start + tc_left_row[tc_m] + tc_left_deep[tc_load&1][tc_k]);
                        else tc_left[tc_slot][tc_k][tc_m] = 0.0;
                    }
                    for (int tc_n = threadIdx.x; tc_n < 512; tc_n += 128) {
                        const int tc_m = tc_n%32, tc_k = tc_n/32;
                        if (tc_k < tc_rest) tc_copy(&tc_right[tc_slot][tc_k][tc_m], tc_right_start + tc_right_column[tc_m] + tc_right_deep[tc_load&1][tc_k]);
                        else tc_right[tc_slot][tc_k][tc_m] = 0.0;
                    }
                }
            }
            tc_cp_async_commit();
            if (tc_load + 1 < tc_steps && threadIdx.x < 16) {
                const int tc_n = threadIdx.x;
                tc_int tc_rest = tc_min((tc_first + tc_load + 1)*16 + tc_n, tc_depth - 1);
                const tc_int c = tc_rest%N_v;
                tc_rest /= N_v;
                const tc_int k = tc_rest;
                tc_left_deep[(tc_load + 1)&1][tc_n] = k*N_v*N_v + c;
                tc_right_deep[(tc_load + 1)&1][tc_n] = c*N_o*N_o*N_v + k*N_v;
            }
            if (tc_step >= 0) {
                const int tc_slot = (int)(tc_step%3);
                #pragma unroll
                for (int tc_k = 0; tc_k < 16; tc_k += 8) {
                    double tc_a[2][4], tc_b[2][2];
                    #pragma unroll
                    for (int tc_r = 0; tc_r < 2; ++tc_r) {
                        #pragma unroll
                        for (int tc_n = 0; tc_n < 4; ++tc_n)
                            tc_a[tc_r][tc_n] = -1.5*tc_left[tc_slot][tc_k + tc_lane%4 + tc_n/2*4][tc_y + tc_r*16 + tc_n%2*8];
                    }
                    #pragma unroll
                    for (int tc_c = 0; tc_c < 2; ++tc_c) {
                        #pragma unroll
                        for (int tc_n = 0; tc_n < 2; ++tc_n)
                            tc_b[tc_c][tc_n] = tc_right[tc_slot][tc_k + tc_lane%4 + tc_n*4][tc_side + tc_c*8 + tc_lane/4];
                    }
                    #pragma unroll
                    for (int tc_r = 0; tc_r < 2; ++tc_r) {
                        #pragma unroll
                        for (int tc_c = 0; tc_c < 2; ++tc_c)
                            tc_product(tc_sum[2*tc_r][2*tc_c], tc_sum[2*tc_r][2*tc_c + 1],
                                tc_sum[2*tc_r + 1][2*tc_c], tc_sum[2*tc_r + 1][2*tc_c + 1],
                                tc_a[tc_r], tc_b[tc_c]);
                    }
                }
            }
        }
    }
    {
        const double *const tc_left_start = u;
        const double *const tc_right_start = t;
        for (int tc_n = threadIdx.x; tc_n < 64; tc_n += 128) {
            const tc_int tc_r0 = tc_r0_first + tc_n;
            tc_int tc_r0_rest = tc_min(tc_r0, tc_r0_points - 1);
            const tc_int b = tc_r0_rest%N_v;
            tc_r0_rest /= N_v;
            const tc_int i = tc_r0_rest;
            tc_left_row[tc_n] = i*N_o*N_v*N_v + b*N_v;
        }
        for (int tc_n = threadIdx.x; tc_n < 32; tc_n += 128) {
            int tc_m = tc_n;
            const tc_int tc_c1 = tc_c1_first + tc_m%8;
            tc_m /= 8;
            const tc_int j = tc_min(tc_c1, tc_c1_points - 1);
            const tc_int tc_c0 = tc_c0_first + tc_m;
            const tc_int a = tc_min(tc_c0, tc_c0_points - 1);
            tc_right_column[tc_n] = j*N_o*N_v + a;
        }
        const tc_int tc_depth = N_o*N_v;
        const tc_int tc_each = tc_tiles(tc_tiles(tc_depth, 16), 2);
        const tc_int tc_first = tc_block*tc_each;
        const tc_int tc_steps = tc_min(tc_each, tc_tiles(tc_depth, 16) - tc_first);
        for (tc_int tc_load = -1; tc_load < tc_steps + 2; ++tc_load) {
            const tc_int tc_step = tc_load - 2;
            tc_cp_async_wait<1>();
            __syncthreads();
            if (tc_load >= 0 && tc_load < tc_steps) {
                const int tc_slot = (int)(tc_load%3);
                const tc_int tc_rest = tc_depth - (tc_first + tc_load)*16;
                if (tc_rest >= 16) {
                    #pragma unroll 4
                    for (int tc_turn = 0; tc_turn < 8; ++tc_turn) {
                        const int tc_n = tc_turn*128 + threadIdx.x;
                        const int tc_k = tc_n%16, tc_m = tc_n/16;
                        tc_copy(&tc_left[tc_slot][tc_k][tc_m], tc_left_start + tc_left_row[tc_m] + tc_left_deep[tc_load&1][tc_k]);
                    }
                    #pragma unroll 4
                    for (int tc_turn = 0; tc_turn < 2; ++tc_turn) {
                        const int tc_n = tc_turn*128 + threadIdx.x;
                        const int tc_m = tc_n%16*2, tc_k = tc_n/16;
                        tc_copy_pair(&tc_right[tc_slot][tc_k][tc_m], tc_right_start + tc_right_deep[tc_load&1][tc_k], tc_right_column[tc_m], tc_right_column[tc_m + 1]);
                    }
                } else {
                    for (int tc_n = threadIdx.x; tc_n < 1024; tc_n += 128) {
                        const int tc_k = tc_n%16, tc_m = tc_n/16;
                        if (tc_k < tc_rest) tc_copy(&tc_left[tc_slot][tc_k][tc_m], tc_left_start + tc_left_row[tc_m] + tc_left_deep[tc_load&1][tc_k]);
                        else tc_left[tc_slot][tc_k][tc_m] = 0.0;
                    }
                    for (int tc_n = threadIdx.x; tc_n < 512; tc_n += 128) {
                        const int tc_m = tc_n%32, tc_k = tc_n/32;
                        if (tc_k < tc_rest) tc_copy(&tc_right[tc_slot][tc_k][tc_m], tc_right_start + tc_right_column[tc_m] + tc_right_deep[tc_load&1][tc_k]);
                        else tc_right[tc_slot][tc_k][tc_m] = 0.0;
                    }
                }
            }
            tc_cp_async_commit();
            if (tc_load + 1 < tc_steps && threadIdx.x < 16) {
                const int tc_n = threadIdx.x;
                tc_int tc_rest = tc_min((tc_first + tc_load + 1)*16 + tc_n, tc_depth - 1);
                const tc_int a_2 = tc_rest%N_v;
                tc_rest /= N_v;
                const tc_int k_2 = tc_rest;
                tc_left_deep[(tc_load + 1)&1][tc_n] = k_2*N_v*N_v + a_2;
                tc_right_deep[(tc_load + 1)&1][tc_n] = a_2*N_o*N_o*N_v + k_2*N_v;
            }
            if (tc_step >= 0) {
                const int tc_slot = (int)(tc_step%3);
                #pragma unroll
                for (int tc_k = 0; tc_k < 16; tc_k += 8) {
                    double tc_a[2][4], tc_b[2][2];
                    #pragma unroll
                    for (int tc_r = 0; tc_r < 2; ++tc_r) {
                        #pragma unroll
                        for (int tc_n = 0; tc_n < 4; ++tc_n)
                            tc_a[tc_r][tc_n] = tc_left[tc_slot][tc_k + tc_lane%4 + tc_n/2*4][tc_y + tc_r*16 + tc_n%2*8];
                    }
                    #pragma unroll
                    for (int tc_c = 0; tc_c < 2; ++tc_c) {
                        #pragma unroll
                        for (int tc_n = 0; tc_n < 2; ++tc_n)
                            tc_b[tc_c][tc_n] = tc_right[tc_slot][tc_k + tc_lane%4 + tc_n*4][tc_side + tc_c*8 + tc_lane/4];
                    }
                    #pragma unroll
                    for (int tc_r = 0; tc_r < 2; ++tc_r) {
                        #pragma unroll
                        for (int tc_c = 0; tc_c < 2; ++tc_c)
                            tc_product(tc_sum[2*tc_r][2*tc_c], tc_sum[2*tc_r][2*tc_c + 1],
                                tc_sum[2*tc_r + 1][2*tc_c], tc_sum[2*tc_r + 1][2*tc_c + 1],
                                tc_a[tc_r], tc_b[tc_c]);
                    }
                }
            }
        }
    }
    {
        const double *const tc_left_start = u;
        const double *const tc_right_start = s;
        for (int tc_n = threadIdx.x; tc_n < 64; tc_n += 128) {
            const tc_int tc_r0 = tc_r0_first + tc_n;
            tc_int tc_r0_rest = tc_min(tc_r0, tc_r0_points - 1);
            const tc_int b = tc_r0_rest%N_v;
            tc_r0_rest /= N_v;
            const tc_int i = tc_r0_rest;
            tc_left_row[tc_n] = i*N_o*N_v*N_v + i*N_v*N_v + b*N_v;
        }
        for (int tc_n = threadIdx.x; tc_n < 32; tc_n += 128) {
            int tc_m = tc_n;
            const tc_int tc_c1 = tc_c1_first + tc_m%8;
            tc_m /= 8;
            const tc_int j = tc_min(tc_c1, tc_c1_points - 1);
            const tc_int tc_c0 = tc_c0_first + tc_m;
            const tc_int a = tc_min(tc_c0, tc_c0_points - 1);
            tc_right_column[tc_n] = j*N_v*N_v + a*N_v;
        }
        const tc_int tc_depth = N_v;
        const tc_int tc_each = tc_tiles(tc_tiles(tc_depth, 16), 2);
        const tc_int tc_first = tc_block*tc_each;
        const tc_int tc_steps = tc_min(tc_each, tc_tiles(tc_depth, 16) - tc_first);
        for (tc_int tc_load = -1; tc_load < tc_steps + 2; ++tc_load) {
            const tc_int tc_step = tc_load - 2;
            tc_cp_async_wait<1>();
            __syncthreads();
            if (tc_load >= 0 && tc_load < tc_steps) {
                const int tc_slot = (int)(tc_load%3);
                const tc_int tc_rest = tc_depth - (tc_first + tc_load)*16;
                if (tc_rest >= 16) {
                    #pragma unroll 4
                    for (int tc_turn = 0; tc_turn < 8; ++tc_turn) {
                        const int tc_n = tc_turn*128 + threadIdx.x;
                        const int tc_k = tc_n%16, tc_m = tc_n/16;
                        tc_copy(&tc_left[tc_slot][tc_k][tc_m], tc_left_start + tc_left_row[tc_m] + tc_left_deep[tc_load&1][tc_k]);
                    }
                    #pragma unroll 4
                    for (int tc_turn = 0; tc_turn < 4; ++tc_turn) {
                        const int tc_n = tc_turn*128 + threadIdx.x;
                        const int tc_k = tc_n%16, tc_m = tc_n/16;
                        tc_copy(&tc_right[tc_slot][tc_k][tc_m], tc_right_start + tc_right_column[tc_m] + tc_right_deep[tc_load&1][tc_k]);
                    }
                } else {
                    for (int tc_n = threadIdx.x; tc_n < 1024; tc_n += 128) {
                        const int tc_k = tc_n%16, tc_m = tc_n/16;
                        if (tc_k < tc_rest) tc_copy(&tc_left[tc_slot][tc_k][tc_m], tc_left_start + tc_left_row[tc_m] + tc_left_deep[tc_load&1][tc_k]);
                        else tc_left[tc_slot][tc_k][tc_m] = 0.0;
                    }
                    for (int tc_n = threadIdx.x; tc_n < 512; tc_n += 128) {
                        const int tc_k = tc_n%16, tc_m = tc_n/16;
                        if (tc_k < tc_rest) tc_copy(&tc_right[tc_slot][tc_k][tc_m], tc_right_start + tc_right_column[tc_m] + tc_right_deep[tc_load&1][tc_k]);
                        else tc_right[tc_slot][tc_k][tc_m] = 0.0;
                    }
                }
            }
            tc_cp_async_commit();
            if (tc_load + 1 < tc_steps && threadIdx.x < 16) {
                const int tc_n = threadIdx.x;
                const tc_int c_2 = tc_min((tc_first + tc_load + 1)*16 + tc_n, tc_depth - 1);
                tc_left_deep[(tc_load + 1)&1][tc_n] = c_2;
                tc_right_deep[(tc_load + 1)&1][tc_n] = c_2;
            }
            if (tc_step >= 0) {
                const int tc_slot = (int)(tc_step%3);
                #pragma unroll
                for (int tc_k = 0; tc_k < 16; tc_k += 8) {
                    double tc_a[2][4], tc_b[2][2];
                    #pragma unroll
                    for (int tc_r = 0; tc_r < 2; ++tc_r) {
                        #pragma unroll
                        for (int tc_n = 0; tc_n < 4; ++tc_n)
                            tc_a[tc_r][tc_n] = tc_left[tc_slot][tc_k + tc_lane%4 + tc_n/2*4][tc_y + tc_r*16 + tc_n%2*8];
                    }
                    #pragma unroll
                    for (int tc_c = 0; tc_c < 2; ++tc_c) {
                        #pragma unroll
                        for (int tc_n = 0; tc_n < 2; ++tc_n)
                            tc_b[tc_c][tc_n] = tc_right[tc_slot][tc_k + tc_lane%4 + tc_n*4][tc_side + tc_c*8 + tc_lane/4];
                    }
                    #pragma unroll
                    for (int tc_r = 0; tc_r < 2; ++tc_r) {
                        #pragma unroll
                        for (int tc_c = 0; tc_c < 2; ++tc_c)
                            tc_product(tc_sum[2*tc_r][2*tc_c], tc_sum[2*tc_r][2*tc_c + 1],
                                tc_sum[2*tc_r + 1][2*tc_c], tc_sum[2*tc_r + 1][2*tc_c + 1],
                                tc_a[tc_r], tc_b[tc_c]);
                    }
                }
            }
        }
    }
    double *const tc_parts = (double *)tc_scratch + (tc_int)blockIdx.x*2048;
    #pragma unroll
    for (int tc_r = 0; tc_r < 4; ++tc_r) {
        #pragma unroll
        for (int tc_c = 0; tc_c < 4; ++tc_c) tc_parts[(tc_r*4 + tc_c)*128 + threadIdx.x] = tc_sum[tc_r][tc_c];
    }
}

/* The second pass: adds the parts of each sum in order. */
extern "C" __global__ void __launch_bounds__(128, 1)
tcgen_permuted_0_finish(
    double *__restrict__ r,
    const double *__restrict__ t,
    const double *__restrict__ u,
    const double *__restrict__ s,
    char *__restrict__ tc_scratch,
    const tc_int N_o,
    const tc_int N_v)
{
    __shared__ tc_int tc_out_row[64], tc_out_column[32];
    const int tc_lane = threadIdx.x%32, tc_warp = threadIdx.x/32;
    const int tc_top = tc_warp/2*32, tc_side = tc_warp%2*16;
    const int tc_y = tc_top + tc_lane/4, tc_x = tc_side + tc_lane%4*2;
    tc_int tc_block = blockIdx.x;
    const tc_int tc_c1_points = N_o;
    const tc_int tc_c1_tiles = tc_tiles(tc_c1_points, 8);
    const tc_int tc_c1_first = tc_block%tc_c1_tiles*8;
    tc_block /= tc_c1_tiles;
    const tc_int tc_c0_points = N_v;
    const tc_int tc_c0_tiles = tc_tiles(tc_c0_points, 4);
    const tc_int tc_c0_first = tc_block%tc_c0_tiles*4;
    tc_block /= tc_c0_tiles;
    const tc_int tc_r0_points = N_o*N_v;
    const tc_int tc_r0_tiles = tc_tiles(tc_r0_points, 64);
    const tc_int tc_r0_first = tc_block%tc_r0_tiles*64;
    tc_block /= tc_r0_tiles;
    for (int tc_n = threadIdx.x; tc_n < 64; tc_n += 128) {
        const tc_int tc_r0 = tc_r0_first + tc_n;
        tc_int tc_r0_rest = tc_min(tc_r0, tc_r0_points - 1);
        const tc_int b = tc_r0_rest%N_v;
        tc_r0_rest /= N_v;
        const tc_int i = tc_r0_rest;
        tc_out_row[tc_n] = tc_r0 < tc_r0_points ? i*N_v*N_o + b*N_o : -1;
    }
    for (int tc_n = threadIdx.x; tc_n < 32; tc_n += 128) {
        int tc_m = tc_n;
        const tc_int tc_c1 = tc_c1_first + tc_m%8;
        tc_m /= 8;
        const tc_int j = tc_min(tc_c1, tc_c1_points - 1);
        const tc_int tc_c0 = tc_c0_first + tc_m;
        const tc_int a = tc_min(tc_c0, tc_c0_points - 1);
        tc_out_column[tc_n] = tc_c1 < tc_c1_points && tc_c0 < tc_c0_points ? a*N_o*N_v*N_o + j : -1;
    }
    __syncthreads();
    for (int tc_r = 0; tc_r < 4; ++tc_r) {
        const tc_int tc_i = tc_out_row[tc_y + tc_r*8];
        for (int tc_c = 0; tc_c < 4; ++tc_c) {
            const tc_int tc_j = tc_out_column[tc_x + tc_c/2*8 + tc_c%2];
            double tc_sum = 0.0;
            for (tc_int tc_n = 0; tc_n < 2; ++tc_n) {
                tc_sum += ((const double *)tc_scratch)[(tc_n*(tc_int)gridDim.x + blockIdx.x)*2048 + (tc_r*4 + tc_c)*128 + threadIdx.x];
            }
            if (tc_i >= 0 && tc_j >= 0) r[tc_i + tc_j] = tc_sum;
        }
    }
}

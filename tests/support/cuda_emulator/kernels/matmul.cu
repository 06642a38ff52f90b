// c = a b: 32 x 32 tiles, k in steps of 8, double-buffered by cp.async, 2 x 2 elements a thread.
// Extents of a and b are multiples of 2, so that 16 bytes are whole elements of a row.
#define TILE 32
#define STEP 8

__device__ __forceinline__ void fetch(double (*a_tile)[STEP], double (*b_tile)[TILE],
                                      const double *a, const double *b, int row, int column, int k0,
                                      int n, int m, int k) {
    const int i = threadIdx.x / 4, l = threadIdx.x % 4 * 2;  // 32 x 8 elements of a, 2 a thread
    if (row + i < n && k0 + l < k)
        tc_cp_async<16>(&a_tile[i][l], &a[(long long)(row + i) * k + k0 + l]);
    else
        a_tile[i][l] = a_tile[i][l + 1] = 0;
    const int q = threadIdx.x / 16, j = threadIdx.x % 16 * 2;  // 8 x 32 elements of b
    if (k0 + q < k && column + j < m)
        tc_cp_async<16>(&b_tile[q][j], &b[(long long)(k0 + q) * m + column + j]);
    else
        b_tile[q][j] = b_tile[q][j + 1] = 0;
    tc_cp_async_commit();
}

extern "C" __global__ void __launch_bounds__(128)
matmul(const double *__restrict__ a, const double *__restrict__ b, double *__restrict__ c, int n,
       int m, int k) {
    __shared__ __align__(16) double a_tile[2][TILE][STEP];
    __shared__ __align__(16) double b_tile[2][STEP][TILE];
    const int row = blockIdx.y * TILE, column = blockIdx.x * TILE;
    const int i = threadIdx.x / 16 * 4, j = threadIdx.x % 16 * 2;
    double sum[4][2] = {};
    fetch(a_tile[0], b_tile[0], a, b, row, column, 0, n, m, k);
    const int steps = (k + STEP - 1) / STEP;
    for (int s = 0; s < steps; ++s) {
        if (s + 1 < steps) {
            fetch(a_tile[(s + 1) % 2], b_tile[(s + 1) % 2], a, b, row, column, (s + 1) * STEP, n, m, k);
            tc_cp_async_wait<1>();
        } else {
            tc_cp_async_wait<0>();
        }
        __syncthreads();
#pragma unroll
        for (int l = 0; l < STEP; ++l)
#pragma unroll
            for (int p = 0; p < 4; ++p)
#pragma unroll
                for (int q = 0; q < 2; ++q)
                    sum[p][q] += a_tile[s % 2][i + p][l] * b_tile[s % 2][l][j + q];
        __syncthreads();
    }
#pragma unroll
    for (int p = 0; p < 4; ++p)
        if (row + i + p < n && column + j < m) {
            const double2 pair = make_double2(sum[p][0], sum[p][1]);
            *(double2 *)&c[(long long)(row + i + p) * m + column + j] = pair;
        }
}

// b[j,i] = a[i,j], through a tile in shared memory.
extern "C" __global__ void __launch_bounds__(256, 2)
transpose(const double *__restrict__ a, double *__restrict__ b, int n, int m) {
    __shared__ double tile[16][17];
    int j = blockIdx.x * 16 + threadIdx.x, i = blockIdx.y * 16 + threadIdx.y;
    if (j < m && i < n) tile[threadIdx.y][threadIdx.x] = a[(long long)i * m + j];
    __syncthreads();
    i = blockIdx.y * 16 + threadIdx.x;
    j = blockIdx.x * 16 + threadIdx.y;
    if (i < n && j < m) b[(long long)j * n + i] = tile[threadIdx.x][threadIdx.y];
}

// The sum of x: a partial sum for each block, then one block over the partial sums.
template <class T> __device__ __forceinline__ T block_sum(T value) {
    __shared__ T partial[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(0xffffffffu, value, step);
    if (lane == 0) partial[warp] = value;
    __syncthreads();
    value = threadIdx.x < blockDim.x / 32 ? partial[lane] : T(0);
    if (warp == 0) {
#pragma unroll
        for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(0xffffffffu, value, step);
    }
    return value;
}

extern "C" __global__ void __launch_bounds__(128)
partial_sums(const double *__restrict__ x, double *__restrict__ sums, long long n) {
    double value = 0;
    const long long stride = (long long)gridDim.x * blockDim.x;  // a grid-stride loop
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
        value += x[i];
    value = block_sum(value);
    if (threadIdx.x == 0) sums[blockIdx.x] = value;
}

extern "C" __global__ void __launch_bounds__(128)
whole_sum(const double *__restrict__ sums, double *__restrict__ result, int n) {
    double value = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) value += sums[i];
    value = block_sum(value);
    if (threadIdx.x == 0) *result = value;
}

// The same in dynamic shared memory, for any power of two of threads.
extern "C" __global__ void tree_sum(const float *__restrict__ x, float *__restrict__ result, int n) {
    extern __shared__ __align__(16) float values[];
    float value = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) value += x[i];
    values[threadIdx.x] = value;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) values[threadIdx.x] += values[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) *result = values[0];
}

// Counts, extremes and sums by atomics; fails nowhere but in the order of the sum.
extern "C" __global__ void statistics(const int *__restrict__ x, int *__restrict__ counts,
                                      int *__restrict__ extremes, double *__restrict__ sum, int n) {
    __shared__ int mine[8];
    if (threadIdx.x < 8) mine[threadIdx.x] = 0;
    __syncthreads();
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        atomicAdd(&mine[x[i] % 8], 1);
        atomicMin(&extremes[0], x[i]);
        atomicMax(&extremes[1], x[i]);
        atomicAdd(sum, (double)x[i]);
    }
    __syncthreads();
    if (threadIdx.x < 8) atomicAdd(&counts[threadIdx.x], mine[threadIdx.x]);
}

// The largest of x by compare-and-swap, as CUDA has no atomicMax of double.
extern "C" __global__ void largest(const double *__restrict__ x, unsigned long long *__restrict__ bits, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long old = atomicCAS(bits, 0ull, 0ull);
    while (__longlong_as_double((long long)old) < x[i]) {
        const unsigned long long expected = old;
        old = atomicCAS(bits, expected, (unsigned long long)__double_as_longlong(x[i]));
        if (old == expected) break;
    }
}

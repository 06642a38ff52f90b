// What lanes tell each other: every kind of shuffle and vote; each writes a row of the result.
template <class T> __device__ void shuffles(const T *x, T *y, int width) {
    const int lane = threadIdx.x;
    const T value = x[lane];
    y[lane] = __shfl_sync(0xffffffffu, value, lane + 3, width);
    y[32 + lane] = __shfl_up_sync(0xffffffffu, value, 5, width);
    y[64 + lane] = __shfl_down_sync(0xffffffffu, value, 5, width);
    y[96 + lane] = __shfl_xor_sync(0xffffffffu, value, 9, width);
}

extern "C" __global__ void shuffle_float(const float *__restrict__ x, float *__restrict__ y, int width) {
    shuffles(x, y, width);
}
extern "C" __global__ void shuffle_double(const double *__restrict__ x, double *__restrict__ y, int width) {
    shuffles(x, y, width);
}
extern "C" __global__ void shuffle_int(const int *__restrict__ x, int *__restrict__ y, int width) {
    shuffles(x, y, width);
}
extern "C" __global__ void shuffle_long(const long long *__restrict__ x, long long *__restrict__ y, int width) {
    shuffles(x, y, width);
}

// The lower half sums, the upper half takes the largest: masks of two halves.
extern "C" __global__ void halves(const int *__restrict__ x, int *__restrict__ y) {
    int value = x[threadIdx.x];
    if (threadIdx.x < 16) {
        for (int step = 8; step > 0; step /= 2) value += __shfl_xor_sync(0x0000ffffu, value, step);
    } else {
        for (int step = 8; step > 0; step /= 2)
            value = max(value, __shfl_xor_sync(0xffff0000u, value, step));
    }
    y[threadIdx.x] = value;
}

extern "C" __global__ void votes(const int *__restrict__ x, unsigned *__restrict__ y, int n) {
    const int odd = x[threadIdx.x] % 2;
    const int count = __syncthreads_count(odd), some = __syncthreads_or(odd), all = __syncthreads_and(odd);
    const unsigned ballot = __ballot_sync(0xffffffffu, odd);
    const int any_lane = __any_sync(0xffffffffu, odd), all_lanes = __all_sync(0xffffffffu, odd);
    unsigned *mine = y + 6 * threadIdx.x;
    mine[0] = ballot;
    mine[1] = any_lane;
    mine[2] = all_lanes;
    mine[3] = count;
    mine[4] = some;
    mine[5] = all;
}

// Neighbours exchange through shared memory, ordered by the warp's own barrier.
extern "C" __global__ void exchange(const double *__restrict__ x, double *__restrict__ y) {
    __shared__ double values[64];
    values[threadIdx.x] = x[threadIdx.x];
    __syncwarp();
    y[threadIdx.x] = values[threadIdx.x ^ 1];
}

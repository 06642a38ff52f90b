// c += a b of one fragment of each shape of mma.sync for .f64, by one warp. Matrices lie by rows.
template <int M, int K> struct Fragment {
    double a[M * K / 32], b[K / 4], c[M / 4];
    __device__ __forceinline__ void load(const double *x, const double *y, const double *z) {
        const int g = threadIdx.x / 4, t = threadIdx.x % 4;
#pragma unroll
        for (int i = 0; i < M * K / 32; ++i)
            a[i] = x[(g + 8 * (i % (M / 8))) * K + t + 4 * (i / (M / 8))];
#pragma unroll
        for (int i = 0; i < K / 4; ++i) b[i] = y[(t + 4 * i) * 8 + g];
#pragma unroll
        for (int i = 0; i < M / 4; ++i) c[i] = z[(g + 8 * (i / 2)) * 8 + 2 * t + i % 2];
    }
    __device__ __forceinline__ void store(double *z) const {
        const int g = threadIdx.x / 4, t = threadIdx.x % 4;
#pragma unroll
        for (int i = 0; i < M / 4; ++i) z[(g + 8 * (i / 2)) * 8 + 2 * t + i % 2] = c[i];
    }
};

extern "C" __global__ void __launch_bounds__(32)
m8n8k4(const double *__restrict__ a, const double *__restrict__ b, double *__restrict__ c) {
    Fragment<8, 4> f;
    f.load(a, b, c);
    tc_mma_m8n8k4(f.c, f.a, f.b);
    f.store(c);
}

#if __CUDA_ARCH__ >= 900
extern "C" __global__ void __launch_bounds__(32)
m16n8k4(const double *__restrict__ a, const double *__restrict__ b, double *__restrict__ c) {
    Fragment<16, 4> f;
    f.load(a, b, c);
    tc_mma_m16n8k4(f.c, f.a, f.b);
    f.store(c);
}

extern "C" __global__ void __launch_bounds__(32)
m16n8k8(const double *__restrict__ a, const double *__restrict__ b, double *__restrict__ c) {
    Fragment<16, 8> f;
    f.load(a, b, c);
    tc_mma_m16n8k8(f.c, f.a, f.b);
    f.store(c);
}

extern "C" __global__ void __launch_bounds__(32)
m16n8k16(const double *__restrict__ a, const double *__restrict__ b, double *__restrict__ c) {
    Fragment<16, 16> f;
    f.load(a, b, c);
    tc_mma_m16n8k16(f.c, f.a, f.b);
    f.store(c);
}
#endif

// Vector loads and stores, constants, cache hints.
__constant__ double weights[4] = {1, 2, 4, 8};

extern "C" __global__ void scale(const double2 *__restrict__ x, double2 *__restrict__ y,
                                 const float4 *__restrict__ u, float4 *__restrict__ v, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const double2 a = __ldg(&x[i]);
    const double w = weights[i % 4];
    __stcs(&y[i], make_double2(w * a.x, w * a.y));
    const float4 b = u[i];
    v[i] = make_float4(b.w, b.z, b.y, fmaxf(b.x, 0.0f));
}

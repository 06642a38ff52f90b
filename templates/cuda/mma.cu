/* Products of small matrices by the lanes of a warp. Lane 4*g + t holds, of A (16 x k), rows g and
 * g + 8 at columns t, t + 4, ...; of B (k x 8), column g at rows t, t + 4, ...; of D (16 x 8), rows
 * g and g + 8 at columns 2*t and 2*t + 1 (PTX ISA, mma.m16n8k4, k8 and k16 with .f64).
 */
#ifndef TCGEN_EMULATE
#if __CUDA_ARCH__ >= 800
__device__ __forceinline__ void tc_mma_m8n8k4(
    double (&d)[2], const double (&a)[1], const double (&b)[1])
{
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
        : "+d"(d[0]), "+d"(d[1]) : "d"(a[0]), "d"(b[0]));
}
#else
__device__ __forceinline__ void tc_mma_m8n8k4(
    double (&d)[2], const double (&a)[1], const double (&b)[1])
{
    const int lane = threadIdx.x%32, row = lane/4*4, column = lane%4*8;
    for (int k = 0; k < 4; ++k) {
        const double left = __shfl_sync(0xffffffffu, a[0], row + k);
        d[0] += left*__shfl_sync(0xffffffffu, b[0], column + k);
        d[1] += left*__shfl_sync(0xffffffffu, b[0], column + 4 + k);
    }
}
#endif
#if __CUDA_ARCH__ >= 900
__device__ __forceinline__ void tc_mma_m16n8k8(
    double (&d)[4], const double (&a)[4], const double (&b)[2])
{
    asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
        : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
}
#endif
#endif

/* D += A B of 16 x 8 and 8 x 8: one instruction from sm_90 on, else four of 8 x 8 x 4. */
__device__ __forceinline__ void tc_product(double &upper_left, double &upper_right,
    double &lower_left, double &lower_right, const double (&a)[4], const double (&b)[2])
{
#if __CUDA_ARCH__ >= 900
    double d[4] = {upper_left, upper_right, lower_left, lower_right};
    tc_mma_m16n8k8(d, a, b);
    upper_left = d[0];
    upper_right = d[1];
    lower_left = d[2];
    lower_right = d[3];
#else
    double upper[2] = {upper_left, upper_right}, lower[2] = {lower_left, lower_right};
    #pragma unroll
    for (int k = 0; k < 2; ++k) {
        const double top[1] = {a[2*k]}, bottom[1] = {a[2*k + 1]}, right[1] = {b[k]};
        tc_mma_m8n8k4(upper, top, right);
        tc_mma_m8n8k4(lower, bottom, right);
    }
    upper_left = upper[0];
    upper_right = upper[1];
    lower_left = lower[0];
    lower_right = lower[1];
#endif
}

#ifndef INFINITY
#define INFINITY (1e308*10.0)
#endif

/* Maximum and minimum as NumPy's: NaN if either is NaN. */
#define TC_FUNCTIONS(kind, type, remainder, with_sign)                              \
    __device__ __forceinline__ type tc_maximum_##kind(type a, type b)               \
    {                                                                               \
        return a > b || a != a ? a : b;                                             \
    }                                                                               \
    __device__ __forceinline__ type tc_minimum_##kind(type a, type b)               \
    {                                                                               \
        return a < b || a != a ? a : b;                                             \
    }                                                                               \
    __device__ __forceinline__ type tc_signum_##kind(type x)                        \
    {                                                                               \
        return x > 0 ? 1 : x < 0 ? -1 : x == 0 ? 0 : x;                             \
    }                                                                               \
    __device__ __forceinline__ type tc_mod_##kind(type x, type y)                   \
    {                                                                               \
        const type rest = remainder(x, y);                                          \
        if (rest == 0) return with_sign(rest, y);                                   \
        return (rest < 0) == (y < 0) ? rest : rest + y;                             \
    }                                                                               \
    __device__ __forceinline__ type tc_where_##kind(type condition, type x, type y) \
    {                                                                               \
        return condition != 0 ? x : y;                                              \
    }
TC_FUNCTIONS(d, double, fmod, copysign)
TC_FUNCTIONS(s, float, fmodf, copysignf)
__device__ __forceinline__ tc_complex tc_where_z(double condition, tc_complex x, tc_complex y)
{
    return condition != 0 ? x : y;
}

struct tc_by_max {
    __device__ __forceinline__ double operator()(double a, double b) { return tc_maximum_d(a, b); }
};
struct tc_by_min {
    __device__ __forceinline__ double operator()(double a, double b) { return tc_minimum_d(a, b); }
};
struct tc_by_prod {
    template <typename T>
    __device__ __forceinline__ T operator()(T a, T b) { return a*b; }
};

/* As tc_block_sum, by another operation. */
template <typename Operation, typename T>
__device__ __forceinline__ T tc_block_reduce(T value)
{
    __shared__ T parts[32];
    Operation reduce;
    for (int lanes = 16; lanes > 0; lanes >>= 1) value = reduce(value, tc_down(value, lanes));
    if (threadIdx.x%32 == 0) parts[threadIdx.x/32] = value;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int warp = 1; warp < (int)blockDim.x/32; ++warp) value = reduce(value, parts[warp]);
    }
    __syncthreads();
    return value;
}

#ifndef INFINITY
#define INFINITY (1e308*10.0)
#endif

/* Maximum and minimum as NumPy's: NaN if either is NaN. */
#define TC_FUNCTIONS(kind, type, remainder, with_sign, e, l)                        \
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
    __device__ __forceinline__ type tc_logaddexp_##kind(type x, type y)             \
    {                                                                               \
        const type most = x > y ? x : y, apart = x - y;                             \
        if (x == y) return x + (type)0.693147180559945309417;                       \
        return apart != apart ? apart : most + l(e(apart > 0 ? -apart : apart));    \
    }                                                                               \
    __device__ __forceinline__ type tc_where_##kind(type condition, type x, type y) \
    {                                                                               \
        return condition != 0 ? x : y;                                              \
    }
TC_FUNCTIONS(d, double, fmod, copysign, exp, log1p)
TC_FUNCTIONS(s, float, fmodf, copysignf, expf, log1pf)
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

/* Asynchronous copies to shared memory, which overlap arithmetic (sm_80 and later): of 16, 8 or 4
 * bytes, if ``wanted``; of zeros, if not ``given``. Nothing waits for them but tc_cp_async_wait and
 * the barrier behind it.
 */
#ifndef TCGEN_EMULATE
#if __CUDA_ARCH__ >= 800
__device__ __forceinline__ void tc_cp_async16(
    void *shared, const void *global, bool wanted, bool given)
{
    const unsigned place = (unsigned)__cvta_generic_to_shared(shared);
    asm volatile("{ .reg .pred wanted; setp.ne.s32 wanted, %2, 0;\n"
        "@wanted cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %3; }"
        :: "r"(place), "l"(global), "r"((int)wanted), "r"(given ? 16 : 0));
}
__device__ __forceinline__ void tc_cp_async8(
    void *shared, const void *global, bool wanted, bool given)
{
    const unsigned place = (unsigned)__cvta_generic_to_shared(shared);
    asm volatile("{ .reg .pred wanted; setp.ne.s32 wanted, %2, 0;\n"
        "@wanted cp.async.ca.shared.global [%0], [%1], 8, %3; }"
        :: "r"(place), "l"(global), "r"((int)wanted), "r"(given ? 8 : 0));
}
__device__ __forceinline__ void tc_cp_async4(
    void *shared, const void *global, bool wanted, bool given)
{
    const unsigned place = (unsigned)__cvta_generic_to_shared(shared);
    asm volatile("{ .reg .pred wanted; setp.ne.s32 wanted, %2, 0;\n"
        "@wanted cp.async.ca.shared.global [%0], [%1], 4, %3; }"
        :: "r"(place), "l"(global), "r"((int)wanted), "r"(given ? 4 : 0));
}
__device__ __forceinline__ void tc_cp_async_commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int N>
__device__ __forceinline__ void tc_cp_async_wait()
{
    asm volatile("cp.async.wait_group %0;" :: "n"(N) : "memory");
}
#else
struct __align__(16) tc_bytes16 { long long of[2]; };
__device__ __forceinline__ void tc_cp_async16(
    void *shared, const void *global, bool wanted, bool given)
{
    if (wanted) *(tc_bytes16 *)shared = given ? *(const tc_bytes16 *)global : tc_bytes16{};
}
__device__ __forceinline__ void tc_cp_async8(
    void *shared, const void *global, bool wanted, bool given)
{
    if (wanted) *(long long *)shared = given ? *(const long long *)global : 0;
}
__device__ __forceinline__ void tc_cp_async4(
    void *shared, const void *global, bool wanted, bool given)
{
    if (wanted) *(int *)shared = given ? *(const int *)global : 0;
}
__device__ __forceinline__ void tc_cp_async_commit() {}
template <int N>
__device__ __forceinline__ void tc_cp_async_wait() {}
#endif
#endif

/* WIDTH neighbouring elements, or zeros. */
template <int WIDTH, typename T>
__device__ __forceinline__ void tc_copy(T *shared, const T *global, bool wanted, bool given)
{
    constexpr int BYTES = WIDTH*(int)sizeof(T);
    static_assert(BYTES == 16 || BYTES == 8 || BYTES == 4, "no copy of so many bytes");
    if constexpr (BYTES == 16) tc_cp_async16(shared, global, wanted, given);
    else if constexpr (BYTES == 8) tc_cp_async8(shared, global, wanted, given);
    else tc_cp_async4(shared, global, wanted, given);
}
/* A real operand of a complex product is converted. */
template <int WIDTH>
__device__ __forceinline__ void tc_copy(
    tc_complex *shared, const double *global, bool wanted, bool given)
{
    if (wanted) *shared = tc_complex(given ? *global : 0.0);
}

template <typename T>
__device__ __forceinline__ void tc_add_product(T &sum, T x, T y) { sum += x*y; }
/* Four multiply-adds: the sum of products would be rounded first. */
__device__ __forceinline__ void tc_add_product(tc_complex &sum, tc_complex x, tc_complex y)
{
    sum.re += x.re*y.re;
    sum.im += x.re*y.im;
    sum.re -= x.im*y.im;
    sum.im += x.im*y.re;
}

/* Two neighbours by one store. Results are not read again soon: they leave the cache. */
__device__ __forceinline__ void tc_store_pair(double *place, double first, double second)
{
    __stcs((double2 *)place, make_double2(first, second));
}
__device__ __forceinline__ void tc_store_pair(float *place, float first, float second)
{
    __stcs((float2 *)place, make_float2(first, second));
}
__device__ __forceinline__ void tc_add_pair(float *place, float first, float second)
{
    const float2 held = *(const float2 *)place;
    *(float2 *)place = make_float2(held.x + first, held.y + second);
}
__device__ __forceinline__ void tc_add_pair(double *place, double first, double second)
{
    const double2 held = *(const double2 *)place;
    *(double2 *)place = make_double2(held.x + first, held.y + second);
}

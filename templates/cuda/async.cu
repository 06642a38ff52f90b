/* Asynchronous copies to shared memory, which overlap arithmetic (sm_80 and later): of 16, 8 or 4
 * bytes, if ``wanted``; of zeros, if not ``given``. Nothing waits for them but tc_cp_async_wait and
 * the barrier behind it.
 */
#ifndef TCGEN_EMULATE
#if __CUDA_ARCH__ >= 800
template <int BYTES>
__device__ __forceinline__ void tc_cp_async(
    void *shared, const void *global, bool wanted, bool given)
{
    const unsigned place = (unsigned)__cvta_generic_to_shared(shared);
    const int taken = given ? BYTES : 0;
    if constexpr (BYTES == 16)
        asm volatile("{ .reg .pred wanted; setp.ne.s32 wanted, %2, 0;\n"
            "@wanted cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %3; }"
            :: "r"(place), "l"(global), "r"((int)wanted), "r"(taken));
    else
        asm volatile("{ .reg .pred wanted; setp.ne.s32 wanted, %2, 0;\n"
            "@wanted cp.async.ca.shared.global [%0], [%1], %4, %3; }"
            :: "r"(place), "l"(global), "r"((int)wanted), "r"(taken), "n"(BYTES));
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
template <int BYTES> struct __align__(BYTES) tc_bytes { int of[BYTES/4]; };
template <int BYTES>
__device__ __forceinline__ void tc_cp_async(
    void *shared, const void *global, bool wanted, bool given)
{
    typedef tc_bytes<BYTES> bytes;
    if (wanted) *(bytes *)shared = given ? *(const bytes *)global : bytes{};
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
    tc_cp_async<BYTES>(shared, global, wanted, given);
}
/* The same at once, from any memory. */
template <int WIDTH, typename T>
__device__ __forceinline__ void tc_copy_own(T *shared, const T *source, bool wanted, bool given)
{
    #pragma unroll
    for (int n = 0; n < WIDTH; ++n)
        if (wanted) shared[n] = given ? source[n] : T(0);
}
/* sum += x*y, of numbers or of their complex conjugates. That of complex numbers is four
 * multiply-adds, or two if a factor is real: the sum of products would be rounded first.
 */
template <bool X_CONJUGATED, bool Y_CONJUGATED, typename T, typename X, typename Y>
__device__ __forceinline__ void tc_add_product(T &sum, X x, Y y)
{
    if constexpr (!tc_is_complex<T>) {
        sum += x*y;
    } else {
        sum.re += creal(x)*creal(y);
        if constexpr (tc_is_complex<Y>) sum.im += creal(x)*(Y_CONJUGATED ? -cimag(y) : cimag(y));
        if constexpr (tc_is_complex<X> && tc_is_complex<Y>)
            sum.re += cimag(x)*(X_CONJUGATED == Y_CONJUGATED ? -cimag(y) : cimag(y));
        if constexpr (tc_is_complex<X>) sum.im += cimag(x)*(X_CONJUGATED ? -creal(y) : creal(y));
    }
}

__device__ __forceinline__ double2 tc_pair(double x, double y) { return make_double2(x, y); }
__device__ __forceinline__ float2 tc_pair(float x, float y) { return make_float2(x, y); }

/* Two neighbours by one store. */
template <typename T>
__device__ __forceinline__ void tc_write_pair(T *place, T first, T second)
{
    auto pair = tc_pair(first, second);
    *(decltype(pair) *)place = pair;
}
/* The same of results. They are not read again soon: they leave the cache. */
template <typename T>
__device__ __forceinline__ void tc_store_pair(T *place, T first, T second)
{
    auto pair = tc_pair(first, second);
    __stcs((decltype(pair) *)place, pair);
}
/* Two neighbours by one load. */
template <typename T>
__device__ __forceinline__ void tc_load_pair(const T *place, T &first, T &second)
{
    const auto pair = *(const decltype(tc_pair(first, second)) *)place;
    first = pair.x;
    second = pair.y;
}

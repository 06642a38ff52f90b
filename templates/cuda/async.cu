/* Asynchronous copies to shared memory, which overlap arithmetic (sm_80 and later). */
#ifndef TCGEN_EMULATE
#if __CUDA_ARCH__ >= 800
__device__ __forceinline__ void tc_cp_async16(void *shared, const void *global)
{
    const unsigned place = (unsigned)__cvta_generic_to_shared(shared);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(place), "l"(global) : "memory");
}
__device__ __forceinline__ void tc_cp_async8(void *shared, const void *global)
{
    const unsigned place = (unsigned)__cvta_generic_to_shared(shared);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" :: "r"(place), "l"(global) : "memory");
}
__device__ __forceinline__ void tc_cp_async4(void *shared, const void *global)
{
    const unsigned place = (unsigned)__cvta_generic_to_shared(shared);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(place), "l"(global) : "memory");
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
__device__ __forceinline__ void tc_cp_async16(void *shared, const void *global)
{
    ((double *)shared)[0] = ((const double *)global)[0];
    ((double *)shared)[1] = ((const double *)global)[1];
}
__device__ __forceinline__ void tc_cp_async8(void *shared, const void *global)
{
    *(double *)shared = *(const double *)global;
}
__device__ __forceinline__ void tc_cp_async4(void *shared, const void *global)
{
    *(float *)shared = *(const float *)global;
}
__device__ __forceinline__ void tc_cp_async_commit() {}
template <int N>
__device__ __forceinline__ void tc_cp_async_wait() {}
#endif
#endif

__device__ __forceinline__ void tc_copy(double *shared, const double *global)
{
    tc_cp_async8(shared, global);
}
__device__ __forceinline__ void tc_copy(float *shared, const float *global)
{
    tc_cp_async4(shared, global);
}
__device__ __forceinline__ void tc_copy(tc_complex *shared, const tc_complex *global)
{
    tc_cp_async16(shared, global);
}
/* A real operand of a complex product is converted. */
__device__ __forceinline__ void tc_copy(tc_complex *shared, const double *global)
{
    *shared = tc_complex(*global);
}
/* Two elements by one copy if they are adjacent in memory and aligned to 16 bytes. */
__device__ __forceinline__ void tc_copy_pair(
    double *shared, const double *global, tc_int first, tc_int second)
{
    const double *const source = global + first;
    if (second == first + 1 && (unsigned long long)source%16 == 0) {
        tc_cp_async16(shared, source);
    } else {
        tc_cp_async8(shared, source);
        tc_cp_async8(shared + 1, global + second);
    }
}

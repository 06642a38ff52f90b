// The words of CUDA C++ for g++: included before the text of a .cu that is compiled for emulation.
//
// The .cu itself is compiled with -fsanitize=thread,bounds,..., so that every load and store of the
// kernels calls the emulator; what needs the other threads of a block or a warp is declared here and
// defined in the emulator's files, which are not instrumented.
#pragma once

#include "emulated.h"

// ---- qualifiers --------------------------------------------------------------------------------

#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(...)  // module.py reads them from the text
#define __builtin_assume(condition)

// A static __shared__ array lies behind bytes that nobody may touch.
#define TCGEN_JOIN_(a, b) a##b
#define TCGEN_JOIN(a, b) TCGEN_JOIN_(a, b)
#define TCGEN_SHARED static __attribute__((used, aligned(16)))
#define __shared__                                                       \
    TCGEN_SHARED char TCGEN_JOIN(tcgen_red_zone_, __COUNTER__)[256];      \
    TCGEN_SHARED
// module.py writes this for `extern __shared__ type name[]`.
#define TCGEN_DYNAMIC_SHARED(name, ...) \
    __VA_ARGS__* const name = reinterpret_cast<__VA_ARGS__*>(emulated::dynamic_shared)

// ---- vectors -----------------------------------------------------------------------------------

#define TCGEN_VECTORS(T, name, align2, align4)                                                  \
    struct __align__(align2) name##2 { T x, y; };                                               \
    struct name##3 { T x, y, z; };                                                              \
    struct __align__(align4) name##4 { T x, y, z, w; };                                         \
    inline name##2 make_##name##2(T x, T y) { return {x, y}; }                                  \
    inline name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; }                          \
    inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
TCGEN_VECTORS(int, int, 8, 16)
TCGEN_VECTORS(unsigned, uint, 8, 16)
TCGEN_VECTORS(float, float, 8, 16)
TCGEN_VECTORS(double, double, 16, 16)
TCGEN_VECTORS(long long, longlong, 16, 16)
#undef TCGEN_VECTORS

// module.py appends one for each kernel of the text.
#define TCGEN_KERNEL(name, max_threads)                                                       \
    __attribute__((no_sanitize("thread"))) static void tcgen_call_##name(void** arguments) {  \
        using All = decltype(emulated::arguments_of(&name));                                  \
        All::call(&name, arguments, emulated::UpTo<All::count>::type());                      \
    }                                                                                         \
    extern "C" __attribute__((visibility("default"))) const emulated::Signature               \
        tcgen_signature_##name;                                                               \
    const emulated::Signature tcgen_signature_##name = {                                      \
        tcgen_call_##name, max_threads, decltype(emulated::arguments_of(&name))::count,       \
        decltype(emulated::arguments_of(&name))::parameters};

// ---- CUDA's names for it -----------------------------------------------------------------------

#define threadIdx (emulated::thread_index())
#define blockIdx (emulated::block_index())
#define blockDim (emulated::block_extent())
#define gridDim (emulated::grid_extent())
constexpr int warpSize = 32;

// The line of the call says which barrier it is: one call is often several after unrolling.
#define TCGEN_LINE int line = __builtin_LINE()

inline void __syncthreads(TCGEN_LINE) {
    emulated::block_barrier("__syncthreads", emulated::Vote::none, 0, line);
}
inline int __syncthreads_or(int predicate, TCGEN_LINE) {
    return emulated::block_barrier("__syncthreads_or", emulated::Vote::any, predicate, line);
}
inline int __syncthreads_and(int predicate, TCGEN_LINE) {
    return emulated::block_barrier("__syncthreads_and", emulated::Vote::all, predicate, line);
}
inline int __syncthreads_count(int predicate, TCGEN_LINE) {
    return emulated::block_barrier("__syncthreads_count", emulated::Vote::count, predicate, line);
}
inline void __syncwarp(unsigned mask = 0xffffffffu, TCGEN_LINE) {
    emulated::warp_barrier(mask, line);
}

#define TCGEN_SHUFFLE(name, how, lane_type)                                             \
    template <class T>                                                                  \
    inline T name(unsigned mask, T value, lane_type lane, int width = 32, TCGEN_LINE) { \
        emulated::shuffle(how, mask, &value, sizeof(T), static_cast<int>(lane), width, line); \
        return value;                                                                   \
    }
TCGEN_SHUFFLE(__shfl_sync, emulated::Lane::index, int)
TCGEN_SHUFFLE(__shfl_up_sync, emulated::Lane::up, unsigned)
TCGEN_SHUFFLE(__shfl_down_sync, emulated::Lane::down, unsigned)
TCGEN_SHUFFLE(__shfl_xor_sync, emulated::Lane::exclusive, int)
#undef TCGEN_SHUFFLE

inline unsigned __ballot_sync(unsigned mask, int predicate, TCGEN_LINE) {
    return emulated::ballot("__ballot_sync", mask, predicate, line);
}
inline int __any_sync(unsigned mask, int predicate, TCGEN_LINE) {
    return emulated::ballot("__any_sync", mask, predicate, line) != 0;
}
inline int __all_sync(unsigned mask, int predicate, TCGEN_LINE) {
    return emulated::ballot("__all_sync", mask, predicate, line) == mask;
}
inline unsigned __activemask() { return emulated::live_lanes(); }

#define TCGEN_ATOMIC(name, T) T name(T* address, T value);
#define TCGEN_ATOMICS(T) \
    TCGEN_ATOMIC(atomicAdd, T) TCGEN_ATOMIC(atomicExch, T) \
    TCGEN_ATOMIC(atomicMax, T) TCGEN_ATOMIC(atomicMin, T)
TCGEN_ATOMICS(int) TCGEN_ATOMICS(unsigned) TCGEN_ATOMICS(unsigned long long)
TCGEN_ATOMICS(long long) TCGEN_ATOMICS(float) TCGEN_ATOMICS(double)
TCGEN_ATOMIC(atomicOr, unsigned) TCGEN_ATOMIC(atomicAnd, unsigned)
int atomicCAS(int* address, int expected, int value);
unsigned atomicCAS(unsigned* address, unsigned expected, unsigned value);
unsigned long long atomicCAS(unsigned long long* address, unsigned long long expected,
                             unsigned long long value);

inline void __threadfence() { emulated::fence(); }
inline void __threadfence_block() { emulated::fence(); }
[[noreturn]] inline void __trap(TCGEN_LINE) { emulated::trap(line); }

// Cache hints: always inlined, so that the access counts for the kernel's own line.
#define TCGEN_LOAD(name) \
    template <class T> __forceinline__ T name(const T* address) { return *address; }
#define TCGEN_STORE(name) \
    template <class T> __forceinline__ void name(T* address, T value) { *address = value; }
TCGEN_LOAD(__ldg) TCGEN_LOAD(__ldca) TCGEN_LOAD(__ldcg) TCGEN_LOAD(__ldcs) TCGEN_LOAD(__ldlu)
TCGEN_STORE(__stwb) TCGEN_STORE(__stcg) TCGEN_STORE(__stcs) TCGEN_STORE(__stwt)
#undef TCGEN_LOAD
#undef TCGEN_STORE

#define TCGEN_MIN_MAX(T)                                     \
    inline T min(T a, T b) { return b < a ? b : a; }         \
    inline T max(T a, T b) { return a < b ? b : a; }
TCGEN_MIN_MAX(int) TCGEN_MIN_MAX(unsigned) TCGEN_MIN_MAX(long long)
TCGEN_MIN_MAX(unsigned long long) TCGEN_MIN_MAX(float) TCGEN_MIN_MAX(double)
#undef TCGEN_MIN_MAX

// The C library's functions, declared here: <cmath> would take most of the time of a compilation.
#define TCGEN_MATH1(name)                             \
    extern "C" double name(double) noexcept;          \
    extern "C" float name##f(float) noexcept;         \
    inline float name(float x) { return name##f(x); }
#define TCGEN_MATH2(name)                                         \
    extern "C" double name(double, double) noexcept;              \
    extern "C" float name##f(float, float) noexcept;              \
    inline float name(float x, float y) { return name##f(x, y); }
TCGEN_MATH1(sqrt) TCGEN_MATH1(cbrt) TCGEN_MATH1(exp) TCGEN_MATH1(exp2) TCGEN_MATH1(expm1)
TCGEN_MATH1(log) TCGEN_MATH1(log2) TCGEN_MATH1(log10) TCGEN_MATH1(log1p) TCGEN_MATH1(fabs)
TCGEN_MATH1(sin) TCGEN_MATH1(cos) TCGEN_MATH1(tan) TCGEN_MATH1(asin) TCGEN_MATH1(acos)
TCGEN_MATH1(atan) TCGEN_MATH1(sinh) TCGEN_MATH1(cosh) TCGEN_MATH1(tanh) TCGEN_MATH1(asinh)
TCGEN_MATH1(acosh) TCGEN_MATH1(atanh) TCGEN_MATH1(erf) TCGEN_MATH1(erfc) TCGEN_MATH1(floor)
TCGEN_MATH1(ceil) TCGEN_MATH1(trunc) TCGEN_MATH1(round) TCGEN_MATH1(rint)
TCGEN_MATH2(pow) TCGEN_MATH2(fmod) TCGEN_MATH2(hypot) TCGEN_MATH2(atan2) TCGEN_MATH2(fmin)
TCGEN_MATH2(fmax) TCGEN_MATH2(copysign)
#undef TCGEN_MATH1
#undef TCGEN_MATH2
extern "C" double fma(double, double, double) noexcept;
extern "C" float fmaf(float, float, float) noexcept;
inline float fma(float x, float y, float z) { return fmaf(x, y, z); }
inline double rsqrt(double x) { return 1 / sqrt(x); }
inline float rsqrtf(float x) { return 1 / sqrtf(x); }
inline bool isnan(double x) { return __builtin_isnan(x); }
inline bool isinf(double x) { return __builtin_isinf(x); }
inline bool isfinite(double x) { return __builtin_isfinite(x); }
inline int abs(int x) { return x < 0 ? -x : x; }
inline long long abs(long long x) { return x < 0 ? -x : x; }
inline double abs(double x) { return fabs(x); }
inline float abs(float x) { return fabsf(x); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline long long __double_as_longlong(double x) { return __builtin_bit_cast(long long, x); }
inline double __longlong_as_double(long long x) { return __builtin_bit_cast(double, x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }

// ---- device functions of generated code whose PTX bodies are swapped under TCGEN_EMULATE -------

// Zeros that are not ``given`` arrive at once.
template <int BYTES>
__forceinline__ void tc_cp_async(void* shared, const void* global, bool wanted = true,
                                 bool given = true) {
    if (wanted && given) emulated::cp_async(shared, global, BYTES);
    for (int n = 0; wanted && !given && n < BYTES / 4; ++n) static_cast<int*>(shared)[n] = 0;
}
__forceinline__ void tc_cp_async_commit() { emulated::cp_async_commit(); }
template <int N> __forceinline__ void tc_cp_async_wait() { emulated::cp_async_wait(N); }
inline void tc_mma_m8n8k4(double (&d)[2], const double (&a)[1], const double (&b)[1], TCGEN_LINE) {
    emulated::mma(8, 4, d, a, b, line);
}
inline double tf32(float x) {  // the nearest number with 11 significant bits, ties away from zero
    const unsigned bits = __builtin_bit_cast(unsigned, x);
    return __builtin_bit_cast(float, (bits + 0x1000u) & ~0x1fffu);
}
inline void tc_mma_m16n8k8(float (&d)[4], const float (&a)[4], const float (&b)[2], TCGEN_LINE) {
    double sum[4], left[4], right[2];
    for (int n = 0; n < 4; ++n) sum[n] = d[n];
    for (int n = 0; n < 4; ++n) left[n] = tf32(a[n]);
    for (int n = 0; n < 2; ++n) right[n] = tf32(b[n]);
    emulated::mma(16, 8, sum, left, right, line);
    for (int n = 0; n < 4; ++n) d[n] = float(sum[n]);
}
#if __CUDA_ARCH__ >= 900  // where the instructions begin
inline void tc_mma_m16n8k4(double (&d)[4], const double (&a)[2], const double (&b)[1], TCGEN_LINE) {
    emulated::mma(16, 4, d, a, b, line);
}
inline void tc_mma_m16n8k8(double (&d)[4], const double (&a)[4], const double (&b)[2], TCGEN_LINE) {
    emulated::mma(16, 8, d, a, b, line);
}
inline void tc_mma_m16n8k16(double (&d)[4], const double (&a)[8], const double (&b)[4],
                            TCGEN_LINE) {
    emulated::mma(16, 16, d, a, b, line);
}
#endif

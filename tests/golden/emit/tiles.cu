/* tiled: written by tcgen 0.1.0, float64. CUDA C++ for NVRTC or nvcc; needs no header.
 *
 * Every kernel takes the arrays that it reads and writes, scratch memory where it needs some, and
 * the extents of the base spaces (N_o, N_v, ...) with the values of host loop variables.
 * Arrays are in C order: the last axis is the fastest. Grids and blocks have one dimension.
 */
typedef long long tc_int;

struct __align__(16) tc_complex {
    double re, im;
    tc_complex() = default;
    __device__ __forceinline__ tc_complex(double x, double y = 0.0) : re(x), im(y) {}
    __device__ __forceinline__ tc_complex &operator+=(const tc_complex &z)
    {
        re += z.re;
        im += z.im;
        return *this;
    }
};

__device__ __forceinline__ tc_complex operator+(tc_complex x, tc_complex y)
{
    return tc_complex(x.re + y.re, x.im + y.im);
}
__device__ __forceinline__ tc_complex operator-(tc_complex x, tc_complex y)
{
    return tc_complex(x.re - y.re, x.im - y.im);
}
__device__ __forceinline__ tc_complex operator-(tc_complex x) { return tc_complex(-x.re, -x.im); }
__device__ __forceinline__ tc_complex operator*(tc_complex x, tc_complex y)
{
    return tc_complex(x.re*y.re - x.im*y.im, x.re*y.im + x.im*y.re);
}
__device__ __forceinline__ tc_complex operator*(double x, tc_complex y)
{
    return tc_complex(x*y.re, x*y.im);
}
__device__ __forceinline__ tc_complex operator*(tc_complex x, double y) { return y*x; }
__device__ __forceinline__ tc_complex operator/(tc_complex x, double y)
{
    return tc_complex(x.re/y, x.im/y);
}
/* Smith's division: no overflow where the quotient has none. */
__device__ __forceinline__ tc_complex operator/(tc_complex x, tc_complex y)
{
    if (fabs(y.re) >= fabs(y.im)) {
        const double ratio = y.im/y.re, scale = 1.0/(y.re + y.im*ratio);
        return tc_complex((x.re + x.im*ratio)*scale, (x.im - x.re*ratio)*scale);
    }
    const double ratio = y.re/y.im, scale = 1.0/(y.re*ratio + y.im);
    return tc_complex((x.re*ratio + x.im)*scale, (x.im*ratio - x.re)*scale);
}
__device__ __forceinline__ double creal(tc_complex z) { return z.re; }
__device__ __forceinline__ double cimag(tc_complex z) { return z.im; }
__device__ __forceinline__ double cabs(tc_complex z) { return hypot(z.re, z.im); }
__device__ __forceinline__ tc_complex conj(tc_complex z) { return tc_complex(z.re, -z.im); }
__device__ __forceinline__ tc_complex cexp(tc_complex z)
{
    const double scale = exp(z.re);
    return tc_complex(scale*cos(z.im), scale*sin(z.im));
}
__device__ __forceinline__ tc_complex clog(tc_complex z)
{
    return tc_complex(log(cabs(z)), atan2(z.im, z.re));
}
__device__ __forceinline__ tc_complex csqrt(tc_complex z)
{
    const double size = cabs(z);
    if (size == 0.0) return tc_complex(0.0, z.im);
    const double half = sqrt(0.5*(size + fabs(z.re)));
    const double other = 0.5*z.im/half;
    if (z.re >= 0.0) return tc_complex(half, other);
    return tc_complex(fabs(other), z.im < 0.0 ? -half : half);
}
__device__ __forceinline__ tc_complex csin(tc_complex z)
{
    return tc_complex(sin(z.re)*cosh(z.im), cos(z.re)*sinh(z.im));
}
__device__ __forceinline__ tc_complex ccos(tc_complex z)
{
    return tc_complex(cos(z.re)*cosh(z.im), -sin(z.re)*sinh(z.im));
}
__device__ __forceinline__ tc_complex ctanh(tc_complex z)
{
    const double t = tan(z.im), s = sinh(z.re), beta = 1.0 + t*t, rho = sqrt(1.0 + s*s);
    if (fabs(z.re) > 20.0) return tc_complex(z.re < 0.0 ? -1.0 : 1.0, 0.0);
    const double scale = 1.0/(1.0 + beta*s*s);
    return tc_complex(beta*rho*s*scale, t*scale);
}

__device__ __forceinline__ tc_int tc_min(tc_int a, tc_int b) { return a < b ? a : b; }

/* Number of tiles that hold some points. */
__device__ __forceinline__ tc_int tc_tiles(tc_int points, tc_int tile)
{
    return (points + tile - 1)/tile;
}

/* Bytes rounded up to whole cache lines. */
__device__ __forceinline__ tc_int tc_aligned(tc_int bytes) { return (bytes + 63)/64*64; }

/* Place of the pair (p, q) in a packed lower triangle, with and without diagonal. */
__device__ __forceinline__ tc_int tc_triangle(tc_int p, tc_int q)
{
    return p >= q ? p*(p + 1)/2 + q : q*(q + 1)/2 + p;
}
__device__ __forceinline__ tc_int tc_strict(tc_int p, tc_int q)
{
    return p >= q ? p*(p - 1)/2 + q : q*(q - 1)/2 + p;
}
__device__ __forceinline__ int tc_sign(tc_int p, tc_int q) { return p < q ? -1 : 1; }

/* Number of distinct arrangements of the values i >= j >= k >= ... */
__device__ __forceinline__ double tc_orbit_from(double count, tc_int, tc_int, tc_int) { return count; }
template <typename... Rest>
__device__ __forceinline__ double tc_orbit_from(double count, tc_int length, tc_int run,
    tc_int last, tc_int next, Rest... rest)
{
    run = next == last ? run + 1 : 1;
    return tc_orbit_from(count*(double)(length + 1)/(double)run, length + 1, run, next, rest...);
}
template <typename... Rest>
__device__ __forceinline__ double tc_orbit(tc_int first, Rest... rest)
{
    return tc_orbit_from(1.0, 1, 1, first, rest...);
}

template <typename T>
__device__ __forceinline__ T tc_power(T base, int exponent)
{
    T result = (T)1.0;
    for (int n = exponent < 0 ? -exponent : exponent; n > 0; n >>= 1) {
        if (n & 1) result = result*base;
        base = base*base;
    }
    return exponent < 0 ? (T)1.0/result : result;
}
__device__ __forceinline__ double tc_pow_d(double x, int n) { return tc_power<double>(x, n); }
__device__ __forceinline__ float tc_pow_s(float x, int n) { return tc_power<float>(x, n); }
__device__ __forceinline__ tc_complex tc_pow_z(tc_complex x, int n)
{
    return tc_power<tc_complex>(x, n);
}

__device__ __forceinline__ double tc_down(double x, int lanes)
{
    return __shfl_down_sync(0xffffffffu, x, lanes);
}
__device__ __forceinline__ float tc_down(float x, int lanes)
{
    return __shfl_down_sync(0xffffffffu, x, lanes);
}
__device__ __forceinline__ tc_complex tc_down(tc_complex z, int lanes)
{
    return tc_complex(tc_down(z.re, lanes), tc_down(z.im, lanes));
}

/* Sum over the threads of a block, in a fixed order; the result is that of thread 0. All threads of
 * the block must call it. The parts of the warps, of which a block has 32 at most, lie here: arrays
 * of the callers would lie side by side, however many sums a kernel has.
 */
template <typename T>
__device__ __forceinline__ T tc_block_sum(T value)
{
    __shared__ T parts[32];
    for (int lanes = 16; lanes > 0; lanes >>= 1) value += tc_down(value, lanes);
    if (threadIdx.x%32 == 0) parts[threadIdx.x/32] = value;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int warp = 1; warp < (int)blockDim.x/32; ++warp) value += parts[warp];
    }
    __syncthreads();
    return value;
}

/* Copies to shared memory that run beside the arithmetic (sm_80 and later). */
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
/* A real factor of a complex product changes its type on the way. */
__device__ __forceinline__ void tc_copy(tc_complex *shared, const double *global)
{
    *shared = tc_complex(*global);
}
/* Two elements at once where they are neighbours in memory and lie on 16 bytes. */
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

/* kernel tiled_0
 *   by hand
 * inputs  x[o,v], y[v,o]
 * outputs g[o,o]
 * flops   2 o^2 v
 * bytes   16 o v read, 8 o^2 written
 */
extern "C" __global__ void __launch_bounds__(128, 1)
tcgen_tiled_0(
    double *__restrict__ g,
    const double *__restrict__ x,
    const double *__restrict__ y,
    const tc_int N_o,
    const tc_int N_v)
{
    __shared__ double tc_left[3][16][17];
    __shared__ double tc_right[3][16][17];
    __shared__ tc_int tc_left_row[16], tc_right_column[16];
    __shared__ tc_int tc_left_deep[2][16], tc_right_deep[2][16];
    __shared__ tc_int tc_out_row[16], tc_out_column[16];
    const int tc_y = threadIdx.x/16, tc_x = threadIdx.x%16;
    tc_int tc_block = blockIdx.x;
    const tc_int tc_c0_points = N_o;
    const tc_int tc_c0_tiles = tc_tiles(tc_c0_points, 16);
    const tc_int tc_c0_first = tc_block%tc_c0_tiles*16;
    tc_block /= tc_c0_tiles;
    const tc_int tc_r0_points = N_o;
    const tc_int tc_r0_tiles = tc_tiles(tc_r0_points, 16);
    const tc_int tc_r0_first = tc_block%tc_r0_tiles*16;
    tc_block /= tc_r0_tiles;
    for (int tc_n = threadIdx.x; tc_n < 16; tc_n += 128) {
        const tc_int tc_r0 = tc_r0_first + tc_n;
        const tc_int i = tc_min(tc_r0, tc_r0_points - 1);
        tc_out_row[tc_n] = tc_r0 < tc_r0_points ? i*N_o : -1;
    }
    for (int tc_n = threadIdx.x; tc_n < 16; tc_n += 128) {
        const tc_int tc_c0 = tc_c0_first + tc_n;
        const tc_int j = tc_min(tc_c0, tc_c0_points - 1);
        tc_out_column[tc_n] = tc_c0 < tc_c0_points ? j : -1;
    }
    double tc_sum[2][1];
    #pragma unroll
    for (int tc_r = 0; tc_r < 2; ++tc_r) {
        #pragma unroll
        for (int tc_c = 0; tc_c < 1; ++tc_c) tc_sum[tc_r][tc_c] = 0.0;
    }
    {
        const double *const tc_left_start = x;
        const double *const tc_right_start = y;
        for (int tc_n = threadIdx.x; tc_n < 16; tc_n += 128) {
            const tc_int tc_r0 = tc_r0_first + tc_n;
            const tc_int i = tc_min(tc_r0, tc_r0_points - 1);
            tc_left_row[tc_n] = i*N_v;
        }
        for (int tc_n = threadIdx.x; tc_n < 16; tc_n += 128) {
            const tc_int tc_c0 = tc_c0_first + tc_n;
            const tc_int j = tc_min(tc_c0, tc_c0_points - 1);
            tc_right_column[tc_n] = j;
        }
        const tc_int tc_depth = N_v;
        const tc_int tc_first = 0, tc_steps = tc_tiles(tc_depth, 16);
        for (tc_int tc_load = -1; tc_load < tc_steps + 2; ++tc_load) {
            const tc_int tc_step = tc_load - 2;
            tc_cp_async_wait<1>();
            __syncthreads();
            if (tc_load >= 0 && tc_load < tc_steps) {
                const int tc_slot = (int)(tc_load%3);
                const tc_int tc_rest = tc_depth - (tc_first + tc_load)*16;
                if (tc_rest >= 16) {
                    #pragma unroll 4
                    for (int tc_turn = 0; tc_turn < 2; ++tc_turn) {
                        const int tc_n = tc_turn*128 + threadIdx.x;
                        const int tc_k = tc_n%16, tc_m = tc_n/16;
                        tc_copy(&tc_left[tc_slot][tc_k][tc_m], tc_left_start + tc_left_row[tc_m] + tc_left_deep[tc_load&1][tc_k]);
                    }
                    #pragma unroll 4
                    for (int tc_turn = 0; tc_turn < 2; ++tc_turn) {
                        const int tc_n = tc_turn*128 + threadIdx.x;
                        const int tc_m = tc_n%16, tc_k = tc_n/16;
                        tc_copy(&tc_right[tc_slot][tc_k][tc_m], tc_right_start + tc_right_column[tc_m] + tc_right_deep[tc_load&1][tc_k]);
                    }
                } else {
                    for (int tc_n = threadIdx.x; tc_n < 256; tc_n += 128) {
                        const int tc_k = tc_n%16, tc_m = tc_n/16;
                        if (tc_k < tc_rest) tc_copy(&tc_left[tc_slot][tc_k][tc_m], tc_left_start + tc_left_row[tc_m] + tc_left_deep[tc_load&1][tc_k]);
                        else tc_left[tc_slot][tc_k][tc_m] = 0.0;
                    }
                    for (int tc_n = threadIdx.x; tc_n < 256; tc_n += 128) {
                        const int tc_m = tc_n%16, tc_k = tc_n/16;
                        if (tc_k < tc_rest) tc_copy(&tc_right[tc_slot][tc_k][tc_m], tc_right_start + tc_right_column[tc_m] + tc_right_deep[tc_load&1][tc_k]);
                        else tc_right[tc_slot][tc_k][tc_m] = 0.0;
                    }
                }
            }
            tc_cp_async_commit();
            if (tc_load + 1 < tc_steps && threadIdx.x < 16) {
                const int tc_n = threadIdx.x;
                const tc_int d = tc_min((tc_first + tc_load + 1)*16 + tc_n, tc_depth - 1);
                tc_left_deep[(tc_load + 1)&1][tc_n] = d;
                tc_right_deep[(tc_load + 1)&1][tc_n] = d*N_o;
            }
            if (tc_step >= 0) {
                const int tc_slot = (int)(tc_step%3);
                #pragma unroll
                for (int tc_k = 0; tc_k < 16; ++tc_k) {
                    double tc_a[2], tc_b[1];
                    #pragma unroll
                    for (int tc_r = 0; tc_r < 2; ++tc_r) tc_a[tc_r] = tc_left[tc_slot][tc_k][tc_y + tc_r*8];
                    #pragma unroll
                    for (int tc_c = 0; tc_c < 1; ++tc_c) tc_b[tc_c] = tc_right[tc_slot][tc_k][tc_x + tc_c*16];
                    #pragma unroll
                    for (int tc_r = 0; tc_r < 2; ++tc_r) {
                        #pragma unroll
                        for (int tc_c = 0; tc_c < 1; ++tc_c) tc_sum[tc_r][tc_c] += tc_a[tc_r]*tc_b[tc_c];
                    }
                }
            }
        }
    }
    #pragma unroll
    for (int tc_r = 0; tc_r < 2; ++tc_r) {
        const tc_int tc_i = tc_out_row[tc_y + tc_r*8];
        #pragma unroll
        for (int tc_c = 0; tc_c < 1; ++tc_c) {
            const tc_int tc_j = tc_out_column[tc_x + tc_c*16];
            if (tc_i >= 0 && tc_j >= 0) g[tc_i + tc_j] = tc_sum[tc_r][tc_c];
        }
    }
}

/* kernel tiled_1
 *   by hand
 * inputs  x[o,v], g[o,o]
 * outputs r[v,o]
 * private w[3,o], q[3,o]
 * flops   2 o^2 v + 2 o v
 * bytes   8 o v + 8 o^2 read, 8 o v written
 */
extern "C" __global__ void __launch_bounds__(128)
tcgen_tiled_1(
    const double *__restrict__ x,
    const double *__restrict__ g,
    double *__restrict__ r,
    char *__restrict__ tc_scratch,
    const tc_int tc_in_shared,
    const tc_int N_o,
    const tc_int N_v)
{
    const tc_int tc_own_bytes = tc_aligned(3*N_o*(tc_int)sizeof(double)) + tc_aligned(3*N_o*(tc_int)sizeof(double));
    extern __shared__ __align__(16) char tc_dynamic[];
    char *tc_own = tc_in_shared ? tc_dynamic : tc_scratch + blockIdx.x*tc_own_bytes;
    double *const w = (double *)tc_own;
    tc_own += tc_aligned(3*N_o*(tc_int)sizeof(double));
    double *const q = (double *)tc_own;
    for (tc_int tc_point = blockIdx.x; tc_point < tc_tiles(N_v, 3); tc_point += gridDim.x) {
        const tc_int c0 = tc_point*3;
        for (tc_int tc_n = threadIdx.x; tc_n < 3*N_o; tc_n += 128) {
            w[tc_n] = double(0);
        }
        __syncthreads();
        for (tc_int tc_n = threadIdx.x; tc_n < tc_min(3, N_v - c0)*N_o; tc_n += 128) {
            tc_int tc_rest = tc_n;
            const tc_int i = tc_rest%N_o;
            tc_rest /= N_o;
            const tc_int c = c0 + tc_rest;
            w[(c - c0)*N_o + i] += 2.0*x[i*N_v + c];
        }
        __syncthreads();
        for (tc_int tc_n = threadIdx.x; tc_n < tc_min(3, N_v - c0)*N_o; tc_n += 128) {
            tc_int tc_rest = tc_n;
            const tc_int j = tc_rest%N_o;
            tc_rest /= N_o;
            const tc_int c = c0 + tc_rest;
            double tc_sum = 0.0;
            for (tc_int i = 0; i < N_o; ++i) {
                tc_sum += w[(c - c0)*N_o + i]*g[i*N_o + j];
            }
            q[(c - c0)*N_o + j] = tc_sum;
        }
        __syncthreads();
        for (tc_int tc_n = threadIdx.x; tc_n < tc_min(3, N_v - c0)*N_o; tc_n += 128) {
            tc_int tc_rest = tc_n;
            const tc_int j = tc_rest%N_o;
            tc_rest /= N_o;
            const tc_int c = c0 + tc_rest;
            r[c*N_o + j] = q[(c - c0)*N_o + j];
        }
        __syncthreads();
    }
}

/* kernel tiled_2
 *   by hand
 * inputs  (none)
 * outputs s[o,o]
 * flops   0
 * bytes   0 read, 8 o^2 written
 */
extern "C" __global__ void __launch_bounds__(256)
tcgen_tiled_2(
    double *__restrict__ s,
    const tc_int N_o)
{
    for (tc_int tc_n = (tc_int)blockIdx.x*256 + threadIdx.x; tc_n < N_o*N_o; tc_n += (tc_int)gridDim.x*256) {
        s[tc_n] = double(0);
    }
}

/* kernel tiled_2_2
 *   by hand
 * inputs  x[o,v]
 * outputs h[3,o]
 * flops   0
 * bytes   24 o read, 24 o written
 */
extern "C" __global__ void __launch_bounds__(256)
tcgen_tiled_2_2(
    double *__restrict__ h,
    const double *__restrict__ x,
    const tc_int N_o,
    const tc_int N_v,
    const tc_int c1)
{
    for (tc_int tc_n = (tc_int)blockIdx.x*256 + threadIdx.x; tc_n < tc_min(3, N_v - c1)*N_o; tc_n += (tc_int)gridDim.x*256) {
        tc_int tc_rest = tc_n;
        const tc_int i = tc_rest%N_o;
        tc_rest /= N_o;
        const tc_int c = c1 + tc_rest;
        h[(c - c1)*N_o + i] = x[i*N_v + c];
    }
}

/* kernel tiled_2_3
 *   by hand
 * inputs  s[o,o], h[3,o], y[v,o]
 * outputs s[o,o]
 * flops   2 o^2 v
 * bytes   8 o^2 + 48 o read, 8 o^2 written
 */
extern "C" __global__ void __launch_bounds__(256)
tcgen_tiled_2_3(
    double *__restrict__ s,
    const double *__restrict__ h,
    const double *__restrict__ y,
    const tc_int N_o,
    const tc_int N_v,
    const tc_int c1)
{
    for (tc_int tc_n = (tc_int)blockIdx.x*256 + threadIdx.x; tc_n < N_o*N_o; tc_n += (tc_int)gridDim.x*256) {
        tc_int tc_rest = tc_n;
        const tc_int j = tc_rest%N_o;
        tc_rest /= N_o;
        const tc_int i = tc_rest;
        double tc_sum = 0.0;
        for (tc_int c = c1; c < tc_min(c1 + 3, N_v); ++c) {
            tc_sum += h[(c - c1)*N_o + i]*y[c*N_o + j];
        }
        s[i*N_o + j] += tc_sum;
    }
}

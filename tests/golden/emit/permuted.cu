/* permuted: written by tcgen 0.1.0, float64. CUDA C++ for NVRTC or nvcc; needs no header.
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

/* Products of small matrices by the lanes of a warp. Lane 4*g + t holds, of A (16 x depth), rows g
 * and g + 8 at t, t + 4, ...; of B (depth x 8), column g at t, t + 4, ...; of D (16 x 8), rows g and
 * g + 8 in columns 2*t and 2*t + 1 (PTX ISA, mma.m16n8k4, k8 and k16 with .f64).
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

/* D += A B of 16 x 8 and 8 x 8: in one step from sm_90 on, else in four of 8 x 8 x 4. */
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

/* kernel permuted_0
 *   by hand
 * inputs  r[v,o,v,o], t[v,o,o,v], u[o,o,v,v], s[o,v,v]
 * outputs r[v,o,v,o]
 * flops   4 o^3 v^3 + 2 o^2 v^3
 * bytes   24 o^2 v^2 + 8 o v^2 read, 8 o^2 v^2 written
 */
extern "C" __global__ void __launch_bounds__(128, 1)
tcgen_permuted_0(
    double *__restrict__ r,
    const double *__restrict__ t,
    const double *__restrict__ u,
    const double *__restrict__ s,
    char *__restrict__ tc_scratch,
    const tc_int N_o,
    const tc_int N_v)
{
    __shared__ __align__(16) double tc_left[3][16][68];
    __shared__ __align__(16) double tc_right[3][16][36];
    __shared__ tc_int tc_left_row[64], tc_right_column[32];
    __shared__ tc_int tc_left_deep[2][16], tc_right_deep[2][16];
    __shared__ tc_int tc_out_row[64], tc_out_column[32];
    const int tc_lane = threadIdx.x%32, tc_warp = threadIdx.x/32;
    const int tc_top = tc_warp/2*32, tc_side = tc_warp%2*16;
    const int tc_y = tc_top + tc_lane/4, tc_x = tc_side + tc_lane%4*2;
    tc_int tc_block = blockIdx.x;
    const tc_int tc_c1_points = N_o;
    const tc_int tc_c1_tiles = tc_tiles(tc_c1_points, 8);
    const tc_int tc_c1_first = tc_block%tc_c1_tiles*8;
    tc_block /= tc_c1_tiles;
    const tc_int tc_c0_points = N_v;
    const tc_int tc_c0_tiles = tc_tiles(tc_c0_points, 4);
    const tc_int tc_c0_first = tc_block%tc_c0_tiles*4;
    tc_block /= tc_c0_tiles;
    const tc_int tc_r0_points = N_o*N_v;
    const tc_int tc_r0_tiles = tc_tiles(tc_r0_points, 64);
    const tc_int tc_r0_first = tc_block%tc_r0_tiles*64;
    tc_block /= tc_r0_tiles;
    for (int tc_n = threadIdx.x; tc_n < 64; tc_n += 128) {
        const tc_int tc_r0 = tc_r0_first + tc_n;
        tc_int tc_r0_rest = tc_min(tc_r0, tc_r0_points - 1);
        const tc_int b = tc_r0_rest%N_v;
        tc_r0_rest /= N_v;
        const tc_int i = tc_r0_rest;
        tc_out_row[tc_n] = tc_r0 < tc_r0_points ? i*N_v*N_o + b*N_o : -1;
    }
    for (int tc_n = threadIdx.x; tc_n < 32; tc_n += 128) {
        int tc_m = tc_n;
        const tc_int tc_c1 = tc_c1_first + tc_m%8;
        tc_m /= 8;
        const tc_int j = tc_min(tc_c1, tc_c1_points - 1);
        const tc_int tc_c0 = tc_c0_first + tc_m;
        const tc_int a = tc_min(tc_c0, tc_c0_points - 1);
        tc_out_column[tc_n] = tc_c1 < tc_c1_points && tc_c0 < tc_c0_points ? a*N_o*N_v*N_o + j : -1;
    }
    double tc_sum[4][4];
    #pragma unroll
    for (int tc_r = 0; tc_r < 4; ++tc_r) {
        #pragma unroll
        for (int tc_c = 0; tc_c < 4; ++tc_c) tc_sum[tc_r][tc_c] = 0.0;
    }
    {
        const double *const tc_left_start = u;
        const double *const tc_right_start = t;
        for (int tc_n = threadIdx.x; tc_n < 64; tc_n += 128) {
            const tc_int tc_r0 = tc_r0_first + tc_n;
            tc_int tc_r0_rest = tc_min(tc_r0, tc_r0_points - 1);
            const tc_int b = tc_r0_rest%N_v;
            tc_r0_rest /= N_v;
            const tc_int i = tc_r0_rest;
            tc_left_row[tc_n] = i*N_o*N_v*N_v + b*N_v;
        }
        for (int tc_n = threadIdx.x; tc_n < 32; tc_n += 128) {
            int tc_m = tc_n;
            const tc_int tc_c1 = tc_c1_first + tc_m%8;
            tc_m /= 8;
            const tc_int j = tc_min(tc_c1, tc_c1_points - 1);
            const tc_int tc_c0 = tc_c0_first + tc_m;
            const tc_int a = tc_min(tc_c0, tc_c0_points - 1);
            tc_right_column[tc_n] = j*N_o*N_v + a;
        }
        const tc_int tc_depth = N_o*N_v;
        const tc_int tc_each = tc_tiles(tc_tiles(tc_depth, 16), 2);
        const tc_int tc_first = tc_block*tc_each;
        const tc_int tc_steps = tc_min(tc_each, tc_tiles(tc_depth, 16) - tc_first);
        for (tc_int tc_load = -1; tc_load < tc_steps + 2; ++tc_load) {
            const tc_int tc_step = tc_load - 2;
            tc_cp_async_wait<1>();
            __syncthreads();
            if (tc_load >= 0 && tc_load < tc_steps) {
                const int tc_slot = (int)(tc_load%3);
                const tc_int tc_rest = tc_depth - (tc_first + tc_load)*16;
                if (tc_rest >= 16) {
                    #pragma unroll 4
                    for (int tc_turn = 0; tc_turn < 8; ++tc_turn) {
                        const int tc_n = tc_turn*128 + threadIdx.x;
                        const int tc_k = tc_n%16, tc_m = tc_n/16;
                        tc_copy(&tc_left[tc_slot][tc_k][tc_m], tc_left_start + tc_left_row[tc_m] + tc_left_deep[tc_load&1][tc_k]);
                    }
                    #pragma unroll 4
                    for (int tc_turn = 0; tc_turn < 2; ++tc_turn) {
                        const int tc_n = tc_turn*128 + threadIdx.x;
                        const int tc_m = tc_n%16*2, tc_k = tc_n/16;
                        tc_copy_pair(&tc_right[tc_slot][tc_k][tc_m], tc_right_start + tc_right_deep[tc_load&1][tc_k], tc_right_column[tc_m], tc_right_column[tc_m + 1]);
                    }
                } else {
                    for (int tc_n = threadIdx.x; tc_n < 1024; tc_n += 128) {
                        const int tc_k = tc_n%16, tc_m = tc_n/16;
                        if (tc_k < tc_rest) tc_copy(&tc_left[tc_slot][tc_k][tc_m], tc_left_start + tc_left_row[tc_m] + tc_left_deep[tc_load&1][tc_k]);
                        else tc_left[tc_slot][tc_k][tc_m] = 0.0;
                    }
                    for (int tc_n = threadIdx.x; tc_n < 512; tc_n += 128) {
                        const int tc_m = tc_n%32, tc_k = tc_n/32;
                        if (tc_k < tc_rest) tc_copy(&tc_right[tc_slot][tc_k][tc_m], tc_right_start + tc_right_column[tc_m] + tc_right_deep[tc_load&1][tc_k]);
                        else tc_right[tc_slot][tc_k][tc_m] = 0.0;
                    }
                }
            }
            tc_cp_async_commit();
            if (tc_load + 1 < tc_steps && threadIdx.x < 16) {
                const int tc_n = threadIdx.x;
                tc_int tc_rest = tc_min((tc_first + tc_load + 1)*16 + tc_n, tc_depth - 1);
                const tc_int c = tc_rest%N_v;
                tc_rest /= N_v;
                const tc_int k = tc_rest;
                tc_left_deep[(tc_load + 1)&1][tc_n] = k*N_v*N_v + c;
                tc_right_deep[(tc_load + 1)&1][tc_n] = c*N_o*N_o*N_v + k*N_v;
            }
            if (tc_step >= 0) {
                const int tc_slot = (int)(tc_step%3);
                #pragma unroll
                for (int tc_k = 0; tc_k < 16; tc_k += 8) {
                    double tc_a[2][4], tc_b[2][2];
                    #pragma unroll
                    for (int tc_r = 0; tc_r < 2; ++tc_r) {
                        #pragma unroll
                        for (int tc_n = 0; tc_n < 4; ++tc_n)
                            tc_a[tc_r][tc_n] = -1.5*tc_left[tc_slot][tc_k + tc_lane%4 + tc_n/2*4][tc_y + tc_r*16 + tc_n%2*8];
                    }
                    #pragma unroll
                    for (int tc_c = 0; tc_c < 2; ++tc_c) {
                        #pragma unroll
                        for (int tc_n = 0; tc_n < 2; ++tc_n)
                            tc_b[tc_c][tc_n] = tc_right[tc_slot][tc_k + tc_lane%4 + tc_n*4][tc_side + tc_c*8 + tc_lane/4];
                    }
                    #pragma unroll
                    for (int tc_r = 0; tc_r < 2; ++tc_r) {
                        #pragma unroll
                        for (int tc_c = 0; tc_c < 2; ++tc_c)
                            tc_product(tc_sum[2*tc_r][2*tc_c], tc_sum[2*tc_r][2*tc_c + 1],
                                tc_sum[2*tc_r + 1][2*tc_c], tc_sum[2*tc_r + 1][2*tc_c + 1],
                                tc_a[tc_r], tc_b[tc_c]);
                    }
                }
            }
        }
    }
    {
        const double *const tc_left_start = u;
        const double *const tc_right_start = t;
        for (int tc_n = threadIdx.x; tc_n < 64; tc_n += 128) {
            const tc_int tc_r0 = tc_r0_first + tc_n;
            tc_int tc_r0_rest = tc_min(tc_r0, tc_r0_points - 1);
            const tc_int b = tc_r0_rest%N_v;
            tc_r0_rest /= N_v;
            const tc_int i = tc_r0_rest;
            tc_left_row[tc_n] = i*N_o*N_v*N_v + b*N_v;
        }
        for (int tc_n = threadIdx.x; tc_n < 32; tc_n += 128) {
            int tc_m = tc_n;
            const tc_int tc_c1 = tc_c1_first + tc_m%8;
            tc_m /= 8;
            const tc_int j = tc_min(tc_c1, tc_c1_points - 1);
            const tc_int tc_c0 = tc_c0_first + tc_m;
            const tc_int a = tc_min(tc_c0, tc_c0_points - 1);
            tc_right_column[tc_n] = j*N_o*N_v + a;
        }
        const tc_int tc_depth = N_o*N_v;
        const tc_int tc_each = tc_tiles(tc_tiles(tc_depth, 16), 2);
        const tc_int tc_first = tc_block*tc_each;
        const tc_int tc_steps = tc_min(tc_each, tc_tiles(tc_depth, 16) - tc_first);
        for (tc_int tc_load = -1; tc_load < tc_steps + 2; ++tc_load) {
            const tc_int tc_step = tc_load - 2;
            tc_cp_async_wait<1>();
            __syncthreads();
            if (tc_load >= 0 && tc_load < tc_steps) {
                const int tc_slot = (int)(tc_load%3);
                const tc_int tc_rest = tc_depth - (tc_first + tc_load)*16;
                if (tc_rest >= 16) {
                    #pragma unroll 4
                    for (int tc_turn = 0; tc_turn < 8; ++tc_turn) {
                        const int tc_n = tc_turn*128 + threadIdx.x;
                        const int tc_k = tc_n%16, tc_m = tc_n/16;
                        tc_copy(&tc_left[tc_slot][tc_k][tc_m], tc_left_start + tc_left_row[tc_m] + tc_left_deep[tc_load&1][tc_k]);
                    }
                    #pragma unroll 4
                    for (int tc_turn = 0; tc_turn < 2; ++tc_turn) {
                        const int tc_n = tc_turn*128 + threadIdx.x;
                        const int tc_m = tc_n%16*2, tc_k = tc_n/16;
                        tc_copy_pair(&tc_right[tc_slot][tc_k][tc_m], tc_right_start + tc_right_deep[tc_load&1][tc_k], tc_right_column[tc_m], tc_right_column[tc_m + 1]);
                    }
                } else {
                    for (int tc_n = threadIdx.x; tc_n < 1024; tc_n += 128) {
                        const int tc_k = tc_n%16, tc_m = tc_n/16;
                        if (tc_k < tc_rest) tc_copy(&tc_left[tc_slot][tc_k][tc_m], tc_left_start + tc_left_row[tc_m] + tc_left_deep[tc_load&1][tc_k]);
                        else tc_left[tc_slot][tc_k][tc_m] = 0.0;
                    }
                    for (int tc_n = threadIdx.x; tc_n < 512; tc_n += 128) {
                        const int tc_m = tc_n%32, tc_k = tc_n/32;
                        if (tc_k < tc_rest) tc_copy(&tc_right[tc_slot][tc_k][tc_m], tc_right_start + tc_right_column[tc_m] + tc_right_deep[tc_load&1][tc_k]);
                        else tc_right[tc_slot][tc_k][tc_m] = 0.0;
                    }
                }
            }
            tc_cp_async_commit();
            if (tc_load + 1 < tc_steps && threadIdx.x < 16) {
                const int tc_n = threadIdx.x;
                tc_int tc_rest = tc_min((tc_first + tc_load + 1)*16 + tc_n, tc_depth - 1);
                const tc_int a_2 = tc_rest%N_v;
                tc_rest /= N_v;
                const tc_int k_2 = tc_rest;
                tc_left_deep[(tc_load + 1)&1][tc_n] = k_2*N_v*N_v + a_2;
                tc_right_deep[(tc_load + 1)&1][tc_n] = a_2*N_o*N_o*N_v + k_2*N_v;
            }
            if (tc_step >= 0) {
                const int tc_slot = (int)(tc_step%3);
                #pragma unroll
                for (int tc_k = 0; tc_k < 16; tc_k += 8) {
                    double tc_a[2][4], tc_b[2][2];
                    #pragma unroll
                    for (int tc_r = 0; tc_r < 2; ++tc_r) {
                        #pragma unroll
                        for (int tc_n = 0; tc_n < 4; ++tc_n)
                            tc_a[tc_r][tc_n] = tc_left[tc_slot][tc_k + tc_lane%4 + tc_n/2*4][tc_y + tc_r*16 + tc_n%2*8];
                    }
                    #pragma unroll
                    for (int tc_c = 0; tc_c < 2; ++tc_c) {
                        #pragma unroll
                        for (int tc_n = 0; tc_n < 2; ++tc_n)
                            tc_b[tc_c][tc_n] = tc_right[tc_slot][tc_k + tc_lane%4 + tc_n*4][tc_side + tc_c*8 + tc_lane/4];
                    }
                    #pragma unroll
                    for (int tc_r = 0; tc_r < 2; ++tc_r) {
                        #pragma unroll
                        for (int tc_c = 0; tc_c < 2; ++tc_c)
                            tc_product(tc_sum[2*tc_r][2*tc_c], tc_sum[2*tc_r][2*tc_c + 1],
                                tc_sum[2*tc_r + 1][2*tc_c], tc_sum[2*tc_r + 1][2*tc_c + 1],
                                tc_a[tc_r], tc_b[tc_c]);
                    }
                }
            }
        }
    }
    {
        const double *const tc_left_start = u;
        const double *const tc_right_start = s;
        for (int tc_n = threadIdx.x; tc_n < 64; tc_n += 128) {
            const tc_int tc_r0 = tc_r0_first + tc_n;
            tc_int tc_r0_rest = tc_min(tc_r0, tc_r0_points - 1);
            const tc_int b = tc_r0_rest%N_v;
            tc_r0_rest /= N_v;
            const tc_int i = tc_r0_rest;
            tc_left_row[tc_n] = i*N_o*N_v*N_v + i*N_v*N_v + b*N_v;
        }
        for (int tc_n = threadIdx.x; tc_n < 32; tc_n += 128) {
            int tc_m = tc_n;
            const tc_int tc_c1 = tc_c1_first + tc_m%8;
            tc_m /= 8;
            const tc_int j = tc_min(tc_c1, tc_c1_points - 1);
            const tc_int tc_c0 = tc_c0_first + tc_m;
            const tc_int a = tc_min(tc_c0, tc_c0_points - 1);
            tc_right_column[tc_n] = j*N_v*N_v + a*N_v;
        }
        const tc_int tc_depth = N_v;
        const tc_int tc_each = tc_tiles(tc_tiles(tc_depth, 16), 2);
        const tc_int tc_first = tc_block*tc_each;
        const tc_int tc_steps = tc_min(tc_each, tc_tiles(tc_depth, 16) - tc_first);
        for (tc_int tc_load = -1; tc_load < tc_steps + 2; ++tc_load) {
            const tc_int tc_step = tc_load - 2;
            tc_cp_async_wait<1>();
            __syncthreads();
            if (tc_load >= 0 && tc_load < tc_steps) {
                const int tc_slot = (int)(tc_load%3);
                const tc_int tc_rest = tc_depth - (tc_first + tc_load)*16;
                if (tc_rest >= 16) {
                    #pragma unroll 4
                    for (int tc_turn = 0; tc_turn < 8; ++tc_turn) {
                        const int tc_n = tc_turn*128 + threadIdx.x;
                        const int tc_k = tc_n%16, tc_m = tc_n/16;
                        tc_copy(&tc_left[tc_slot][tc_k][tc_m], tc_left_start + tc_left_row[tc_m] + tc_left_deep[tc_load&1][tc_k]);
                    }
                    #pragma unroll 4
                    for (int tc_turn = 0; tc_turn < 4; ++tc_turn) {
                        const int tc_n = tc_turn*128 + threadIdx.x;
                        const int tc_k = tc_n%16, tc_m = tc_n/16;
                        tc_copy(&tc_right[tc_slot][tc_k][tc_m], tc_right_start + tc_right_column[tc_m] + tc_right_deep[tc_load&1][tc_k]);
                    }
                } else {
                    for (int tc_n = threadIdx.x; tc_n < 1024; tc_n += 128) {
                        const int tc_k = tc_n%16, tc_m = tc_n/16;
                        if (tc_k < tc_rest) tc_copy(&tc_left[tc_slot][tc_k][tc_m], tc_left_start + tc_left_row[tc_m] + tc_left_deep[tc_load&1][tc_k]);
                        else tc_left[tc_slot][tc_k][tc_m] = 0.0;
                    }
                    for (int tc_n = threadIdx.x; tc_n < 512; tc_n += 128) {
                        const int tc_k = tc_n%16, tc_m = tc_n/16;
                        if (tc_k < tc_rest) tc_copy(&tc_right[tc_slot][tc_k][tc_m], tc_right_start + tc_right_column[tc_m] + tc_right_deep[tc_load&1][tc_k]);
                        else tc_right[tc_slot][tc_k][tc_m] = 0.0;
                    }
                }
            }
            tc_cp_async_commit();
            if (tc_load + 1 < tc_steps && threadIdx.x < 16) {
                const int tc_n = threadIdx.x;
                const tc_int c_2 = tc_min((tc_first + tc_load + 1)*16 + tc_n, tc_depth - 1);
                tc_left_deep[(tc_load + 1)&1][tc_n] = c_2;
                tc_right_deep[(tc_load + 1)&1][tc_n] = c_2;
            }
            if (tc_step >= 0) {
                const int tc_slot = (int)(tc_step%3);
                #pragma unroll
                for (int tc_k = 0; tc_k < 16; tc_k += 8) {
                    double tc_a[2][4], tc_b[2][2];
                    #pragma unroll
                    for (int tc_r = 0; tc_r < 2; ++tc_r) {
                        #pragma unroll
                        for (int tc_n = 0; tc_n < 4; ++tc_n)
                            tc_a[tc_r][tc_n] = tc_left[tc_slot][tc_k + tc_lane%4 + tc_n/2*4][tc_y + tc_r*16 + tc_n%2*8];
                    }
                    #pragma unroll
                    for (int tc_c = 0; tc_c < 2; ++tc_c) {
                        #pragma unroll
                        for (int tc_n = 0; tc_n < 2; ++tc_n)
                            tc_b[tc_c][tc_n] = tc_right[tc_slot][tc_k + tc_lane%4 + tc_n*4][tc_side + tc_c*8 + tc_lane/4];
                    }
                    #pragma unroll
                    for (int tc_r = 0; tc_r < 2; ++tc_r) {
                        #pragma unroll
                        for (int tc_c = 0; tc_c < 2; ++tc_c)
                            tc_product(tc_sum[2*tc_r][2*tc_c], tc_sum[2*tc_r][2*tc_c + 1],
                                tc_sum[2*tc_r + 1][2*tc_c], tc_sum[2*tc_r + 1][2*tc_c + 1],
                                tc_a[tc_r], tc_b[tc_c]);
                    }
                }
            }
        }
    }
    double *const tc_parts = (double *)tc_scratch + (tc_int)blockIdx.x*2048;
    #pragma unroll
    for (int tc_r = 0; tc_r < 4; ++tc_r) {
        #pragma unroll
        for (int tc_c = 0; tc_c < 4; ++tc_c) tc_parts[(tc_r*4 + tc_c)*128 + threadIdx.x] = tc_sum[tc_r][tc_c];
    }
}

/* The second pass: adds the parts of each sum in order. */
extern "C" __global__ void __launch_bounds__(128, 1)
tcgen_permuted_0_finish(
    double *__restrict__ r,
    const double *__restrict__ t,
    const double *__restrict__ u,
    const double *__restrict__ s,
    char *__restrict__ tc_scratch,
    const tc_int N_o,
    const tc_int N_v)
{
    __shared__ tc_int tc_out_row[64], tc_out_column[32];
    const int tc_lane = threadIdx.x%32, tc_warp = threadIdx.x/32;
    const int tc_top = tc_warp/2*32, tc_side = tc_warp%2*16;
    const int tc_y = tc_top + tc_lane/4, tc_x = tc_side + tc_lane%4*2;
    tc_int tc_block = blockIdx.x;
    const tc_int tc_c1_points = N_o;
    const tc_int tc_c1_tiles = tc_tiles(tc_c1_points, 8);
    const tc_int tc_c1_first = tc_block%tc_c1_tiles*8;
    tc_block /= tc_c1_tiles;
    const tc_int tc_c0_points = N_v;
    const tc_int tc_c0_tiles = tc_tiles(tc_c0_points, 4);
    const tc_int tc_c0_first = tc_block%tc_c0_tiles*4;
    tc_block /= tc_c0_tiles;
    const tc_int tc_r0_points = N_o*N_v;
    const tc_int tc_r0_tiles = tc_tiles(tc_r0_points, 64);
    const tc_int tc_r0_first = tc_block%tc_r0_tiles*64;
    tc_block /= tc_r0_tiles;
    for (int tc_n = threadIdx.x; tc_n < 64; tc_n += 128) {
        const tc_int tc_r0 = tc_r0_first + tc_n;
        tc_int tc_r0_rest = tc_min(tc_r0, tc_r0_points - 1);
        const tc_int b = tc_r0_rest%N_v;
        tc_r0_rest /= N_v;
        const tc_int i = tc_r0_rest;
        tc_out_row[tc_n] = tc_r0 < tc_r0_points ? i*N_v*N_o + b*N_o : -1;
    }
    for (int tc_n = threadIdx.x; tc_n < 32; tc_n += 128) {
        int tc_m = tc_n;
        const tc_int tc_c1 = tc_c1_first + tc_m%8;
        tc_m /= 8;
        const tc_int j = tc_min(tc_c1, tc_c1_points - 1);
        const tc_int tc_c0 = tc_c0_first + tc_m;
        const tc_int a = tc_min(tc_c0, tc_c0_points - 1);
        tc_out_column[tc_n] = tc_c1 < tc_c1_points && tc_c0 < tc_c0_points ? a*N_o*N_v*N_o + j : -1;
    }
    __syncthreads();
    for (int tc_r = 0; tc_r < 4; ++tc_r) {
        const tc_int tc_i = tc_out_row[tc_y + tc_r*8];
        for (int tc_c = 0; tc_c < 4; ++tc_c) {
            const tc_int tc_j = tc_out_column[tc_x + tc_c/2*8 + tc_c%2];
            double tc_sum = 0.0;
            for (tc_int tc_n = 0; tc_n < 2; ++tc_n) {
                tc_sum += ((const double *)tc_scratch)[(tc_n*(tc_int)gridDim.x + blockIdx.x)*2048 + (tc_r*4 + tc_c)*128 + threadIdx.x];
            }
            if (tc_i >= 0 && tc_j >= 0) r[tc_i + tc_j] = tc_sum;
        }
    }
}

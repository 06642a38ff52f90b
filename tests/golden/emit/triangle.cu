/* triangles: written by tcgen 0.1.0, float64. CUDA C++ for NVRTC or nvcc; needs no header.
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

/* kernel triangles_0
 *   by hand
 * inputs  (none)
 * outputs e
 * flops   0
 * bytes   0 read, 8 written
 */
extern "C" __global__ void __launch_bounds__(256)
tcgen_triangles_0(
    double *__restrict__ e)
{
    for (tc_int tc_n = (tc_int)blockIdx.x*256 + threadIdx.x; tc_n < 1; tc_n += (tc_int)gridDim.x*256) {
        e[tc_n] = double(0);
    }
}

/* kernel triangles_0_2
 *   by hand
 * inputs  u[o]
 * outputs r[1]
 * flops   2
 * bytes   8 read, 8 written
 */
extern "C" __global__ void __launch_bounds__(256)
tcgen_triangles_0_2(
    double *__restrict__ r,
    const double *__restrict__ u,
    const tc_int N_o,
    const tc_int i,
    const tc_int j,
    const tc_int k)
{
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        r[0] = u[i]*u[j]*u[k];
    }
}

/* kernel triangles_0_3
 *   by hand
 * inputs  e, r[1]
 * outputs e
 * flops   0
 * bytes   16 read, 8 written
 */
extern "C" __global__ void __launch_bounds__(256)
tcgen_triangles_0_3(
    double *__restrict__ e,
    const double *__restrict__ r,
    const tc_int N_o,
    const tc_int i,
    const tc_int j,
    const tc_int k)
{
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        e[0] += 0.14285714285714285*tc_orbit(i, j, k)*r[0];
    }
}

/* kernel triangles_1
 *   by hand
 * inputs  u[o]
 * outputs f
 * flops   o^2 + o
 * bytes   8 o read, 8 written
 */
extern "C" __global__ void __launch_bounds__(256)
tcgen_triangles_1(
    double *__restrict__ f,
    const double *__restrict__ u,
    const tc_int N_o)
{
    const tc_int tc_split = blockIdx.x;
    double tc_sum = 0.0;
    for (tc_int tc_n = threadIdx.x; tc_n < N_o*N_o; tc_n += 256) {
        tc_int tc_rest = tc_n;
        const tc_int y = tc_rest%N_o;
        tc_rest /= N_o;
        const tc_int x = tc_rest;
        if (y <= x) tc_sum += (x == y ? 1 : 2)*(u[x]*u[y]);
    }
    tc_sum = tc_block_sum(tc_sum);
    if (threadIdx.x == 0) f[0] = tc_sum;
}

/* kernel triangles_2
 *   by hand
 * inputs  u[o]
 * outputs h
 * flops   2/3 o^3 + 2 o^2 + 4/3 o
 * bytes   8 o read, 8 written
 */
extern "C" __global__ void __launch_bounds__(256)
tcgen_triangles_2(
    double *__restrict__ h,
    const double *__restrict__ u,
    const tc_int N_o)
{
    const tc_int tc_split = blockIdx.x;
    double tc_sum = 0.0;
    for (tc_int tc_n = threadIdx.x; tc_n < N_o*N_o*N_o; tc_n += 256) {
        tc_int tc_rest = tc_n;
        const tc_int z = tc_rest%N_o;
        tc_rest /= N_o;
        const tc_int y = tc_rest%N_o;
        tc_rest /= N_o;
        const tc_int x = tc_rest;
        if (y <= x && z <= y) tc_sum += tc_orbit(x, y, z)*(u[x]*u[y]*u[z]);
    }
    tc_sum = tc_block_sum(tc_sum);
    if (threadIdx.x == 0) h[0] = tc_sum;
}

/* kernel triangles_3
 *   by hand
 * inputs  (none)
 * outputs half[o,o]
 * flops   0
 * bytes   0 read, 8 o^2 written
 */
extern "C" __global__ void __launch_bounds__(256)
tcgen_triangles_3(
    double *__restrict__ half_,
    const tc_int N_o)
{
    for (tc_int tc_n = (tc_int)blockIdx.x*256 + threadIdx.x; tc_n < N_o*N_o; tc_n += (tc_int)gridDim.x*256) {
        half_[tc_n] = double(0);
    }
}

/* kernel triangles_3_2
 *   by hand
 * inputs  half[o,o], m[o,v]
 * outputs half[o,o]
 * flops   o^2 v + o v
 * bytes   8 o v + 8 o^2 read, 8 o^2 written
 */
extern "C" __global__ void __launch_bounds__(256)
tcgen_triangles_3_2(
    double *__restrict__ half_,
    const double *__restrict__ m,
    const tc_int N_o,
    const tc_int N_v)
{
    for (tc_int tc_n = (tc_int)blockIdx.x*256 + threadIdx.x; tc_n < N_o*N_o; tc_n += (tc_int)gridDim.x*256) {
        tc_int tc_rest = tc_n;
        const tc_int y = tc_rest%N_o;
        tc_rest /= N_o;
        const tc_int x = tc_rest;
        if (y <= x) {
            double tc_sum = 0.0;
            for (tc_int a = 0; a < N_v; ++a) {
                tc_sum += m[x*N_v + a]*m[y*N_v + a];
            }
            half_[x*N_o + y] += tc_sum;
        }
    }
}

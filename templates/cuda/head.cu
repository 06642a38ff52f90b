/* $name: written by tcgen $version, $dtype. CUDA C++ for NVRTC or nvcc; needs no header.
 *
 * Every kernel takes the arrays that it reads and writes, scratch memory if it needs some, the
 * extents of the base spaces (N_o, N_v, ...), and the values of host loop variables.
 * Arrays are in C order: the last axis is the fastest. Grids and blocks have one dimension.
 *
 * Integers have 64 bits. With TC_INT defined as int, those of the arguments too, they have 32: for
 * launches whose arrays and loops have fewer than $narrow elements and points.
 */
#ifndef TC_INT
#define TC_INT long long
#endif
typedef TC_INT tc_int;

/* Successive elements of an array that a thread loads or stores at once. */
template <typename T, int count> struct __align__(16) tc_lanes {
    T of[count];
};
__device__ __forceinline__ bool tc_aligned(const void *array)
{
    return (unsigned long long)array % 16 == 0;
}

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
/* Smith's division, as C's. Its denominator overflows if both parts of y are above half of the
   largest number: 9e307/(9e307 + 9e307i) is 0. A reciprocal would overflow for a subnormal y. */
__device__ __forceinline__ tc_complex operator/(tc_complex x, tc_complex y)
{
    if (fabs(y.re) >= fabs(y.im)) {
        const double ratio = y.im/y.re, size = y.re + y.im*ratio;
        return tc_complex((x.re + x.im*ratio)/size, (x.im - x.re*ratio)/size);
    }
    const double ratio = y.re/y.im, size = y.re*ratio + y.im;
    return tc_complex((x.re*ratio + x.im)/size, (x.im*ratio - x.re)/size);
}
/* By zero, each part is divided, as NumPy's are. */
__device__ __forceinline__ tc_complex tc_quotient_z(tc_complex x, tc_complex y)
{
    const double zero = fabs(y.re);
    return zero == 0 && y.im == 0 ? tc_complex(x.re/zero, x.im/zero) : x/y;
}
template <typename T> constexpr bool tc_is_complex = false;
template <> constexpr bool tc_is_complex<tc_complex> = true;
__device__ __forceinline__ double creal(tc_complex z) { return z.re; }
__device__ __forceinline__ double cimag(tc_complex z) { return z.im; }
__device__ __forceinline__ double creal(double x) { return x; }
__device__ __forceinline__ double cimag(double) { return 0.0; }
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

/* Number of tiles for some points. */
__device__ __forceinline__ tc_int tc_tiles(tc_int points, tc_int tile)
{
    return (points + tile - 1)/tile;
}

/* Tile of a block, in the order of squares of 16 x 16 tiles: blocks that run at the same time share
 * the operands of few rows and columns in the cache.
 */
__device__ __forceinline__ void tc_tile_of_block(
    tc_int block, tc_int rows, tc_int columns, tc_int &row, tc_int &column)
{
    const tc_int first = block/(16*columns)*16, height = rows - first < 16 ? rows - first : 16;
    block -= first*columns;
    row = first + block%height;
    column = block/height;
}

/* Bytes rounded up to whole cache lines. */
__device__ __forceinline__ tc_int tc_aligned(tc_int bytes) { return (bytes + 63)/64*64; }

/* Offset of the pair (p, q) in a packed lower triangle, with and without the diagonal. */
__device__ __forceinline__ tc_int tc_triangle(tc_int p, tc_int q)
{
    return p >= q ? p*(p + 1)/2 + q : q*(q + 1)/2 + p;
}
__device__ __forceinline__ tc_int tc_strict(tc_int p, tc_int q)
{
    return p >= q ? p*(p - 1)/2 + q : q*(q - 1)/2 + p;
}
__device__ __forceinline__ int tc_sign(tc_int p, tc_int q) { return p < q ? -1 : 1; }

/* The largest of COUNT values of a packed group, all below ``bound``, at a place in the group. */
template <int COUNT, int STRICT>
__device__ __forceinline__ tc_int tc_largest(tc_int place, tc_int bound)
{
    tc_int low = 0, high = bound;
    while (high - low > 1) {
        const tc_int middle = low + (high - low)/2;
        tc_int before = middle;
        #pragma unroll
        for (int n = 1; n < COUNT; ++n) before = before*(STRICT ? middle - n : middle + n)/(n + 1);
        if (before <= place) low = middle;
        else high = middle;
    }
    return low;
}

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

template <typename T>
__device__ __forceinline__ T tc_down(T x, int lanes)
{
    return __shfl_down_sync(0xffffffffu, x, lanes);
}
__device__ __forceinline__ tc_complex tc_down(tc_complex z, int lanes)
{
    return tc_complex(tc_down(z.re, lanes), tc_down(z.im, lanes));
}

struct tc_by_sum {
    template <typename T>
    __device__ __forceinline__ T operator()(T a, T b) { return a + b; }
};

/* The values of the threads of a block, reduced in a fixed order; thread 0 returns the result. All
 * threads of the block must call it. The array of the partial results (a block has at most 32 warps)
 * is declared here: arrays of the callers would each take shared memory of their own.
 */
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
template <typename T>
__device__ __forceinline__ T tc_block_sum(T value) { return tc_block_reduce<tc_by_sum>(value); }

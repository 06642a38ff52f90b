/* Products of small matrices by the lanes of a warp. Lane 4*g + t holds, of A (16 x k), rows g and
 * g + 8 at columns t, t + 4, ...; of B (k x 8), column g at rows t, t + 4, ...; of D (16 x 8), rows
 * g and g + 8 at columns 2*t and 2*t + 1 (PTX ISA, mma.m16n8k4, k8 and k16 with .f64).
 */
#ifndef TCGEN_EMULATE
#if __CUDA_ARCH__ >= 800
__device__ __forceinline__ void tc_mma_m8n8k4(
    double (&d)[2], const double (&a)[1], const double (&b)[1])
{
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
        : "+d"(d[0]), "+d"(d[1]) : "d"(a[0]), "d"(b[0]));
}
/* Of single precision: factors are rounded to TF32, the nearest numbers with 11 significant bits. */
__device__ __forceinline__ unsigned tc_tf32(float x)
{
    unsigned rounded;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(x));
    return rounded;
}
__device__ __forceinline__ void tc_mma_m16n8k8(
    float (&d)[4], const float (&a)[4], const float (&b)[2])
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(tc_tf32(a[0])), "r"(tc_tf32(a[1])), "r"(tc_tf32(a[2])), "r"(tc_tf32(a[3])),
        "r"(tc_tf32(b[0])), "r"(tc_tf32(b[1])));
}
#endif
#if __CUDA_ARCH__ >= 900
__device__ __forceinline__ void tc_mma_m16n8k8(
    double (&d)[4], const double (&a)[4], const double (&b)[2])
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
        : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
}
#endif
#endif
#if __CUDA_ARCH__ >= 800 && __CUDA_ARCH__ < 900
/* By four products of 8 x 8 x 4. */
__device__ __forceinline__ void tc_mma_m16n8k8(
    double (&d)[4], const double (&a)[4], const double (&b)[2])
{
    double upper[2] = {d[0], d[1]}, lower[2] = {d[2], d[3]};
    #pragma unroll
    for (int k = 0; k < 2; ++k) {
        const double top[1] = {a[2*k]}, bottom[1] = {a[2*k + 1]}, right[1] = {b[k]};
        tc_mma_m8n8k4(upper, top, right);
        tc_mma_m8n8k4(lower, bottom, right);
    }
    d[0] = upper[0];
    d[1] = upper[1];
    d[2] = lower[0];
    d[3] = lower[1];
}
#endif

/* Whether sums of a type are by fma(), which takes fewest instructions: before sm_80 there are no
 * such products, and ptxas puts some 50 instructions without effect behind each one of double
 * precision for the architectures after sm_100.
 */
template <typename T>
constexpr bool tc_by_fma = __CUDA_ARCH__ < 800 || (__CUDA_ARCH__ > 1000 && sizeof(T) > sizeof(float));

/* D += A B of 16 x 8 and 8 x 8, of real numbers. */
template <typename T>
__device__ __forceinline__ void tc_real_product(T &upper_left, T &upper_right, T &lower_left,
    T &lower_right, const T (&a)[4], const T (&b)[2])
{
    T d[4] = {upper_left, upper_right, lower_left, lower_right};
    tc_mma_m16n8k8(d, a, b);
    upper_left = d[0];
    upper_right = d[1];
    lower_left = d[2];
    lower_right = d[3];
}

/* The same of numbers of any kind, or of their complex conjugates: of complex numbers the products
 * of their real and imaginary parts, four of them, or two if a factor is real.
 */
template <bool A_CONJUGATED, bool B_CONJUGATED, typename T, typename A, typename B>
__device__ __forceinline__ void tc_product(T &upper_left, T &upper_right, T &lower_left,
    T &lower_right, const A (&a)[4], const B (&b)[2])
{
    if constexpr (!tc_is_complex<T>) {
        tc_real_product(upper_left, upper_right, lower_left, lower_right, a, b);
    } else {
        const double a_re[4] = {creal(a[0]), creal(a[1]), creal(a[2]), creal(a[3])};
        const double a_im[4] = {cimag(a[0]), cimag(a[1]), cimag(a[2]), cimag(a[3])};
        const double b_re[2] = {creal(b[0]), creal(b[1])}, b_im[2] = {cimag(b[0]), cimag(b[1])};
        const double minus_re[2] = {-b_re[0], -b_re[1]}, minus_im[2] = {-b_im[0], -b_im[1]};
        tc_real_product(upper_left.re, upper_right.re, lower_left.re, lower_right.re, a_re, b_re);
        if constexpr (tc_is_complex<B>)
            tc_real_product(upper_left.im, upper_right.im, lower_left.im, lower_right.im, a_re,
                B_CONJUGATED ? minus_im : b_im);
        if constexpr (tc_is_complex<A> && tc_is_complex<B>)
            tc_real_product(upper_left.re, upper_right.re, lower_left.re, lower_right.re, a_im,
                A_CONJUGATED == B_CONJUGATED ? minus_im : b_im);
        if constexpr (tc_is_complex<A>)
            tc_real_product(upper_left.im, upper_right.im, lower_left.im, lower_right.im, a_im,
                A_CONJUGATED ? minus_re : b_re);
    }
}

/* Fragments of 16 points of m, or of 8 of n, by 8 points of k, from shared memory. */
template <typename T, typename TILE, typename SCALE>
__device__ __forceinline__ void tc_left_fragment(
    T (&a)[4], const TILE &tile, int slot, int k, int m, const SCALE &scale)
{
    const int lane = threadIdx.x%32;
    #pragma unroll
    for (int n = 0; n < 4; ++n)
        a[n] = scale(tile.at(slot, k + lane%4 + n/2*4, m + n%2*8 + lane/4));
}
template <typename T, typename TILE>
__device__ __forceinline__ void tc_right_fragment(
    T (&b)[2], const TILE &tile, int slot, int k, int n)
{
    const int lane = threadIdx.x%32;
    if constexpr (TILE::BLOCKED > 1) {
        struct __align__(2*sizeof(T)) Pair { T of[2]; };
        const Pair both = *(const Pair *)&tile.at(slot, k + lane%4, n + lane/4);
        b[0] = both.of[0];
        b[1] = both.of[1];
    } else {
        b[0] = tile.at(slot, k + lane%4, n + lane/4);
        b[1] = tile.at(slot, k + lane%4 + 4, n + lane/4);
    }
}

/* Products by the tensor cores: a warp has EACH_M/2 x EACH_N/2 tiles of 16 x 8, from the point
 * (top, side) on. The fragments of the next 8 points of k are read between the products of these.
 */
template <int DEPTH, int EACH_M, int EACH_N, typename T, typename PIPELINE, typename SCALE>
__device__ __forceinline__ void tc_multiply_by_fragments(
    T (&sum)[EACH_M][EACH_N], PIPELINE &pipe, int top, int side, const SCALE &scale)
{
    constexpr int PAIRS_M = EACH_M/2, PAIRS_N = EACH_N/2, GROUPS = DEPTH/8;
    static_assert(GROUPS%2 == 0, "two fragments of B are used in turn");
    typename PIPELINE::left_tile::element a[PAIRS_M][4];
    typename PIPELINE::right_tile::element b[2][PAIRS_N][2];
    pipe.begin();
    pipe.arrive();
    #pragma unroll
    for (int r = 0; r < PAIRS_M; ++r) tc_left_fragment(a[r], pipe.left, 0, 0, top + r*16, scale);
    #pragma unroll
    for (int c = 0; c < PAIRS_N; ++c) tc_right_fragment(b[0][c], pipe.right, 0, 0, side + c*8);
    for (int chunk = 0; chunk*pipe.CHUNK_STEPS < pipe.steps; ++chunk) {
        pipe.fill(chunk + 1);
        int step = chunk*pipe.CHUNK_STEPS;
        const int end = min(step + pipe.CHUNK_STEPS, pipe.steps);
        #pragma unroll 1
        for (; step < end; ++step) {
            const int load = step + pipe.STAGES_AHEAD;
            pipe.look_up(load);
            #pragma unroll
            for (int group = 0; group < GROUPS; ++group) {
                const int now = group%2, k = (group + 1)%GROUPS*8;
                if (group + 1 == GROUPS) {
                    tc_cp_async_commit();
                    pipe.arrive();
                    pipe.slot = step + 1 < pipe.steps ? pipe.after(pipe.slot) : pipe.slot;
                    pipe.next = pipe.after(pipe.next);
                }
                __syncwarp();
                #pragma unroll
                for (int c = 0; c < PAIRS_N; ++c)
                    tc_right_fragment(b[1 - now][c], pipe.right, pipe.slot, k, side + c*8);
                #pragma unroll
                for (int r = 0; r < PAIRS_M; ++r) {
                    if constexpr (!PIPELINE::NARROW) __syncwarp(); /* behind loops of copies */
                    #pragma unroll
                    for (int c = 0; c < PAIRS_N; ++c)
                        tc_product<PIPELINE::left_tile::CONJUGATED,
                            PIPELINE::right_tile::CONJUGATED>(sum[2*r][2*c], sum[2*r][2*c + 1],
                            sum[2*r + 1][2*c], sum[2*r + 1][2*c + 1], a[r], b[now][c]);
                    tc_left_fragment(a[r], pipe.left, pipe.slot, k, top + r*16, scale);
                    if (group == 0) pipe.template copy<PAIRS_M>(r, load < pipe.steps);
                }
            }
        }
    }
}

/* Products of a warp by the tensor cores, or of the same points by the lanes that hold their sums. */
template <int DEPTH, int EACH_M, int EACH_N, typename T, typename PIPELINE, typename SCALE>
__device__ __forceinline__ void tc_multiply_by_warps(
    T (&sum)[EACH_M][EACH_N], PIPELINE &pipe, int top, int side, const SCALE &scale)
{
    if constexpr (tc_by_fma<T>) {
        const int lane = threadIdx.x%32;
        tc_multiply_by_threads<DEPTH, 8, 8, 2>(
            sum, pipe, top + lane/4, side + lane%4*2, scale);
    } else {
        tc_multiply_by_fragments<DEPTH>(sum, pipe, top, side, scale);
    }
}

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
 * inputs  u[o], e
 * outputs e
 * private r[1]
 * flops   1/3 o^3 + o^2 + 2/3 o
 * bytes   24 o + 8 read, 8 written
 */
extern "C" __global__ void __launch_bounds__(128, 1)
tcgen_triangles_0_2(
    const double *__restrict__ u,
    double *__restrict__ e,
    char *__restrict__ tc_scratch,
    const tc_int N_o)
{
    __shared__ double r;
    const tc_int tc_copied_bytes = tc_aligned(1*(tc_int)sizeof(double));
    double *const tc_copy_e = (double *)(tc_scratch + blockIdx.x*tc_copied_bytes + 0);
    for (tc_int tc_n = threadIdx.x; tc_n < 1; tc_n += 128) {
        tc_copy_e[tc_n] = 0.0;
    }
    __syncthreads();
    for (tc_int tc_point = blockIdx.x; tc_point < N_o*N_o*N_o; tc_point += gridDim.x) {
        tc_int tc_loops = tc_point;
        const tc_int k = tc_loops%N_o;
        tc_loops /= N_o;
        const tc_int j = tc_loops%N_o;
        tc_loops /= N_o;
        const tc_int i = tc_loops;
        if (j <= i && k <= j) {
            if (threadIdx.x == 0) r = u[i]*u[j]*u[k];
            __syncthreads();
            if (threadIdx.x == 0) tc_copy_e[0] += 0.14285714285714285*tc_orbit(i, j, k)*r;
            __syncthreads();
        }
    }
}

/* The second pass: adds the parts of each sum in order. */
extern "C" __global__ void __launch_bounds__(128, 1)
tcgen_triangles_0_2_finish(
    const double *__restrict__ u,
    double *__restrict__ e,
    char *__restrict__ tc_scratch,
    const tc_int N_o)
{
    const tc_int tc_copied_bytes = tc_aligned(1*(tc_int)sizeof(double));
    for (tc_int tc_element = blockIdx.x; tc_element < 1; tc_element += gridDim.x) {
        double tc_sum = 0.0;
        for (tc_int tc_n = threadIdx.x; tc_n < gridDim.x; tc_n += 128)
            tc_sum += ((const double *)(tc_scratch + tc_n*tc_copied_bytes + 0))[tc_element];
        tc_sum = tc_block_sum(tc_sum);
        if (threadIdx.x == 0) e[tc_element] += tc_sum;
        __syncthreads();
    }
}

/* kernel triangles_1
 *   by hand
 * inputs  u[o]
 * outputs f
 * flops   o^2 + o
 * bytes   16 o read, 8 written
 */
extern "C" __global__ void __launch_bounds__(256)
tcgen_triangles_1(
    double *__restrict__ f,
    const double *__restrict__ u,
    const tc_int N_o)
{
    const tc_int tc_split = blockIdx.x;
    double tc_sum = 0.0;
    for (tc_int tc_n = threadIdx.x; tc_n < (N_o*(N_o + 1)/2); tc_n += 1024) {
        bool tc_inside[4];
        double tc_value0[4];
        double tc_value1[4];
        #pragma unroll
        for (int tc_at = 0; tc_at < 4; ++tc_at) {
            const tc_int tc_here = tc_n + tc_at*256;
            const tc_int tc_number_x = tc_here;
            const tc_int x = tc_largest<2, 0>(tc_number_x, N_o);
            const tc_int y = tc_number_x - x*(x + 1)/2;
            tc_inside[tc_at] = tc_here < (N_o*(N_o + 1)/2) && y <= x;
            tc_value0[tc_at] = tc_inside[tc_at] ? u[x] : double(0);
            tc_value1[tc_at] = tc_inside[tc_at] ? u[y] : double(0);
        }
        #pragma unroll
        for (int tc_at = 0; tc_at < 4; ++tc_at) {
            const tc_int tc_here = tc_n + tc_at*256;
            const tc_int tc_number_x = tc_here;
            const tc_int x = tc_largest<2, 0>(tc_number_x, N_o);
            const tc_int y = tc_number_x - x*(x + 1)/2;
            if (tc_inside[tc_at]) tc_sum += (x == y ? 1 : 2)*(tc_value0[tc_at]*tc_value1[tc_at]);
        }
    }
    tc_sum = tc_block_sum(tc_sum);
    if (threadIdx.x == 0) f[0] = tc_sum;
}

/* kernel triangles_2
 *   by hand
 * inputs  u[o]
 * outputs h
 * flops   2/3 o^3 + 2 o^2 + 4/3 o
 * bytes   24 o read, 8 written
 */
extern "C" __global__ void __launch_bounds__(256)
tcgen_triangles_2(
    double *__restrict__ h,
    const double *__restrict__ u,
    const tc_int N_o)
{
    const tc_int tc_split = blockIdx.x;
    double tc_sum = 0.0;
    for (tc_int tc_n = threadIdx.x; tc_n < (N_o*(N_o + 1)/2*(N_o + 2)/3); tc_n += 1024) {
        bool tc_inside[4];
        double tc_value0[4];
        double tc_value1[4];
        double tc_value2[4];
        #pragma unroll
        for (int tc_at = 0; tc_at < 4; ++tc_at) {
            const tc_int tc_here = tc_n + tc_at*256;
            const tc_int tc_number_x = tc_here;
            const tc_int x = tc_largest<3, 0>(tc_number_x, N_o);
            const tc_int y = tc_largest<2, 0>(tc_number_x - x*(x + 1)/2*(x + 2)/3, x + 1);
            const tc_int z = tc_number_x - x*(x + 1)/2*(x + 2)/3 - y*(y + 1)/2;
            tc_inside[tc_at] = tc_here < (N_o*(N_o + 1)/2*(N_o + 2)/3) && y <= x && z <= y;
            tc_value0[tc_at] = tc_inside[tc_at] ? u[x] : double(0);
            tc_value1[tc_at] = tc_inside[tc_at] ? u[y] : double(0);
            tc_value2[tc_at] = tc_inside[tc_at] ? u[z] : double(0);
        }
        #pragma unroll
        for (int tc_at = 0; tc_at < 4; ++tc_at) {
            const tc_int tc_here = tc_n + tc_at*256;
            const tc_int tc_number_x = tc_here;
            const tc_int x = tc_largest<3, 0>(tc_number_x, N_o);
            const tc_int y = tc_largest<2, 0>(tc_number_x - x*(x + 1)/2*(x + 2)/3, x + 1);
            const tc_int z = tc_number_x - x*(x + 1)/2*(x + 2)/3 - y*(y + 1)/2;
            if (tc_inside[tc_at]) tc_sum += tc_orbit(x, y, z)*(tc_value0[tc_at]*tc_value1[tc_at]*tc_value2[tc_at]);
        }
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
 * bytes   16 o v + 4 o^2 + 4 o read, 4 o^2 + 4 o written
 */
extern "C" __global__ void __launch_bounds__(256)
tcgen_triangles_3_2(
    double *__restrict__ half_,
    const double *__restrict__ m,
    const tc_int N_o,
    const tc_int N_v)
{
    for (tc_int tc_n = (tc_int)blockIdx.x*256 + threadIdx.x; tc_n < (N_o*(N_o + 1)/2); tc_n += (tc_int)gridDim.x*256) {
        const tc_int tc_number_x = tc_n;
        const tc_int x = tc_largest<2, 0>(tc_number_x, N_o);
        const tc_int y = tc_number_x - x*(x + 1)/2;
        if (y <= x) {
            double tc_sum = 0.0;
            for (tc_int a = 0; a < N_v; ++a) {
                tc_sum += m[x*N_v + a]*m[y*N_v + a];
            }
            half_[x*N_o + y] += tc_sum;
        }
    }
}

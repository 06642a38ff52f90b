/* kernel energy_0
 *   t[i,a] = -2*g[i,a]/(e_o[i] - e_v[a] + shift)
 * inputs  g[o,v], e_o[o], e_v[v], shift
 * outputs t[o,v]
 * flops   4 o v
 * bytes   8 o v + 8 o + 8 v + 8 read, 8 o v written
 */
extern "C" __global__ void __launch_bounds__(256)
tcgen_energy_0(
    double *__restrict__ t,
    const double *__restrict__ g,
    const double *__restrict__ e_o,
    const double *__restrict__ e_v,
    const double *__restrict__ shift,
    const tc_int N_o,
    const tc_int N_v)
{
    for (tc_int tc_n = (tc_int)blockIdx.x*256 + threadIdx.x; tc_n < N_o*N_v; tc_n += (tc_int)gridDim.x*256) {
        tc_int tc_rest = tc_n;
        const tc_int a = tc_rest%N_v;
        tc_rest /= N_v;
        const tc_int i = tc_rest;
        t[i*N_v + a] = -2.0*(g[i*N_v + a]/(e_o[i] - e_v[a] + shift[0]));
    }
}

/* kernel energy_0_2
 *   t[i,a] = -2*g[i,a]/(e_o[i] - e_v[a] + shift)
 * inputs  t[o,v], g[o,v]
 * outputs e
 * flops   2 o v
 * bytes   16 o v read, 8 written
 */
extern "C" __global__ void __launch_bounds__(256)
tcgen_energy_0_2(
    double *__restrict__ e,
    const double *__restrict__ t,
    const double *__restrict__ g,
    const tc_int N_o,
    const tc_int N_v)
{
    const tc_int tc_split = blockIdx.x;
    double tc_sum = 0.0;
    for (tc_int tc_n = threadIdx.x; tc_n < N_o*N_v; tc_n += 1024) {
        bool tc_inside[4];
        double tc_value0[4];
        double tc_value1[4];
        #pragma unroll
        for (int tc_at = 0; tc_at < 4; ++tc_at) {
            const tc_int tc_here = tc_n + tc_at*256;
            const tc_int a = tc_here;
            tc_inside[tc_at] = tc_here < N_o*N_v;
            tc_value0[tc_at] = tc_inside[tc_at] ? t[a] : double(0);
            tc_value1[tc_at] = tc_inside[tc_at] ? g[a] : double(0);
        }
        #pragma unroll
        for (int tc_at = 0; tc_at < 4; ++tc_at) {
            if (tc_inside[tc_at]) tc_sum += tc_value0[tc_at]*tc_value1[tc_at];
        }
    }
    tc_sum = tc_block_sum(tc_sum);
    if (threadIdx.x == 0) e[0] = 0.3333333333333333*tc_sum;
}

/* kernel energy_1
 *   t[i,a] = -2*g[i,a]/(e_o[i] - e_v[a] + shift)
 * inputs  t[o,v]
 * outputs f[o,v]
 * flops   26 o v
 * bytes   8 o v read, 8 o v written
 */
extern "C" __global__ void __launch_bounds__(256)
tcgen_energy_1(
    double *__restrict__ f,
    const double *__restrict__ t,
    const tc_int N_o,
    const tc_int N_v)
{
    tc_int tc_done = 0;
    if (tc_aligned(f) && tc_aligned(t)) {
        for (tc_int tc_n = (tc_int)blockIdx.x*256 + threadIdx.x; tc_n < (N_o*N_v)/2; tc_n += (tc_int)gridDim.x*256) {
            tc_lanes<double, 2> tc_of_f;
            const tc_lanes<double, 2> tc_of_t = reinterpret_cast<const tc_lanes<double, 2> *>(t)[tc_n];
            #pragma unroll
            for (tc_int tc_lane = 0; tc_lane < 2; ++tc_lane) {
                tc_of_f.of[tc_lane] = exp((-0.25)*tc_pow_d(tc_of_t.of[tc_lane], 2)) + cos(tc_of_t.of[tc_lane])/(3.0 + fabs(sin(tc_of_t.of[tc_lane]))) + sqrt(fabs(tc_of_t.of[tc_lane])) + tc_pow_d(2.0 + tanh((tc_of_t.of[tc_lane])), -3) + (tc_of_t.of[tc_lane]) + (0*(tc_of_t.of[tc_lane])) + log(9.0 + fabs(tc_of_t.of[tc_lane]));
            }
            reinterpret_cast<tc_lanes<double, 2> *>(f)[tc_n] = tc_of_f;
        }
        tc_done = (N_o*N_v)/2*2;
    }
    for (tc_int tc_n = tc_done + (tc_int)blockIdx.x*256 + threadIdx.x; tc_n < N_o*N_v; tc_n += (tc_int)gridDim.x*256) {
        const tc_int a = tc_n;
        f[a] = exp((-0.25)*tc_pow_d(t[a], 2)) + cos(t[a])/(3.0 + fabs(sin(t[a]))) + sqrt(fabs(t[a])) + tc_pow_d(2.0 + tanh((t[a])), -3) + (t[a]) + (0*(t[a])) + log(9.0 + fabs(t[a]));
    }
}

/* kernel energy_2
 *   t[i,a] = -2*g[i,a]/(e_o[i] - e_v[a] + shift)
 * inputs  (none)
 * outputs lambda[o]
 * flops   0
 * bytes   0 read, 8 o written
 */
extern "C" __global__ void __launch_bounds__(256)
tcgen_energy_2(
    double *__restrict__ lambda,
    const tc_int N_o)
{
    for (tc_int tc_n = (tc_int)blockIdx.x*256 + threadIdx.x; tc_n < N_o; tc_n += (tc_int)gridDim.x*256) {
        lambda[tc_n] = double(0);
    }
}

/* kernel energy_2_2
 *   t[i,a] = -2*g[i,a]/(e_o[i] - e_v[a] + shift)
 * inputs  lambda[o], t[o,v]
 * outputs lambda[o]
 * flops   o v
 * bytes   8 o v + 8 o read, 8 o written
 */
extern "C" __global__ void __launch_bounds__(256)
tcgen_energy_2_2(
    double *__restrict__ lambda,
    const double *__restrict__ t,
    const tc_int N_o,
    const tc_int N_v)
{
    for (tc_int tc_n = (tc_int)blockIdx.x*256 + threadIdx.x; tc_n < N_o; tc_n += (tc_int)gridDim.x*256) {
        const tc_int i = tc_n;
        double tc_sum = 0.0;
        for (tc_int a = 0; a < N_v; ++a) {
            tc_sum += t[i*N_v + a];
        }
        lambda[i] += tc_sum;
    }
}

/* kernel energy_2_3
 *   t[i,a] = -2*g[i,a]/(e_o[i] - e_v[a] + shift)
 * inputs  lambda[o], e_o[o]
 * outputs lambda[o]
 * flops   o
 * bytes   16 o read, 8 o written
 */
extern "C" __global__ void __launch_bounds__(256)
tcgen_energy_2_3(
    double *__restrict__ lambda,
    const double *__restrict__ e_o,
    const tc_int N_o)
{
    tc_int tc_done = 0;
    if (tc_aligned(lambda) && tc_aligned(e_o)) {
        for (tc_int tc_n = (tc_int)blockIdx.x*256 + threadIdx.x; tc_n < N_o/2; tc_n += (tc_int)gridDim.x*256) {
            tc_lanes<double, 2> tc_of_lambda = reinterpret_cast<const tc_lanes<double, 2> *>(lambda)[tc_n];
            const tc_lanes<double, 2> tc_of_e_o = reinterpret_cast<const tc_lanes<double, 2> *>(e_o)[tc_n];
            #pragma unroll
            for (tc_int tc_lane = 0; tc_lane < 2; ++tc_lane) {
                tc_of_lambda.of[tc_lane] += -tc_of_e_o.of[tc_lane];
            }
            reinterpret_cast<tc_lanes<double, 2> *>(lambda)[tc_n] = tc_of_lambda;
        }
        tc_done = N_o/2*2;
    }
    for (tc_int tc_n = tc_done + (tc_int)blockIdx.x*256 + threadIdx.x; tc_n < N_o; tc_n += (tc_int)gridDim.x*256) {
        const tc_int i = tc_n;
        lambda[i] += -e_o[i];
    }
}

/* kernel energy_3
 *   t[i,a] = -2*g[i,a]/(e_o[i] - e_v[a] + shift)
 * inputs  t[o,v]
 * outputs norm
 * flops   2 o v
 * bytes   8 o v read, 8 written
 */
extern "C" __global__ void __launch_bounds__(256)
tcgen_energy_3(
    double *__restrict__ norm_,
    const double *__restrict__ t,
    const tc_int N_o,
    const tc_int N_v)
{
    const tc_int tc_split = blockIdx.x;
    double tc_sum = 0.0;
    for (tc_int tc_n = threadIdx.x; tc_n < N_o*N_v; tc_n += 1024) {
        bool tc_inside[4];
        double tc_value0[4];
        #pragma unroll
        for (int tc_at = 0; tc_at < 4; ++tc_at) {
            const tc_int tc_here = tc_n + tc_at*256;
            const tc_int a = tc_here;
            tc_inside[tc_at] = tc_here < N_o*N_v;
            tc_value0[tc_at] = tc_inside[tc_at] ? t[a] : double(0);
        }
        #pragma unroll
        for (int tc_at = 0; tc_at < 4; ++tc_at) {
            if (tc_inside[tc_at]) tc_sum += tc_value0[tc_at]*(tc_value0[tc_at]);
        }
    }
    tc_sum = tc_block_sum(tc_sum);
    if (threadIdx.x == 0) norm_[0] = tc_sum;
}

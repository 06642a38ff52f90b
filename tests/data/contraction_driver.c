/* Random contractions by the kernel, compared with plain loops. Exits with 1 and a line for the first difference. It is
 * compiled with the driver, the staged library and the micro-kernels of one element type.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "blocking.h"
#include "ukernel.h"

extern tc_ukernels TC_NAME(tc_packed), TC_NAME(tc_left), TC_NAME(tc_right);
extern const tc_ukernels tc_made_packed;
tc_contraction TC_NAME(tc_blocks);
#if TC_REALS == 1
extern const tc_ukernels tc_made_left, tc_made_right;
tc_contraction TC_NAME(tc_staged);
#endif

enum { TRIALS = 300, MOST_POINTS = 40000, MOST_AXES = 3, GROUPS = 4, ARRAYS = 3 };
enum { BATCH, M, N, K };
static const int holds[ARRAYS][GROUPS] = {{1, 1, 0, 1}, {1, 0, 1, 1}, {1, 1, 1, 0}};

static const volatile int never = 0;
static unsigned long long state = 1;

static int64_t below(int64_t n)
{
    state = state*6364136223846793005ull + 1442695040888963407ull;
    return (int64_t)((state >> 33)%(unsigned long long)n);
}

/* Lengths of the axes of each group, and their strides in each array. */
static int axes[GROUPS];
static int64_t length[GROUPS][MOST_AXES], stride[ARRAYS][GROUPS][MOST_AXES];

/* Lay an array out densely with its axes in random order. Returns its elements. */
static int64_t lay_out(int array)
{
    int group[GROUPS*MOST_AXES], axis[GROUPS*MOST_AXES], count = 0;
    int64_t size = 1;
    for (int g = 0; g < GROUPS; ++g) {
        for (int d = 0; holds[array][g] && d < axes[g]; ++d, ++count) group[count] = g, axis[count] = d;
    }
    for (; count > 0; --count) {
        const int64_t pick = below(count);
        stride[array][group[pick]][axis[pick]] = size;
        size *= length[group[pick]][axis[pick]];
        group[pick] = group[count - 1];
        axis[pick] = axis[count - 1];
    }
    return size;
}

static int64_t points(int g)
{
    int64_t size = 1;
    for (int d = 0; d < axes[g]; ++d) size *= length[g][d];
    return size;
}

/* Offset of a point of a group in an array. */
static int64_t offset(int array, int g, int64_t point)
{
    int64_t at = 0;
    for (int d = axes[g] - 1; d >= 0; point /= length[g][d--]) at += point%length[g][d]*stride[array][g][d];
    return at;
}

static tc_scalar *random_array(int64_t size)
{
    tc_scalar *const x = malloc((size_t)size*sizeof(tc_scalar));
    for (int64_t n = 0; n < size; ++n) x[n] = (tc_real)below(64)/32 - 1;
    return x;
}

/* Order the axes of m and n as the kernel's callers do: the last one is the fastest in array ``by``. */
static void sort_axes(int g, int by)
{
    for (int d = 1; d < axes[g]; ++d) {
        for (int e = d; e > 0 && stride[by][g][e - 1] < stride[by][g][e]; --e) {
            int64_t *const lists[] = {length[g], stride[0][g], stride[1][g], stride[2][g]};
            for (int n = 0; n < 4; ++n) {
                const int64_t swap = lists[n][e];
                lists[n][e] = lists[n][e - 1];
                lists[n][e - 1] = swap;
            }
        }
    }
}

static int trial(int number)
{
    const int64_t most[GROUPS] = {2, 60, 40, 40};
    for (int g = 0; g < GROUPS; ++g) {
        axes[g] = (int)below(MOST_AXES + 1);
        for (int d = 0; d < axes[g]; ++d) length[g][d] = 1 + below(most[g]);
    }
    while (points(BATCH)*points(M)*points(N)*points(K) > MOST_POINTS) {
        const int g = (int)below(GROUPS), d = (int)below(MOST_AXES);
        if (d < axes[g]) length[g][d] = (length[g][d] + 1)/2;
    }
    int64_t size[ARRAYS];
    for (int array = 0; array < ARRAYS; ++array) size[array] = lay_out(array);
    const int scheme = 1 + (int)below(3), add = (int)below(2), stage = (int)below(2), threads = 1 + (int)below(3);
    sort_axes(M, scheme == TC_PACK_B ? 0 : 2);
    sort_axes(N, scheme == TC_PACK_A ? 2 : 1);
    tc_scalar *const a = random_array(size[0]), *const b = random_array(size[1]), *const c = random_array(size[2] + 1);
    tc_scalar *const want = random_array(size[2] + 1), *const out = c + below(2), *const expected = want + (out - c);
    memcpy(want, c, (size_t)(size[2] + 1)*sizeof(tc_scalar));
    for (int64_t batch = 0; batch < points(BATCH); ++batch) {
        for (int64_t m = 0; m < points(M); ++m) {
            for (int64_t n = 0; n < points(N); ++n) {
                tc_scalar sum = 0;
                for (int64_t k = 0; k < points(K); ++k) {
                    sum += a[offset(0, BATCH, batch) + offset(0, M, m) + offset(0, K, k)]
                        *b[offset(1, BATCH, batch) + offset(1, N, n) + offset(1, K, k)];
                }
                tc_scalar *const at = expected + offset(2, BATCH, batch) + offset(2, M, m) + offset(2, N, n);
                *at = (add ? *at : 0) + (tc_real)0.5*sum;
            }
        }
    }
    const tc_group m = {axes[M], length[M], stride[0][M], stride[2][M]};
    const tc_group n = {axes[N], length[N], stride[1][N], stride[2][N]};
    const tc_group k = {axes[K], length[K], stride[0][K], stride[1][K]};
    const tc_group batch = {axes[BATCH], length[BATCH], stride[0][BATCH], stride[1][BATCH]};
    const tc_group target = {axes[BATCH], length[BATCH], stride[2][BATCH], stride[2][BATCH]};
    int64_t bytes = 0;
    for (int staged = 0; staged < 2; ++staged) {
        bytes = tc_max(bytes, tc_packing(sizeof(tc_scalar), TC_REALS, points(M), points(N), points(K), staged));
    }
    char *const memory = aligned_alloc(64, (size_t)(bytes*threads));
    int done = 0;
#if TC_REALS == 1
    if (stage && scheme != (TC_PACK_A | TC_PACK_B)) {
        done = TC_NAME(tc_staged)(threads, scheme, &m, &n, &k, &batch, &target, 0.5, a, b, add, out, memory, bytes, &never);
    }
#else
    (void)stage;
#endif
    if (!done) TC_NAME(tc_blocks)(threads, scheme, &m, &n, &k, &batch, &target, 0.5, a, b, add, out, memory, bytes, &never);
    int wrong = 0;
    for (int64_t p = 0; p <= size[2]; ++p) {
        const double complex error = c[p] - want[p];
        wrong |= !(fabs(creal(error)) + fabs(cimag(error)) <= (sizeof(tc_real) == 4 ? 1e-3 : 1e-11));
    }
    if (wrong) printf("trial %d (scheme %d, staged %d, %d threads): another result\n", number, scheme, done, threads);
    free(a), free(b), free(c), free(want), free(memory);
    return wrong ? -1 : done;
}

int main(void)
{
    int staged = 0;
    memcpy(TC_NAME(tc_packed), tc_made_packed, sizeof(tc_ukernels));
#if TC_REALS == 1
    memcpy(TC_NAME(tc_left), tc_made_left, sizeof(tc_ukernels));
    memcpy(TC_NAME(tc_right), tc_made_right, sizeof(tc_ukernels));
#endif
    for (int n = 0; n < TRIALS; ++n) {
        const int done = trial(n);
        if (done < 0) return 1;
        staged += done;
    }
    printf("%d contractions, %d staged\n", TRIALS, staged);
    return 0;
}

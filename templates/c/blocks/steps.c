/* Steps over tables of blocks. A row of a table has the offsets of its arrays in ``places``, where -1 is a
 * block of zeros that is not stored, and extents and strides in ``steps``.
 */
enum { TC_ZERO, TC_ADD, TC_COPY, TC_PRODUCT, TC_MAP, TC_REAL, TC_NEST };

typedef struct {
    int64_t kind, rows, width, elements, accumulate, map;
    const int64_t *places;
    const int32_t *steps;
    const int64_t *arrays;  /* numbers of the buffers, the target first */
    const struct tc_nest *inside;
    double coefficient;
} tc_step;

/* Loops over orbitals. Of the buffers inside, the first are slices, and the results and others lie in a scratch. A row
 * of the table has the offsets of the slices, and the number of a program and a factor of its results. */
typedef struct {
    int64_t count;
    const tc_step *steps;
} tc_program;
typedef struct tc_nest {
    int64_t slices, results, buffers;
    const int64_t *offsets;
    const tc_program *programs;
} tc_nest;

static const $scalar tc_nothing[$zeros] = {0};

/* to[j,i] = from[i,j] of a tile: rows of both are contiguous, from_row and to_row apart. */
static inline void tc_turn(int64_t rows, int64_t columns, const $scalar *from, int64_t from_row, $scalar *to,
    int64_t to_row)
{
#if $vectors
    tc_transpose_$kind(rows, columns, 1, from, from_row, to, to_row, 0);
#else
    for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < columns; ++j) to[j*to_row + i] = from[i*from_row + j];
    }
#endif
}

/* n elements with strides: d = coefficient*s, or d += coefficient*s. */
static inline void tc_line(int64_t n, $scalar *restrict d, int64_t step_d, const $scalar *restrict s,
    int64_t step_s, $real coefficient, int accumulate)
{
    if (step_d == 1 && step_s == 1) {
        if (accumulate) for (int64_t i = 0; i < n; ++i) d[i] += coefficient*s[i];
        else if (coefficient == 1) for (int64_t i = 0; i < n; ++i) d[i] = s[i];
        else for (int64_t i = 0; i < n; ++i) d[i] = coefficient*s[i];
    } else {
        if (accumulate) for (int64_t i = 0; i < n; ++i) d[i*step_d] += coefficient*s[i*step_s];
        else for (int64_t i = 0; i < n; ++i) d[i*step_d] = coefficient*s[i*step_s];
    }
}

/* A block: extents, strides of the target, strides of the source; rank loops, the last one fastest. */
static void tc_copy_block(int64_t rank, const int32_t *e, $scalar *d, const $scalar *s, $real coefficient,
    int accumulate)
{
    const int32_t *const step_d = e + rank, *const step_s = e + 2*rank;
    if (rank == 0) {
        tc_line(1, d, 1, s, 1, coefficient, accumulate);
        return;
    }
    if (rank == 1) {
        tc_line(e[0], d, step_d[0], s, step_s[0], coefficient, accumulate);
        return;
    }
    int64_t at[$loops] = {0}, outer = 1;
    for (int64_t axis = 0; axis < rank - 2; ++axis) outer *= e[axis];
    const int64_t p = rank - 2, q = rank - 1;
    for (int64_t n = 0; n < outer; ++n) {
#if $vectors
        if (step_d[q] == 1 && step_s[p] == 1 && step_s[q] != 1) {
            tc_transpose_$kind(e[q], e[p], coefficient, s, step_s[q], d, step_d[p], accumulate);
        } else
#endif
        for (int64_t i = 0; i < e[p]; ++i) {
            tc_line(e[q], d + i*step_d[p], step_d[q], s + i*step_s[p], step_s[q], coefficient, accumulate);
        }
        for (int64_t axis = rank - 3; axis >= 0; --axis) {
            d += step_d[axis];
            s += step_s[axis];
            if (++at[axis] < e[axis]) break;
            d -= (int64_t)e[axis]*step_d[axis];
            s -= (int64_t)e[axis]*step_s[axis];
            at[axis] = 0;
        }
    }
}

/* C = coefficient*A*B of matrices in C order: extents m, n, k; row strides of C, A, B; A or B transposed. */
static void tc_product(const tc_step *step, int64_t row, $scalar *const *buffers, void *const *table,
    int threads)
{
    const int32_t *const t = step->steps + row*step->width;
    const int64_t *const at = step->places + 3*row;
    tc_gemm_$kind(table, threads, t[7] ? 'T' : 'N', t[6] ? 'T' : 'N', t[1], t[0], t[2], ($real)step->coefficient,
        buffers[step->arrays[2]] + at[2], t[5], buffers[step->arrays[1]] + at[1], t[4],
        step->accumulate ? 1 : 0, buffers[step->arrays[0]] + at[0], t[3]);
}

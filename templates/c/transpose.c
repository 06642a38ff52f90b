/* Reals of a side of the squares that are transposed in registers: those of a vector register, at most 8. */
#ifndef TC_SQUARE_BYTES
#if defined(__AVX512F__)
#define TC_SQUARE_BYTES 64
#elif defined(__AVX__)
#define TC_SQUARE_BYTES 32
#else
#define TC_SQUARE_BYTES 16
#endif
#if defined(__clang__)
#define TC_EXCHANGED(lanes, one, two, ...) __builtin_shufflevector(one, two, __VA_ARGS__)
#else
#define TC_EXCHANGED(lanes, one, two, ...) __builtin_shuffle(one, two, (lanes){__VA_ARGS__})
#endif
/* Lane n of the first and of the second of two rows of l lanes, after quarters of squares of 2 h lanes changed places. */
#define TC_FIRST(n, l, h) ((n) & (h) ? (l) + (n) - (h) : (n))
#define TC_SECOND(n, l, h) ((n) & (h) ? (l) + (n) : (n) + (h))
#define TC_LANES_OF_2(F, h) F(0, 2, h), F(1, 2, h)
#define TC_LANES_OF_4(F, h) F(0, 4, h), F(1, 4, h), F(2, 4, h), F(3, 4, h)
#define TC_LANES_OF_8(F, h) F(0, 8, h), F(1, 8, h), F(2, 8, h), F(3, 8, h), F(4, 8, h), F(5, 8, h), F(6, 8, h), F(7, 8, h)
#define TC_EXCHANGE_ROWS(type, lanes, list, side, h)                      \
    for (int n = 0; n < (side); ++n) {                                    \
        if (n & (h)) continue;                                            \
        const type one = x[n], two = x[n + (h)];                          \
        x[n] = TC_EXCHANGED(lanes, one, two, list(TC_FIRST, h));          \
        x[n + (h)] = TC_EXCHANGED(lanes, one, two, list(TC_SECOND, h));   \
    }
#endif

enum { TC_SIDE_$kind = TC_SQUARE_BYTES/$bytes < 8 ? TC_SQUARE_BYTES/$bytes : 8 };
typedef $real tc_row_$kind __attribute__((vector_size(TC_SIDE_$kind*$bytes)));
typedef $real tc_row_any_$kind __attribute__((vector_size(TC_SIDE_$kind*$bytes), aligned($bytes), may_alias));
typedef $integer tc_row_lanes_$kind __attribute__((vector_size(TC_SIDE_$kind*$bytes)));

static inline void tc_transpose_square_$kind($real alpha, const $real *from, int64_t from_row, $real *to,
    int64_t to_row, int add)
{
    tc_row_$kind x[TC_SIDE_$kind];
    for (int n = 0; n < TC_SIDE_$kind; ++n) x[n] = alpha**(const tc_row_any_$kind *)(from + n*from_row);
#if TC_SQUARE_BYTES/$bytes >= 8
    TC_EXCHANGE_ROWS(tc_row_$kind, tc_row_lanes_$kind, TC_LANES_OF_8, 8, 4)
    TC_EXCHANGE_ROWS(tc_row_$kind, tc_row_lanes_$kind, TC_LANES_OF_8, 8, 2)
    TC_EXCHANGE_ROWS(tc_row_$kind, tc_row_lanes_$kind, TC_LANES_OF_8, 8, 1)
#elif TC_SQUARE_BYTES/$bytes == 4
    TC_EXCHANGE_ROWS(tc_row_$kind, tc_row_lanes_$kind, TC_LANES_OF_4, 4, 2)
    TC_EXCHANGE_ROWS(tc_row_$kind, tc_row_lanes_$kind, TC_LANES_OF_4, 4, 1)
#else
    TC_EXCHANGE_ROWS(tc_row_$kind, tc_row_lanes_$kind, TC_LANES_OF_2, 2, 1)
#endif
    for (int n = 0; n < TC_SIDE_$kind; ++n) {
        tc_row_any_$kind *const place = (tc_row_any_$kind *)(to + n*to_row);
        if (add) x[n] += *place;
        *place = x[n];
    }
}

/* to[j,i] = alpha from[i,j], or added to what is there; rows of both are contiguous, from_row and to_row apart. */
static void tc_transpose_$kind(int64_t rows, int64_t columns, $real alpha, const $real *from, int64_t from_row,
    $real *to, int64_t to_row, int add)
{
    const int64_t whole_rows = rows/TC_SIDE_$kind*TC_SIDE_$kind, whole = columns/TC_SIDE_$kind*TC_SIDE_$kind;
    for (int64_t j = 0; j < whole; j += TC_SIDE_$kind) {
        for (int64_t i = 0; i < whole_rows; i += TC_SIDE_$kind) {
            tc_transpose_square_$kind(alpha, from + i*from_row + j, from_row, to + j*to_row + i, to_row, add);
        }
    }
    for (int64_t j = 0; j < columns; ++j) {
        for (int64_t i = j < whole ? whole_rows : 0; i < rows; ++i) {
            const $real x = alpha*from[i*from_row + j];
            to[j*to_row + i] = add ? to[j*to_row + i] + x : x;
        }
    }
}

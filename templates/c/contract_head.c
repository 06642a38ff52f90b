/* Contractions of $scalar in any layout, written by tcgen $version. C11 with vectors of GCC and clang.
 *
 * Blocks of both operands are packed in the order in which tiles of the target use them, which turns
 * them, or read where they lie. A tile is computed in registers and stored as it is. Threads
 * have rectangles of the target, or points of the batch, and share nothing.
 */
#include <complex.h>
#include <stdint.h>
#include <unistd.h>
#ifdef _OPENMP
#include <omp.h>
#endif

static inline int64_t tc_min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t tc_max(int64_t a, int64_t b) { return a > b ? a : b; }

$call
/* Vectors and register tiles of this machine: 3 vectors of rows by TC_COLUMNS columns fill its
 * registers, with room for one column of the left operand and one element of the right one.
 */
#if defined(__AVX512F__)
#define TC_VECTOR 64
#define TC_COLUMNS 8
#elif defined(__AVX__)
#define TC_VECTOR 32
#define TC_COLUMNS 4
#elif defined(__aarch64__)
#define TC_VECTOR 16
#define TC_COLUMNS 8
#else
#define TC_VECTOR 16
#define TC_COLUMNS 4
#endif

/* Steps of a tile's sum that are written one behind the other: beside what goes on meanwhile, and alone. */
#if TC_VECTOR == 64
#define TC_TOGETHER 2
#define TC_ALONE 2
#else
#define TC_TOGETHER 1
#define TC_ALONE 4
#endif
#define TC_DO(what) _Pragma(#what)
#define TC_UNROLL(times) TC_DO(GCC unroll times)

/* AMD's Zen 4, which older compilers call Zen 3, as they do Zen 5: each can do something that the one before cannot. */
#if (defined(__znver3__) || defined(__znver4__)) && defined(__GFNI__) && !defined(__AVXVNNI__)
#define TC_ZEN4 1
#else
#define TC_ZEN4 0
#endif

/* How stages fetch what they read next, and blocks that suit it; measured on AMD's processors and on Intel's.
 *
 * Tiles fetch to TC_LEVEL, where 3 is the first level of the cache. Intel's and Zen 4's waits there for few lines at a
 * time, so that those which come from memory keep others from it: there it is 2, the second level. Memory is busier
 * when lines come from TC_STREAMS pages in turn. A sum is computed in parts that lie on TC_PAGES, so that the places of
 * these and of the next part's are still known when they are read; in one part on AMD's.
 *
 * Staged rows go through a buffer of TC_STAGED bytes, in blocks of TC_ROW lines of a row, or beside long sums of
 * TC_HIDDEN. Memory fetches on its own behind what was read, which is still in the cache when it is needed if blocks are
 * small. Rows of the operand that lie one behind the other are a block of TC_WHOLE bytes, if they fit: as much of the
 * second-level cache as leaves room for another one and what is fetched.
 *
 * Tiles on their way past the caches wait together with TC_BROAD bytes of a row of their columns; where vectors are
 * long, Intel's first level should hold them.
 */
#if defined(__AVX__) && !defined(__znver1__) && !defined(__znver2__) && !defined(__znver3__) \
    && !defined(__znver4__) && !defined(__znver5__)
#define TC_LEVEL 2
#define TC_STREAMS 6
#define TC_PAGES 24
#define TC_STAGED 196608
#define TC_ROW 2
#define TC_HIDDEN 1
#define TC_WHOLE (tc_second_level()/4)
#define TC_BROAD (TC_VECTOR == 64 ? 384 : 24*TC_VECTOR)
#else
#define TC_LEVEL (TC_ZEN4 ? 2 : 3)
#define TC_STREAMS 1
#define TC_PAGES 1048576
#define TC_STAGED 393216
#define TC_ROW 3
#define TC_HIDDEN 2
#define TC_WHOLE 0
#define TC_BROAD (24*TC_VECTOR)
#endif

/* Lines that go past the caches are stored as a tile ends, and do not wait for the next tile's products, where these take
 * two cycles a vector: meanwhile such a tile's stores are over.
 */
#define TC_AT_ONCE TC_ZEN4

/* Columns that follow each other and begin within lines are put together to lines in registers, as a tile ends; elsewhere
 * by way of a buffer.
 */
#define TC_JOINS (TC_ZEN4 && TC_VECTOR == 64)

/* Bytes of the second-level cache, or 0 where the system does not say. */
static inline int64_t tc_second_level(void)
{
#ifdef _SC_LEVEL2_CACHE_SIZE
    static int64_t bytes = -1;
    if (bytes < 0) bytes = tc_max(0, sysconf(_SC_LEVEL2_CACHE_SIZE));
    return bytes;
#else
    return 0;
#endif
}

/* With 16 registers and FMA compilers read a vector from memory once for each column instead of keeping it in
 * a register: more reads than a processor does beside that many products.
 */
#if defined(__FMA__) && !defined(__AVX512F__)
#define TC_KEEP(x) __asm__("" : "+x"(x))
#else
#define TC_KEEP(x) ((void)0)
#endif

#if defined(__AVX512F__) && !defined(__clang__)
#define TC_STREAM_d(place, x) __builtin_ia32_movntpd512((double *)(place), x)
#define TC_STREAM_s(place, x) __builtin_ia32_movntps512((float *)(place), x)
#define TC_FENCE() __builtin_ia32_sfence()
#elif defined(__AVX__) && !defined(__clang__)
#define TC_STREAM_d(place, x) __builtin_ia32_movntpd256((double *)(place), x)
#define TC_STREAM_s(place, x) __builtin_ia32_movntps256((float *)(place), x)
#define TC_FENCE() __builtin_ia32_sfence()
#elif defined(__clang__)
#define TC_STREAM_d(place, x) __builtin_nontemporal_store(x, place)
#define TC_STREAM_s(place, x) __builtin_nontemporal_store(x, place)
#define TC_FENCE() __sync_synchronize()
#else
#define TC_STREAM_d(place, x) (*(place) = (x))
#define TC_STREAM_s(place, x) (*(place) = (x))
#define TC_FENCE() ((void)0)
#endif

#if defined(__AVX512F__) && !defined(__clang__)
#define TC_MASKED(load, store, bits, to, x, first, last, add)       \
    do {                                                            \
        const bits tc_m = (bits)((1u << (last)) - (1u << (first))); \
        __typeof__(x) tc_x = x;                                     \
        if (add) tc_x += load(to, (__typeof__(x)){0}, tc_m);        \
        store(to, tc_x, tc_m);                                      \
    } while (0)
#define TC_MASK_d(to, x, first, last, add) TC_MASKED(__builtin_ia32_loadupd512_mask, \
    __builtin_ia32_storeupd512_mask, unsigned char, to, x, first, last, add)
#define TC_MASK_s(to, x, first, last, add) TC_MASKED(__builtin_ia32_loadups512_mask, \
    __builtin_ia32_storeups512_mask, unsigned short, to, x, first, last, add)
#define TC_MASK_z TC_MASK_d
#elif TC_VECTOR == 32
#define TC_MASKED(load, store, pick, lanes, to, x, first, last, add)          \
    do {                                                                      \
        typedef pick tc_lane __attribute__((vector_size(TC_VECTOR)));         \
        const tc_lane tc_n = lanes, tc_m = (tc_n >= (pick)(first)) & (tc_n < (pick)(last)); \
        __typeof__(x) tc_x = x;                                               \
        if (add) tc_x += load((const __typeof__(x) *)(to), tc_m);             \
        store((__typeof__(x) *)(to), tc_m, tc_x);                             \
    } while (0)
#define TC_UP_TO(...) {__VA_ARGS__}
#define TC_MASK_d(to, x, first, last, add) TC_MASKED(__builtin_ia32_maskloadpd256, \
    __builtin_ia32_maskstorepd256, long long, TC_UP_TO(0, 1, 2, 3), to, x, first, last, add)
#define TC_MASK_s(to, x, first, last, add) TC_MASKED(__builtin_ia32_maskloadps256, \
    __builtin_ia32_maskstoreps256, int, TC_UP_TO(0, 1, 2, 3, 4, 5, 6, 7), to, x, first, last, add)
#define TC_MASK_z TC_MASK_d
#endif
#define TC_STREAM_z TC_STREAM_d

/* Lanes of two vectors, by numbers that are known when it runs: one of them holds a cache line. */
#if defined(__AVX512F__) && !defined(__clang__)
#define TC_MERGE_d(one, two, from) __builtin_shuffle(one, two, from)
#define TC_MERGE_s TC_MERGE_d
#elif defined(__AVX512F__)
#define TC_MERGE_d(one, two, from) __builtin_ia32_vpermi2varpd512(one, from, two)
#define TC_MERGE_s(one, two, from) __builtin_ia32_vpermi2varps512(one, from, two)
#endif

/* Lanes of two vectors, by their numbers. */
#if defined(__clang__)
#define TC_SHUFFLE(pick, one, two, ...) __builtin_shufflevector(one, two, __VA_ARGS__)
#else
#define TC_SHUFFLE(pick, one, two, ...) __builtin_shuffle(one, two, (pick){__VA_ARGS__})
#endif

/* A vector of halves of two. */
typedef double tc_whole __attribute__((vector_size(TC_VECTOR)));
#if TC_VECTOR == 16
typedef double tc_half __attribute__((aligned(4), may_alias));
#define TC_JOIN(low, high) ((tc_whole){low, high})
#else
typedef double tc_half __attribute__((vector_size(TC_VECTOR/2), aligned(4), may_alias));
#if defined(__clang__) && TC_VECTOR == 64
#define TC_JOIN(low, high) __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7)
#elif defined(__clang__)
#define TC_JOIN(low, high) __builtin_shufflevector(low, high, 0, 1, 2, 3)
#elif TC_VECTOR == 64
#define TC_JOIN(low, high) \
    __builtin_ia32_insertf64x4_mask(__builtin_ia32_pd512_256pd(low), high, 1, (tc_whole){0}, 255)
#else
#define TC_JOIN(low, high) __builtin_ia32_vinsertf128_pd256(__builtin_ia32_pd256_pd(low), high, 1)
#endif
#endif

#define TC_AXES 64               /* NumPy's most axes */
#define TC_STREAM_BYTES 4000000  /* a target at least this large passes by the caches */
#define TC_BUFFER 524288         /* bytes of staged columns on their way through a buffer, */
#define TC_GOING 172032          /* of rows that go on in the next block, at most twice as many, */
#define TC_JOINED 655360         /* and of those whose columns follow each other, too */
#define TC_PENDING (4096/TC_VECTOR)  /* vectors that wait for the next tiles to store them, */
#define TC_LINES (51200/TC_VECTOR)   /* or, in a buffer, for those of the next chunk, */
#define TC_STRETCHES TC_LINES        /* and the stretches that they form */
#define TC_FIRST 32768           /* bytes of a first-level cache */
#define TC_PAGE 4096             /* bytes from one summed point to the next that are far */
#define TC_LISTED 4096           /* most lines of a staged group of panels that are fetched */
#define TC_PACE 1048576          /* parts of a square */
#define TC_RUNS 16               /* most runs of the target in a panel */
#define TC_TALLEST (1024/TC_VECTOR)  /* panels that wait together, with the columns of a tile */
#define TC_NEAR 262144           /* bytes of blocks that leave room in the second-level cache */
#define TC_FILLED 786432         /* or fill it, beside targets that go through a buffer */
#define TC_KEPT 16384            /* bytes of packed columns beside which panels go by, */
#define TC_SOME 4                /* or tiles of them */
#define TC_FEW 128               /* columns or rows, */
#define TC_SEVERAL 512           /* and so many that packing still takes time that counts */
#define TC_DEEP 192              /* summed points beside which storing a tile in pieces takes no time */
#define TC_TALL 16               /* summed points of a rectangle, */
#define TC_WIDE 24               /* by how many */
#define TC_LONG 6                /* most lines of a row of a staged block, */
#define TC_HIDING 40             /* fewer of staged rows beside a sum that is as long; */
#define TC_LONGER 12             /* of one that begins and ends within lines, */
#define TC_CARRIED 4             /* and, at least half of them, of one that goes on in the next block */
#define TC_LASTING 32            /* lines of a whole row, of which those at its ends are few */
#define TC_AHEAD 4               /* squares between fetching the target and storing it */
#define TC_FETCHES 512           /* lines that a tile fetches */
#define TC_ADDRESSES (TC_VECTOR/8)  /* of lines, computed at a time */
#define TC_STRIPS 256            /* panels of a block */
#define TC_NEARBY 64             /* places that are computed at a time */
#define TC_ADDING 4000           /* vectors times a tile's columns while threads wait for each other */
#define TC_THREAD_POINTS 200000  /* starting threads for fewer costs more than it saves */

/* How a tile reads an operand. */
enum { TC_IN_PLACE = 0, TC_PACKED = 1 };

/* How a target passes by the caches: not at all, in tiles of whole lines, by way of a buffer, by lines that are put
 * together of columns that follow each other.
 */
enum { TC_CACHED = 0, TC_DIRECT = 1, TC_BUFFERED = 2, TC_JOINED_LINES = 3 };

/* How a target that is turned is stored: past the caches by whole lines; by squares, to lines that are in the
 * caches; past them by lines that are put together, where its rows begin and end within lines.
 */
enum { TC_BY_LINES = 0, TC_BY_SQUARES = 1, TC_ACROSS_LINES = 2, TC_WAYS };

/* A group within the library: neighbouring axes joined. */
typedef struct {
    int axes;
    int64_t length[TC_AXES], x[TC_AXES], y[TC_AXES];
} tc_walk;

/* A group without axes of length 1; neighbours that lie as one axis in both operands are joined. */
static void tc_join(tc_walk *to, const tc_group *g, int join)
{
    int last = -1;
    for (int n = 0; n < g->axes; ++n) {
        if (g->length[n] == 1) continue;
        const int64_t length = g->length[n], x = g->x[n], y = g->y[n];
        if (join && last >= 0 && to->x[last] == x*length && to->y[last] == y*length) {
            to->length[last] *= length;
        } else {
            to->length[++last] = length;
        }
        to->x[last] = x;
        to->y[last] = y;
    }
    to->axes = last + 1;
}

static int64_t tc_points(const tc_walk *g)
{
    int64_t points = 1;
    for (int n = 0; n < g->axes; ++n) points *= g->length[n];
    return points;
}

/* Place of the last point of a group in the first operand. */
static int64_t tc_reach(const tc_walk *g)
{
    int64_t reach = 0;
    for (int n = 0; n < g->axes; ++n) reach += (g->length[n] - 1)*g->x[n];
    return reach;
}

/* Places in both operands of ``count`` points of a group from number ``first`` on. */
static void tc_places(const tc_walk *g, int64_t first, int64_t count, int64_t *x, int64_t *y)
{
    int64_t digit[TC_AXES], here = 0, there = 0;
    const int last = g->axes - 1;
    if (count == 0) return;
    if (last < 0) {
        for (int64_t n = 0; n < count; ++n) x[n] = y[n] = 0;
        return;
    }
    for (int d = last; d >= 0; --d) {
        digit[d] = first%g->length[d];
        first /= g->length[d];
        here += digit[d]*g->x[d];
        there += digit[d]*g->y[d];
    }
    for (int64_t n = 0; n < count;) {
        const int64_t run = tc_min(count - n, g->length[last] - digit[last]);
        const int64_t step_x = g->x[last], step_y = g->y[last];
        for (int64_t r = 0; r < run; ++r) {
            x[n + r] = here + r*step_x;
            y[n + r] = there + r*step_y;
        }
        n += run;
        here -= digit[last]*step_x;
        there -= digit[last]*step_y;
        digit[last] = 0;
        for (int d = last - 1; d >= 0; --d) {
            here += g->x[d];
            there += g->y[d];
            if (++digit[d] < g->length[d]) break;
            here -= g->length[d]*g->x[d];
            there -= g->length[d]*g->y[d];
            digit[d] = 0;
        }
    }
}

/* Length of the longest run of consecutive places along the fastest axes. */
static int64_t tc_run(int axes, const int64_t *length, const int64_t *stride)
{
    int64_t run = 1;
    for (int n = axes - 1; n >= 0 && stride[n] == run; --n) run *= length[n];
    return run;
}

/* How rows are cut into panels of at most three vectors: by runs, several short ones together, or all
 * rows as one run.
 */
typedef struct {
    int64_t rows, run, vectors, pieces, panels;
    int lanes;
} tc_cut;

static tc_cut tc_cut_rows(int64_t rows, int64_t run, int lanes)
{
    tc_cut cut = {rows, run, (run + lanes - 1)/lanes, 0, 0, lanes};
    cut.pieces = (cut.vectors + 2)/3;
    cut.panels = (rows + run - 1)/run*cut.pieces;
    return cut;
}

/* How many runs a panel takes: a tile of several has fewer idle lanes, but is stored in pieces. In
 * units of a vector's products at a summed point, a tile takes the time of 12, and a piece that of 4.
 */
static int64_t tc_runs_together(int64_t rows, int64_t run, int64_t depth, int lanes)
{
    const int64_t runs = tc_min(tc_min(3*lanes/run, rows/run), TC_RUNS);
    if (runs < 2) return 1;
    const int64_t vectors = (runs*run + lanes - 1)/lanes, pieces = runs + vectors - 1;
    const int64_t alone = runs*((run + lanes - 1)/lanes*depth + 12);
    return 20*(vectors*depth + 12 + 4*pieces) < 19*alone ? runs : 1;
}

/* First row of a panel; its vectors and rows. */
static int64_t tc_panel(const tc_cut *cut, int64_t panel, int *vectors, int64_t *rows)
{
    const int64_t piece = panel%cut->pieces, base = cut->vectors/cut->pieces;
    const int64_t extra = cut->vectors%cut->pieces;
    const int64_t skip = piece*base + tc_min(piece, extra);
    const int64_t first = panel/cut->pieces*cut->run + skip*cut->lanes;
    *vectors = (int)(base + (piece < extra));
    *rows = tc_min((int64_t)*vectors*cut->lanes, cut->run - skip*cut->lanes);
    *rows = tc_min(*rows, cut->rows - first);  /* the last panel may hold fewer runs */
    *vectors = (int)((*rows + cut->lanes - 1)/cut->lanes);
    return first;
}

/* How summed points are cut into blocks: equal ones in their order, or, where two long axes have
 * stride 1 in an operand each, rectangles of both. Whole cache lines of both operands are then used at
 * once.
 */
typedef struct {
    tc_walk walk;  /* of all points; in rectangles, without the two axes */
    int crossed;
    int64_t depth, count, tall, wide;
    int64_t first[3], second[3];  /* length and strides of the axes of b and of a */
} tc_steps;

static tc_steps tc_steps_of(const tc_walk *k, int64_t depth)
{
    tc_steps s = {.walk = *k, .depth = depth, .tall = 1, .wide = 1};
    int one = -1, two = -1;
    for (int d = 0; d < k->axes; ++d) {
        if (k->y[d] == 1) one = d;
        if (k->x[d] == 1) two = d;
    }
    const int64_t points = tc_points(k);
    s.count = tc_max(1, (points + depth - 1)/depth);
    s.depth = tc_max(1, tc_min(depth, ((points + s.count - 1)/s.count + 7)/8*8));
    if (one < 0 || two < 0 || one == two || points <= depth
        || k->length[one] < TC_TALL || k->length[two] <= 2*TC_WIDE || depth < TC_TALL*TC_WIDE) {
        return s;
    }
    s.crossed = 1;
    s.depth = depth;
    for (int n = 0; n < 3; ++n) {
        s.first[n] = (n == 0 ? k->length : n == 1 ? k->x : k->y)[one];
        s.second[n] = (n == 0 ? k->length : n == 1 ? k->x : k->y)[two];
    }
    s.walk.length[one] = s.walk.length[two] = 1;
    s.tall = (s.first[0] + TC_TALL - 1)/TC_TALL;
    s.wide = (s.second[0] + TC_WIDE - 1)/TC_WIDE;
    s.count = tc_points(&s.walk)*s.tall*s.wide;
    return s;
}

/* Places of the points of a block, and how many. From one point to that with the next element of b
 * are ``leap`` points.
 */
static int64_t tc_step(const tc_steps *s, int64_t step, int64_t *x, int64_t *y, int64_t *leap)
{
    *leap = 1;
    if (!s->crossed) {
        const int64_t start = step*s->depth, depth = tc_min(s->depth, tc_points(&s->walk) - start);
        tc_places(&s->walk, start, depth, x, y);
        return depth;
    }
    const int64_t p = step%s->wide*TC_WIDE, q = step/s->wide%s->tall*TC_TALL;
    const int64_t wide = tc_min(TC_WIDE, s->second[0] - p), tall = tc_min(TC_TALL, s->first[0] - q);
    int64_t from, to;
    tc_places(&s->walk, step/s->wide/s->tall, 1, &from, &to);
    for (int64_t n = 0; n < tall*wide; ++n) {
        x[n] = from + (q + n/wide)*s->first[1] + (p + n%wide)*s->second[1];
        y[n] = to + (q + n/wide)*s->first[2] + (p + n%wide)*s->second[2];
    }
    *leap = wide;
    return tall*wide;
}

typedef int64_t tc_places_in_lanes __attribute__((vector_size(TC_VECTOR), aligned(8), may_alias));

/* How many of ``count`` places follow each other, ``apart``, from the first one on: most often few, or all. */
static int64_t tc_run_of(const int64_t *places, int64_t count, int64_t apart)
{
    enum { LANES = TC_VECTOR/8, TOGETHER = 4*LANES };
    int64_t run = 1;
    while (run + TOGETHER <= count) {
        tc_places_in_lanes other = {0};
        int64_t jumps = 0;
        _Pragma("GCC unroll 4")
        for (int n = 0; n < TOGETHER; n += LANES) {
            const int64_t *const here = places + run + n;
            other |= *(const tc_places_in_lanes *)here - *(const tc_places_in_lanes *)(here - 1) - apart;
        }
        _Pragma("GCC unroll 8")
        for (int n = 0; n < LANES; ++n) jumps |= other[n];
        if (jumps) break;
        run += TOGETHER;
    }
    while (run < count && places[run] == places[run - 1] + apart) ++run;
    return run;
}

static int tc_consecutive(const int64_t *places, int64_t count)
{
    return count <= 1 || tc_run_of(places, count, 1) == count;
}

#define TC_BELOW(n, l, h) ((n) & (h) ? (l) + (n) - (h) : (n))
#define TC_ABOVE(n, l, h) ((n) & (h) ? (l) + (n) : (n) + (h))
#define TC_NUMBER(n, l, h) (n)
#define TC_EACH_2(F, l, h) F(0, l, h), F(1, l, h)
#define TC_EACH_4(F, l, h) TC_EACH_2(F, l, h), F(2, l, h), F(3, l, h)
#define TC_EACH_8(F, l, h) TC_EACH_4(F, l, h), F(4, l, h), F(5, l, h), F(6, l, h), F(7, l, h)
#define TC_EACH_16(F, l, h) TC_EACH_8(F, l, h), F(8, l, h), F(9, l, h), F(10, l, h), F(11, l, h), \
    F(12, l, h), F(13, l, h), F(14, l, h), F(15, l, h)

/* Vectors and register tiles of this machine: TC_HEIGHT vectors of rows by TC_COLUMNS columns fill its registers, with
 * room for one column of the left operand and one element of the right one. Where a vector is half a cache line, tiles
 * have lines of rows, so that they store whole lines past the caches; but in stages, whose blocks are as wide as lines.
 * TC_WAITING bytes of what does not lie on lines wait in a buffer: some tiles of each panel.
 */
#if defined(__AVX512F__)
#define TC_VECTOR 64
#define TC_HEIGHT 3
#define TC_COLUMNS 8
#elif defined(__AVX__) && !$staged
#define TC_VECTOR 32
#define TC_HEIGHT 2
#define TC_COLUMNS 6
#elif defined(__AVX__)
#define TC_VECTOR 32
#define TC_HEIGHT 3
#define TC_COLUMNS 4
#elif defined(__aarch64__)
#define TC_VECTOR 16
#define TC_HEIGHT 3
#define TC_COLUMNS 8
#else
#define TC_VECTOR 16
#define TC_HEIGHT 3
#define TC_COLUMNS 4
#endif
#define TC_WAITING (TC_HEIGHT == 2 ? 71680 : 51200)

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

/* Registers hold the sums of a tile and half of a square beside them, so that squares are turned between its steps;
 * elsewhere before the first one.
 */
#if TC_VECTOR == 64 || defined(__aarch64__)
#define TC_BESIDE 1
#else
#define TC_BESIDE 0
#endif

/* How stages fetch what they read next, and blocks that suit it; measured on AMD's processors and on Intel's.
 *
 * Tiles fetch to TC_LEVEL, where 3 is the first level of the cache. Intel's and Zen 4's waits there for few lines at a
 * time, so that those which come from memory keep others from it: there it is 2, the second level. Memory is busier
 * when lines come from TC_STREAMS pages in turn, on AMD's (not TC_ALWAYS) if they are that many and a page has several
 * summed points. A sum is computed in parts that lie on TC_PAGES, so that the places of these and of the next part's are
 * still known when they are read; in one part on AMD's.
 *
 * Staged rows go through a buffer of TC_STAGED bytes, in blocks of TC_ROW lines of a row, or beside long sums of
 * TC_HIDDEN. Memory fetches on its own behind what was read, which is still in the cache when it is needed if blocks are
 * small. Rows of the operand that lie one behind the other are a block of TC_WHOLE bytes, if they fit: as much of the
 * second-level cache as leaves room for another one and what is fetched.
 *
 * Tiles on their way past the caches wait together with TC_BROAD bytes of a row of their columns; where vectors are
 * long, Intel's first level should hold them.
 */
#if TC_INTEL
#define TC_LEVEL 2
#define TC_STREAMS 6
#define TC_ALWAYS 1
#define TC_PAGES 24
#define TC_STAGED 196608
#define TC_ROW 2
#define TC_HIDDEN 1
#define TC_WHOLE (tc_second_level()/4)
#define TC_BROAD (TC_VECTOR == 64 ? 384 : 24*TC_VECTOR)
#else
#define TC_LEVEL (TC_ZEN4 ? 2 : 3)
#define TC_STREAMS (TC_AMD && !TC_ZEN4 ? 6 : 1)
#define TC_ALWAYS 0
#define TC_PAGES 1048576
#define TC_STAGED 393216
#define TC_ROW 3
#define TC_HIDDEN 2
#define TC_WHOLE 0
#define TC_BROAD (24*TC_VECTOR)
#endif

/* Lines of the target that are added to, or written in part, are fetched a little before: for writing, or, where the
 * first level waits for few lines, as what is read later.
 */
#if TC_ZEN4
#define TC_FETCH_TARGET(place) __builtin_prefetch(place, 0, 2)
#else
#define TC_FETCH_TARGET(place) __builtin_prefetch(place, 1, 3)
#endif

/* Lines that go past the caches are stored as a tile ends, and do not wait for the next tile's products: on AMD's
 * processors such a tile's stores are over meanwhile.
 */
#define TC_AT_ONCE TC_AMD

/* Columns that follow each other and begin within lines are put together to lines in registers, as a tile ends; elsewhere
 * by way of a buffer.
 */
#define TC_JOINS (TC_AMD && TC_VECTOR == 64)

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

/* The main loop of a matrix product: tiles of both operands go through STAGES buffers in shared
 * memory, DEPTH points of k at a time. Copies for later steps overlap the products of a step.
 */
/* A number of which the compiler knows nothing: what follows from it is computed where it is used,
 * and no register holds it from before.
 */
#if defined(TCGEN_EMULATE) || defined(__HIP__) /* no registers of PTX */
__device__ __forceinline__ tc_int tc_anew(tc_int number) { return number; }
#else
__device__ __forceinline__ int tc_anew(int number)
{
    asm volatile("" : "+r"(number));
    return number;
}
__device__ __forceinline__ long long tc_anew(long long number)
{
    asm volatile("" : "+l"(number));
    return number;
}
#endif

/* Bytes of the offsets of a chunk of k, one half of a table. */
#define TC_CHUNK_BYTES 512

/* Offsets that are neighbours in a table, by loads of 16 bytes if they fill these. */
template <int COUNT, typename INDEX, typename ENTRY>
__device__ __forceinline__ void tc_read_offsets(INDEX (&offsets)[COUNT], const ENTRY *table)
{
    constexpr int EACH = 16/(int)sizeof(ENTRY);
    if constexpr (COUNT%EACH == 0) {
        struct __align__(16) Group { ENTRY of[EACH]; };
        #pragma unroll
        for (int n = 0; n < COUNT/EACH; ++n) {
            const Group group = ((const Group *)table)[n];
            #pragma unroll
            for (int i = 0; i < EACH; ++i) offsets[n*EACH + i] = (INDEX)group.of[i];
        }
    } else {
        #pragma unroll
        for (int n = 0; n < COUNT; ++n) offsets[n] = (INDEX)table[n];
    }
}

/* Rows that all threads copy at once: as many as there are threads for, and a divisor of all. */
__device__ constexpr int tc_rows_at_once(int rows, int most)
{
    int count = most < rows ? most : rows;
    while (rows%count) --count;
    return count;
}

/* The tiles of an operand: LENGTH points of m or n by DEPTH points of k. A row in shared memory,
 * PITCH elements apart from the next, is along k if ALONG_K, else along m or n, and a thread copies
 * WIDTH neighbours of it at once. If RUN > 1, successive points of n are SEGMENT places apart in a
 * row, RUN of them. If BLOCK > 1, the points of k are counted in blocks of BLOCK x BLOCK, and each
 * block is transposed in a row. If CONJ, products have the complex conjugates of the elements. An
 * array that is the block's OWN may be in shared memory itself.
 */
template <typename T, typename INDEX, int THREADS, int LENGTH, int DEPTH, int WIDTH, bool ALONG_K,
    int PITCH, int RUN, int SEGMENT, int BLOCK, bool CONJ, bool OWN>
struct tc_operand {
    typedef T element;
    static constexpr bool CONJUGATED = CONJ;
    static constexpr int BLOCKED = BLOCK;
    static constexpr int ROWS = ALONG_K ? LENGTH : DEPTH;
    static constexpr int COPIES = (ALONG_K ? DEPTH : LENGTH)/WIDTH; /* of a row */
    static constexpr int AT_ONCE = tc_rows_at_once(ROWS, THREADS/COPIES);
    static constexpr int TURNS = ROWS/AT_ONCE;
    static_assert(COPIES <= THREADS, "too few threads for a row");
    static constexpr bool NARROW = sizeof(INDEX) == 4; /* offsets of all copies fit registers */

    const T *start;
    T *tile;
    const tc_int *moved; /* offsets of the points of m or n */
    const INDEX *deep; /* offsets of those of k */
    int row, place, number; /* of this thread's first copy; first point of k of the step */
    int entry; /* of the table, for the place */
    bool busy;
    INDEX fixed, offsets[NARROW ? TURNS : 1];

    __device__ __forceinline__ tc_operand(
        const T *first, T *shared, const tc_int *moved_table, const INDEX *deep_table) :
        start(first), tile(shared), moved(moved_table), deep(deep_table),
        row((int)threadIdx.x/COPIES*TURNS), entry((int)threadIdx.x%COPIES*WIDTH),
        busy((int)threadIdx.x < COPIES*AT_ONCE), fixed(0)
    {
        place = entry;
        if constexpr (RUN > 1 && !ALONG_K) place = entry/(LENGTH/RUN)*SEGMENT + entry%(LENGTH/RUN);
        if constexpr (AT_ONCE*COPIES < THREADS) row = busy ? row : 0;
    }
    /* The table of the points of m or n is complete. */
    __device__ __forceinline__ void begin()
    {
        if constexpr (!ALONG_K) fixed = (INDEX)moved[entry];
    }
    /* Read the offsets of a step, whose points of k begin at ``first`` in their table. */
    __device__ __forceinline__ void look_up(int first)
    {
        number = first;
        if constexpr (ALONG_K) fixed = deep[first + entry];
        if constexpr (NARROW && ALONG_K) tc_read_offsets(offsets, moved + row);
        else if constexpr (NARROW) tc_read_offsets(offsets, deep + first + row);
    }
    __device__ __forceinline__ INDEX offset(int turn) const
    {
        if constexpr (NARROW) return offsets[turn];
        else return ALONG_K ? (INDEX)moved[row + turn] : deep[number + row + turn];
    }
    __device__ __forceinline__ void copy(
        int slot, int turn, bool wanted, bool given = true) const
    {
        T *const target = tile + (slot*ROWS + row + turn)*PITCH + place;
        const T *const source = start + (INDEX)(fixed + offset(turn));
        if constexpr (OWN) tc_copy_own<WIDTH>(target, source, wanted && busy, given);
        else tc_copy<WIDTH>(target, source, wanted && busy, given);
    }
    /* The same, with zeros for the points of k before the first of the sum. */
    __device__ __forceinline__ void copy_part(int slot, int turn, int missing) const
    {
        copy(slot, turn, true, (ALONG_K ? entry : row + turn) >= missing);
    }
    __device__ __forceinline__ const T &at(int slot, int k, int m) const
    {
        if constexpr (ALONG_K) {
            const int row_of = RUN == 1 ? m : m%RUN*(LENGTH/RUN) + m/RUN;
            return tile[(slot*ROWS + row_of)*PITCH + place_of(k)];
        } else {
            return tile[(slot*ROWS + k)*PITCH + (RUN == 1 ? m : m%RUN*SEGMENT + m/RUN)];
        }
    }
    /* Where a point of k is in a row, and in the table. */
    static __device__ __forceinline__ int place_of(int k)
    {
        return BLOCK == 1 ? k : k/DEPTH*DEPTH + k%BLOCK*BLOCK + k%DEPTH/BLOCK;
    }
};

/* A point of k whose number counts blocks of 4 x 4 points of the last two variables, the last of
 * which has some extent.
 */
__device__ __forceinline__ tc_int tc_point_of_block(tc_int number, tc_int extent)
{
    const tc_int block = number/16, blocks = extent/4;
    return (block/blocks*4 + number/4%4)*extent + block%blocks*4 + number%4;
}

/* The steps of a sum over ``depth`` points of k, of which this block takes ``steps`` from number
 * ``first`` on. If DEPTH does not divide the sum, the first step of all begins with missing points.
 * ``offsets(k, left, right)`` gives the offsets of a point of k in both operands.
 */
template <int THREADS, int DEPTH, int STAGES, typename LEFT, typename RIGHT, typename INDEX,
    typename OFFSETS>
struct tc_pipeline {
    typedef LEFT left_tile;
    typedef RIGHT right_tile;
    static constexpr bool NARROW = LEFT::NARROW;
    static constexpr int CHUNK = TC_CHUNK_BYTES/(int)sizeof(INDEX); /* points of k */
    static constexpr int CHUNK_STEPS = CHUNK/DEPTH, STAGES_AHEAD = STAGES - 1;
    static_assert(CHUNK%DEPTH == 0 && CHUNK_STEPS >= STAGES, "a chunk is too short");

    LEFT left;
    RIGHT right;
    INDEX *left_deep, *right_deep;
    const OFFSETS &offsets;
    tc_int last; /* extent of the last variable of k */
    tc_int start; /* number of the first point of k, negative if it is missing */
    int steps, slot, next; /* buffers of the present products, and of the next copies */

    __device__ __forceinline__ tc_pipeline(const LEFT &left_of, const RIGHT &right_of,
        INDEX *left_table, INDEX *right_table, const OFFSETS &offsets_of, tc_int points,
        tc_int extent, tc_int first, tc_int count) :
        left(left_of), right(right_of), left_deep(left_table), right_deep(right_table),
        offsets(offsets_of), last(extent),
        start(first*DEPTH + points - tc_tiles(points, DEPTH)*DEPTH), steps((int)count), slot(0), next(STAGES - 1)
    {
    }

    /* Offsets of the points of k of a chunk, into one half of each table. Those of points before the
     * first and beyond the last are never used.
     */
    __device__ __forceinline__ void fill(int chunk)
    {
        const int half = chunk%2*CHUNK;
        #pragma unroll 1
        for (int n = threadIdx.x; n < CHUNK; n += THREADS) {
            tc_int number = start + (tc_int)chunk*CHUNK + n, left_offset, right_offset;
            if constexpr (RIGHT::BLOCKED > 1) number = tc_point_of_block(number, last);
            offsets(number, left_offset, right_offset);
            left_deep[half + n] = (INDEX)left_offset;
            right_deep[half + RIGHT::place_of(n)] = (INDEX)right_offset;
        }
    }
    __device__ __forceinline__ void look_up(int step)
    {
        const int number = step%(2*CHUNK_STEPS)*DEPTH;
        left.look_up(number);
        right.look_up(number);
    }
    /* A part of the copies of a step: those whose turn leaves the remainder ``part``. */
    template <int PARTS>
    __device__ __forceinline__ void copy(int part, bool wanted) const
    {
        if constexpr (LEFT::NARROW) {
            #pragma unroll
            for (int turn = part; turn < LEFT::TURNS; turn += PARTS) left.copy(next, turn, wanted);
            #pragma unroll
            for (int turn = part; turn < RIGHT::TURNS; turn += PARTS)
                right.copy(next, turn, wanted);
        } else if (part == 0) {
            #pragma unroll 1
            for (int turn = 0; turn < LEFT::TURNS; ++turn) left.copy(next, turn, wanted);
            #pragma unroll 1
            for (int turn = 0; turn < RIGHT::TURNS; ++turn) right.copy(next, turn, wanted);
        }
    }
    /* All copies of the first step of a block, where points of k may be missing. */
    template <typename OPERAND>
    static __device__ __forceinline__ void copy_first(const OPERAND &operand, int missing)
    {
        #pragma unroll (OPERAND::NARROW ? OPERAND::TURNS : 1)
        for (int turn = 0; turn < OPERAND::TURNS; ++turn) operand.copy_part(0, turn, missing);
    }
    /* Start the copies of the first steps. */
    __device__ __forceinline__ void begin()
    {
        fill(0);
        __syncthreads();
        left.begin();
        right.begin();
        look_up(0);
        copy_first(left, start < 0 ? (int)-start : 0);
        copy_first(right, start < 0 ? (int)-start : 0);
        tc_cp_async_commit();
        #pragma unroll
        for (next = 1; next < STAGES - 1; ++next) {
            look_up(next);
            copy<1>(0, next < steps);
            tc_cp_async_commit();
        }
    }
    /* Wait for the oldest copies. All threads have read the buffer that is written next. */
    __device__ __forceinline__ void arrive() const
    {
        tc_cp_async_wait<STAGES - 2>();
        __syncthreads();
    }
    static __device__ __forceinline__ int after(int buffer)
    {
        return buffer + 1 == STAGES ? 0 : buffer + 1;
    }
};

/* Products by the threads, each of its points of m and n: rows ``y + r*STEP_M`` of the tile, and
 * PAIR neighbouring columns from each ``x + c*STEP_N`` on. ``scale`` is applied to the left operand.
 */
template <int DEPTH, int STEP_M, int STEP_N, int PAIR, int EACH_M, int EACH_N, typename T,
    typename PIPELINE, typename SCALE>
__device__ __forceinline__ void tc_multiply_by_threads(
    T (&sum)[EACH_M][EACH_N], PIPELINE &pipe, int y, int x, const SCALE &scale)
{
    pipe.begin();
    for (int chunk = 0; chunk*pipe.CHUNK_STEPS < pipe.steps; ++chunk) {
        pipe.fill(chunk + 1);
        int step = chunk*pipe.CHUNK_STEPS;
        const int end = min(step + pipe.CHUNK_STEPS, pipe.steps);
        #pragma unroll 1
        for (; step < end; ++step) {
            const int load = step + pipe.STAGES_AHEAD;
            pipe.arrive();
            pipe.look_up(load);
            pipe.template copy<1>(0, load < pipe.steps);
            tc_cp_async_commit();
            #pragma unroll
            for (int k = 0; k < DEPTH; ++k) {
                typename PIPELINE::left_tile::element a[EACH_M];
                typename PIPELINE::right_tile::element b[EACH_N];
                #pragma unroll
                for (int r = 0; r < EACH_M; ++r) a[r] = scale(pipe.left.at(pipe.slot, k, y + r*STEP_M));
                #pragma unroll
                for (int c = 0; c < EACH_N; ++c)
                    b[c] = pipe.right.at(pipe.slot, k, x + c/PAIR*STEP_N + c%PAIR);
                #pragma unroll
                for (int r = 0; r < EACH_M; ++r) {
                    #pragma unroll
                    for (int c = 0; c < EACH_N; ++c)
                        tc_add_product<PIPELINE::left_tile::CONJUGATED,
                            PIPELINE::right_tile::CONJUGATED>(sum[r][c], a[r], b[c]);
                }
            }
            pipe.slot = pipe.after(pipe.slot);
            pipe.next = pipe.after(pipe.next);
        }
    }
}

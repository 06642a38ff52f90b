/* The layout of a call's memory, to the byte that of records/arena.py and runtime/memory.py. */

static int64_t tcr_up(int64_t n, int64_t to) { return (n + to - 1)/to*to; }

static int64_t tcr_extent(const tcr_program *p, int space, const int64_t *extents)
{
    int64_t sum = 0;
    for (int n = 0; n < p->space[space].bases; ++n) sum += extents[p->space[space].base[n]];
    return sum;
}

/* Values of axes of n elements in decreasing order: C(n + count - 1, count), or C(n, count). */
static int64_t tcr_values(int64_t n, int count, int strict)
{
    int64_t values = 1;
    for (int k = 0; k < count; ++k) {
        const int64_t left = strict ? n - k : n + k;
        if (left <= 0) return 0;
        values = values*left/(k + 1);
    }
    return values;
}

static int64_t tcr_axis_length(const tcr_program *p, const tcr_axis *axis, const int64_t *extents)
{
    const int64_t n = axis->length ? axis->length : tcr_extent(p, axis->space, extents);
    return tcr_values(n, axis->count, axis->strict);
}

static int64_t tcr_bytes(const tcr_program *p, const tcr_array *array, const int64_t *extents)
{
    int64_t bytes = array->item;
    for (int n = 0; n < array->axes; ++n) bytes *= tcr_axis_length(p, &array->axis[n], extents);
    return bytes;
}

/* The same for extents of which an integer may be too small. */
static double tcr_about(const tcr_program *p, const tcr_array *array, const int64_t *extents)
{
    double bytes = array->item;
    for (int n = 0; n < array->axes; ++n) {
        const tcr_axis *const axis = &array->axis[n];
        double extent = axis->length;
        for (int b = 0; !axis->length && b < p->space[axis->space].bases; ++b) {
            extent += (double)extents[p->space[axis->space].base[b]];
        }
        bytes *= axis->count == 1 ? extent : pow(extent + axis->count, axis->count);
    }
    return bytes;
}

static int64_t tcr_packing(const tcr_program *p, const tcr_kernel *kernel, const int64_t *extents)
{
    int64_t most = 0;
    for (int n = 0; n < kernel->products; ++n) {
        const tcr_product *const x = &kernel->product[n];
        const tcr_length *at = x->length;
        int64_t size[3] = {1, 1, 1};
        for (int group = 0; group < 3; ++group) {
            for (int v = 0; v < x->count[group]; ++v, ++at) {
                const int64_t extent = tcr_extent(p, at->space, extents);
                size[group] *= at->tile ? tc_min(at->tile, extent) : extent;
            }
        }
        most = tc_max(most, tc_packing(x->item, x->reals, size[0], size[1], size[2], x->staged_a));
    }
    return most;
}

/* A request for memory, and its place; ``entry`` is that of the table, or of a kernel's frames below -1. */
typedef struct {
    int64_t bytes, start;
    int first, last, rank, entry;
} tcr_block;

static int tcr_before(const tcr_block *x, const tcr_block *y, int order)
{
    switch (order) {
    case 0: return x->bytes > y->bytes;
    case 1: return x->first != y->first ? x->first < y->first : x->bytes > y->bytes;
    case 2: return x->last - x->first > y->last - y->first;
    default: return x->rank != y->rank ? x->rank < y->rank : x->bytes > y->bytes;
    }
}

static int tcr_together(const tcr_block *x, const tcr_block *y)
{
    return x->first <= y->last && y->first <= x->last;
}

/* First fit, in the one of four orders that needs the fewest bytes; the bytes that it needs. */
static int64_t tcr_place(tcr_block *block, int count, int64_t alignment)
{
    int order[count + 1], live[count + 1];
    int64_t start[count + 1], bound = 0, best = -1;
    for (int n = 0; n < count; ++n) block[n].bytes = tcr_up(block[n].bytes, alignment);
    for (int n = 0; n < count; ++n) {  /* most bytes are live where some block begins */
        int64_t now = 0;
        for (int m = 0; m < count; ++m) {
            if (block[m].first <= block[n].first && block[n].first <= block[m].last) now += block[m].bytes;
        }
        bound = tc_max(bound, now);
    }
    for (int key = 0; key < 4 && best != bound; ++key) {
        int64_t needed = 0;
        for (int n = 0; n < count; ++n) {
            int at = n;
            for (; at > 0 && tcr_before(&block[n], &block[order[at - 1]], key); --at) order[at] = order[at - 1];
            order[at] = n;
        }
        for (int n = 0; n < count; ++n) {
            const tcr_block *const x = &block[order[n]];
            int lives = 0;
            for (int m = 0; m < n; ++m) {
                int at = lives;
                if (!tcr_together(x, &block[order[m]])) continue;
                for (; at > 0 && start[live[at - 1]] > start[order[m]]; --at) live[at] = live[at - 1];
                live[at] = order[m];
                ++lives;
            }
            int64_t low = 0;
            for (int m = 0; m < lives && low + x->bytes > start[live[m]]; ++m) {
                low = tc_max(low, start[live[m]] + block[live[m]].bytes);
            }
            start[order[n]] = low;
            needed = tc_max(needed, low + x->bytes);
        }
        if (best < 0 || needed < best) {
            best = needed;
            for (int n = 0; n < count; ++n) block[n].start = start[n];
        }
    }
    return tc_max(best, 0);
}

/* Bytes of an arena with those that may precede its first aligned address. */
static int64_t tcr_total(int64_t extent, int64_t alignment)
{
    return extent > 0 ? extent + tc_max(0, alignment - TCR_GRANTED) : 0;
}

/* Parts of a layout's numbers: extents, offsets by entry (0: state, 1 and 2: phases), strides, results. */
static int64_t *tcr_offsets(tcr_layout *l, int arena)
{
    return l->number + l->program->bases + arena*l->program->entries;
}

static int64_t *tcr_strides(tcr_layout *l) { return tcr_offsets(l, 3); }
static int64_t *tcr_results(tcr_layout *l) { return tcr_strides(l) + l->program->kernels; }

static size_t tcr_layout_bytes(const tcr_program *p)
{
    const int numbers = p->bases + 3*p->entries + p->kernels + p->tensors;
    return sizeof(tcr_layout) + (size_t)numbers*sizeof(int64_t);
}

static int tcr_is_constant(const tcr_program *p, int first) { return first < p->constant_positions; }

/* Private buffers of a thread are one block if there are several threads; ``inside``: their offsets in it, or -1. */
static void tcr_frames(tcr_layout *l, int64_t alignment, int64_t *inside)
{
    const tcr_program *const p = l->program;
    tcr_block block[p->buffers + 1];
    for (int n = 0; n < p->buffers; ++n) inside[n] = -1;
    for (int k = 0; k < p->kernels; ++k) {
        const tcr_kernel *const kernel = &p->kernel[k];
        tcr_strides(l)[k] = 0;
        if (!kernel->privates || l->threads < 2) continue;
        for (int n = 0; n < kernel->privates; ++n) {
            const tcr_buffer *const b = &p->buffer[kernel->own[n]];
            block[n] = (tcr_block){tcr_bytes(p, &b->array, l->number), 0, b->first, b->last, b->rank, n};
        }
        tcr_strides(l)[k] = tcr_up(tcr_place(block, kernel->privates, alignment), TCR_ARENA_ALIGNMENT);
        for (int n = 0; n < kernel->privates; ++n) inside[kernel->own[n]] = block[n].start;
    }
}

/* The arena of the state (0), of the constant phase (1) or of the volatile one (2); its bytes. */
static int64_t tcr_arena(tcr_layout *l, int arena, int64_t alignment, const int64_t *inside)
{
    const tcr_program *const p = l->program;
    tcr_block block[p->buffers + 2*p->kernels + 1];
    int64_t *const offset = tcr_offsets(l, arena);
    int count = 0, placed = 0;
    for (int n = 0; n < p->buffers; ++n) {
        const tcr_buffer *const b = &p->buffer[n];
        if (b->entry < 0 || b->tensor >= 0) continue;
        ++placed;
        if (inside[n] >= 0 || b->keep != (arena == 0)) continue;
        if (arena && tcr_is_constant(p, b->first) != (arena == 1)) continue;
        const int first = arena ? b->first : 0, last = arena ? b->last : 0;
        block[count++] = (tcr_block){tcr_bytes(p, &b->array, l->number), 0, first, last, b->rank, b->entry};
    }
    for (int packs = 0; packs < 2 && arena; ++packs) {
        for (int k = 0; k < p->kernels; ++k) {
            const tcr_kernel *const x = &p->kernel[k];
            if (tcr_is_constant(p, x->first) != (arena == 1) || !(packs ? x->products : tcr_strides(l)[k])) continue;
            const int64_t bytes = packs ? tcr_packing(p, x, l->number) : tcr_strides(l)[k];
            block[count++] = (tcr_block){l->threads*bytes, 0, x->first, x->last, placed, packs ? x->entry : -1 - k};
        }
    }
    const int64_t extent = tcr_place(block, count, alignment);
    for (int n = 0; n < count; ++n) {
        if (block[n].entry >= 0) {
            offset[block[n].entry] = block[n].start;
            continue;
        }
        const tcr_kernel *const x = &p->kernel[-1 - block[n].entry];
        for (int q = 0; q < x->privates; ++q) {
            offset[p->buffer[x->own[q]].entry] = block[n].start + inside[x->own[q]];
        }
    }
    return tcr_total(extent, alignment);
}

/* Fill a layout, which has tcr_layout_bytes; the status is TCGEN_EXTENT if it does not fit 63 bits. */
static int tcr_lay_out(const tcr_program *p, const int64_t *extents, int threads, tcr_layout *l)
{
    const int64_t alignment = p->tight ? 1 : TCR_ARENA_ALIGNMENT;
    int64_t inside[p->buffers + 1];
    double bytes = 0;
    for (int n = 0; n < p->buffers; ++n) bytes += threads*tcr_about(p, &p->buffer[n].array, extents);
    if (!(bytes < 4e18)) return tcr_fail(TCGEN_EXTENT, "%s: the arrays of a call have more than 2^62 bytes", p->name);
    l->program = p;
    l->threads = threads;
    memcpy(l->number, extents, (size_t)p->bases*sizeof *extents);
    for (int n = 0; n < 3*p->entries; ++n) tcr_offsets(l, 0)[n] = -1;
    tcr_frames(l, alignment, inside);
    l->state_bytes = l->lasting_bytes = tcr_arena(l, 0, alignment, inside);
    for (int phase = 0; phase < 2; ++phase) l->phase_bytes[phase] = tcr_arena(l, phase + 1, alignment, inside);
    for (int t = 0; t < p->tensors; ++t) {
        const tcr_tensor *const x = &p->tensor[t];
        if (x->role != TCR_OUTPUT || !x->constant) continue;
        tcr_results(l)[t] = l->state_bytes = tcr_up(l->state_bytes, TCR_GRANTED);
        l->state_bytes += tcr_bytes(p, &x->array, extents);
    }
    return TCGEN_OK;
}

/* Bytes of a call: the workspace of the constant phase (1), the volatile one (2), or both (3). */
static int64_t tcr_workspace(const tcr_layout *l, int phases)
{
    return tc_max(phases & 1 ? l->phase_bytes[0] : 0, phases & 2 ? l->phase_bytes[1] : 0);
}

/* Fill the table of addresses of a phase. */
static void tcr_table(tcr_layout *l, int phase, void *const *arrays, char *state, char *own, void **table)
{
    const tcr_program *const p = l->program;
    const int64_t alignment = p->tight ? 1 : TCR_ARENA_ALIGNMENT;
    const int64_t *const kept = tcr_offsets(l, 0), *const here = tcr_offsets(l, phase + 1);
    state += -(uintptr_t)state%(uintptr_t)alignment;
    own += -(uintptr_t)own%(uintptr_t)alignment;
    for (int n = 0; n < p->entries; ++n) {
        table[n] = here[n] >= 0 ? own + here[n] : kept[n] >= 0 ? state + kept[n] : NULL;
    }
    for (int n = 0; n < p->buffers; ++n) {
        if (p->buffer[n].tensor >= 0) table[p->buffer[n].entry] = arrays[p->buffer[n].tensor];
    }
}

/* Host loops: launches of kernels, tiles of inputs that are read by a source, buffers that begin as zero. */

static int tcr_stopped(const tcr_call *c)
{
    if (!*(const volatile int *)c->blas[TCR_STOP]) return TCGEN_OK;
    return tcr_fail(TCGEN_STOPPED, "%s: stopped, so that its outputs are unfinished", c->program->name);
}

static int tcr_launch(const tcr_call *c, int kernel, const int64_t *values)
{
    if (c->first > 0 && c->program->kernel[kernel].once) return TCGEN_OK;
    c->functions->kernel[kernel](c->table, c->extents, values, c->strides, c->threads, c->blas);
    return tcr_stopped(c);
}

static void tcr_clear(const tcr_call *c, int buffer)
{
    const tcr_buffer *const b = &c->program->buffer[buffer];
    memset(c->table[b->entry], 0, (size_t)tcr_bytes(c->program, &b->array, c->extents));
}

/* Read a tile into a buffer, from the values of loops in the order of its axes (-1: the whole axis). A tile that is
 * shorter than the buffer arrives dense; its rows move to their places from the last one on.
 */
static int tcr_fetch(const tcr_call *c, int buffer, int tensor, const int64_t *start)
{
    const tcr_buffer *const b = &c->program->buffer[buffer];
    const tcr_axis *const axis = b->array.axis;
    tcgen_source source;
    int64_t first[TCR_MOST_AXES], count[TCR_MOST_AXES], room[TCR_MOST_AXES], elements = 1;
    char *const tile = c->table[b->entry];
    int inner = 0;
    memcpy(&source, c->arrays[tensor], sizeof source);
    for (int n = 0; n < b->array.axes; ++n) {
        const int64_t extent = tcr_extent(c->program, axis[n].space, c->extents);
        room[n] = axis[n].length ? axis[n].length : extent;
        first[n] = start[n] < 0 ? 0 : start[n];
        count[n] = start[n] < 0 ? extent : tc_min(extent - first[n], axis[n].length ? axis[n].length : 1);
        elements *= count[n];
        if (count[n] != room[n]) inner = n;
    }
    if (elements == 0) return TCGEN_OK;
    const int answer = source.fill(source.context, first, count, tile);
    if (answer) {
        const char *const name = c->program->tensor[tensor].array.name;
        return tcr_fail(TCGEN_SOURCE, "%s: the source of %s returned %d", c->program->name, name, answer);
    }
    int64_t row = b->array.item, rows = 1;
    for (int n = 0; n < b->array.axes; ++n) *(n < inner ? &rows : &row) *= count[n];
    for (int64_t number = rows - 1; number > 0; --number) {
        int64_t rest = number, to = 0, stride = b->array.item;
        for (int n = b->array.axes - 1; n >= 0; stride *= room[n--]) {
            if (n >= inner) continue;
            to += rest%count[n]*stride;
            rest /= count[n];
        }
        memmove(tile + to, tile + number*row, (size_t)row);
    }
    return TCGEN_OK;
}

#define TCR_LAUNCH(kernel, ...)                                                         \
    do {                                                                                \
        const int status = tcr_launch(c, kernel, (const int64_t[]){__VA_ARGS__});       \
        if (status) return status;                                                      \
    } while (0)
#define TCR_FETCH(buffer, tensor, ...)                                                  \
    do {                                                                                \
        const int status = tcr_fetch(c, buffer, tensor, (const int64_t[]){__VA_ARGS__}); \
        if (status) return status;                                                      \
    } while (0)

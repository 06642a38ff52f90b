void tcgen_blocks(int64_t count, const tc_step *steps, $scalar *const *buffers, int threads, void *const *table)
{
    const volatile int *const stop = (const volatile int *)table[TC_STOP];
    for (const tc_step *step = steps; step < steps + count && !*stop; ++step) {
        $scalar *const target = buffers[step->arrays[0]];
        const int64_t rows = step->rows, width = step->width;
        const $real coefficient = ($real)step->coefficient;
        const int shared = threads > 1 && rows > 1;
        switch (step->kind) {
        case TC_ZERO:
            tc_zero(target, step->elements*(int64_t)sizeof($scalar), threads, stop);
            break;
        case TC_ADD:
            #pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
            for (int64_t n = 0; n < step->elements; n += 4096) {
                tc_line(tc_min(4096, step->elements - n), target + n, 1, buffers[step->arrays[1]] + n, 1, coefficient,
                    (int)step->accumulate);
            }
            break;
        case TC_COPY:
            #pragma omp parallel for schedule(dynamic, 8) num_threads(threads) if (shared)
            for (int64_t row = 0; row < rows; ++row) {
                if (*stop) continue;
                const int64_t *const at = step->places + 2*row;
                tc_copy_block(width/3, step->steps + row*width, target + at[0], buffers[step->arrays[1]] + at[1],
                    coefficient, (int)step->accumulate);
            }
            break;
        case TC_PRODUCT:
            if (shared && step->map) {  /* products that are too small for several threads each */
                #pragma omp parallel for schedule(dynamic) num_threads(threads)
                for (int64_t row = 0; row < rows; ++row) {
                    if (!*stop) tc_product(step, row, buffers, table, 1);
                }
            } else {
                for (int64_t row = 0; row < rows && !*stop; ++row) tc_product(step, row, buffers, table, threads);
            }
            break;
        case TC_MAP:
            tc_maps[step->map](step, buffers, shared && step->elements ? threads : 1, stop);
            break;
        case TC_REAL:
            $real_parts
            break;
        case TC_NEST: {
            const tc_nest *const nest = step->inside;
            const int64_t slices = nest->slices, results = nest->results;
            $scalar *own[nest->buffers];
            for (int64_t n = slices; n < nest->buffers; ++n) {
                own[n] = buffers[step->arrays[results + slices]] + nest->offsets[n - slices];
            }
            for (int64_t row = 0; row < rows && !*stop; ++row) {
                const tc_program *const program = nest->programs + step->steps[row*width];
                for (int64_t n = 0; n < slices; ++n) {
                    own[n] = buffers[step->arrays[results + n]] + step->places[slices*row + n];
                }
                tcgen_blocks(program->count, program->steps, own, threads, table);
                for (int64_t n = 0; n < results; ++n) {
                    buffers[step->arrays[n]][0] += step->steps[row*width + 1]**own[slices + n];
                }
            }
            break;
        }
        }
    }
}

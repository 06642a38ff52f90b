/* Checks of the arguments of a call. */

enum { TCR_SAMPLES = 64 };  /* elements compared for each generator: runtime/symmetry.py */

static double complex tcr_element(const tcr_tensor *t, const char *at)
{
    if (t->is_complex) return *(const double complex *)at;
    return t->array.item == 4 ? *(const float *)at : *(const double *)at;
}

static int64_t tcr_divisor(int64_t a, int64_t b)
{
    while (b) {
        const int64_t rest = a%b;
        a = b;
        b = rest;
    }
    return a;
}

/* Compare elements that are spread evenly with their images, as runtime/symmetry.py. */
static int tcr_check_symmetry(const tcr_program *p, const tcr_tensor *t, const int64_t *extents, const char *x)
{
    int64_t length[TCR_MOST_AXES], stride[TCR_MOST_AXES], size = 1;
    const double relative = t->array.item == 4 ? 1e-3 : 1e-8, absolute = t->array.item == 4 ? 1e-6 : 1e-14;
    for (int n = t->array.axes - 1; n >= 0; --n) {
        length[n] = tcr_axis_length(p, &t->array.axis[n], extents);
        stride[n] = size;
        size *= length[n];
    }
    if (size == 0) return TCGEN_OK;
    int64_t step = tc_max(1, size/TCR_SAMPLES);
    while (tcr_divisor(step, size) > 1) ++step;  /* it visits all axes */
    for (int g = 0; g < t->generators; ++g) {
        const tcr_generator *const by = &t->generator[g];
        double worst = -1, scale = 0;
        int64_t one = 0, other = 0;
        for (int64_t at = 0; at < size; at += step) {
            int64_t image = 0;
            for (int n = 0; n < t->array.axes; ++n) {
                const int from = by->perm[n];
                image += at/stride[from]%length[from]*stride[n];
            }
            const double complex given = tcr_element(t, x + at*t->array.item);
            const double complex found = tcr_element(t, x + image*t->array.item);
            const double off = cabs(found - by->sign*(by->conj ? conj(given) : given));
            if (isfinite(cabs(given))) scale = fmax(scale, cabs(given));
            if (isfinite(cabs(found))) scale = fmax(scale, cabs(found));
            const int same = given == found || (isnan(cabs(given)) && isnan(cabs(found)));
            const double counted = !isnan(off) ? off : same ? 0 : INFINITY;
            if (counted <= worst) continue;
            worst = counted;
            one = at;
            other = image;
        }
        if (worst <= fmax(absolute, relative*scale)) continue;
        for (int64_t at = 0; at < size; ++at) {  /* the sample may be zeros, which have no scale */
            const double value = cabs(tcr_element(t, x + at*t->array.item));
            if (isfinite(value)) scale = fmax(scale, value);
        }
        if (worst <= relative*scale) continue;
        return tcr_fail(TCGEN_SYMMETRY, "%s: input %s breaks its declared symmetry: element %lld should be %s%selement "
            "%lld, but they deviate by %.3e: correct the array or drop the symmetry from the spec", p->name,
            t->array.name, (long long)other, by->sign < 0 ? "minus " : "", by->conj ? "the conjugate of " : "",
            (long long)one, worst);
    }
    return TCGEN_OK;
}

static int tcr_check_extents(const tcr_program *p, const int64_t *extents, int threads)
{
    if (threads < 1 || threads > TCR_MOST_THREADS) {
        return tcr_fail(TCGEN_THREADS, "%s: %d threads: give 1 to %d", p->name, threads, TCR_MOST_THREADS);
    }
    for (int b = 0; b < p->bases; ++b) {
        const long long n = extents[b];
        if (n < 0) return tcr_fail(TCGEN_EXTENT, "%s: the extent %s = %lld is negative", p->name, p->base[b], n);
    }
    for (int t = 0; t < p->tensors; ++t) {
        if (!(tcr_about(p, &p->tensor[t].array, extents) < 4e18)) {
            return tcr_fail(TCGEN_EXTENT, "%s: %s has more than 2^62 bytes", p->name, p->tensor[t].array.name);
        }
    }
    return TCGEN_OK;
}

/* Bytes that an argument takes in memory; 0 for a source, or where nothing was passed. */
static int64_t tcr_span(const tcr_program *p, int tensor, const int64_t *extents, void *const *arrays)
{
    const tcr_tensor *const t = &p->tensor[tensor];
    const int no_memory = t->role == TCR_SOURCE || !arrays[tensor] || arrays[tensor] == t->otherwise;
    return no_memory ? 0 : tcr_bytes(p, &t->array, extents);
}

static int tcr_overlap(const char *a, int64_t a_bytes, const char *b, int64_t b_bytes)
{
    return a_bytes > 0 && b_bytes > 0 && a < b + b_bytes && b < a + a_bytes;
}

/* Check the arrays of the phases; of the constant one alone (1), only those of constants are there. */
static int tcr_check_arrays(const tcr_program *p, const int64_t *extents, void *const *arrays, int phases)
{
    int64_t bytes[p->tensors + 1];
    for (int t = 0; t < p->tensors; ++t) bytes[t] = tcr_span(p, t, extents, arrays);
    for (int t = 0; t < p->tensors; ++t) {
        const tcr_tensor *const x = &p->tensor[t];
        const char *const name = x->array.name;
        const int output = x->role == TCR_OUTPUT;
        if (phases == 1 && (output || !x->constant)) continue;
        const int missing = x->role == TCR_SOURCE ? !((const tcgen_source *)arrays[t])->fill
                                                  : !arrays[t] && tcr_bytes(p, &x->array, extents) > 0;
        if (missing) return tcr_fail(TCGEN_NULL, "%s: %s is null", p->name, name);
        if ((uintptr_t)arrays[t]%(uintptr_t)tc_min(x->array.item, 8)) {
            return tcr_fail(TCGEN_ALIGNMENT, "%s: %s is not aligned to its elements", p->name, name);
        }
        for (int u = 0; output && u < p->tensors; ++u) {
            if (u == t || !tcr_overlap(arrays[t], bytes[t], arrays[u], bytes[u])) continue;
            return tcr_fail(TCGEN_OVERLAP, "%s: output %s shares memory with %s: pass separate arrays", p->name, name,
                p->tensor[u].array.name);
        }
    }
    return TCGEN_OK;
}

/* Check memory of the caller: enough, aligned, and apart from arrays that are written. */
static int tcr_check_memory(const tcr_program *p, const char *name, const void *memory, int64_t bytes, int64_t needed)
{
    if (bytes < needed) {
        return tcr_fail(TCGEN_WORKSPACE, "%s: the %s has %lld bytes and needs %lld", p->name, name, (long long)bytes,
            (long long)needed);
    }
    if (needed > 0 && !memory) return tcr_fail(TCGEN_NULL, "%s: the %s is null", p->name, name);
    if ((uintptr_t)memory%TCR_GRANTED) {
        return tcr_fail(TCGEN_ALIGNMENT, "%s: the %s is not aligned to %d bytes", p->name, name, TCR_GRANTED);
    }
    return TCGEN_OK;
}

static int tcr_check_apart(const tcr_program *p, const int64_t *extents, void *const *arrays, const char *name,
    const void *memory, int64_t bytes)
{
    for (int t = 0; t < p->tensors; ++t) {
        if (!tcr_overlap(arrays[t], tcr_span(p, t, extents, arrays), memory, bytes)) continue;
        return tcr_fail(TCGEN_OVERLAP, "%s: %s lies in the %s", p->name, p->tensor[t].array.name, name);
    }
    return TCGEN_OK;
}

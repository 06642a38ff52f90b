/* Calls: sizes, plans, and the two phases of a program. */

static int tcr_threads(int wanted)
{
#ifdef _OPENMP
    return wanted ? wanted : omp_get_max_threads();
#else
    return wanted ? wanted : 1;
#endif
}

/* A layout at extents that are checked first. */
static int tcr_checked_layout(const tcr_program *p, const void *n, int threads, tcr_layout *l)
{
    if (!n) return tcr_fail(TCGEN_NULL, "%s: the extents are null", p->name);
    const int status = tcr_check_extents(p, n, threads);
    return status ? status : tcr_lay_out(p, n, threads, l);
}

/* Bytes of the workspace of phases, or of the state (0); minus a status. */
static int64_t tcr_needed(const tcr_program *p, const void *n, int threads, int phases)
{
    _Alignas(tcr_layout) char room[tcr_layout_bytes(p)];
    tcr_layout *const l = (tcr_layout *)room;
    const int status = tcr_checked_layout(p, n, tcr_threads(threads), l);
    if (status) return -status;
    return phases == 3 ? l->lasting_bytes + tcr_workspace(l, 3) : phases ? tcr_workspace(l, phases) : l->state_bytes;
}

static int64_t tcr_count_parts(const tcr_program *p, const void *n)
{
    if (!n) return -tcr_fail(TCGEN_NULL, "%s: the extents are null", p->name);
    const int status = tcr_check_extents(p, n, 1);
    return status ? -status : tcr_parts(p, n);
}

static int tcr_make_plan(const tcr_program *p, const void *n, int threads, void *plan, size_t bytes)
{
    const int status = tcr_check_memory(p, "plan", plan, (int64_t)bytes, (int64_t)tcr_layout_bytes(p));
    return status ? status : tcr_checked_layout(p, n, tcr_threads(threads), plan);
}

/* Pointers to the arrays and sources of a call, by tensor. */
static void tcr_gather(const tcr_program *p, const void *in, const void *out, void **arrays)
{
    for (int t = 0; t < p->tensors; ++t) {
        const tcr_tensor *const x = &p->tensor[t];
        const char *const from = x->role == TCR_OUTPUT ? out : in;
        if (x->role == TCR_SOURCE) arrays[t] = (void *)(from + x->place);
        else if (from) memcpy(&arrays[t], from + x->place, sizeof arrays[t]);
        else arrays[t] = NULL;
        if (!arrays[t]) arrays[t] = (void *)x->otherwise;
    }
}

static int tcr_phase(tcr_call *c, int phase)
{
    const tcr_program *const p = c->program;
    const tcr_functions *const f = c->functions;
    if (!p->runs[phase]) return TCGEN_OK;
    if (p->walk[phase]) return p->walk[phase](c);
    if (phase && f->parted) f->parted(c->table, c->extents, c->strides, c->threads, c->blas, c->first, c->last);
    else f->phase[phase](c->table, c->extents, c->strides, c->threads, c->blas);
    return tcr_stopped(c);
}

/* Outputs: those of a part begin as zero, those of constants come from the state or belong to part 0. */
static void tcr_begin_outputs(const tcr_call *c, tcr_layout *l, const char *state, int phases)
{
    const tcr_program *const p = c->program;
    for (int t = 0; t < p->tensors; ++t) {
        const tcr_tensor *const x = &p->tensor[t];
        if (x->role != TCR_OUTPUT || x->accumulate || !c->arrays[t]) continue;
        const size_t bytes = (size_t)tcr_bytes(p, &x->array, c->extents);
        const int mine = c->first == 0 && (!c->part || c->last > 0);
        if (x->constant && mine && phases == 2) memcpy(c->arrays[t], state + tcr_results(l)[t], bytes);
        else if (x->constant ? !mine : c->part) memset(c->arrays[t], 0, bytes);
    }
}

/* Run the constant phase into the state (1), the volatile one from it (2), or both in the workspace (3). */
static int tcr_run(const tcr_program *p, int phases, const void *n, const void *in, const void *out, void *state,
    size_t state_bytes, void *workspace, size_t workspace_bytes, const tcgen_options *given)
{
    static const tcgen_options none = {0};
    static const int never = 0;
    const tcgen_options *const o = given ? given : &none;
    const int64_t *const extents = n;
    const int threads = tcr_threads(o->threads);
    _Alignas(tcr_layout) char room[tcr_layout_bytes(p)];
    void *arrays[p->tensors + 1], *table[p->entries + 1], *blas[TCR_STOP + 1] = {0};
    tcr_layout *l = (tcr_layout *)room;
    int status;
    if (!n || !in || (!out && phases != 1)) {
        return tcr_fail(TCGEN_NULL, "%s: %s is null", p->name, !n ? "n" : !in ? "in" : "out");
    }
    if ((status = tcr_check_extents(p, extents, threads))) return status;
    if (o->plan) {
        l = (tcr_layout *)o->plan;
        if (l->program != p || l->threads != threads || memcmp(l->number, extents, (size_t)p->bases*sizeof *extents)) {
            return tcr_fail(TCGEN_PLAN, "%s: the plan is of another program, other extents or another number of "
                "threads than %d", p->name, threads);
        }
    } else if ((status = tcr_lay_out(p, extents, threads, l))) {
        return status;
    }
    tcr_gather(p, in, out, arrays);
    if ((status = tcr_check_arrays(p, extents, arrays, phases))) return status;
    for (int t = 0; o->check && t < p->tensors; ++t) {
        const tcr_tensor *const x = &p->tensor[t];
        if (x->role != TCR_INPUT || (phases == 1 && !x->constant)) continue;
        if ((status = tcr_check_symmetry(p, x, extents, arrays[t]))) return status;
    }
    const int64_t parts = o->part ? tcr_parts(p, extents) : 0;
    if (o->part && (phases == 1 || o->first < 0 || o->first > o->last || o->last > parts)) {
        return tcr_fail(TCGEN_PART, "%s: the parts %lld to %lld are not among its %lld parts", p->name,
            (long long)o->first, (long long)o->last, (long long)parts);
    }
    const int64_t own_bytes = tcr_workspace(l, phases), needed = own_bytes + (phases == 3 ? l->lasting_bytes : 0);
    const int64_t held = needed + (phases == 3 ? 0 : l->state_bytes);
    if (p->memory_limit && held > p->memory_limit) {
        return tcr_fail(TCGEN_LIMIT, "%s: needs %lld bytes with %d threads, the memory limit is %lld: use fewer threads "
            "or make the library with a larger limit", p->name, (long long)held, threads, (long long)p->memory_limit);
    }
    if ((status = tcr_check_memory(p, "workspace", workspace, (int64_t)workspace_bytes, needed))) return status;
    if ((status = tcr_check_apart(p, extents, arrays, "workspace", workspace, needed))) return status;
    if (phases != 3) {
        if ((status = tcr_check_memory(p, "state", state, (int64_t)state_bytes, l->state_bytes))) return status;
        if ((status = tcr_check_apart(p, extents, arrays, "state", state, l->state_bytes))) return status;
        if (tcr_overlap(state, l->state_bytes, workspace, needed)) {
            return tcr_fail(TCGEN_OVERLAP, "%s: the state lies in the workspace", p->name);
        }
    }
    char *const kept = phases == 3 ? workspace : state;
    char *const own = (char *)workspace + (phases == 3 ? l->lasting_bytes : 0);
    const int processor = tcr_processor();
    if (processor < 0) {
        return tcr_fail(TCGEN_PROCESSOR, "%s: the library was built for other processors: build it for this one",
            p->name);
    }
    const tcr_functions *const functions = p->functions[processor];
    const tcgen_blas *const b = o->blas ? o->blas : tcr_linked_blas;
    if (b) memcpy(blas, b, sizeof *b);
    blas[TCR_SERIAL] = b && o->blas_serial ? (void *)b : NULL;
    memcpy(blas + TCR_SERIAL + 1, functions->product, sizeof functions->product);
    blas[TCR_STOP] = (void *)(o->stop ? o->stop : &never);
    tcr_call c = {p, functions, extents, tcr_strides(l), arrays, table, blas, threads, o->part, 0, INT64_MAX};
    if (o->part) {
        c.first = o->first;
        c.last = o->last;
    }
    if (phases & 1 && p->runs[0] && !(o->part && c.first == c.last)) {
        for (int t = 0; t < p->tensors && phases == 1; ++t) {
            if (p->tensor[t].role != TCR_OUTPUT) continue;
            arrays[t] = p->tensor[t].constant ? kept + tcr_results(l)[t] : NULL;
        }
        tcr_table(l, 0, arrays, kept, own, table);
        if ((status = tcr_phase(&c, 0))) return status;
    }
    if (phases == 1) return TCGEN_OK;
    tcr_begin_outputs(&c, l, kept, phases);
    if (o->part && c.first == c.last) return TCGEN_OK;
    tcr_table(l, 1, arrays, kept, own, table);
    return tcr_phase(&c, 1);
}

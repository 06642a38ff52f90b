/* Provokes each status of the program guarded; prints "STATUS message" for each, with an argument for one call. */
#include <stdio.h>
#include <stdlib.h>
#include <lib.h>

enum { O = 3, V = 4 };
static int fill(void *context, const int64_t *first, const int64_t *count, void *tile)
{
    (void)first;
    for (int64_t n = 0; n < count[0]*count[1]; ++n) ((double *)tile)[n] = 1;
    return *(const int *)context;
}

int main(int count, char **words)
{
    (void)words;
    static double t[O*V], g[V*V], h[V*V], y[1], z[O*V], large[90000], other[90000];
    static char plan[1 << 16] __attribute__((aligned(64))), plan2[1 << 16] __attribute__((aligned(64)));
    int answer = 0;
    const int stop = 1;
    lib_guarded_extents n = {O, V}, wide = {300, 300}, wrong = {-1, V};
    lib_guarded_inputs in = {.t = t, .g = g, .h = h, .b = {fill, &answer}};
    lib_guarded_outputs out = {.y = y, .z = z};
    tcgen_options o = {.threads = 1};
    const int64_t bytes = lib_guarded_workspace_bytes(&n, 1), most = lib_guarded_workspace_bytes(&wide, 1);
    const int64_t state_bytes = lib_guarded_state_bytes(&n);
    char *const work = aligned_alloc(64, (size_t)(most + 63)/64*64);
    char *const state = aligned_alloc(64, (size_t)(state_bytes + 63)/64*64);
    for (int i = 0; i < V*V; ++i) g[i] = h[i] = 1;
#define RUN(n, in, out, work, bytes) printf("%d %s\n", lib_guarded(n, in, out, work, bytes, &o), lib_message())
    if (count > 1) {
        RUN(&n, &in, &out, work, (size_t)bytes);
        return 0;
    }
    if (lib_guarded(&n, &in, &out, work, (size_t)bytes, &o)) return 1;
    RUN(&n, NULL, &out, work, (size_t)bytes);
    RUN(&wrong, &in, &out, work, (size_t)bytes);
    RUN(&n, &in, &out, work, 8);
    RUN(&n, &in, &out, work + 8, (size_t)bytes);
    out.z = t;
    RUN(&n, &in, &out, work, (size_t)bytes);
    out.z = z;
    o.check = 1;
    g[1] = 7;
    RUN(&n, &in, &out, work, (size_t)bytes);
    g[1] = 1;
    o.part = 1;
    o.last = 1000;
    RUN(&n, &in, &out, work, (size_t)bytes);
    o.part = 0;
    answer = 5;
    RUN(&n, &in, &out, work, (size_t)bytes);
    answer = 0;
    o.threads = -1;
    RUN(&n, &in, &out, work, (size_t)bytes);
    o.threads = 1;
    lib_guarded_inputs wide_in = {.t = large, .g = large, .h = large, .b = {fill, &answer}};
    lib_guarded_outputs wide_out = {.y = y, .z = other};
    RUN(&wide, &wide_in, &wide_out, work, (size_t)most);
    if (lib_guarded_plan(&n, 1, plan, sizeof plan) || lib_guarded_plan(&n, 2, plan2, sizeof plan2)) return 2;
    o.plan = plan2;
    RUN(&n, &in, &out, work, (size_t)bytes);
    o.plan = plan;
    if (lib_guarded(&n, &in, &out, work, (size_t)bytes, &o)) return 3;
    o.stop = &stop;
    RUN(&n, &in, &out, work, (size_t)bytes);
    o.stop = NULL;
    printf("%d %s\n", lib_guarded_bind(&n, &in, state, 0, work, (size_t)bytes, &o), lib_message());
    printf("%d %s\n", lib_guarded_call(&n, &in, &out, NULL, (size_t)state_bytes, work, (size_t)bytes, &o), lib_message());
    free(work);
    free(state);
    return 0;
}

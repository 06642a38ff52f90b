/* Calls two libraries that hold the same program, from host threads on one state, and counts the heap's growth. */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <lib.h>
#include <twin.h>

enum { O = 4, V = 9, THREADS = 4, CALLS = 20 };
static double t[O*V], g[V*(V + 1)/2], w[O*O], scale = 3, expected[O*V];
static const lib_small_extents n = {O, V};
static const lib_small_inputs in = {.t = t, .g = g, .w = w, .scale = &scale};
static void *state;
static int64_t state_bytes, bytes;

static void fill(double *values, int count)
{
    for (int i = 0; i < count; ++i) values[i] = (double)(i*7919%1013)/1013 - 0.4;
}

static void *memory(int64_t count) { return aligned_alloc(64, (size_t)(count + 63)/64*64); }

static void *work(void *unused)
{
    tcgen_options o = {.threads = 2};
    void *const workspace = memory(bytes);
    double y, z[O*V], s[O*O], c[O*O];
    const lib_small_outputs out = {.y = &y, .z = z, .s = s, .c = c};
    (void)unused;
    for (int call = 0; call < CALLS; ++call) {
        memset(s, 0, sizeof s);
        if (lib_small_call(&n, &in, &out, state, (size_t)state_bytes, workspace, (size_t)bytes, &o)) return "status";
        if (memcmp(z, expected, sizeof z)) return "bits";
    }
    free(workspace);
    return NULL;
}

int main(void)
{
    tcgen_options o = {.threads = 2};
    double y, s[O*O] = {0}, c[O*O], again[O*V];
    fill(t, O*V);
    fill(g, V*(V + 1)/2);
    for (int i = 0; i < O*O; ++i) w[i] = 1;
    const lib_small_outputs out = {.y = &y, .z = expected, .s = s, .c = c};
    bytes = lib_small_workspace_bytes(&n, 2);
    state_bytes = lib_small_state_bytes(&n);
    state = memory(state_bytes);
    void *const workspace = memory(bytes);
    if (lib_small(&n, &in, &out, workspace, (size_t)bytes, &o)) return 1;
    if (lib_small_bind(&n, &in, state, (size_t)state_bytes, workspace, (size_t)bytes, &o)) return 2;

    const twin_small_extents twin_n = {O, V};
    const twin_small_inputs twin_in = {.t = t, .g = g, .w = w, .scale = &scale};
    const twin_small_outputs twin_out = {.y = &y, .z = again, .s = s, .c = c};
    if (twin_small(&twin_n, &twin_in, &twin_out, workspace, (size_t)bytes, &o)) return 3;
    if (memcmp(again, expected, sizeof again)) return 4;

    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; ++i) if (pthread_create(&threads[i], NULL, work, NULL)) return 5;
    for (int i = 0; i < THREADS; ++i) {
        void *answer;
        pthread_join(threads[i], &answer);
        if (answer) return 6;
    }
    const size_t before = mallinfo2().uordblks;
    for (int call = 0; call < 1000; ++call) {
        if (lib_small(&n, &in, &out, workspace, (size_t)bytes, &o)) return 7;
    }
    printf("%zd bytes\n", (ssize_t)(mallinfo2().uordblks - before));
    free(workspace);
    free(state);
    return 0;
}

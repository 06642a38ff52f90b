/* Tables that describe a program, and a call of it. The files of this folder are parts of one source, in the order
 * layout.c, parts.c, tiles.c, checks.c, call.c; they allocate nothing.
 */
#include <complex.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif
#include "functions.h"

#define TCR_MOST_AXES 32
#define TCR_MOST_THREADS 4096
#define TCR_ARENA_ALIGNMENT 64 /* bytes: records/arena.py */
#define TCR_GRANTED 16         /* bytes to which the caller aligns memory: records/arena.py */

/* A space joins base spaces; their numbers are those of the extents. */
typedef struct {
    int bases;
    const int *base;
} tcr_space;

/* A stored axis, slowest first: ``length`` elements, or the extent of a space if that is 0. It holds the distinct
 * values of ``count`` logical axes, the strictly decreasing ones alone if ``strict``.
 */
typedef struct {
    int space, length, count, strict;
} tcr_axis;

typedef struct {
    const char *name;
    int item, axes;            /* bytes of an element */
    const tcr_axis *axis;
} tcr_array;

/* A[x[perm[0]], x[perm[1]], ...] is sign A[x], or its conjugate; perm acts on stored axes. */
typedef struct {
    const signed char *perm;
    int sign, conj;
} tcr_generator;

enum { TCR_INPUT, TCR_SOURCE, TCR_OUTPUT };

typedef struct {
    tcr_array array;
    int role, constant, accumulate, is_complex;
    size_t place;              /* offset of its pointer, or source, in the struct of inputs or outputs */
    const void *otherwise;     /* the number that stands for a null pointer, or null */
    int generators;
    const tcr_generator *generator;
} tcr_tensor;

typedef struct {
    tcr_array array;
    int tensor;                /* that it is; -1 if it is memory of the workspace */
    int keep, entry;           /* in the table of addresses; -1 in a register */
    int first, last, rank;     /* Block in records/arena.py */
} tcr_buffer;

typedef struct {
    int space, tile;           /* tile 0: the whole extent */
} tcr_length;

/* A product that packs its operands: lengths of the variables of m, n and k. */
typedef struct {
    int item, reals, staged_a, count[3];
    const tcr_length *length;
} tcr_product;

typedef struct {
    int privates, products, entry, once, first, last;
    const int *own;            /* numbers of its private buffers */
    const tcr_product *product;
} tcr_kernel;

typedef struct {
    int space, tile, below;    /* below: the loop forms a triangle with the loop before it */
} tcr_loop;

typedef struct tcr_call tcr_call;

typedef struct tcr_program {
    const char *name;
    int bases, tensors, buffers, kernels, loops, entries, tight, constant_positions;
    int64_t memory_limit;      /* 0: none */
    const char *const *base;
    const tcr_space *space;
    const tcr_tensor *tensor;
    const tcr_buffer *buffer;
    const tcr_kernel *kernel;
    const tcr_loop *loop;      /* of the parts */
    const tcr_functions *const *functions; /* for each kind of processor */
    int (*walk[2])(const tcr_call *); /* host loops of the constant and the volatile phase, or null */
    int runs[2];               /* whether the phases have kernels */
} tcr_program;

/* Where everything is: offsets in the state and in the workspace of each phase by entry of the table, -1 if elsewhere;
 * for each kernel the bytes from one thread's own arrays to the next one's; outputs of constants in the state.
 */
typedef struct {
    const tcr_program *program;
    int64_t threads, lasting_bytes, state_bytes, phase_bytes[2];
    int64_t number[];
} tcr_layout;

struct tcr_call {
    const tcr_program *program;
    const tcr_functions *functions;
    const int64_t *extents, *strides;
    void *const *arrays;
    void **table;
    void *const *blas;
    int threads, part;
    int64_t first, last;
};

static _Thread_local char tcr_message[512];

__attribute__((format(printf, 2, 3)))
static int tcr_fail(int status, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(tcr_message, sizeof tcr_message, format, list);
    va_end(list);
    return status;
}

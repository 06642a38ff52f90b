/* Types that all libraries made by tcgen share. C99 and C++. */
#ifndef TCGEN_H
#define TCGEN_H
#define TCGEN_INTERFACE 1
#include <stddef.h>
#include <stdint.h>
#if defined __GNUC__
#define TCGEN_API __attribute__((visibility("default")))
#else
#define TCGEN_API
#endif
#ifdef __cplusplus
extern "C" {
#endif

typedef enum tcgen_status {
    TCGEN_OK = 0,
    TCGEN_NULL = 1,       /* an argument, input or output is null */
    TCGEN_EXTENT = 2,     /* an extent is negative, or arrays have more than 2^63 bytes */
    TCGEN_WORKSPACE = 3,  /* workspace, state or plan has too few bytes */
    TCGEN_ALIGNMENT = 4,  /* workspace, state or plan is not aligned to 16 bytes, or an array to its elements */
    TCGEN_OVERLAP = 5,    /* an output shares memory with another argument */
    TCGEN_SYMMETRY = 6,   /* an input lacks the symmetry that the equations declare */
    TCGEN_PART = 7,       /* there are no such parts */
    TCGEN_SOURCE = 8,     /* a source of tiles returned another number than 0 */
    TCGEN_THREADS = 9,    /* fewer than 1 or more than 4096 threads */
    TCGEN_LIMIT = 10,     /* the workspace exceeds the memory limit of the program */
    TCGEN_PLAN = 11,      /* the plan is of another program, extents or threads */
    TCGEN_STOPPED = 12,   /* *stop was set: outputs are unfinished */
    TCGEN_PROCESSOR = 13, /* the library was built for other processors */
    TCGEN_MODULE = 14     /* the Fortran module is of another build than the library */
} tcgen_status;

/* Routines of a BLAS as Fortran calls them, with integers of 32 bits; null where there is none. */
typedef struct tcgen_blas {
    void *sgemm, *dgemm, *zgemm, *sgemv, *dgemv, *zgemv;
} tcgen_blas;

/* Options of a call; all zero is the default. */
typedef struct tcgen_options {
    int threads;              /* 0: as many as OpenMP offers */
    int check;                /* 1: compare a sample of elements with the declared symmetries */
    int part;                 /* 1: run the parts first to last - 1, whose outputs add up */
    int blas_serial;          /* 1: the BLAS runs on the calling thread, and may be called by several */
    int64_t first, last;
    const tcgen_blas *blas;   /* null: the linked BLAS, or loops of the program */
    const volatile int *stop; /* null, or a number that another thread sets to end the call */
    const void *plan;         /* null, or a plan of the program for these extents and threads */
} tcgen_options;

/* A source of an input that is read in tiles: it fills count[0] x count[1] x ... elements in C order from the element
 * first[0], first[1], ... on, and returns 0, or another number to end the call.
 */
typedef struct tcgen_source {
    int (*fill)(void *context, const int64_t *first, const int64_t *count, void *tile);
    void *context;
} tcgen_source;

#ifdef __cplusplus
}
#endif
#elif TCGEN_INTERFACE != 1
#error "libraries in one source file need tcgen of one interface: make them again by the same version of tcgen"
#endif

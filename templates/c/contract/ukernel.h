#ifndef TC_UKERNEL_H
#define TC_UKERNEL_H
/* What the micro-kernel is given: tiles of C, MR by NR, whose sums stay in registers. */
#include "prefetch.h"

/* How a tile is stored: over C, added to it, added to what was summed of it before (the sum starts from C), or over it
 * by non-temporal stores.
 */
enum { TC_OVERWRITE, TC_ADD, TC_RESUME, TC_NON_TEMPORAL };

/* Where the first m of a micro-panel lies in A, where that is read in place, and in C. */
typedef struct {
    int64_t a, c;
} tc_origin;

/* Tiles that follow each other along micro-panels or along columns. Each has a micro-panel of A and NR columns of B,
 * packed or, with scatter vectors of columns and k, in place.
 */
typedef struct {
    int64_t tiles, k, slot;  /* slot: reals from one packed micro-panel of A to the next */
    int along_panels, store, prefetch_c;
    const tc_real *a, *b;
    const int64_t *a_k, *b_column, *b_k;
    tc_scalar *c;
    const tc_origin *origin;
    const int64_t *c_column;
    const char *prefetch_from;  /* lines that are read later, in bytes from here: */
    const int64_t *prefetch;    /* ``prefetches`` for each tile, one for each k */
    int64_t prefetches;
} tc_tiles;

/* Micro-kernels by the vectors of MR: none, one to three. */
typedef void tc_ukernel(const tc_tiles *);
typedef tc_ukernel *tc_ukernels[4];
#endif

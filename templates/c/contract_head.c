/* Contractions of $scalar in any layout, written by tcgen $version. C11 with vectors of GCC and clang.
 *
 * Blocks of both operands are packed in the order in which tiles of the target use them, which turns
 * them, or read where they lie. A tile is computed in registers and stored as it is. Threads
 * have rectangles of the target, or points of the batch, and share nothing.
 */
#include <complex.h>
#include <stdint.h>
#include <unistd.h>
#ifdef _OPENMP
#include <omp.h>
#endif

static inline int64_t tc_min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t tc_max(int64_t a, int64_t b) { return a > b ? a : b; }

$call

#ifndef TC_ELEMENT_H
#define TC_ELEMENT_H
/* The element type of a library, as macros that its first lines or the compiler's command define:
 * TC_REAL is double or float, TC_COMPLEX is 1 where an element is two of them.
 */
#include <complex.h>
#include <stdint.h>

#ifndef TC_REAL
#define TC_REAL double
#endif
#ifndef TC_COMPLEX
#define TC_COMPLEX 0
#endif

#define TC_PASTE_NAMES(a, b) a##b
#define TC_PASTE(a, b) TC_PASTE_NAMES(a, b)

/* Bytes of a TC_REAL, for the preprocessor too. */
#define TC_REAL_BYTES TC_PASTE(TC_BYTES_OF_, TC_REAL)
#define TC_BYTES_OF_double 8
#define TC_BYTES_OF_float 4

/* Type of an element of the arrays, the reals in one, and the integer of the size of a real. */
#if TC_COMPLEX
typedef double complex tc_scalar;
#define TC_REALS 2
#else
typedef TC_REAL tc_scalar;
#define TC_REALS 1
#endif
typedef TC_REAL tc_real;
#if TC_REAL_BYTES == 8
typedef int64_t tc_lane;
#else
typedef int32_t tc_lane;
#endif

/* Name of a symbol that a library exports: TC_NAME(tc_blocks) is tc_blocks_d for doubles. */
#define TC_NAME(name) TC_PASTE(name, TC_SUFFIX)
#if TC_COMPLEX
#define TC_SUFFIX _z
#elif TC_REAL_BYTES == 8
#define TC_SUFFIX _d
#else
#define TC_SUFFIX _s
#endif

/* Paths that benchmarks/ablation.py switches off, each a bit of TC_WITHOUT. */
#define TC_STAGED_A 1         /* Staging with A in place. */
#define TC_STAGED_B 2         /* Staging with B in place. */
#define TC_NON_TEMPORAL_C 4   /* Non-temporal stores. */
#define TC_BUFFERED_C 8       /* Those of lines that a buffer collects. */
#define TC_PREFETCH_AB 16     /* Prefetch of blocks that are packed next. */
#define TC_PREFETCH_STAGED 32 /* Prefetch of operands in place. */
#define TC_ALTERNATE 64       /* Prefetch from several pages in turn. */
#define TC_PARTS_OF_K 128     /* Sums in parts that visit few pages. */
#ifndef TC_WITHOUT
#define TC_WITHOUT 0
#endif
#define TC_WITH(path) (!(TC_WITHOUT & (path)))

/* Functions of headers. A library calls some of them only. */
#define TC_INLINE static inline __attribute__((always_inline))
#define TC_NOINLINE static __attribute__((noinline, unused))

/* Loops that a compiler unrolls: UNROLL(8) stands before a loop of at most 8 iterations. */
#define TC_PRAGMA(text) _Pragma(#text)
#define TC_UNROLL(times) TC_PRAGMA(GCC unroll times)

/* A loop whose iterations threads share, on one thread without OpenMP. */
#ifdef _OPENMP
#define TC_PARALLEL_FOR(threads) TC_PRAGMA(omp parallel for schedule(static) num_threads(threads))
#else
#define TC_PARALLEL_FOR(threads)
#endif
#endif

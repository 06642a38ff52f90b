/* The header of a library. */
//: library
/* Programs of the library $name. Written by tcgen $version.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Arrays are in C order: the last axis is the fastest. Functions return TCGEN_OK or another tcgen_status, of which
 * ${prefix}message() says more; functions of bytes and parts return minus the status. They allocate, print and
 * write nothing else, and may run on several threads at once. Outputs share no memory with other arguments.
 */
#ifndef $guard
#define $guard
$types
$complex
#ifdef __cplusplus
extern "C" {
#endif

/* What the latest call of this thread that failed says. */
TCGEN_API const char *${prefix}message(void);

/* A number of this build, which the Fortran module compares. */
TCGEN_API int32_t ${prefix}build(void);
$programs
#ifdef __cplusplus
}
#endif
#endif
//: complex
#ifndef TCGEN_COMPLEX
#define TCGEN_COMPLEX
#ifdef __cplusplus
#include <complex>
typedef std::complex<double> tcgen_complex;
#else
#include <complex.h>
typedef double _Complex tcgen_complex;
#endif
#endif
//: program

/* $name, $dtype, plan $hash:
 *
$equations
 */
typedef struct ${symbol}_extents {
    int64_t $extents;
} ${symbol}_extents;

typedef struct ${symbol}_inputs {
    $inputs
} ${symbol}_inputs;

typedef struct ${symbol}_outputs {
    $outputs
} ${symbol}_outputs;

/* Bytes of workspace that a call needs, with 0 threads as many as OpenMP offers. */
TCGEN_API $workspace_bytes;

/* Run the program in a workspace that is aligned to 16 bytes; options may be null. */
TCGEN_API $run;

/* Number of parts into which a call can be divided. */
TCGEN_API $parts;

/* A plan for some extents and threads, which options.plan hands to calls: they need not lay out memory again. */
TCGEN_API $plan_bytes;
TCGEN_API $plan;
$binding
//: binding

/* Compute once what depends on constant inputs alone: ${name}_bind leaves it in the state, which any number of threads may
 * use in ${name}_call. The constant arrays must stay as they are.
 */
TCGEN_API $state_bytes;
TCGEN_API $bind;
TCGEN_API $call;

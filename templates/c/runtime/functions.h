/* Functions of a program, as its kernels' source and its calls know them. */
#ifndef TCR_FUNCTIONS_H
#define TCR_FUNCTIONS_H
#include <stdint.h>

typedef void tcr_kernel_function(void *const *, const int64_t *, const int64_t *, const int64_t *, int, void *const *);

/* The functions of a program for one kind of processor. Those of phases are null where the host walks the loops. */
typedef struct {
    tcr_kernel_function *const *kernel;
    void (*phase[2])(void *const *, const int64_t *, const int64_t *, int, void *const *);
    void (*parted)(void *const *, const int64_t *, const int64_t *, int, void *const *, int64_t, int64_t);
    void *product[6];
} tcr_functions;
#endif

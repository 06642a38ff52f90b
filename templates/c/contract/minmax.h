#ifndef TC_MINMAX_H
#define TC_MINMAX_H
#include <stdint.h>

static inline int64_t tc_min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t tc_max(int64_t a, int64_t b) { return a > b ? a : b; }
#endif

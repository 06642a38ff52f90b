/* Maximum and minimum as NumPy's: NaN if either is NaN. GCC makes vectors of two choices, and branches
 * of one choice with two conditions. */
#define TC_ORDER(kind, type)                                            \
    static inline type tc_maximum_##kind(type a, type b)                \
    {                                                                   \
        const type most = a > b ? a : b;                                \
        return a != a ? a : most;                                       \
    }                                                                   \
    static inline type tc_minimum_##kind(type a, type b)                \
    {                                                                   \
        const type least = a < b ? a : b;                               \
        return a != a ? a : least;                                      \
    }
TC_ORDER(d, double)
TC_ORDER(s, float)
#ifdef _OPENMP
#pragma omp declare reduction(tc_by_max : double : omp_out = tc_maximum_d(omp_out, omp_in)) \
    initializer(omp_priv = -INFINITY)
#pragma omp declare reduction(tc_by_min : double : omp_out = tc_minimum_d(omp_out, omp_in)) \
    initializer(omp_priv = INFINITY)
#endif

/* The sign of a number, the remainder with the sign of the divisor, the logarithm of a sum of
 * exponentials, as NumPy's, and a choice. The
 * choice is a function, which takes both values from memory: GCC makes vectors of it. */
#define TC_FUNCTIONS(kind, type, remainder, with_sign, e, l)            \
    static inline type tc_signum_##kind(type x)                         \
    {                                                                   \
        return x > 0 ? 1 : x < 0 ? -1 : x == 0 ? 0 : x;                 \
    }                                                                   \
    static inline type tc_mod_##kind(type x, type y)                    \
    {                                                                   \
        const type rest = remainder(x, y);                              \
        if (rest == 0) return with_sign(rest, y);                       \
        return (rest < 0) == (y < 0) ? rest : rest + y;                 \
    }                                                                   \
    static inline type tc_logaddexp_##kind(type x, type y)              \
    {                                                                   \
        const type most = x > y ? x : y, apart = x - y;                 \
        const type less = l(e(apart > 0 ? -apart : apart));             \
        if (x == y) return x + (type)0.693147180559945309417;           \
        return apart != apart ? apart : most + less;                    \
    }                                                                   \
    static inline type tc_where_##kind(type condition, type x, type y)  \
    {                                                                   \
        return condition != 0 ? x : y;                                  \
    }
TC_FUNCTIONS(d, double, fmod, copysign, exp, log1p)
TC_FUNCTIONS(s, float, fmodf, copysignf, expf, log1pf)
static inline double complex tc_where_z(double condition, double complex x, double complex y)
{
    return condition != 0 ? x : y;
}

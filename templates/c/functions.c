/* The sign of a number, and the remainder with the sign of the divisor, as NumPy's. */
#define TC_FUNCTIONS(kind, type, remainder, with_sign)                  \
    static inline type tc_signum_##kind(type x)                         \
    {                                                                   \
        return x > 0 ? 1 : x < 0 ? -1 : x == 0 ? 0 : x;                 \
    }                                                                   \
    static inline type tc_mod_##kind(type x, type y)                    \
    {                                                                   \
        const type rest = remainder(x, y);                              \
        if (rest == 0) return with_sign(rest, y);                       \
        return (rest < 0) == (y < 0) ? rest : rest + y;                 \
    }
TC_FUNCTIONS(d, double, fmod, copysign)
TC_FUNCTIONS(s, float, fmodf, copysignf)

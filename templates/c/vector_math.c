/* On Linux with glibc the C library has these functions for whole vectors too (libmvec: at most 4
 * units in the last place), but its header says so under -ffast-math alone. Everywhere else, and
 * with -DTC_PLAIN_MATH, the plain functions are called, one element at a time. */
#if defined(_OPENMP) && defined(__x86_64__) && defined(__GLIBC_PREREQ) && !defined(TC_PLAIN_MATH)
#if __GLIBC_PREREQ(2, 35) && defined(__GNUC__) && !defined(__clang__) && !defined(__INTEL_COMPILER)
#define TC_VECTOR_FORM(type, name, function)                        \
    _Pragma("omp declare simd notinbranch")                         \
    type name(type) __asm__(#function) __attribute__((const));
TC_VECTOR_FORM(double, exp, exp)
TC_VECTOR_FORM(float, expf, expf)
TC_VECTOR_FORM(double, log, log)
TC_VECTOR_FORM(float, logf, logf)
TC_VECTOR_FORM(double, tanh, tanh)
TC_VECTOR_FORM(float, tanhf, tanhf)
TC_VECTOR_FORM(double, tan, tan)
TC_VECTOR_FORM(float, tanf, tanf)
TC_VECTOR_FORM(double, sinh, sinh)
TC_VECTOR_FORM(float, sinhf, sinhf)
TC_VECTOR_FORM(double, cosh, cosh)
TC_VECTOR_FORM(float, coshf, coshf)
TC_VECTOR_FORM(double, asin, asin)
TC_VECTOR_FORM(float, asinf, asinf)
TC_VECTOR_FORM(double, acos, acos)
TC_VECTOR_FORM(float, acosf, acosf)
TC_VECTOR_FORM(double, atan, atan)
TC_VECTOR_FORM(float, atanf, atanf)
TC_VECTOR_FORM(double, log1p, log1p)
TC_VECTOR_FORM(float, log1pf, log1pf)
TC_VECTOR_FORM(double, expm1, expm1)
TC_VECTOR_FORM(float, expm1f, expm1f)
TC_VECTOR_FORM(double, exp2, exp2)
TC_VECTOR_FORM(float, exp2f, exp2f)
TC_VECTOR_FORM(double, cbrt, cbrt)
TC_VECTOR_FORM(float, cbrtf, cbrtf)
#define TC_VECTOR_FORM_OF_TWO(type, name)                           \
    _Pragma("omp declare simd notinbranch")                         \
    type name(type, type) __asm__(#name) __attribute__((const));
TC_VECTOR_FORM_OF_TWO(double, atan2)
TC_VECTOR_FORM_OF_TWO(float, atan2f)
TC_VECTOR_FORM_OF_TWO(double, hypot)
TC_VECTOR_FORM_OF_TWO(float, hypotf)
TC_VECTOR_FORM_OF_TWO(double, pow)
TC_VECTOR_FORM_OF_TWO(float, powf)
/* By another name: the compiler would make one call of a sine and a cosine, which has no vectors. */
TC_VECTOR_FORM(double, tc_sin, sin)
TC_VECTOR_FORM(float, tc_sinf, sinf)
TC_VECTOR_FORM(double, tc_cos, cos)
TC_VECTOR_FORM(float, tc_cosf, cosf)
#define sin tc_sin
#define sinf tc_sinf
#define cos tc_cos
#define cosf tc_cosf
#endif
#endif

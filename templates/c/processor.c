/* Processors that differ in what suits them: Intel's, AMD's, and of these Zen 4, which older compilers call Zen 3, as they do
 * Zen 5; each of these can do something that the one before cannot.
 */
#if defined(__AVX__) && !defined(__znver1__) && !defined(__znver2__) && !defined(__znver3__) \
    && !defined(__znver4__) && !defined(__znver5__)
#define TC_INTEL 1
#define TC_AMD 0
#elif defined(__AVX__)
#define TC_INTEL 0
#define TC_AMD 1
#else
#define TC_INTEL 0
#define TC_AMD 0
#endif
#if (defined(__znver3__) || defined(__znver4__)) && defined(__GFNI__) && !defined(__AVXVNNI__)
#define TC_ZEN4 1
#else
#define TC_ZEN4 0
#endif

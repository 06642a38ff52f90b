/* Processors that differ in what suits them: Intel's, and AMD's Zen 4, which older compilers call Zen 3, as they do Zen 5;
 * each of these can do something that the one before cannot.
 */
#if defined(__AVX__) && !defined(__znver1__) && !defined(__znver2__) && !defined(__znver3__) \
    && !defined(__znver4__) && !defined(__znver5__)
#define TC_INTEL 1
#else
#define TC_INTEL 0
#endif
#if (defined(__znver3__) || defined(__znver4__)) && defined(__GFNI__) && !defined(__AVXVNNI__)
#define TC_ZEN4 1
#else
#define TC_ZEN4 0
#endif

/* Compilers work on the pieces at once: each compiles the text with its number as TC_PIECE. */
#ifdef TC_PIECE
#define TC_IN(piece) (TC_PIECE == (piece))
#define TC_SHARED __attribute__((visibility("hidden")))
#else
#define TC_IN(piece) 1
#define TC_SHARED static
#endif
typedef void tc_kernel(
    void *const *, const int64_t *, const int64_t *, const int64_t *, int, void *const *);

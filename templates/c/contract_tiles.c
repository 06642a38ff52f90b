/* The library's one object: tiles of one, two and three vectors, of operands that lie as it says. */
#define TC_TILE(height)                                                                 \
    static __attribute__((noinline)) void tc_tile_${kind}_##height(const tc_tiles_$kind *t)  \
    {                                                                                   \
        tc_multiply_$kind(t, height, $left, $right);                                 \
    }
TC_TILE(1)
TC_TILE(2)
TC_TILE(3)
const tc_heights_$kind tc_made_$kind = {0, tc_tile_${kind}_1, tc_tile_${kind}_2, tc_tile_${kind}_3};

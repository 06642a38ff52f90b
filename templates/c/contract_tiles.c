/* The library's one object: tiles by their height, of operands that lie as it says. Where squares are turned
 * meanwhile, there is a library for each way of storing them (contract_sizes.c); the others have but one.
 */
#ifndef TC_WAY
#define TC_WAY 0
#endif
#define TC_TILE(height)                                                                         \
    static __attribute__((noinline)) void tc_tile_${kind}_##height(const tc_tiles_$kind *t)     \
    {                                                                                           \
        if ($turning) tc_multiply_turning_$kind(t, height, $left, $right, TC_WAY);              \
        else tc_multiply_$kind(t, height, $left, $right);                                       \
    }
#if TC_WAY < 2 || defined(TC_MERGE_$kind)
TC_TILE(1)
TC_TILE(2)
#if TC_HEIGHT > 2
TC_TILE(3)
const tc_heights_$kind tc_made_$kind = {0, tc_tile_${kind}_1, tc_tile_${kind}_2, tc_tile_${kind}_3};
#else
const tc_heights_$kind tc_made_$kind = {0, tc_tile_${kind}_1, tc_tile_${kind}_2};
#endif
#else
const tc_heights_$kind tc_made_$kind = {0};  /* lines are not put together here */
#endif

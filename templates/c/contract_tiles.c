/* The library's one object: tiles by their height, of operands that lie as it says. Where squares are turned
 * meanwhile, there are three for each way of storing them.
 */
#define TC_TILE(height, way)                                                                    \
    static __attribute__((noinline)) void tc_tile_${kind}_##height##_##way(const tc_tiles_$kind *t) \
    {                                                                                           \
        tc_multiply_$kind(t, height, $left, $right, $turning, way);                             \
    }
$tiles
#ifdef TC_MERGE_$kind
#define TC_ACROSS(tile) tile
$across
#else
#define TC_ACROSS(tile) 0
#endif
const tc_heights_$kind tc_made_$kind = {$table};

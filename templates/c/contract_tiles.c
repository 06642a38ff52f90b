/* The library's one object: tiles by their height, of operands that lie as it says. Where squares are turned
 * meanwhile, the second three are for a target in the caches.
 */
#define TC_TILE(height, cached)                                                                 \
    static __attribute__((noinline)) void tc_tile_${kind}_##height##_##cached(const tc_tiles_$kind *t) \
    {                                                                                           \
        tc_multiply_$kind(t, height, $left, $right, $turning, cached);                          \
    }
$tiles
const tc_heights_$kind tc_made_$kind = {$table};

#ifndef TC_STORE_PIECES_H
#define TC_STORE_PIECES_H
/* Tiles at an edge of C, or whose m are scattered in C: computed into a buffer and stored in pieces of vectors. */
#include "ukernel.h"

/* Lanes first to last of a vector of a tile, which are contiguous in C. Lane 0 of that vector belongs ``shift`` reals
 * behind the first m of the tile.
 */
typedef struct {
    int64_t shift;
    int vector, first, last;
} tc_piece;

/* Cut the m of a tile, with the offsets ``c_m`` or contiguous, into pieces. Returns their number. */
TC_NOINLINE int tc_pieces(const int64_t *c_m, int64_t m, tc_piece *piece)
{
    const int64_t lanes = TC_LANES/TC_REALS;
    int count = 0;
    for (int64_t n = 0, end; n < m; n = end) {
        const int64_t lane = n%lanes, offset = c_m ? c_m[n] - c_m[0] : n;
        end = n + 1;
        while (end < m && end%lanes && (!c_m || c_m[end] == c_m[end - 1] + 1)) ++end;
        piece[count].shift = TC_REALS*(offset - lane);
        piece[count].vector = (int)(n/lanes);
        piece[count].first = (int)(TC_REALS*lane);
        piece[count++].last = (int)(TC_REALS*(lane + end - n));
    }
    return count;
}

/* Compute one tile of m by n and store its pieces. ``tile`` is what a whole one would be. */
TC_NOINLINE void tc_store_pieces(tc_ukernel *run, tc_tiles *tile, int64_t m, int64_t n, const int64_t *c_m)
{
    tc_piece piece[TC_MR];
    tc_vec whole[TC_NR][TC_MR_VECTORS];
    int64_t offset[TC_NR];
    tc_real *to[TC_NR];
    const tc_origin origin = {tile->origin->a, 0};
    const int add = tile->store == TC_ADD, pieces = tc_pieces(c_m, m, piece);
    for (int64_t j = 0; j < TC_NR; ++j) offset[j] = j*(TC_MR/TC_REALS);
    for (int64_t j = 0; j < n; ++j) {
        to[j] = (tc_real *)(tile->c + tile->origin->c + tile->c_column[j]);
        for (int q = 0; q < pieces; ++q) {
            TC_PREFETCH_C(to[j] + piece[q].shift + piece[q].first);
            TC_PREFETCH_C(to[j] + piece[q].shift + piece[q].last - 1);
        }
    }
    tile->origin = &origin;
    tile->c = (tc_scalar *)whole[0];
    tile->c_column = offset;
    tile->store = TC_OVERWRITE;
    tile->prefetch_c = 0;
    run(tile);
    for (int q = 0; q < pieces; ++q) {
        const tc_piece p = piece[q];
        for (int64_t j = 0; j < n; ++j) tc_store_lanes(to[j] + p.shift, whole[j][p.vector], p.first, p.last, add);
    }
}
#endif

typedef int64_t tc_addresses_$kind __attribute__((vector_size(TC_VECTOR), aligned(8), may_alias));

/* What is read next, fetched line by line while tiles are computed: a memory that is busy at
 * all times delivers several times what it delivers on demand. The elements ``line`` of each
 * of ``place`` stand for a line each.
 */
typedef struct {
    const $scalar *from;
    const int64_t *line, *place;
    int64_t lines, places, next_line, next_place, left;
    int64_t line_room[TC_FETCHES + TC_ADDRESSES], place_room[2*TC_FETCHES];
    int64_t list[TC_FETCHES + TC_ADDRESSES];  /* bytes from there */
} tc_fetch_$kind;

static void tc_aim_$kind(tc_fetch_$kind *f, const $scalar *from, const int64_t *line,
    int64_t lines, const int64_t *place, int64_t places)
{
    f->from = from;
    f->line = line;
    f->place = place;
    f->lines = lines;
    f->places = places;
    f->next_line = f->next_place = 0;
    f->left = lines*places;
}

/* The next lines in the list, at most ``count``; how many there are. */
static int64_t tc_take_$kind(tc_fetch_$kind *f, int64_t count)
{
    count = tc_min(tc_min(count, TC_FETCHES), f->left);
    f->left -= count;
    for (int64_t n = 0; n < count;) {
        const int64_t run = tc_min(count - n, f->lines - f->next_line);
        const int64_t from = f->place[f->next_place], size = sizeof($scalar);
        const int64_t *const line = f->line + f->next_line;
        for (int64_t r = 0; r < run; r += TC_ADDRESSES) {  /* those beyond it are written over */
            const tc_addresses_$kind along = *(const tc_addresses_$kind *)(line + r);
            *(tc_addresses_$kind *)(f->list + n + r) = (from + along)*size;
        }
        n += run;
        if ((f->next_line += run) < f->lines) continue;
        f->next_line = 0;
        ++f->next_place;
    }
    return count;
}

/* Lines for several tiles, ``each`` for every one of them; at the end the last one is repeated. How
 * many there are for each.
 */
static int64_t tc_take_evenly_$kind(tc_fetch_$kind *f, int64_t each, int64_t tiles)
{
    each = tc_min(each, TC_FETCHES);
    const int64_t all = each*tiles, count = tc_take_$kind(f, all);
    if (count == 0) return 0;
    for (int64_t n = count; n < all; ++n) f->list[n] = f->list[n - 1];
    return each;
}

/* Places of every ``step``-th of ``count`` points of a group, the last of each step. At most ``room`` of
 * them; how many there are.
 */
static int64_t tc_sample_$kind(const tc_walk *g, int64_t first, int64_t count, int64_t step,
    int64_t *place, int64_t room)
{
    enum { CHUNK = 256 };
    int64_t x[CHUNK], unused[CHUNK], found = 0;
    for (int64_t n = 0; n < count && found < room; n += CHUNK) {
        const int64_t many = tc_min(CHUNK, count - n);
        tc_places(g, first + n, many, x, unused);
        for (int64_t r = tc_min(step, many) - 1; r < many && found < room; r += step) {
            place[found++] = x[r];
        }
    }
    return found;
}

/* Aim at what is packed next of an operand: ``rows`` of a group from number ``row`` on, for the ``depth``
 * summed points at the places ``along``. Its stride-1 axis is the last one of the group, or each summed point
 * follows the one that is ``leap`` before it; or nothing is fetched.
 */
static void tc_aim_block_$kind(tc_fetch_$kind *f, const $scalar *from, const tc_walk *group,
    int64_t row, int64_t rows, const int64_t *along, int64_t depth, int64_t leap)
{
    const int64_t length = tc_max(1, 64/(int64_t)sizeof($scalar)), run = depth/leap;
    const int follows = run > 1
        && (along[leap] == along[0] + 1 || along[depth - 1] == along[depth - 1 - leap] + 1);
    int64_t lines = 0, places = 0;
    if (group->axes && group->x[group->axes - 1] == 1) {
        lines = tc_sample_$kind(group, row, rows, length, f->line_room, TC_FETCHES);
        for (; places < depth; ++places) f->place_room[places] = along[places];
    } else if (follows) {
        for (int64_t p = 0; p < leap; ++p) {
            for (int64_t q = tc_min(length, run) - 1; q < run; q += length) {
                f->line_room[lines++] = along[p + q*leap];
            }
        }
        places = tc_sample_$kind(group, row, rows, 1, f->place_room, 2*TC_FETCHES);
    }
    tc_aim_$kind(f, from, f->line_room, lines, f->place_room, places);
}

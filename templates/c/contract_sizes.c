#define TC_AXES 64               /* NumPy's most axes */
#define TC_STREAM_BYTES 4000000  /* a target at least this large passes by the caches */
#define TC_BUFFER 524288         /* bytes of staged columns on their way through a buffer, */
#define TC_GOING 172032          /* of rows that go on in the next block, at most twice as many, */
#define TC_JOINED 655360         /* and of those whose columns follow each other, too */
#define TC_PENDING (4096/TC_VECTOR)  /* vectors that wait for the next tiles to store them, */
#define TC_LINES (TC_WAITING/TC_VECTOR)  /* or, in a buffer, for those of the next chunk, */
#define TC_STRETCHES TC_LINES        /* and the stretches that they form */
#define TC_FIRST 32768           /* bytes of a first-level cache */
#define TC_PAGE 4096             /* bytes from one summed point to the next that are far */
#define TC_LISTED 4096           /* most lines of a staged group of panels that are fetched */
#define TC_PACE 1048576          /* parts of a square */
#define TC_RUNS 16               /* most runs of the target in a panel */
#define TC_TALLEST (3072/TC_VECTOR/TC_HEIGHT)  /* panels that wait together, with the columns of a tile */
#define TC_NEAR 262144           /* bytes of blocks that leave room in the second-level cache */
#define TC_FILLED 786432         /* or fill it, beside targets that go through a buffer */
#define TC_KEPT 16384            /* bytes of packed columns beside which panels go by, */
#define TC_SOME 4                /* or tiles of them */
#define TC_FEW 128               /* columns or rows, */
#define TC_SEVERAL 512           /* and so many that packing still takes time that counts */
#define TC_DEEP 192              /* summed points beside which storing a tile in pieces takes no time */
#define TC_TALL 16               /* summed points of a rectangle, */
#define TC_WIDE 24               /* by how many */
#define TC_UNBROKEN 24           /* vectors of a run of staged rows that may begin and end within one */
#define TC_LONG 6                /* most lines of a row of a staged block, */
#define TC_HIDING 40             /* fewer of staged rows beside a sum that is as long; */
#define TC_LONGER 12             /* of one that begins and ends within lines, */
#define TC_CARRIED 4             /* and, at least half of them, of one that goes on in the next block */
#define TC_LASTING 32            /* lines of a whole row, of which those at its ends are few */
#define TC_AHEAD 4               /* squares between fetching the target and storing it */
#define TC_FETCHES 512           /* lines that a tile fetches */
#define TC_ADDRESSES (TC_VECTOR/8)  /* of lines, computed at a time */
#define TC_STRIPS 256            /* panels of a block */
#define TC_NEARBY 64             /* places that are computed at a time */
#define TC_ADDING 4000           /* vectors times a tile's columns while threads wait for each other */
#define TC_THREAD_POINTS 200000  /* starting threads for fewer costs more than it saves */

/* How a tile reads an operand. */
enum { TC_IN_PLACE = 0, TC_PACKED = 1 };

/* How a target passes by the caches: not at all, in tiles of whole lines, by way of a buffer, by lines that are put
 * together of columns that follow each other.
 */
enum { TC_CACHED = 0, TC_DIRECT = 1, TC_BUFFERED = 2, TC_JOINED_LINES = 3 };

/* How a target that is turned is stored: past the caches by whole lines; by squares, to lines that are in the
 * caches; past them by lines that are put together, where its rows begin and end within lines.
 */
enum { TC_BY_LINES = 0, TC_BY_SQUARES = 1, TC_ACROSS_LINES = 2, TC_WAYS };

#ifndef TC_SIZES_H
#define TC_SIZES_H
/* Sizes of blocks, printed by tcgen/emit/c/targets.py from artifact/kernel_abi.py. */
#define TC_KC 384  /* KC, the most k of a block */
#define TC_MC 240  /* MC, the m of a packed block of A with KC k */
#define TC_NC 2816  /* NC, the columns of a block of B with KC k */
#define TC_STAGE_ROOM 337920  /* doubles of two staging buffers and a micro-panel */
#define TC_MOST_M 4096  /* most m of a block with fewer k */
#define TC_MOST_N 16384  /* most columns of a block with fewer k */
#define TC_EDGE 48  /* m or columns by which a block is padded at most */
#endif

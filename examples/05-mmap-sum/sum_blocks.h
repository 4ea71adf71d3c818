/* sum_blocks.h — the number of blocks and threads, which determines the order of the additions on GPU and CPU. */
#ifndef SUM_BLOCKS_H
#define SUM_BLOCKS_H

#define SUM_BLOCKS  64
#define SUM_THREADS 256

#endif

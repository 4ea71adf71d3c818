/* sum_blocks.h — the shape of the grid, which is the order of the sum: for the GPU and for the CPU. */
#ifndef SUM_BLOCKS_H
#define SUM_BLOCKS_H

#define SUM_BLOCKS 64
#define SUM_THREADS 256

#endif

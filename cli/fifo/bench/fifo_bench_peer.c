/* fifo_bench_peer.c — the measured rates of the fastest public FIFO, for comparison.
 *
 * Measured once, with the same method and configurations: blocks of one thread, the larger of 1000 and 10 x size triggers
 * per thread, time from launch to synchronise, a hash map on the CPU, the median of five runs. */
#include <stddef.h>

#include "cli/fifo/bench/fifo_bench.h"

const char fifo_peer_name[] = "mscclpp";
const char fifo_peer_about[] = "mscclpp main 1f5f065d, measured on another day: H200, driver 580.159, CUDA 13.0";

const struct fifo_peer fifo_peers[] = {
	{ { 1, 1 }, 0.50, 0.304 },    { { 128, 1 }, 1.29, 0.327 },  { { 128, 8 }, 6.89, 1.07 }, { { 128, 64 }, 2.12, 1.01 },
	{ { 128, 128 }, 1.07, 1.05 }, { { 512, 1 }, 1.31, 0.337 },  { { 512, 8 }, 9.04, 1.08 }, { { 512, 64 }, 8.29, 1.01 },
	{ { 512, 256 }, 2.20, 1.00 }, { { 512, 512 }, 0.75, 0.78 }, { { 0, 0 }, 0, 0 },
};

const struct fifo_peer *fifo_peer_of(struct fifo_config config)
{
	for (const struct fifo_peer *p = fifo_peers; p->config.size; p++)
		if (p->config.size == config.size && p->config.parallel == config.parallel)
			return p;
	return NULL;
}

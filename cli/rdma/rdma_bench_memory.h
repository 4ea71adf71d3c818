/* rdma_bench_memory.h — allocates buffers for messages, in CPU or GPU memory, and writes and checks the pattern in them.
 *
 *      flow 0              flow 1
 *     ┌─────────┬─────────┬─────────┬─────────┐   one allocation and one registration for all flows;
 *     │ out     │ in      │ out     │ in      │   out and in have shape.buffer_bytes each
 *     └─────────┴─────────┴─────────┴─────────┘   a message begins at each multiple of rdma_memory_stride()
 *
 * The pattern of a message depends on its flow, direction, phase and position in the ring, so that each message differs. */
#ifndef GPULOAD_CLI_RDMA_RDMA_BENCH_MEMORY_H
#define GPULOAD_CLI_RDMA_RDMA_BENCH_MEMORY_H

#include "cli/rdma/rdma_bench.h"

struct rdma_buffers {
	const struct rdma_setup *setup; /* borrowed */
	gpul_context context;           /* context of GPU memory; current on the thread that opened the buffers */
	gpul_mem *mem;                  /* memory of the kinds host-numa and device */
	void *host;                     /* mapping of the kind host; otherwise NULL */
	unsigned char *cpu;             /* NULL: the CPU cannot access the memory */
	uint64_t at, bytes;             /* at: start address, as used in requests */
	uint64_t buffer_bytes;          /* bytes of one flow and direction */
	gpul_rdma_region *region;
};

/* Return the maximum size of all buffers of a client: a quarter of the memory of this machine. */
uint64_t rdma_memory_limit(void);

/* Return the distance between messages in a buffer: their size, and room for an odd start address, rounded up for alignment. */
uint64_t rdma_memory_stride(uint64_t bytes);

/** Allocate and register the buffers of a client's flows.
 *
 * @r      an open device
 * @setup  kind of memory; its driver is open unless the kind is host; borrowed
 * @shape  number of flows, and size of a buffer
 * @out    owned by the caller: rdma_buffers_close(); zeroed on failure
 * Errors  GPUL_ENOMEM, GPUL_ECUDA, GPUL_EVERBS, GPUL_EUNSUPPORTED
 * Threads any thread; rdma_buffers_close() and the functions below must be called on the same thread */
gpul_status rdma_buffers_open(gpul_rdma *r, const struct rdma_setup *setup, const struct rdma_shape *shape, struct rdma_buffers *out,
			      gpul_error *err);
void rdma_buffers_close(struct rdma_buffers *b); /* accepts a struct of zeros */

/* Return the address of a flow's buffer "in" (in true) or "out". */
uint64_t rdma_buffers_at(const struct rdma_buffers *b, unsigned flow, bool in);

/** Make the context of GPU memory current on this thread.
 *
 * @b  buffers
 * Errors  GPUL_ECUDA
 * Source  CUDA Driver API: cuCtxSetCurrent() */
gpul_status rdma_buffers_use(const struct rdma_buffers *b, gpul_error *err);

/* Selects a pattern: the phase, the direction, the flow and the position in the ring. */
struct rdma_pattern {
	uint64_t phase;
	bool to_client;
	unsigned flow, place;
};

/** Write the pattern of a message, or (pattern NULL) bytes that differ from every pattern at most positions.
 *
 * @b        buffers
 * @at       address of the message
 * @bytes    its size
 * @pattern  NULL: clear it
 * Errors  GPUL_ECUDA
 * Threads the thread of the buffers */
gpul_status rdma_buffers_fill(const struct rdma_buffers *b, uint64_t at, uint64_t bytes, const struct rdma_pattern *pattern,
			      gpul_error *err);

/** Compare a message with its pattern, byte for byte.
 *
 * @b        buffers
 * @at       address of the message
 * @bytes    its size
 * @pattern  expected
 * Errors  GPUL_EFORMAT the first byte that differs; GPUL_ECUDA
 * Threads the thread of the buffers */
gpul_status rdma_buffers_check(const struct rdma_buffers *b, uint64_t at, uint64_t bytes, const struct rdma_pattern *pattern,
			       gpul_error *err);

#endif

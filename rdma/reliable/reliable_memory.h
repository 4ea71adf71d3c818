/* reliable_memory.h — the memory that a peer may write to by the datagrams of rdma/reliable: ranges of addresses, found by their keys. */
#ifndef GPULOAD_RDMA_RELIABLE_RELIABLE_MEMORY_H
#define GPULOAD_RDMA_RELIABLE_RELIABLE_MEMORY_H

#include <pthread.h>

#include "rdma/protocol/protocol_failure.h"
#include "rdma/reliable/reliable.h"

enum { GPUL_REL_HASH = 256 };

struct gpul_rel_range {
	uint64_t key, at, bytes;
	struct gpul_rel_range *next; /* of the same hash */
};

typedef struct gpul_rel_memory {
	pthread_rwlock_t lock; /* held for reading while chunks are written, so that gpul_rel_memory_remove() waits for them */
	struct gpul_rel_range *ranges[GPUL_REL_HASH];
} gpul_rel_memory;

/* Both calls are the owner's: no other thread uses the table then. */
void gpul_rel_memory_create(gpul_rel_memory *m);
/* All ranges must have been removed. */
void gpul_rel_memory_destroy(gpul_rel_memory *m);

/** Add and remove a range.
 *
 * @range   owned by the caller, and unchanged from add to remove
 * Threads  any thread may call */
void gpul_rel_memory_add(gpul_rel_memory *m, struct gpul_rel_range *range);
void gpul_rel_memory_remove(gpul_rel_memory *m, struct gpul_rel_range *range);

/* Write the payload of a chunk to its place, if it has one.  The caller holds the lock for reading.  Returns false, and *why, if the key does
 * not grant the memory. */
bool gpul_rel_memory_write(gpul_rel_memory *m, const gpul_rel_chunk *c, const unsigned char *datagram, gpul_rdma_failure *why);

#endif

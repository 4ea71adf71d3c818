/* reliable_ops.h — what the backends over rdma/reliable share: posted operations become messages, and events of messages become completions.
 *
 *     post ── add ──> ring of operations ── start ──> gpul_rel_send        an operation may need several messages
 *     poll <── events ── all of its messages are acknowledged, and no datagram in a queue of the NIC refers to its data */
#ifndef GPULOAD_RDMA_RELIABLE_RELIABLE_OPS_H
#define GPULOAD_RDMA_RELIABLE_RELIABLE_OPS_H

#include "rdma/protocol/op.h"
#include "rdma/reliable/reliable.h"

enum { GPUL_REL_FLUSHES = 64 };

/* An operation that was posted, at index (number % size of the ring). */
struct gpul_rel_op {
	uint64_t id;
	gpul_rdma_op op;    /* what has not been passed to gpul_rel_send() yet */
	unsigned n_waiting; /* messages that are not acknowledged, datagrams that the NIC has not read, plus 1 while bytes are left */
	bool reported;
};

typedef struct gpul_rel_ops {
	struct gpul_rel_op *ring;
	uint32_t *done;                                              /* ring of the operations that are done and not reported */
	uint32_t n_slots, head, started, tail, done_head, done_tail; /* started: the first one that is not passed on as a whole */
	uint64_t flushed[GPUL_REL_FLUSHES];
	unsigned flushed_head, flushed_tail;
} gpul_rel_ops;

/** Allocate the ring.
 *
 * @o        owned by the caller: gpul_rel_ops_destroy()
 * @n_slots  most operations in flight; rounded up to a power of two, at least 64
 * Errors  GPUL_ENOMEM; then *o is empty, and gpul_rel_ops_destroy() accepts it */
gpul_status gpul_rel_ops_create(gpul_rel_ops *o, uint32_t n_slots, gpul_error *err);
void gpul_rel_ops_destroy(gpul_rel_ops *o);

/* Accept a write, or a flush that ends at once; false: there is no room now.  Other kinds of operations are accepted and ignored. */
bool gpul_rel_ops_add(gpul_rel_ops *o, const gpul_rdma_op *op);
/* Pass on as much as there is room for. */
void gpul_rel_ops_start(gpul_rel_ops *o, gpul_rel *r);
/* A datagram of message `id`, whose data is not copied, is given to the NIC; the NIC has read it. */
void gpul_rel_ops_hold(gpul_rel_ops *o, uint64_t id);
void gpul_rel_ops_release(gpul_rel_ops *o, uint64_t id);
/* Append completions and arrivals to events[*n ..]. */
void gpul_rel_ops_events(gpul_rel_ops *o, gpul_rel *r, gpul_rdma_event *events, unsigned max, unsigned *n);

#endif

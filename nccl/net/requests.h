/* requests.h — the requests of one connection, and how NCCL's grouped receives become receives of the send path.  No I/O.
 *
 *     NCCL                                            send path (rdma.h)
 *     irecv of n buffers: different tags, each not longer than a segment ──> one multi-receive of n parts
 *                         else ────────────────────────────────────────────> n receives, in order
 *     isend ───────────────────────────────────────────────────────────────> one send, when its tag has a slot
 *
 * A request of NCCL has ended when all its requests of the send path have.  The sender need not know which way the receiver
 * has chosen: it waits until the next slot has its tag (gpul_rdma_may_send). */
#ifndef GPULOAD_NCCL_NET_REQUESTS_H
#define GPULOAD_NCCL_NET_REQUESTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nccl/net/nccl_abi.h"
#include "rdma/protocol/protocol_link.h"

enum { GPUL_NET_REQUESTS = GPUL_NCCL_MAX_REQUESTS * GPUL_NCCL_MAX_RECVS };
static_assert((int)GPUL_NCCL_MAX_RECVS <= (int)GPUL_RDMA_MAX_PARTS, "a multi-receive has room for a group");

typedef struct gpul_net_request {
	void *end;                  /* the connection; NULL: the request is free */
	unsigned n;                 /* number of buffers; 1 for a send */
	bool together;              /* the n buffers are received by one request of the send path */
	unsigned n_posted, n_ended; /* numbers of the requests of the send path that were posted, and that have ended */
	gpul_rdma_request posted[GPUL_NCCL_MAX_RECVS];
	uint64_t bytes[GPUL_NCCL_MAX_RECVS]; /* number of bytes in each buffer; valid when its request has ended */
} gpul_net_request;

typedef struct gpul_net_requests {
	gpul_net_request all[GPUL_NET_REQUESTS];
	unsigned next; /* index in the table at which the search for a free request begins */
} gpul_net_requests;

/* Take a free request of n buffers; NULL: all are in use. */
gpul_net_request *gpul_net_request_take(gpul_net_requests *table, void *end, unsigned n, bool together);
void gpul_net_request_free(gpul_net_request *r);

/* Return the number of requests of the send path that a request consists of. */
unsigned gpul_net_request_parts(const gpul_net_request *r);

/* True when all parts of a request have ended; only then is `bytes` complete. */
bool gpul_net_request_ended(const gpul_net_request *r);

/* True if n buffers fit into one multi-receive (or n is 1): their tags differ, and none is longer than a segment. */
bool gpul_net_fits_together(const size_t *n_bytes, const int *tags, unsigned n, size_t segment_bytes);

#endif

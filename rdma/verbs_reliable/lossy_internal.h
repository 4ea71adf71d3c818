/* lossy_internal.h — the backend reliable-verbs: RDMA writes over queue pairs of type UC or UD, whose packets may be lost, made reliable by
 * rdma/reliable.
 *
 *     device   a NIC of rdma/verbs, and the memory that the peer may write by datagrams      lossy_device.c
 *     path     a connection: a gpul_rel, and a queue pair for each of its paths; RoCE v2 derives the UDP source port from the queue pair,
 *              so that switches with ECMP distribute the paths                                lossy_path.c
 *     UC       chunks are RDMA writes with immediate, see reliable_writes.c                    lossy_send.c, lossy_poll.c
 *     UD       each chunk is a datagram with a header, which the CPU copies to its place */
#ifndef GPULOAD_RDMA_VERBS_RELIABLE_LOSSY_INTERNAL_H
#define GPULOAD_RDMA_VERBS_RELIABLE_LOSSY_INTERNAL_H

#include "rdma/verbs/verbs_internal.h"

#if GPUL_HAVE_LIBIBVERBS

#include "rdma/reliable/reliable_memory.h"
#include "rdma/reliable/reliable_ops.h"

enum {
	LOSSY_PATHS = 8,    /* default; the limit is GPUL_RDMA_MAX_QPS */
	LOSSY_WINDOW = 128, /* chunks in flight of a path */
	LOSSY_RECVS = 256,  /* receives of a queue pair: for these, acknowledgements and further copies */
	LOSSY_DEPTH = 256,  /* sends of a queue pair */
	LOSSY_BATCH = 64,   /* work requests of one post, completions of one poll */
	LOSSY_HEADER = 64,  /* of a chunk that is sent as a datagram */
};

struct lossy_device {
	gpul_verbs_device *nic;
	gpul_rel_memory memory;
	unsigned n_paths;
	bool ud;
};

/* The token of a registration. */
struct lossy_memory {
	struct gpul_rel_range range; /* .bytes 0: it is not in the table, because the peer must not write it */
	void *mr;
};

struct lossy_queue {
	gpul_verbs_queue q; /* all sends are signalled: .posted, .ended */
	struct ibv_ah *ah;  /* UD */
	uint32_t peer_qpn;
	bool stopped;
	uint64_t held[LOSSY_DEPTH]; /* at index (number of the send % LOSSY_DEPTH): message whose data the NIC reads; LOSSY_NONE: none */
	struct ibv_send_wr *first, *last; /* of the batch */
};

#define LOSSY_NONE UINT64_MAX

/* wr_id: the queue pair, and the number of the send or of the receive's buffer. */
#define LOSSY_RECV_FLAG    (UINT64_C(1) << 63)
#define LOSSY_ID(queue, n) ((uint64_t)(queue) << 32 | (n))

struct lossy_path {
	gpul_verbs_path verbs; /* completion queue, loop-back queue pair, asynchronous events */
	struct lossy_device *device;
	gpul_rel *rel;
	gpul_rel_ops ops;
	unsigned n_paths;
	struct lossy_queue queues[GPUL_RDMA_MAX_QPS];
	uint64_t token;
	uint32_t peer_qkey;
	uint32_t stride;        /* bytes of a buffer */
	unsigned char *buffers; /* of each queue pair: LOSSY_RECVS, then LOSSY_DEPTH for sends */
	struct ibv_mr *mr;

	struct ibv_send_wr requests[LOSSY_BATCH];
	struct ibv_sge pieces[2 * LOSSY_BATCH];
	unsigned n_requests, n_pieces;
	gpul_rdma_failure failed;
};

static inline unsigned char *lossy_buffer(const struct lossy_path *p, unsigned queue, uint32_t index)
{
	return p->buffers + ((size_t)queue * (LOSSY_RECVS + LOSSY_DEPTH) + index) * p->stride;
}

/* lossy_device.c */
void gpul_lossy_about(void *device, gpul_rdma_device_info *out);

/* lossy_path.c */
gpul_status gpul_lossy_create(void *device, unsigned n_qps, unsigned depth, unsigned n_recvs, const struct sockaddr *from, void **path,
			      gpul_error *err);
size_t gpul_lossy_describe(void *path, unsigned char out[GPUL_RDMA_MAX_DESCRIPTION]);
gpul_status gpul_lossy_connect(void *path, const unsigned char *description, size_t n_bytes, gpul_error *err);
void gpul_lossy_break(void *path);
unsigned gpul_lossy_stats(void *path, gpul_rel_counters *out, gpul_rel_path_info *paths, unsigned max);
void gpul_lossy_record(void *path, gpul_rel_trace *trace);
void gpul_lossy_destroy(void *path);
/* Post receives for the buffers with these wr_ids, all of one queue pair.  Returns 0 or errno. */
int gpul_lossy_post_recvs(struct lossy_path *p, const uint64_t *ids, unsigned n);

/* lossy_send.c */
gpul_status gpul_lossy_post(void *path, const gpul_rdma_op *ops, unsigned n, unsigned *n_posted, gpul_rdma_failure *why);
/* Send what may be sent now; an error is recorded in p->failed. */
void gpul_lossy_send(struct lossy_path *p);

/* lossy_poll.c */
gpul_status gpul_lossy_poll(void *path, gpul_rdma_event *events, unsigned max, unsigned *n_events, gpul_rdma_failure *why);

#endif
#endif

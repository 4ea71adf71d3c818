/* verbs_internal.h — the structs and functions that the files of the verbs backend share.
 *
 *     device ── context, protection domain, port, GID            verbs_device.c, verbs_choose.c, verbs_memory.c
 *       path ── one completion queue                              verbs_path.c, description.c, async.c
 *         queue pairs 0 .. n-1, to the peer                       queue.c, verbs_post.c, poll.c
 *         a loop-back queue pair, for FLUSH                       flush.c
 *         a datagram queue pair, for CONTROL                      datagram.c */
#ifndef GPULOAD_RDMA_VERBS_VERBS_INTERNAL_H
#define GPULOAD_RDMA_VERBS_VERBS_INTERNAL_H

#include "rdma/backend/backend.h"
#include "rdma/verbs/gid.h"
#include "rdma/verbs/verbs_lib.h"

#if GPUL_HAVE_LIBIBVERBS

#include <pthread.h>
#include <stdatomic.h>

enum {
	GPUL_VERBS_BATCH = 64,           /* limit of the work requests of one post, and of the completions of one poll */
	GPUL_VERBS_FLUSHES = 64,         /* limit of the flushes in flight on one path; the protocol has at most 32 */
	GPUL_VERBS_DATAGRAMS = 64,       /* limit of the datagrams in flight on one path, in each direction */
	GPUL_VERBS_GRH_BYTES = 40,       /* size of the header before each received datagram */
	GPUL_VERBS_GRACE_NS = 250000000, /* how long a path with flushed completions waits for the cause of the failure */
	GPUL_VERBS_RNR_TIMER = 18,       /* InfiniBand's code for 5.12 ms, the time between two of the 6 RNR retries; rarely
					  * needed, because the protocol only sends if a receive is posted */
	GPUL_VERBS_HOPS = 64,
};

/* wr_id of every empty receive, which no operation has: a failed completion does not tell whether it is a receive, because its
 * opcode is not valid. */
#define GPUL_VERBS_RECV_ID UINT64_MAX

typedef struct gpul_verbs_device {
	const struct gpul_verbs *v;
	const gpul_driver *drv; /* driver for the flush policy CUDA; may be NULL */
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_device_attr_ex attr;
	struct ibv_port_attr port_attr;
	struct ibv_gid_entry gid;
	uint8_t port;
	uint8_t timeout, retry, traffic_class;
	bool ethernet, uc, control_datagrams;
	enum ibv_mtu mtu;       /* the smaller of the MTUs of the port and of the user */
	gpul_rdma_flush flush;  /* the chosen method, never AUTO */
	struct ibv_mr *null_mr; /* flush by ATOMIC: receives the result */
	uint64_t scratch;       /* flush by READ: receives the data */
	struct ibv_mr *scratch_mr;
	_Atomic uint64_t down_since_ns; /* time when the port went down; 0: it is up */
	gpul_rdma_device_info info;
} gpul_verbs_device;

/* A queue pair, with the positions of its operations.  Positions only increase, and wrap around at 2^32. */
typedef struct gpul_verbs_queue {
	struct ibv_qp *qp;
	uint32_t psn;
	uint32_t depth;         /* size of the send queue, in operations */
	uint32_t posted, ended; /* number of operations posted, and number of operations ended */
	uint32_t *marks;        /* ring of `depth` elements: the position after each signalled operation in flight */
	uint32_t marks_head, marks_tail;
} gpul_verbs_queue;

/* The datagram queue pair, with the buffers of both directions in one registration. */
typedef struct gpul_verbs_datagrams {
	gpul_verbs_queue queue;
	struct ibv_ah *ah; /* address handle of the peer */
	uint32_t peer_qpn, peer_qkey, qkey;
	uint32_t stride;        /* bytes of one buffer */
	unsigned char *buffers; /* GPUL_VERBS_DATAGRAMS receive buffers, then as many send buffers */
	struct ibv_mr *mr;
	uint16_t used[GPUL_VERBS_DATAGRAMS]; /* receive buffers whose data the most recent poll has returned */
	unsigned n_used;
} gpul_verbs_datagrams;

typedef struct gpul_verbs_path {
	gpul_verbs_device *d;
	struct ibv_cq *cq;
	unsigned n_qps, n_recvs;
	gpul_verbs_queue queues[GPUL_RDMA_MAX_QPS];
	gpul_verbs_queue loop;                      /* the loop-back queue pair; .qp NULL: flushes need none */
	gpul_verbs_datagrams datagrams;             /* .queue.qp NULL: not used */
	unsigned last;                              /* index of the queue pair of the most recent completion */
	struct ibv_recv_wr recvs[GPUL_VERBS_BATCH]; /* a chain of receives without buffers */
	uint64_t flushed[GPUL_VERBS_FLUSHES];       /* ring of flushes that have ended without using a queue pair */
	uint32_t flushed_head, flushed_tail;

	pthread_mutex_t lock;      /* held by post, poll and break_path */
	atomic_bool broken;        /* break_path() has been called */
	gpul_rdma_failure failure; /* first error of the queue pairs; reported after the events that came before it */
	bool only_flushed;         /* failure is IBV_WC_WR_FLUSH_ERR, which is only a consequence of another error */
	uint64_t failed_at_ns;

	pthread_mutex_t async_lock; /* protects async, which another thread writes */
	gpul_rdma_failure async;    /* asynchronous event of one of the queue pairs */
	atomic_bool has_async;
} gpul_verbs_path;

/* ---- verbs_error.c: messages ------------------------------------------------------------------------------------------ */

/* Record that a call of libibverbs failed: "ibv_reg_mr of 4096 bytes: Cannot allocate memory (12): advice".  The advice
 * depends on code; for ENOMEM it contains the limit of locked memory and wanted_bytes, unless that is 0. */
gpul_status gpul_verbs_fail(gpul_error *err, int code, size_t wanted_bytes, const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* Return the name of a status, "IBV_WC_RETRY_EXC_ERR"; else "unknown status". */
const char *gpul_verbs_wc_name(enum ibv_wc_status status);
/* Return advice for a status; "": none.  of_receive: the completion is of a receive, so an operation of the peer has failed. */
const char *gpul_verbs_wc_advice(enum ibv_wc_status status, bool of_receive);

/* ---- verbs_choose.c, flush.c: how a device is used ------------------------------------------------------------------------ */

/* Open the device that desc names, or else choose one; then choose its port, GID and MTU. */
gpul_status gpul_verbs_choose(gpul_verbs_device *d, const gpul_rdma_device_desc *desc, gpul_error *err);

/* Choose the method of FLUSH, and allocate its resources in the device; info.flush explains the choice. */
gpul_status gpul_verbs_choose_flush(gpul_verbs_device *d, const gpul_rdma_device_desc *desc, gpul_error *err);
void gpul_verbs_end_flush(gpul_verbs_device *d);

/* Read the GID table; returns the number of entries, or 0. */
size_t gpul_verbs_gids(const gpul_verbs_device *d, struct ibv_gid_entry entries[GPUL_VERBS_MAX_GIDS]);

/* ---- queue.c: one queue pair ---------------------------------------------------------------------------------------- */

/* Create a queue pair in state INIT. */
gpul_status gpul_verbs_queue_create(gpul_verbs_path *p, gpul_verbs_queue *q, enum ibv_qp_type type, unsigned depth, unsigned n_recvs,
				    unsigned access, gpul_error *err);
void gpul_verbs_queue_destroy(gpul_verbs_path *p, gpul_verbs_queue *q);

/* The data that identifies the peer's end of a queue pair. */
typedef struct gpul_verbs_remote {
	uint32_t qpn, psn;
	uint16_t lid;
	union ibv_gid gid;
	enum ibv_mtu mtu;
	bool global; /* the path needs a global route header */
} gpul_verbs_remote;

/* Move a queue pair from state INIT to RTS (ready to send). */
gpul_status gpul_verbs_queue_connect(gpul_verbs_path *p, gpul_verbs_queue *q, enum ibv_qp_type type, const gpul_verbs_remote *to,
				     gpul_error *err);
/* Stop a queue pair.  In state ERR it accepts no packets, but the data of a packet that is arriving might still be written.  The
 * transition to RESET waits for that: a NIC's driver stops the queue in the hardware, and rxe disables its tasks.  (On rxe,
 * tests/rdma/verbs/device_faults.c has observed no such packet even in state ERR.) */
void gpul_verbs_queue_stop(gpul_verbs_path *p, struct ibv_qp *qp);
void gpul_verbs_address(const gpul_verbs_device *d, const gpul_verbs_remote *to, struct ibv_ah_attr *out);

/* ---- description.c: what the peer needs to connect --------------------------------------------------------------------- */

typedef struct gpul_verbs_description {
	uint8_t link_layer, gid_type, mtu, qp_type, n_qps, flags;
	uint16_t lid;
	union ibv_gid gid;
	uint32_t datagram_qpn, datagram_qkey;
	struct {
		uint32_t qpn, psn;
	} qps[GPUL_RDMA_MAX_QPS];
} gpul_verbs_description;

enum { GPUL_VERBS_DATAGRAM_FLAG = 1, GPUL_VERBS_GLOBAL_FLAG = 2 };

size_t gpul_verbs_description_write(const gpul_verbs_description *in, unsigned char out[GPUL_RDMA_MAX_DESCRIPTION]);

/** Read and check a description.
 *
 * @from     untrusted bytes
 * @n_bytes  their number
 * @out      filled; every field is in its range
 * @err      explains a failure
 * Errors  GPUL_EFORMAT native = byte offset
 * Source  drawn in description.c */
gpul_status gpul_verbs_description_read(const unsigned char *from, size_t n_bytes, gpul_verbs_description *out, gpul_error *err);

/* ---- verbs_path.c: descriptions --------------------------------------------------------------------------------------- */

/* Fill in what does not depend on queue pairs. */
void gpul_verbs_describe_port(const gpul_verbs_device *d, gpul_verbs_description *out);
/* Check that both descriptions are of the same kind of path. */
gpul_status gpul_verbs_check_peer(const gpul_verbs_device *d, const gpul_verbs_description *mine, const gpul_verbs_description *peer,
				  gpul_error *err);
/* The address of a peer; the caller fills in qpn and psn. */
gpul_verbs_remote gpul_verbs_remote_of(const gpul_verbs_device *d, const gpul_verbs_description *peer);

/* ---- the functions of the table; contracts in backend.h ------------------------------------------------------------- */

gpul_status gpul_verbs_reg(void *device, const gpul_rdma_memory *memory, gpul_rdma_piece *piece, void **token, gpul_error *err);
void gpul_verbs_dereg(void *device, void *token);
gpul_status gpul_verbs_create_path(void *device, unsigned n_qps, unsigned depth, unsigned n_recvs, const struct sockaddr *from, void **path,
				   gpul_error *err);
size_t gpul_verbs_describe(void *path, unsigned char out[GPUL_RDMA_MAX_DESCRIPTION]);
gpul_status gpul_verbs_connect(void *path, const unsigned char *description, size_t n_bytes, gpul_error *err);
gpul_status gpul_verbs_post(void *path, const gpul_rdma_op *ops, unsigned n, unsigned *n_posted, gpul_rdma_failure *why);
gpul_status gpul_verbs_poll(void *path, gpul_rdma_event *events, unsigned max, unsigned *n_events, gpul_rdma_failure *why);
void gpul_verbs_break(void *path);
void gpul_verbs_destroy_path(void *path);
int gpul_verbs_async_fd(void *device);
bool gpul_verbs_async_read(void *device, gpul_rdma_failure *why);

/* Repost n empty receives. */
int gpul_verbs_post_recvs(gpul_verbs_path *p, gpul_verbs_queue *q, unsigned n);

/* ---- flush.c, datagram.c: parts of a path --------------------------------------------------------------------------- */

gpul_status gpul_verbs_create_loop(gpul_verbs_path *p, gpul_error *err);
gpul_status gpul_verbs_create_datagrams(gpul_verbs_path *p, gpul_error *err);
gpul_status gpul_verbs_connect_datagrams(gpul_verbs_path *p, const gpul_verbs_description *peer, const gpul_verbs_remote *to,
					 gpul_error *err);
void gpul_verbs_destroy_datagrams(gpul_verbs_path *p);

/* Start a flush.  *accepted is false if there is no room now. */
gpul_status gpul_verbs_flush(gpul_verbs_path *p, const gpul_rdma_op *op, bool *accepted, gpul_rdma_failure *why);

/* Send a datagram.  *accepted is false if there is no room now. */
gpul_status gpul_verbs_send_datagram(gpul_verbs_path *p, const gpul_rdma_op *op, bool *accepted, gpul_rdma_failure *why);
/* Convert the completion of a received datagram; returns false if the datagram is not from the peer. */
bool gpul_verbs_datagram_arrived(gpul_verbs_path *p, const struct ibv_wc *wc, gpul_rdma_event *out);
/* Repost the datagram buffers whose data the most recent poll has returned.  Returns 0 or errno. */
int gpul_verbs_recycle_datagrams(gpul_verbs_path *p);

/* ---- what verbs_post.c and poll.c share -------------------------------------------------------------------------------------- */

static inline uint32_t gpul_verbs_room(const gpul_verbs_queue *q)
{
	return q->depth - (q->posted - q->ended);
}

/* Count an operation that has been posted. */
static inline void gpul_verbs_count_post(gpul_verbs_queue *q, bool signaled)
{
	q->posted++;
	if (signaled)
		q->marks[q->marks_head++ % q->depth] = q->posted;
}

/* Count the completion of a signalled operation, which implies that all operations before it have completed. */
static inline void gpul_verbs_count_completion(gpul_verbs_queue *q)
{
	if (q->marks_tail != q->marks_head)
		q->ended = q->marks[q->marks_tail++ % q->depth];
}

#endif
#endif

/* net_proxy.h — the proxy: a thread that copies what this rank's kernels write to a channel to the other rank's machine, by RDMA.
 *
 * A channel is a ring of slots in R's memory, through which rank S sends to rank R.  Each use of a slot is a step: S fills the slot with
 * data and an entry, which describes the data.  R's inbox has the slots and the tail, the number of steps that S has written; S's outbox
 * has the head, the number of steps that R has read (device/channel_layout.h).
 *
 *     rank S                                                         rank R
 *     kernel ── entry, data, tail ──> mirror of R's inbox
 *                                     proxy ═ put of entry + data ══> inbox: slot
 *                                           ═ then the tail ════════> inbox: tail ── kernel polls it
 *     kernel polls it ── outbox: head <═════ put of only the head ═══ proxy of R <── head, in a mirror of S's outbox <── kernel
 *
 * If R's slots are in device memory, the tail first goes to another word (arrivals.h).
 *
 * A mirror is memory of the sending rank with the layout of the other rank's memory
 * (device/channel_layout.h).  A kernel uses it like memory that it shares with the other rank:
 * it writes data, then a fence, then the counter.  The proxy polls the counters of the mirrors, so the kernel need not send a request; a
 * CPU reads a cache line of its own memory in a few nanoseconds.  The slots of mirrors and inboxes are in host memory, or in device
 * memory that the NIC accesses; each rank chooses for itself.
 *
 * A kernel reuses a slot of the mirror only after the receiver has freed it; the receiver frees
 * only slots that have arrived, so by then the put of the slot has ended.  Writes of one
 * channel take effect in the order of its steps, because they use one queue pair.
 *
 * The receiver can limit the bytes in flight to it: then this proxy puts a slot only after the receiver's proxy has granted it (grants.h).
 *
 * A counter may arrive in parts, its low bytes first, as a stream of TCP does.  The intermediate value is less than the new one, so a
 * kernel that reads it just polls again. */
#ifndef GPULOAD_COMM_NET_NET_PROXY_H
#define GPULOAD_COMM_NET_NET_PROXY_H

#include "comm/device/channel_layout.h"
#include "comm/net/arrivals.h"
#include "comm/net/net_trace.h"
#include "core/thread/bell.h"
#include "rdma/rdma.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpul_comm_proxy gpul_comm_proxy; /* defined in net_proxy.c */

/* The channels between this rank and another rank that use one connection.  All puts of a channel use the same connection, so that
 * they keep their order; if there are several connections, the blocks are distributed among them in turn. */
typedef struct gpul_comm_proxy_route {
	int rank;                         /* the other rank */
	unsigned nic;                     /* index of this rank's NIC; its routes share one limit of incoming bytes in flight (grants.h) */
	unsigned first_block, block_step; /* the route carries blocks first_block, first_block + block_step, ...; 0: all blocks */
	const gpul_rdma_region *region;   /* registration of the slots of the mirrors with this connection's NIC */
	gpul_rdma_conn *conn;             /* after the start, only the proxy's thread uses it */
	const gpul_comm_inbox *inboxes;   /* local copies (mirrors) of the other rank's inboxes for this rank, n_blocks of them */
	const gpul_comm_outbox *outboxes; /* mirrors of the other rank's outboxes for this rank, n_blocks of them */
	uint64_t slots;                   /* registered address of the mirror of the inboxes' slots: n_blocks times slots_bytes */
	gpul_rdma_remote data;            /* the other rank's slots for this rank */
	/* the words of the other rank that count arrived steps, one every step_stride bytes: the tails of its inboxes, or, if its
	 * slots are in device memory, `announced` (arrivals.h) */
	gpul_rdma_remote steps;
	uint32_t step_stride;
	gpul_rdma_remote heads;         /* the heads in the other rank's outboxes, to which this rank's credits are written */
	const gpul_comm_outbox *freed;  /* this rank's outboxes for the other rank, n_blocks of them; only for the log */
	const gpul_comm_inbox *arrived; /* this rank's inboxes from the other rank, n_blocks of them; the proxy reads their tails */
	/* n_blocks words each, which the other rank writes: the steps for which it requests grants, and the steps that it has granted */
	const uint64_t *asks, *grants;
	gpul_rdma_remote to_asks, to_grants; /* the same words in the other rank's memory, which this rank writes */
	uint64_t free_bytes;                 /* bytes of slots that may be in flight to the rank without a grant; UINT64_MAX: no limit */
	/* arrivals of this rank's inboxes if their slots are in device memory; NULL: host memory.  Used only during
	 * gpul_comm_proxy_start() */
	const gpul_comm_arrivals_desc *arrivals;
} gpul_comm_proxy_route;

typedef struct gpul_comm_proxy_desc {
	const gpul_comm_proxy_route *routes; /* copied */
	unsigned n_routes, n_blocks;
	uint64_t slots_bytes, data_at; /* see gpul_comm_sizes */
	uint32_t slot_bytes;
	uint64_t window_bytes; /* limit of the bytes of slots in flight to each NIC of this rank; 0: no limit and no grants */
	uint64_t spin_ns;      /* time after the last event until the thread starts to sleep between its polls, at most 200 us each time */
	/* borrowed; rung before steps are posted.  If it has not rung for a while, and nothing is in flight, the thread polls only
	 * every 150 ms.  NULL: the thread always polls often */
	gpul_bell *bell;
	const gpul_driver *drv; /* driver of the slots in device memory; NULL: all slots are in host memory */
	CUcontext gpu;          /* context of drv; made current on the thread */
	/* Called once for each connection that fails, on the proxy's thread.  conn: first_block of the failed route. */
	void (*failed)(void *context, int rank, unsigned conn, const gpul_rdma_failure *why);
	void *context;
} gpul_comm_proxy_desc;

/** Start the thread.  The counters of the mirrors must be 0, or as a previous proxy has left them.
 *
 * @desc  copied, with its routes
 * @out   owned by the caller: gpul_comm_proxy_stop(); untouched on failure
 * Errors  GPUL_ENOMEM; GPUL_ESYS no thread */
gpul_status gpul_comm_proxy_start(const gpul_comm_proxy_desc *desc, gpul_comm_proxy **out, gpul_error *err);
/* Return the proxy's trace, which is off initially; valid as long as the proxy.  NULL if p is NULL. */
gpul_comm_net_trace *gpul_comm_proxy_trace(gpul_comm_proxy *p);
/* Query the puts to a rank that the fabric has not acknowledged: their number, and the time since the last one ended.  Returns
 * false if there are none, one has just ended, or p is NULL.  Any thread may call this, even in the callback `failed`. */
bool gpul_comm_proxy_unacknowledged(const gpul_comm_proxy *p, int rank, unsigned *n_puts, uint64_t *for_ns);
/* Stop reporting failures, because the ranks now close their connections.  The thread continues. p may be NULL. */
void gpul_comm_proxy_leave(gpul_comm_proxy *p);
/* Log the steps that each channel has posted, put and received (level debug), as soon as the thread is idle.  Called when a kernel
 * has waited too long. p may be NULL. */
void gpul_comm_proxy_report(gpul_comm_proxy *p);
/* End the thread; puts in flight are dropped. p may be NULL. */
void gpul_comm_proxy_stop(gpul_comm_proxy *p);

#ifdef __cplusplus
}
#endif

#endif

/* oob_watch.h — a thread that watches the sockets of all connections: it sends heartbeats (BEAT),
 * and reports immediately that a peer has ended.
 *
 *     add ──> exchange heartbeats ──┬── the socket breaks, FAILED, BYE, or the peer is silent ──> on_failure, called once
 *                                   ├── end: this side fails or closes, and sends FAILED or BYE
 *                                   └── remove: after this, no callback runs
 *
 * The fabric reports a dead peer only to an end that has operations in flight, and only after its retries.  The socket
 * reports the end of a process within milliseconds, and the lease detects the loss of a machine or of the network. */
#ifndef GPULOAD_RDMA_OOB_OOB_WATCH_H
#define GPULOAD_RDMA_OOB_OOB_WATCH_H

#include "rdma/oob/channel.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpul_rdma_watch gpul_rdma_watch;     /* opaque; the struct is defined in oob_watch.c */
typedef struct gpul_rdma_watched gpul_rdma_watched; /* a watched channel or descriptor */

/* Callbacks run on the watch's thread, one at a time.  They must return soon, because no heartbeat
 * is sent meanwhile, and must not call add or remove.  on_failure is called at most once for each
 * channel.  totals: those in the BYE of a peer that has closed the connection, not checked; NULL: no BYE has arrived. */
typedef void gpul_rdma_on_failure(void *context, const gpul_rdma_failure *why, const gpul_rdma_totals *totals);
typedef void gpul_rdma_on_readable(void *context);

/** Start the thread.
 *
 * @out  owned by the caller: gpul_rdma_watch_destroy(); untouched on failure
 * @err  explains a failure
 * Errors  GPUL_ENOMEM; GPUL_ESYS
 * Threads any thread may call; all signals are blocked in the new thread
 * Source  Linux epoll(7) */
gpul_status gpul_rdma_watch_create(gpul_rdma_watch **out, gpul_error *err);
void gpul_rdma_watch_destroy(gpul_rdma_watch *w); /* must be called after all entries are removed; NULL is fine */

/** Watch a connection; its lease begins.  From now on only the watch receives from the channel.
 *
 * @w              watch
 * @c              borrowed until gpul_rdma_watch_remove()
 * @limit_ns       how long the peer may be silent; at least 1 ms
 * @peer_limit_ns  the peer's limit: heartbeats are sent often enough for it
 * @on_failure     called when the connection fails, possibly before this function has returned
 * @context        its argument
 * @out            owned by the caller: gpul_rdma_watch_remove(); untouched on failure
 * @err            explains a failure
 * Errors  GPUL_ENOMEM; GPUL_ESYS
 * Threads any thread except the watch's */
gpul_status gpul_rdma_watch_add(gpul_rdma_watch *w, gpul_rdma_channel *c, uint64_t limit_ns, uint64_t peer_limit_ns,
				gpul_rdma_on_failure *on_failure, void *context, gpul_rdma_watched **out, gpul_error *err);

/** Watch a descriptor that is not a connection, such as the one of a NIC's asynchronous events.
 *
 * @w            watch
 * @fd           borrowed until gpul_rdma_watch_remove(); non-blocking
 * @on_readable  called while fd is readable; must read from it
 * @context      its argument
 * @out          owned by the caller: gpul_rdma_watch_remove(); untouched on failure
 * @err          explains a failure
 * Errors  GPUL_ENOMEM; GPUL_ESYS
 * Threads any thread except the watch's */
gpul_status gpul_rdma_watch_add_fd(gpul_rdma_watch *w, int fd, gpul_rdma_on_readable *on_readable, void *context, gpul_rdma_watched **out,
				   gpul_error *err);

/* End a connection: send FAILED with the reason, or (why NULL) BYE with the totals, shut the socket down, and call no callback from
 * now on; one may still be running.  Only the first call has an effect.  Never blocks.  Any thread may call, even in a callback. */
void gpul_rdma_watch_end(gpul_rdma_watched *e, const gpul_rdma_failure *why, gpul_rdma_totals totals);

/* Stop watching: when this returns, the callback is not running and will not be called again, so the caller must not hold a lock
 * that the callback takes.  Sends nothing: call gpul_rdma_watch_end() first, otherwise the peer reports that this process has
 * ended.  NULL is fine.  Any thread except the watch's may call. */
void gpul_rdma_watch_remove(gpul_rdma_watched *e);

#ifdef __cplusplus
}
#endif

#endif

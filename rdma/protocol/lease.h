/* lease.h — detects a dead peer.  Each end sends heartbeats ("beats") regularly, and considers the peer dead if it
 * has received nothing from it for longer than the limit.  This file reads no clock: the caller passes the time.
 *
 *     begin ──┬── beat_due: send a beat ──┐
 *             ├── received: any frame ────┤ again at the time of next()
 *             └── tick, expired? ─────────┘──> a failure record
 *
 * The fabric alone cannot detect a dead peer: an end that waits for a message has no operation in flight that could fail. */
#ifndef GPULOAD_RDMA_PROTOCOL_LEASE_H
#define GPULOAD_RDMA_PROTOCOL_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "rdma/protocol/protocol_failure.h"

#ifdef __cplusplus
extern "C" {
#endif

/* number of heartbeats within the limit, so that up to 7 may be late or lost */
enum { GPUL_RDMA_BEATS = 8 };

typedef struct gpul_rdma_lease {
	uint64_t limit_ns;    /* a peer that is silent for longer is considered dead */
	uint64_t interval_ns; /* time between two beats of this end */
	uint64_t last_sent_ns, last_heard_ns, last_tick_ns;
} gpul_rdma_lease;

/* Begin a lease: now_ns becomes the time of the last receipt and of the last heartbeat.  limit_ns: this end's limit; peer_limit_ns: the
 * peer's limit, for which this end's heartbeats must be frequent enough.  Both are at least 1000. */
gpul_rdma_lease gpul_rdma_lease_begin(uint64_t limit_ns, uint64_t peer_limit_ns, uint64_t now_ns);

/* Note that something was received from the peer. */
void gpul_rdma_lease_received(gpul_rdma_lease *l, uint64_t now_ns);

/* True if a heartbeat must be sent now; it then counts as sent. */
bool gpul_rdma_lease_beat_due(gpul_rdma_lease *l, uint64_t now_ns);
/* Like gpul_rdma_lease_beat_due(), but a heartbeat is already due after half of the interval.  A thread that is awake for another
 * reason calls this, so that heartbeats to all peers and from both ends are sent at the same time. */
bool gpul_rdma_lease_beat_early(gpul_rdma_lease *l, uint64_t now_ns);

/* Note that this process is running; call at least as often as heartbeats are due.  If the last call was long ago, this process was
 * stopped (Ctrl-Z, a debugger): that time does not count as silence of the peer, which may have been stopped, too. */
void gpul_rdma_lease_tick(gpul_rdma_lease *l, uint64_t now_ns);

/** Check whether the peer is considered dead.
 *
 * @l       lease
 * @now_ns  the time
 * @why     receives the failure; unchanged if the result is false
 * Threads  one thread per lease */
bool gpul_rdma_lease_expired(const gpul_rdma_lease *l, uint64_t now_ns, gpul_rdma_failure *why);

/* Return the time of the next heartbeat or of the expiry, whichever is earlier. */
uint64_t gpul_rdma_lease_next(const gpul_rdma_lease *l);

#ifdef __cplusplus
}
#endif

#endif

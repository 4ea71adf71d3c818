/* lease.h — detects a dead peer.  Each end sends heartbeats ("beats") regularly, and considers the peer dead if it
 * has received nothing from it for longer than the limit.  No clock inside: the caller supplies the time.
 *
 *     begin ──┬── beat_due: send a beat ──┐
 *             ├── received: any frame ────┤ again at next()
 *             └── tick, expired? ─────────┘──> a failure record
 *
 * The fabric alone cannot detect a dead peer: an end that waits for a message has no operation in flight that could
 * fail. */
#ifndef GPULOAD_RDMA_PROTOCOL_LEASE_H
#define GPULOAD_RDMA_PROTOCOL_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "rdma/protocol/protocol_failure.h"

#ifdef __cplusplus
extern "C" {
#endif

/* number of beats within the limit: 7 may be late or lost */
enum { GPUL_RDMA_BEATS = 8 };

typedef struct gpul_rdma_lease {
	uint64_t limit_ns;    /* a peer that is silent for longer is considered dead */
	uint64_t interval_ns; /* time between two beats of this end */
	uint64_t last_sent_ns, last_heard_ns, last_tick_ns;
} gpul_rdma_lease;

/* Begin: the times of the last receipt and of the last beat are set to the current time.  limit_ns:
 * this end's limit; peer_limit_ns: the peer's, which beats must meet.  Both are at least 1000. */
gpul_rdma_lease gpul_rdma_lease_begin(uint64_t limit_ns, uint64_t peer_limit_ns, uint64_t now_ns);

/* Report that something was received from the peer. */
void gpul_rdma_lease_received(gpul_rdma_lease *l, uint64_t now_ns);

/* True if a beat must be sent now, which then counts as sent. */
bool gpul_rdma_lease_beat_due(gpul_rdma_lease *l, uint64_t now_ns);
/* Like gpul_rdma_lease_beat_due(), but a beat is due after half of the interval already.  For a
 * thread that is awake, so that beats to several peers and beats of both ends are sent at the
 * same time. */
bool gpul_rdma_lease_beat_early(gpul_rdma_lease *l, uint64_t now_ns);

/* Call at least as often as beats are due.  If the last call was long ago, this process was stopped (Ctrl-Z, a debugger): that
 * time does not count as silence of the peer, which may have been stopped as well. */
void gpul_rdma_lease_tick(gpul_rdma_lease *l, uint64_t now_ns);

/** Check whether the peer is considered dead.
 *
 * @l       lease
 * @now_ns  the time
 * @why     receives the failure; unchanged if the result is false
 * Threads  one thread per lease */
bool gpul_rdma_lease_expired(const gpul_rdma_lease *l, uint64_t now_ns, gpul_rdma_failure *why);

/* Get the time of the next beat or of the expiry, whichever comes first. */
uint64_t gpul_rdma_lease_next(const gpul_rdma_lease *l);

#ifdef __cplusplus
}
#endif

#endif

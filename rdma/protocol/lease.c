/* lease.c — computes when heartbeats are due and when a lease expires. */
#include "rdma/protocol/lease.h"

#include <errno.h>

gpul_rdma_lease gpul_rdma_lease_begin(uint64_t limit_ns, uint64_t peer_limit_ns, uint64_t now_ns)
{
	return (gpul_rdma_lease){ .limit_ns = limit_ns,
				  .interval_ns = (limit_ns < peer_limit_ns ? limit_ns : peer_limit_ns) / GPUL_RDMA_BEATS,
				  .last_sent_ns = now_ns,
				  .last_heard_ns = now_ns,
				  .last_tick_ns = now_ns };
}

void gpul_rdma_lease_received(gpul_rdma_lease *l, uint64_t now_ns)
{
	if (now_ns > l->last_heard_ns)
		l->last_heard_ns = now_ns;
}

static bool take_beat(gpul_rdma_lease *l, uint64_t after_ns, uint64_t now_ns)
{
	if (now_ns < l->last_sent_ns + after_ns)
		return false;
	l->last_sent_ns = now_ns;
	return true;
}

bool gpul_rdma_lease_beat_due(gpul_rdma_lease *l, uint64_t now_ns)
{
	return take_beat(l, l->interval_ns, now_ns);
}

bool gpul_rdma_lease_beat_early(gpul_rdma_lease *l, uint64_t now_ns)
{
	return take_beat(l, l->interval_ns / 2, now_ns);
}

void gpul_rdma_lease_tick(gpul_rdma_lease *l, uint64_t now_ns)
{
	uint64_t gap_ns = now_ns > l->last_tick_ns ? now_ns - l->last_tick_ns : 0;

	/* Only a long gap between two ticks means that this process was stopped.  A shorter gap is the usual delay of a busy machine;
	 * subtracting it would delay the report of a dead peer beyond the limit. */
	if (gap_ns > l->limit_ns / 2)
		gpul_rdma_lease_received(l, l->last_heard_ns + gap_ns < now_ns ? l->last_heard_ns + gap_ns : now_ns);
	if (gap_ns)
		l->last_tick_ns = now_ns;
}

bool gpul_rdma_lease_expired(const gpul_rdma_lease *l, uint64_t now_ns, gpul_rdma_failure *why)
{
	if (now_ns <= l->last_heard_ns + l->limit_ns)
		return false;
	(void)gpul_rdma_fail(why, GPUL_ESYS, ETIMEDOUT, "lease",
			     "check that the peer's process is not stopped, that its machine is running, and that the network works",
			     "nothing was received from the peer for %.1f s (the limit is %.1f s)",
			     (double)(now_ns - l->last_heard_ns) / 1e9, (double)l->limit_ns / 1e9);
	return true;
}

uint64_t gpul_rdma_lease_next(const gpul_rdma_lease *l)
{
	uint64_t beat = l->last_sent_ns + l->interval_ns, end = l->last_heard_ns + l->limit_ns + 1;

	return beat < end ? beat : end;
}

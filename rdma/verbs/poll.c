/* poll.c — reads completions, and finds out why a path has failed.
 *
 * The first completion with an error is the failure of the path.  There is one exception: IBV_WC_WR_FLUSH_ERR means only that the
 * queue pair was already in error.  The cause comes later, in a completion of another queue, an asynchronous event, or a message of
 * the peer over the socket.  So a path with only flushed completions waits up to GPUL_VERBS_GRACE_NS before it reports them. */
#include "rdma/verbs/verbs_internal.h"

#if GPUL_HAVE_LIBIBVERBS

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"

/* Return the index of the data queue pair whose number is qp_num.  Successive completions often belong to one queue pair, or to two
 * neighbours, so the queue pair of the previous completion and the one after it are compared first.  Returns n_qps if no data queue
 * pair has this number: the completion is then of the loop-back or of the datagram queue pair. */
static unsigned find_queue(gpul_verbs_path *p, uint32_t qp_num)
{
	const unsigned next = p->last + 1 < p->n_qps ? p->last + 1 : 0;

	if (p->queues[p->last].qp->qp_num == qp_num)
		return p->last;
	if (p->queues[next].qp->qp_num == qp_num)
		return p->last = next;
	for (unsigned i = 0; i < p->n_qps; i++)
		if (p->queues[i].qp->qp_num == qp_num)
			return p->last = i;
	return p->n_qps;
}

static void record_error(gpul_verbs_path *p, const struct ibv_wc *wc)
{
	const bool flushed = wc->status == IBV_WC_WR_FLUSH_ERR, of_receive = wc->wr_id == GPUL_VERBS_RECV_ID;
	const unsigned queue = find_queue(p, wc->qp_num);
	gpul_rdma_failure f = { 0 };
	char where[48] = "";

	if (p->failure.status && (!p->only_flushed || flushed))
		return;
	if (queue < p->n_qps && p->n_qps > 1)
		snprintf(where, sizeof where, " on queue pair %u of %u", queue, p->n_qps);
	else if (queue == p->n_qps)
		snprintf(where, sizeof where, " on the %s queue pair",
			 p->loop.qp && wc->qp_num == p->loop.qp->qp_num ? "loop-back" : "datagram");
	gpul_rdma_fail(&f, GPUL_EVERBS, (int)wc->status, "completion", gpul_verbs_wc_advice(wc->status, of_receive), "%s: %s%s%s",
		       gpul_verbs_wc_name(wc->status), p->d->v->wc_status_str(wc->status), of_receive && !flushed ? " of a receive" : "",
		       where);
	f.vendor = wc->vendor_err;
	if (!p->failure.status)
		p->failed_at_ns = gpul_clock_ns();
	p->failure = f;
	p->only_flushed = flushed;
}

/* Convert a successful completion to an event; returns false if the protocol needs no event for it. */
static bool convert_completion(gpul_verbs_path *p, const struct ibv_wc *wc, gpul_rdma_event *out)
{
	unsigned queue;

	switch ((int)wc->opcode) {
	case IBV_WC_RECV_RDMA_WITH_IMM:
		*out = (gpul_rdma_event){
			.kind = GPUL_RDMA_EVENT_ARRIVED, .qp = find_queue(p, wc->qp_num), .imm = ntohl(wc->imm_data), .bytes = wc->byte_len
		};
		return true;
	case IBV_WC_RDMA_WRITE:
		queue = find_queue(p, wc->qp_num);
		if (queue == p->n_qps)
			return false;
		gpul_verbs_count_completion(&p->queues[queue]);
		*out = (gpul_rdma_event){ .kind = GPUL_RDMA_EVENT_DONE, .qp = queue, .id = wc->wr_id };
		return true;
	case IBV_WC_RDMA_READ:
	case IBV_WC_COMP_SWAP:
		gpul_verbs_count_completion(&p->loop);
		*out = (gpul_rdma_event){ .kind = GPUL_RDMA_EVENT_DONE, .id = wc->wr_id };
		return true;
	case IBV_WC_SEND:
		gpul_verbs_count_completion(&p->datagrams.queue);
		return false;
	case IBV_WC_RECV:
		return gpul_verbs_datagram_arrived(p, wc, out);
	default:
		return false;
	}
}

/* Read up to max completions.  Returns the number of events, or -1 with errno set. */
static int read_completions(gpul_verbs_path *p, gpul_rdma_event *events, unsigned max, bool *any)
{
	struct ibv_wc completions[GPUL_VERBS_BATCH];
	const int n = p->d->v->poll_cq(p->cq, (int)(max < GPUL_VERBS_BATCH ? max : GPUL_VERBS_BATCH), completions);
	int n_events = 0;

	*any = n > 0;
	for (int i = 0; i < n; i++) {
		if (completions[i].status != IBV_WC_SUCCESS)
			record_error(p, &completions[i]);
		else if (!p->failure.status)
			n_events += convert_completion(p, &completions[i], &events[n_events]);
	}
	return n < 0 ? -1 : n_events;
}

/* Report the failure, unless only flushed completions have arrived, and their cause may still arrive. */
static gpul_status report_failure(gpul_verbs_path *p, unsigned *n_events, gpul_rdma_failure *why)
{
	gpul_rdma_event ignored[GPUL_VERBS_BATCH];

	for (bool any = true; p->only_flushed && any;)
		if (read_completions(p, ignored, GPUL_VERBS_BATCH, &any) < 0)
			break;
	if (p->only_flushed && atomic_load(&p->has_async)) {
		pthread_mutex_lock(&p->async_lock);
		p->failure = p->async;
		p->only_flushed = false;
		pthread_mutex_unlock(&p->async_lock);
	}
	if (p->only_flushed && gpul_clock_ns() - p->failed_at_ns < GPUL_VERBS_GRACE_NS) {
		*n_events = 0;
		return GPUL_OK;
	}
	if (!why->status)
		*why = p->failure;
	return why->status;
}

/* Detect failures of queue pairs and of the port that cause no completion.  They are rare, so this is called only if nothing has
 * completed. */
static void look_for_silent_failure(gpul_verbs_path *p)
{
	const uint64_t down_since = atomic_load_explicit(&p->d->down_since_ns, memory_order_relaxed);

	if (atomic_load_explicit(&p->has_async, memory_order_relaxed)) {
		pthread_mutex_lock(&p->async_lock);
		p->failure = p->async;
		pthread_mutex_unlock(&p->async_lock);
	} else if (down_since && gpul_clock_ns() - down_since > p->d->info.notice_ns) {
		gpul_rdma_fail(&p->failure, GPUL_EVERBS, IBV_EVENT_PORT_ERR, "asynchronous event",
			       "check the cable and the network interface", "IBV_EVENT_PORT_ERR: %s is down", p->d->info.name);
	}
}

static gpul_status poll_locked(gpul_verbs_path *p, gpul_rdma_event *events, unsigned max, unsigned *n_events, gpul_rdma_failure *why)
{
	unsigned n = 0;
	bool any = false;
	int r;

	if (p->datagrams.n_used && (r = gpul_verbs_recycle_datagrams(p)) != 0)
		return gpul_rdma_fail(why, GPUL_EVERBS, r, "ibv_post_recv", NULL, "datagrams: %s", strerror(r));
	for (; n < max && p->flushed_tail != p->flushed_head; n++)
		events[n] = (gpul_rdma_event){ .kind = GPUL_RDMA_EVENT_DONE, .id = p->flushed[p->flushed_tail++ % GPUL_VERBS_FLUSHES] };
	if (!p->failure.status && n < max) {
		r = read_completions(p, events + n, max - n, &any);
		if (r < 0)
			return gpul_rdma_fail(why, GPUL_EVERBS, errno, "ibv_poll_cq", NULL, "%s", strerror(errno));
		n += (unsigned)r;
		if (!any && !n)
			look_for_silent_failure(p);
	}
	if (p->failure.status && !n)
		return report_failure(p, n_events, why);
	*n_events = n;
	return GPUL_OK;
}

gpul_status gpul_verbs_poll(void *path, gpul_rdma_event *events, unsigned max, unsigned *n_events, gpul_rdma_failure *why)
{
	gpul_verbs_path *p = path;
	gpul_status st;

	if (atomic_load_explicit(&p->broken, memory_order_relaxed))
		return gpul_rdma_fail(why, GPUL_EVERBS, 0, "ibv_poll_cq", NULL,
				      "this side has already closed the connection after a failure");
	pthread_mutex_lock(&p->lock);
	st = poll_locked(p, events, max, n_events, why);
	pthread_mutex_unlock(&p->lock);
	return st;
}

#endif

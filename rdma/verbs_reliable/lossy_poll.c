/* lossy_poll.c — completions: of sends, whose data may change now, and of datagrams and writes that have arrived. */
#include "rdma/verbs_reliable/lossy_internal.h"

#if GPUL_HAVE_LIBIBVERBS

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "core/clock.h"

enum { ROUNDS = 4 };

/* Buffers of one queue pair that have been read, to be posted again. */
struct used {
	uint64_t ids[LOSSY_BATCH];
	unsigned n;
};

static void repost(struct lossy_path *p, struct used *u)
{
	const int r = u->n && !p->queues[(u->ids[0] >> 32) & 0xffff].stopped ? gpul_lossy_post_recvs(p, u->ids, u->n) : 0;

	u->n = 0;
	if (r && !p->failed.status)
		(void)gpul_rdma_fail(&p->failed, GPUL_EVERBS, r, "ibv_post_recv", NULL, "datagrams: %s", strerror(r));
}

/* A completion with an error ends the connection, unless its queue pair was stopped on purpose. */
static void record_error(struct lossy_path *p, const struct ibv_wc *wc, bool of_receive)
{
	if (!p->failed.status)
		(void)gpul_rdma_fail(&p->failed, GPUL_EVERBS, (int)wc->status, "completion", gpul_verbs_wc_advice(wc->status, of_receive),
				     "%s: %s%s", gpul_verbs_wc_name(wc->status), p->verbs.d->v->wc_status_str(wc->status),
				     of_receive ? " of a receive" : "");
	p->failed.vendor = wc->vendor_err;
}

static void send_completed(struct lossy_path *p, struct lossy_queue *q)
{
	const uint64_t held = q->held[q->q.ended % LOSSY_DEPTH];

	q->q.ended++;
	if (held != LOSSY_NONE)
		gpul_rel_ops_release(&p->ops, held);
}

static void receive(struct lossy_path *p, const struct ibv_wc *wc, unsigned queue, uint64_t now_ns)
{
	const uint32_t skip = p->device->ud ? GPUL_VERBS_GRH_BYTES : 0;
	const unsigned char *at = lossy_buffer(p, queue, (uint32_t)wc->wr_id) + skip;
	gpul_rel_chunk c;

	if (queue >= p->n_paths || p->failed.status)
		return;
	if (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM)
		(void)gpul_rel_receive_write(p->rel, now_ns, queue, ntohl(wc->imm_data), &p->failed);
	else if (wc->byte_len >= skip && gpul_rel_receive(p->rel, now_ns, at, wc->byte_len - skip, &c, &p->failed))
		(void)gpul_rel_memory_write(&p->device->memory, &c, at, &p->failed);
}

static void process(struct lossy_path *p, const struct ibv_wc *wc, struct used *u, uint64_t now_ns)
{
	const bool of_receive = wc->wr_id & LOSSY_RECV_FLAG;
	const unsigned queue = (unsigned)(wc->wr_id >> 32) & 0xffff;

	if (p->verbs.loop.qp && wc->qp_num == p->verbs.loop.qp->qp_num) {
		gpul_verbs_count_completion(&p->verbs.loop);
		if (wc->status != IBV_WC_SUCCESS)
			record_error(p, wc, false);
		else
			(void)gpul_rel_ops_add(&p->ops, &(gpul_rdma_op){ .kind = GPUL_RDMA_OP_FLUSH, .id = wc->wr_id });
		return;
	}
	if (!of_receive && !p->queues[queue].stopped) /* else close_paths() has done it */
		send_completed(p, &p->queues[queue]);
	if (wc->status != IBV_WC_SUCCESS) {
		if (!p->queues[queue].stopped)
			record_error(p, wc, of_receive);
		return;
	}
	if (!of_receive)
		return;
	receive(p, wc, queue, now_ns);
	if (u->n == LOSSY_BATCH || (u->n && (u->ids[0] ^ wc->wr_id) >> 32))
		repost(p, u);
	u->ids[u->n++] = wc->wr_id;
}

/* Returns true if more completions may wait. */
static bool read_completions(struct lossy_path *p)
{
	struct ibv_wc completions[LOSSY_BATCH];
	const int n = p->verbs.d->v->poll_cq(p->verbs.cq, LOSSY_BATCH, completions);
	const uint64_t now_ns = n ? gpul_clock_ns() : 0;
	struct used used = { .n = 0 };

	if (n < 0 && !p->failed.status)
		(void)gpul_rdma_fail(&p->failed, GPUL_EVERBS, errno, "ibv_poll_cq", NULL, "%s", strerror(errno));
	if (n <= 0)
		return false;
	pthread_rwlock_rdlock(&p->device->memory.lock);
	for (int i = 0; i < n; i++)
		process(p, &completions[i], &used, now_ns);
	pthread_rwlock_unlock(&p->device->memory.lock);
	repost(p, &used);
	return n == LOSSY_BATCH;
}

/* Failures of queue pairs, and of the port, that cause no completion. */
static void read_async(struct lossy_path *p)
{
	if (!atomic_load_explicit(&p->verbs.has_async, memory_order_relaxed) || p->failed.status)
		return;
	pthread_mutex_lock(&p->verbs.async_lock);
	p->failed = p->verbs.async;
	pthread_mutex_unlock(&p->verbs.async_lock);
}

static void close_paths(struct lossy_path *p, uint64_t now_ns)
{
	unsigned path;

	while (gpul_rel_path_to_close(p->rel, &path)) {
		gpul_verbs_queue_stop(&p->verbs, p->queues[path].q.qp);
		p->queues[path].stopped = true;
		while (p->queues[path].q.ended != p->queues[path].q.posted) /* a queue pair in state RESET completes nothing any more */
			send_completed(p, &p->queues[path]);
		gpul_rel_path_closed(p->rel, path, now_ns);
		gpul_log(GPUL_LOG_NOTICE, "rdma", "reliable-verbs: path %u of %u is closed, because nothing arrives on it", path,
			 p->n_paths);
	}
}

/* A failure is reported after the events before it. */
gpul_status gpul_lossy_poll(void *path, gpul_rdma_event *events, unsigned max, unsigned *n_events, gpul_rdma_failure *why)
{
	struct lossy_path *p = path;
	unsigned n = 0;

	if (atomic_load_explicit(&p->verbs.broken, memory_order_relaxed))
		return gpul_rdma_fail(why, GPUL_EVERBS, 0, "ibv_poll_cq", NULL,
				      "this side has already closed the connection after a failure");
	for (unsigned i = 0; i < ROUNDS && !p->failed.status && read_completions(p); i++)
		;
	read_async(p);
	for (; n < max && p->verbs.flushed_tail != p->verbs.flushed_head; n++)
		events[n] = (gpul_rdma_event){ .kind = GPUL_RDMA_EVENT_DONE,
					       .id = p->verbs.flushed[p->verbs.flushed_tail++ % GPUL_VERBS_FLUSHES] };
	gpul_rel_ops_events(&p->ops, p->rel, events, max, &n);
	if (!p->failed.status && gpul_rel_tick(p->rel, gpul_clock_ns(), &p->failed)) {
		close_paths(p, gpul_clock_ns());
		gpul_rel_ops_start(&p->ops, p->rel);
		gpul_lossy_send(p);
	}
	*n_events = n;
	if (!p->failed.status || n)
		return GPUL_OK;
	if (!why->status)
		*why = p->failed;
	return p->failed.status;
}

#endif

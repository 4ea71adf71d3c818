/* conn.c — makes progress on a connection: passes operations and events between the link and the backend.
 *
 *     progress:  poll ──> events ──> link ──> operations ──> post        copies of GPU memory go to the copy engine
 *                every 8th turn: read the clock, for the deadlines
 *
 * A failure can come from the link (a deadline, a wrong message), from the backend (an error completion), or from the
 * watching thread (the socket).  The first failure breaks the path, and is reported to the peer.
 *
 *     sender                                    receiver
 *     send ─────────── data path ─────────────> its receive ends: it closes
 *       │ <┄┄┄┄ acknowledgement, maybe lost ┄┄┄ │
 *     the send has ended, too <── BYE, totals ──┘
 *
 * The socket may report the end of the peer before the data path has delivered what the peer has sent, so the data path is read first.
 * Acknowledgements of messages that the peer has received may be lost when it closes, so the totals in its BYE end these sends. */
#include "rdma/rdma_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/log.h"

/* After the end of the peer, the data path is read until no event has arrived for DRAIN_NS and in DRAIN_TURNS turns, because over TCP a
 * message arrives in many parts.  The turns are counted because this thread may have waited for a CPU for longer than DRAIN_NS. */
static const uint64_t DRAIN_NS = 5000000;
enum { DRAIN_TURNS = 16 };
/* Used instead of DRAIN_NS while messages that the peer sent before it closed are missing: TCP repeats lost packets only after 0.2 s. */
static const uint64_t DRAIN_SENT_NS = 1000000000;

/* ---- failure ----------------------------------------------------------------------------------------- */

/* Stop all transfers, and send the reason to the peer.  Called on the connection's thread. */
static gpul_status break_conn(gpul_rdma_conn *c, gpul_error *err)
{
	gpul_rdma_failure why;
	gpul_rdma_totals peer;

	gpul_rdma_conn_failed(c, &why);
	if (!c->broken) {
		c->broken = true;
		if (gpul_rdma_conn_peer_closed(c, &peer))
			gpul_rdma_link_peer_closed(c->link, &peer, &c->ops[c->ops_done], c->n_ops - c->ops_done);
		gpul_rdma_link_fail(c->link, &why);
		gpul_rdma_watch_end(c->watched, &why, (gpul_rdma_totals){ 0 }); /* done before breaking the path, so that the peer reads the
							 * cause first */
		c->r->backend->break_path(c->path);
		if (c->copies)
			gpul_rdma_copies_drain(c->copies);
		gpul_log(GPUL_LOG_INFO, "rdma", "the connection to %s has failed: %s: %s", why.peer, why.call, why.what);
	}
	return gpul_rdma_failure_error(&why, err);
}

/* ---- progress --------------------------------------------------------------------------------------------- */

static gpul_status read_events(gpul_rdma_conn *c, unsigned *n_events, gpul_rdma_failure *why)
{
	gpul_rdma_event events[EVENTS_PER_POLL];
	uint64_t copied[EVENTS_PER_POLL];
	unsigned n = 0;
	gpul_status st = c->r->backend->poll(c->path, events, EVENTS_PER_POLL, &n, why);

	for (unsigned i = 0; i < n; i++)
		gpul_rdma_link_event(c->link, &events[i]);
	*n_events = n;
	if (st || !c->copies || !gpul_rdma_copies_busy(c->copies))
		return st;
	st = gpul_rdma_copies_poll(c->copies, copied, EVENTS_PER_POLL, &n, why);
	for (unsigned i = 0; !st && i < n; i++)
		gpul_rdma_link_event(c->link, &(gpul_rdma_event){ .kind = GPUL_RDMA_EVENT_DONE, .id = copied[i] });
	*n_events += n;
	return st;
}

static bool is_copy(const gpul_rdma_op *op)
{
	return op->kind == GPUL_RDMA_OP_COPY_OUT || op->kind == GPUL_RDMA_OP_COPY_IN;
}

/* Execute the pending operations in order; those for which the backend or the copy engine has no room remain for the next call. */
static gpul_status execute(gpul_rdma_conn *c, gpul_rdma_failure *why)
{
	while (c->ops_done < c->n_ops) {
		const gpul_rdma_op *first = &c->ops[c->ops_done];
		const bool copy = is_copy(first);
		unsigned n = 1, posted = 0;
		gpul_status st;

		while (c->ops_done + n < c->n_ops && is_copy(&first[n]) == copy)
			n++;
		st = copy ? gpul_rdma_copies_post(c->copies, first, n, &posted, why) : c->r->backend->post(c->path, first, n, &posted, why);
		c->ops_done += posted;
		if (st || posted < n)
			return st;
	}
	return GPUL_OK;
}

/* Post the operations that the link has generated. */
static gpul_status post_all(gpul_rdma_conn *c, gpul_rdma_failure *why)
{
	gpul_status st = GPUL_OK;

	for (bool more = true; !st && more;) {
		st = execute(c, why);
		more = false;
		if (!st && c->ops_done == c->n_ops) {
			c->n_ops = gpul_rdma_link_take(c->link, c->ops, OPS_PER_TURN);
			c->ops_done = 0;
			more = c->n_ops > 0;
		}
	}
	return st;
}

/* Make progress once.  New operations are posted before the poll, because the poll may take long: it may make a system call. */
static gpul_status turn(gpul_rdma_conn *c, unsigned *n_events, gpul_rdma_failure *why)
{
	gpul_status st = post_all(c, why);

	st = st ? st : read_events(c, n_events, why);
	if (!st && c->turns-- == 0) {
		c->turns = TURNS_PER_CLOCK;
		gpul_rdma_link_tick(c->link, gpul_clock_ns());
	}
	return st ? st : post_all(c, why);
}

/* Return how long to wait for the next event of a peer that has ended. */
static uint64_t drain_limit(gpul_rdma_conn *c)
{
	gpul_rdma_totals peer;

	return gpul_rdma_conn_peer_closed(c, &peer) && gpul_rdma_link_lacks(c->link, &peer) ? DRAIN_SENT_NS : DRAIN_NS;
}

/* Called when the peer has ended: read the data that it sent before. */
static void drain_path(gpul_rdma_conn *c)
{
	gpul_rdma_failure ignored = { 0 };
	uint64_t last_ns = gpul_clock_ns(), limit_ns = drain_limit(c);
	unsigned n_events = 0;

	for (unsigned idle_turns = 0; idle_turns < DRAIN_TURNS || gpul_clock_ns() - last_ns < limit_ns; idle_turns++) {
		if (turn(c, &n_events, &ignored))
			return;
		if (!n_events)
			continue;
		idle_turns = 0;
		last_ns = gpul_clock_ns();
		limit_ns = drain_limit(c);
	}
}

gpul_status gpul_rdma_progress(gpul_rdma_conn *c, bool *busy, gpul_error *err)
{
	gpul_rdma_failure why = { 0 };
	unsigned n_events;

	if (atomic_load_explicit(&c->failing, memory_order_acquire)) {
		if (!c->broken)
			drain_path(c);
		return break_conn(c, err);
	}
	if (turn(c, &n_events, &why))
		gpul_rdma_conn_fail(c, &why, NULL);
	else if (gpul_rdma_link_failed(c->link)->status)
		gpul_rdma_conn_fail(c, gpul_rdma_link_failed(c->link), NULL);
	else {
		if (busy)
			*busy = c->n_ops > c->ops_done || gpul_rdma_link_busy(c->link);
		return GPUL_OK;
	}
	return break_conn(c, err);
}

/* ---- close ----------------------------------------------------------------------------------------------------- */

void gpul_rdma_conn_about(const gpul_rdma_conn *c, gpul_rdma_conn_info *out)
{
	*out = c->info;
}

unsigned gpul_rdma_conn_stats(const gpul_rdma_conn *c, gpul_rel_counters *out, gpul_rel_path_info *paths, unsigned max)
{
	return c->r->backend->stats ? c->r->backend->stats(c->path, out, paths, max) : 0;
}

bool gpul_rdma_conn_record(gpul_rdma_conn *c, gpul_rel_trace *trace)
{
	if (c->r->backend->record)
		c->r->backend->record(c->path, trace);
	return c->r->backend->record;
}

void gpul_rdma_conn_close(gpul_rdma_conn *c)
{
	const gpul_rdma_backend *b;

	if (!c)
		return;
	b = c->r->backend;
	if (c->watched) {
		gpul_rdma_conn_forget(c);
		gpul_rdma_watch_end(c->watched, NULL, gpul_rdma_link_totals(c->link));
		gpul_rdma_watch_remove(c->watched);
	}
	if (c->path) {
		b->break_path(c->path);
		if (c->copies)
			gpul_rdma_copies_drain(c->copies);
		b->destroy_path(c->path);
	}
	gpul_rdma_link_destroy(c->link);
	for (size_t i = sizeof c->tokens / sizeof *c->tokens; i-- > 0;)
		if (c->tokens[i])
			b->dereg(c->r->device, c->tokens[i]);
	gpul_rdma_copies_destroy(c->copies);
	gpul_rdma_channel_close(c->channel);
	free(c->control);
	if (c->failed_fd >= 0)
		close(c->failed_fd);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

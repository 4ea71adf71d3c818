/* protocol_link.c — creates a link, generates its operations in order, and handles events, deadlines and the link's failure. */
#include "rdma/protocol/protocol_link_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- create ----------------------------------------------------------------------------------- */

static gpul_status check_desc(const gpul_rdma_link_desc *d, gpul_error *err)
{
	if (d->n_qps < 1 || d->n_qps > GPUL_RDMA_MAX_QPS)
		return gpul_fail(err, GPUL_EINVAL, 0, "the number of queue pairs is %u: expected 1 to %d", d->n_qps, GPUL_RDMA_MAX_QPS);
	if (d->depth < 64 || d->depth > 4096 || (d->depth & (d->depth - 1)))
		return gpul_fail(err, GPUL_EINVAL, 0, "the depth of a connection is %u operations: expected a power of two from 64 to 4096",
				 d->depth);
	if (d->segment_bytes < 4096 || d->segment_bytes > GPUL_RDMA_MAX_SEGMENT || d->segment_bytes % GPUL_RDMA_STRIPE_ALIGN)
		return gpul_fail(err, GPUL_EINVAL, 0, "the segment size is %u bytes: expected a multiple of %d from 4096 to %d",
				 d->segment_bytes, GPUL_RDMA_STRIPE_ALIGN, GPUL_RDMA_MAX_SEGMENT);
	if (d->n_qps > 1 && d->striping == GPUL_RDMA_SPLIT && d->stripe_bytes < GPUL_RDMA_STRIPE_ALIGN)
		return gpul_fail(err, GPUL_EINVAL, 0, "the stripe size is %u bytes: expected at least %d", d->stripe_bytes,
				 GPUL_RDMA_STRIPE_ALIGN);
	if (d->n_stages && (!d->stages || d->n_stages < GPUL_RDMA_MAX_PARTS || d->n_stages > MAX_STAGES))
		return gpul_fail(err, GPUL_EINVAL, 0, "the number of staging buffers is %u: expected %d to %d", d->n_stages,
				 GPUL_RDMA_MAX_PARTS, MAX_STAGES);
	if (!d->control || d->peer_slots.bytes < sizeof d->control->slots)
		return gpul_fail(err, GPUL_EINVAL, 0, "the peer's ring buffer for receive slots has %llu bytes: expected %zu",
				 (unsigned long long)d->peer_slots.bytes, sizeof d->control->slots);
	if (d->first_generation > LAST_GENERATION)
		return gpul_fail(err, GPUL_EINVAL, 0, "the generation number of request handles is 0x%x: expected at most 0x%x",
				 d->first_generation, LAST_GENERATION);
	return GPUL_OK;
}

static void begin_stages(struct stages *s, unsigned n, uint32_t first)
{
	s->copies_head = s->copies_tail = first;
	s->n_free = n;
	for (unsigned i = 0; i < n; i++)
		s->free[i] = (uint8_t)i;
}

static void begin_requests(gpul_rdma_link *l)
{
	for (unsigned i = 0; i < GPUL_RDMA_REQUESTS; i++) {
		l->requests[i].index = (uint16_t)i;
		l->requests[i].generation = l->desc.first_generation ? l->desc.first_generation : 1;
		/* The first request gets index first_counter. */
		l->free_requests[l->n_free_requests++] = (uint16_t)((l->desc.first_counter - 1 - i) & REQUEST_MASK);
	}
}

/* Set all counters to first_counter, and the sequence number of each slot to that of the previous lap, so that no slot of the first
 * lap seems to have arrived. */
static void begin_counters(gpul_rdma_link *l)
{
	const uint32_t first = l->desc.first_counter;

	l->sends_head = l->sends_tail = l->next_message = l->ready_head = l->ready_tail = first;
	l->parts_head = l->parts_grant = l->parts_tail = first;
	l->grants_head = l->grants_written = l->grants_known = l->grants_tail = l->highest_arrived = first;
	l->puts_head = l->puts_tail = l->signals_head = l->signals_tail = l->flushes_head = l->flushes_tail = first;
	l->next_slot = first + 1;
	for (uint32_t i = 0; i < GPUL_RDMA_SLOTS; i++)
		l->desc.control->slots[(first + i) & SLOT_MASK].sequence = l->next_slot + i - GPUL_RDMA_SLOTS;
}

gpul_status gpul_rdma_link_create(const gpul_rdma_link_desc *desc, gpul_rdma_link **out, gpul_error *err)
{
	const gpul_status st = check_desc(desc, err);
	struct flight *flights = NULL;
	gpul_rdma_link *l = NULL;

	if (st)
		return st;
	l = calloc(1, sizeof *l);
	flights = calloc((size_t)desc->n_qps * desc->depth, sizeof *flights);
	if (!l || !flights)
		goto free_all;
	l->desc = *desc;
	l->depth_mask = desc->depth - 1;
	l->next_deadline_ns = UINT64_MAX;
	l->repeat_ns = desc->repeat_ns;
	for (unsigned i = 0; i < desc->n_qps; i++)
		l->queues[i] = (struct queue){
			.posted = desc->first_counter,
			.retired = desc->first_counter,
			.delivery_until = desc->first_counter,
			.last_op = -1,
			.flights = flights + (size_t)i * desc->depth,
		};
	begin_stages(&l->out, desc->n_stages, desc->first_counter);
	begin_stages(&l->in, desc->n_stages, desc->first_counter);
	begin_requests(l);
	begin_counters(l);
	*out = l;
	return GPUL_OK;
free_all:
	free(flights);
	free(l);
	return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the state of a connection");
}

void gpul_rdma_link_destroy(gpul_rdma_link *l)
{
	if (!l)
		return;
	free(l->queues[0].flights);
	free(l);
}

/* ---- operations ------------------------------------------------------------------------------------- */

unsigned gpul_rdma_link_take(gpul_rdma_link *l, gpul_rdma_op *ops, unsigned max)
{
	struct take t = { .ops = ops, .max = max };

	if (l->failure.status)
		return 0;
	gpul_rdma_take_receives(l, &t);
	gpul_rdma_take_grants(l, &t);
	gpul_rdma_take_puts(l, &t);
	gpul_rdma_take_sends(l, &t);
	for (unsigned i = 0; i < l->desc.n_qps; i++) {
		struct queue *q = &l->queues[i];

		if (q->wants_signal && q->last_op >= 0)
			make_signaled(q, &ops[q->last_op]);
		q->last_op = -1;
	}
	return t.n;
}

/* ---- events ------------------------------------------------------------------------------------------- */

static void retire_one(gpul_rdma_link *l, struct queue *q)
{
	const struct flight f = q->flights[q->retired++ & l->depth_mask];

	if (f.request == NO_REQUEST)
		return;
	if (f.stage != NO_STAGE)
		gpul_rdma_stage_sent(l, f.stage);
	else
		gpul_rdma_request_retired(l, &l->requests[f.request]);
}

/* Complete the operation at a position and all earlier ones of its queue pair; for a backend that completes operations in order. */
static bool complete_in_order(gpul_rdma_link *l, struct queue *q, uint32_t position)
{
	if (position - q->retired >= q->posted - q->retired)
		return false;
	while (q->retired != position + 1)
		retire_one(l, q);
	return true;
}

static bool complete_any(gpul_rdma_link *l, struct queue *q, uint32_t position)
{
	struct flight *f = &q->flights[position & l->depth_mask];

	if (position - q->retired >= q->posted - q->retired || f->done)
		return false;
	f->done = true;
	if (f->request != NO_REQUEST && f->stage != NO_STAGE)
		gpul_rdma_stage_sent(l, f->stage);
	else if (f->request != NO_REQUEST)
		gpul_rdma_request_retired(l, &l->requests[f->request]);
	while (q->retired != q->posted && q->flights[q->retired & l->depth_mask].done)
		q->retired++;
	return true;
}

/* End the copy of a staging buffer; returns false if no copy of it is in flight. */
static bool end_copy(struct stages *s, uint32_t stage)
{
	if (stage >= MAX_STAGES || !(s->copying >> stage & 1))
		return false;
	s->copying &= ~(1ull << stage);
	return true;
}

static bool complete(gpul_rdma_link *l, uint64_t id)
{
	const unsigned qp = (unsigned)(id >> 32 & 0xffff);
	const uint32_t low = (uint32_t)id;
	struct request *flush;

	switch (id >> 48) {
	case ID_QUEUE:
		if (qp >= l->desc.n_qps)
			return false;
		return l->desc.completes_in_order ? complete_in_order(l, &l->queues[qp], low) : complete_any(l, &l->queues[qp], low);
	case ID_FLUSH:
		flush = gpul_rdma_request_find(l, low);
		if (!flush || flush->kind != FLUSH || flush->ended || !flush->emitted)
			return false;
		flush->ended = true;
		l->flushes_in_flight--;
		return true;
	case ID_COPY_OUT:
		if (!end_copy(&l->out, low))
			return false;
		gpul_rdma_copied_out(l, low);
		return true;
	case ID_COPY_IN:
		if (!end_copy(&l->in, low))
			return false;
		gpul_rdma_copied_in(l, low);
		return true;
	default:
		return false;
	}
}

void gpul_rdma_link_event(gpul_rdma_link *l, const gpul_rdma_event *event)
{
	if (l->failure.status)
		return;
	switch (event->kind) {
	case GPUL_RDMA_EVENT_ARRIVED:
		gpul_rdma_arrived(l, event->qp, event->imm);
		return;
	case GPUL_RDMA_EVENT_CONTROL:
		gpul_rdma_slots_arrived(l, event->data, event->bytes);
		return;
	default:
		if (event->kind != GPUL_RDMA_EVENT_DONE || !complete(l, event->id))
			gpul_rdma_fail(&l->failure, GPUL_EFORMAT, 0, "completion", NULL,
				       "the NIC reported a completion of operation 0x%llx, which is not in flight",
				       (unsigned long long)event->id);
	}
}

/* ---- deadlines and failures --------------------------------------------------------------------------- */

static const char *waits_for(const gpul_rdma_link *l, const struct request *r, const char **advice)
{
	switch (r->kind) {
	case SEND:
		if (!r->emitted) {
			*advice = "check that the peer posts its receives, and calls test or progress";
			return "the peer has not posted a receive for a send";
		}
		*advice = "check the link, and the counters of the NIC";
		return "a send has not been acknowledged by the network";
	case RECV:
		*advice = "check that the peer sends, and calls test or progress";
		return l->open_grants ? "no message has arrived for a posted receive"
				      : "the message for a posted receive has arrived only in part";
	case PUT:
		*advice = "check the link, and the counters of the NIC";
		return "an RDMA write (put) has not been acknowledged by the network";
	default:
		*advice = "check the GPU, and the loop-back queue pair of the flush";
		return "a flush of GPU memory has not completed";
	}
}

static void expire(gpul_rdma_link *l, const struct request *r)
{
	const char *advice;
	const char *what = waits_for(l, r, &advice);

	gpul_rdma_fail(&l->failure, GPUL_ESYS, ETIMEDOUT, "deadline", advice, "%s (tag %u, %llu bytes)", what,
		       r->kind == PUT || r->kind == FLUSH ? 0 : r->tag, (unsigned long long)r->span.bytes);
	l->failure.after_ns = l->now_ns - r->begun_ns;
}

void gpul_rdma_link_tick(gpul_rdma_link *l, uint64_t now_ns)
{
	uint64_t next = UINT64_MAX;

	l->now_ns = now_ns;
	if (l->failure.status)
		return;
	gpul_rdma_repeat_grants(l);
	if (now_ns < l->next_deadline_ns)
		return;
	for (unsigned i = 0; i < GPUL_RDMA_REQUESTS; i++) {
		const struct request *r = &l->requests[i];

		if (r->kind == FREE || r->ended || !r->deadline_ns)
			continue;
		if (r->deadline_ns <= now_ns) {
			expire(l, r);
			return;
		}
		if (r->deadline_ns < next)
			next = r->deadline_ns;
	}
	l->next_deadline_ns = next;
}

void gpul_rdma_link_fail(gpul_rdma_link *l, const gpul_rdma_failure *why)
{
	if (!l->failure.status)
		l->failure = *why;
}

const gpul_rdma_failure *gpul_rdma_link_failed(const gpul_rdma_link *l)
{
	return &l->failure;
}

gpul_rdma_totals gpul_rdma_link_totals(const gpul_rdma_link *l)
{
	return (gpul_rdma_totals){ .received = gpul_rdma_count_received(l), .sent = gpul_rdma_count_sent(l) };
}

bool gpul_rdma_link_busy(const gpul_rdma_link *l)
{
	if (l->grants_written != l->grants_head || l->n_free_requests != GPUL_RDMA_REQUESTS)
		return true;
	for (unsigned i = 0; i < l->desc.n_qps; i++)
		if (l->queues[i].wants_signal)
			return true;
	return false;
}

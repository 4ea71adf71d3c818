/* protocol_put.c — puts (one write of data, then one write of a step), and flushes.
 *
 * On an ordered fabric, both writes are posted to the same queue pair together.  On a fabric without order, the step is
 * written only when the data has been acknowledged, and the next put of the queue pair starts after the step. */
#include "rdma/protocol/protocol_link_internal.h"

static void emit_data(gpul_rdma_link *l, struct take *t, struct request *r)
{
	const gpul_rdma_area *area = r->span.area;
	uint64_t done = 0;

	while (done < r->span.bytes) {
		const gpul_rdma_piece *p = piece_of(area, r->span.at + done);
		const uint64_t left = p->at + p->bytes - (r->span.at + done);
		const uint32_t now = (uint32_t)(r->span.bytes - done < left ? r->span.bytes - done : left);
		gpul_rdma_op *op = emit_op(l, t, GPUL_RDMA_OP_WRITE, r->put.qp, r->index, NO_STAGE, now);

		op->local = r->span.at + done;
		op->local_key = p->local_key;
		op->remote = r->put.to.address + done;
		op->remote_key = r->put.to.key;
		if (now <= l->desc.inline_bytes && !area->on_device)
			op->flags |= GPUL_RDMA_INLINE;
		r->ops_left++;
		done += now;
	}
}

static void emit_signal(gpul_rdma_link *l, struct take *t, struct request *r)
{
	const uint64_t at = (uint64_t)(uintptr_t)&l->desc.control->steps[r->index];
	gpul_rdma_op *op = emit_op(l, t, GPUL_RDMA_OP_WRITE, r->put.qp, r->index, NO_STAGE, sizeof(uint64_t));

	op->local = at;
	op->local_key = l->desc.control_piece.local_key;
	op->remote = r->put.signal.address;
	op->remote_key = r->put.signal.key;
	if (sizeof(uint64_t) <= l->desc.inline_bytes)
		op->flags |= GPUL_RDMA_INLINE;
	r->ops_left++;
	r->put.signal_left = false;
	r->emitted = true;
}

static bool start_put(gpul_rdma_link *l, struct take *t, struct request *r)
{
	struct queue *q = &l->queues[r->put.qp];
	const unsigned most = (r->span.bytes ? r->span.area->n_pieces : 0) + r->put.signal_left;

	if (t->max - t->n < most || room_of(l, q) < most || q->put_busy)
		return false;
	if (r->span.bytes)
		emit_data(l, t, r);
	q->put_busy = !l->desc.ordered && most;
	if (r->put.signal_left && (l->desc.ordered || !r->span.bytes))
		emit_signal(l, t, r);
	r->emitted = !r->put.signal_left;
	r->ended = r->emitted && !r->ops_left; /* true only for a put of 0 bytes without a signal */
	return true;
}

static void take_flushes(gpul_rdma_link *l, struct take *t)
{
	while (l->flushes_tail != l->flushes_head && l->flushes_in_flight < MAX_FLUSHES && t->n < t->max) {
		const uint16_t index = l->flushes[l->flushes_tail++ & REQUEST_MASK];
		struct request *r = &l->requests[index];

		r->emitted = true;
		t->ops[t->n++] = (gpul_rdma_op){
			.kind = GPUL_RDMA_OP_FLUSH,
			.flags = GPUL_RDMA_SIGNALED,
			.id = MAKE_ID(ID_FLUSH, 0, gpul_rdma_request_handle(r)),
			.local = r->span.at,
			.local_key = piece_of(r->span.area, r->span.at)->local_key,
			.remote = piece_of(r->span.area, r->span.at)->remote + (r->span.at - piece_of(r->span.area, r->span.at)->at),
			.remote_key = piece_of(r->span.area, r->span.at)->remote_key,
			.bytes = (uint32_t)(r->span.bytes < 8 ? r->span.bytes : 8),
		};
		l->flushes_in_flight++;
	}
}

void gpul_rdma_take_puts(gpul_rdma_link *l, struct take *t)
{
	take_flushes(l, t);
	for (; l->signals_tail != l->signals_head; l->signals_tail++) {
		struct request *r = &l->requests[l->signals[l->signals_tail & REQUEST_MASK]];

		if (t->n == t->max || !room_of(l, &l->queues[r->put.qp]))
			return;
		emit_signal(l, t, r);
	}
	for (; l->puts_tail != l->puts_head; l->puts_tail++)
		if (!start_put(l, t, &l->requests[l->puts[l->puts_tail & REQUEST_MASK]]))
			return;
}

gpul_status gpul_rdma_link_put(gpul_rdma_link *l, const gpul_rdma_put_desc *put, uint64_t deadline_ns, gpul_rdma_request *out,
			       gpul_error *err)
{
	struct request *r;

	if (put->from.bytes) {
		const gpul_status st = gpul_rdma_check_span(l, &put->from, err);

		if (st)
			return st;
		if (put->from.area->staged)
			return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
					 "cannot put from GPU memory that the NIC cannot access: put from host-NUMA memory, or use send "
					 "and receive, which copy through the host");
	}
	if (put->from.bytes > GPUL_RDMA_MAX_PUT || put->from.bytes > put->to.bytes)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "cannot put %llu bytes into %llu bytes of the peer's memory: one put has at most %llu bytes",
				 (unsigned long long)put->from.bytes, (unsigned long long)put->to.bytes,
				 (unsigned long long)(put->to.bytes < GPUL_RDMA_MAX_PUT ? put->to.bytes : GPUL_RDMA_MAX_PUT));
	if (put->signal.bytes && (put->signal.bytes < 8 || put->signal.address % 8))
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "the step counter of a put is at 0x%llx with %llu bytes: expected 8 bytes at a multiple of 8",
				 (unsigned long long)put->signal.address, (unsigned long long)put->signal.bytes);
	if (l->failure.status)
		return gpul_rdma_failure_error(&l->failure, err);
	r = gpul_rdma_request_new(l, PUT, deadline_ns, out);
	if (!r)
		return GPUL_OK;
	r->span = put->from;
	r->put.to = put->to;
	r->put.signal = put->signal;
	r->put.qp = (uint16_t)(put->lane % l->desc.n_qps);
	r->put.signal_left = put->signal.bytes != 0;
	l->desc.control->steps[r->index] = put->signal_value;
	l->puts[l->puts_head++ & REQUEST_MASK] = r->index;
	return GPUL_OK;
}

gpul_status gpul_rdma_link_flush(gpul_rdma_link *l, const gpul_rdma_span *span, uint64_t deadline_ns, gpul_rdma_request *out,
				 gpul_error *err)
{
	const gpul_status st = gpul_rdma_check_span(l, span, err);
	struct request *r;

	if (st)
		return st;
	r = gpul_rdma_request_new(l, FLUSH, deadline_ns, out);
	if (!r)
		return GPUL_OK;
	r->span = *span;
	if (span->area->staged || !span->area->on_device || !span->area->flush)
		r->ended = true; /* data through staging buffers is copied when its request ends, and CPU memory needs no flush */
	else
		l->flushes[l->flushes_head++ & REQUEST_MASK] = r->index;
	return GPUL_OK;
}

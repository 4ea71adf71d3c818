/* reliable_ops.c — operations, messages and their events. */
#include "rdma/reliable/reliable_ops.h"

#include <stdlib.h>

gpul_status gpul_rel_ops_create(gpul_rel_ops *o, uint32_t n_slots, gpul_error *err)
{
	*o = (gpul_rel_ops){ .n_slots = 64 };
	while (o->n_slots < n_slots)
		o->n_slots *= 2;
	o->ring = calloc(o->n_slots, sizeof *o->ring);
	o->done = calloc(o->n_slots, sizeof *o->done);
	if (o->ring && o->done)
		return GPUL_OK;
	gpul_rel_ops_destroy(o);
	return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %u operations in flight", n_slots);
}

void gpul_rel_ops_destroy(gpul_rel_ops *o)
{
	free(o->ring);
	free(o->done);
	*o = (gpul_rel_ops){ 0 };
}

static struct gpul_rel_op *op_at(gpul_rel_ops *o, uint64_t number)
{
	return &o->ring[number & (o->n_slots - 1)];
}

bool gpul_rel_ops_add(gpul_rel_ops *o, const gpul_rdma_op *op)
{
	if (op->kind == GPUL_RDMA_OP_FLUSH) {
		if (o->flushed_head - o->flushed_tail == GPUL_REL_FLUSHES)
			return false;
		o->flushed[o->flushed_head++ % GPUL_REL_FLUSHES] = op->id;
	} else if (op->kind == GPUL_RDMA_OP_WRITE || op->kind == GPUL_RDMA_OP_WRITE_IMM) {
		if (o->head - o->tail == o->n_slots)
			return false;
		*op_at(o, o->head++) = (struct gpul_rel_op){ .id = op->id, .op = *op, .n_waiting = 1 };
	}
	return true;
}

void gpul_rel_ops_start(gpul_rel_ops *o, gpul_rel *r)
{
	const uint32_t most = gpul_rel_max_message(r);

	while (o->started != o->head) {
		struct gpul_rel_op *p = op_at(o, o->started);
		const uint32_t n_bytes = p->op.bytes < most ? p->op.bytes : most;
		const gpul_rel_message m = { .id = o->started,
					     .local = p->op.local,
					     .local_key = p->op.local_key,
					     .address = p->op.remote,
					     .key = p->op.remote_key,
					     .bytes = n_bytes,
					     .imm = p->op.imm,
					     .notify = p->op.kind == GPUL_RDMA_OP_WRITE_IMM };

		if (!gpul_rel_send(r, &m))
			return;
		p->op.local += n_bytes;
		p->op.remote += n_bytes;
		p->op.bytes -= n_bytes;
		if (p->op.bytes)
			p->n_waiting++;
		else
			o->started++;
	}
}

void gpul_rel_ops_hold(gpul_rel_ops *o, uint64_t id)
{
	op_at(o, id)->n_waiting++;
}

void gpul_rel_ops_release(gpul_rel_ops *o, uint64_t id)
{
	if (--op_at(o, id)->n_waiting == 0)
		o->done[o->done_head++ & (o->n_slots - 1)] = (uint32_t)id;
}

void gpul_rel_ops_events(gpul_rel_ops *o, gpul_rel *r, gpul_rdma_event *events, unsigned max, unsigned *n)
{
	gpul_rel_event e;

	for (; o->flushed_tail != o->flushed_head && *n < max; o->flushed_tail++)
		events[(*n)++] = (gpul_rdma_event){ .kind = GPUL_RDMA_EVENT_DONE, .id = o->flushed[o->flushed_tail % GPUL_REL_FLUSHES] };
	while (*n < max && gpul_rel_poll(r, &e)) {
		if (e.arrived)
			events[(*n)++] = (gpul_rdma_event){ .kind = GPUL_RDMA_EVENT_ARRIVED, .imm = e.imm, .bytes = e.bytes };
		else
			gpul_rel_ops_release(o, e.id);
	}
	for (; o->done_tail != o->done_head && *n < max; o->done_tail++) {
		struct gpul_rel_op *p = op_at(o, o->done[o->done_tail & (o->n_slots - 1)]);

		events[(*n)++] = (gpul_rdma_event){ .kind = GPUL_RDMA_EVENT_DONE, .id = p->id };
		p->reported = true;
	}
	while (o->tail != o->started && op_at(o, o->tail)->reported)
		o->tail++;
}

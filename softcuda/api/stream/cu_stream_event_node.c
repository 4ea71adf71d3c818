/* cu_stream_event_node.c — the calls that make streams record events and wait for them, and the graph nodes that do the same.
 *
 * When a graph is launched, its events count as recorded, as after cuEventRecord; its waits are for the newest record at that time. */
#include "softcuda/api/stream/cu_graph_internal.h"
#include "softcuda/api/stream/cu_order_internal.h"

struct wait_op {
	struct op op;
	struct event *event; /* holds a reference */
	struct op *record;   /* the operation that recorded the event, for which a launch waits; holds a reference; NULL: none */
};

struct event *soft_event_of_work(const struct op *work)
{
	return work->kind->node_type == CU_GRAPH_NODE_TYPE_WAIT_EVENT ? CONTAINER(work, const struct wait_op, op)->event
								      : soft_event_of_record(work);
}

static void run_wait(struct op *op)
{
	struct wait_op *w = CONTAINER(op, struct wait_op, op);

	if (w->record && !w->record->ended) {
		if (!soft_op_run_after(op, w->record)) {
			soft_context_fail(op->ctx, CUDA_ERROR_OUT_OF_MEMORY);
			soft_op_end(op, CUDA_ERROR_OUT_OF_MEMORY);
		}
	} else if (soft_shared_event_is_remote(w->event->shared)) {
		soft_event_await(op, w->event);
	} else {
		soft_op_end(op, CUDA_SUCCESS);
	}
}

static void release_wait(struct op *op)
{
	struct wait_op *w = CONTAINER(op, struct wait_op, op);

	if (w->record)
		soft_op_release(w->record);
	soft_event_unref(w->event);
}

static bool copy_wait(struct op *op)
{
	struct wait_op *w = CONTAINER(op, struct wait_op, op);

	w->event->refs++;
	w->record = w->event->pending;
	if (w->record)
		w->record->refs++;
	soft_order_join(&op->stream->order, w->event->order);
	return true;
}

static const struct op_kind wait_kind = {
	.run = run_wait,
	.release = release_wait,
	.copy = copy_wait,
	.is_node = true,
	.node_type = CU_GRAPH_NODE_TYPE_WAIT_EVENT,
	.bytes = sizeof(struct wait_op),
};

CUresult soft_event_wait_work(struct event *e, struct op **out)
{
	struct op *op = soft_op_new(NULL, &wait_kind);

	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CONTAINER(op, struct wait_op, op)->event = e;
	e->refs++;
	*out = op;
	return CUDA_SUCCESS;
}

/* ---- the calls ----------------------------------------------------------------------------------------- */

/* Add a node to the capture that records the event, or waits for it, whenever the graph runs (CU_EVENT_*_EXTERNAL). */
static CUresult capture_node(struct stream *s, struct event *e, CUresult (*make)(struct event *e, struct op **out))
{
	struct op *op;
	CUresult r = make(e, &op);

	if (r)
		return r;
	op->stream = s;
	op->ctx = s->ctx;
	r = soft_capture_or_submit(op);
	soft_op_release(op);
	return r;
}

EXPORT CUresult cuEventRecordWithFlags(CUevent event, CUstream handle, unsigned int flags)
{
	struct context *ctx;
	struct stream *s;
	struct event *e;
	CUresult r = soft_enter_stream(handle, &ctx, &s);

	if (r)
		return r;
	e = soft_handle_find(HANDLE_EVENT, event);
	if (!e)
		r = soft_refuse_handle(CUDA_ERROR_INVALID_HANDLE, HANDLE_EVENT, event);
	else if (e->ctx != ctx)
		r = soft_refuse(CUDA_ERROR_INVALID_HANDLE,
				"cuEventRecord: the event and the stream belong to different contexts (devices %d and %d)",
				e->ctx->device->ordinal, ctx->device->ordinal);
	else if (flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL)
		r = CUDA_ERROR_INVALID_VALUE;
	else if (s->capture && flags)
		r = capture_node(s, e, soft_event_record_work);
	else if (s->capture)
		r = soft_capture_record(s, e);
	else if (!(r = soft_capture_check_legacy(s)))
		r = soft_event_record(e, s);
	soft_unlock();
	return r;
}

EXPORT CUresult cuEventRecord(CUevent event, CUstream stream)
{
	return cuEventRecordWithFlags(event, stream, 0);
}

EXPORT CUresult cuStreamWaitEvent(CUstream handle, CUevent event, unsigned int flags)
{
	struct context *ctx;
	struct stream *s;
	struct event *e;
	CUresult r = soft_enter_stream(handle, &ctx, &s);

	if (r)
		return r;
	e = soft_handle_find(HANDLE_EVENT, event);
	if (!e)
		r = soft_refuse_handle(CUDA_ERROR_INVALID_HANDLE, HANDLE_EVENT, event);
	else if (flags & ~(unsigned)CU_EVENT_WAIT_EXTERNAL)
		r = CUDA_ERROR_INVALID_VALUE;
	else if (s->capture && flags)
		r = capture_node(s, e, soft_event_wait_work);
	else if (s->capture || e->captured)
		r = soft_capture_wait(s, e);
	else if (!(r = soft_capture_check_legacy(s)))
		r = soft_stream_wait_event(s, e);
	soft_unlock();
	return r;
}

/* cu_context_event.c — cuCtxRecordEvent (records after all work of a context) and cuCtxWaitEvent (all later work of a context waits). */
#include "softcuda/api/stream/cu_event_internal.h"
#include "softcuda/api/stream/cu_order_internal.h"

/* Find the context and the event; on success the lock is held. */
static CUresult enter_context_event(CUcontext context, CUevent event, struct context **ctx, struct event **e)
{
	CUresult r = soft_check_initialised();

	if (r)
		return r;
	soft_lock();
	r = soft_find_context(context, ctx);
	*e = soft_handle_find(HANDLE_EVENT, event);
	if (!r)
		r = (*ctx)->fault;
	if (!r && !*e)
		r = soft_refuse_handle(CUDA_ERROR_INVALID_HANDLE, HANDLE_EVENT, event);
	if (r)
		soft_unlock();
	return r;
}

/* Make s wait for the queued work of its context's other streams.  Each marker must wait, so soft_op_submit() keeps the lock. */
static CUresult wait_for_all_streams(struct stream *s)
{
	struct context *ctx = s->ctx;
	CUresult r = CUDA_SUCCESS;

	soft_order_join(&s->order, ctx->order);
	for (struct link *i = ctx->streams.next; !r && i != &ctx->streams; i = i->next) {
		struct stream *other = CONTAINER(i, struct stream, link);
		struct op *op;

		if (other == s || !other->last)
			continue;
		op = soft_op_new(s, &soft_marker);
		r = op ? soft_op_submit(op, other->last) : CUDA_ERROR_OUT_OF_MEMORY;
		if (op)
			soft_op_release(op);
	}
	return r;
}

EXPORT CUresult cuCtxRecordEvent(CUcontext context, CUevent event)
{
	struct context *ctx;
	struct event *e;
	struct stream *s;
	CUresult r = enter_context_event(context, event, &ctx, &e);

	if (r)
		return r;
	if (e->ctx != ctx)
		r = CUDA_ERROR_INVALID_HANDLE;
	else
		r = soft_capture_refuse_in(ctx, "cuCtxRecordEvent");
	if (!r)
		r = soft_stream_create(ctx, CU_STREAM_NON_BLOCKING, 0, &s);
	if (r)
		goto unlock;
	r = wait_for_all_streams(s);
	if (!r)
		r = soft_event_record(e, s);
	soft_stream_destroy(s);
unlock:
	soft_unlock();
	return r;
}

EXPORT CUresult cuCtxWaitEvent(CUcontext context, CUevent event)
{
	struct context *ctx;
	struct event *e;
	CUresult r = enter_context_event(context, event, &ctx, &e);

	if (r)
		return r;
	r = soft_capture_refuse_in(ctx, "cuCtxWaitEvent");
	if (!r && !ctx->gate)
		r = soft_stream_create(ctx, CU_STREAM_NON_BLOCKING, 0, &ctx->gate);
	if (!r)
		r = soft_stream_wait_event(ctx->gate, e);
	soft_unlock();
	return r;
}

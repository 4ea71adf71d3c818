/* event.c — events: a place in a stream, and the time when it was reached.
 *
 * An event refers to the newest record that has not ended.  Waiting for it and making a stream
 * wait for it mean that record, whatever is recorded later. */
#include "softcuda/api/api_internal.h"

#include <stdlib.h>

enum {
	EVENT_FLAGS = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS
};

void soft_event_recorded(struct event *e, struct op *by, CUresult result)
{
	if (e->pending == by)
		e->pending = NULL;
	if (by->record.has_ticket)
		soft_ipc_event_end(e, by, result != CUDA_SUCCESS);
}

void soft_event_unref(struct event *e)
{
	if (--e->refs)
		return;
	soft_ipc_event_close(e->shared);
	free(e);
}

void soft_event_destroy(struct event *e)
{
	soft_handle_free(e->handle);
	e->handle = NULL;
	list_remove(&e->link);
	soft_event_unref(e);
}

/* Begin a call on an event: *out is it and the lock is held on success.  A dead context's
 * events answer with its fault. */
static CUresult enter(CUevent handle, struct event **out)
{
	CUresult r = soft_check_initialised();

	if (r)
		return r;
	soft_lock();
	*out = soft_handle_find(HANDLE_EVENT, handle);
	r = *out ? (*out)->ctx->fault : CUDA_ERROR_INVALID_HANDLE;
	if (r)
		soft_unlock();
	return r;
}

CUresult soft_event_create(struct context *ctx, unsigned flags, struct event **out)
{
	struct event *e = calloc(1, sizeof *e);

	if (!e || !(e->handle = soft_handle_new(HANDLE_EVENT, e))) {
		free(e);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	e->ctx = ctx;
	e->flags = flags;
	e->refs = 1;
	list_append(&ctx->events, &e->link);
	*out = e;
	return CUDA_SUCCESS;
}

/* An event that processes share has no time: their clocks need not agree. */
static bool are_event_flags(unsigned flags)
{
	if (flags & ~(unsigned)EVENT_FLAGS)
		return false;
	return !(flags & CU_EVENT_INTERPROCESS) || flags & CU_EVENT_DISABLE_TIMING;
}

EXPORT CUresult cuEventCreate(CUevent *out, unsigned int flags)
{
	struct context *ctx;
	struct event *e;
	CUresult r;

	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	r = soft_enter(&ctx);
	if (r)
		return r;
	r = are_event_flags(flags) ? soft_event_create(ctx, flags, &e)
				   : CUDA_ERROR_INVALID_VALUE;
	if (!r)
		*out = e->handle;
	soft_unlock();
	return r;
}

static CUresult destroy(CUevent handle)
{
	struct event *e;
	CUresult r = soft_check_initialised();

	if (r)
		return r;
	soft_lock();
	e = soft_handle_find(HANDLE_EVENT, handle);
	if (e)
		soft_event_destroy(e);
	else
		r = CUDA_ERROR_INVALID_HANDLE;
	soft_unlock();
	return r;
}

EXPORT CUresult cuEventDestroy(CUevent event)
{
	return destroy(event);
}

EXPORT CUresult cuEventDestroy_v2(CUevent event)
{
	return destroy(event);
}

CUresult soft_event_record(struct event *e, struct stream *s)
{
	struct op *op = soft_op_new(s, OP_RECORD), *before = e->pending;
	bool was_recorded = e->recorded;
	CUresult r;

	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	op->record.event = e;
	e->refs++;  /* free_payload of the op drops it */
	e->pending = op;
	e->recorded = true;
	if (e->shared)
		soft_ipc_event_draw(e, op);
	r = soft_op_submit(op, NULL);
	if (r) {
		soft_event_recorded(e, op, r);
		e->pending = before;
		e->recorded = was_recorded;
	}
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
	if (!e || e->ctx != ctx)
		r = CUDA_ERROR_INVALID_HANDLE;
	else if (flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL)
		r = CUDA_ERROR_INVALID_VALUE;
	else
		r = soft_event_record(e, s);
	soft_unlock();
	return r;
}

/* Let what s is given from now on wait for the record that is the event's newest. */
CUresult soft_event_hold(struct stream *s, struct event *e)
{
	struct op *op;
	CUresult r;

	if (soft_ipc_event_is_remote(e))
		return soft_ipc_event_hold(s, e);
	if (!e->pending)
		return CUDA_SUCCESS;
	op = soft_op_new(s, OP_NOTHING);
	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = soft_op_submit(op, e->pending);
	soft_op_release(op);
	return r;
}

EXPORT CUresult cuEventRecord(CUevent event, CUstream stream)
{
	return cuEventRecordWithFlags(event, stream, 0);
}

EXPORT CUresult cuEventQuery(CUevent handle)
{
	struct event *e;
	CUresult r = enter(handle, &e);

	if (r)
		return r;
	if (soft_ipc_event_is_remote(e))
		r = soft_ipc_event_query(e);
	else
		r = e->pending ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
	soft_unlock();
	return r;
}

EXPORT CUresult cuEventSynchronize(CUevent handle)
{
	struct event *e;
	struct op *op;
	CUresult r = enter(handle, &e);

	if (r)
		return r;
	op = e->pending;
	if (soft_ipc_event_is_remote(e)) {
		r = soft_ipc_event_wait(e);
	} else if (op) {
		op->refs++;
		r = soft_op_wait(op);
		soft_op_release(op);
	}
	soft_unlock();
	return r;
}

static CUresult elapsed_time(float *ms, CUevent from, CUevent to)
{
	struct event *a, *b;
	CUresult r = enter(from, &a);

	if (r)
		return r;
	b = soft_handle_find(HANDLE_EVENT, to);
	if (!ms)
		r = CUDA_ERROR_INVALID_VALUE;
	else if (!b || !a->recorded || !b->recorded ||
		 (a->flags | b->flags) & CU_EVENT_DISABLE_TIMING)
		r = CUDA_ERROR_INVALID_HANDLE;
	else if (a->pending || b->pending)
		r = CUDA_ERROR_NOT_READY;
	else
		*ms = (float)((double)(int64_t)(b->time_ns - a->time_ns) * 1e-6);
	soft_unlock();
	return r;
}

EXPORT CUresult cuEventElapsedTime(float *ms, CUevent from, CUevent to)
{
	return elapsed_time(ms, from, to);
}

EXPORT CUresult cuEventElapsedTime_v2(float *ms, CUevent from, CUevent to)
{
	return elapsed_time(ms, from, to);
}

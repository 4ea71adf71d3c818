/* cu_stream.c — finds the stream of a handle, and implements the calls on streams.
 *
 *     0, CU_STREAM_LEGACY            one for each context; it and all blocking streams wait for each other
 *     CU_STREAM_PER_THREAD           one for each thread and context; blocking
 *     cuStreamCreate(DEFAULT)        blocking
 *     cuStreamCreate(NON_BLOCKING)   waits for no other stream
 *
 * A created stream belongs to its context: a call for it needs no current context. */
#include "softcuda/api/stream/cu_order_internal.h"

#include <stdlib.h>

int soft_clamp_priority(int priority)
{
	if (priority > LEAST_PRIORITY)
		return LEAST_PRIORITY;
	return priority < GREATEST_PRIORITY ? GREATEST_PRIORITY : priority;
}

CUresult soft_stream_create(struct context *ctx, unsigned flags, int priority, struct stream **out)
{
	struct stream *s = calloc(1, sizeof *s);

	if (!s)
		return CUDA_ERROR_OUT_OF_MEMORY;
	s->handle = soft_handle_new(HANDLE_STREAM, s);
	if (!s->handle) {
		free(s);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	s->ctx = ctx;
	s->flags = flags;
	s->priority = soft_clamp_priority(priority);
	s->hints.sync_policy = CU_SYNC_POLICY_AUTO;
	s->hints.domain_map.remote = 1;
	s->blocking = !(flags & CU_STREAM_NON_BLOCKING);
	s->id = ++soft.next_id;
	list_init(&s->in_capture);
	list_append(&ctx->streams, &s->link);
	*out = s;
	return CUDA_SUCCESS;
}

/* Free the handle of the stream; queued work still runs, and the stream is freed after its last operation. */
void soft_stream_destroy(struct stream *s)
{
	soft_capture_leave(s);
	soft_handle_free(s->handle);
	s->handle = NULL;
	s->destroyed = true;
	soft_stream_free_if_done(s);
}

static CUresult find_per_thread(struct context *ctx, struct stream **out)
{
	uint64_t thread = soft_thread_id();
	CUresult r;

	for (struct link *i = ctx->streams.next; i != &ctx->streams; i = i->next) {
		struct stream *s = CONTAINER(i, struct stream, link);

		if (s->thread == thread) {
			*out = s;
			return CUDA_SUCCESS;
		}
	}
	r = soft_stream_create(ctx, CU_STREAM_DEFAULT, 0, out);
	if (!r)
		(*out)->thread = thread;
	return r;
}

/* Enter the current context, and find its legacy stream (handles 0 and CU_STREAM_LEGACY) or its stream for this thread. */
static CUresult enter_default_stream(CUstream handle, struct context **ctx, struct stream **out)
{
	CUresult r = soft_enter(ctx);

	if (r)
		return r;
	*out = (*ctx)->legacy;
	if (handle == CU_STREAM_PER_THREAD)
		r = find_per_thread(*ctx, out);
	if (r)
		soft_unlock();
	return r;
}

CUresult soft_enter_stream(CUstream handle, struct context **ctx, struct stream **out)
{
	CUresult r;

	if (!handle || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD)
		return enter_default_stream(handle, ctx, out);
	r = soft_lock_also_in_callback();
	if (r)
		return r;
	*out = soft_handle_find(HANDLE_STREAM, handle);
	r = *out ? (*out)->ctx->fault : soft_refuse_handle(CUDA_ERROR_INVALID_HANDLE, HANDLE_STREAM, handle);
	if (r)
		soft_unlock();
	else
		*ctx = (*out)->ctx;
	return r;
}

CUresult soft_enter_stream_not_in_callback(CUstream handle, struct context **ctx, struct stream **out)
{
	/* called in a callback, soft_check_initialised() returns the error */
	return soft_is_in_callback() ? soft_check_initialised() : soft_enter_stream(handle, ctx, out);
}

EXPORT CUresult cuStreamCreateWithPriority(CUstream *out, unsigned int flags, int priority)
{
	struct context *ctx;
	struct stream *s;
	CUresult r = soft_enter(&ctx);

	if (r)
		return r;
	if (!out || flags & ~(unsigned)CU_STREAM_NON_BLOCKING)
		r = CUDA_ERROR_INVALID_VALUE;
	else
		r = soft_stream_create(ctx, flags, priority, &s);
	if (!r)
		*out = s->handle;
	soft_unlock();
	return r;
}

EXPORT CUresult cuStreamCreate(CUstream *out, unsigned int flags)
{
	return cuStreamCreateWithPriority(out, flags, 0);
}

EXPORT CUresult cuStreamDestroy_v2(CUstream handle)
{
	struct stream *s;
	CUresult r = soft_lock_also_in_callback();

	if (r)
		return r;
	s = soft_handle_find(HANDLE_STREAM, handle);
	if (!s || s == s->ctx->legacy || s->thread)
		r = soft_refuse_handle(CUDA_ERROR_INVALID_HANDLE, HANDLE_STREAM, handle);
	else
		soft_stream_destroy(s);
	soft_unlock();
	return r;
}

EXPORT CUresult cuStreamDestroy(CUstream stream)
{
	return cuStreamDestroy_v2(stream);
}

/* Check that the application may wait for s; a stream capture can forbid this. */
static CUresult check_wait(struct stream *s, const char *call)
{
	CUresult r = s->capture ? soft_capture_refuse(s, call) : soft_capture_check_legacy(s);

	return r ? r : soft_capture_check_unsafe(call);
}

EXPORT CUresult cuStreamQuery(CUstream handle)
{
	struct context *ctx;
	struct stream *s;
	CUresult r = soft_enter_stream(handle, &ctx, &s);

	if (r)
		return r;
	r = check_wait(s, "cuStreamQuery");
	/* The legacy stream is idle if a new operation would not have to wait for any blocking stream. */
	if (!r && (s == ctx->legacy ? soft_stream_is_busy(s) : s->last != NULL))
		r = CUDA_ERROR_NOT_READY;
	else if (!r)
		soft_order_host(s == ctx->legacy ? ctx->order : s->order);
	soft_unlock();
	return r;
}

EXPORT CUresult cuStreamSynchronize(CUstream handle)
{
	struct context *ctx;
	struct stream *s;
	struct op *marker;
	CUresult r = soft_enter_stream(handle, &ctx, &s);

	if (r)
		return r;
	r = check_wait(s, "cuStreamSynchronize");
	if (!r)
		r = soft_op_check_wait(s->last, "cuStreamSynchronize");
	if (r) {
		soft_unlock();
		return r;
	}
	if (s != ctx->legacy) {
		soft_stream_wait(s);
	} else if ((marker = soft_op_new(s, &soft_marker))) {
		/* the marker waits for all blocking streams, as work of the legacy stream does */
		r = soft_op_submit(marker, NULL);
		if (!r)
			soft_op_wait(marker);
		soft_op_release(marker);
	} else {
		r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (!r)
		r = ctx->fault;
	soft_unlock();
	return r;
}

/* Call the host function.  After a fault, a function of cuStreamAddCallback gets the error; one of cuLaunchHostFunc is not called. */
static void run_host_call(struct op *op)
{
	struct host_call *h = CONTAINER(op, struct host_call, op);
	CUresult fault = op->ctx->fault;

	soft_order_host(op->order);
	soft_unlock();
	soft_in_callback(true);
	if (h->callback)
		h->callback(h->handle, fault, h->user);
	else if (!fault)
		h->function(h->user);
	soft_in_callback(false);
	soft_lock();
	soft_op_end(op, fault);
}

const struct op_kind soft_host_call_kind = {
	.run = run_host_call, .is_host_call = true, .is_node = true, .node_type = CU_GRAPH_NODE_TYPE_HOST, .bytes = sizeof(struct host_call)
};

static CUresult queue_host_call(CUstream handle, CUhostFn function, CUstreamCallback callback, void *user)
{
	struct context *ctx;
	struct stream *s;
	struct op *op;
	CUresult r = soft_enter_stream(handle, &ctx, &s);

	if (r)
		return r;
	if (callback && s->capture) {
		r = soft_capture_refuse(s, "cuStreamAddCallback");
		goto unlock;
	}
	op = soft_op_new(s, &soft_host_call_kind);
	r = CUDA_ERROR_OUT_OF_MEMORY;
	if (op) {
		struct host_call *h = CONTAINER(op, struct host_call, op);

		h->function = function;
		h->callback = callback;
		h->handle = handle;
		h->user = user;
		r = soft_capture_or_submit(op);
		soft_op_release(op);
	}
unlock:
	soft_unlock();
	return r;
}

EXPORT CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void *user, unsigned int flags)
{
	if (!callback || flags)
		return CUDA_ERROR_INVALID_VALUE;
	return queue_host_call(stream, NULL, callback, user);
}

EXPORT CUresult cuLaunchHostFunc(CUstream stream, CUhostFn fn, void *user)
{
	return fn ? queue_host_call(stream, fn, NULL, user) : CUDA_ERROR_INVALID_VALUE;
}

/* ---- properties of a stream ------------------------------------------------------------------- */

/* Enter the stream of a query.  As on an H200, some queries are refused during a capture, and make the capture invalid: the query named
 * `refused` (NULL: none) of a capturing stream, and all queries of the legacy stream if it would wait for a capturing stream. */
static CUresult enter_property(CUstream handle, const char *refused, struct context **ctx, struct stream **out)
{
	CUresult r = soft_enter_stream(handle, ctx, out);

	if (r)
		return r;
	r = (*out)->capture && refused ? soft_capture_refuse(*out, refused) : soft_capture_check_legacy(*out);
	if (r)
		soft_unlock();
	return r;
}

EXPORT CUresult cuStreamGetFlags(CUstream handle, unsigned int *flags)
{
	struct context *ctx;
	struct stream *s;
	CUresult r = flags ? enter_property(handle, "cuStreamGetFlags", &ctx, &s) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	*flags = s->flags;
	soft_unlock();
	return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamGetPriority(CUstream handle, int *priority)
{
	struct context *ctx;
	struct stream *s;
	CUresult r = priority ? enter_property(handle, NULL, &ctx, &s) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	*priority = s->priority;
	soft_unlock();
	return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamGetId(CUstream handle, unsigned long long *id)
{
	struct context *ctx;
	struct stream *s;
	CUresult r = id ? enter_property(handle, "cuStreamGetId", &ctx, &s) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	*id = s->id;
	soft_unlock();
	return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamGetCtx(CUstream handle, CUcontext *out)
{
	struct context *ctx;
	struct stream *s;
	CUresult r = out ? enter_property(handle, NULL, &ctx, &s) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	*out = ctx->handle;
	soft_unlock();
	return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamGetDevice(CUstream handle, CUdevice *out)
{
	struct context *ctx;
	struct stream *s;
	CUresult r = out ? enter_property(handle, "cuStreamGetDevice", &ctx, &s) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	*out = ctx->device->ordinal;
	soft_unlock();
	return CUDA_SUCCESS;
}

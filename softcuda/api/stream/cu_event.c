/* cu_event.c — events.  An event marks a point in a stream, and contains the time at which the stream reached that point.
 *
 * An event refers to the operation that last recorded it (the newest record), until this operation has ended. Threads and streams
 * that wait for the event wait for this operation, even if the event is recorded again meanwhile. */
#include "softcuda/api/stream/cu_graph_internal.h"
#include "softcuda/api/stream/cu_order_internal.h"

#include "core/clock.h"
#include "core/thread/thread.h"

#include <stdlib.h>

enum { EVENT_FLAGS = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS };

void soft_event_unref(struct event *e)
{
	if (--e->refs)
		return;
	soft_shared_event_close(e->shared);
	soft_order_drop(e->order);
	free(e);
}

void soft_event_destroy(struct event *e)
{
	soft_capture_forget(e);
	soft_handle_free(e->handle);
	e->handle = NULL;
	list_remove(&e->link);
	soft_event_unref(e);
}

/* Find the event; on success the lock is held.  After a fault of the event's context, return the fault. */
static CUresult enter_event(CUevent handle, struct event **out)
{
	CUresult r = soft_lock_also_in_callback();

	if (r)
		return r;
	*out = soft_handle_find(HANDLE_EVENT, handle);
	r = *out ? (*out)->ctx->fault : soft_refuse_handle(CUDA_ERROR_INVALID_HANDLE, HANDLE_EVENT, handle);
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

/* Check the flags.  CUDA Driver API, cuEventCreate: CU_EVENT_INTERPROCESS requires CU_EVENT_DISABLE_TIMING. */
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
	CUresult r = out ? soft_enter(&ctx) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	r = are_event_flags(flags) ? soft_event_create(ctx, flags, &e) : CUDA_ERROR_INVALID_VALUE;
	if (!r)
		*out = e->handle;
	soft_unlock();
	return r;
}

EXPORT CUresult cuEventDestroy_v2(CUevent handle)
{
	struct event *e;
	CUresult r = soft_lock_also_in_callback();

	if (r)
		return r;
	e = soft_handle_find(HANDLE_EVENT, handle);
	if (e)
		soft_event_destroy(e);
	else
		r = soft_refuse_handle(CUDA_ERROR_INVALID_HANDLE, HANDLE_EVENT, handle);
	soft_unlock();
	return r;
}

EXPORT CUresult cuEventDestroy(CUevent event)
{
	return cuEventDestroy_v2(event);
}

/* ---- recording -------------------------------------------------------------------------- */

struct record_op {
	struct op op;
	struct event *event; /* holds a reference */
	bool has_ticket;     /* true if the event is shared with other processes */
	uint32_t ticket;
};

static void draw_ticket(struct record_op *record)
{
	record->ticket = soft_shared_event_draw(record->event->shared);
	record->has_ticket = true;
}

void soft_event_share(struct event *e, struct shared_event *shared)
{
	e->shared = shared;
	if (e->pending)
		draw_ticket(CONTAINER(e->pending, struct record_op, op));
}

static void end_record(struct op *op)
{
	struct record_op *record = CONTAINER(op, struct record_op, op);
	struct event *e = record->event;

	e->time_ns = gpul_clock_ns();
	if (e->pending == op)
		e->pending = NULL;
	if (op->order)
		soft_order_set(&e->order, op->order);
	if (record->has_ticket)
		soft_shared_event_end(e->shared, record->ticket, op->result != CUDA_SUCCESS);
}

static void release_record(struct op *op)
{
	struct event *e = CONTAINER(op, struct record_op, op)->event;

	if (e->pending == op) /* the launch of op's graph failed, so op never ran, and is still the newest record */
		e->pending = NULL;
	soft_event_unref(e);
}

/* Each launch of a graph makes a copy of the operation, which becomes the newest record of the event. */
static bool copy_record(struct op *op)
{
	struct record_op *record = CONTAINER(op, struct record_op, op);
	struct event *e = record->event;

	e->refs++;
	soft_capture_forget(e);
	e->pending = op;
	e->recorded = true;
	if (e->shared)
		draw_ticket(record);
	return true;
}

static const struct op_kind record_kind = { .ended = end_record,
					    .release = release_record,
					    .copy = copy_record,
					    .is_node = true,
					    .node_type = CU_GRAPH_NODE_TYPE_EVENT_RECORD,
					    .bytes = sizeof(struct record_op) };

struct event *soft_event_of_record(const struct op *work)
{
	return CONTAINER(work, const struct record_op, op)->event;
}

CUresult soft_event_record_work(struct event *e, struct op **out)
{
	struct op *op = soft_op_new(NULL, &record_kind);

	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CONTAINER(op, struct record_op, op)->event = e;
	e->refs++;
	*out = op;
	return CUDA_SUCCESS;
}

CUresult soft_event_record(struct event *e, struct stream *s)
{
	struct op *op = soft_op_new(s, &record_kind), *before = e->pending;
	struct record_op *record;
	bool was_recorded = e->recorded;
	CUresult r;

	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	record = CONTAINER(op, struct record_op, op);
	record->event = e;
	e->refs++; /* release_record() drops this reference */
	soft_capture_forget(e);
	e->pending = op;
	e->recorded = true;
	if (e->shared)
		draw_ticket(record);
	r = soft_op_submit(op, NULL);
	if (r) {
		if (record->has_ticket)
			soft_shared_event_end(e->shared, record->ticket, true);
		e->pending = before;
		e->recorded = was_recorded;
	} else {
		soft_order_set(&e->order, op->order);
	}
	soft_op_release(op);
	return r;
}

/* ---- streams that wait for an event ------------------------------------------------------ */

struct await {               /* the task of a thread: end `op` when another process has reached its record of the event */
	struct op *op;       /* holds a reference */
	struct event *event; /* holds a reference */
	uint64_t newest;     /* ticket and slot of the record: see cu_shared_event.c */
};

/* The main function of a thread that waits for a record of another process.  Each wait has its own thread, because such waits are rare. */
static void *await_record(void *arg)
{
	struct await *await = arg;
	struct context *ctx = await->op->ctx;
	CUresult r;

	do {
		r = soft_shared_event_wait(await->event->shared, await->newest);
		soft_lock();
		if (ctx->fault)
			r = ctx->fault;
		if (r == CUDA_ERROR_NOT_READY)
			soft_unlock();
	} while (r == CUDA_ERROR_NOT_READY);
	if (r && !ctx->fault)
		soft_report_fault("a stream waited for an event of another process, but that process ended or "
				  "failed before its stream arrived at the event");
	soft_op_finish(await->op, r);
	soft_op_release(await->op);
	soft_event_unref(await->event);
	soft_unlock();
	free(await);
	return NULL;
}

static void await_newest(struct op *op, struct event *e, uint64_t newest)
{
	struct await *await = malloc(sizeof *await);
	pthread_attr_t attributes;
	pthread_t thread;
	int failed = !await;

	if (await) {
		*await = (struct await){ op, e, newest };
		op->refs++;
		e->refs++;
		pthread_attr_init(&attributes);
		pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
		failed = gpul_thread_start(&thread, &attributes, "gpul-event", await_record, await);
		pthread_attr_destroy(&attributes);
	}
	if (!failed)
		return;
	soft_context_fail(op->ctx, CUDA_ERROR_OPERATING_SYSTEM);
	soft_op_end(op, CUDA_ERROR_OPERATING_SYSTEM);
	if (await) {
		soft_op_release(op);
		soft_event_unref(e);
		free(await);
	}
}

void soft_event_await(struct op *op, struct event *e)
{
	uint64_t newest = soft_shared_event_newest(e->shared);
	CUresult r = soft_shared_event_state(e->shared, newest);

	if (r == CUDA_ERROR_NOT_READY)
		await_newest(op, e, newest);
	else
		soft_op_end(op, r);
}

struct await_op {
	struct op op;
	struct event *event; /* holds a reference */
	uint64_t newest;
};

static void run_await(struct op *op)
{
	struct await_op *await = CONTAINER(op, struct await_op, op);

	await_newest(op, await->event, await->newest);
}

static void release_await(struct op *op)
{
	soft_event_unref(CONTAINER(op, struct await_op, op)->event);
}

static const struct op_kind await_kind = { .run = run_await, .release = release_await, .bytes = sizeof(struct await_op) };

static CUresult wait_for_other_process(struct stream *s, struct event *e)
{
	uint64_t newest = soft_shared_event_newest(e->shared);
	CUresult r = soft_shared_event_state(e->shared, newest);
	struct op *op;

	if (r != CUDA_ERROR_NOT_READY)
		return r;
	op = soft_op_new(s, &await_kind);
	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CONTAINER(op, struct await_op, op)->event = e;
	CONTAINER(op, struct await_op, op)->newest = newest;
	e->refs++; /* release_await() drops this reference */
	r = soft_op_submit(op, NULL);
	soft_op_release(op);
	return r;
}

CUresult soft_stream_wait_event(struct stream *s, struct event *e)
{
	struct op *op;
	CUresult r;

	if (soft_shared_event_is_remote(e->shared))
		return wait_for_other_process(s, e);
	soft_order_join(&s->order, e->order);
	if (!e->pending)
		return CUDA_SUCCESS;
	op = soft_op_new(s, &soft_marker);
	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = soft_op_submit(op, e->pending);
	soft_op_release(op);
	return r;
}

/* ---- queries and waits of the host -------------------------------------------------------- */

/* Check that the application may wait for e; fail if a stream capture forbids the wait. */
static CUresult check_host_wait(struct event *e, const char *call)
{
	CUresult r = soft_capture_check_event(e);

	return r ? r : soft_capture_check_unsafe(call);
}

EXPORT CUresult cuEventQuery(CUevent handle)
{
	struct event *e;
	CUresult r = enter_event(handle, &e);

	if (r)
		return r;
	r = check_host_wait(e, "cuEventQuery");
	if (r)
		; /* refused by check_host_wait() */
	else if (soft_shared_event_is_remote(e->shared))
		r = soft_shared_event_state(e->shared, soft_shared_event_newest(e->shared));
	else
		r = e->pending ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
	if (!r)
		soft_order_host(e->order);
	soft_unlock();
	return r;
}

/* Wait for the newest record, which another process made.  The caller holds the lock, which is released during the wait. */
static CUresult wait_for_record(struct event *e)
{
	uint64_t newest = soft_shared_event_newest(e->shared);
	CUresult r;

	e->refs++;
	soft_unlock();
	do
		r = soft_shared_event_wait(e->shared, newest);
	while (r == CUDA_ERROR_NOT_READY);
	soft_lock();
	soft_event_unref(e);
	return r;
}

EXPORT CUresult cuEventSynchronize(CUevent handle)
{
	struct event *e;
	struct op *op;
	CUresult r = enter_event(handle, &e);

	if (r)
		return r;
	op = e->pending;
	r = check_host_wait(e, "cuEventSynchronize");
	if (!r)
		r = soft_op_check_wait(op, "cuEventSynchronize");
	if (r) {
		; /* refused above */
	} else if (soft_shared_event_is_remote(e->shared)) {
		r = wait_for_record(e);
	} else if (op) {
		op->refs++;
		r = soft_op_wait(op);
		soft_op_release(op);
	} else {
		soft_order_host(e->order);
	}
	soft_unlock();
	return r;
}

EXPORT CUresult cuEventElapsedTime_v2(float *ms, CUevent from, CUevent to)
{
	struct event *a, *b;
	CUresult r = enter_event(from, &a);

	if (r)
		return r;
	b = soft_handle_find(HANDLE_EVENT, to);
	if (!ms)
		r = CUDA_ERROR_INVALID_VALUE;
	else if (!b)
		r = soft_refuse_handle(CUDA_ERROR_INVALID_HANDLE, HANDLE_EVENT, to);
	else if ((a->flags | b->flags) & CU_EVENT_DISABLE_TIMING)
		r = soft_refuse(CUDA_ERROR_INVALID_HANDLE, "cuEventElapsedTime: the %s event was created with CU_EVENT_DISABLE_TIMING",
				a->flags & CU_EVENT_DISABLE_TIMING ? "first" : "second");
	else if (!a->recorded || !b->recorded)
		r = soft_refuse(CUDA_ERROR_INVALID_HANDLE, "cuEventElapsedTime: the %s event was never recorded: call cuEventRecord first",
				a->recorded ? "second" : "first");
	else if (a->pending || b->pending)
		r = CUDA_ERROR_NOT_READY;
	else
		*ms = (float)((double)(int64_t)(b->time_ns - a->time_ns) * 1e-6);
	soft_unlock();
	return r;
}

EXPORT CUresult cuEventElapsedTime(float *ms, CUevent from, CUevent to)
{
	return cuEventElapsedTime_v2(ms, from, to);
}

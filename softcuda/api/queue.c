/* queue.c — what makes streams streams: an operation runs when all that it waits for has ended.
 *
 *     stream A   copy ──> kernel ──> record E          each arrow: "waits for"
 *                                       │
 *     stream B              wait E <────┘ ──> kernel
 *     stream 0   ...waits for the last operation of every blocking stream, and they for it
 *
 * An operation that waits for nothing runs at once in the thread that submitted it; one that
 * waited runs in the thread that ended the last thing it waited for, a worker of the
 * interpreter or another caller.  So no stream needs a thread.  Kernels only start there and
 * run on the workers.  The one exception are a program's own callbacks, which may block: they
 * have a thread, made for the first.
 *
 * When a context is dead its operations still take their turn, and do nothing. */
#include "softcuda/api/api_internal.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

struct edge {
	struct edge *next;
	struct op *op;
};

static struct link ready = { &ready, &ready };  /* may run: waits for nothing */
static struct link moving = { &moving, &moving };  /* copies and fills that run just now */
static struct link callbacks = { &callbacks,
				 &callbacks };  /* ready too, for the callback thread */
static pthread_cond_t callback_ready = PTHREAD_COND_INITIALIZER;
static bool callback_thread_runs;

static void run_ready(void);

/* ---- making and freeing ----------------------------------------------------------------- */

struct op *soft_op_new(struct stream *stream, enum op_kind kind)
{
	struct op *op = calloc(1, sizeof *op);

	if (!op)
		return NULL;
	op->kind = kind;
	op->stream = stream;
	op->ctx = stream->ctx;
	op->refs = 1;
	list_init(&op->in_context);
	list_init(&op->in_ready);
	return op;
}

static void free_payload(struct op *op)
{
	if (op->kind == OP_COPY) {
		free(op->copy.staged);
	} else if (op->kind == OP_LAUNCH) {
		gpul_exec_launch_release(op->launch.running);
		free(op->launch.params);
		if (op->launch.code)
			soft_code_unref(op->launch.code);
	} else if (op->kind == OP_RECORD || op->kind == OP_AWAIT) {
		soft_event_unref(op->record.event);
	}
}

void soft_op_release(struct op *op)
{
	if (--op->refs)
		return;
	free_payload(op);
	free(op);
}

/* ---- the graph -------------------------------------------------------------------------- */

/* Enough edges for every wait of one op are allocated before the first is tied, so that running
 * out of memory leaves the graph as it was. */
static struct edge *new_edges(size_t n)
{
	struct edge *list = NULL;

	while (n--) {
		struct edge *e = malloc(sizeof *e);

		if (!e) {
			while ((e = list)) {
				list = e->next;
				free(e);
			}
			return NULL;
		}
		e->next = list;
		list = e;
	}
	return list;
}

/* Let op wait for earlier, unless that has ended; with op NULL only count.  1: there is a wait.
 */
static size_t tie(struct op *op, struct op *earlier, struct edge **spare)
{
	struct edge *e;

	if (!earlier || earlier->ended)
		return 0;
	if (!op)
		return 1;
	e = *spare;
	*spare = e->next;
	e->op = op;
	e->next = earlier->dependents;
	earlier->dependents = e;
	op->n_waits++;
	return 1;
}

/* Tie op, the next of stream s, to all that it waits for; with op NULL only count them. */
static size_t tie_all(struct stream *s, struct op *after, struct op *op, struct edge **spare)
{
	struct context *ctx = s->ctx;
	size_t n = tie(op, after, spare) + tie(op, s->last, spare);

	if (ctx->gate && s != ctx->gate)
		n += tie(op, ctx->gate->last, spare);
	if (!s->blocking)
		return n;
	if (s != ctx->legacy)
		return n + tie(op, ctx->legacy->last, spare);
	for (struct link *i = ctx->streams.next; i != &ctx->streams; i = i->next) {
		struct stream *other = CONTAINER(i, struct stream, link);

		if (other != s && other->blocking)
			n += tie(op, other->last, spare);
	}
	return n;
}

static void make_ready(struct op *op)
{
	bool is_callback = op->kind == OP_HOST_FUNCTION || op->kind == OP_CALLBACK;

	list_append(is_callback ? &callbacks : &ready, &op->in_ready);
	if (is_callback)
		pthread_cond_signal(&callback_ready);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* op is over: let what waited for it go on.  Drops the queue's reference. */
static void end(struct op *op, CUresult result)
{
	struct stream *s = op->stream;

	op->ended = true;
	op->result = result;
	if (op->kind == OP_RECORD) {
		op->record.event->time_ns = now_ns();
		soft_event_recorded(op->record.event, op, result);
	} else if (op->kind == OP_FREE) {
		soft_allocation_free(op->allocation);
	}
	list_remove(&op->in_context);
	for (struct edge *e = op->dependents, *next; e; e = next) {
		next = e->next;
		if (--e->op->n_waits == 0)
			make_ready(e->op);
		free(e);
	}
	op->dependents = NULL;
	if (s->last == op)
		s->last = NULL;
	s->n_pending--;
	soft_stream_free_if_done(s);
	soft_changed();
	soft_op_release(op);
}

/* ---- running one ------------------------------------------------------------------------ */

static CUresult fault_result(gpul_exec_fault_kind kind)
{
	switch (kind) {
	case GPUL_EXEC_OK:
		return CUDA_SUCCESS;
	case GPUL_EXEC_ILLEGAL_ADDRESS:
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	case GPUL_EXEC_MISALIGNED:
		return CUDA_ERROR_MISALIGNED_ADDRESS;
	case GPUL_EXEC_ILLEGAL_INSTRUCTION:
		return CUDA_ERROR_ILLEGAL_INSTRUCTION;
	case GPUL_EXEC_ASSERT:
		return CUDA_ERROR_ASSERT;
	case GPUL_EXEC_NO_MEMORY:
		return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
	case GPUL_EXEC_TRAP:
	case GPUL_EXEC_STACK:
	case GPUL_EXEC_ABORTED:
		break;
	}
	return CUDA_ERROR_LAUNCH_FAILED;
}

/* A kernel failed: the context is dead, and its other kernels are stopped. */
static void kill_context(struct context *ctx, CUresult fault)
{
	if (ctx->fault)
		return;
	ctx->fault = fault;
	for (struct link *i = ctx->pending.next; i != &ctx->pending; i = i->next) {
		struct op *op = CONTAINER(i, struct op, in_context);

		if (op->kind == OP_LAUNCH && op->launch.running)
			gpul_exec_launch_abort(op->launch.running);
	}
}

/* From a worker, when a kernel has ended. */
static void launch_done(void *user, const gpul_exec_fault *fault)
{
	struct op *op = user;
	CUresult r = fault_result(fault->kind);

	soft_lock();
	if (r && !op->ctx->fault) {
		soft_report_fault(fault->text);
		kill_context(op->ctx, r);
	}
	end(op, r);
	run_ready();
	soft_unlock();
}

static CUresult machine(void)
{
	gpul_exec_machine_options options = { .heap_bytes = soft.heap_bytes };
	gpul_error err = { 0 };

	if (soft.machine ||
	    gpul_exec_machine_create(soft.memory, &options, &soft.machine, &err) == GPUL_OK)
		return CUDA_SUCCESS;
	return soft_refuse(CUDA_ERROR_OUT_OF_MEMORY, "%s", err.text);
}

/* Start a kernel; launch_done ends the op.  The lock is released meanwhile. */
static void run_launch(struct op *op)
{
	gpul_error err = { 0 };
	gpul_exec_launch *running = NULL;
	gpul_status st = GPUL_ENOMEM;
	CUresult r = machine();

	op->refs++;  /* launch_done may come before gpul_exec_launch_start returns */
	op->launch.config.done = launch_done;
	op->launch.config.done_user = op;
	op->launch.config.grid_id = op->ctx->next_grid_id++;
	soft_unlock();
	if (!r)
		st = gpul_exec_launch_start(soft.machine, &op->launch.config, &running, &err);
	soft_lock();
	op->launch.running = running;
	/* The context may have died while this was starting; once the op ended, it may be gone. */
	if (!st && !op->ended && op->ctx->fault)
		gpul_exec_launch_abort(running);
	if (st) {
		r = st == GPUL_EINVAL ? CUDA_ERROR_INVALID_VALUE
				      : CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
		soft_refuse(r, "%s", err.text);
		if (op->deferred)  /* the call that queued it has long returned success */
			kill_context(op->ctx, r);
		end(op, r);
	}
	soft_op_release(op);
}

static void run(struct op *op)
{
	CUresult fault = op->ctx->fault;

	if (fault) {
		end(op, fault);
	} else if (op->kind == OP_LAUNCH) {
		run_launch(op);
	} else if (op->kind == OP_AWAIT) {
		soft_ipc_event_await(op);
	} else if ((op->kind == OP_COPY || op->kind == OP_FILL) && op->deferred &&
		   !soft_move_is_allowed(op)) {
		soft_report_fault(
			"a queued copy or fill: its memory was unmapped before its turn came");
		kill_context(op->ctx, CUDA_ERROR_ILLEGAL_ADDRESS);
		end(op, CUDA_ERROR_ILLEGAL_ADDRESS);
	} else if (op->kind == OP_COPY || op->kind == OP_FILL) {
		list_append(&moving, &op->in_ready);
		soft_unlock();
		soft_move(op);
		soft_lock();
		list_remove(&op->in_ready);
		end(op, CUDA_SUCCESS);
	} else {
		end(op, CUDA_SUCCESS);  /* its effect is in its ending */
	}
}

static bool is_touched(const char *base, size_t bytes)
{
	for (struct link *i = moving.next; i != &moving; i = i->next)
		if (soft_move_touches(CONTAINER(i, struct op, in_ready), base, bytes))
			return true;
	return false;
}

void soft_settle(uint64_t base, size_t bytes)
{
	while (is_touched((const char *)(uintptr_t)base, bytes))
		soft_wait_change();
	gpul_exec_machine_settle(soft.machine);
}

/* Run what is ready, and what becomes ready by that.  Under the lock, released in between. */
static void run_ready(void)
{
	while (!list_empty(&ready)) {
		struct op *op = CONTAINER(ready.next, struct op, in_ready);

		list_remove(&op->in_ready);
		run(op);
	}
}

void soft_op_ended(struct op *op, CUresult result)
{
	if (result)
		kill_context(op->ctx, result);
	end(op, result);
	run_ready();
}

/* ---- callbacks -------------------------------------------------------------------------- */

static void call_back(struct op *op)
{
	CUresult fault = op->ctx->fault;

	soft_unlock();
	if (op->kind == OP_CALLBACK)
		op->callback.call(op->callback.stream, fault, op->callback.user);
	else if (!fault)
		op->host.call(op->host.user);
	soft_lock();
	end(op, fault);
	run_ready();
}

static void *callback_thread(void *arg)
{
	(void)arg;
	soft_lock();
	for (;;) {
		while (list_empty(&callbacks))
			soft_wait_on(&callback_ready);
		struct op *op = CONTAINER(callbacks.next, struct op, in_ready);

		list_remove(&op->in_ready);
		call_back(op);
	}
	return NULL;
}

static bool have_callback_thread(void)
{
	pthread_t thread;

	if (!callback_thread_runs &&
	    pthread_create(&thread, NULL, callback_thread, NULL) == 0) {
		pthread_detach(thread);
		callback_thread_runs = true;
	}
	return callback_thread_runs;
}

/* ---- submitting and waiting ------------------------------------------------------------- */

CUresult soft_op_submit(struct op *op, struct op *after)
{
	struct stream *s = op->stream;
	size_t n = tie_all(s, after, NULL, NULL);
	struct edge *spare = NULL;

	if ((op->kind == OP_HOST_FUNCTION || op->kind == OP_CALLBACK) &&
	    !have_callback_thread())
		return CUDA_ERROR_OPERATING_SYSTEM;
	if (n && !(spare = new_edges(n)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	tie_all(s, after, op, &spare);
	op->refs++;  /* the queue's; end() drops it */
	list_append(&op->ctx->pending, &op->in_context);
	s->last = op;
	s->n_pending++;
	op->deferred = n != 0;
	if (!op->deferred) {
		make_ready(op);
		run_ready();
	}
	return CUDA_SUCCESS;
}

bool soft_stream_is_busy(struct stream *s)
{
	return tie_all(s, NULL, NULL, NULL) != 0;
}

CUresult soft_op_wait(struct op *op)
{
	while (!op->ended)
		soft_wait_change();
	return op->result;
}

void soft_stream_wait(struct stream *s)
{
	struct op *last = s->last;

	if (!last)
		return;
	last->refs++;
	soft_op_wait(last);
	soft_op_release(last);
}

void soft_context_wait(struct context *ctx)
{
	while (!list_empty(&ctx->pending))
		soft_wait_change();
}

void soft_context_abort(struct context *ctx)
{
	kill_context(ctx, CUDA_ERROR_CONTEXT_IS_DESTROYED);
	for (struct link *i = ctx->pending.next; i != &ctx->pending; i = i->next) {
		struct op *op = CONTAINER(i, struct op, in_context);

		if (op->kind == OP_LAUNCH && op->launch.running)
			gpul_exec_launch_abort(op->launch.running);
	}
	soft_context_wait(ctx);
}

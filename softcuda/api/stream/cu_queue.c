/* cu_queue.c — runs the operations of streams.  An operation starts when all operations that it waits for have ended.
 *
 *     stream A   copy ──> kernel ──> record E          an arrow points to the operation that waits
 *                                       │
 *     stream B              wait E <────┘ ──> kernel
 *     stream 0   waits for the last operation of every blocking stream; each blocking stream waits for the
 *                last operation of stream 0
 *
 * An operation that need not wait runs immediately, in the thread that submitted it. Other operations run in the thread that ends
 * the last operation that they wait for: a worker of the interpreter, or a thread that called the driver. So streams have no
 * threads of their own: such a thread only starts a kernel, which then runs on the workers. Functions of the application
 * (cuLaunchHostFunc) can block, so they run in a callback thread, which is created for the first such function.
 *
 * After a fault in a context, its operations still end in order, but do no work. */
#include "softcuda/api/stream/cu_order_internal.h"

#include <stdlib.h>
#include <string.h>

#include "core/thread/thread.h"

struct edge {
	struct edge *next;
	struct op *op;
};

static struct link ready = { &ready, &ready };                /* operations that need not wait any more */
static struct link host_calls = { &host_calls, &host_calls }; /* ready operations that the callback thread runs */
static pthread_cond_t host_call_ready = PTHREAD_COND_INITIALIZER;
static bool callback_thread_runs;

const struct op_kind soft_marker = { .bytes = sizeof(struct op) };

struct op *soft_op_new(struct stream *stream, const struct op_kind *kind)
{
	struct op *op = calloc(1, kind->bytes);

	if (!op)
		return NULL;
	op->kind = kind;
	op->stream = stream;
	op->ctx = stream ? stream->ctx : NULL;
	op->refs = 1;
	list_init(&op->in_context);
	list_init(&op->in_ready);
	return op;
}

struct op *soft_op_copy(const struct op *from, struct stream *stream)
{
	struct op *op = soft_op_new(stream, from->kind);

	if (!op)
		return NULL;
	memcpy(op + 1, from + 1, from->kind->bytes - sizeof *op);
	if (!from->kind->copy || from->kind->copy(op))
		return op;
	free(op);
	return NULL;
}

void soft_op_release(struct op *op)
{
	if (--op->refs)
		return;
	if (op->kind->release)
		op->kind->release(op);
	soft_order_drop(op->order);
	free(op);
}

/* ---- the graph of operations ------------------------------------------------------------- */

/* Allocate all edges of an operation before any is added: if memory runs out, nothing has changed. */
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

/* If `earlier` has not ended, make op wait for it.  Returns the number of edges needed, 0 or 1.  op NULL: only count. */
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

/* Make op, the next operation of stream s, wait for all operations that must end first.  Returns their number.  op NULL: only count. */
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
	list_append(op->kind->is_host_call ? &host_calls : &ready, &op->in_ready);
	if (op->kind->is_host_call)
		pthread_cond_signal(&host_call_ready);
}

void soft_stream_free_if_done(struct stream *s)
{
	if (!s->destroyed || s->n_pending)
		return;
	list_remove(&s->link);
	soft_order_drop(s->order);
	free(s->tip_handles);
	free(s->tip_data);
	free(s);
}

void soft_op_end(struct op *op, CUresult result)
{
	struct stream *s = op->stream;

	op->ended = true;
	op->result = result;
	if (op->kind->ended)
		op->kind->ended(op);
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

/* ---- running ---------------------------------------------------------------------------- */

/* Run all ready operations, including those that become ready meanwhile. */
static void run_ready(void)
{
	while (!list_empty(&ready)) {
		struct op *op = CONTAINER(ready.next, struct op, in_ready);

		list_remove(&op->in_ready);
		if (op->ctx->fault || !op->kind->run)
			soft_op_end(op, op->ctx->fault);
		else
			op->kind->run(op);
	}
}

static void stop_pending(struct context *ctx)
{
	for (struct link *i = ctx->pending.next; i != &ctx->pending; i = i->next) {
		struct op *op = CONTAINER(i, struct op, in_context);

		if (op->kind->stop)
			op->kind->stop(op);
	}
}

void soft_context_fail(struct context *ctx, CUresult fault)
{
	if (ctx->fault)
		return;
	ctx->fault = fault;
	ctx->device->n_faults++;
	ctx->device->last_fault = fault;
	stop_pending(ctx);
}

void soft_op_finish(struct op *op, CUresult result)
{
	if (result)
		soft_context_fail(op->ctx, result);
	soft_op_end(op, result);
	run_ready();
}

/* a function that the callback thread calls as soon as it can; made by soft_call_back() */
struct late_call {
	struct link link;
	CUhostFn function;
	void *user;
};
static struct link late_calls = { &late_calls, &late_calls };

static void run_late_call(void)
{
	struct late_call *c = CONTAINER(late_calls.next, struct late_call, link);

	list_remove(&c->link);
	soft_unlock();
	soft_in_callback(true);
	c->function(c->user);
	soft_in_callback(false);
	soft_lock();
	free(c);
}

static void *run_host_calls(void *arg)
{
	(void)arg;
	soft_lock();
	for (;;) {
		while (list_empty(&host_calls) && list_empty(&late_calls))
			soft_wait_on(&host_call_ready);
		if (!list_empty(&late_calls)) {
			run_late_call();
			continue;
		}
		struct op *op = CONTAINER(host_calls.next, struct op, in_ready);

		list_remove(&op->in_ready);
		op->kind->run(op);
		run_ready();
	}
	return NULL;
}

static bool have_callback_thread(void)
{
	pthread_t thread;

	if (!callback_thread_runs && gpul_thread_start(&thread, NULL, "gpul-callback", run_host_calls, NULL) == 0) {
		pthread_detach(thread);
		callback_thread_runs = true;
	}
	return callback_thread_runs;
}

/* If memory or threads are exhausted, the function is not called, and the user object that it would destroy leaks. */
void soft_call_back(CUhostFn function, void *user)
{
	struct late_call *c = have_callback_thread() ? malloc(sizeof *c) : NULL;

	if (!c)
		return;
	*c = (struct late_call){ .function = function, .user = user };
	list_append(&late_calls, &c->link);
	pthread_cond_signal(&host_call_ready);
}

/* ---- submitting and waiting ------------------------------------------------------------- */

static void add_pending(struct op *op)
{
	op->refs++; /* the reference of the queue, dropped by soft_op_end() */
	list_append(&op->ctx->pending, &op->in_context);
	op->stream->last = op;
	op->stream->n_pending++;
}

CUresult soft_op_submit(struct op *op, struct op *after)
{
	struct stream *s = op->stream;
	size_t n = tie_all(s, after, NULL, NULL);
	struct edge *spare = NULL;

	if (op->kind->is_host_call && !have_callback_thread())
		return CUDA_ERROR_OPERATING_SYSTEM;
	if (n && !(spare = new_edges(n)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (soft.before_work)
		soft.before_work();
	soft_order_submit(&op, 1, NULL, 0, after);
	tie_all(s, after, op, &spare);
	op->deferred = n != 0;
	add_pending(op);
	if (!op->deferred) {
		make_ready(op);
		run_ready();
	}
	return CUDA_SUCCESS;
}

CUresult soft_ops_submit(struct op **op, size_t n, const struct op_wait *waits, size_t n_waits, struct op *after)
{
	struct stream *s = op[0]->stream;
	size_t n_edges = tie_all(s, after, NULL, NULL) + n_waits;
	struct edge *spare = NULL;

	for (size_t i = 0; i < n; i++)
		if (op[i]->kind->is_host_call && !have_callback_thread())
			return CUDA_ERROR_OPERATING_SYSTEM;
	if (n_edges && !(spare = new_edges(n_edges)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (soft.before_work)
		soft.before_work();
	soft_order_submit(op, n, waits, n_waits, after);
	tie_all(s, after, op[0], &spare);
	for (size_t i = 0; i < n_waits; i++)
		tie(op[waits[i].later], op[waits[i].earlier], &spare);
	for (size_t i = 0; i < n; i++) {
		op[i]->deferred = true; /* the call returns before op[i] runs, so a failure can only be a fault of the context */
		add_pending(op[i]);
	}
	if (!op[0]->n_waits) {
		make_ready(op[0]);
		run_ready();
	}
	return CUDA_SUCCESS;
}

CUresult soft_ops_start(struct op **op, size_t n, const struct op_wait *waits, size_t n_waits)
{
	struct stream *s = op[0]->stream;
	struct op *newest = s->last;
	struct edge *spare = NULL;

	for (size_t i = 0; i < n; i++)
		if (op[i]->kind->is_host_call && !have_callback_thread())
			return CUDA_ERROR_OPERATING_SYSTEM;
	if (n_waits && !(spare = new_edges(n_waits)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	soft_order_submit(op, n, waits, n_waits, NULL);
	for (size_t i = 0; i < n_waits; i++)
		tie(op[waits[i].later], op[waits[i].earlier], &spare);
	for (size_t i = 0; i < n; i++) {
		op[i]->deferred = true;
		add_pending(op[i]);
	}
	s->last = newest;
	make_ready(op[0]);
	return CUDA_SUCCESS;
}

bool soft_op_run_after(struct op *op, struct op *earlier)
{
	struct edge *spare = new_edges(1);

	if (!spare)
		return false;
	tie(op, earlier, &spare);
	return true;
}

bool soft_stream_is_busy(struct stream *s)
{
	return tie_all(s, NULL, NULL, NULL) != 0;
}

/* Set needs_host_call in the operations that wait for an operation of ctx in which it is set.  Returns true if any was not set before. */
static bool mark_dependents(const struct context *ctx)
{
	bool changed = false;

	for (struct link *i = ctx->pending.next; i != &ctx->pending; i = i->next) {
		const struct op *op = CONTAINER(i, struct op, in_context);

		for (const struct edge *e = op->needs_host_call ? op->dependents : NULL; e; e = e->next) {
			changed |= !e->op->needs_host_call;
			e->op->needs_host_call = true;
		}
	}
	return changed;
}

/* Set needs_host_call in all operations that wait for a host function.  Few passes are needed: most wait for earlier ones in the list. */
static void mark_host_calls(void)
{
	bool changed = true;

	for (struct link *c = soft.contexts.next; c != &soft.contexts; c = c->next) {
		struct context *ctx = CONTAINER(c, struct context, link);

		for (struct link *i = ctx->pending.next; i != &ctx->pending; i = i->next) {
			struct op *op = CONTAINER(i, struct op, in_context);

			op->needs_host_call = op->kind->is_host_call;
		}
	}
	while (changed) {
		changed = false;
		for (struct link *c = soft.contexts.next; c != &soft.contexts; c = c->next)
			changed |= mark_dependents(CONTAINER(c, struct context, link));
	}
}

/* Check that a wait can end.  The callback thread calls all host functions one after another, so it must not wait for an operation
 * that waits for one of them.  On an H200 such a wait hangs; here the call fails with a message. */
CUresult soft_op_check_wait(struct op *op, const char *call)
{
	if (!op || op->ended || !soft_is_in_callback())
		return CUDA_SUCCESS;
	mark_host_calls();
	if (!op->needs_host_call)
		return CUDA_SUCCESS;
	return soft_refuse(CUDA_ERROR_NOT_PERMITTED,
			   "%s: this call would wait forever: a host function called by the driver waits for work that is "
			   "queued after it, or after another host function",
			   call);
}

CUresult soft_op_wait(struct op *op)
{
	while (!op->ended)
		soft_wait_change();
	soft_order_host(op->order);
	return op->result;
}

void soft_stream_wait(struct stream *s)
{
	struct op *last = s->last;

	soft_order_host(s->order);
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
	soft_order_host(ctx->order);
}

void soft_context_abort(struct context *ctx)
{
	if (!ctx->fault)
		ctx->fault = CUDA_ERROR_CONTEXT_IS_DESTROYED;
	stop_pending(ctx);
	soft_context_wait(ctx);
}

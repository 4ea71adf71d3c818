/* nest.c — streams of launches from kernels ("children"), and the end of a launch that has children. */
#include <stdlib.h>

#include "softcuda/exec/machine/nest_internal.h"

static struct nesting *nesting_of_nest(const struct nest *n)
{
	return atomic_load(&n->owner->machine->nesting);
}

/* The caller of each static function below holds the lock of struct nesting. */

/* ---- lists of operations ---------------------------------------------------------------------- */

static void append_op(struct nested_stream *s, struct nested_op *op)
{
	op->next = NULL;
	if (s->last)
		s->last->next = op;
	else
		s->first = op;
	s->last = op;
}

static struct nested_op *take_first_op(struct nested_stream *s)
{
	struct nested_op *op = s->first;

	s->first = op->next;
	if (!s->first)
		s->last = NULL;
	return op;
}

static void add_running(struct nest *n, struct nested_op *op)
{
	op->before = NULL;
	op->next = n->running;
	if (n->running)
		n->running->before = op;
	n->running = op;
}

static void remove_running(struct nest *n, struct nested_op *op)
{
	if (op->before)
		op->before->next = op->next;
	else
		n->running = op->next;
	if (op->next)
		op->next->before = op->before;
}

static void free_if_idle(struct nest *n, struct nested_stream *s)
{
	if (!s->closed || s->busy || s->first)
		return;
	if (s->before)
		s->before->next = s->next;
	else
		n->streams = s->next;
	if (s->next)
		s->next->before = s->before;
	free(s);
}

static void free_op(struct nested_op *op)
{
	if (op->config.params)
		gpul_nesting_free_slot(nesting_of_nest(op->nest), op->config.params);
	free(op);
}

/* ---- stopping children ------------------------------------------------------------------------- */

static void stop_children(const struct nest *n);

static void stop_one(gpul_exec_launch *l, const gpul_exec_fault *fault)
{
	struct nest *own;

	pthread_mutex_lock(&l->lock);
	if (l->fault.kind == GPUL_EXEC_OK)
		l->fault = *fault;
	pthread_mutex_unlock(&l->lock);
	atomic_store(&l->stop, true);
	own = atomic_load(&l->nest);
	if (own)
		stop_children(own);
}

static void stop_children(const struct nest *n)
{
	const gpul_exec_fault fault = { .kind = GPUL_EXEC_ABORTED, .text = "the kernel that launched this kernel was stopped" };

	for (struct nested_op *op = n->running; op; op = op->next)
		stop_one(op->running, &fault);
}

void gpul_nest_stop(gpul_exec_launch *l)
{
	struct nest *n = atomic_load(&l->nest);
	struct nesting *g = nesting_of_nest(n);

	pthread_mutex_lock(&g->lock);
	stop_children(n);
	pthread_mutex_unlock(&g->lock);
	gpul_machine_stop(l->machine); /* a worker then ends the children that have blocks which have not started */
}

static void discard_waiting(struct nest *n, struct nested_stream *s, bool counted)
{
	while (s->first) {
		free_op(take_first_op(s));
		n->n_open -= counted;
	}
}

static void discard_all_waiting(struct nest *n)
{
	for (struct nested_stream *s = n->streams, *next; s; s = next) {
		next = s->next;
		discard_waiting(n, s, true);
		free_if_idle(n, s);
	}
	if (n->tail)
		discard_waiting(n, n->tail, false);
}

/* ---- starting children -------------------------------------------------------------------------- */

static void child_done(void *user, const gpul_exec_fault *fault);

/* Start a child launch.  Returns false if it could not start; the parent launch then fails. */
static bool begin_child(struct nest *n, struct nested_op *op)
{
	struct nesting *g = nesting_of_nest(n);
	gpul_error err = { 0 };
	gpul_exec_fault fault = { .kind = GPUL_EXEC_NO_MEMORY };

	op->config.done = child_done;
	op->config.done_user = op;
	op->config.grid_id = (1ull << 32) + g->n_launches++;
	op->config.parent = n->owner;
	if (!gpul_exec_launch_start(n->owner->machine, &op->config, &op->running, &err)) {
		gpul_nesting_free_slot(g, op->config.params);
		op->config.params = NULL;
		add_running(n, op);
		return true;
	}
	memcpy(fault.text, err.text, sizeof err.text);
	free_op(op);
	n->n_open--;
	stop_one(n->owner, &fault);
	gpul_machine_stop(n->owner->machine);
	return false;
}

/* Start a stream's operations up to the first that must wait.  Returns true if one of them recorded an event. */
static bool pump_stream(struct nest *n, struct nested_stream *s)
{
	bool reached = false;

	while (s->first && !s->busy && !atomic_load(&n->owner->stop)) {
		struct nested_op *op = s->first;

		if (op->kind == NESTED_WAIT && op->event->n_reached < op->number)
			return reached;
		take_first_op(s);
		if (op->kind == NESTED_LAUNCH) {
			s->busy = begin_child(n, op);
			continue;
		}
		if (op->kind == NESTED_RECORD) {
			op->event->n_reached = op->number;
			reached = true;
		}
		free_op(op);
		n->n_open--;
	}
	return reached;
}

static void pump(struct nest *n, struct nested_stream *s)
{
	bool reached = pump_stream(n, s);

	while (reached) {
		reached = false;
		for (struct nested_stream *other = n->streams; other; other = other->next)
			reached |= pump_stream(n, other);
	}
}

/* Return true if the launch has ended.  If its blocks and children have ended, start the next tail launch, and return false. */
static bool nest_is_over(struct nest *n)
{
	if (atomic_load(&n->owner->stop))
		discard_all_waiting(n);
	if (!n->blocks_ended || n->n_open)
		return false;
	while (n->tail && n->tail->first && !n->n_open && !atomic_load(&n->owner->stop)) {
		n->n_open++;
		n->tail->busy = begin_child(n, take_first_op(n->tail));
	}
	if (n->n_open)
		return false;
	if (n->tail)
		discard_waiting(n, n->tail, false);
	return true;
}

/* ---- the end of a child or launch --------------------------------------------------------------- */

static void child_done(void *user, const gpul_exec_fault *fault)
{
	struct nested_op *op = user;
	struct nest *n = op->nest;
	struct nesting *g = nesting_of_nest(n);
	struct nested_stream *s = op->stream;
	gpul_exec_launch *child, *owner = n->owner;
	gpul_exec_machine *m = owner->machine;
	bool over;

	pthread_mutex_lock(&g->lock);
	child = op->running;
	remove_running(n, op);
	free_op(op);
	n->n_open--;
	if (fault->kind)
		stop_one(owner, fault);
	if (s) {
		s->busy = false;
		if (s != n->tail)
			pump(n, s);
		free_if_idle(n, s);
	}
	over = nest_is_over(n);
	pthread_mutex_unlock(&g->lock);
	gpul_exec_launch_release(child);
	if (fault->kind)
		gpul_machine_stop(m);
	if (over)
		gpul_launch_end(owner);
}

void gpul_nest_blocks_ended(struct nest *n)
{
	struct nesting *g = nesting_of_nest(n);
	bool over;

	pthread_mutex_lock(&g->lock);
	n->blocks_ended = true;
	over = nest_is_over(n);
	pthread_mutex_unlock(&g->lock);
	if (over)
		gpul_launch_end(n->owner);
}

/* Prepare a launch to run again.  If children of the first run are still running, the second run ends only after them. */
void gpul_nest_begins_again(struct nest *n)
{
	struct nesting *g = nesting_of_nest(n);

	pthread_mutex_lock(&g->lock);
	n->blocks_ended = false;
	discard_all_waiting(n);
	pthread_mutex_unlock(&g->lock);
}

/* ---- for device_runtime.c: these functions take the lock themselves -------------------------------------- */

struct nest *gpul_nest_of(gpul_exec_launch *l)
{
	struct nesting *g = gpul_nesting_of(l->machine);
	struct nest *n = atomic_load(&l->nest);

	if (n || !g)
		return n;
	pthread_mutex_lock(&g->lock);
	n = atomic_load(&l->nest);
	if (!n && (n = calloc(1, sizeof *n))) {
		n->owner = l;
		atomic_store(&l->nest, n);
	}
	pthread_mutex_unlock(&g->lock);
	return n;
}

void gpul_nest_destroy(struct nest *n)
{
	for (struct nested_stream *s = n->streams, *next; s; s = next) {
		next = s->next;
		free(s);
	}
	for (struct nested_event *e = n->events, *next; e; e = next) {
		next = e->next;
		free(e);
	}
	free(n->tail);
	free(n);
}

int gpul_nest_submit(struct nest *n, struct nested_stream *stream, struct nested_op *op)
{
	struct nesting *g = nesting_of_nest(n);

	op->nest = n;
	op->stream = stream;
	pthread_mutex_lock(&g->lock);
	if (op->kind == NESTED_RECORD)
		op->event->n_recorded++;
	if (op->event)
		op->number = op->event->n_recorded;
	if (atomic_load(&n->owner->stop)) {
		free_op(op);
	} else if (stream && stream == n->tail) {
		append_op(stream, op);
	} else {
		n->n_open++;
		if (stream) {
			append_op(stream, op);
			pump(n, stream);
		} else {
			(void)begin_child(n, op); /* if it fails, it has stopped the launch n->owner */
		}
	}
	pthread_mutex_unlock(&g->lock);
	return DEVICE_OK;
}

struct nested_stream *gpul_nest_stream_new(struct nest *n)
{
	struct nested_stream *s = calloc(1, sizeof *s);
	struct nesting *g = nesting_of_nest(n);

	if (!s)
		return NULL;
	pthread_mutex_lock(&g->lock);
	s->next = n->streams;
	if (n->streams)
		n->streams->before = s;
	n->streams = s;
	pthread_mutex_unlock(&g->lock);
	return s;
}

struct nested_stream *gpul_nest_tail(struct nest *n)
{
	struct nesting *g = nesting_of_nest(n);
	struct nested_stream *tail;

	pthread_mutex_lock(&g->lock);
	if (!n->tail)
		n->tail = calloc(1, sizeof *n->tail);
	tail = n->tail;
	pthread_mutex_unlock(&g->lock);
	return tail;
}

static struct nested_stream *find_stream(const struct nest *n, uint64_t handle)
{
	struct nested_stream *s = n->streams;

	while (s && ((uintptr_t)s != handle || s->closed))
		s = s->next;
	return s;
}

struct nested_stream *gpul_nest_stream_find(struct nest *n, uint64_t handle)
{
	struct nesting *g = nesting_of_nest(n);
	struct nested_stream *s;

	pthread_mutex_lock(&g->lock);
	s = find_stream(n, handle);
	pthread_mutex_unlock(&g->lock);
	return s;
}

bool gpul_nest_stream_close(struct nest *n, uint64_t handle)
{
	struct nesting *g = nesting_of_nest(n);
	struct nested_stream *s;

	pthread_mutex_lock(&g->lock);
	s = find_stream(n, handle);
	if (s) {
		s->closed = true;
		free_if_idle(n, s);
	}
	pthread_mutex_unlock(&g->lock);
	return s;
}

struct nested_event *gpul_nest_event_new(struct nest *n)
{
	struct nested_event *e = calloc(1, sizeof *e);
	struct nesting *g = nesting_of_nest(n);

	if (!e)
		return NULL;
	pthread_mutex_lock(&g->lock);
	e->next = n->events;
	n->events = e;
	pthread_mutex_unlock(&g->lock);
	return e;
}

struct nested_event *gpul_nest_event_find(struct nest *n, uint64_t handle)
{
	struct nesting *g = nesting_of_nest(n);
	struct nested_event *e;

	pthread_mutex_lock(&g->lock);
	for (e = n->events; e && (uintptr_t)e != handle;)
		e = e->next;
	pthread_mutex_unlock(&g->lock);
	return e;
}

void gpul_nest_block_ends(struct block *b)
{
	struct nest *n = atomic_load(&b->launch->nest);

	if (b->nest->stream)
		gpul_nest_stream_close(n, (uintptr_t)b->nest->stream);
	free(b->nest);
	b->nest = NULL;
}

/* queue_internal.h — operations, which streams run in order, and the streams that order them. */
#ifndef GPULOAD_SOFTCUDA_API_STREAM_QUEUE_INTERNAL_H
#define GPULOAD_SOFTCUDA_API_STREAM_QUEUE_INTERNAL_H

#include "softcuda/api/base/state_internal.h"

struct op;

struct stream {
	struct link link;            /* in context->streams */
	void *handle;
	struct context *ctx;
	unsigned flags;
	int priority;
	bool blocking;               /* waits for the legacy stream, which waits for this one */
	bool destroyed;              /* has no handle; freed when its last operation has ended */
	uint64_t id;
	uint64_t thread;             /* per-thread default stream: of this thread; else 0 */
	struct op *last;             /* the newest operation that has not ended; NULL: idle */
	unsigned n_pending;
};

/* What the operations of one kind do.  Every function is called under the lock; NULL: nothing to do. */
struct op_kind {
	/* Do the work, then soft_op_end(); or start it, and soft_op_finish() follows from another thread.
	 * May release the lock.  Not called after a fault of the context, unless is_host_call. */
	void (*run)(struct op *op);
	void (*stop)(struct op *op);     /* the context has failed: work that runs shall end soon */
	void (*ended)(struct op *op);
	void (*release)(struct op *op);  /* free what the operation owns */
	bool is_host_call;               /* may block: runs in the callback thread */
	size_t bytes;                    /* of the struct whose first member is a struct op */
};

struct op {
	const struct op_kind *kind;
	struct context *ctx;
	struct stream *stream;
	struct link in_context;      /* context->pending */
	struct link in_ready;        /* the ready queue, when it is its turn */
	struct edge *dependents;     /* operations that wait for this one */
	unsigned n_waits;            /* operations that this one waits for */
	unsigned refs;
	bool ended, deferred;        /* deferred: it had to wait, so its call has returned */
	CUresult result;
};

extern const struct op_kind soft_marker;     /* does nothing: other operations wait for it */

/* A zeroed struct of kind->bytes; soft_op_release().  NULL: no memory. */
struct op *soft_op_new(struct stream *stream, const struct op_kind *kind);
/* Queue op behind its stream's work (and behind `after`, when not NULL), and run what is ready.
 * Under the lock, which is released and taken again.  The caller keeps its reference.
 * CUDA_ERROR_OUT_OF_MEMORY: nothing was queued. */
CUresult soft_op_submit(struct op *op, struct op *after);
/* All under the lock; the functions that wait release it meanwhile. */
void soft_op_release(struct op *op);
void soft_op_end(struct op *op, CUresult result);     /* from kind->run: drops the queue's reference */
void soft_op_finish(struct op *op, CUresult result);  /* from another thread: an error fails the context */
bool soft_stream_is_busy(struct stream *s);   /* its next operation would have to wait */
CUresult soft_op_wait(struct op *op);         /* returns its result */
void soft_stream_wait(struct stream *s);      /* until everything queued now has ended */
void soft_stream_free_if_done(struct stream *s);  /* when it is destroyed and has no work left */
void soft_context_wait(struct context *ctx);  /* until nothing is pending */
void soft_context_fail(struct context *ctx, CUresult fault);  /* every later call returns fault */
void soft_context_abort(struct context *ctx);  /* stop its kernels, drop what is queued, wait */

/* ---- stream.c, all under the lock -------------------------------------------------------- */

/* The stream of a handle in ctx: legacy (also for 0), per-thread or created. */
CUresult soft_find_stream(struct context *ctx, CUstream handle, struct stream **out);
CUresult soft_stream_create(struct context *ctx, unsigned flags, int priority,
			    struct stream **out);
void soft_stream_destroy(struct stream *s);
/* soft_enter() and soft_find_stream(): the lock is held on success. */
CUresult soft_enter_stream(CUstream handle, struct context **ctx, struct stream **out);

#endif

/* queue_internal.h — streams, and the operations that they run in order. */
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
	bool blocking;               /* this stream and the legacy stream wait for each other's work */
	bool destroyed;              /* the handle is freed; the stream is freed after its last operation */
	uint64_t id;
	uint64_t thread;             /* per-thread default stream: number of its thread; others: 0 */
	struct op *last;             /* the newest operation that has not ended; NULL: idle */
	unsigned n_pending;
};

/* The functions of one kind of operations.  The caller of each holds the lock; NULL: nothing to do. */
struct op_kind {
	/* Either do the work and call soft_op_end(), or start the work and let another thread call soft_op_finish().
	 * May release the lock.  Not called after a fault of the context, unless is_host_call. */
	void (*run)(struct op *op);
	void (*stop)(struct op *op);     /* the context has failed: make running work end soon */
	void (*ended)(struct op *op);
	void (*release)(struct op *op);  /* free what the operation owns */
	bool is_host_call;               /* the operation can block, so it runs in the callback thread */
	size_t bytes;                    /* size of the struct whose first member is a struct op */
};

struct op {
	const struct op_kind *kind;
	struct context *ctx;
	struct stream *stream;
	struct link in_context;      /* in context->pending */
	struct link in_ready;        /* in a ready queue, when the operation can run */
	struct edge *dependents;     /* operations that wait for this one */
	unsigned n_waits;            /* number of operations that this one waits for */
	unsigned refs;
	bool ended, deferred;        /* deferred: the operation had to wait, so its cu* call has returned */
	CUresult result;
};

extern const struct op_kind soft_marker;     /* an operation without work, for others to wait for */

/* A zeroed struct of kind->bytes, freed by soft_op_release().  NULL: out of memory. */
struct op *soft_op_new(struct stream *stream, const struct op_kind *kind);
/* Queue op behind its stream's work (and behind `after`, when not NULL), and run all ready operations.
 * The caller holds the lock, which is released and taken again, and keeps its reference.
 * CUDA_ERROR_OUT_OF_MEMORY: nothing was queued. */
CUresult soft_op_submit(struct op *op, struct op *after);
/* The caller of each function below holds the lock; the functions that wait release it meanwhile. */
void soft_op_release(struct op *op);
void soft_op_end(struct op *op, CUresult result);     /* called by kind->run; drops the queue's reference */
void soft_op_finish(struct op *op, CUresult result);  /* called by other threads; an error fails the context */
bool soft_stream_is_busy(struct stream *s);   /* true: the stream's next operation would have to wait */
CUresult soft_op_wait(struct op *op);         /* wait for op; returns its result */
void soft_stream_wait(struct stream *s);      /* wait until all work queued so far has ended */
void soft_stream_free_if_done(struct stream *s);  /* free s if it is destroyed and has no work left */
void soft_context_wait(struct context *ctx);  /* wait until no operation of ctx is pending */
void soft_context_fail(struct context *ctx, CUresult fault);  /* make every later call in ctx return fault */
void soft_context_abort(struct context *ctx);  /* stop the context's kernels, drop its queued work, and wait */

/* ---- stream.c: the caller holds the lock ------------------------------------------------- */

CUresult soft_stream_create(struct context *ctx, unsigned flags, int priority,
			    struct stream **out);
void soft_stream_destroy(struct stream *s);
/* Enter the context of a stream handle and find the stream; on success the lock is held. */
CUresult soft_enter_stream(CUstream handle, struct context **ctx, struct stream **out);

#endif
